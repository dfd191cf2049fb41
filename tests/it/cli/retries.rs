//! Retries of commands, and that a retry does nothing twice.

use std::sync::{Arc, Mutex};

use expertise::proto::v1::{
    CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest, DeleteTaskResponse,
    ExportTaskRequest, ExportTaskResponse, GetTaskRequest, GetTaskResponse, ImportTaskRequest,
    ImportTaskResponse, ListTasksRequest, ListTasksResponse, Task, UpdateTaskRequest,
    UpdateTaskResponse,
    task_service_server::{TaskService, TaskServiceServer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional},
    net::TcpStream,
    runtime::Runtime,
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status, transport::Server};

use crate::kit::{
    command::{Cli, command, text},
    on_both_databases,
    postgres::free_port,
};

const GUIDE: &str = "{\"task\": {\"name\": \"A\", \"product_id\": 7}}";

on_both_databases![
    a_run_repeated_with_its_request_id_imports_nothing_twice,
    a_run_with_another_request_id_imports_again,
    equal_files_become_separate_tasks,
];

fn import(cli: &Cli, args: &[&str]) -> String {
    let args = [&["import", "a.json", "--format=json"], args].concat();
    let reports = cli
        .command(&args)
        .file("a.json", GUIDE)
        .run()
        .succeeded()
        .json();
    text(&reports[0]["guid"])
}

fn a_run_repeated_with_its_request_id_imports_nothing_twice(cli: Cli) {
    let run = format!("--request-id={}", uuid::Uuid::now_v7());
    let first = import(&cli, &[&run]);
    assert_eq!(import(&cli, &[&run]), first);
}

fn a_run_with_another_request_id_imports_again(cli: Cli) {
    assert_ne!(import(&cli, &[]), import(&cli, &[]));
}

fn equal_files_become_separate_tasks(cli: Cli) {
    let run = format!("--request-id={}", uuid::Uuid::now_v7());
    let import = || {
        let args = ["import", "a.json", "b.json", "--format=json", run.as_str()];
        let output = cli
            .command(&args)
            .file("a.json", GUIDE)
            .file("b.json", GUIDE);
        let reports = output.run().succeeded().json();
        [0, 1].map(|n| text(&reports[n]["guid"]))
    };
    let first = import();
    assert_ne!(first[0], first[1]);
    assert_eq!(import(), first);
}

/// A service whose first imports fail with this code.
#[derive(Clone)]
struct UnreliableService {
    code: Code,
    failures: usize,
    request_ids: Arc<Mutex<Vec<String>>>,
}

impl UnreliableService {
    /// The request ids so far.
    fn request_ids(&self) -> Vec<String> {
        self.request_ids.lock().expect("the ids").clone()
    }
}

/// Serves it; its address.
fn served(runtime: &Runtime, service: UnreliableService) -> String {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("its address");
        let incoming = TcpListenerStream::new(listener);
        let routes = Server::builder().add_service(TaskServiceServer::new(service));
        tokio::spawn(routes.serve_with_incoming(incoming));
        format!("http://{address}")
    })
}

fn unreliable_service(code: Code, failures: usize) -> (Runtime, UnreliableService, String) {
    let runtime = Runtime::new().expect("a runtime");
    let request_ids = Arc::default();
    let service = UnreliableService {
        code,
        failures,
        request_ids,
    };
    let server = served(&runtime, service.clone());
    (runtime, service, server)
}

