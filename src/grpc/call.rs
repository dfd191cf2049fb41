//! What every call has in common: its account, its rpc, and the tokens of its pages.

use std::collections::BTreeSet;

use prost::Message;
use tonic::{Request, Status};

use super::{Services, page::PageTokens, status};
use crate::{
    call_context::CallContext,
    domain::{caller::Caller, ids::AccountId, sha256::Sha256},
    messages::{message_json, wire},
    store::{Account, WriteMode},
};

/// A call of an account.
pub struct Call {
    pub account: Account,
    rpc: &'static str,
    id: AccountId,
    page_key: [u8; 32],
    page_bytes: usize,
}

impl Services {
    /// The call of an rpc on the account of its caller, and the message of its request.
    pub fn call<M>(&self, rpc: &'static str, request: Request<M>) -> Result<(Call, M), Status> {
        let context = CallContext::current();
        let caller = context.as_ref().and_then(|call| call.caller.get());
        let Caller {
            account, subject, ..
        } = caller.ok_or_else(|| status::credentials_missing("the call carries no credentials"))?;
        let call = Call {
            account: self.store.account(account).with_subject(subject.clone()),
            rpc,
            id: account.clone(),
            page_key: *self.store.page_key(),
            page_bytes: self.page_bytes,
        };
        Ok((call, request.into_inner()))
    }
}

impl Call {
    /// The page tokens of a listing. They are valid for requests with the same filters.
    pub fn page_tokens(&self, request: &impl Message) -> PageTokens {
        // A page token stays valid with another known fingerprint.
        let filters = self.digest(request, &["page_size", "page_token", "known_fingerprint"]);
        PageTokens::new(
            &self.page_key,
            &self.id,
            self.rpc,
            &filters,
            self.page_bytes,
        )
    }

    /// The digest of a request, excluding some of its fields.
    pub fn digest(&self, request: &impl Message, without: &[&str]) -> [u8; 32] {
        let bytes = request.encode_to_vec();
        let descriptor = message_json::descriptor(&format!("{}Request", self.rpc));
        #[allow(clippy::expect_used)]
        let descriptor = descriptor.expect("the build script names each rpc after its request");
        let is_part = |number| {
            let field = descriptor.get_field(number);
            field.is_none_or(|field| !without.contains(&field.name()))
        };
        let fields = wire::fields(&bytes).unwrap_or_default().into_iter();
        let parts = fields.filter(|field| is_part(field.number));
        let digest = Sha256::default().with(self.rpc).with([0]);
        parts
            .fold(digest, |digest, field| digest.with(field.whole))
            .finish()
    }
}

/// The `ignored_paths` of a write: fields that were sent or named in the mask but not honored.
pub fn ignored_paths(resource: &str, fields: BTreeSet<&str>) -> Vec<String> {
    let fields = fields.into_iter();
    fields.map(|field| format!("{resource}.{field}")).collect()
}

/// Whether a write is stored.
pub fn write_mode(validate_only: bool) -> WriteMode {
    match validate_only {
        true => WriteMode::ValidateOnly,
        false => WriteMode::Store,
    }
}
