//! The titles of new subtask steps.

use std::collections::BTreeMap;

use super::managed_documents_mut;
use crate::{
    cli::tasks,
    client::Client,
    proto::v1::{StepType, TaskDocument},
};

/// Gives new subtask steps the names of their tasks, as the import will. One whose task
/// cannot be read keeps the title that was sent.
pub(in crate::cli) async fn name_new_subtask_steps(client: &Client, planned: &mut TaskDocument) {
    let mut names: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut guides = vec![planned];
    while let Some(guide) = guides.pop() {
        for step in &mut guide.steps {
            if step.guid.is_empty() && step.r#type() == StepType::Subtask {
                let guid = step.subtask_id.clone();
                if !names.contains_key(&guid) {
                    let task = tasks::get(client, guid.clone()).await;
                    names.insert(guid.clone(), task.ok().map(|task| task.name));
                }
                if let Some(Some(name)) = names.get(&guid) {
                    step.title.clone_from(name);
                }
            }
            guides.extend(managed_documents_mut(step));
        }
    }
}
