//! Connections to the nodes of Citus that hold the accounts.
//!
//! Every node answers every statement. The coordinator plans it, and sends it as text to the node with
//! the rows, which plans it again. So the calls of an account are sent to that node itself, where it
//! can be reached, and to the coordinator otherwise.
//!
//! *Invariant:* it only takes longer through the coordinator. Servers may write for one account through
//! both at a time: the node with the rows holds their locks, and the numbers of changes do not depend
//! on who draws them (`FeedNumbers`, `store/write/statements/feed.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, Statement};
use sqlx::postgres::PgConnectOptions;
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use super::{
    PAGE_KEY, POOL,
    database::{Database, Pooling},
    driver::PoolSize,
    message::{self, NO_ANSWER},
    pooler, postgres,
};
use crate::{domain::ids::AccountId, store::metrics::StoreMetrics};

/// The pause between two looks at where the accounts are.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long the coordinator may take to say it, and then each node to show that it can be used.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a look counts if the next ones fail. Accounts may have been moved since.
const MAX_AGE: Duration = Duration::from_secs(15);

/// The ranges of hashes of account ids, and the node of each. Empty if this server hashes otherwise.
const SHARDS: &str = "SELECT shardminvalue::int, shardmaxvalue::int, nodename, nodeport, groupid \
     FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid) \
     WHERE logicalrelid = 'accounts'::regclass AND noderole = 'primary' AND metadatasynced \
     AND groupid <> 0 AND worker_hash($1::text) = $2 ORDER BY shardminvalue::int";
/// A text whose hash is compared with that of the database.
const HASHED: &str = "tenant:north.example-1";
/// Finds a row if it is the primary of this group of nodes in this cluster.
const IS_NODE: &str = "SELECT 1 FROM server_keys WHERE name = $1 AND value = $2 \
     AND (SELECT groupid FROM pg_dist_local_group) = $3 AND NOT pg_is_in_recovery()";

/// The nodes of a cluster, and the task that looks where the accounts are until this is dropped.
pub struct Nodes {
    routes: watch::Sender<Routes>,
    monitor: AbortHandle,
}

/// Where accounts are.
#[derive(Default)]
struct Routes {
    /// In the order of their hashes.
    shards: Vec<Shard>,
    /// The nodes that can be used.
    nodes: Vec<Database>,
    looked: Option<Instant>,
}

/// The accounts with these hashes.
struct Shard {
    first: i32,
    last: i32,
    /// `None` if calls go through the coordinator.
    node: Option<Database>,
}

/// Host and port of a node, as the other nodes reach it, and its group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Address {
    host: String,
    port: u16,
    group: i32,
}

/// A node that can be used.
#[derive(Clone)]
struct Node {
    calls: Database,
    /// One connection, so that calls that hold all others do not make the node seem down.
    checks: Database,
}

/// How a cluster is reached.
pub struct Cluster {
    /// Asks where accounts are.
    coordinator: Database,
    /// Those of the coordinator, and of the nodes but for host and port.
    options: PgConnectOptions,
    /// Most connections to each node.
    max_connections: u32,
    page_key: [u8; 32],
    metrics: Arc<StoreMetrics>,
    /// The nodes that were checked last, or why they cannot be used.
    nodes: BTreeMap<Address, Result<Node, String>>,
}

impl Nodes {
    /// Looks where accounts are, and goes on doing so in the background.
    pub async fn start(mut cluster: Cluster) -> Self {
        let routes = watch::Sender::new(Routes::default());
        cluster.update(&routes).await;
        let updated = routes.clone();
        let monitor = tokio::spawn(async move {
            loop {
                sleep(CHECK_INTERVAL).await;
                cluster.update(&updated).await;
            }
        });
        let monitor = monitor.abort_handle();
        Self { routes, monitor }
    }

