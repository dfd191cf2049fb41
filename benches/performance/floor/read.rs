//! The services of the floor (a minimal server, see `floor.rs`), except AnalysisService. Rpcs that
//! read are implemented here; each that writes is in a module of its own.

use expertise::proto::v1::{
    step_service_server::StepService, task_service_server::TaskService,
    translation_service_server::TranslationService, *,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{
    Floor,
    row::{StepRow, TaskRow},
    schema::{Database, with_pool},
    sql,
    values::{ACCOUNT, parse_id, unimplemented},
};

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl StepService for Floor {
    async fn create_step(
        &self,
        request: Request<CreateStepRequest>,
    ) -> RpcResult<CreateStepResponse> {
        Ok(Response::new(self.create(request.into_inner()).await))
    }

    async fn get_step(&self, request: Request<GetStepRequest>) -> RpcResult<GetStepResponse> {
        let step = self.read_step(parse_id(&request.get_ref().guid)).await;
        Ok(Response::new(GetStepResponse { step: Some(step) }))
    }

    async fn list_steps(&self, request: Request<ListStepsRequest>) -> RpcResult<ListStepsResponse> {
        let ListStepsRequest {
            task,
            expand,
            page_size,
            ..
        } = request.into_inner();
        let task = parse_id(&task);
        let sql = match expand.is_empty() {
            true => sql::LIST_STEPS,
            false => sql::LIST_STEPS_WITH_BODIES,
        };
        let rows: Vec<StepRow> = with_pool!(&self.database, reader, |pool| sqlx::query_as(sql)
            .bind(ACCOUNT)
            .bind(task)
            .bind(i64::from(page_size) + 1)
            .fetch_all(pool));
        let page = usize::try_from(page_size).expect("a page");
        let more = rows.len() > page;
        let steps = rows.into_iter().take(page).map(|StepRow(step)| step);
        Ok(Response::new(ListStepsResponse {
            steps: steps.collect(),
            // It has the length of a token of the service.
            next_page_token: if more { "t".repeat(88) } else { String::new() },
        }))
    }

    async fn update_step(
        &self,
        request: Request<UpdateStepRequest>,
    ) -> RpcResult<UpdateStepResponse> {
        Ok(Response::new(self.update(request.into_inner()).await))
    }

    async fn delete_step(
        &self,
        request: Request<DeleteStepRequest>,
    ) -> RpcResult<DeleteStepResponse> {
        Ok(Response::new(self.delete(request.into_inner()).await))
    }

    async fn list_deleted_steps(
        &self,
        _: Request<ListDeletedStepsRequest>,
    ) -> RpcResult<ListDeletedStepsResponse> {
        unimplemented()
    }

    async fn restore_step(&self, _: Request<RestoreStepRequest>) -> RpcResult<RestoreStepResponse> {
        unimplemented()
    }
}

#[tonic::async_trait]
impl TaskService for Floor {
    async fn create_task(&self, _: Request<CreateTaskRequest>) -> RpcResult<CreateTaskResponse> {
        unimplemented()
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> RpcResult<GetTaskResponse> {
        let task = self.task(parse_id(&request.get_ref().guid)).await;
        Ok(Response::new(GetTaskResponse { task: Some(task) }))
    }

    async fn list_tasks(&self, _: Request<ListTasksRequest>) -> RpcResult<ListTasksResponse> {
        unimplemented()
    }

    async fn update_task(&self, _: Request<UpdateTaskRequest>) -> RpcResult<UpdateTaskResponse> {
        unimplemented()
    }

    async fn delete_task(&self, _: Request<DeleteTaskRequest>) -> RpcResult<DeleteTaskResponse> {
        unimplemented()
    }

    async fn import_task(
        &self,
        request: Request<ImportTaskRequest>,
    ) -> RpcResult<ImportTaskResponse> {
        let request = request.into_inner();
        Ok(Response::new(match request.absent_steps() {
            AbsentSteps::Unspecified => self.import(request).await,
            // Of the measured requests, only those that import a task again set it.
            AbsentSteps::Keep | AbsentSteps::Delete => self.reimport(request).await,
        }))
    }

    async fn export_task(
        &self,
        request: Request<ExportTaskRequest>,
    ) -> RpcResult<ExportTaskResponse> {
        let guid = parse_id(&request.get_ref().guid);
        let task = self.task(guid).await;
        let steps = self.steps(guid).await;
        Ok(Response::new(ExportTaskResponse {
            document: Some(TaskDocument {
                task: Some(task),
                steps,
            }),
            guide_etag: String::new(),
        }))
    }
}

impl Floor {
    pub(super) async fn task(&self, guid: Uuid) -> Task {
        let sql = match self.database {
            Database::Sqlite { .. } => sql::GET_TASK_SQLITE,
            Database::Postgres(_) => sql::GET_TASK_POSTGRES,
        };
        let TaskRow(task) = with_pool!(&self.database, reader, |pool| sqlx::query_as(sql)
            .bind(ACCOUNT)
            .bind(guid)
            .fetch_one(pool));
        task
    }

    /// The steps of a task, with their bodies.
    pub(super) async fn steps(&self, task: Uuid) -> Vec<Step> {
        let rows: Vec<StepRow> = with_pool!(&self.database, reader, |pool| sqlx::query_as(
            sql::READ_STEPS
        )
        .bind(ACCOUNT)
        .bind(task)
        .fetch_all(pool));
        rows.into_iter().map(|StepRow(step)| step).collect()
    }
}

#[tonic::async_trait]
impl TranslationService for Floor {
    async fn list_translation_work(
        &self,
        _: Request<ListTranslationWorkRequest>,
    ) -> RpcResult<ListTranslationWorkResponse> {
        unimplemented()
    }

    async fn write_translations(
        &self,
        request: Request<WriteTranslationsRequest>,
    ) -> RpcResult<WriteTranslationsResponse> {
        Ok(Response::new(self.translate(request.into_inner()).await))
    }
}
