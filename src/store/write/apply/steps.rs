use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, ExprTrait, Iterable, QueryFilter, QueryTrait,
    sea_query::{Expr, OnConflict},
};

use super::{Tx, parts, set_changed, translations::Rows};
use crate::{
    domain::{
        changes::StepChange,
        history::TranslatedFrom,
        ids::{AccountId, StepId},
        order::Place,
    },
    store::{entity::step, error::StoreError, json::Json, rows::step_row, write::batch::Batch},
};

impl Tx<'_> {
    /// Inserts and updates steps. A body is written only when it has changed.
    pub fn put_steps(
        &self,
        mut steps: Vec<StepChange>,
        translations: &mut Rows,
        translated_from: &TranslatedFrom,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        if let [
            StepChange {
                before: Some(_), ..
            },
        ] = steps.as_slice()
            && let Some(change) = steps.pop()
        {
            return self.update_step(change, translations, translated_from, batch);
        }
        let (mut created, mut same_body, mut new_body) = (Vec::new(), Vec::new(), Vec::new());
        for change in steps {
            let StepChange {
                before,
                after,
                place,
            } = change;
            translations.add_step(before.as_deref(), &after, translated_from);
            match before {
                None => created.push(step_row(*after, place)?),
                Some(before) if before.content.body == after.content.body => {
                    let row = step::ActiveModel {
                        body: NotSet,
                        ..step_row(*after, place)?
                    };
                    same_body.push(row);
                }
                Some(_) => new_body.push(step_row(*after, place)?),
            }
        }
        batch.insert_rows(same_body, Some(updating_steps(Body::Keep)));
        batch.insert_rows(new_body, Some(updating_steps(Body::Update)));
        // New rows are inserted without ON CONFLICT, with which PostgreSQL searches the key of each
        // row once more and logs its insertion twice.
        batch.insert_rows(created, None);
        Ok(())
    }

    fn update_step(
        &self,
        change: StepChange,
        translations: &mut Rows,
        translated_from: &TranslatedFrom,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let StepChange {
            before,
            after,
            place,
        } = change;
        let before = *before.ok_or(StoreError::Corrupt("guid"))?;
        translations.add_step(Some(&before), &after, translated_from);
        let (guid, dirty) = (after.guid.0, after.row_version.dirty);
        let same_body = before.content.body == after.content.body;
        let without_body = |row: step::ActiveModel| step::ActiveModel {
            body: NotSet,
            ..row
        };
        let before = step::ActiveModel {
            // The step may have been elsewhere.
            position: NotSet,
            ..without_body(step_row(before, place)?)
        };
        let mut after = step_row(*after, place)?;
        if same_body {
            after = without_body(after);
        }
        let row = step::ActiveModel {
            // An index may have cleared it since.
            dirty_record: Set(dirty),
            ..set_changed(&before, after)
        };
        let update = self.scope().update::<step::Entity>().set(row);
        let update = update.filter(step::Column::Guid.eq(guid));
        batch.update(update.into_query(), 24);
        Ok(())
    }

    /// Moves stored steps. It is an upsert, which finds each by its key: an UPDATE with a join may
    /// compare all pairs of rows, depending on PostgreSQL's statistics.
    pub async fn move_steps(&self, moved: Vec<(StepId, Place)>) -> Result<(), StoreError> {
        let account = &self.context.account;
        let rows = moved.into_iter().map(|(step, place)| step::ActiveModel {
            position: Set(place.0),
            ..existing_step(account, step)
        });
        let update = OnConflict::columns([step::Column::AccountId, step::Column::Guid])
            .update_column(step::Column::Position)
            .to_owned();
        let mut batch = Batch::new(self);
        batch.insert_rows(rows.collect(), Some(update));
        batch.send(self).await
    }

    /// Clears the external ids of steps. A later statement sets their new ones.
    pub async fn clear_external_ids(&self, steps: &[StepId]) -> Result<(), StoreError> {
        let ids: Vec<_> = steps.iter().map(|step| step.0).collect();
        for ids in parts(&ids) {
            self.scope()
                .update::<step::Entity>()
                .col_expr(step::Column::ExternalId, Expr::value(None::<String>))
                .filter(step::Column::Guid.is_in(ids))
                .exec(self.db())
                .await?;
        }
        Ok(())
    }

    /// Makes wiring steps, which are locked, ordinary subtask steps.
    pub async fn unlink_steps(&self, steps: &[StepId]) -> Result<(), StoreError> {
        use step::Column;
        let ids: Vec<_> = steps.iter().map(|step| step.0).collect();
        for ids in parts(&ids) {
            self.scope()
                .update::<step::Entity>()
                .col_expr(Column::IsLink, Expr::value(false))
                .col_expr(Column::Version, Expr::col(Column::Version).add(1))
                .col_expr(Column::DirtyRecord, Expr::value(true))
                .col_expr(Column::ModifiedTs, Expr::value(self.context.now.0))
                .filter(Column::Guid.is_in(ids))
                .exec(self.db())
                .await?;
        }
        Ok(())
    }
}

/// A row for an upsert of an existing step, so no row is inserted. If the step were missing, the
/// insertion would fail: the row names the step's id as its task, and no task has that id.
pub fn existing_step(account: &AccountId, step: StepId) -> step::ActiveModel {
    step::ActiveModel {
        account_id: Set(account.as_str().to_owned()),
        guid: Set(step.0),
        task: Set(step.0),
        position: Set(0),
        kind: Set(0),
        product_id: Set(0),
        title: Set(String::new()),
        external_id: NotSet,
        published: Set(0),
        subtask_id: NotSet,
        subtask_pid: NotSet,
        is_link: Set(false),
        size: Set(0),
        body_size: Set(0),
        rest_digest: Set(Vec::new()),
        language_count: Set(0),
        version: Set(0),
        dirty_record: Set(false),
        indexed: NotSet,
        created_ts: Set(0),
        modified_ts: Set(0),
        content: Set(Json::default()),
        body: NotSet,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Keep,
    Update,
}

/// Updates what an update may change of a step.
fn updating_steps(body: Body) -> OnConflict {
    use step::Column;
    let keeps = |column: &Column| match column {
        Column::AccountId
        | Column::Guid
        | Column::Task
        | Column::Kind
        | Column::ProductId
        | Column::Indexed
        | Column::CreatedTs => true,
        Column::Body => body == Body::Keep,
        _ => false,
    };
    OnConflict::columns([Column::AccountId, Column::Guid])
        .update_columns(Column::iter().filter(|column| !keeps(column)))
        .to_owned()
}
