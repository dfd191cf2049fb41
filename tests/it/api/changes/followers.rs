//! Readers that follow while several servers write, some of them slow to commit: nothing is
//! skipped, and everybody sees one order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;
use tonic::Request;

use super::copy::Copy;
use crate::{
    kit::{
        relay::Relay,
        rng::Rng,
        server::{TestServer, with_metrics},
        sql::SqlConnection,
    },
    ops::exposition::Exposition,
    prelude::*,
};

const WRITERS_OF_A_SERVER: usize = 3;
const WRITES: usize = 10;
/// Of a writer on the server whose statements are delayed.
const SLOW_WRITES: usize = 5;
/// How long each message between that server and the database takes.
const DELAY: Duration = Duration::from_millis(5);

/// Servers of one database. On PostgreSQL they are three, one of which is slow.
struct Fleet {
    servers: Vec<TestServer>,
    _relay: Option<Relay>,
}

impl Fleet {
    async fn start(url: &str) -> Self {
        let server = async |url: &str| TestServer::start(with_metrics(url)).await;
        if !url.starts_with("postgres") {
            return Self {
                servers: vec![server(url).await],
                _relay: None,
            };
        }
        let address: http::Uri = url.parse().expect("the URL of a database");
        let relay = Relay::with_delay(address.port_u16().expect("a port"), DELAY);
        let slow = relay.url(url);
        let servers = vec![server(url).await, server(url).await, server(&slow).await];
        Self {
            servers,
            _relay: Some(relay),
        }
    }

    /// Has all writers write; what they have written.
    async fn write(&self, shared: &Task) -> Vec<Written> {
        let mut writers = JoinSet::new();
        for (number, server) in self.servers.iter().enumerate() {
            for writer in 0..WRITERS_OF_A_SERVER {
                let writes = if number == 2 { SLOW_WRITES } else { WRITES };
                let rng = Rng::new((number * 10 + writer) as u64);
                let client = server.client().over_new_connection();
                writers.spawn(Writer::run(client, shared.guid.clone(), rng, writes));
            }
        }
        writers.join_all().await
    }

    async fn shut_down(self) {
        for server in self.servers {
            server.shut_down().await;
        }
    }
}

/// What a writer has written, in order: ids, and etags, which are empty for deletions.
type Written = Vec<(String, String)>;

struct Writer {
    client: Client,
    rng: Rng,
    /// Its own guide, and a guide that all writers change.
    guides: [String; 2],
    steps: Vec<String>,
    written: Written,
}

impl Writer {
    async fn run(client: Client, shared: String, rng: Rng, writes: usize) -> Written {
        let own = client.given_task(task("Own")).await;
        // It is renamed, and this title follows.
        client.given_step(subtask(&own, &own)).await;
        let mut writer = Self {
            client,
            rng,
            guides: [own.guid, shared],
            steps: Vec::new(),
            written: Vec::new(),
        };
        for number in 0..writes {
            writer.write(number).await;
        }
        writer.written
    }

    async fn write(&mut self, number: usize) {
        let title = format!("title {number}");
        let guide = self.guides[self.rng.below(2)].clone();
        let step = match self.steps.len() {
            0 => None,
            count => Some(self.steps[self.rng.below(count)].clone()),
        };
        match (self.rng.below(12), step) {
            (0, Some(step)) => {
                self.client.delete_step(&step).await.accepted();
                self.steps.retain(|known| *known != step);
                self.written.push((step, String::new()));
            }
            (1..=3, Some(step)) => {
                let update = step_of(&step).titled(title);
                let step = self.client.updated_step(update, &["title"]).await;
                self.written.push((step.guid, step.etag));
            }
            // Under locks.
            (4, _) => {
                let update = task_of(&self.guides[0]).named(title);
                let task = self.client.updated_task(update, &["name"]).await;
                self.written.push((task.guid, task.etag));
            }
            (5, _) => {
                let mut guide = self.client.exported(&self.guides[0]).await;
                guide
                    .steps
                    .push(document_step(StepType::Information, &title));
                let task = self.client.imported(guide).await;
                let new = task.steps.last().expect("a step");
                let step = self.client.get_step(new).await.accepted();
                self.written.push((step.guid, step.etag));
            }
            // Refused, rolled back, or given up half-way.
            (6, _) => {
                let update = task_of(&guide).named(title).with_etag("old");
                self.client.update_task(update, &["name"]).await.refused();
            }
            (7, _) => {
                let dry_run =
                    import_of(document(&title, Vec::new())).with(|it| it.validate_only = true);
                self.client.call(dry_run).await.accepted();
            }
            (8, _) => {
                let mut request = Request::new(import_of(document(&title, Vec::new())));
                request.set_timeout(Duration::from_millis(40));
                // Only the feed knows whether it was written.
                let _ = self.client.send(request).await;
            }
            _ => {
                let new = information_step(&task_of(&guide), &title);
                let step = self.client.given_step(new).await;
                self.steps.push(step.guid.clone());
                self.written.push((step.guid, step.etag));
            }
        }
    }
}

