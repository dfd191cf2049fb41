//! The rows of the names that tasks and steps read and set.

use sea_orm::{ActiveValue::Set, Value};
use uuid::Uuid;

use super::sql::{Deletion, RowChange, Upsert};
use crate::{
    domain::{
        analysis::{ChangedNameDigests, NameDigest, changed_name_digests},
        changes::{Changes, StepChange, TaskChange},
        ids::AccountId,
    },
    store::schema::entity::name_use,
};

/// The rows in which the names of changed tasks and steps differ, and those of deleted ones.
/// When no task or step reads or sets other names than before and none is deleted, there are
/// none.
pub fn name_use_changes(changes: &Changes, account: &AccountId) -> Vec<RowChange> {
    let mut added = Vec::new();
    let mut dropped: Vec<Vec<Value>> = Vec::new();
    let mut change = |in_step: i16, guid: Uuid, digests: ChangedNameDigests| {
        let new = digests.added.into_iter();
        added.extend(new.map(|NameDigest(digest)| name_use::ActiveModel {
            account_id: Set(account.as_str().to_owned()),
            name_digest: Set(digest),
            in_step: Set(in_step),
            guid: Set(guid),
        }));
        let gone = digests.dropped.into_iter();
        dropped.extend(
            gone.map(|NameDigest(digest)| vec![digest.into(), in_step.into(), guid.into()]),
        );
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
        change(0, after.guid.0, digests);
    }
    for StepChange { before, after, .. } in &changes.steps {
        let digests = changed_name_digests(before.as_deref(), after.as_ref());
        change(1, after.guid.0, digests);
    }
    let deleted = deleted.into_iter().map(|guid| vec![guid.into()]);
    vec![
        RowChange::Upsert(Upsert::new(added)),
        RowChange::Delete(Deletion {
            table: "name_uses",
            key: &["name_digest", "in_step", "guid"],
            rows: dropped,
            may_find_none: false,
        }),
        RowChange::Delete(Deletion {
            table: "name_uses",
            key: &["guid"],
            rows: deleted.collect(),
            may_find_none: true,
        }),
    ]
}
