//! A database of each release is opened by this version, which reads from it what the release did.
//!
//! `tests/released` has a directory for each: an SQLite file, the same data as a dump of PostgreSQL,
//! and what calls read, a line each; all compressed. CONTRIBUTING.md, "Release a version", says how they
//! are made.

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    process::Stdio,
};

use prost::Message;
use prost_reflect::DynamicMessage;

use super::{accounts::fill, copy::served, databases::cluster};
use crate::kit::{
    client::Client,
    command::{Cli, command},
    contract::descriptor,
    databases::runtime,
    postgres::Cluster,
    prelude::*,
    random_writes,
    rng::Rng,
    scratch::Scratch,
};

/// The accounts of the databases.
const ACCOUNTS: [&str; 3] = ["demo", "other", "random"];
/// Random writes in one of them.
const WRITES: usize = 150;

fn releases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/released");
    let entries = fs::read_dir(directory).expect("the releases");
    let releases: Vec<PathBuf> = entries.map(|entry| entry.expect("one").path()).collect();
    assert!(!releases.is_empty());
    releases
}

fn unpacked(release: &Path, name: &str) -> Vec<u8> {
    let packed = fs::read(release.join(name)).expect("a file of the release");
    zstd::decode_all(Cursor::new(packed)).expect("what was compressed")
}

#[test]
fn sqlite_files_of_releases_are_opened() {
    for release in releases() {
        let name = release.file_name().expect("a version").to_string_lossy();
        let file = Scratch::of_this_run().path(&format!("released-{name}.db"));
        fs::write(&file, unpacked(&release, "expertise.db.zst")).expect("a file");
        assert_read_alike(&format!("sqlite:{}", file.display()), &release);
    }
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn postgres_databases_of_releases_are_opened() {
    let cluster = cluster();
    for (number, release) in releases().iter().enumerate() {
        let url = cluster.make_database(&format!("released_{number}"));
        let dump = Scratch::of_this_run().path(&format!("released-{number}.sql"));
        fs::write(&dump, unpacked(release, "expertise.sql.zst")).expect("a file");
        let psql = ["--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"];
        run(
            cluster,
            "psql",
            &psql,
            &url,
            fs::File::open(&dump).expect("it").into(),
        );
        assert_read_alike(&url, release);
    }
}

/// Makes the files of this version, in the directory that the variable names.
#[test]
#[ignore = "makes files, as CONTRIBUTING.md says"]
fn make_the_databases_of_a_release() {
    let Some(release) = std::env::var_os("EXPERTISE_TEST_MAKE_RELEASED") else {
        return;
    };
    let release = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/released")
        .join(release);
    fs::create_dir_all(&release).expect("a directory");
    let file = Scratch::of_this_run().path("release.db");
    let url = format!("sqlite:{}", file.display());
    served(&url, |account| {
        fill(&account("demo"));
        fill(&account("other"));
        runtime().block_on(async { write_randomly(&client(&account("random"))).await });
    });
    let contents = contents(&url).join("\n");
    let cluster = cluster();
    let postgres = cluster.make_database("release");
    let copy = command(&["copy", "--from", &url, "--database-url", &postgres]);
    copy.run().succeeded();
    let dump = run(
        cluster,
        "pg_dump",
        &["--no-owner", "--no-privileges"],
        &postgres,
        Stdio::null(),
    );
    let file = fs::read(file).expect("the file");
    for (name, bytes) in [
        ("expertise.db.zst", file),
        ("expertise.sql.zst", dump),
        ("contents.jsonl.zst", contents.into_bytes()),
    ] {
        let packed = zstd::encode_all(Cursor::new(bytes), 19).expect("compressed");
        fs::write(release.join(name), packed).expect("a file");
    }
}

async fn write_randomly(client: &Client) {
    let mut writes = random_writes::writes(&mut Rng::new(1));
    for number in 0..WRITES {
        random_writes::apply(client, &writes(), number).await;
    }
    // Every entry of the feed is in order.
    client.cursor_now().await;
}

/// Runs a program of PostgreSQL on a database; what it prints.
fn run(cluster: &Cluster, program: &str, args: &[&str], url: &str, input: Stdio) -> Vec<u8> {
    let mut command = cluster.command(&cluster.binaries().join(program));
    let output = command.args(args).arg(url).stdin(input).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    output.stdout
}

#[track_caller]
fn assert_read_alike(url: &str, release: &Path) {
    let recorded = unpacked(release, "contents.jsonl.zst");
    let recorded = String::from_utf8(recorded).expect("text");
    let found = contents(url);
    for (found, recorded) in found.iter().zip(recorded.lines()) {
        assert_eq!(found, recorded, "{url} of {}", release.display());
    }
    assert_eq!(found.len(), recorded.lines().count());
}

/// What calls read from a database, with the schema of this version.
fn contents(url: &str) -> Vec<String> {
    served(url, |account| {
        runtime().block_on(async {
            let mut lines = Vec::new();
            for name in ACCOUNTS {
                read_account(&client(&account(name)), &mut lines).await;
            }
            lines
        })
    })
}

fn client(cli: &Cli) -> Client {
    let address = cli.server.trim_start_matches("http://").parse();
    Client::at(address.expect("an address")).with_account(&cli.account)
}

/// All that an account has, as messages of the contract. What may differ from version to version
/// without a loss is left out: cursors and tokens.
async fn read_account(client: &Client, lines: &mut Vec<String>) {
    let mut add = |name: &str, message: Vec<u8>| {
        let message = DynamicMessage::decode(descriptor(name), message.as_slice());
        let message = message.expect("a message of the contract");
        // A value's maps are sorted.
        lines.push(serde_json::to_value(&message).expect("JSON").to_string());
    };
    for task in client.all_tasks().await {
        add(
            "TaskDocument",
            client.exported(&task.guid).await.encode_to_vec(),
        );
        add("Task", task.encode_to_vec());
        for step in client.steps_with_bodies(&task.guid).await {
            add("Step", step.encode_to_vec());
        }
        for revision in client.all_revisions(&task.guid).await {
            let kept = client.get_revision(&task.guid, revision.revision).await;
            add("GetRevisionResponse", kept.accepted().encode_to_vec());
        }
    }
    let deleted = ListDeletedTasksRequest {
        page_size: 500,
        ..ListDeletedTasksRequest::default()
    };
    for task in client.list_deleted_tasks(deleted).await.accepted().tasks {
        add("DeletedTask", task.encode_to_vec());
    }
    for role in client.list_roles(500, "").await.accepted().roles {
        add("Role", role.encode_to_vec());
    }
    let oldest = ListChangesRequest {
        start: ChangeStart::Oldest.into(),
        page_size: 500,
        ..ListChangesRequest::default()
    };
    let page = client.list_changes(oldest).await.accepted();
    let (others, _) = client.changes_after(&page.next_cursor).await;
    for mut change in page.changes.into_iter().chain(others) {
        change.cursor.clear();
        add("Change", change.encode_to_vec());
    }
    for work in client.index_work().await {
        add("IndexWork", work.encode_to_vec());
    }
    for work in client.translation_work(&["de", "es", "fr"]).await {
        add("TranslationWork", work.encode_to_vec());
    }
}