/// Follows from a cursor in pages of any size. Now and then it crashes, and goes on from the cursor
/// of any change that it has seen: it must see the same again. Ends once it has caught up after
/// `stop`.
async fn follow(client: Client, start: String, mut rng: Rng, stop: Arc<AtomicBool>) -> Vec<Change> {
    let mut seen: Vec<Change> = Vec::new();
    let (mut cursor, mut at) = (start.clone(), 0);
    loop {
        let is_last = stop.load(Ordering::SeqCst);
        let request = changes_behind(&cursor).with(|it| it.page_size = 1 + rng.below(40) as i32);
        let page = client.call(request).await.accepted();
        for change in page.changes {
            match seen.get(at) {
                Some(known) => assert_eq!(*known, change, "another order"),
                None => seen.push(change),
            }
            at += 1;
        }
        cursor = page.next_cursor;
        if is_last && page.caught_up && at == seen.len() {
            return seen;
        }
        if rng.below(8) == 0 && !is_last && !seen.is_empty() {
            at = rng.below(seen.len() + 1);
            cursor = match at.checked_sub(1) {
                Some(last) => seen[last].cursor.clone(),
                None => start.clone(),
            };
        }
        tokio::task::yield_now().await;
    }
}

#[apply(on_both_databases)]
async fn readers_follow_all_writers(url: String) {
    let fleet = Fleet::start(&url).await;
    let client = fleet.servers[0].client();
    let start = client.cursor_now().await;
    let shared = client.given_task(task("Shared")).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for (number, server) in fleet.servers.iter().enumerate() {
        let (rng, stop) = (Rng::new(100 + number as u64), Arc::clone(&stop));
        let client = server.client().over_new_connection();
        readers.spawn(follow(client, start.clone(), rng, stop));
    }
    let written = fleet.write(&shared).await;
    stop.store(true, Ordering::SeqCst);
    let readers = readers.join_all().await;
    // A write whose caller has given up may end later than all readers.
    for server in &fleet.servers {
        let is_idle = |metrics: &Exposition| metrics.sum("expertise_calls_in_work", &[]) == 0.0;
        server.wait_for_metrics("all writes end", is_idle).await;
    }
    let (changes, _) = client.changes_after(&start).await;
    for mut seen in readers {
        let last = seen.last().map_or(&start, |change| &change.cursor);
        let (late, _) = client.changes_after(last).await;
        seen.extend(late);
        let pairs = seen.iter().zip(&changes);
        let same = pairs.take_while(|(seen, change)| seen == change).count();
        let (seen_count, count) = (seen.len(), changes.len());
        assert!(
            seen == changes,
            "a reader has seen {seen_count} changes of {count}, and only the first {same} are equal"
        );
    }
    let positions = positions(&changes);
    for written in &written {
        let mut last = 0;
        for (guid, etag) in written {
            let at = positions.get(&(guid.as_str(), etag.as_str()));
            let at = *at.unwrap_or_else(|| panic!("{guid} {etag} is not in the feed"));
            assert!(at >= last, "the writes of one writer are in their order");
            last = at;
        }
    }
    transactions_are_together(&changes);
    let mut copy = Copy::default();
    for change in &changes {
        copy.follow(&client, change).await;
    }
    assert!(copy == Copy::of(&client).await);
    let count = changes.len();
    let writes: usize = written.iter().map(Vec::len).sum();
    println!("{count} changes, {writes} writes");
    // Each entry has the number of entries of its write, even if a window cuts the write.
    let wrong_sizes = "SELECT count(*) FROM (SELECT transaction_id FROM changes \
        GROUP BY transaction_id \
        HAVING min(transaction_size) <> count(*) OR max(transaction_size) <> count(*)) wrong";
    let mut database = SqlConnection::open(&url).await;
    assert_eq!(database.number(wrong_sizes).await, 0);
    fleet.shut_down().await;
}

