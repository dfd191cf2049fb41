//! Connections to the nodes of Citus that hold the accounts.
//!
//! Every node answers every statement. The coordinator plans it, and sends it as text to the node with
//! the rows, which plans it again. So the calls of an account are sent to that node itself, where it
//! can be reached, and to the coordinator otherwise.
//!
//! *Invariant:* what a statement does is the same through both. Servers may write for one account
//! through both at a time: the node with the rows holds their locks, and the numbers of changes do not
//! depend on who gives them (`FeedNumbers`, `store/write/statements/feed.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
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

/// The pause between two checks of where the accounts are.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long the coordinator may take to say it, and then each known node to show that it can be used.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a new node may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a check counts if the next ones fail. Accounts may have been moved since.
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

/// The nodes of a cluster, and the task that checks where the accounts are until this is dropped.
pub struct Nodes {
    routes: watch::Sender<Routes>,
    monitor: AbortHandle,
}

/// Where accounts are.
#[derive(Default)]
struct Routes {
    /// In the order of their hashes.
    shards: Vec<Shard>,
    /// The connections to each node.
    pools: Vec<Database>,
    /// When the check began that found this.
    checked: Option<Instant>,
    /// No more connections are used.
    closed: bool,
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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Connections to a node.
#[derive(Clone)]
struct Pools {
    calls: Database,
    /// One connection, so that calls that hold all others do not make the node seem down.
    checks: Database,
}

/// What the last check of a node has found.
#[derive(Clone)]
struct Node {
    /// `None` if it could not be reached yet.
    pools: Option<Pools>,
    /// Why it cannot be used.
    unusable: Option<String>,
}

impl Node {
    /// The connections for calls, if it can be used.
    fn usable(&self) -> Option<&Database> {
        let pools = self.pools.as_ref().filter(|_| self.unusable.is_none());
        pools.map(|pools| &pools.calls)
    }
}

/// How a cluster is reached.
struct Cluster {
    /// Asks where accounts are.
    coordinator: Database,
    /// Those of the coordinator, and of the nodes but for host and port.
    options: PgConnectOptions,
    /// Most connections to each node.
    max_connections: u32,
    page_key: [u8; 32],
    metrics: Arc<StoreMetrics>,
    nodes: BTreeMap<Address, Node>,
    /// Whether the coordinator answered the last time.
    coordinator_answers: bool,
}

impl Nodes {
    /// Checks where accounts are, and goes on doing so in the background. `None` where the coordinator is
    /// reached through a socket or PgBouncer, as the nodes are not reached likewise.
    pub async fn start(
        pooling: Pooling,
        options: &PgConnectOptions,
        max_connections: u32,
        page_key: [u8; 32],
        metrics: &Arc<StoreMetrics>,
    ) -> Option<Self> {
        let by_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
        if by_socket || pooling == Pooling::Transaction {
            return None;
        }
        let mut cluster = Cluster {
            coordinator: postgres::open_pool(options.clone(), pooling, 1),
            options: options.clone(),
            max_connections,
            page_key,
            metrics: Arc::clone(metrics),
            nodes: BTreeMap::new(),
            coordinator_answers: true,
        };
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
        Some(Self { routes, monitor })
    }

    /// The node with the rows of an account, if it can be used.
    pub fn node_of(&self, account: &AccountId) -> Option<Database> {
        let routes = self.routes.borrow();
        if routes.checked?.elapsed() >= MAX_AGE {
            return None;
        }
        let hash = hash(account.as_str().as_bytes());
        let next = routes.shards.partition_point(|shard| shard.last < hash);
        let shard = routes.shards.get(next)?;
        shard.node.as_ref().filter(|_| shard.first <= hash).cloned()
    }

    /// Adds the connections to nodes.
    pub fn add_to(&self, size: &mut PoolSize) {
        for pool in &self.routes.borrow().pools {
            let of_node = pool.pool.size();
            size.open += of_node.open;
            size.idle += of_node.idle;
            size.max += of_node.max;
        }
    }

