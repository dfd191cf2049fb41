//! Calls of the contract's `TranslationService`: fetches work and writes translations.

use std::error::Error;

use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

use crate::{
    client::{self, CallerMetadata, ConnectError, MAX_MESSAGE_BYTES, call_with_retries},
    config::{ConnectionConfig, RetrySettings, TranslateConfig},
    domain::{caller::Scope, ids::TaskId},
    proto::v1::{
        AutomaticTranslation, ListTranslationWorkRequest, ListTranslationWorkResponse,
        TranslationResult, WriteTranslationsRequest,
        translation_service_client::TranslationServiceClient,
    },
    terminal::sanitize,
};

/// Small pages, so that little work is lost when a run is interrupted.
const PAGE_SIZE: i32 = 25;

/// A client of `TranslationService` for one caller.
pub struct TranslationClient {
    client: TranslationServiceClient<Channel>,
    caller: CallerMetadata,
    languages: Vec<String>,
    task: Option<String>,
    retry: RetrySettings,
}

impl TranslationClient {
    /// Connects with the first call. With a task, only its work is listed.
    pub fn new(config: &TranslateConfig, task: Option<TaskId>) -> Result<Self, ConnectError> {
        let ConnectionConfig {
            server,
            trust,
            credentials,
            retry,
        } = &config.connection;
        let channel = client::endpoint(server, trust)?.connect_lazy();
        let client =
            TranslationServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let languages = config
            .translation
            .languages
            .iter()
            .map(|language| language.as_str().to_owned());
        Ok(Self {
            client,
            caller: CallerMetadata::new(credentials, &[Scope::Translate])?,
            languages: languages.collect(),
            task: task.map(|task| task.to_string()),
            retry: *retry,
        })
    }

    /// A page of the work list.
    pub async fn list(&self, page_token: &str) -> Result<ListTranslationWorkResponse, Status> {
        let message = ListTranslationWorkRequest {
            languages: self.languages.clone(),
            task: self.task.clone(),
            page_size: PAGE_SIZE,
            page_token: page_token.to_owned(),
        };
        call_with_retries(self.retry, || async {
            let request = self.caller.request(message.clone());
            let answer = self.client.clone().list_translation_work(request).await;
            answer.map(tonic::Response::into_inner)
        })
        .await
    }

    /// Writes translations, and returns the result of each in their order. Writing one
    /// twice is harmless.
    pub async fn write(
        &self,
        translations: &[AutomaticTranslation],
    ) -> Result<Vec<TranslationResult>, Status> {
        let answer = call_with_retries(self.retry, || async {
            let request = self.caller.request(WriteTranslationsRequest {
                translations: translations.to_vec(),
            });
            self.client.clone().write_translations(request).await
        })
        .await?;
        Ok(answer.into_inner().results().collect())
    }
}

/// A status on one line with its details, without any text that was sent. It is safe on a
/// terminal.
pub(super) fn describe(status: &Status) -> String {
    let details = status.get_error_details();
    let info = details.error_info();
    let reason = info.map(|info| info.reason.clone());
    let scope = info
        .and_then(|info| info.metadata.get("scope"))
        .map(|scope| format!("use a token that has the scope `{scope}`"));
    let field = details
        .bad_request()
        .and_then(|bad| bad.field_violations.first())
        .map(|violation| format!("at {}", violation.field));
    let cause = status
        .source()
        .map(|error| client::root_cause(error).to_string());
    let code = Some(format!("{:?}", status.code()));
    let parts = [code, reason, field, cause, scope];
    sanitize(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Whether the content of the request was refused, not its caller, nor for want of capacity.
pub(super) fn is_content_refused(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => true,
        Code::ResourceExhausted => !client::is_transient(status),
        _ => false,
    }
}
