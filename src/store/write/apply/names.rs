use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ExprTrait, QueryFilter, QueryTrait,
    sea_query::{Expr, ValueTuple},
};
use uuid::Uuid;

use super::{Tx, parts};
use crate::{
    domain::{
        analysis::{ChangedNameDigests, NameDigest, changed_name_digests},
        changes::{Changes, StepChange, TaskChange},
    },
    store::{
        entity::name_use::{ActiveModel, Column, Entity, IN_STEP, IN_TASK},
        write::batch::Batch,
    },
};

/// The maximum number of rows that one DELETE names by their keys.
const MAX_KEYS: usize = 500;

impl Tx<'_> {
    /// Adds and removes the names in which changed tasks and steps differ, and removes all names of
    /// deleted ones.
    pub fn add_name_uses(&self, changes: &Changes, batch: &mut Batch) {
        let (mut added, mut dropped) = (Vec::new(), Vec::new());
        let account = self.context.account.as_str();
        let mut change = |in_step: i16, guid: Uuid, digests: ChangedNameDigests| {
            let new = digests.added.into_iter();
            added.extend(new.map(|NameDigest(digest)| ActiveModel {
                account_id: Set(account.to_owned()),
                name_digest: Set(digest),
                in_step: Set(in_step),
                guid: Set(guid),
            }));
            let gone = digests.dropped.into_iter();
            dropped.extend(gone.map(|NameDigest(digest)| (digest, in_step, guid)));
        };
        let steps = changes.deleted_steps.iter();
        let mut deleted: Vec<Uuid> = steps.map(|deleted| deleted.step.0).collect();
        for task in &changes.tasks {
            let (before, after) = match task {
                TaskChange::Create(after) => (None, after),
                TaskChange::Update { before, after } => (Some(before.as_ref()), after),
                TaskChange::Delete { task, steps } => {
                    deleted.push(task.0);
                    deleted.extend(steps.iter().map(|step| step.0));
                    continue;
                }
            };
            let digests = changed_name_digests(before, after.as_ref());
            change(IN_TASK, after.guid.0, digests);
        }
        for StepChange { before, after, .. } in &changes.steps {
            let digests = changed_name_digests(before.as_deref(), after.as_ref());
            change(IN_STEP, after.guid.0, digests);
        }
        batch.insert_rows(added, None);
        for keys in dropped.chunks(MAX_KEYS) {
            let key = [Column::NameDigest, Column::InStep, Column::Guid].map(Expr::col);
            let rows = keys.iter().map(|(digest, in_step, guid)| {
                ValueTuple::Three((*digest).into(), (*in_step).into(), (*guid).into())
            });
            let delete = self.scope().delete::<Entity>();
            let delete = delete.filter(Expr::tuple(key).in_tuples(rows));
            batch.delete(delete.into_query(), 3 * keys.len() + 1);
        }
        for ids in parts(&deleted) {
            let count = ids.len() + 1;
            let delete = self.scope().delete::<Entity>();
            let delete = delete.filter(Column::Guid.is_in(ids));
            batch.delete(delete.into_query(), count);
        }
    }
}
