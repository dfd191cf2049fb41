//! Tasks of the account without a file, and their deletion.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{
    ApplyGuide, ApplyRun,
    ids::{named, named_task},
};
use crate::{
    cli::{
        CliError, confirm,
        delete::{self, DeletedHistory},
        guides,
        out::{print_error, sanitize},
    },
    messages::managed_documents::all_steps,
    proto::v1::{Task, TaskType},
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
        if self.args.dry_run {
            self.plan_pruning(&left, guides)?;
            return Ok(false);
        }
        if self.results.failed() > 0 {
            print_error("nothing was pruned because of failures");
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

    /// Prints what would be deleted. A task that a guide refers to cannot be deleted.
    fn plan_pruning(&mut self, left: &[Task], guides: &[ApplyGuide]) -> Result<(), CliError> {
        let mut referring = BTreeMap::new();
        for guide in guides {
            let mut document = guide.document.clone();
            self.ids.resolve(&mut document);
            for step in all_steps(&document.steps) {
                referring.insert(named_task(step), &guide.file.path);
            }
        }
        for task in left {
            let by_name = || referring.get(&named(task.external_id()));
            let file = referring.get(&task.guid).or_else(by_name);
            let line = delete::description(task);
            let file = file.map(|file| file.display().to_string());
            let json = json!({
                "dry_run": true, "guid": task.guid, "name": task.name, "referring_file": file,
            });
            match file {
                None => {
                    self.deleted += 1;
                    self.results.add(&format!("would delete {line}\n"), &json)?;
                }
                Some(file) => {
                    let file = sanitize(&file);
                    let text = format!("would keep {line}: a step of {file} refers to it");
                    self.results.add_failure(&text, &json)?;
                }
            }
        }
        Ok(())
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
