//! Tasks of the account without a file, and their deletion.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{
    ApplyGuide, ApplyRun,
    ids::{named, named_task},
};
use crate::{
    cli::{
        CliError, PAGE_SIZE, confirm,
        delete::{self, DeletedHistory},
        guides,
        out::{print_error, sanitize},
    },
    client::CallError,
    messages::managed_documents::{all_steps, values},
    proto::v1::{ListReferencesRequest, ReferenceKind, Task, TaskType},
};

/// The maximum number of tasks that are listed as not in the directory.
const MAX_LEFT_LINES: usize = 10;

/// The tasks without a file. Managed tasks belong to their managing guides.
pub(super) fn left_over(guides: &[ApplyGuide], tasks: Vec<Task>) -> Vec<Task> {
    let kept = guides.iter().filter_map(|guide| guide.stored.as_ref());
    let kept: BTreeSet<&str> = kept.map(|stored| guides::guid(&stored.document)).collect();
    let is_left =
        |task: &Task| task.r#type() == TaskType::Standard && !kept.contains(task.guid.as_str());
    tasks.into_iter().filter(is_left).collect()
}

impl ApplyRun<'_> {
    /// Deletes the tasks that are not in the directory, and returns whether the user declined.
    /// After failures, nothing is deleted, because a guide that could not be written may be among
    /// them.
    pub(super) async fn prune(
        &mut self,
        left: Vec<Task>,
        guides: &[ApplyGuide],
    ) -> Result<bool, CliError> {
        if left.is_empty() {
            return Ok(false);
        }
        let dry_run = self.args.dry_run;
        if self.results.failed() > 0 {
            let was = if dry_run { "would be" } else { "was" };
            print_error(&format!("nothing {was} pruned because of failures"));
            return Ok(false);
        }
        if dry_run {
            self.plan_pruning(left, guides).await?;
            return Ok(false);
        }
        print_error("not in the directory:");
        if self.args.force {
            for task in &left {
                print_error(&format!("  {}", delete::description(task)));
            }
        } else if !delete::agrees_to_delete(&left, DeletedHistory::Kept) {
            print_error(confirm::NOTHING_DELETED);
            return Ok(true);
        }
        let history = DeletedHistory::Kept;
        let deleted = delete::delete_all(self.client, left, history, &mut self.results).await?;
        self.deleted = deleted.len();
        Ok(false)
    }

    /// Prints what would be deleted, in the order of [`delete::delete_all`]. A task cannot be deleted
    /// while another task refers to it.
    async fn plan_pruning(
        &mut self,
        left: Vec<Task>,
        guides: &[ApplyGuide],
    ) -> Result<(), CliError> {
        let mut described = BTreeSet::new();
        let mut referring_files = BTreeMap::new();
        for guide in guides {
            described.insert(guides::guid(&guide.document));
            for step in all_steps(&guide.document.steps) {
                described.extend(values(step).map(|value| value.link.as_str()));
                referring_files.insert(named_task(step), &guide.file.path);
            }
        }
        let mut kept = Vec::new();
        for task in left {
            let by_name = || referring_files.get(&named(task.external_id()));
            let file = referring_files.get(&task.guid).or_else(by_name);
            let file = file.map(|file| file.display().to_string());
            let mut others = self.referring_tasks(&task.guid).await?;
            // The files say what these refer to after the run.
            others.retain(|other| !described.contains(other.as_str()));
            kept.push((task, file, others));
        }
        let mut deleted = BTreeSet::new();
        loop {
            let before = deleted.len();
            let mut referenced = Vec::new();
            for (task, file, mut others) in kept {
                others.retain(|other| !deleted.contains(other));
                if file.is_some() || !others.is_empty() {
                    referenced.push((task, file, others));
                    continue;
                }
                let text = format!("would delete {}\n", delete::description(&task));
                let json = json!({"dry_run": true, "guid": task.guid, "name": task.name});
                self.results.add(&text, &json)?;
                deleted.insert(task.guid);
            }
            kept = referenced;
            if deleted.len() == before {
                break;
            }
        }
        self.deleted = deleted.len();
        for (task, file, others) in kept {
            let other = others.first();
            let referring = match (&file, other) {
                (Some(file), _) => sanitize(file),
                (None, other) => format!("task {}", other.map_or("", String::as_str)),
            };
            let line = delete::description(&task);
            let text = format!("would keep {line}: a step of {referring} refers to it");
            let json = json!({
                "dry_run": true, "guid": task.guid, "name": task.name, "referring_file": file,
                "referring_task": other,
            });
            self.results.add_failure(&text, &json)?;
        }
        Ok(())
    }

    /// The other tasks with steps that refer to a task.
    async fn referring_tasks(&self, task: &str) -> Result<Vec<String>, CallError> {
        let message = ListReferencesRequest {
            task: task.to_owned(),
            page_size: PAGE_SIZE,
            ..ListReferencesRequest::default()
        };
        let references = self.client.list(message, |page| page.references).await?;
        let subtasks = references
            .into_iter()
            .filter(|it| it.kind() == ReferenceKind::Subtask);
        let tasks = subtasks.filter_map(|it| Some(it.place?.task));
        Ok(tasks.filter(|other| other != task).collect())
    }

    /// Prints which tasks of the account are not in the directory.
    pub(super) fn print_left(&self, left: &[Task]) {
        let is_directory = self.args.paths.iter().any(|path| path.is_dir());
        if left.is_empty() || !is_directory || !self.results.is_text() {
            return;
        }
        let count = left.len();
        print_error(&format!(
            "tasks of the account that are not in the directory (--prune deletes them): {count}"
        ));
        for task in left.iter().take(MAX_LEFT_LINES) {
            print_error(&format!("  {}", delete::description(task)));
        }
        if left.len() > MAX_LEFT_LINES {
            print_error(&format!("  and {} more", left.len() - MAX_LEFT_LINES));
        }
    }
}
