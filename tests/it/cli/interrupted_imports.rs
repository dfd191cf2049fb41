//! Ctrl-C during an import, and the run that resumes it.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;

use crate::command::{Cli, Says, command, text};
use macro_rules_attribute::apply;
use rustix::process::Signal;

/// Files of small guides. Every seventh is the same as the one before.
fn files(count: usize) -> (TempDir, Vec<String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let names: Vec<String> = (0..count).map(|at| format!("{at}.json")).collect();
    for (at, name) in names.iter().enumerate() {
        let guide = match at % 7 {
            6 => at - 1,
            _ => at,
        };
        let document = json!({
            "task": {"name": format!("Guide {guide}"), "product_id": 7},
            "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"}],
        });
        fs::write(directory.path().join(name), document.to_string()).expect("a file");
    }
    (directory, names)
}

/// How often each name is there.
fn names(cli: &Cli) -> BTreeMap<String, usize> {
    let tasks = cli.command(&["list", "--format=json"]).run().succeeded();
    let mut names = BTreeMap::new();
    for task in tasks.json().as_array().expect("an array") {
        *names.entry(text(&task["name"])).or_default() += 1;
    }
    names
}

fn expected_names(count: usize) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for at in 0..count {
        let guide = if at % 7 == 6 { at - 1 } else { at };
        *names.entry(format!("Guide {guide}")).or_default() += 1;
    }
    names
}

#[apply(on_both_databases)]
fn an_interrupted_import_finishes_its_file_and_is_resumed(cli: Cli) {
    let count = 40;
    let (directory, files) = files(count);
    let import = |more: &[&str]| {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let args = [&["import"], more, &files].concat();
        cli.command(&args).in_directory(directory.path()).start()
    };
    let interrupted = |more: &[&str]| {
        let run = import(more);
        let seen = (0..3).map_while(|_| run.next_line()).count();
        run.signal(Signal::INT);
        let output = run.end();
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        let done = seen + output.stdout.lines().count();
        assert!((3..count).contains(&done), "{done}");
        let line = output.stderr.lines().last().expect("a line");
        let (interrupted, id) = line.split_once("--request-id ").expect(line);
        interrupted.says(&[&format!("interrupted after {done} of ")]);
        output.stderr.says(&[&format!(
            "{done} created, 0 updated, 0 unchanged, 0 failed\n"
        )]);
        (done, id.to_owned())
    };
    let (first_done, id) = interrupted(&[]);
    assert_eq!(names(&cli).values().sum::<usize>(), first_done);
    // The resumed run is interrupted, too.
    let (second_done, same_id) = interrupted(&["--request-id", &id]);
    assert_eq!(same_id, id);
    let done = first_done.max(second_done);
    assert_eq!(names(&cli).values().sum::<usize>(), done);
    import(&["--request-id", &id]).end().succeeded();
    assert_eq!(names(&cli), expected_names(count));
}

/// A server that never answers: its address, and a word when it has got this text.
fn silent_server(text: &'static str) -> (String, Receiver<()>) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("its address");
    let (sender, got) = channel();
    thread::spawn(move || {
        let (mut connection, _) = server.accept().expect("a connection");
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = connection.read(&mut buffer) {
            read.extend_from_slice(&buffer[..count]);
            if read.windows(text.len()).any(|it| it == text.as_bytes()) {
                let _ = sender.send(());
            }
        }
    });
    (format!("http://{address}"), got)
}

#[test]
fn a_second_signal_ends_an_import_that_hangs() {
    let (int, term) = (Signal::INT, Signal::TERM);
    for signals in [[int, int], [int, term], [term, int]] {
        let (directory, names) = files(2);
        let (server, called) = silent_server("Guide 0");
        let args = [
            "import",
            &names[0],
            &names[1],
            "--account=demo",
            "--server",
            &server,
        ];
        let run = command(&args).in_directory(directory.path()).start();
        let in_time = called.recv_timeout(Duration::from_secs(60));
        in_time.expect("the first file is imported");
        run.signal(signals[0]);
        let note = run.next_error_line();
        note.says(&["interrupted: finishing the current file"]);
        run.signal(signals[1]);
        let output = run.end();
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{signals:?}"
        );
        output.stderr.says(&[
            "failed 0.json: interrupted: the server may still import it\n",
            "0 created, 0 updated, 0 unchanged, 1 failed\n",
        ]);
        let line = output.stderr.lines().last().expect("a line");
        let (done, id) = line.split_once("--request-id ").expect(line);
        done.says(&["interrupted after 1 of 2 files: "]);
        assert!(uuid::Uuid::try_parse(id).is_ok(), "{line}");
    }
}
