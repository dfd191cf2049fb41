//! What ValidateTask and PreviewTask read: a task and its steps without bodies, with their
//! conditions and answers. Nothing is analysed.

use expertise::proto::v1::{
    analysis_service_server::AnalysisService, preview_task_request, validate_task_request, *,
};
use tonic::{Request, Response, Status};

use super::{
    Floor,
    row::{GuideStepRow, StepRow},
    schema::with_pool,
    sql,
    values::{ACCOUNT, parse_id, unimplemented},
};

/// More than the steps of the guide.
const MAX_STEPS: i64 = 1_000;

impl Floor {
    async fn guide(&self, guid: &str) -> (Task, Vec<GuideStepRow>) {
        let guid = parse_id(guid);
        let task = self.task(guid).await;
        let steps = with_pool!(&self.database, reader, |pool| sqlx::query_as(
            sql::LIST_STEPS
        )
        .bind(ACCOUNT)
        .bind(guid)
        .bind(MAX_STEPS)
        .fetch_all(pool));
        (task, steps)
    }
}

#[tonic::async_trait]
impl AnalysisService for Floor {
    async fn preview_task(
        &self,
        request: Request<PreviewTaskRequest>,
    ) -> Result<Response<PreviewTaskResponse>, Status> {
        let Some(preview_task_request::Source::Guid(guid)) = request.into_inner().source else {
            return unimplemented();
        };
        let (task, steps) = self.guide(&guid).await;
        let text = |text| PreviewText {
            text,
            ..PreviewText::default()
        };
        let steps = steps.into_iter().map(|row| {
            let StepRow(step) = row.step;
            PreviewedStep {
                guid: step.guid,
                task: step.task,
                r#type: step.r#type,
                cost: step.cost.unwrap_or_default(),
                etag: step.etag,
                title: Some(text(step.title)),
                ..PreviewedStep::default()
            }
        });
        Ok(Response::new(PreviewTaskResponse {
            task: Some(PreviewedTask {
                guid: task.guid,
                name: Some(text(task.name)),
                ..PreviewedTask::default()
            }),
            steps: steps.collect(),
            ..PreviewTaskResponse::default()
        }))
    }

    async fn validate_task(
        &self,
        request: Request<ValidateTaskRequest>,
    ) -> Result<Response<ValidateTaskResponse>, Status> {
        let Some(validate_task_request::Source::Guid(guid)) = request.into_inner().source else {
            return unimplemented();
        };
        let (_, steps) = self.guide(&guid).await;
        // What the service would analyse must have been read.
        let conditions = steps.iter().filter(|row| row.dependencies.is_some());
        let answers = steps.iter().filter(|row| row.feedback_config.is_some());
        assert!(
            conditions.count() > 0 && answers.count() > 0,
            "no guide with conditions"
        );
        Ok(Response::new(ValidateTaskResponse::default()))
    }

    async fn list_findings(
        &self,
        _: Request<ListFindingsRequest>,
    ) -> Result<Response<ListFindingsResponse>, Status> {
        unimplemented()
    }

    async fn list_rules(
        &self,
        _: Request<ListRulesRequest>,
    ) -> Result<Response<ListRulesResponse>, Status> {
        unimplemented()
    }

    async fn list_references(
        &self,
        _: Request<ListReferencesRequest>,
    ) -> Result<Response<ListReferencesResponse>, Status> {
        unimplemented()
    }
}
