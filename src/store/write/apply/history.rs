use sea_orm::{
    ActiveValue::Set, ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::Expr,
};
use uuid::Uuid;

use super::{Batch, internal};
use crate::{
    domain::{
        history::{
            EncodedGuide, HistoryChange, HistoryEdit, NewRevision, RevisionCause, RevisionContent,
            TaskRevision,
        },
        ids::TaskId,
        size::stored_count,
    },
    store::{
        entity::{
            deleted_step, revision_alias, task_history,
            task_revision::{self, Column, Entity},
        },
        error::StoreError,
        write::checkpoints::set_kept_ts,
    },
};

/// The maximum number of automatic revisions that one write deletes. There are more only after the
/// setting was lowered.
const MAX_DELETED_AUTOMATIC: u64 = 1_000;

impl Batch<'_> {
    /// Marks the tasks of histories as no longer deleted.
    pub fn undelete_histories(&mut self, tasks: Vec<TaskId>) {
        use task_history::{Column, Entity};
        let update = self.tx.scope().update::<Entity>();
        let update = update
            .col_expr(Column::DeletedTs, Expr::value(None::<i64>))
            .col_expr(Column::DeletedBy, Expr::value(""));
        self.add_by_ids(update, Column::Task, tasks.into_iter().map(|task| task.0));
    }

    /// Changes the history of a task, edit by edit.
    pub fn edit_history(&mut self, change: HistoryChange) -> Result<(), StoreError> {
        let HistoryChange { task, edits } = change;
        for edit in edits {
            self.begin_stage();
            self.add_edit(task.0, edit)?;
        }
        Ok(())
    }

    fn add_edit(&mut self, task: Uuid, edit: HistoryEdit) -> Result<(), StoreError> {
        let scope = self.tx.scope();
        let account_id = Set(scope.account.as_str().to_owned());
        let of_task = Column::Task.eq(task);
        match edit {
            HistoryEdit::SetState {
                last_number,
                deleted,
            } => {
                use task_history::Column;
                let row = task_history::ActiveModel {
                    account_id,
                    task: Set(task),
                    last_number: Set(last_number),
                    deleted_ts: Set(deleted.as_ref().map(|deleted| deleted.at.0)),
                    deleted_by: Set(deleted.map_or_else(String::new, |by| by.subject)),
                };
                let state = [Column::LastNumber, Column::DeletedTs, Column::DeletedBy];
                self.upsert(vec![row], state);
            }
            HistoryEdit::Add(new) => {
                let NewRevision { revision, content } = *new;
                let RevisionContent::Encoded(guide) = content else {
                    return Err(internal("the guide of a revision is not encoded"));
                };
                // Other statements of a write also change the task's row, and one statement cannot
                // do so twice.
                if revision.cause == RevisionCause::Checkpoint {
                    self.add(set_kept_ts(scope, revision.task, revision.created.0));
                }
                let row = task_revision::ActiveModel {
                    account_id,
                    ..revision_row(revision, guide)
                };
                self.insert(vec![row]);
            }
            HistoryEdit::DeleteOldAutomatic { keep } => {
                let named = scope
                    .find::<revision_alias::Entity>()
                    .select_only()
                    .column(revision_alias::Column::Number)
                    .filter(revision_alias::Column::Task.eq(task));
                let old = scope
                    .find::<Entity>()
                    .select_only()
                    .column(Column::Number)
                    .filter(of_task.clone())
                    .filter(Column::Cause.ne(RevisionCause::Requested as i32))
                    .filter(Column::Number.not_in_subquery(named.into_query()))
                    .order_by_desc(Column::Number)
                    .offset(keep as u64)
                    .limit(MAX_DELETED_AUTOMATIC);
                let is_old = Column::Number.in_subquery(old.into_query());
                self.add(scope.delete::<Entity>().filter(of_task).filter(is_old));
            }
            HistoryEdit::MarkRequested { number, note } => {
                let cause = RevisionCause::Requested as i32;
                let update = scope
                    .update::<Entity>()
                    .col_expr(Column::Cause, Expr::value(cause))
                    .col_expr(Column::Note, Expr::value(note.into_string()))
                    .filter(of_task)
                    .filter(Column::Number.eq(number));
                self.add(update);
            }
            HistoryEdit::SetAlias { alias, number } => {
                let row = revision_alias::ActiveModel {
                    account_id,
                    task: Set(task),
                    alias: Set(alias.as_str().to_owned()),
                    number: Set(number),
                };
                self.upsert(vec![row], [revision_alias::Column::Number]);
            }
            HistoryEdit::RemoveAlias(alias) => {
                use revision_alias::{Column, Entity};
                let delete = scope.delete::<Entity>().filter(Column::Task.eq(task));
                self.add(delete.filter(Column::Alias.eq(alias.as_str())));
            }
            HistoryEdit::Delete(number) => {
                let delete = scope.delete::<Entity>().filter(of_task);
                self.add(delete.filter(Column::Number.eq(number)));
                // This revision may have been the newest.
                self.add(set_kept_ts(scope, TaskId(task), 0));
            }
            HistoryEdit::Purge => {
                self.add(scope.delete::<Entity>().filter(of_task));
                let steps = scope.delete::<deleted_step::Entity>();
                self.add(steps.filter(deleted_step::Column::Task.eq(task)));
                let aliases = scope.delete::<revision_alias::Entity>();
                self.add(aliases.filter(revision_alias::Column::Task.eq(task)));
                let history = scope.delete::<task_history::Entity>();
                self.add(history.filter(task_history::Column::Task.eq(task)));
            }
        }
        Ok(())
    }
}

fn revision_row(revision: TaskRevision, guide: EncodedGuide) -> task_revision::ActiveModel {
    task_revision::ActiveModel {
        task: Set(revision.task.0),
        number: Set(revision.number),
        cause: Set(revision.cause as i32),
        note: Set(revision.note.into_string()),
        subject: Set(revision.subject),
        created_ts: Set(revision.created.0),
        task_name: Set(revision.task_name.into_string()),
        product_id: Set(revision.product.get()),
        step_count: Set(revision.step_count),
        guide_etag: Set(revision.guide_etag.into_string()),
        size: Set(stored_count(guide.content.len())),
        document_size: Set(stored_count(guide.document_bytes)),
        content: Set(guide.content),
        ..Default::default()
    }
}
