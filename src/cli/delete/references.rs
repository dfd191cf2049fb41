//! What keeps a task from being deleted.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use serde::Serialize;

use crate::{
    cli::{PAGE_SIZE, out::sanitize, tasks},
    client::Client,
    proto::v1::{ListReferencesRequest, Reference, ReferenceKind},
};

/// The most references that are shown of a task.
const MAX_REFERENCES: usize = 20;

/// A step that refers to a task, or whose answer manages it.
#[derive(Debug, Serialize)]
pub(super) struct Referrer {
    #[serde(skip)]
    manages: bool,
    /// The guid of the step.
    step: String,
    /// The guid of its task.
    task: String,
    /// The name of that task; empty if it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// The path in the step.
    path: String,
    /// The command that edits that task.
    #[serde(skip)]
    edit: String,
}

impl fmt::Display for Referrer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            manages,
            step,
            task,
            name,
            path,
            edit,
        } = self;
        let name = match name.is_empty() {
            true => String::new(),
            false => format!(", {}", sanitize(name)),
        };
        match manages {
            true => write!(
                f,
                "step {step} of task {task}{name}, manages it with its {path}: remove that answer \
                 or set `linked` to false in `{edit}` first"
            ),
            false => write!(
                f,
                "step {step} of task {task}{name}, refers to it: remove that step in `{edit}`"
            ),
        }
    }
}

/// The first steps that keep a task from being deleted. Empty if they cannot be read, as the
/// refusal of the deletion is shown all the same.
pub(super) async fn referrers(client: &Client, task: &str) -> Vec<Referrer> {
    let message = ListReferencesRequest {
        task: task.to_owned(),
        page_size: PAGE_SIZE,
        ..ListReferencesRequest::default()
    };
    let page = client.call(message).await.unwrap_or_default();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut referrers = Vec::new();
    for reference in page
        .references
        .iter()
        .filter(|it| prevents_deletion(it, task))
        .take(MAX_REFERENCES)
    {
        let Some(place) = &reference.place else {
            continue;
        };
        let name = match names.entry(place.task.clone()) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let task = tasks::get(client, place.task.clone())
                    .await
                    .unwrap_or_default();
                unknown.insert(task.name).clone()
            }
        };
        referrers.push(Referrer {
            manages: reference.kind() == ReferenceKind::Manages,
            step: place.step.clone(),
            task: place.task.clone(),
            name,
            path: place.path.clone(),
            edit: client.command(&format!("edit {}", place.task)),
        });
    }
    referrers
}

/// Whether a reference keeps the task from being deleted. Its own steps do not.
fn prevents_deletion(reference: &Reference, task: &str) -> bool {
    let of_other = reference.place.as_ref().is_some_and(|at| at.task != task);
    match reference.kind() {
        ReferenceKind::Subtask => of_other,
        ReferenceKind::Manages => true,
        ReferenceKind::Wiring
        | ReferenceKind::Sets
        | ReferenceKind::Reads
        | ReferenceKind::Unspecified => false,
    }
}
