//! The guides of a directory and what the account has of them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
};

use super::{references::References, source::DocumentFile};
use crate::{
    cli::{
        CliError,
        plan::{Matching, match_to_stored},
        transfer,
    },
    client::Client,
    proto::v1::{Task, TaskDocument, TaskType},
};

/// A guide of the directory.
pub(super) struct DirectoryGuide {
    pub file: PathBuf,
    /// The document; it has the account's ids as far as the account has the guide.
    pub document: TaskDocument,
    /// The id of its task in the account, if it has one.
    pub guid: Option<String>,
    /// The guide as the account has it.
    pub stored: Option<TaskDocument>,
    /// Whether it was created without some of its steps.
    pub is_incomplete: bool,
    /// Whether the account had it before.
    was_stored: bool,
}

impl DirectoryGuide {
    /// Reads what the account has of it, if anything.
    pub async fn read_stored(
        &mut self,
        client: &Client,
        references: &mut References,
    ) -> Result<(), CliError> {
        let Some(guid) = &self.guid else {
            references.add_pending(&self.document);
            return Ok(());
        };
        let stored = transfer::export(client, guid).await?;
        references.remove_pending(&self.document);
        match_to_stored(
            &mut self.document,
            &stored,
            Matching::ByContent,
            &mut references.ids,
        );
        self.stored = Some(stored);
        Ok(())
    }

    pub fn needs_update(&self) -> bool {
        self.is_incomplete || self.was_stored
    }
}

/// Finds the task of each document: the one with its id, or else the first standard task
/// with its name and product that no other document is of.
pub(super) fn pair(sources: Vec<DocumentFile>, tasks: &[Task]) -> Vec<DirectoryGuide> {
    let by_id: BTreeSet<&str> = tasks.iter().map(|task| task.guid.as_str()).collect();
    let known = |document: &TaskDocument| {
        let guid = transfer::guid(document).to_ascii_lowercase();
        by_id.contains(guid.as_str()).then_some(guid)
    };
    let taken: BTreeSet<String> = sources
        .iter()
        .filter_map(|it| known(&it.document))
        .collect();
    let mut by_name: BTreeMap<(String, i64), VecDeque<&str>> = BTreeMap::new();
    let standard = |task: &&Task| task.r#type() == TaskType::Standard;
    for task in tasks.iter().filter(standard) {
        if !taken.contains(&task.guid) {
            let key = (task.name.clone(), task.product_id());
            by_name.entry(key).or_default().push_back(&task.guid);
        }
    }
    let pair = |DocumentFile { file, document }| {
        let product = document.task.as_ref().map_or(0, Task::product_id);
        let guid = known(&document).or_else(|| {
            let key = (transfer::name(&document).to_owned(), product);
            by_name.get_mut(&key)?.pop_front().map(str::to_owned)
        });
        DirectoryGuide {
            was_stored: guid.is_some(),
            file,
            document,
            guid,
            stored: None,
            is_incomplete: false,
        }
    };
    sources.into_iter().map(pair).collect()
}
