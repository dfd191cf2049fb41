//! Statements that change the history of a task.

use sea_orm::ActiveValue::Set;
use uuid::Uuid;

use super::{batch::Batch, internal};
use crate::{
    domain::{
        history::{
            EncodedGuide, HistoryChange, HistoryEdit, NewRevision, RevisionCause, RevisionContent,
            TaskRevision,
        },
        ids::{AccountId, TaskId},
        size::stored_count,
    },
    store::{
        error::StoreError,
        schema::entity::{revision_alias, task_history, task_revision},
        write::sql::{Upsert, Values},
    },
};

/// The tables of the history.
const TABLES: [&str; 3] = ["task_revisions", "revision_aliases", "task_histories"];

/// Deletes the oldest revisions `r` that no alias names and that were not requested.
const DELETE_AUTOMATIC: &str = "DELETE FROM task_revisions WHERE account_id = $1 AND task = $2 \
    AND number IN (SELECT r.number FROM task_revisions r \
      WHERE r.account_id = $1 AND r.task = $2 AND r.cause <> $3 AND NOT EXISTS \
        (SELECT 1 FROM revision_aliases a \
         WHERE a.account_id = $1 AND a.task = $2 AND a.number = r.number) \
      ORDER BY r.number DESC LIMIT $4 OFFSET $5)";
/// Most of them that one write deletes. There are more only after the setting was lowered.
const MAX_DELETED_AUTOMATIC: i64 = 1_000;

impl Batch {
    /// Changes the history of a task.
    pub fn edit_history(
        &mut self,
        change: HistoryChange,
        account: &AccountId,
    ) -> Result<(), StoreError> {
        let HistoryChange { task, edits } = change;
        for edit in edits {
            self.edit_history_of(task.0, edit, account)?;
        }
        Ok(())
    }

    /// The tasks of these histories are deleted no longer.
    pub fn undelete_histories(&mut self, tasks: &[TaskId]) {
        self.push_by_ids(tasks.iter().map(|task| task.0), |_, tasks| {
            format!(
                "UPDATE task_histories SET deleted_ts = NULL, deleted_by = '' \
                 WHERE account_id = $1 AND task IN ({tasks})"
            )
        });
    }

    fn edit_history_of(
        &mut self,
        task: Uuid,
        edit: HistoryEdit,
        account: &AccountId,
    ) -> Result<(), StoreError> {
        let mut values = Values::new();
        let of_task = format!("account_id = $1 AND task = {}", values.bind(task));
        match edit {
            HistoryEdit::SetState {
                last_number,
                deleted,
            } => {
                let row = task_history::ActiveModel {
                    account_id: Set(account.as_str().to_owned()),
                    task: Set(task),
                    last_number: Set(last_number),
                    deleted_ts: Set(deleted.as_ref().map(|deleted| deleted.at.0)),
                    deleted_by: Set(deleted.map_or_else(String::new, |by| by.subject)),
                };
                let key = ["account_id", "task"];
                let is_updated = |column: &str| !key.contains(&column);
                self.upsert(Upsert::new(vec![row]).or_update(&key, is_updated));
            }
            HistoryEdit::Add(new) => {
                let NewRevision { revision, content } = *new;
                let RevisionContent::Encoded(guide) = content else {
                    return Err(internal("the guide of a revision is not encoded"));
                };
                let row = revision_row(revision, guide, account);
                self.upsert(Upsert::new(vec![row]));
            }
            HistoryEdit::DeleteOldAutomatic { keep } => {
                values.bind(RevisionCause::Requested.number());
                values.bind(MAX_DELETED_AUTOMATIC);
                values.bind(stored_count(keep));
                self.push(DELETE_AUTOMATIC.to_owned(), values);
            }
            HistoryEdit::MarkRequested { number, note } => {
                let cause = values.bind(RevisionCause::Requested.number());
                let note = values.bind(note.into_string());
                let number = values.bind(number);
                let sql = format!(
                    "UPDATE task_revisions SET cause = {cause}, note = {note} \
                     WHERE {of_task} AND number = {number}"
                );
                self.push(sql, values);
            }
            HistoryEdit::SetAlias { alias, number } => {
                let row = revision_alias::ActiveModel {
                    account_id: Set(account.as_str().to_owned()),
                    task: Set(task),
                    alias: Set(alias.as_str().to_owned()),
                    number: Set(number),
                };
                let key = ["account_id", "task", "alias"];
                let is_updated = |column: &str| column == "number";
                self.upsert(Upsert::new(vec![row]).or_update(&key, is_updated));
            }
            HistoryEdit::RemoveAlias(alias) => {
                let alias = values.bind(alias.as_str());
                let sql =
                    format!("DELETE FROM revision_aliases WHERE {of_task} AND alias = {alias}");
                self.push(sql, values);
            }
            HistoryEdit::Delete(number) => {
                let number = values.bind(number);
                let sql =
                    format!("DELETE FROM task_revisions WHERE {of_task} AND number = {number}");
                self.push(sql, values);
            }
            HistoryEdit::Purge => {
                for table in TABLES {
                    self.delete(table, "task", [task]);
                }
            }
        }
        Ok(())
    }
}

/// The row of a revision.
fn revision_row(
    revision: TaskRevision,
    guide: EncodedGuide,
    account: &AccountId,
) -> task_revision::ActiveModel {
    let TaskRevision {
        task,
        number,
        cause,
        note,
        subject,
        created,
        task_name,
        product,
        step_count,
        size: _,
        aliases: _,
        guide_etag,
    } = revision;
    let EncodedGuide {
        content,
        document_bytes,
    } = guide;
    task_revision::ActiveModel {
        account_id: Set(account.as_str().to_owned()),
        task: Set(task.0),
        number: Set(number),
        cause: Set(cause.number()),
        note: Set(note.into_string()),
        subject: Set(subject),
        created_ts: Set(created.0),
        task_name: Set(task_name.into_string()),
        product_id: Set(product.get()),
        step_count: Set(step_count),
        guide_etag: Set(guide_etag.into_string()),
        size: Set(stored_count(content.len())),
        document_size: Set(stored_count(document_bytes)),
        content: Set(content),
    }
}