#[test]
fn an_unanswered_import_is_retried_with_the_same_request_id() {
    for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted] {
        let (_runtime, service, server) = unreliable_service(code, 2);
        let output = command(&["import", "a.json", "--account=demo", "--backoff=1ms"])
            .file("a.json", GUIDE)
            .env("EXPERTISE_SERVER", &server)
            .run()
            .succeeded();
        assert!(output.stdout.contains("from a.json"), "{}", output.stdout);
        // A conflict with another write is nothing that a person waits for.
        let lines = usize::from(code != Code::Aborted);
        let repeated = " and is repeated, 5 times at most\n";
        assert_eq!(output.stderr.matches(repeated).count(), lines, "{output:?}");
        let request_ids = service.request_ids();
        assert_eq!(request_ids.len(), 3);
        assert!(
            uuid::Uuid::try_parse(&request_ids[0]).is_ok(),
            "{}",
            request_ids[0]
        );
        assert!(
            request_ids.iter().all(|id| *id == request_ids[0]),
            "{request_ids:?}"
        );
    }
}

#[test]
fn an_import_that_stays_unanswered_says_how_to_repeat_it() {
    let (_runtime, service, server) = unreliable_service(Code::DeadlineExceeded, 9);
    let import = |args: &[&str]| {
        let args = [&["import", "a.json", "--account=demo", "--retries=0"], args].concat();
        let import = command(&args).file("a.json", GUIDE);
        import.env("EXPERTISE_SERVER", &server).run()
    };
    let output = import(&[]);
    assert_eq!(output.code, Some(1));
    let (_, id) = output
        .stderr
        .split_once("repeat with --request-id ")
        .expect(&output.stderr);
    let id = id.lines().next().expect("an id");
    import(&["--request-id", id]);
    let request_ids = service.request_ids();
    assert_eq!(request_ids[0], request_ids[1]);
}

/// What the relay does after it has cut the first connection.
#[derive(PartialEq, Eq)]
enum AfterCut {
    Listen,
    Close,
}

/// A relay to a server that cuts the first connection when an answer comes back.
fn cutting_relay(runtime: &Runtime, server: &str, after: AfterCut) -> String {
    let server = server.trim_start_matches("http://").to_owned();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move {
            let mut first = true;
            while let Ok((mut client, _)) = listener.accept().await {
                let server_stream = TcpStream::connect(&server).await;
                let mut server_stream = server_stream.expect("the server listens");
                if !std::mem::take(&mut first) {
                    let both =
                        async move { copy_bidirectional(&mut client, &mut server_stream).await };
                    tokio::spawn(both);
                    continue;
                }
                relay_until_answered(&mut client, &mut server_stream).await;
                if after == AfterCut::Close {
                    // It stops listening before the connection ends.
                    drop(listener);
                    return;
                }
            }
        });
        format!("http://{address}")
    })
}

