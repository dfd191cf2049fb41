//! Checks every statement of the service in the log of PostgreSQL: it stays within an account.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use crate::kit::{runtime::in_a_runtime, sql::SqlConnection};

/// Where the statements are listed for people to read.
const LIST: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/statements.sql");

/// How the statements begin that find the next account whose histories or deleted steps have expired: the
/// only ones of a server that look across accounts.
const NEXT_EXPIRED: [&str; 2] = [
    "SELECT task_histories.account_id FROM task_histories",
    "SELECT deleted_steps.account_id FROM deleted_steps",
];

static WATCHED: OnceLock<Watched> = OnceLock::new();

/// A database whose log is read as it grows.
struct Watched {
    url: String,
    /// How the statements of the service begin in the log.
    prefix: String,
    log: PathBuf,
    state: Mutex<LogState>,
}

/// The part of a log that was read.
struct LogState {
    /// How many bytes were read.
    offset: u64,
    /// Tables whose rows belong to an account.
    tenant_tables: BTreeSet<String>,
    /// The statements without the numbers of their parameters and without repetitions.
    statements: BTreeSet<String>,
}

/// Checks the statements of the service on this database from now on. Earlier statements, such as
/// migrations, may affect every account.
pub fn watch(url: &str, database: &str, log: &Path) {
    let offset = fs::metadata(log).expect("the log").len();
    let state = LogState {
        offset,
        tenant_tables: BTreeSet::new(),
        statements: BTreeSet::new(),
    };
    let watched = Watched {
        url: url.to_owned(),
        prefix: format!("expertise|{database}|LOG:  "),
        log: log.to_owned(),
        state: Mutex::new(state),
    };
    assert!(WATCHED.set(watched).is_ok(), "it is watched already");
}

/// Checks the statements since the last check, including statements of other tests.
///
/// # Panics
/// If a statement does not stay within an account, whichever test caused it.
pub fn assert_statements_stay_within_an_account() {
    let Some(watched) = WATCHED.get() else { return };
    let mut faults = String::new();
    let mut state = watched.state.lock().unwrap_or_else(PoisonError::into_inner);
    let is_search = |sql: &str| NEXT_EXPIRED.iter().any(|begin| sql.starts_with(begin));
    let before = state.statements.len();
    for statement in watched.new_statements(&mut state.offset) {
        let shape = shape(&statement);
        if state.statements.contains(&shape) || is_search(&statement) {
            continue;
        }
        if state.tenant_tables.is_empty() {
            let tables = in_a_runtime(async {
                let mut database = SqlConnection::open(&watched.url).await;
                database.tenant_tables().await
            });
            state.tenant_tables = tables.into_iter().collect();
        }
        let fault = written_account_fault(&statement)
            .or_else(|| read_account_fault(&statement, &state.tenant_tables));
        if let Some(fault) = fault {
            faults.push_str(&format!("\n{fault}: {shape}"));
        }
        state.statements.insert(shape);
    }
    if state.statements.len() > before {
        let list: String = state
            .statements
            .iter()
            .map(|sql| format!("{sql};\n"))
            .collect();
        fs::write(LIST, list).expect("the list of statements");
    }
    drop(state);
    assert!(faults.is_empty(), "across accounts:{faults}");
}

/// The tables whose rows belong to an account, and the statements that were checked;
/// `None` where no log is watched.
pub fn checked() -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let watched = WATCHED.get()?;
    let state = watched.state.lock().unwrap_or_else(PoisonError::into_inner);
    Some((state.tenant_tables.clone(), state.statements.clone()))
}

impl Watched {
    /// The statements that were logged from this byte on, which is moved on.
    fn new_statements(&self, offset: &mut u64) -> Vec<String> {
        let mut log = File::open(&self.log).expect("the log");
        log.seek(SeekFrom::Start(*offset)).expect("its end");
        let mut text = Vec::new();
        log.read_to_end(&mut text).expect("its new lines");
        // A line that is being written is left for the next time.
        let complete = text.iter().rposition(|byte| *byte == b'\n');
        text.truncate(complete.map_or(0, |end| end + 1));
        *offset += text.len() as u64;
        let text = String::from_utf8_lossy(&text);
        // PostgreSQL begins what continues a line with a tab.
        let lines = text.replace("\n\t", " ");
        lines
            .lines()
            .filter_map(|line| statement(line, &self.prefix))
            // SeaORM quotes every name.
            .map(|sql| sql.replace('"', ""))
            .collect()
    }
}

/// The problem with the account that a statement writes. A row keeps its account from its
/// insertion.
pub fn written_account_fault(sql: &str) -> Option<&'static str> {
    let assigned = sql.split(" SET ").skip(1);
    let mut assigned = assigned.map(|rest| rest.split(" WHERE ").next().unwrap_or_default());
    if assigned.any(|assigned| format!(" {assigned}").contains(" account_id = ")) {
        return Some("changes the account of a row");
    }
    let mut inserted = sql.split("INSERT INTO ").skip(1);
    let names_account = |rest: &str| {
        rest.split_once(" (")
            .map(|(_, columns)| columns.starts_with("account_id"))
    };
    (!inserted.all(|rest| names_account(rest) == Some(true)))
        .then_some("inserts a row without its account")
}

/// Says so when a statement reads or changes more tables of account data than it has conditions on the
/// account.
pub fn read_account_fault(sql: &str, tenant_tables: &BTreeSet<String>) -> Option<&'static str> {
    let words: Vec<&str> = sql
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let named = words.windows(2).filter(|pair| {
        let names_table = ["FROM", "JOIN", "UPDATE", "USING"].contains(&pair[0]);
        names_table && tenant_tables.contains(pair[1])
    });
    (named.count() > sql.matches("account_id = ").count())
        .then_some("reads a table without its account")
}

/// The statement of a line, if it is one of the service.
pub fn statement<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let entry = line.strip_prefix(prefix)?;
    let (kind, sql) = entry.split_once(": ")?;
    (kind == "statement" || kind.starts_with("execute ")).then_some(sql)
}

/// A statement with `$` for each parameter, and one `$` for a list of them.
pub fn shape(sql: &str) -> String {
    let mut parts = sql.split('$');
    let mut shape = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shape.push('$');
        shape.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    for (many, one) in [("$, $", "$"), ("($), ($)", "($)")] {
        while shape.contains(many) {
            shape = shape.replace(many, one);
        }
    }
    shape
}
