//! DeleteStep: reads the step, deletes it if it still has the etag that was read, and changes
//! the etag of its task.

use expertise::proto::v1::{DeleteStepRequest, DeleteStepResponse};
use uuid::Uuid;

use super::{
    Floor,
    schema::{Database, with_pool},
    sql,
    values::{ACCOUNT, etag, now, parse_id},
};

impl Floor {
    pub(super) async fn delete(&self, request: DeleteStepRequest) -> DeleteStepResponse {
        let guid = parse_id(&request.guid);
        let stored = self.read_step(guid).await;
        let sql = match self.database {
            Database::Sqlite { .. } => sql::DELETE_STEP_SQLITE,
            Database::Postgres(_) => sql::DELETE_STEP_POSTGRES,
        };
        let deleted = with_pool!(&self.database, writer, |pool| async {
            sqlx::query(sql)
                .bind(ACCOUNT)
                .bind(guid)
                .bind(parse_id(&stored.task))
                .bind(etag())
                .bind(now())
                .bind(&stored.etag)
                .bind(Uuid::now_v7())
                .execute(pool)
                .await
                .map(|done| done.rows_affected())
        });
        assert!(deleted > 0, "each step is deleted once");
        DeleteStepResponse::default()
    }
}
