//! UpdateStep of the title.

use expertise::proto::v1::{UpdateStepRequest, UpdateStepResponse};

use super::{
    Floor,
    answer::{ACCOUNT, etag, now, parse},
    row::StepRow,
    schema::on,
    sql,
};

impl Floor {
    pub(super) async fn update(&self, request: UpdateStepRequest) -> UpdateStepResponse {
        let step = request.step.expect("a step");
        let guid = parse(&step.guid);
        let StepRow(step) = on!(&self.database, writer, |pool| sqlx::query_as(
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