    /// Closes the connections for calls.
    pub async fn close(&self) {
        self.monitor.abort();
        let closed = Routes {
            closed: true,
            ..Routes::default()
        };
        for pool in self.routes.send_replace(closed).pools {
            pool.close().await;
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.monitor.abort();
    }
}

impl Cluster {
    /// Checks where accounts are. What was known stays if the coordinator does not say it.
    async fn update(&mut self, routes: &watch::Sender<Routes>) {
        let checked = Some(Instant::now());
        let shards = timeout(CHECK_TIMEOUT, self.shards()).await;
        let answers = matches!(shards, Ok(Ok(_)));
        let answered = mem::replace(&mut self.coordinator_answers, answers);
        let Ok(Ok(shards)) = shards else {
            if answered {
                warn!(
                    "the coordinator does not say where accounts are: all calls soon go through it"
                );
            }
            return;
        };
        if !answered {
            info!("the coordinator says again where accounts are");
        }
        let addresses: BTreeSet<&Address> = shards.iter().map(|(_, _, address)| address).collect();
        let checks = addresses.into_iter().map(|address| self.check(address));
        let nodes = join_all(checks).await.into_iter().collect();
        self.log(&nodes);
        let shards = shards.iter().map(|(first, last, address)| Shard {
            first: *first,
            last: *last,
            node: nodes.get(address).and_then(Node::usable).cloned(),
        });
        let pools = nodes.values().filter_map(|node| node.pools.as_ref());
        let new = Routes {
            shards: shards.collect(),
            pools: pools.map(|pools| pools.calls.clone()).collect(),
            checked,
            closed: false,
        };
        routes.send_if_modified(|routes| {
            let is_open = !routes.closed;
            if is_open {
                *routes = new;
            }
            is_open
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

    async fn check(&self, address: &Address) -> (Address, Node) {
        let known = self.nodes.get(address).and_then(|node| node.pools.clone());
        let opened = match known {
            Some(pools) => Ok(pools),
            None => in_time(OPEN_TIMEOUT, self.open(address)).await,
        };
        let node = match opened {
            Ok(pools) => Node {
                unusable: in_time(CHECK_TIMEOUT, self.is_node(address, &pools.checks))
                    .await
                    .err(),
                pools: Some(pools),
            },
            Err(why) => Node {
                pools: None,
                unusable: Some(why),
            },
        };
        (address.clone(), node)
    }

    async fn is_node(&self, address: &Address, node: &Database) -> Result<(), String> {
        let key = self.page_key.to_vec();
        let values = [PAGE_KEY.into(), key.into(), address.group.into()];
        let is_node = Statement::from_sql_and_values(DbBackend::Postgres, IS_NODE, values);
        match node.query_one_raw(is_node).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("it is another server, or not the primary".to_owned()),
            Err(error) => Err(message::schema_error(&error).to_string()),
        }
    }

    async fn open(&self, Address { host, port, .. }: &Address) -> Result<Pools, String> {
        // Elsewhere this name means another server, which would get the password.
        if is_loopback(host) && !is_loopback(self.options.get_host()) {
            return Err("only the coordinator's machine reaches it by this name".to_owned());
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
        Ok(Pools { calls, checks })
    }

    /// Logs which nodes are used from now on or no longer, and of new ones also that they are not.
    fn log(&self, nodes: &BTreeMap<Address, Node>) {
        for (address, node) in nodes {
            let before = self.nodes.get(address);
            let was_usable = before.is_some_and(|before| before.unusable.is_none());
            match &node.unusable {
                None if !was_usable => info!(node = %address, "calls go to the node"),
                Some(why) if before.is_none_or(|before| before.unusable != node.unusable) => {
                    warn!(node = %address, "calls go through the coordinator, not to the node: {why}");
                }
                _ => {}
            }
        }
        let gone = self.nodes.keys().filter(|node| !nodes.contains_key(node));
        gone.for_each(|node| info!(%node, "calls no longer go to the node: it has no accounts"));
    }
}

async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let done = timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))
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
