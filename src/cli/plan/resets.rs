//! Fields that a guide has and its document leaves out. An import keeps them, so they are
//! reset by updates whose masks name them.

use std::collections::BTreeMap;

use prost_types::FieldMask;

use super::{managed_by_key, managed_documents, steps_by_guid};
use crate::{
    cli::CliError,
    client::Client,
    proto::v1::{Step, Task, TaskDocument, UpdateStepRequest, UpdateTaskRequest},
};

/// The updates that reset fields.
#[derive(Debug, Default, PartialEq)]
pub(in crate::cli) struct Resets {
    tasks: Vec<UpdateTaskRequest>,
    steps: Vec<UpdateStepRequest>,
}

impl Resets {
    /// The resets of what a stored guide has and the planned one has not.
    pub fn between(stored: &TaskDocument, planned: &TaskDocument) -> Self {
        let mut resets = Self::default();
        resets.add(stored, planned);
        resets
    }

    fn add(&mut self, stored: &TaskDocument, planned: &TaskDocument) {
        if let (Some(stored), Some(planned)) = (&stored.task, &planned.task) {
            self.add_task(stored, planned);
        }
        let stored_steps = steps_by_guid(stored);
        for planned in &planned.steps {
            if let Some(stored) = stored_steps.get(planned.guid.as_str()) {
                self.add_step(stored, planned);
            }
        }
    }

    fn add_task(&mut self, stored: &Task, planned: &Task) {
        let mut paths = Vec::new();
        if stored.dependencies.is_some() && planned.dependencies.is_none() {
            paths.push("dependencies".to_owned());
        }
        paths.extend(translation_paths(
            &stored.translations,
            &planned.translations,
        ));
        if !paths.is_empty() {
            self.tasks.push(UpdateTaskRequest {
                task: Some(Task {
                    guid: stored.guid.clone(),
                    ..Task::default()
                }),
                update_mask: Some(FieldMask { paths }),
                validate_only: false,
            });
        }
    }

    fn add_step(&mut self, stored: &Step, planned: &Step) {
        // Not reset are ids and types, read-only fields, fields that every import writes, and
        // fields that an import keeps, as they are required or have a default.
        let Step {
            body,
            dependencies,
            feedback_config,
            instructions,
            looping,
            parts,
            skills,
            tags,
            translations,
            guid,
            task: _,
            product_id: _,
            r#type: _,
            title: _,
            cost: _,
            dependency_shorthand: _,
            published: _,
            subtask_id: _,
            subtask_pid: _,
            link: _,
            etag: _,
            account_id: _,
            r_data: _,
            dirty_record: _,
            created_ts: _,
            modified_ts: _,
        } = stored;
        let cleared = [
            ("body", body.is_some() && planned.body.is_none()),
            (
                "dependencies",
                dependencies.is_some() && planned.dependencies.is_none(),
            ),
            (
                "feedback_config",
                !feedback_config.is_empty() && planned.feedback_config.is_empty(),
            ),
            (
                "instructions",
                !instructions.is_empty() && planned.instructions.is_empty(),
            ),
            ("looping", looping.is_some() && planned.looping.is_none()),
            ("parts", !parts.is_empty() && planned.parts.is_empty()),
            ("skills", !skills.is_empty() && planned.skills.is_empty()),
            ("tags", !tags.is_empty() && planned.tags.is_empty()),
        ];
        let cleared = cleared.into_iter().filter(|(_, is_cleared)| *is_cleared);
        let mut paths: Vec<String> = cleared.map(|(path, _)| path.to_owned()).collect();
        paths.extend(translation_paths(translations, &planned.translations));
        if !paths.is_empty() {
            self.steps.push(UpdateStepRequest {
                step: Some(Step {
                    guid: guid.clone(),
                    ..Step::default()
                }),
                update_mask: Some(FieldMask { paths }),
                validate_only: false,
            });
        }
        self.add_managed(stored, planned);
    }

    fn add_managed(&mut self, stored: &Step, planned: &Step) {
        let stored = managed_by_key(stored);
        for (value, planned) in managed_documents(planned) {
            if let Some(stored) = stored.get(value.key.as_str()) {
                self.add(stored, planned);
            }
        }
    }

    /// Sends the updates, one by one.
    pub async fn send(self, client: &Client) -> Result<(), CliError> {
        let Self { tasks, steps } = self;
        for message in tasks {
            client
                .call_tasks(message, |mut tasks, request| async move {
                    tasks.update_task(request).await
                })
                .await?;
        }
        for message in steps {
            client
                .call_steps(message, |mut steps, request| async move {
                    steps.update_step(request).await
                })
                .await?;
        }
        Ok(())
    }
}

/// The paths of the languages that only the stored texts have.
fn translation_paths<'a, T>(
    stored: &'a BTreeMap<String, T>,
    planned: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = String> + 'a {
    let gone = stored.keys().filter(|tag| !planned.contains_key(*tag));
    gone.map(|tag| format!("translations.`{tag}`"))
}
