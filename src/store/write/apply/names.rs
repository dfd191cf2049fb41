use std::collections::BTreeSet;

use sea_orm::{ActiveValue::Set, sea_query::ValueTuple};
use uuid::Uuid;

use super::Batch;
use crate::{
    domain::{
        analysis::{account_name, full_name},
        changes::{Changes, StepChange, TaskChange},
        dependency::Group,
        step::Step,
        task::Task,
    },
    store::entity::name_use::{
        ActiveModel, Column, Entity, NameUse, indexed_name, indexed_own_name,
    },
};

/// The names that a task or step uses, in the form of the index.
type NameUses = BTreeSet<(NameUse, String)>;

impl Batch<'_> {
    /// Adds and removes the names in which changed tasks and steps differ, and removes all names of
    /// deleted ones.
    pub fn add_name_uses(&mut self, changes: &Changes) {
        let account = &self.tx.context.account;
        let (mut added, mut dropped) = (Vec::new(), Vec::new());
        let mut change = |guid: Uuid, before: NameUses, after: NameUses| {
            let new = after.difference(&before);
            added.extend(new.map(|(name_use, name)| ActiveModel {
                account_id: Set(account.as_str().to_owned()),
                name: Set(name.clone()),
                name_use: Set(*name_use),
                guid: Set(guid),
            }));
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
                    change(after.guid.0, NameUses::new(), task_name_uses(after));
                }
                TaskChange::Update { before, after } => {
                    change(after.guid.0, task_name_uses(before), task_name_uses(after));
                }
                TaskChange::Delete { task, steps } => {
                    deleted.push(task.0);
                    deleted.extend(steps.iter().map(|step| step.0));
                }
            }
        }
        for StepChange { before, after, .. } in &changes.steps {
            let before = before.as_deref().map(step_name_uses);
            change(
                after.guid.0,
                before.unwrap_or_default(),
                step_name_uses(after),
            );
        }
        self.insert(added);
        self.delete_keys::<Entity>([Column::Name, Column::NameUse, Column::Guid], dropped);
        let names = self.tx.scope().delete::<Entity>();
        self.add_by_ids(names, Column::Guid, deleted);
    }
}

fn task_name_uses(task: &Task) -> NameUses {
    names_read(task.content.dependencies.as_ref())
}

fn step_name_uses(step: &Step) -> NameUses {
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
