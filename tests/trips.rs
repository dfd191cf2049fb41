//! How often a call waits for PostgreSQL, which is what it costs there: a read once,
//! a write three times at most, BEGIN and COMMIT counted. What must lock several
//! resources before it knows what to write takes more, and is named here too.
//!
//! A trip ends where the driver asks PostgreSQL to be told that it is ready again, after
//! it has said something else: the driver's pool asks once more when a connection is
//! given back, for which no call waits. Between the two stands a relay that counts.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "kit/mod.rs"]
mod kit;
use kit::postgres as cluster;
// Not all of it is needed here.
#[allow(dead_code)]
#[path = "behaviour/harness/sample.rs"]
mod sample;

use std::{
    collections::BTreeSet,
    env,
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use expertise::{
    auth::{Caller, Scope},
    config::DatabaseUrl,
    domain::ids::AccountId,
    grpc::{self, Limits},
    proto::v1::{
        role_service_client::RoleServiceClient, step_service_client::StepServiceClient,
        task_service_client::TaskServiceClient,
        translation_service_client::TranslationServiceClient, *,
    },
    store::{Options, Store},
};
use prost_types::FieldMask;
use sqlx::{Connection, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request,
    service::InterceptorLayer,
    transport::{Channel, Endpoint, Server},
};

/// Largest message, in bytes.
const MESSAGE_LIMIT: usize = 64 << 20;
/// How often a call is tried: a connection that has rested is asked whether it is
/// still there, which on a busy machine happens between any two calls.
const TRIES: usize = 5;
/// How long a statement may take to be seen waiting.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_one_trip_and_a_write_three_at_most() {
    let Some(url) = database_url() else {
        let required = env::var("EXPERTISE_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
        assert!(!required, "EXPERTISE_REQUIRE_POSTGRES=1, but there is none");
        return;
    };
    let service = Service::behind_a_relay(&url).await;
    let mut table = Table::default();
    reads(&service, &mut table).await;
    writes(&service, &mut table).await;
    translations(&service, &mut table).await;
    several(&service, &mut table).await;
    println!("{}", table.lines.join("\n"));
    assert!(table.over.is_empty(), "{:#?}", table.over);
    table.is_of_every_rpc();
}

/// The database of this run.
fn database_url() -> Option<String> {
    static URL: OnceLock<Option<String>> = OnceLock::new();
    URL.get_or_init(cluster::database_url).clone()
}

/// The price of doing without a lock: what a script relies on may change while it waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_changed_while_its_deletion_waited_is_not_deleted() {
    let Some(url) = database_url() else {
        return;
    };
    let service = Service::behind_a_relay(&url).await;
    let other = Service::behind_a_relay(&url).await;
    let task = service.task("Contended").await;
    let step = service.step(note(&task), "").await;

    let mut holder = PgConnection::connect(&url).await.expect("PostgreSQL");
    let held = sqlx::query("SELECT 1 FROM tasks WHERE guid = $1 FOR UPDATE");
    let guid = uuid::Uuid::parse_str(&task.guid).expect("an id");
    let mut lock = holder.begin().await.expect("a transaction");
    held.bind(guid).execute(&mut *lock).await.expect("the lock");
    let deletion = DeleteStepRequest {
        guid: step.guid.clone(),
        etag: step.etag.clone(),
    };
    let mut steps = service.steps.clone();
    let deleting = tokio::spawn(async move { steps.delete_step(deletion).await });
    until_the_deletion_waits(&url).await;
    let update = UpdateStepRequest {
        step: Some(Step {
            title: "Changed".to_owned(),
            ..sample::step_of(&step.guid)
        }),
        update_mask: mask("title"),
        ..UpdateStepRequest::default()
    };
    let updated = other.steps.clone().update_step(update).await;
    updated.expect("an update needs no lock of the task");
    lock.commit().await.expect("the end of the lock");

    let refused = deleting.await.expect("an answer").expect_err("it changed");
    assert_eq!(refused.code(), tonic::Code::Aborted, "{refused:?}");
    assert_eq!(service.read(&task.guid).await.steps, [step.guid]);
    let task = DeleteTaskRequest {
        guid: task.guid,
        ..DeleteTaskRequest::default()
    };
    let refused = service.tasks.clone().delete_task(task).await;
    let refused = refused.expect_err("its steps are still counted");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
}

