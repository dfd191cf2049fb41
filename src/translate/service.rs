//! The translation service, as its client.

use std::{error::Error, str::FromStr, time::Duration};

use tokio::time::sleep;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt;

use super::retry::Retry;
use crate::{
    config::{Credentials, TranslateConfig},
    proto::v1::{
        AutomaticTranslation, ListTranslationWorkRequest, ListTranslationWorkResponse,
        TranslationResult, WriteTranslationsRequest,
        translation_service_client::TranslationServiceClient,
    },
};

/// Items to a page: few, so that little is lost when a run is ended.
const PAGE_SIZE: i32 = 25;
/// The largest message taken, in bytes: an item may be a body of any size that
/// the server is set to.
const MESSAGE_MAX: usize = 2_147_483_647;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Beyond what the server itself grants a call by default.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// The service of one account.
pub struct Service {
    client: TranslationServiceClient<Channel>,
    credentials: Vec<(&'static str, MetadataValue<Ascii>)>,
    languages: Vec<String>,
    task: Option<String>,
    retry: Retry,
}

/// Why the service cannot be called at all.
#[derive(Debug, thiserror::Error)]
pub enum UnusableService {
    /// The address is none.
    #[error("the server's address cannot be used: {0}")]
    Address(#[from] tonic::transport::Error),
    /// A credential holds what metadata cannot carry.
    #[error("the credentials cannot be sent: they must be visible ASCII characters")]
    Credentials,
}

impl Service {
    /// Connects with the first call.
    pub fn new(config: &TranslateConfig) -> Result<Self, UnusableService> {
        let channel = Endpoint::from_shared(config.server.clone())?
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .connect_lazy();
        let client = TranslationServiceClient::new(channel).max_decoding_message_size(MESSAGE_MAX);
        let languages = config
            .languages
            .iter()
            .map(|language| language.as_str().to_owned());
        Ok(Self {
            client,
            credentials: metadata(&config.credentials)?,
            languages: languages.collect(),
            task: config.task.map(|task| task.to_string()),
            retry: config.retry,
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
        self.insist(|| async {
            let request = self.request(message.clone());
            let answer = self.client.clone().list_translation_work(request).await;
            answer.map(tonic::Response::into_inner)
        })
        .await
    }

    /// What became of each translation, in their order. Writing one twice does
    /// no harm.
    pub async fn write(
        &self,
        translations: &[AutomaticTranslation],
    ) -> Result<Vec<TranslationResult>, Status> {
        let answer = self
            .insist(|| async {
                let request = self.request(WriteTranslationsRequest {
                    translations: translations.to_vec(),
                });
                self.client.clone().write_translations(request).await
            })
            .await?;
        Ok(answer.into_inner().results().collect())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.credentials {
            request.metadata_mut().insert(*name, value.clone());
        }
        request
    }

    /// Calls again after a pause while the failure may pass.
    async fn insist<T, F: Future<Output = Result<T, Status>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T, Status> {
        let mut retry = 0;
        loop {
            let status = match call().await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let pause = self.retry.pause(retry).filter(|_| may_pass(&status));
            let Some(pause) = pause else {
                return Err(status);
            };
            sleep(pause).await;
            retry += 1;
        }
    }
}

/// A status on one line, with the details that say more than its code, without
/// any text that was sent.
pub(super) fn describe(status: &Status) -> String {
    let details = status.get_error_details();
    let reason = details.error_info().map(|info| info.reason.clone());
    let field = details
        .bad_request()
        .and_then(|bad| bad.field_violations.first())
        .map(|violation| format!("at {}", violation.field));
    let cause = status.source().map(|error| {
        let mut cause: &dyn Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    });
    let parts = [Some(format!("{:?}", status.code())), reason, field, cause];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether the answer is about what was sent, rather than about the caller or
/// the moment.
pub(super) fn blames_content(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => true,
        Code::ResourceExhausted => !may_pass(status),
        _ => false,
    }
}

/// Whether no call of this caller will succeed.
pub(super) fn shuts_out(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented
    )
}

fn may_pass(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled => true,
        Code::ResourceExhausted => status
            .get_details_error_info()
            .is_some_and(|info| info.reason == "OVERLOADED"),
        _ => false,
    }
}

fn metadata(
    credentials: &Credentials,
) -> Result<Vec<(&'static str, MetadataValue<Ascii>)>, UnusableService> {
    match credentials {
        Credentials::Account(account) => {
            let account = MetadataValue::from_str(account.as_str())
                .map_err(|_| UnusableService::Credentials)?;
            let scopes = MetadataValue::from_static("translate");
            Ok(vec![("x-account-id", account), ("x-scopes", scopes)])
        }
        Credentials::Token(token) => {
            let mut bearer = MetadataValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| UnusableService::Credentials)?;
            bearer.set_sensitive(true);
            Ok(vec![("authorization", bearer)])
        }
    }
}
