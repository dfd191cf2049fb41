//! The guide that an import or a restore describes, and its differences from the stored guide.

use std::collections::BTreeMap;

use crate::domain::{
    Error, Result, SizedResource,
    changes::{Changes, StepDeletion},
    decide::WriteContext,
    etag::GuideEtag,
    external_id::{ClaimedBy, ExternalId, TakenId},
    ids::{StepId, TaskId},
    nesting::DepthLimit,
    order::arrange,
    step::Step,
    translation_work::ResourceId,
    violation::Path,
};

use super::{ImportContext, ImportOutcome, ImportPlan, Imported, Origin, Origins, TaskTree};

/// The stored tasks and steps that a wanted guide may have.
#[derive(Default)]
pub(super) struct StoredResources<'a> {
    pub tasks: BTreeMap<TaskId, &'a TaskTree>,
    pub steps: BTreeMap<StepId, &'a Step>,
}

pub(super) struct WantedGuide<'a> {
    /// A task or step with a stored id replaces the stored one; others are created. Places and new
    /// versions are not set yet.
    pub tree: TaskTree,
    pub stored: StoredResources<'a>,
    pub origins: Origins,
    /// Limits on the depth of the outermost task.
    pub depth_limits: Vec<DepthLimit>,
}

impl WantedGuide<'_> {
    /// Plans the writes that make the stored guide the wanted one.
    pub fn into_plan(self, context: &ImportContext<'_>) -> Result<ImportPlan> {
        let (mut tree, stored, origins) = (self.tree, self.stored, self.origins);
        for tree in tree.all() {
            stored.check_external_ids(tree, &origins)?;
        }
        let limit = context.write.max_message_bytes;
        if context.shows_guide && tree.bytes() > limit {
            let resource = SizedResource::Guide;
            return Err(Error::TooLarge { resource, limit });
        }
        stored.complete(&mut tree, context.write);
        let guide_etag = GuideEtag::for_guide(&tree);
        let guide = context.shows_guide.then(|| Box::new(tree.clone()));
        let task = tree.task.clone();
        let mut changes = Changes::default();
        // Only the store knows the depth of a managed task.
        if context.existing.is_some_and(|it| it.task.managed.is_some()) {
            changes.limit_depth(task.guid, self.depth_limits);
        }
        stored.put(tree, &mut changes, context.write)?;
        changes
            .claimed_ids
            .retain_mut(|claimed| match claimed.owner {
                ClaimedBy::Task(task) => {
                    claimed.field = external_id_at(origins.tasks.get(&task)).into();
                    true
                }
                // `check_external_ids` has compared them.
                ClaimedBy::StepOf(_) => false,
            });
        let imported = Imported {
            outcome: match (context.existing, changes.is_empty()) {
                (None, _) => ImportOutcome::Created,
                (Some(_), false) => ImportOutcome::Updated,
                (Some(_), true) => ImportOutcome::Unchanged,
            },
            task,
            guide_etag,
            previous_revision: 0,
            guide,
            ignored: Default::default(),
            skipped: Default::default(),
            replaced: Default::default(),
        };
        Ok(ImportPlan {
            changes,
            imported,
            origins,
        })
    }
}

impl<'a> StoredResources<'a> {
    /// Adds a tree and everything below it.
    pub fn add(&mut self, tree: &'a TaskTree) {
        for tree in tree.all() {
            self.tasks.insert(tree.task.guid, tree);
            let steps = tree.steps.iter();
            self.steps.extend(steps.map(|step| (step.guid, step)));
        }
    }

    /// Refuses a step that would get the external id of another one.
    fn check_external_ids(&self, tree: &TaskTree, origins: &Origins) -> Result<()> {
        fn id(step: &Step) -> Option<&ExternalId> {
            step.content.external_id.as_ref()
        }
        let keeps_id = |step: &&Step| {
            let before = self.steps.get(&step.guid);
            before.and_then(|before| id(before)) == id(step)
        };
        let (kept, changed): (Vec<&Step>, Vec<&Step>) = tree.steps.iter().partition(keeps_id);
        let owners = kept.into_iter();
        let owners: BTreeMap<&ExternalId, StepId> = owners
            .filter_map(|step| Some((id(step)?, step.guid)))
            .collect();
        for step in changed {
            if let Some(owner) = id(step).and_then(|id| owners.get(id)) {
                return Err(Error::ExternalIdTaken(TakenId {
                    owner: ResourceId::Step(*owner),
                    field: external_id_at(origins.steps.get(&step.guid)).into(),
                    is_matchable: false,
                }));
            }
        }
        Ok(())
    }

    /// Sets the lists of steps, their places, and the versions of what differs.
    fn complete(&self, tree: &mut TaskTree, write: &WriteContext) {
        let task = &mut tree.task;
        let before = self.tasks.get(&task.guid);
        task.steps = tree.steps.iter().map(|step| step.guid).collect();
        let known = task.steps.iter();
        let known = known.map(|step| before?.places.get(step).copied());
        let (arranged, numbering) = arrange(&Vec::from_iter(known), task.numbering);
        tree.places = task.steps.iter().copied().zip(arranged).collect();
        task.numbering = numbering;
        if let Some(before) = before {
            task.revise(&before.task, write);
        }
        for step in &mut tree.steps {
            if let Some(before) = self.steps.get(&step.guid) {
                step.revise(before, write);
            }
        }
        for tree in tree.managed.values_mut() {
            self.complete(tree, write);
        }
    }

    /// Adds what differs in a completed tree. Steps that it no longer has are deleted, and tasks that it
    /// no longer manages become unmanaged.
    fn put(&self, tree: TaskTree, changes: &mut Changes, write: &WriteContext) -> Result<()> {
        let (task, places, managed) = (tree.task, tree.places, tree.managed);
        let guid = task.guid;
        let before = self.tasks.get(&guid);
        if before.is_none_or(|before| before.task.row_version != task.row_version) {
            let before = before.map(|before| before.task.clone());
            changes.put_task(before, task, write)?;
        }
        for step in before.into_iter().flat_map(|before| &before.steps) {
            if !places.contains_key(&step.guid) {
                changes.deleted_steps.push(StepDeletion::new(step));
            }
        }
        for step in tree.steps {
            let guid = step.guid;
            let Some(place) = places.get(&guid).copied() else {
                continue;
            };
            let stored = self.steps.get(&guid).copied();
            if stored.is_none_or(|stored| stored.row_version != step.row_version) {
                changes.put_step(stored.cloned(), step, place, write)?;
            } else if before.and_then(|before| before.places.get(&guid)) != Some(&place) {
                changes.moved.push((guid, place));
            }
        }
        for (task, tree) in before.into_iter().flat_map(|before| &before.managed) {
            if !managed.contains_key(task) {
                let task = tree.task.clone();
                changes.put_task(Some(task.clone()), task.unmanaged(), write)?;
            }
        }
        for tree in managed.into_values() {
            self.put(tree, changes, write)?;
        }
        Ok(())
    }
}

/// Where the request has the external id of a task or step; if it does not list that, the document.
fn external_id_at<Id>(origin: Option<&Origin<Id>>) -> String {
    match origin {
        Some(Origin { path, .. }) => Path::root(path).field("external_id").to_string(),
        None => "document".to_owned(),
    }
}