/// Waits until a deletion waits for a lock. Asked over a connection without a
/// transaction, for in one PostgreSQL repeats its first answer.
async fn until_the_deletion_waits(url: &str) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
         AND datname = current_database() AND query LIKE 'WITH changed%'";
    let mut watcher = PgConnection::connect(url).await.expect("PostgreSQL");
    let seen = async {
        while sqlx::query_scalar::<_, i64>(waiting)
            .fetch_one(&mut watcher)
            .await
            .expect("an answer")
            == 0
        {}
    };
    tokio::time::timeout(PATIENCE, seen)
        .await
        .expect("the deletion waits for the lock");
}

/// The services on a store whose one connection leads through a relay.
struct Service {
    tasks: TaskServiceClient<Channel>,
    steps: StepServiceClient<Channel>,
    roles: RoleServiceClient<Channel>,
    translations: TranslationServiceClient<Channel>,
    trips: Arc<AtomicU64>,
}

/// What calls took.
#[derive(Default)]
struct Table {
    lines: Vec<String>,
    over: Vec<String>,
    rpcs: BTreeSet<&'static str>,
}

impl Table {
    fn add(&mut self, rpc: &'static str, case: &str, most: u64, took: u64) {
        self.rpcs.insert(rpc);
        let line = format!("{rpc}, {case}: {took} trips, {most} at most");
        if took > most || took == 0 {
            self.over.push(line.clone());
        }
        self.lines.push(line);
    }

    fn is_of_every_rpc(&self) {
        let pool = prost_reflect::DescriptorPool::decode(expertise::proto::FILE_DESCRIPTOR_SET);
        let pool = pool.expect("the contract");
        let contract = pool.services();
        let contract =
            contract.filter(|service| service.parent_file().package_name() == "expertise.v1");
        for method in contract.flat_map(|service| service.methods().collect::<Vec<_>>()) {
            assert!(
                self.rpcs.contains(method.name()),
                "{} is not counted",
                method.name()
            );
        }
    }
}

/// Counts what a call takes, several times, each time with what `$before` makes; the
/// least stands for it.
macro_rules! count {
    ($table:expr, $service:expr, $rpc:literal, $case:literal, $most:expr,
     |$made:ident| $before:expr, $call:expr) => {{
        let mut least = u64::MAX;
        for _ in 0..TRIES {
            let $made = $before;
            let before = $service.trips.load(Ordering::SeqCst);
            $call.await.expect($case);
            let took = $service.trips.load(Ordering::SeqCst) - before;
            least = least.min(took);
        }
        $table.add($rpc, $case, $most, least);
    }};
}

async fn reads(service: &Service, table: &mut Table) {
    let Service { tasks, steps, .. } = service;
    let task = service.task("Read").await;
    let mut last = service.step(note(&task), "").await;
    for _ in 0..3 {
        last = service.step(note(&task), &last.guid).await;
    }
    let guid = || task.guid.clone();
    let mut roles = service.roles.clone();
    let (mut tasks, mut steps) = (tasks.clone(), steps.clone());
    count!(
        table,
        service,
        "GetTask",
        "a task",
        1,
        |_made| (),
        tasks.get_task(GetTaskRequest { guid: guid() })
    );
    count!(
        table,
        service,
        "ListTasks",
        "a page",
        1,
        |_made| (),
        tasks.list_tasks(ListTasksRequest::default())
    );
    count!(
        table,
        service,
        "GetStep",
        "a step",
        1,
        |_made| (),
        steps.get_step(GetStepRequest {
            guid: last.guid.clone(),
        })
    );
    for expand in [vec![], vec!["body".to_owned()]] {
        let request = ListStepsRequest {
            task: guid(),
            expand,
            page_size: 2,
            ..ListStepsRequest::default()
        };
        count!(
            table,
            service,
            "ListSteps",
            "a page",
            1,
            |_made| (),
            steps.list_steps(request.clone())
        );
    }
    count!(
        table,
        service,
        "ListRoles",
        "a page",
        1,
        |_made| (),
        roles.list_roles(ListRolesRequest::default())
    );
}

