//! The process between a real server and a real engine: Debian's
//! `apertium-apy` with `apertium-eng-spa`.

use std::{
    collections::BTreeMap,
    env, fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    time::Duration,
};

use expertise::{
    config::{Config, EngineKind, TranslateConfig},
    proto::{
        FILE_DESCRIPTOR_SET,
        v1::{
            GetStepRequest, GetTaskRequest, ImportTaskRequest, ListTranslationWorkRequest, Step,
            StepTranslation, TaskDocument, TranslationKind, TranslationWork, UpdateStepRequest,
            step_service_client::StepServiceClient, task_service_client::TaskServiceClient,
            translation_service_client::TranslationServiceClient,
        },
    },
    server::Server,
    translate::html::{Piece, split},
};
use prost_reflect::{DescriptorPool, DynamicMessage};
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    time::{sleep, timeout},
};
use tonic::{Request, transport::Channel};

use crate::harness::{config, language, run};

const PROGRAM: &str = "/usr/bin/apertium-apy";
const PAIRS: &str = "/usr/share/apertium";
const PAIR: &str = "/usr/share/apertium/modes/eng-spa.mode";
/// Far beyond what the engine takes to start.
const START: Duration = Duration::from_secs(60);
const OWN_NAME: &str = "Un título de una persona";

#[tokio::test]
async fn a_guide_becomes_spanish_and_keeps_its_tags_and_locks() {
    let Some((_engine, engine_url)) = start_engine().await else {
        return;
    };
    let world = World::start().await;
    world.import("router-without-internet.json").await;
    let work = world.work().await;
    assert!(work.len() > 50, "{} items", work.len());
    let locked = work
        .iter()
        .find(|item| item.kind() == TranslationKind::Step);
    let locked = locked.expect("a step").guid.clone();
    world.lock(&locked).await;

    let outcome = run(&world.config(&engine_url)).await;
    outcome.end.expect("a whole run");
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.summary.written, work.len() as u64 - 1);
    assert_eq!(outcome.summary.locked, 0, "a locked row is no work");
    assert_eq!(world.work().await, []);
    let mut changed = 0;
    for item in &work {
        let spanish = world.spanish(item).await;
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

/// Starts the engine, or says loudly that it is not there.
async fn start_engine() -> Option<(Child, String)> {
    if !Path::new(PROGRAM).exists() || !Path::new(PAIR).exists() {
        let advice = "apt-get install apertium-apy apertium-eng-spa";
        assert!(
            env::var_os("EXPERTISE_REQUIRE_APERTIUM").is_none(),
            "Apertium is missing: {advice}"
        );
        eprintln!("\n*** LEFT OUT: no Apertium here, nothing was translated: {advice} ***\n");
        return None;
    }
    let address = free_address();
    let engine = Command::new(PROGRAM)
        .args(["-p", &address.port().to_string(), PAIRS])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the engine starts");
    let listens = async {
        while TcpStream::connect(address).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(START, listens).await.expect("the engine listens");
    Some((engine, format!("http://{address}")))
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

fn markup(html: &str) -> Vec<&str> {
    let markup = split(html).filter_map(|piece| match piece {
        Piece::Markup(markup) => Some(markup),
        Piece::Text(_) => None,
    });
    markup.collect()
}

/// A server of its own, and the account 42 on it.
struct World {
    url: String,
    channel: Channel,
}

impl World {
    async fn start() -> Self {
        let server = Server::bind(Config::for_tests("sqlite::memory:"));
        let server = server.await.expect("the server starts");
        let url = format!("http://{}", server.local_addr());
        tokio::spawn(server.serve(std::future::pending()));
        let channel = Channel::from_shared(url.clone()).expect("a URL");
        let channel = channel.connect().await.expect("the server answers");
        Self { url, channel }
    }

    fn config(&self, engine_url: &str) -> TranslateConfig {
        TranslateConfig {
            engine: EngineKind::Apertium,
            languages: vec![language("es")],
            ..config(&self.url, engine_url)
        }
    }

    async fn import(&self, file: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples/guides")
            .join(file);
        let json = fs::read_to_string(path).expect("the example");
        let request = ImportTaskRequest {
            document: Some(document(&json)),
            ..ImportTaskRequest::default()
        };
        let mut tasks = TaskServiceClient::new(self.channel.clone());
        tasks.import_task(asked(request)).await.expect("an import");
    }

    async fn work(&self) -> Vec<TranslationWork> {
        let mut service = TranslationServiceClient::new(self.channel.clone());
        let mut work = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = ListTranslationWorkRequest {
                languages: vec!["es".to_owned()],
                page_token,
                ..ListTranslationWorkRequest::default()
            };
            let page = service.list_translation_work(asked(request)).await;
            let page = page.expect("a page").into_inner();
            work.extend(page.work);
            if page.next_page_token.is_empty() {
                return work;
            }
            page_token = page.next_page_token;
        }
    }

    /// A person translates the title of a step, and nothing else of it.
    async fn lock(&self, guid: &str) {
        let overlay = StepTranslation {
            title: Some(OWN_NAME.to_owned()),
            ..StepTranslation::default()
        };
        let request = UpdateStepRequest {
            step: Some(Step {
                guid: guid.to_owned(),
                translations: [("es".to_owned(), overlay)].into(),
                ..Step::default()
            }),
            ..UpdateStepRequest::default()
        };
        let mut steps = StepServiceClient::new(self.channel.clone());
        steps.update_step(asked(request)).await.expect("an update");
    }

    async fn spanish(&self, item: &TranslationWork) -> StepTranslation {
        let guid = item.guid.clone();
        if item.kind() == TranslationKind::Task {
            let mut tasks = TaskServiceClient::new(self.channel.clone());
            let task = tasks.get_task(asked(GetTaskRequest { guid })).await;
            let task = task.expect("a task").into_inner().task.unwrap_or_default();
            let overlay = only_spanish(task.translations);
            return StepTranslation {
                title: overlay.name,
                locked: overlay.locked,
                ..StepTranslation::default()
            };
        }
        let mut steps = StepServiceClient::new(self.channel.clone());
        let step = steps.get_step(asked(GetStepRequest { guid })).await;
        let step = step.expect("a step").into_inner().step.unwrap_or_default();
        only_spanish(step.translations)
    }
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

fn asked<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let account = "42".parse().expect("metadata");
    request.metadata_mut().insert("x-account-id", account);
    request
}
