//! What every call has in common: its account, and the tokens of its pages.

use prost::Message;
use tonic::{Request, Response, Status};

use super::{Services, page::PageTokens, status};
use crate::{
    auth::Caller,
    domain::{ids::AccountId, sha256::Sha256},
    messages::{message_json, wire},
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
    /// The call of a request on the account of its caller, and its message.
    pub fn call<M>(&self, request: Request<M>) -> Result<(Call, M), Status> {
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
        Ok((call, message))
    }
}

impl Call {
    /// The page tokens of a listing. They are valid for requests with the same filters.
    pub fn page_tokens(&self, rpc: &str, request: &impl Message) -> PageTokens {
        // A page token stays valid with another known fingerprint.
        let filters = digest(
            rpc,
            request,
            &["page_size", "page_token", "known_fingerprint"],
        );
        PageTokens::new(&self.page_key, &self.id, rpc, &filters, self.page_bytes)
    }
}

/// The digest of a request without some of its fields.
pub fn digest(rpc: &str, request: &impl Message, without: &[&str]) -> [u8; 32] {
    let bytes = request.encode_to_vec();
    let descriptor = message_json::descriptor(&format!("{rpc}Request"));
    let is_part = |number| {
        let field = descriptor.as_ref().and_then(|it| it.get_field(number));
        field.is_none_or(|field| !without.contains(&field.name()))
    };
    let fields = wire::fields(&bytes).unwrap_or_default().into_iter();
    let parts = fields.filter(|field| is_part(field.number));
    let digest = Sha256::default().with(rpc).with([0]);
    parts
        .fold(digest, |digest, field| digest.with(field.whole))
        .finish()
}

/// Whether a write is stored.
pub fn write_mode(validate_only: bool) -> WriteMode {
    if validate_only {
        WriteMode::ValidateOnly
    } else {
        WriteMode::Store
    }
}
