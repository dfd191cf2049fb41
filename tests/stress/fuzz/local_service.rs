//! A server on a database in memory.

use bytes::Bytes;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Status;

use crate::kit::{
    calls::{Mark, prepare},
    catalogue::Values,
    client::Client,
    databases::runtime,
    server::{TestServer, in_memory},
};

/// The most bytes of a message: mutations exceed it now and then.
pub const MESSAGE_LIMIT: usize = 1 << 20;

/// A server that one account calls.
pub struct LocalService {
    runtime: Runtime,
    server: TestServer,
    client: Client,
}

impl LocalService {
    /// On an empty database.
    pub fn new() -> Self {
        let settings = in_memory()
            .set("EXPERTISE_MAX_MESSAGE_BYTES", MESSAGE_LIMIT)
            .set("EXPERTISE_LOG", "error");
        let (runtime, server) = (runtime(), TestServer::start_blocking(&settings));
        let client = runtime.block_on(async { Client::at(server.address()) });
        Self {
            runtime,
            server,
            client,
        }
    }

    /// Sets the account of the calls.
    pub fn call_as(&mut self, account: &str) {
        self.client = self.client.with_account(account);
    }

    /// What the server has logged, which is nothing unless something failed in it.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// Sends these bytes as the message of a call, for example to
    /// `TaskService/GetTask`.
    pub fn send(&self, method: &str, message: Bytes) -> Result<Bytes, Status> {
        self.runtime
            .block_on(self.client.send_bytes(method, message))
    }

    /// The same with messages.
    pub fn call<T: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
    ) -> Result<T, Status> {
        let answer = self.send(method, request.encode_to_vec().into())?;
        Ok(T::decode(answer).expect("an answer is its message"))
    }

    /// Makes every resource of the catalogue in the account; what its placeholders stand for.
    pub fn fill(&self) -> Values {
        let send = async |call: &str, message| self.client.send_bytes(call, message).await;
        self.runtime.block_on(prepare(None, &Mark::NONE, send))
    }
}
