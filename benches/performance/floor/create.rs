//! CreateStep: appends a step and changes the etag of its task.

use expertise::proto::v1::{CreateStepRequest, CreateStepResponse, Placement, Step};
use uuid::Uuid;

use super::{
    Floor,
    schema::{Database, with_pool},
    sql,
    values::{ACCOUNT, etag, now, parse_id, timestamp},
};

impl Floor {
    pub(super) async fn create(&self, request: CreateStepRequest) -> CreateStepResponse {
        let step = request.step.expect("a step");
        let guid = Uuid::now_v7();
        let (etag, now) = (etag(), now());
        let sql = match self.database {
            Database::Sqlite { .. } => sql::CREATE_STEP_SQLITE,
            Database::Postgres(_) => sql::CREATE_STEP_POSTGRES,
        };
        with_pool!(&self.database, writer, |pool| async {
            sqlx::query(sql)
                .bind(ACCOUNT)
                .bind(parse_id(&step.task))
                .bind(guid)
                .bind(&step.title)
                .bind(&step.body)
                .bind(step.r#type)
                .bind(step.product_id)
                .bind(step.cost)
                .bind(1)
                .bind(&etag)
                .bind(now)
                .bind(Uuid::now_v7())
                .execute(pool)
                .await
                .map(drop)
        });
        CreateStepResponse {
            step: Some(Step {
                guid: guid.to_string(),
                etag,
                account_id: ACCOUNT.to_owned(),
                published: Some(1),
                dirty_record: true,
                created_ts: Some(timestamp(now)),
                modified_ts: Some(timestamp(now)),
                ..step
            }),
            ignored_paths: Vec::new(),
            placement: Placement::Appended.into(),
        }
    }
}