    /// The node with the rows of an account, if it can be used.
    pub fn node_of(&self, account: &AccountId) -> Option<Database> {
        let routes = self.routes.borrow();
        let looked = routes.looked.filter(|at| at.elapsed() < MAX_AGE);
        looked?;
        let hash = hash(account.as_str().as_bytes());
        let next = routes.shards.partition_point(|shard| shard.last < hash);
        let shard = routes.shards.get(next)?;
        shard.node.as_ref().filter(|_| shard.first <= hash).cloned()
    }

    /// Adds the connections to nodes.
    pub fn add_to(&self, size: &mut PoolSize) {
        for node in &self.routes.borrow().nodes {
            let of_node = node.pool.size();
            size.open += of_node.open;
            size.idle += of_node.idle;
            size.max += of_node.max;
        }
    }

    /// Closes the connections to nodes.
    pub async fn close(&self) {
        self.monitor.abort();
        for node in self.routes.send_replace(Routes::default()).nodes {
            node.close().await;
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.monitor.abort();
    }
}

impl Cluster {
    /// The cluster of a coordinator that is reached like this. `None` through a socket or PgBouncer, as
    /// the nodes are not reached likewise.
    pub fn of(
        pooling: Pooling,
        options: &PgConnectOptions,
        max_connections: u32,
        page_key: [u8; 32],
        metrics: &Arc<StoreMetrics>,
    ) -> Option<Self> {
        let by_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
        (pooling == Pooling::Session && !by_socket).then(|| Self {
            coordinator: postgres::open_pool(options.clone(), pooling, 1),
            options: options.clone(),
            max_connections,
            page_key,
            metrics: Arc::clone(metrics),
            nodes: BTreeMap::new(),
        })
    }

    /// Looks where accounts are. What was known stays if the coordinator does not say it.
    async fn update(&mut self, routes: &watch::Sender<Routes>) {
        let shards = timeout(CHECK_TIMEOUT, self.shards()).await;
        let Ok(Ok(shards)) = shards else {
            return;
        };
        let addresses: BTreeSet<&Address> = shards.iter().map(|(_, _, address)| address).collect();
        let checks = addresses.into_iter().map(|address| self.check(address));
        let nodes = join_all(checks).await.into_iter().collect();
        self.log(&nodes);
        let node = |address| Some(nodes.get(address)?.as_ref().ok()?.calls.clone());
        let shards = shards.iter().map(|(first, last, address)| Shard {
            first: *first,
            last: *last,
            node: node(address),
        });
        let used = nodes.values().flatten();
        routes.send_replace(Routes {
            shards: shards.collect(),
            nodes: used.map(|node| node.calls.clone()).collect(),
            looked: Some(Instant::now()),
        });
        self.nodes = nodes;
    }

