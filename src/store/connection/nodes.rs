//! Connections to the nodes of Citus that hold the accounts.
//!
//! Every node answers every statement. The coordinator plans each, and sends it as text to the node
//! with the rows, which plans it again; that node itself plans it once. So the calls of an account go
//! to its node where that can be reached, and to the coordinator otherwise, and until it is known.
//!
//! *Invariant:* what a statement does does not depend on the node that it was sent to. Some servers
//! may write for an account through the coordinator while others do so on its node: locks are those of
//! the node in either case, and the numbers drawn for the change feed keep their order
//! (`changes_clock`, `store/schema/m0001.rs`).

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions, query_scalar};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::{
    PAGE_KEY, POOL,
    database::{Database, Pooling},
    driver::PoolSize,
    postgres,
};
use crate::{domain::ids::AccountId, store::metrics::StoreMetrics};

/// How long it is taken for granted which node holds an account, and that a node can be reached.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How long the check of a node may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Most accounts whose nodes are known.
const MAX_ACCOUNTS: usize = 10_000;

/// The secret that every node of the cluster has.
const KEY_OF_NODE: &str = "SELECT value FROM server_keys WHERE name = $1";
/// The node that holds an account, unless it is the coordinator.
const NODE_OF_ACCOUNT: &str = "SELECT nodename, nodeport \
     FROM pg_dist_placement placement JOIN pg_dist_node node USING (groupid) \
     WHERE shardid = get_shard_id_for_distribution_column('accounts', $1::text) \
     AND noderole = 'primary' AND metadatasynced AND groupid <> 0";

/// The nodes of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Nodes {
    /// Unmeasured, as what is asked in the background belongs to no call.
    coordinator: Database,
    metrics: Arc<StoreMetrics>,
    /// How the coordinator is reached, and the nodes but for host and port.
    options: PgConnectOptions,
    /// Most connections to each.
    max_connections: u32,
    page_key: [u8; 32],
    homes: Arc<Mutex<HashMap<AccountId, Home>>>,
    nodes: Arc<tokio::sync::Mutex<HashMap<Address, Node>>>,
    /// The pools of the nodes that could be reached.
    pools: Arc<Mutex<HashMap<Address, Database>>>,
}

/// Which node holds an account.
struct Home {
    /// `None` while it is not known, and if calls go to the coordinator.
    node: Option<Database>,
    asked: Instant,
}

struct Node {
    is_used: bool,
    checked: Instant,
}

/// Host and port of a node, as the other nodes reach it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Address {
    host: String,
    port: u16,
}

impl Nodes {
    /// The nodes of a coordinator. `None` if it is reached through a socket or PgBouncer, as the
    /// nodes may not be reached like this.
    pub fn of(
        coordinator: &Database,
        options: &PgConnectOptions,
        max_connections: u32,
        page_key: [u8; 32],
        metrics: &Arc<StoreMetrics>,
    ) -> Option<Self> {
        let is_direct = coordinator.pooling == Pooling::Session && options.get_socket().is_none();
        is_direct.then(|| Self {
            coordinator: coordinator.clone(),
            metrics: Arc::clone(metrics),
            options: options.clone(),
            max_connections,
            page_key,
            homes: Arc::default(),
            nodes: Arc::default(),
            pools: Arc::default(),
        })
    }

    /// The connections to the node that holds an account, if that is known and can be reached.
    /// What is not known, or was asked long ago, is asked in the background.
    pub fn node_of(&self, account: &AccountId) -> Option<Database> {
        let asked = Instant::now();
        let mut homes = lock(&self.homes);
        let known = homes.get_mut(account);
        let node = known.as_ref().and_then(|home| home.node.clone());
        match known {
            Some(home) if asked.duration_since(home.asked) < CHECK_INTERVAL => return node,
            Some(home) => home.asked = asked,
            None => {
                if homes.len() >= MAX_ACCOUNTS {
                    homes.clear();
                }
                homes.insert(account.clone(), Home { node: None, asked });
            }
        }
        let (nodes, account) = (self.clone(), account.clone());
        tokio::spawn(async move {
            let node = nodes.find(&account).await.unwrap_or_default();
            if let Some(home) = lock(&nodes.homes).get_mut(&account) {
                home.node = node;
            }
        });
        node
    }

    async fn find(&self, account: &AccountId) -> Result<Option<Database>, DbErr> {
        let values = [account.as_str().into()];
        let node = Statement::from_sql_and_values(DbBackend::Postgres, NODE_OF_ACCOUNT, values);
        let Some(row) = self.coordinator.query_one_raw(node).await? else {
            return Ok(None);
        };
        let address = Address {
            host: row.try_get("", "nodename")?,
            port: u16::try_from(row.try_get::<i32>("", "nodeport")?).unwrap_or_default(),
        };
        let options = self.options.clone().host(&address.host).port(address.port);
        Ok(match self.is_used(&address, &options).await {
            true => Some(self.pool(address, options)),
            false => None,
        })
    }

    /// Whether a node can be reached, and is of this cluster: its name may lead to another server
    /// from here, as `localhost` does.
    async fn is_used(&self, address: &Address, options: &PgConnectOptions) -> bool {
        let mut nodes = self.nodes.lock().await;
        let before = nodes.get(address);
        if let Some(node) = before.filter(|node| node.checked.elapsed() < CHECK_INTERVAL) {
            return node.is_used;
        }
        let key = timeout(CHECK_TIMEOUT, key_of_node(options)).await;
        let is_used = matches!(key, Ok(Ok(key)) if key == self.page_key);
        let Address { host, port } = address;
        match before.map(|node| node.is_used) {
            Some(before) if before == is_used => {}
            _ if is_used => info!("calls of the accounts on the node {host}:{port} go there"),
            _ => warn!(
                "the node {host}:{port} cannot be reached from here with the user of the \
                 coordinator; calls of its accounts go through the coordinator"
            ),
        }
        let checked = Instant::now();
        nodes.insert(address.clone(), Node { is_used, checked });
        is_used
    }

    fn pool(&self, address: Address, options: PgConnectOptions) -> Database {
        let open = || {
            let mut node = postgres::open_pool(options, Pooling::Session, self.max_connections);
            node.measure(POOL, &self.metrics);
            node
        };
        lock(&self.pools)
            .entry(address)
            .or_insert_with(open)
            .clone()
    }

    /// The size of all pools, without that of the coordinator.
    pub fn add_to(&self, size: &mut PoolSize) {
        for pool in lock(&self.pools).values().map(|node| node.pool.size()) {
            size.open += pool.open;
            size.idle += pool.idle;
            size.max += pool.max;
        }
    }

    /// Closes the connections to the nodes, and leaves those to the coordinator.
    pub async fn close(&self) {
        let pools = mem::take(&mut *lock(&self.pools));
        for pool in pools.into_values() {
            pool.close().await;
        }
    }
}

async fn key_of_node(options: &PgConnectOptions) -> Result<Vec<u8>, sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    let key = query_scalar(KEY_OF_NODE).bind(PAGE_KEY);
    let key = key.fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(key)
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
