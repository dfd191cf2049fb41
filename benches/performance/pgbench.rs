//! Runs the statements of the floor with pgbench: the speed of the database alone.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    cluster::Cluster,
    fixture::{BODY_BYTES, EMPTY_TASKS, FULL_TASKS, LONG_TASKS, STEPS_OF_FULL},
    floor::{ACCOUNT, sql},
    scratch::Scratch,
};

/// A script of pgbench: the statements of one call, for ids of [`super::fixture::id`].
#[derive(Clone, Copy, Debug)]
pub enum Script {
    GetStep,
    GetTask,
    ListSteps,
    ListStepsWithBodies,
    CreateStep,
    CreateStepOfOneTask,
    UpdateStep,
}

/// The id of a number, as in [`super::fixture::id`].
const ID: &str = "('00000000-0000-0000-0000-' || lpad((:n)::text, 12, '0'))::uuid";
const ETAG: &str = "'0123456789abcdef'";
const NOW: &str = "1800000000000000";
const TITLE: &str = "'Replace the fuse behind panel 00000000'";

impl Script {
    fn text(self) -> String {
        let account = format!("'{ACCOUNT}'");
        let steps = (1, FULL_TASKS * STEPS_OF_FULL);
        let created = [
            &account,
            ID,
            "gen_random_uuid()",
            TITLE,
            ":body::text",
            "1",
            "1204",
            "2",
            "1",
            ETAG,
            NOW,
        ];
        let empty = (
            FULL_TASKS + LONG_TASKS + 1,
            FULL_TASKS + LONG_TASKS + EMPTY_TASKS,
        );
        let long = (FULL_TASKS + 1, FULL_TASKS + LONG_TASKS);
        let page = vec![&account, ID, "101"];
        let ((first, last), sql, values) = match self {
            Self::GetStep => (steps, sql::GET_STEP, vec![&account, ID]),
            Self::GetTask => ((1, FULL_TASKS), sql::GET_TASK_POSTGRES, vec![&account, ID]),
            Self::ListSteps => (long, sql::LIST_STEPS, page),
            Self::ListStepsWithBodies => (long, sql::LIST_STEPS_WITH_BODIES, page),
            Self::CreateStep => (empty, sql::CREATE_STEP_POSTGRES, created.to_vec()),
            Self::CreateStepOfOneTask => {
                let one = (empty.1, empty.1);
                (one, sql::CREATE_STEP_POSTGRES, created.to_vec())
            }
            Self::UpdateStep => return update_step(steps),
        };
        let sql = with_values(sql, &values);
        format!("\\set n random({first}, {last})\n{sql};\n")
    }

    /// Runs the script. Returns the transactions a second.
    pub fn run(self, cluster: &Cluster, database: &str, clients: usize, time: Duration) -> f64 {
        let script = Scratch::of_this_run().path(&format!("{self:?}.sql"));
        fs::write(&script, self.text()).expect("a script");
        let seconds = time.as_secs_f64().ceil();
        let out = cluster
            .command(&pgbench_beside(&cluster.binaries().join("initdb")))
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
            .arg(format!("--client={clients}"))
            .arg(format!("--time={seconds}"))
            .arg(format!("--define=body={}", "x".repeat(BODY_BYTES)))
            .arg(format!("--port={}", cluster.port()))
            .args(["--host=127.0.0.1", "--username=postgres", "--file"])
            .arg::<PathBuf>(script)
            .arg(database)
            .output()
            .expect("pgbench");
        let output = String::from_utf8_lossy(&out.stdout);
        let rate = output.lines().find_map(|line| line.strip_prefix("tps = "));
        let rate = rate.and_then(|rate| rate.split_whitespace().next()?.parse().ok());
        let errors = String::from_utf8_lossy(&out.stderr);
        rate.unwrap_or_else(|| panic!("pgbench: {output}{errors}"))
    }
}

/// Reads a step, and writes it under the etag that was read.
fn update_step((first, last): (usize, usize)) -> String {
    let account = format!("'{ACCOUNT}'");
    let read = with_values(sql::GET_STEP, &[&account, ID]);
    let update = with_values(
        sql::UPDATE_STEP,
        &[&account, ID, TITLE, ETAG, NOW, ":etag::text"],
    );
    format!("\\set n random({first}, {last})\n{read} \\gset\n{update};\n")
}

/// The pgbench in the directory of `initdb`, symbolic links resolved.
fn pgbench_beside(initdb: &Path) -> PathBuf {
    let initdb = initdb.canonicalize().expect("PostgreSQL");
    initdb.with_file_name("pgbench")
}

/// The statement with values instead of its parameters.
fn with_values(sql: &str, values: &[&str]) -> String {
    // From the last one, as `$1` is also the beginning of `$10`.
    let numbered = values.iter().enumerate().rev();
    numbered.fold(sql.to_owned(), |sql, (index, value)| {
        sql.replace(&format!("${}", index + 1), value)
    })
}