/// Relays both ways until the answer to a call begins.
async fn relay_until_answered(client: &mut TcpStream, server_stream: &mut TcpStream) {
    const HEADERS: u8 = 1;
    let (mut asks, mut asked) = client.split();
    let (mut answers, mut answered) = server_stream.split();
    let asking = copy(&mut asks, &mut answered);
    let answering = async {
        loop {
            let mut head = [0; 9];
            answers.read_exact(&mut head).await.expect("a frame");
            if head[3] == HEADERS {
                return;
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut frame = vec![0; length as usize];
            answers.read_exact(&mut frame).await.expect("all of it");
            let sent = asked.write_all(&[&head[..], &frame].concat()).await;
            sent.expect("the client listens");
        }
    };
    tokio::select! {
        _ = asking => {}
        () = answering => {}
    }
}

#[test]
fn a_cut_connection_is_retried() {
    let (runtime, service, server) = unreliable_service(Code::Ok, 0);
    let import = |server: &str, args: &[&str]| {
        let args = [
            &["import", "a.json", "--account=demo", "--backoff=1ms"],
            args,
        ]
        .concat();
        let import = command(&args).file("a.json", GUIDE);
        import.env("EXPERTISE_SERVER", server).run()
    };
    import(&cutting_relay(&runtime, &server, AfterCut::Listen), &[]).succeeded();
    let request_ids = std::mem::take(&mut *service.request_ids.lock().expect("the ids"));
    assert_eq!(request_ids.len(), 2);
    assert_eq!(request_ids[0], request_ids[1]);

    let output = import(
        &cutting_relay(&runtime, &server, AfterCut::Listen),
        &["--retries=0"],
    );
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--request-id"), "{}", output.stderr);
}

#[test]
fn files_after_a_lost_server_are_not_tried() {
    let (runtime, _service, server) = unreliable_service(Code::Ok, 0);
    let args = [
        "import",
        "a.json",
        "b.json",
        "c.json",
        "--account=demo",
        "--backoff=1ms",
    ];
    let output = command(&args)
        .file("a.json", GUIDE)
        .file("b.json", GUIDE)
        .file("c.json", GUIDE)
        .env(
            "EXPERTISE_SERVER",
            &cutting_relay(&runtime, &server, AfterCut::Close),
        )
        .run();
    assert_eq!(output.code, Some(1));
    let (first, last) = output
        .stderr
        .split_once("\n2 files were not tried, as the server cannot be reached\n")
        .expect(&output.stderr);
    // It may have been done before the server went.
    assert!(
        first.contains("refuses the connection: start") && first.contains("--request-id"),
        "{first}"
    );
    assert!(
        last.starts_with("to resume, run the same command with --request-id "),
        "{last}"
    );
}

#[test]
fn a_permanent_failure_is_not_retried() {
    let (_runtime, service, server) = unreliable_service(Code::InvalidArgument, 9);
    let output = command(&["import", "a.json", "--account=demo"])
        .file("a.json", GUIDE)
        .env("EXPERTISE_SERVER", &server)
        .run();
    assert_eq!(output.code, Some(1));
    assert!(!output.stderr.contains("--request-id"), "{}", output.stderr);
    assert_eq!(service.request_ids().len(), 1);
}

#[test]
fn a_missing_server_is_reported_in_one_line_by_every_command() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let guid = uuid::Uuid::now_v7().to_string();
    for args in [
        &["import", "a.json"][..],
        &["export", guid.as_str()],
        &["show", guid.as_str()],
        &["list"],
    ] {
        let line = command(args)
            .env("EXPERTISE_SERVER", &server)
            .env("EXPERTISE_ACCOUNT", "demo")
            .run()
            .failure(1);
        assert!(
            line.contains(&format!("{server} refuses the connection: start")),
            "{line}"
        );
        assert!(line.contains("start the server with `expertise`"), "{line}");
    }
    let line = command(&[
        "list",
        "--account=demo",
        "--server=http://no-such-host.invalid",
    ]);
    let line = line.run().failure(1);
    let part = "the host name of http://no-such-host.invalid has no address: check --server";
    assert!(line.contains(part), "{line}");
}

#[tonic::async_trait]
impl TaskService for UnreliableService {
    async fn import_task(
        &self,
        request: Request<ImportTaskRequest>,
    ) -> Result<Response<ImportTaskResponse>, Status> {
        let mut request_ids = self.request_ids.lock().expect("the ids");
        request_ids.push(request.into_inner().request_id);
        if request_ids.len() <= self.failures {
            return Err(Status::new(self.code, "not now"));
        }
        let task = Some(Task::default());
        Ok(Response::new(ImportTaskResponse {
            task,
            ignored_paths: vec![],
        }))
    }

    async fn create_task(
        &self,
        _: Request<CreateTaskRequest>,
    ) -> Result<Response<CreateTaskResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_task(
        &self,
        _: Request<GetTaskRequest>,
    ) -> Result<Response<GetTaskResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_tasks(
        &self,
        _: Request<ListTasksRequest>,
    ) -> Result<Response<ListTasksResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn update_task(
        &self,
        _: Request<UpdateTaskRequest>,
    ) -> Result<Response<UpdateTaskResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_task(
        &self,
        _: Request<DeleteTaskRequest>,
    ) -> Result<Response<DeleteTaskResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn export_task(
        &self,
        _: Request<ExportTaskRequest>,
    ) -> Result<Response<ExportTaskResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}
