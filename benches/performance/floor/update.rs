//! UpdateStep of the title.

use expertise::proto::v1::{UpdateStepRequest, UpdateStepResponse};

use super::{
    Floor,
    row::StepRow,
    schema::with_pool,
    sql,
    values::{ACCOUNT, etag, now, parse},
};

impl Floor {
    pub(super) async fn update(&self, request: UpdateStepRequest) -> UpdateStepResponse {
        let step = request.step.expect("a step");
        let guid = parse(&step.guid);
        let StepRow(step) = with_pool!(&self.database, writer, |pool| sqlx::query_as(
            sql::UPDATE_STEP
        )
        .bind(ACCOUNT)
        .bind(guid)
        .bind(&step.title)
        .bind(etag())
        .bind(now())
        .fetch_one(pool));
        UpdateStepResponse {
            step: Some(step),
            ignored_paths: Vec::new(),
        }
    }
}
