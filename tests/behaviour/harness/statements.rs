//! What PostgreSQL is asked while the behaviours run: every statement of the
//! service, as the log of its cluster has it, stays within an account.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use sqlx::{Connection, PgConnection};

use super::tenancy;

/// Has a cluster log every statement with the name of who sends it, and no
/// parameters.
pub const LOGGED: [&str; 3] = [
    "log_statement=all",
    "log_line_prefix=%a|",
    "log_error_verbosity=terse",
];
/// How the statements of the service begin in the log.
const OURS: &str = "expertise|LOG:  ";
/// Where the statements are listed for people to read.
const LIST: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/statements.sql");

static WATCHED: OnceLock<Watched> = OnceLock::new();

/// A database whose log is read as it grows.
struct Watched {
    url: String,
    log: PathBuf,
    heard: Mutex<Heard>,
}

/// What was read of a log.
struct Heard {
    /// Bytes that were read.
    read: u64,
    /// Tables whose rows are an account's.
    tenants: BTreeSet<String>,
    /// The statements, their numbers and repetitions left out.
    statements: BTreeSet<String>,
}

/// From now on judges what a database is asked: what was asked before, as the
/// migrations, may concern everybody.
pub fn watch(url: &str, log: &Path) {
    let read = fs::metadata(log).expect("the log").len();
    let heard = Heard {
        read,
        tenants: BTreeSet::new(),
        statements: BTreeSet::new(),
    };
    let watched = Watched {
        url: url.to_owned(),
        log: log.to_owned(),
        heard: Mutex::new(heard),
    };
    assert!(WATCHED.set(watched).is_ok(), "it is watched already");
}

/// Judges what was asked since the last time.
///
/// # Panics
/// When a statement, of whichever behaviour, does not stay within an account. Whoever
/// hears it first is failed by it.
pub fn stay_within_an_account() {
    let Some(watched) = WATCHED.get() else { return };
    let mut faulty = String::new();
    let mut heard = watched.heard.lock().unwrap_or_else(PoisonError::into_inner);
    let before = heard.statements.len();
    for statement in watched.news(&mut heard.read) {
        let shape = shape(&statement);
        if heard.statements.contains(&shape) {
            continue;
        }
        if heard.tenants.is_empty() {
            heard.tenants = super::databases::runtime().block_on(tenants(&watched.url));
        }
        let faults = match tenancy::faults(&statement, &heard.tenants) {
            Ok(faults) => faults,
            Err(error) => vec![format!("cannot be read: {error}")],
        };
        for fault in faults {
            faulty.push_str(&format!("\n{fault}: {shape}"));
        }
        heard.statements.insert(shape);
    }
    if heard.statements.len() > before {
        let list: String = heard
            .statements
            .iter()
            .map(|sql| format!("{sql};\n"))
            .collect();
        fs::write(LIST, list).expect("the list of statements");
    }
    drop(heard);
    assert!(faulty.is_empty(), "across accounts:{faulty}");
}

impl Watched {
    /// The statements that were logged behind this byte, which is moved on.
    fn news(&self, read: &mut u64) -> Vec<String> {
        let mut log = File::open(&self.log).expect("the log");
        log.seek(SeekFrom::Start(*read)).expect("its end");
        let mut text = Vec::new();
        log.read_to_end(&mut text).expect("its news");
        // A line that is being written is left for the next time.
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        text.truncate(whole.map_or(0, |end| end + 1));
        *read += text.len() as u64;
        let text = String::from_utf8_lossy(&text);
        // PostgreSQL begins what continues a line with a tab.
        let lines = text.replace("\n\t", " ");
        lines
            .lines()
            .filter_map(statement)
            .map(str::to_owned)
            .collect()
    }
}

/// The statement of a line, if it is one of the service.
fn statement(line: &str) -> Option<&str> {
    let said = line.strip_prefix(OURS)?;
    let (kind, sql) = said.split_once(": ")?;
    (kind == "statement" || kind.starts_with("execute ")).then_some(sql)
}

/// A statement with `$` for each parameter, and one for many in a row.
fn shape(sql: &str) -> String {
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

/// The tables whose rows are an account's.
async fn tenants(url: &str) -> BTreeSet<String> {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let tables = "SELECT table_name::text FROM information_schema.columns \
                  WHERE table_schema = 'public' AND column_name = 'account_id'";
    let tables = sqlx::query_scalar(tables).fetch_all(&mut connection).await;
    tables.expect("the tables").into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{super::prelude::*, *};
    use crate::harness::databases::Database;

    #[test]
    fn statements_on_every_table_of_tenants_are_judged() {
        Database::Postgres.run(|world| async move {
            let role = CreateRoleRequest {
                role: Some(Role {
                    name: "Support".to_owned(),
                    ..Role::default()
                }),
            };
            world.roles().create_role(role).await.accepted();
            let name = TaskTranslation {
                name: Some("Aufgabe".to_owned()),
                ..TaskTranslation::default()
            };
            let new = Task {
                translations: [("de".to_owned(), name)].into(),
                ..task("Task")
            };
            let task = world.given_task(new).await;
            let title = StepTranslation {
                title: Some("Schritt".to_owned()),
                ..StepTranslation::default()
            };
            let step = Step {
                body: Some("body".to_owned()),
                translations: [("de".to_owned(), title)].into(),
                ..note(&task, "Step")
            };
            let create = CreateStepRequest {
                step: Some(step),
                request_id: unknown_guid(),
                ..CreateStepRequest::default()
            };
            world.steps().create_step(create).await.accepted();
        });
        let Some(watched) = WATCHED.get() else { return };
        let heard = watched.heard.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!heard.tenants.is_empty());
        for table in &heard.tenants {
            let named = |sql: &String| sql.contains(table.as_str());
            assert!(heard.statements.iter().any(named), "{table}");
        }
    }

    #[test]
    fn a_statement_is_known_by_its_shape() {
        assert_eq!(
            shape("INSERT INTO t VALUES ($1, $2), ($3, $4) WHERE a = $1 AND b IN ($12)"),
            "INSERT INTO t VALUES ($) WHERE a = $ AND b IN ($)"
        );
        let logged = "expertise|LOG:  execute sqlx_s_7: SELECT ': '";
        assert_eq!(statement(logged), Some("SELECT ': '"));
        let logged = "expertise|LOG:  statement: BEGIN";
        assert_eq!(statement(logged), Some("BEGIN"));
        for other in ["|LOG:  statement: BEGIN", "expertise|ERROR:  no: BEGIN"] {
            assert_eq!(statement(other), None);
        }
    }
}
