//! UpdateStep of the title. A mask needs the stored step, so the step is read, and then written
//! if it still has the etag that was read.

use expertise::proto::v1::{Step, UpdateStepRequest, UpdateStepResponse};
use uuid::Uuid;

use super::{
    Floor,
    row::StepRow,
    schema::with_pool,
    sql,
    values::{ACCOUNT, etag, now, parse_id, timestamp},
};

impl Floor {
    pub(super) async fn update(&self, request: UpdateStepRequest) -> UpdateStepResponse {
        let sent = request.step.expect("a step");
        let guid = parse_id(&sent.guid);
        let stored = self.read_step(guid).await;
        let (new_etag, now) = (etag(), now());
        let updated = with_pool!(&self.database, writer, |pool| async {
            sqlx::query(sql::UPDATE_STEP)
                .bind(ACCOUNT)
                .bind(guid)
                .bind(&sent.title)
                .bind(&new_etag)
                .bind(now)
                .bind(&stored.etag)
                .execute(pool)
                .await
                .map(|done| done.rows_affected())
        });
        assert_eq!(updated, 1, "each connection has its own steps");
        UpdateStepResponse {
            step: Some(Step {
                title: sent.title,
                etag: new_etag,
                modified_ts: Some(timestamp(now)),
                ..stored
            }),
            ignored_paths: Vec::new(),
        }
    }

    pub(super) async fn read_step(&self, guid: Uuid) -> Step {
        let StepRow(step) = with_pool!(&self.database, reader, |pool| {
            sqlx::query_as(sql::GET_STEP)
                .bind(ACCOUNT)
                .bind(guid)
                .fetch_one(pool)
        });
        step
    }
}
