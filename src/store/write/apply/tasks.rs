use sea_orm::{
    ActiveValue::NotSet,
    ColumnTrait, ExprTrait, QueryFilter,
    sea_query::{Expr, Func},
};

use super::{Batch, translations::Translations};
use crate::{
    domain::{changes::TaskChange, history::TranslatedFrom},
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

    /// Gives subtask steps, which are locked, the new names of the tasks that they refer to.
    pub fn update_subtask_titles(&mut self, tasks: &[TaskChange]) {
        use step::Column;
        for change in tasks {
            let TaskChange::Update { before, after } = change else {
                continue;
            };
            if before.name == after.name {
                continue;
            }
            let name = after.name.as_str();
            let bytes = i64::try_from(name.len()).unwrap_or(i64::MAX);
            let old_bytes = Func::cust("octet_length").arg(Expr::col(Column::Title));
            let size = Expr::col(Column::Size).add(bytes).sub(old_bytes);
            let update = self
                .revise_steps()
                .col_expr(Column::Title, Expr::value(name))
                .col_expr(Column::Size, size)
                .filter(Column::SubtaskId.eq(after.guid.0))
                .filter(Column::Title.ne(name));
            self.add(update);
        }
    }
}
