//! The built binary: what it says, and how it ends.

use std::{
    env,
    process::{Output, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};
use tonic::Status;

use crate::harness::*;

fn command(args: &[&str], environment: &[(&str, &str)]) -> (TempDir, Command) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_expertise"));
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("EXPERTISE_") {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .envs(environment.iter().copied())
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    (directory, command)
}

async fn expertise(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let (_directory, mut command) = command(args, environment);
    command.output().await.expect("the binary runs")
}

fn said(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[tokio::test]
async fn a_run_ends_with_its_summary_and_an_exit_code() {
    let service = FakeService::with(vec![step("fine", "on"), step("bad", "bad")]).await;
    let engine = FakeEngine::start(|question| {
        if question.texts().iter().any(|text| text == "bad") {
            Reply::Answer(500, String::new())
        } else {
            shout(question)
        }
    })
    .await;
    let args = [
        "translate",
        "--languages=de",
        "--account=42",
        "--retries=1",
        "--backoff=1ms",
        "--server",
        &service.url,
        "--engine-url",
        &engine.url,
    ];
    let (stdout, stderr, code) = said(&expertise(&args, &[]).await);
    assert_eq!(
        stdout,
        "written 1, skipped as locked 0, stale 0, not found 0, failed 1\n"
    );
    assert!(
        stderr.contains("failed bad de: the engine does not answer: status 500"),
        "{stderr}"
    );
    assert_eq!(code, Some(1));

    service.state().pages = vec![vec![step("fine", "on")]];
    let (stdout, _, code) = said(&expertise(&args, &[]).await);
    assert!(stdout.starts_with("written 1,") && stdout.ends_with("failed 0\n"));
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn an_interrupted_run_says_its_summary_and_fails() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(|_| Reply::Silence).await;
    let args = [
        "translate",
        "--languages=de",
        "--account=42",
        "--server",
        &service.url,
        "--engine-url",
        &engine.url,
    ];
    let (_directory, mut command) = command(&args, &[]);
    let run = command.spawn().expect("the binary runs");
    let asked = async {
        while engine.questions().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let asked = timeout(Duration::from_secs(60), asked).await;
    asked.expect("the engine is asked");
    let id = run.id().expect("it still runs").to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.await.expect("kill runs").success());
    let ended = timeout(Duration::from_secs(20), run.wait_with_output()).await;
    let output = ended.expect("it ends").expect("its output");
    let (stdout, stderr, code) = said(&output);
    assert!(stdout.starts_with("written 0,"), "{stdout}");
    assert!(stderr.contains("interrupted: the rest is left"), "{stderr}");
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn token_and_key_are_never_shown() {
    let engine = FakeEngine::start(|question| {
        Reply::Answer(400, format!("{{\"error\": {:?}}}", question.body))
    })
    .await;
    for trouble in [vec![], vec![Status::unauthenticated("Bearer to.ken")]] {
        let service = FakeService::start(State {
            pages: vec![vec![step("s", "on")]],
            trouble,
            ..State::default()
        })
        .await;
        let args = [
            "translate",
            "--languages=de",
            "--server",
            &service.url,
            "--engine-url",
            &engine.url,
        ];
        let environment = [
            ("EXPERTISE_TOKEN", "to.ken"),
            ("EXPERTISE_ENGINE_API_KEY", "sesame"),
            ("EXPERTISE_LOG", "trace"),
        ];
        let (stdout, stderr, code) = said(&expertise(&args, &environment).await);
        let shown = stdout + &stderr;
        assert_eq!(code, Some(1));
        assert!(shown.contains("failed"), "{shown}");
        assert!(
            !shown.contains("to.ken") && !shown.contains("sesame"),
            "{shown}"
        );
        assert!(!service.state().metadata.is_empty());
    }
}

#[tokio::test]
async fn wrong_settings_are_refused_in_one_line_without_secrets() {
    let (stdout, stderr, code) = said(
        &expertise(
            &["translate", "--languages=de", "--account=42"],
            &[("EXPERTISE_TOKEN", "to.ken")],
        )
        .await,
    );
    assert_eq!((stdout.as_str(), code), ("", Some(2)));
    assert_eq!(stderr.lines().count(), 1);
    assert!(
        stderr.contains("--account is \"42\": it must be left out"),
        "{stderr}"
    );
}
