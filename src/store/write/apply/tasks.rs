use sea_orm::{
    ActiveValue::NotSet,
    ColumnTrait, ExprTrait, QueryFilter,
    sea_query::{Expr, Func},
};

use super::{Batch, translations::Translations};
use crate::{
    domain::{
        changes::TaskChange,
        external_id::ExternalId,
        history::TranslatedFrom,
        json::WIRE_OVERHEAD,
        size::{external_id_bytes, stored_count},
    },
    store::{
        entity::{
            step,
            task::{self, Column},
        },
        rows::task_row,
    },
};

impl Batch<'_> {
    /// Inserts and updates tasks. Their deletions come later, see [`Self::delete_tasks`].
    pub fn put_tasks(
        &mut self,
        tasks: &[TaskChange],
        translations: &mut Translations,
        translated_from: &TranslatedFrom,
    ) {
        let (mut created, mut updated) = (Vec::new(), Vec::new());
        for change in tasks {
            match change {
                TaskChange::Create(task) => {
                    translations.add_task(None, task, translated_from);
                    created.push(task_row(task));
                }
                TaskChange::Update { before, after } => {
                    translations.add_task(Some(before), after, translated_from);
                    let before = task::ActiveModel {
                        // An index may have cleared it since.
                        dirty_record: NotSet,
                        ..task_row(before)
                    };
                    updated.push((before, task_row(after)));
                }
                TaskChange::Delete { .. } => {}
            }
        }
        self.insert(created);
        self.update_rows::<task::Entity>(updated, Column::Guid);
    }

    /// Deletes tasks with their steps.
    pub fn delete_tasks(&mut self, tasks: &[TaskChange]) {
        for change in tasks {
            if let TaskChange::Delete { task, steps } = change {
                self.begin_stage();
                if !steps.is_empty() {
                    self.delete_steps(step::Column::Task, [task.0]);
                }
                self.delete_task(task.0);
            }
        }
    }

    /// Gives subtask steps, which are locked, the new names and external ids of their tasks.
    pub fn update_following_steps(&mut self, tasks: &[TaskChange]) {
        use step::Column;
        let bytes = |column| Func::cust("octet_length").arg(Expr::col(column));
        for change in tasks {
            let TaskChange::Update { before, after } = change else {
                continue;
            };
            let external_id = after.content.external_id.as_ref();
            if before.name == after.name && before.content.external_id.as_ref() == external_id {
                continue;
            }
            let name = after.name.as_str();
            let id_bytes = Expr::expr(bytes(Column::SubtaskExternalId)).add(WIRE_OVERHEAD as i64);
            let old_bytes =
                Expr::expr(bytes(Column::Title)).add(Func::coalesce([id_bytes, Expr::value(0)]));
            let new_bytes = stored_count(name.len() + external_id_bytes(external_id));
            let has_other_id = match external_id {
                Some(id) => Column::SubtaskExternalId
                    .ne(id.as_str())
                    .or(Column::SubtaskExternalId.is_null()),
                None => Column::SubtaskExternalId.is_not_null(),
            };
            let update = self
                .revise_steps()
                .col_expr(Column::Title, Expr::value(name))
                .col_expr(
                    Column::SubtaskExternalId,
                    Expr::value(external_id.map(ExternalId::as_str)),
                )
                .col_expr(
                    Column::Size,
                    Expr::col(Column::Size).add(new_bytes).sub(old_bytes),
                )
                .filter(Column::SubtaskId.eq(after.guid.0))
                .filter(Column::Title.ne(name).or(has_other_id));
            self.add(update);
        }
    }
}
