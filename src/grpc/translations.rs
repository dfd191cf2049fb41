//! TranslationService.

use tonic::{Request, Response, Status};

use super::status;
use crate::proto::v1::{
    ListTranslationWorkRequest, ListTranslationWorkResponse, WriteTranslationsRequest,
    WriteTranslationsResponse, translation_service_server::TranslationService,
};

/// The translations of every resource.
#[derive(Clone)]
pub struct Translations;

#[tonic::async_trait]
impl TranslationService for Translations {
    async fn list_translation_work(
        &self,
        _: Request<ListTranslationWorkRequest>,
    ) -> Result<Response<ListTranslationWorkResponse>, Status> {
        let path = "/expertise.v1.TranslationService/ListTranslationWork";
        Err(status::unimplemented(path))
    }

    async fn write_translations(
        &self,
        _: Request<WriteTranslationsRequest>,
    ) -> Result<Response<WriteTranslationsResponse>, Status> {
        let path = "/expertise.v1.TranslationService/WriteTranslations";
        Err(status::unimplemented(path))
    }
}