async fn writes(service: &Service, table: &mut Table) {
    let mut tasks = service.tasks.clone();
    let mut steps = service.steps.clone();
    let mut roles = service.roles.clone();
    let translated = Task {
        translations: [(
            "de".to_owned(),
            TaskTranslation {
                name: Some("Lesen".to_owned()),
                ..TaskTranslation::default()
            },
        )]
        .into(),
        ..sample::task("Write")
    };
    for task in [sample::task("Write"), translated] {
        for request_id in [false, true] {
            count!(
                table,
                service,
                "CreateTask",
                "new",
                3,
                |request| CreateTaskRequest {
                    task: Some(task.clone()),
                    request_id: id(request_id),
                    ..CreateTaskRequest::default()
                },
                tasks.create_task(request)
            );
        }
    }
    let task = service.task("Write").await;
    let mut last = service.step(note(&task), "").await;
    let mut translated = Step {
        body: Some("text".to_owned()),
        ..note(&task)
    };
    translated.translations.insert(
        "de".to_owned(),
        StepTranslation {
            title: Some("Schritt".to_owned()),
            ..StepTranslation::default()
        },
    );
    for step in [note(&task), translated.clone()] {
        for request_id in [false, true] {
            for prevstep in [String::new(), last.guid.clone()] {
                count!(
                    table,
                    service,
                    "CreateStep",
                    "new",
                    3,
                    |request| CreateStepRequest {
                        step: Some(step.clone()),
                        prevstep: prevstep.clone(),
                        request_id: id(request_id),
                        ..CreateStepRequest::default()
                    },
                    steps.create_step(request)
                );
            }
        }
    }
    last = service.step(translated, &last.guid).await;
    count!(
        table,
        service,
        "UpdateStep",
        "of a title",
        3,
        |request| UpdateStepRequest {
            step: Some(Step {
                title: id(true),
                ..sample::step_of(&last.guid)
            }),
            update_mask: mask("title"),
            ..UpdateStepRequest::default()
        },
        steps.update_step(request)
    );
    count!(
        table,
        service,
        "UpdateStep",
        "of a body",
        3,
        |request| UpdateStepRequest {
            step: Some(Step {
                body: Some(id(true)),
                ..sample::step_of(&last.guid)
            }),
            update_mask: mask("body"),
            ..UpdateStepRequest::default()
        },
        steps.update_step(request)
    );
    count!(
        table,
        service,
        "UpdateTask",
        "of its publication",
        3,
        |request| {
            let read = service.read(&task.guid).await;
            let request = UpdateTaskRequest {
                task: Some(Task {
                    published: Some(1 - read.published.unwrap_or_default()),
                    ..sample::task_of(&task.guid)
                }),
                update_mask: mask("published"),
                ..UpdateTaskRequest::default()
            };
            // The read has stood between two writes, as it does in life.
            request
        },
        tasks.update_task(request)
    );
    count!(
        table,
        service,
        "CreateRole",
        "new",
        3,
        |_made| (),
        roles.create_role(CreateRoleRequest {
            role: Some(Role {
                name: "Technician".to_owned(),
                ..Role::default()
            }),
        })
    );
    count!(
        table,
        service,
        "DeleteRole",
        "that is there",
        3,
        |role| {
            let role = roles.create_role(CreateRoleRequest {
                role: Some(Role {
                    name: "Technician".to_owned(),
                    ..Role::default()
                }),
            });
            role.await
                .expect("a role")
                .into_inner()
                .role
                .expect("it")
                .id
        },
        roles.delete_role(DeleteRoleRequest { id: role })
    );
    count!(
        table,
        service,
        "DeleteStep",
        "of no links",
        3,
        |made| { service.step(note(&task), "").await.guid },
        steps.delete_step(DeleteStepRequest {
            guid: made,
            ..DeleteStepRequest::default()
        })
    );
}

