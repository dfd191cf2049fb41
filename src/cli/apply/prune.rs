//! Tasks of the account that the directory does not have.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{guides::DirectoryGuide, references::References};
use crate::{
    cli::{
        CliError, confirm,
        delete::{self, DeleteReport, DeletedHistory},
        out::print_error,
    },
    client::Client,
    config::ApplyArgs,
    messages::managed_documents::all_steps,
    proto::v1::{Task, TaskType},
};

/// The tasks that no document is of. Managed tasks belong to the guides that manage them.
pub(super) fn surplus(guides: &[DirectoryGuide], tasks: Vec<Task>) -> Vec<Task> {
    let kept: BTreeSet<&str> = guides.iter().filter_map(|it| it.guid.as_deref()).collect();
    let is_surplus =
        |task: &Task| task.r#type() == TaskType::Standard && !kept.contains(task.guid.as_str());
    tasks.into_iter().filter(is_surplus).collect()
}

/// What became of the tasks.
pub(super) enum Pruned {
    /// They are deleted, or a report says why not.
    Done(Vec<DeleteReport>),
    /// The person did not agree.
    Declined,
}

/// The files whose guides refer to tasks, by the ids of these.
pub(super) fn referring_files(
    guides: &[DirectoryGuide],
    references: &References,
) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for guide in guides {
        let mut document = guide.document.clone();
        references.resolve(&mut document);
        for step in all_steps(&document.steps) {
            files.insert(step.subtask_id.to_ascii_lowercase(), guide.file.clone());
        }
    }
    files
}

/// Lists the tasks and deletes them if that is wanted. `referring` are the files whose guides
/// refer to tasks, which the server keeps for that. After failures nothing is deleted,
/// as a guide that could not be written may be one of them under another name.
pub(super) async fn prune(
    client: &Client,
    args: &ApplyArgs,
    surplus: Vec<Task>,
    referring: &BTreeMap<String, PathBuf>,
    failed: usize,
) -> Result<Pruned, CliError> {
    let directory = args.directory.display();
    if args.dry_run {
        let planned = surplus.into_iter().map(|task| {
            let referring = referring.get(&task.guid).map(PathBuf::as_path);
            DeleteReport::planned(task, referring)
        });
        return Ok(Pruned::Done(planned.collect()));
    }
    if failed > 0 {
        print_error("nothing is pruned, as there were failures");
        return Ok(Pruned::Done(Vec::new()));
    }
    print_error(&format!("not in {directory}:"));
    if args.force {
        for task in &surplus {
            print_error(&format!("  {}", delete::description(task)));
        }
    } else if !delete::agrees_to_delete(&surplus, DeletedHistory::Kept) {
        print_error(confirm::NOTHING_DELETED);
        return Ok(Pruned::Declined);
    }
    let reports = delete::delete_all(client, surplus, DeletedHistory::Kept).await;
    Ok(Pruned::Done(reports))
}