    /// The ranges of hashes, each with its first and last one and its node.
    async fn shards(&self) -> Result<Vec<(i32, i32, Address)>, DbErr> {
        let values = [HASHED.into(), hash(HASHED.as_bytes()).into()];
        let shards = Statement::from_sql_and_values(DbBackend::Postgres, SHARDS, values);
        let shard = |row: &QueryResult| {
            let address = Address {
                host: row.try_get_by_index(2)?,
                port: u16::try_from(row.try_get_by_index::<i32>(3)?).unwrap_or_default(),
                group: row.try_get_by_index(4)?,
            };
            Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, address))
        };
        let rows = self.coordinator.query_all_raw(shards).await?;
        rows.iter().map(shard).collect()
    }

    /// A node, or why it cannot be used.
    async fn check(&self, address: &Address) -> (Address, Result<Node, String>) {
        let check = async {
            let node = match self.nodes.get(address) {
                Some(Ok(node)) => node.clone(),
                _ => self.open(address).await?,
            };
            let values = [
                PAGE_KEY.into(),
                self.page_key.to_vec().into(),
                address.group.into(),
            ];
            let is_node = Statement::from_sql_and_values(DbBackend::Postgres, IS_NODE, values);
            match node.checks.query_one_raw(is_node).await {
                Ok(Some(_)) => Ok(node),
                Ok(None) => Err("it is another server, or not the primary".to_owned()),
                Err(error) => Err(message::schema_error(&error).to_string()),
            }
        };
        let checked = timeout(CHECK_TIMEOUT, check).await;
        let checked = checked.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()));
        (address.clone(), checked)
    }

    async fn open(&self, address: &Address) -> Result<Node, String> {
        let Address { host, port, .. } = address;
        // Elsewhere this name means another server, which would get the password.
        if is_loopback(host) && !is_loopback(self.options.get_host()) {
            return Err("its name is of the coordinator's own machine".to_owned());
        }
        let options = self.options.clone().host(host).port(*port);
        match pooler::is_pooled(&options).await {
            Ok(false) => {}
            Ok(true) => return Err("a connection pooler is before it".to_owned()),
            Err(error) => return Err(message::connect_message(&options, &error).to_string()),
        }
        let pool = |max| postgres::open_pool(options.clone(), Pooling::Session, max);
        let mut calls = pool(self.max_connections);
        calls.measure(POOL, &self.metrics);
        let checks = pool(1);
        Ok(Node { calls, checks })
    }

    /// Logs which nodes are used from now on or no longer, and of new ones also that they are not.
    fn log(&self, nodes: &BTreeMap<Address, Result<Node, String>>) {
        for (address, node) in nodes {
            let Address { host, port, .. } = address;
            let before = self.nodes.get(address);
            match (before, node) {
                (Some(Ok(_)), Ok(_)) => {}
                (_, Ok(_)) => info!(node = format!("{host}:{port}"), "calls go to the node"),
                (Some(Err(before)), Err(why)) if before == why => {}
                (_, Err(why)) => warn!(
                    node = format!("{host}:{port}"),
                    "calls go through the coordinator, not to the node: {why}"
                ),
            }
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The hash of a text by which Citus distributes rows: `hashtext` of PostgreSQL, which is lookup3 of
/// Bob Jenkins but for the lowest byte of the last word, which it leaves out.
fn hash(text: &[u8]) -> i32 {
    let word = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
    };
    let words = |bytes: &[u8]| {
        let (first, rest) = bytes.split_at(bytes.len().min(4));
        let (second, third) = rest.split_at(rest.len().min(4));
        [word(first), word(second), word(third)]
    };
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let start = 0x9e37_79b9_u32.wrapping_add(length);
    let [mut a, mut b, mut c] = [start.wrapping_add(3_923_095); 3];
    let mut blocks = text.chunks_exact(12);
    for block in &mut blocks {
        let [first, second, third] = words(block);
        a = a.wrapping_add(first);
        b = b.wrapping_add(second);
        c = c.wrapping_add(third);
        for [one, two, three] in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(one);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(two);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(three);
            b = b.wrapping_add(a);
        }
    }
    let [first, second, third] = words(blocks.remainder());
    a = a.wrapping_add(first);
    b = b.wrapping_add(second);
    c = c.wrapping_add(third << 8);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    for [one, two, three] in [[11, 25, 16], [4, 14, 24]] {
        a = (a ^ c).wrapping_sub(c.rotate_left(one));
        b = (b ^ a).wrapping_sub(a.rotate_left(two));
        c = (c ^ b).wrapping_sub(b.rotate_left(three));
    }
    c.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PostgreSQL has them: `SELECT hashtext('...')`.
    #[test]
    fn hashes_are_those_of_postgresql() {
        for (text, expected) in [
            ("", -1_477_818_771),
            ("a", 1_075_015_857),
            ("demo", -1_580_112_830),
            ("load0", -1_240_612_857),
            ("12345678", 915_794_263),
            ("123456789", 1_014_187_944),
            ("123456789ab", -1_032_191_020),
            ("123456789abc", -1_450_779_315),
            ("123456789abcd", -1_261_453_198),
            ("tenant:north.example-1_ZZ9876543210", 227_122_975),
        ] {
            assert_eq!(hash(text.as_bytes()), expected, "{text}");
        }
    }
}
