//! A service whose imports fail at first.

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

/// A service whose first imports fail with this status.
#[derive(Clone)]
pub struct UnreliableService {
    failure: Status,
    failures: usize,
    request_ids: Arc<Mutex<Vec<String>>>,
}

impl UnreliableService {
    /// The request ids so far.
    pub fn request_ids(&self) -> Vec<String> {
        self.request_ids.lock().expect("the ids").clone()
    }

    /// The request ids since this was last called.
    pub fn take_request_ids(&self) -> Vec<String> {
        std::mem::take(&mut *self.request_ids.lock().expect("the ids"))
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

/// A service whose first imports fail with this code, and its address.
pub fn unreliable_service(code: Code, failures: usize) -> (Runtime, UnreliableService, String) {
    failing_service(Status::new(code, "not now"), failures)
}

/// The same with this status.
pub fn failing_service(failure: Status, failures: usize) -> (Runtime, UnreliableService, String) {
    let runtime = Runtime::new().expect("a runtime");
    let service = UnreliableService {
        failure,
        failures,
        request_ids: Arc::default(),
    };
    let server = served(&runtime, service.clone());
    (runtime, service, server)
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
            return Err(self.failure.clone());
        }
        Ok(Response::new(ImportTaskResponse {
            task: Some(Task::default()),
            ..ImportTaskResponse::default()
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
