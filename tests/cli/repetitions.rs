//! What is repeated, and that a repetition does nothing twice.

use std::sync::{Arc, Mutex};

use expertise::proto::v1::{
    CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest, DeleteTaskResponse,
    ExportTaskRequest, ExportTaskResponse, GetTaskRequest, GetTaskResponse, ImportTaskRequest,
    ImportTaskResponse, ListTasksRequest, ListTasksResponse, Task, UpdateTaskRequest,
    UpdateTaskResponse,
    task_service_server::{TaskService, TaskServiceServer},
};
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status, transport::Server};

use crate::harness::{World, cluster::free_port, expertise, on_both_databases, text};

const GUIDE: &str = "{\"task\": {\"name\": \"A\", \"product_id\": 7}}";

on_both_databases![
    a_run_that_is_repeated_under_its_name_imports_nothing_twice,
    a_run_of_another_name_imports_again,
];

fn import(world: &World, args: &[&str]) -> String {
    let args = [&["import", "a.json", "--output=json"], args].concat();
    let reports = world
        .expertise(&args)
        .file("a.json", GUIDE)
        .run()
        .succeeded()
        .json();
    text(&reports[0]["guid"])
}

fn a_run_that_is_repeated_under_its_name_imports_nothing_twice(world: World) {
    let run = format!("--request-id={}", uuid::Uuid::now_v7());
    let first = import(&world, &[&run]);
    assert_eq!(import(&world, &[&run]), first);
}

fn a_run_of_another_name_imports_again(world: World) {
    assert_ne!(import(&world, &[]), import(&world, &[]));
}

/// A service that takes imports, but answers the first ones with this code.
#[derive(Clone)]
struct Flaky {
    code: Code,
    failures: usize,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Serves it; its address.
fn served(runtime: &Runtime, service: Flaky) -> String {
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

fn flaky(code: Code, failures: usize) -> (Runtime, Flaky, String) {
    let runtime = Runtime::new().expect("a runtime");
    let seen = Arc::default();
    let service = Flaky {
        code,
        failures,
        seen,
    };
    let server = served(&runtime, service.clone());
    (runtime, service, server)
}

#[test]
fn what_may_have_been_done_is_repeated_under_the_same_name() {
    for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted] {
        let (_runtime, service, server) = flaky(code, 2);
        let said = expertise(&["import", "a.json", "--account=demo", "--backoff=1ms"])
            .file("a.json", GUIDE)
            .env("EXPERTISE_SERVER", &server)
            .run()
            .succeeded();
        assert!(said.stdout.contains("from a.json"), "{}", said.stdout);
        let seen = service.seen.lock().expect("what was seen");
        assert_eq!(seen.len(), 3);
        assert!(uuid::Uuid::try_parse(&seen[0]).is_ok(), "{}", seen[0]);
        assert!(seen.iter().all(|id| *id == seen[0]), "{seen:?}");
    }
}

#[test]
fn an_import_that_may_have_been_done_in_the_end_says_how_to_repeat_it() {
    let (_runtime, service, server) = flaky(Code::DeadlineExceeded, 9);
    let import = |args: &[&str]| {
        let args = [&["import", "a.json", "--account=demo", "--retries=0"], args].concat();
        let import = expertise(&args).file("a.json", GUIDE);
        import.env("EXPERTISE_SERVER", &server).run()
    };
    let said = import(&[]);
    assert_eq!(said.code, Some(1));
    let (_, id) = said
        .stderr
        .split_once("repeat with --request-id ")
        .expect(&said.stderr);
    import(&["--request-id", id.trim()]);
    let seen = service.seen.lock().expect("what was seen");
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn what_will_not_pass_is_not_repeated() {
    let (_runtime, service, server) = flaky(Code::InvalidArgument, 9);
    let said = expertise(&["import", "a.json", "--account=demo"])
        .file("a.json", GUIDE)
        .env("EXPERTISE_SERVER", &server)
        .run();
    assert_eq!(said.code, Some(1));
    assert!(!said.stderr.contains("--request-id"), "{}", said.stderr);
    assert_eq!(service.seen.lock().expect("what was seen").len(), 1);
}

#[test]
fn a_server_that_is_not_there_is_one_line_for_every_command() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let guid = uuid::Uuid::now_v7().to_string();
    for command in [
        &["import", "a.json"][..],
        &["export", guid.as_str()],
        &["show", guid.as_str()],
        &["list"],
    ] {
        let line = expertise(command)
            .env("EXPERTISE_SERVER", &server)
            .env("EXPERTISE_ACCOUNT", "demo")
            .run()
            .failure(1);
        assert!(
            line.contains(&format!("nothing listens at {server}")),
            "{line}"
        );
        assert!(line.contains("start the server with `expertise`"), "{line}");
    }
    let line = expertise(&[
        "list",
        "--account=demo",
        "--server=http://no-such-host.invalid",
    ]);
    let line = line.run().failure(1);
    assert!(
        line.contains("cannot be found: its name has no address"),
        "{line}"
    );
}

#[tonic::async_trait]
impl TaskService for Flaky {
    async fn import_task(
        &self,
        request: Request<ImportTaskRequest>,
    ) -> Result<Response<ImportTaskResponse>, Status> {
        let mut seen = self.seen.lock().expect("what was seen");
        seen.push(request.into_inner().request_id);
        if seen.len() <= self.failures {
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
