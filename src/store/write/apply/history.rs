use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, OnConflict},
};
use uuid::Uuid;

use super::{Tx, internal, parts};
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
        entity::{revision_alias, task_history, task_revision},
        error::StoreError,
        write::batch::Batch,
    },
};

/// The maximum number of automatic revisions that one write deletes. There are more only after the
/// setting was lowered.
const MAX_DELETED_AUTOMATIC: u64 = 1_000;

impl Tx<'_> {
    /// Changes the history of a task.
    pub async fn edit_history(&self, change: HistoryChange) -> Result<(), StoreError> {
        let HistoryChange { task, edits } = change;
        for edit in edits {
            self.edit_history_of(task.0, edit).await?;
        }
        Ok(())
    }

    /// Marks the tasks of histories as no longer deleted.
    pub async fn undelete_histories(&self, tasks: &[TaskId]) -> Result<(), StoreError> {
        use task_history::{Column, Entity};
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        for ids in parts(&ids) {
            self.scope()
                .update::<Entity>()
                .col_expr(Column::DeletedTs, Expr::value(None::<i64>))
                .col_expr(Column::DeletedBy, Expr::value(""))
                .filter(Column::Task.is_in(ids))
                .exec(self.db())
                .await?;
        }
        Ok(())
    }

    async fn edit_history_of(&self, task: Uuid, edit: HistoryEdit) -> Result<(), StoreError> {
        let account = self.context.account.as_str();
        let mut batch = Batch::new(self);
        match edit {
            HistoryEdit::SetState {
                last_number,
                deleted,
            } => {
                use task_history::Column;
                let row = task_history::ActiveModel {
                    account_id: Set(account.to_owned()),
                    task: Set(task),
                    last_number: Set(last_number),
                    deleted_ts: Set(deleted.as_ref().map(|deleted| deleted.at.0)),
                    deleted_by: Set(deleted.map_or_else(String::new, |by| by.subject)),
                };
                let update = OnConflict::columns([Column::AccountId, Column::Task])
                    .update_columns([Column::LastNumber, Column::DeletedTs, Column::DeletedBy])
                    .to_owned();
                batch.insert_rows(vec![row], Some(update));
            }
            HistoryEdit::Add(new) => {
                let NewRevision { revision, content } = *new;
                let RevisionContent::Encoded(guide) = content else {
                    return Err(internal("the guide of a revision is not encoded"));
                };
                let row = revision_row(revision, guide, &self.context.account);
                batch.insert(vec![row]);
            }
            HistoryEdit::DeleteOldAutomatic { keep } => {
                self.delete_old_automatic(task, keep).await?;
            }
            HistoryEdit::MarkRequested { number, note } => {
                use task_revision::{Column, Entity};
                self.scope()
                    .update::<Entity>()
                    .col_expr(
                        Column::Cause,
                        Expr::value(RevisionCause::Requested.number()),
                    )
                    .col_expr(Column::Note, Expr::value(note.into_string()))
                    .filter(Column::Task.eq(task))
                    .filter(Column::Number.eq(number))
                    .exec(self.db())
                    .await?;
            }
            HistoryEdit::SetAlias { alias, number } => {
                use revision_alias::Column;
                let row = revision_alias::ActiveModel {
                    account_id: Set(account.to_owned()),
                    task: Set(task),
                    alias: Set(alias.as_str().to_owned()),
                    number: Set(number),
                };
                let update = OnConflict::columns([Column::AccountId, Column::Task, Column::Alias])
                    .update_column(Column::Number)
                    .to_owned();
                batch.insert_rows(vec![row], Some(update));
            }
            HistoryEdit::RemoveAlias(alias) => {
                use revision_alias::{Column, Entity};
                let delete = self.scope().delete::<Entity>();
                let delete = delete.filter(Column::Task.eq(task));
                let delete = delete.filter(Column::Alias.eq(alias.as_str()));
                delete.exec(self.db()).await?;
            }
            HistoryEdit::Delete(number) => {
                use task_revision::{Column, Entity};
                let delete = self.scope().delete::<Entity>();
                let delete = delete.filter(Column::Task.eq(task));
                let delete = delete.filter(Column::Number.eq(number));
                delete.exec(self.db()).await?;
            }
            HistoryEdit::Purge => {
                let scope = self.scope();
                let revisions = scope.delete::<task_revision::Entity>();
                let revisions = revisions.filter(task_revision::Column::Task.eq(task));
                batch.add(revisions.into_query());
                let aliases = scope.delete::<revision_alias::Entity>();
                let aliases = aliases.filter(revision_alias::Column::Task.eq(task));
                batch.add(aliases.into_query());
                let history = scope.delete::<task_history::Entity>();
                let history = history.filter(task_history::Column::Task.eq(task));
                batch.add(history.into_query());
            }
        }
        batch.send(self).await
    }

    /// Deletes the oldest revisions that were not requested and have no alias.
    async fn delete_old_automatic(&self, task: Uuid, keep: usize) -> Result<(), StoreError> {
        use task_revision::{Column, Entity};
        let named = self
            .find::<revision_alias::Entity>()
            .select_only()
            .column(revision_alias::Column::Number)
            .filter(revision_alias::Column::Task.eq(task));
        let old: Vec<i64> = self
            .find::<Entity>()
            .select_only()
            .column(Column::Number)
            .filter(Column::Task.eq(task))
            .filter(Column::Cause.ne(RevisionCause::Requested.number()))
            .filter(Column::Number.not_in_subquery(named.into_query()))
            .order_by_desc(Column::Number)
            .offset(keep as u64)
            .limit(MAX_DELETED_AUTOMATIC)
            .into_tuple()
            .all(self.db())
            .await?;
        if old.is_empty() {
            return Ok(());
        }
        let delete = self.scope().delete::<Entity>();
        let delete = delete.filter(Column::Task.eq(task));
        let delete = delete.filter(Column::Number.is_in(old));
        delete.exec(self.db()).await?;
        Ok(())
    }
}

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
