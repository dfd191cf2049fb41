//! A translation run between a real server and a real engine: Debian's `apertium-apy`
//! with `apertium-eng-spa`.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use expertise::proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorPool, DynamicMessage};
use rustix::process::Signal;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::run::{run, translate};
use crate::{
    command::example_guide,
    kit::{
        child::{SupervisedChild, cannot_run_without},
        postgres::free_port,
        server::{TestServer, in_memory},
    },
    prelude::*,
};

const PROGRAM: &str = "/usr/bin/apertium-apy";
const PAIRS: &str = "/usr/share/apertium";
const PAIR: &str = "/usr/share/apertium/modes/eng-spa.mode";
/// Far beyond what the engine takes to start.
const START: Duration = Duration::from_secs(60);
const OWN_NAME: &str = "Un título de una persona";

#[tokio::test]
#[cfg_attr(no_apertium, ignore = "no Apertium here")]
async fn a_guide_becomes_spanish_and_keeps_its_tags_and_locks() {
    let (_engine, engine_url) = start_engine().await;
    let server = TestServer::start(in_memory()).await;
    let client = server.client().with_account("42");
    import(&client, "laptop-will-not-start.json").await;
    let work = client.translation_work(&["es"]).await;
    assert!(work.len() > 50, "{} items", work.len());
    let locked = work
        .iter()
        .find(|item| item.kind() == TranslationKind::Step);
    let locked = locked.expect("a step").guid.clone();
    lock(&client, &locked).await;

    let translate = translate(&server.url(), &engine_url)
        .env("EXPERTISE_ENGINE", "apertium")
        .env("EXPERTISE_LANGUAGES", "es");
    let outcome = run(translate).await;
    outcome.end.as_ref().expect("a whole run");
    assert_eq!(outcome.failures, [""; 0]);
    assert_eq!(outcome.count("written"), work.len() as u64 - 1);
    assert_eq!(
        outcome.count("skipped as locked"),
        0,
        "a locked row is no work"
    );
    assert_eq!(client.translation_work(&["es"]).await, []);
    let mut changed = 0;
    for item in &work {
        let spanish = spanish(&client, item).await;
        if item.guid == locked {
            assert_eq!(spanish.title.as_deref(), Some(OWN_NAME));
            assert_eq!((spanish.body, spanish.locked), (None, Some(true)));
            continue;
        }
        assert_eq!(spanish.locked, Some(false));
        let source = item.source.clone().unwrap_or_default();
        let (before, after) = (
            source.body.unwrap_or_default(),
            spanish.body.unwrap_or_default(),
        );
        assert_eq!(markup(&before), markup(&after));
        changed += usize::from(source.title != spanish.title);
    }
    assert!(changed > work.len() / 2, "{changed} titles differ");
}

/// Starts the engine.
async fn start_engine() -> (SupervisedChild, String) {
    if !Path::new(PROGRAM).exists() || !Path::new(PAIR).exists() {
        cannot_run_without("apertium-apy with apertium-eng-spa");
    }
    let address = free_address();
    let mut command = Command::new(PROGRAM);
    command
        .args(["-p", &address.port().to_string(), PAIRS])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let engine = SupervisedChild::spawn(&mut command, Signal::KILL);
    let listens = async {
        while TcpStream::connect(address).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(START, listens).await.expect("the engine listens");
    (engine, format!("http://{address}"))
}

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

/// The tags of an HTML text.
fn markup(html: &str) -> Vec<&str> {
    let tags = html.split('<').skip(1);
    tags.filter_map(|tag| Some(tag.split_once('>')?.0))
        .collect()
}

async fn import(client: &Client, file: &str) {
    let json = fs::read_to_string(example_guide(file)).expect("the example");
    client.imported(document(&json)).await;
}

/// A person translates the title of a step, and nothing else of it.
async fn lock(client: &Client, guid: &str) {
    let update = step_of(guid).translated("es", step_translation(OWN_NAME));
    client.updated_step(update, &[]).await;
}

async fn spanish(client: &Client, item: &TranslationWork) -> StepTranslation {
    if item.kind() == TranslationKind::Task {
        let task = client.get_task(&item.guid).await.accepted();
        let row = only_spanish(task.translations);
        return StepTranslation::default()
            .with(|it| it.title = row.name)
            .with(|it| it.locked = row.locked);
    }
    let step = client.get_step(&item.guid).await.accepted();
    only_spanish(step.translations)
}

fn only_spanish<T>(translations: impl IntoIterator<Item = (String, T)>) -> T {
    let mut translations: BTreeMap<_, _> = translations.into_iter().collect();
    translations.remove("es").expect("a Spanish row")
}

fn document(json: &str) -> TaskDocument {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the contract");
    let kind = pool.get_message_by_name("expertise.v1.TaskDocument");
    let mut json = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(kind.expect("the message"), &mut json);
    message
        .expect("a document")
        .transcode_to()
        .expect("a document")
}
