//! Revisions after faults: each is there as a whole, and every deletion has one.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    expected::{ObservedState, Writer},
    kit::prelude::*,
};

/// The newest revisions that were read, by their tasks. Those are not read again.
#[derive(Default)]
pub struct History(BTreeMap<String, i64>);

impl History {
    /// Asserts that the deleted tasks are those that the writers have deleted, and that the
    /// newest revision of each task holds a guide.
    pub async fn verify(&mut self, client: &Client, writers: &[Writer], state: &ObservedState) {
        let deleted = deleted_tasks(client).await;
        let workspaces = writers.iter().flat_map(|writer| &writer.workspaces);
        let expected = workspaces.flat_map(|workspace| workspace.deleted.clone());
        let found = deleted.iter().map(|revision| revision.task.clone());
        assert_eq!(found.collect::<BTreeSet<_>>(), expected.collect());
        let mut newest = deleted;
        for (task, _) in &state.tasks {
            newest.extend(client.all_revisions(&task.guid).await.into_iter().next());
        }
        for revision in newest {
            let number = revision.revision;
            if self.0.insert(revision.task.clone(), number) == Some(number) {
                continue;
            }
            let document = client.revision_document(&revision.task, number).await;
            let task = document.task.expect("the task of a revision");
            assert_eq!(task.guid, revision.task);
            assert_eq!(document.steps.len(), task.steps.len());
        }
    }
}

/// The latest revisions of all deleted tasks.
async fn deleted_tasks(client: &Client) -> Vec<TaskRevision> {
    let mut found = Vec::new();
    let mut request = ListDeletedTasksRequest {
        page_size: 500,
        ..ListDeletedTasksRequest::default()
    };
    loop {
        let page = client.revisions().list_deleted_tasks(request.clone()).await;
        let page = page.accepted().into_inner();
        found.extend(page.tasks.into_iter().filter_map(|task| task.latest));
        if page.next_page_token.is_empty() {
            return found;
        }
        request.page_token = page.next_page_token;
    }
}