async fn translations(service: &Service, table: &mut Table) {
    let mut work = service.translations.clone();
    let task = service.task("Translate").await;
    let step = service.step(note(&task), "").await;
    let list = |task: &str| ListTranslationWorkRequest {
        languages: vec!["fr".to_owned()],
        task: Some(task.to_owned()),
        ..ListTranslationWorkRequest::default()
    };
    // Of tasks and of steps: which there are, and the texts of those that are shown.
    count!(
        table,
        service,
        "ListTranslationWork",
        "of a task",
        5,
        |_made| (),
        work.list_translation_work(list(&task.guid))
    );
    let digest = work
        .list_translation_work(list(&task.guid))
        .await
        .expect("work");
    let items = digest.into_inner().work;
    let digest = items
        .iter()
        .find(|item| item.guid == step.guid)
        .expect("of the step");
    let digest = digest.source_digest.clone();
    count!(
        table,
        service,
        "WriteTranslations",
        "of a step",
        9,
        |title| id(true),
        work.write_translations(WriteTranslationsRequest {
            translations: vec![AutomaticTranslation {
                guid: step.guid.clone(),
                language: "fr".to_owned(),
                title: Some(title),
                source_digest: digest.clone(),
                ..AutomaticTranslation::default()
            }],
        })
    );
}

/// Writes that touch more than one resource: what they lock is known only once it has
/// been looked up, and others must not change it meanwhile.
async fn several(service: &Service, table: &mut Table) {
    let mut tasks = service.tasks.clone();
    let mut steps = service.steps.clone();
    let task = service.task("Several").await;
    let other = service.task("Other").await;
    let subtask = || sample::subtask(&task, &other);
    count!(
        table,
        service,
        "CreateStep",
        "that refers to a task",
        6,
        |request| CreateStepRequest {
            step: Some(subtask()),
            ..CreateStepRequest::default()
        },
        steps.create_step(request)
    );
    count!(
        table,
        service,
        "UpdateTask",
        "of a name",
        8,
        |request| UpdateTaskRequest {
            task: Some(Task {
                name: id(true),
                ..sample::task_of(&other.guid)
            }),
            update_mask: mask("name"),
            ..UpdateTaskRequest::default()
        },
        tasks.update_task(request)
    );
    count!(
        table,
        service,
        "DeleteTask",
        "with its steps",
        9,
        |made| {
            let task = service.task("Gone").await;
            service.step(note(&task), "").await;
            task.guid
        },
        tasks.delete_task(DeleteTaskRequest {
            guid: made,
            force: true,
            ..DeleteTaskRequest::default()
        })
    );
    let document = || TaskDocument {
        task: Some(sample::task("Imported")),
        steps: vec![
            Step {
                task: String::new(),
                body: Some("text".to_owned()),
                ..note(&task)
            };
            3
        ],
    };
    count!(
        table,
        service,
        "ImportTask",
        "new",
        5,
        |request| ImportTaskRequest {
            document: Some(document()),
            ..ImportTaskRequest::default()
        },
        tasks.import_task(request)
    );
    // It reads one state with several statements.
    count!(
        table,
        service,
        "ExportTask",
        "a task",
        6,
        |_made| (),
        tasks.export_task(ExportTaskRequest {
            guid: task.guid.clone(),
        })
    );
}

/// A new id, or none.
fn id(wanted: bool) -> String {
    if wanted {
        uuid::Uuid::now_v7().to_string()
    } else {
        String::new()
    }
}

fn mask(path: &str) -> Option<FieldMask> {
    Some(FieldMask {
        paths: vec![path.to_owned()],
    })
}

fn note(task: &Task) -> Step {
    sample::note(task, "Step")
}

