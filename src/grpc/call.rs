//! What every call has in common: its account, the tokens of its pages, and the conversion of its
//! error.

use prost::Message;
use tonic::{Request, Response, Status};

use super::{
    Services,
    page::{PageTokens, filters},
    status,
};
use crate::{
    auth::Caller,
    domain::{Result, ids::AccountId},
    store::{Account, WriteMode},
};

/// What an rpc returns.
pub type Answer<R> = Result<Response<R>, Status>;

/// A call of an account.
pub struct Call {
    pub account: Account,
    id: AccountId,
    page_key: [u8; 32],
    page_bytes: usize,
}

impl Services {
    /// Answers a request on the account of its caller, and makes a status of an error.
    pub async fn respond<M, R>(
        &self,
        request: Request<M>,
        answer: impl AsyncFnOnce(Call, M) -> Result<R>,
    ) -> Answer<R> {
        let (_, mut extensions, message) = request.into_parts();
        let Caller {
            account, subject, ..
        } = extensions
            .remove::<Caller>()
            .ok_or_else(|| status::credentials_missing("the call carries no credentials"))?;
        let call = Call {
            account: self.store.account(&account).with_subject(subject),
            id: account,
            page_key: *self.store.page_key(),
            page_bytes: self.page_bytes,
        };
        answer(call, message)
            .await
            .map(Response::new)
            .map_err(status::from_error)
    }
}

impl Call {
    /// The page tokens of a listing. They are valid for this request, and for no other.
    pub fn page_tokens(&self, rpc: &str, request: &impl Message) -> PageTokens {
        let filters = filters(rpc, request);
        PageTokens::new(&self.page_key, &self.id, rpc, &filters, self.page_bytes)
    }
}

/// Whether a write is stored.
pub fn write_mode(validate_only: bool) -> WriteMode {
    if validate_only {
        WriteMode::ValidateOnly
    } else {
        WriteMode::Store
    }
}
