use std::collections::BTreeSet;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ExprTrait, QueryFilter, QueryTrait,
    sea_query::{Expr, ValueTuple},
};
use uuid::Uuid;

use super::{Tx, parts};
use crate::{
    domain::{
        analysis::{account_name, full_name},
        changes::{Changes, StepChange, TaskChange},
        dependency::Group,
        step::Step,
        task::Task,
    },
    store::{
        entity::name_use::{ActiveModel, Column, Entity, NameUse, indexed_name, indexed_own_name},
        write::batch::Batch,
    },
};

/// The maximum number of rows that one DELETE names by their keys.
const MAX_KEYS: usize = 500;

/// The names that a task or step uses, as the index has them.
type NameUses = BTreeSet<(NameUse, String)>;

impl Tx<'_> {
    /// Adds and removes the names in which changed tasks and steps differ, and removes all names of
    /// deleted ones.
    pub fn add_name_uses(&self, changes: &Changes, batch: &mut Batch) {
        let (mut added, mut dropped) = (Vec::new(), Vec::new());
        let mut change = |guid: Uuid, before: NameUses, after: NameUses| {
            added.extend(
                after
                    .difference(&before)
                    .map(|(name_use, name)| ActiveModel {
                        account_id: Set(self.context.account.as_str().to_owned()),
                        name: Set(name.clone()),
                        name_use: Set(*name_use),
                        guid: Set(guid),
                    }),
            );
            let gone = before.difference(&after);
            dropped.extend(gone.map(|(name_use, name)| {
                ValueTuple::Three(name.into(), (*name_use).into(), guid.into())
            }));
        };
        let steps = changes.deleted_steps.iter();
        let mut deleted: Vec<Uuid> = steps.map(|deleted| deleted.step.0).collect();
        for task in &changes.tasks {
            match task {
                TaskChange::Create(after) => {
                    change(after.guid.0, NameUses::new(), names_of_task(after));
                }
                TaskChange::Update { before, after } => {
                    change(after.guid.0, names_of_task(before), names_of_task(after));
                }
                TaskChange::Delete { task, steps } => {
                    deleted.push(task.0);
                    deleted.extend(steps.iter().map(|step| step.0));
                }
            }
        }
        for StepChange { before, after, .. } in &changes.steps {
            let before = before.as_deref().map(names_of_step);
            change(
                after.guid.0,
                before.unwrap_or_default(),
                names_of_step(after),
            );
        }
        batch.insert(added);
        for keys in dropped.chunks(MAX_KEYS) {
            let key = [Column::Name, Column::NameUse, Column::Guid].map(Expr::col);
            let delete = self.scope().delete::<Entity>();
            let delete = delete.filter(Expr::tuple(key).in_tuples(keys.to_vec()));
            batch.add(delete.into_query());
        }
        for ids in parts(&deleted) {
            let delete = self.scope().delete::<Entity>();
            let delete = delete.filter(Column::Guid.is_in(ids));
            batch.add(delete.into_query());
        }
    }
}

fn names_of_task(task: &Task) -> NameUses {
    names_read(task.content.dependencies.as_ref())
}

fn names_of_step(step: &Step) -> NameUses {
    let mut names = names_read(step.content.dependencies.as_ref());
    if let Some(question) = step.kind.observation_feedback() {
        let own = question.name.as_str();
        let account_wide = account_name(step.product, own);
        names.insert((NameUse::Sets, indexed_name(&account_wide)));
        names.insert((NameUse::Sets, indexed_own_name(step.task, own)));
    }
    names
}

fn names_read(dependencies: Option<&Group>) -> NameUses {
    let mut names = NameUses::new();
    if let Some(group) = dependencies {
        group.for_each_condition(&mut |condition| {
            names.insert((NameUse::Reads, indexed_name(&full_name(condition))));
        });
    }
    names
}