impl Service {
    async fn behind_a_relay(url: &str) -> Self {
        let trips = Arc::new(AtomicU64::new(0));
        let url = relay(url, Arc::clone(&trips)).await;
        let store = Store::open(Options {
            database: DatabaseUrl::parse(&url).expect("the URL of a database"),
            replica: None,
            migrate: true,
            max_connections: 1,
            max_message_bytes: MESSAGE_LIMIT,
        });
        let store = store.await.expect("a database");
        let address = serve(store).await;
        let channel = Endpoint::from_shared(format!("http://{address}"))
            .expect("an address")
            .connect_lazy();
        Self {
            tasks: TaskServiceClient::new(channel.clone()),
            steps: StepServiceClient::new(channel.clone()),
            roles: RoleServiceClient::new(channel.clone()),
            translations: TranslationServiceClient::new(channel),
            trips,
        }
    }

    async fn task(&self, name: &str) -> Task {
        let task = Some(sample::task(name));
        let request = CreateTaskRequest {
            task,
            ..CreateTaskRequest::default()
        };
        let response = self.tasks.clone().create_task(request).await;
        response.expect("a task").into_inner().task.expect("it")
    }

    async fn read(&self, guid: &str) -> Task {
        let request = GetTaskRequest {
            guid: guid.to_owned(),
        };
        let response = self.tasks.clone().get_task(request).await;
        response.expect("a task").into_inner().task.expect("it")
    }

    async fn step(&self, step: Step, prevstep: &str) -> Step {
        let request = CreateStepRequest {
            step: Some(step),
            prevstep: prevstep.to_owned(),
            ..CreateStepRequest::default()
        };
        let response = self.steps.clone().create_step(request).await;
        response.expect("a step").into_inner().step.expect("it")
    }
}

/// The services on the store, called as an account; where they listen.
async fn serve(store: Store) -> SocketAddr {
    let limits = Limits {
        max_message_bytes: MESSAGE_LIMIT,
    };
    let caller = Caller {
        account: AccountId::parse("trips").expect("an account"),
        subject: String::new(),
        scopes: Scope::ALL.to_vec(),
    };
    let authenticated = InterceptorLayer::new(move |mut request: Request<()>| {
        request.extensions_mut().insert(caller.clone());
        Ok(request)
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = Server::builder()
        .layer(authenticated)
        .add_routes(grpc::routes(store, limits))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serving);
    address
}

/// The URL of the same database by way of a relay that counts trips.
async fn relay(url: &str, trips: Arc<AtomicU64>) -> String {
    let (before, rest) = url.rsplit_once('@').expect("user@host");
    let (host, database) = rest.split_once('/').expect("host/database");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let host = host.to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&host).await.expect("PostgreSQL");
            client.set_nodelay(true).expect("a socket");
            server.set_nodelay(true).expect("a socket");
            let (asks, mut answers) = client.into_split();
            let (mut from, to) = server.into_split();
            tokio::spawn(count(asks, to, Arc::clone(&trips)));
            tokio::spawn(async move { tokio::io::copy(&mut from, &mut answers).await });
        }
    });
    // What is encrypted cannot be counted.
    let and = if database.contains('?') { '&' } else { '?' };
    format!("{before}@{address}/{database}{and}sslmode=disable")
}

/// Carries what the driver says, message by message: a letter, and the length of the
/// rest with itself. The very first has no letter.
async fn count(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    trips: Arc<AtomicU64>,
) -> std::io::Result<()> {
    const QUERY: u8 = b'Q';
    const SYNC: u8 = b'S';
    let greeting = from.read_u32().await?;
    let mut message = greeting.to_be_bytes().to_vec();
    message.resize(greeting as usize, 0);
    from.read_exact(&mut message[4..]).await?;
    to.write_all(&message).await?;
    let mut said = false;
    loop {
        let letter = from.read_u8().await?;
        let length = from.read_u32().await?;
        let mut message = [&[letter][..], &length.to_be_bytes()].concat();
        message.resize(1 + length as usize, 0);
        from.read_exact(&mut message[5..]).await?;
        match letter {
            SYNC if !said => {}
            QUERY | SYNC => {
                said = false;
                trips.fetch_add(1, Ordering::SeqCst);
            }
            _ => said = true,
        }
        to.write_all(&message).await?;
    }
}
