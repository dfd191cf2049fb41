//! The services on a store alone, without a server's middleware, called as one account.

use std::time::Duration;

use expertise::{
    auth::{Caller, Scope},
    config::DatabaseUrl,
    domain::ids::AccountId,
    grpc::{self, GUIDE_CODEC, Limits},
    store::{HistoryOptions, Options, Store},
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, service::InterceptorLayer, transport::Server};

use super::client::Client;

/// Largest message, in bytes.
const MESSAGE_LIMIT: usize = 64 << 20;

/// How long a server keeps changes by default.
pub const CHANGES_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Opens a store with this many connections and serves it; the client's account has every
/// scope.
pub async fn serve(database_url: &str, max_connections: u32) -> (Store, Client) {
    let store = open(database_url, max_connections).await;
    let client = serve_store(store.clone(), "store-server").await;
    (store, client)
}

/// Opens a store with this many connections.
pub async fn open(database_url: &str, max_connections: u32) -> Store {
    open_with_limit(database_url, max_connections, MESSAGE_LIMIT).await
}

/// The same with another limit of what is stored and read for one message.
pub async fn open_with_limit(
    database_url: &str,
    max_connections: u32,
    max_message_bytes: usize,
) -> Store {
    let store = Store::open(Options {
        database: DatabaseUrl::parse(database_url).expect("the URL of a database"),
        migrate: true,
        max_connections,
        max_message_bytes,
        history: history_options(),
        changes_retention: CHANGES_RETENTION,
    });
    store.await.expect("a database")
}

/// The history as a server keeps it by default.
pub fn history_options() -> HistoryOptions {
    HistoryOptions {
        automatic_revisions: 50,
        deleted_task_retention: Duration::from_secs(90 * 24 * 60 * 60),
        codec: GUIDE_CODEC,
    }
}

/// Serves a store to an account that has every scope.
pub async fn serve_store(store: Store, account: &str) -> Client {
    let caller = Caller {
        account: AccountId::parse(account).expect("an account"),
        subject: String::new(),
        scopes: Scope::ALL.to_vec(),
    };
    let authenticated = InterceptorLayer::new(move |mut request: Request<()>| {
        request.extensions_mut().insert(caller.clone());
        Ok(request)
    });
    let limits = Limits {
        max_message_bytes: MESSAGE_LIMIT,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = Server::builder()
        .layer(authenticated)
        .add_routes(grpc::routes(store, limits))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serving);
    Client::at(address)
}
