//! UpdateStep of the title. A mask needs the stored step, so the step is read, and then written
//! if it still has the etag that was read.

use expertise::proto::v1::{Step, UpdateStepRequest, UpdateStepResponse};
use uuid::Uuid;

use super::{
    Floor,
    row::StepRow,
    schema::{Database, with_pool},
    sql,
    values::{ACCOUNT, etag, now, parse_id, timestamp},
};

impl Floor {
    pub(super) async fn update(&self, request: UpdateStepRequest) -> UpdateStepResponse {
        let sent = request.step.expect("a step");
        let guid = parse_id(&sent.guid);
        let stored = self.read_step(guid).await;
        UpdateStepResponse {
            step: Some(self.write_title(stored, sent.title).await),
            ignored_paths: Vec::new(),
        }
    }

    /// Writes the title of a step that still has the etag which was read.
    pub(super) async fn write_title(&self, stored: Step, title: String) -> Step {
        let (new_etag, now) = (etag(), now());
        let sql = match self.database {
            Database::Sqlite { .. } => sql::UPDATE_STEP_SQLITE,
            Database::Postgres(_) => sql::UPDATE_STEP_POSTGRES,
        };
        let updated = with_pool!(&self.database, writer, |pool| async {
            sqlx::query(sql)
                .bind(ACCOUNT)
                .bind(parse_id(&stored.guid))
                .bind(&title)
                .bind(&new_etag)
                .bind(now)
                .bind(&stored.etag)
                .bind(Uuid::now_v7())
                .execute(pool)
                .await
                .map(|done| done.rows_affected())
        });
        assert!(updated > 0, "each connection has its own steps");
        Step {
            title,
            etag: new_etag,
            modified_ts: Some(timestamp(now)),
            ..stored
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
