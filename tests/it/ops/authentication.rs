//! Who is let in: tokens and their keys, accounts in headers, scopes, and TLS.

pub mod certificates;
mod headers;
mod invalid_tokens;
mod key_rotation;
pub mod key_server;
mod process;
mod scopes;
mod startup;
mod tls;
pub mod tokens;
mod valid_tokens;

use std::fmt::Display;

use bytes::Bytes;
use tonic::{Request, Status, metadata::AsciiMetadataValue};
use tonic_types::StatusExt;

use self::{key_server::KeyServer, tokens::SECRET};
use crate::{
    kit::{
        client::Client,
        deadline,
        server::{Settings, TestServer, in_memory},
    },
    prelude::*,
};

/// What the modules here import.
mod prelude {
    pub use serde_json::json;
    pub use tonic::Code;

    pub use super::{
        TokenClient,
        certificates::Authority,
        error_answer, hs256, jwt,
        key_server::KeyServer,
        start_with_keys_of,
        tokens::{AUDIENCE, ISSUER, SECRET, Signer, claims, key_set, now, sign},
    };
    pub use crate::kit::{
        deadline::{in_time, until, until_true},
        server::{TestServer, in_memory},
    };
}

/// `jwt` mode with the keys that this variable names.
pub fn jwt(keys: &str, value: impl Display) -> Settings {
    in_memory().jwt(keys, value)
}

/// `jwt` mode with the secret of these tests.
pub fn hs256() -> Settings {
    jwt("EXPERTISE_JWT_SECRET", SECRET)
}

/// Starts a server that fetches this issuer's keys.
pub async fn start_with_keys_of(issuer: &KeyServer) -> TestServer {
    TestServer::start(jwt("EXPERTISE_JWT_JWKS_URL", issuer.url())).await
}

/// Calls with a token, or with other metadata.
#[derive(Clone)]
pub struct TokenClient(pub Client);

impl TokenClient {
    pub fn of(server: &TestServer) -> Self {
        Self(server.client().without_credentials())
    }

    pub fn with_token(&self, token: &str) -> Client {
        let bearer = format!("Bearer {token}");
        self.0.with_metadata("authorization", &bearer)
    }

    /// ListTasks with a token.
    pub async fn read(&self, token: &str) -> Result<(), Status> {
        let client = self.with_token(token);
        let listed = client.call(ListTasksRequest::default());
        deadline::in_time("an answer", listed).await.map(drop)
    }

    /// CreateTask with a token; the account that the task is in.
    pub async fn write(&self, token: &str) -> Result<String, Status> {
        let client = self.with_token(token);
        let response = deadline::in_time("an answer", client.create_task(task("A task"))).await?;
        Ok(response.task.expect("the task").account_id)
    }

    /// CreateRole with a token.
    pub async fn administer(&self, token: &str) -> Result<(), Status> {
        let client = self.with_token(token);
        deadline::in_time("an answer", client.create_role("A role"))
            .await
            .map(drop)
    }

    /// ListTasks with this metadata.
    pub async fn list(&self, metadata: &[(&'static str, &str)]) -> Result<(), Status> {
        self.call("TaskService/ListTasks", metadata).await
    }

    /// Calls an rpc with an empty message and this metadata.
    pub async fn call(&self, rpc: &str, metadata: &[(&'static str, &str)]) -> Result<(), Status> {
        let mut request = Request::new(Bytes::new());
        for (name, value) in metadata {
            let value: AsciiMetadataValue = value.parse().expect("metadata of printable ASCII");
            request.metadata_mut().append(*name, value);
        }
        self.0.send_request(rpc, request).await.map(drop)
    }
}

/// An error as it goes over the wire.
#[derive(Debug, PartialEq, Eq)]
pub struct ErrorAnswer {
    pub code: Code,
    pub reason: String,
    pub message: String,
    pub details: Vec<u8>,
}

/// The error of a call that must fail.
#[track_caller]
pub fn error_answer<T: std::fmt::Debug>(outcome: Result<T, Status>) -> ErrorAnswer {
    let status = outcome.expect_err("it is refused");
    let info = status.get_details_error_info();
    ErrorAnswer {
        code: status.code(),
        reason: info.map(|info| info.reason).unwrap_or_default(),
        message: status.message().to_owned(),
        details: status.details().to_vec(),
    }
}