/// Nobody reads the feed meanwhile, so all changes are put in order together.
#[apply(on_both_databases)]
async fn writes_through_several_servers_keep_their_order(url: String) {
    let fleet = Fleet::start(&url).await;
    let clients: Vec<Client> = fleet.servers.iter().map(TestServer::client).collect();
    let task = clients[0].given_task(task("Shared")).await;
    let step = clients[0].given_step(information_step(&task, "Look")).await;
    let cursor = clients[0].cursor_now().await;
    let mut etags = Vec::new();
    for (number, client) in (0..30).zip(clients.iter().cycle()) {
        let update = step_of(&step.guid).titled(format!("title {number}"));
        etags.push(client.updated_step(update, &["title"]).await.etag);
    }
    let (changes, _) = clients[0].changes_after(&cursor).await;
    let told = changes.iter().filter(|change| change.step == step.guid);
    let told: Vec<&String> = told.map(|change| &change.etag).collect();
    assert_eq!(told, etags.iter().collect::<Vec<_>>());
    fleet.shut_down().await;
}

/// Where each state of a task or step stands. None comes twice.
fn positions(changes: &[Change]) -> BTreeMap<(&str, &str), usize> {
    let mut positions = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        let about = match change.step.as_str() {
            "" => change.task.as_str(),
            step => step,
        };
        let twice = positions.insert((about, change.etag.as_str()), at);
        assert_eq!(twice, None, "{change:?}");
    }
    positions
}

fn transactions_are_together(changes: &[Change]) {
    let mut ended = BTreeSet::new();
    let mut current: Option<&String> = None;
    for change in changes {
        assert!(!ended.contains(&change.transaction), "{change:?}");
        assert!(current.is_none_or(|current| *current == change.transaction));
        current = Some(&change.transaction);
        if change.transaction_end {
            ended.insert(&change.transaction);
            current = None;
        }
    }
    assert_eq!(current, None);
}

/// An entry for each of these transactions, in the order in which overlapping writes got their
/// numbers.
fn insert(url: &str, transactions: impl Iterator<Item = usize>) -> String {
    let transactions: Vec<usize> = transactions.collect();
    let uuid = |number: usize| match url.starts_with("postgres") {
        true => format!("'00000000-0000-0000-0000-{number:012}'"),
        false => format!("x'{number:032}'"),
    };
    let mut sizes = BTreeMap::new();
    for number in &transactions {
        *sizes.entry(number).or_insert(0) += 1;
    }
    let rows = transactions.iter().map(|number| {
        let (id, size) = (uuid(*number), sizes[number]);
        format!("('demo', {id}, {size}, 2, {id}, 1, 0, 0, '', 2, '')")
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "INSERT INTO changes (account_id, transaction_id, transaction_size, kind, task, version, \
         changed_ts, step_count, fields, rpc, subject) VALUES {}",
        rows.join(", ")
    )
}

/// More entries than are put in order together, of overlapping transactions, and one transaction
/// that exceeds that number by itself.
#[apply(on_both_databases)]
async fn large_transactions_that_overlap_are_put_in_order_whole(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let start = client.cursor_now().await;
    let mut database = SqlConnection::open(&url).await;
    let overlapping = (0..2_400)
        .map(|at| at % 3)
        .chain((0..300).map(|at| 3 + at % 2));
    database.execute(&insert(&url, overlapping)).await;
    let behind = (0..2_700)
        .map(|at| 10 + at % 2)
        .chain((0..5_600).map(|_| 12));
    database.execute(&insert(&url, behind)).await;
    let (changes, _) = client.changes_after(&start).await;
    assert_eq!(changes.len(), 2_400 + 300 + 2_700 + 5_600);
    transactions_are_together(&changes);
    server.shut_down().await;
}
