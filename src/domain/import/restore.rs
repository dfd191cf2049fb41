//! Restores: the guide of a revision, whose tasks and steps get their former ids where these are
//! free.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    Precondition, Result,
    history::{KeptGuide, TranslatedFrom},
    ids::{StepId, TaskId},
    nesting::{DepthLimit, limits_of_step},
    row_version::RowVersion,
    step::{ReferencedTask, Step},
    task::{ManagedBy, Task},
    text::Name,
    time::Timestamp,
    translation_work::SourceDigest,
    violation::Path,
};

use super::{
    ImportContext, ImportPlan, Origins, TaskTree,
    wanted::{StoredResources, WantedGuide},
};

/// The restore of a revision.
pub struct Restore<'a> {
    pub kept: KeptGuide,
    /// The tasks of the revision that are outside of the guide now, with everything below them.
    pub others: &'a [TaskTree],
    /// What the outdated translations of stored tasks and steps were made from.
    pub outdated: &'a TranslatedFrom,
    /// Whether subtask steps are left out whose tasks are gone.
    pub skip_missing_subtasks: bool,
}

impl<'a> Restore<'a> {
    /// Plans the restore. The request has no field for what is refused but the revision, so
    /// descriptions name the rest.
    pub fn plan(self, context: ImportContext<'a>) -> Result<ImportPlan> {
        let mut reader = RevisionReader {
            context,
            kept_sources: self.kept.outdated,
            stored_sources: self.outdated,
            guide: BTreeSet::new(),
            outside: BTreeMap::new(),
            depth: 0,
            stored: StoredResources::default(),
            depth_limits: Vec::new(),
            replaced: BTreeMap::new(),
            translated_from: TranslatedFrom::default(),
        };
        if let Some(tree) = context.existing {
            reader.stored.add(tree);
            reader.guide = reader.stored.tasks.keys().copied().collect();
        }
        for tree in self.others.iter().flat_map(TaskTree::all) {
            reader.outside.insert(tree.task.guid, tree);
        }
        let target = context.existing.map_or(Target::Undeleted, Target::Stored);
        let mut tree = reader.tree(self.kept.tree, target);
        let missing = reader.resolve_references(&mut tree);
        if !missing.is_empty() && !self.skip_missing_subtasks {
            return Err(Precondition::MissingSubtasks { steps: missing }.into());
        }
        let wanted = WantedGuide {
            tree,
            stored: reader.stored,
            origins: Origins::default(),
            depth_limits: reader.depth_limits,
        };
        let mut plan = wanted.into_plan(&context)?;
        plan.changes.translated_from = reader.translated_from;
        for claimed in &mut plan.changes.claimed_ids {
            claimed.field = "revision".into();
        }
        plan.imported.replaced = reader.replaced;
        for step in &missing {
            plan.imported.replaced.remove(&step.0);
        }
        plan.imported.skipped = missing.into_iter().collect();
        Ok(plan)
    }
}

/// What becomes of a task of the revision.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// The stored task is brought to its former state.
    Stored(&'a TaskTree),
    /// It was deleted, and comes back under its id.
    Undeleted,
    /// Its id is in use, so it is created under another one.
    Replaced,
}

impl<'a> Target<'a> {
    fn stored(self) -> Option<&'a TaskTree> {
        match self {
            Self::Stored(tree) => Some(tree),
            Self::Undeleted | Self::Replaced => None,
        }
    }
}

struct RevisionReader<'a> {
    context: ImportContext<'a>,
    /// What outdated translations of the revision were made from.
    kept_sources: TranslatedFrom,
    stored_sources: &'a TranslatedFrom,
    /// The tasks of the stored guide.
    guide: BTreeSet<TaskId>,
    outside: BTreeMap<TaskId, &'a TaskTree>,
    /// How many tasks are above the one that is read at the moment.
    depth: usize,
    /// The stored guide, and the tasks that it manages again.
    stored: StoredResources<'a>,
    depth_limits: Vec<DepthLimit>,
    /// New ids of tasks and steps, by their ids in the revision.
    replaced: BTreeMap<Uuid, Uuid>,
    translated_from: TranslatedFrom,
}

impl<'a> RevisionReader<'a> {
    /// The tree after the restore. Subtask steps refer to the ids of the revision until references are
    /// resolved.
    fn tree(&mut self, kept: TaskTree, target: Target<'a>) -> TaskTree {
        let task = self.task(kept.task, target);
        // First, as the steps refer to the ids that these get.
        let mut former = BTreeMap::new();
        self.depth += 1;
        for (id, tree) in kept.managed {
            let target = self.managed_target(&tree, target);
            former.insert(id, self.tree(tree, target));
        }
        self.depth -= 1;
        let stored = target.stored().map(|tree| &tree.managed);
        let mut managed = BTreeMap::new();
        let mut steps = Vec::with_capacity(kept.steps.len());
        for step in kept.steps {
            let path = format!("step {}", step.guid);
            let at = Path::root(&path);
            for limit in limits_of_step(&step.content, &at) {
                self.limit_depth(limit);
            }
            let mut step = self.step(step, task.guid, target);
            let question = step.kind.observation_feedback_mut();
            for (value, idx) in question.into_iter().flat_map(|it| &mut it.values).zip(0..) {
                let tree = value.link.and_then(|task| former.remove(&task));
                let name = Name::parse(value.value.as_str().to_owned());
                let (Some(mut tree), Ok(name)) = (tree, name) else {
                    continue;
                };
                let id = tree.task.guid;
                if stored.is_none_or(|stored| !stored.contains_key(&id)) {
                    self.limit_depth(DepthLimit::for_managing_task(&at));
                }
                let parent = task.guid;
                tree.task = tree.task.managed(ManagedBy { parent, idx }, name);
                value.link = Some(id);
                managed.insert(id, tree);
            }
            steps.push(step);
        }
        TaskTree {
            task,
            steps,
            places: BTreeMap::new(),
            managed,
        }
    }

    fn limit_depth(&mut self, limit: DepthLimit) {
        let mut limit = limit.below(self.depth);
        let violation = &mut limit.violation;
        violation.description = format!("{} {}", violation.path, violation.description);
        violation.path = "revision".to_owned();
        self.depth_limits.push(limit);
    }

    /// What becomes of a managed task of the revision.
    fn managed_target(&mut self, kept: &TaskTree, parent: Target<'a>) -> Target<'a> {
        let id = kept.task.guid;
        if let Some(tree) = parent.stored().and_then(|parent| parent.managed.get(&id)) {
            return Target::Stored(tree);
        }
        match self.outside.get(&id).copied() {
            // A new task takes over no standard task: a restore that undoes this one would not make
            // that standard again.
            Some(tree)
                if !matches!(parent, Target::Replaced)
                    && tree.task.managed.is_none()
                    && is_same(kept, tree) =>
            {
                self.stored.add(tree);
                Target::Stored(tree)
            }
            Some(_) => Target::Replaced,
            None if self.guide.contains(&id) => Target::Replaced,
            None => Target::Undeleted,
        }
    }

    /// The task after the restore. A managed task takes more from its value.
    fn task(&mut self, kept: Task, target: Target<'a>) -> Task {
        let before = target.stored().map(|tree| &tree.task);
        let (former, former_name) = (kept.guid, kept.name.clone());
        let mut after = Task {
            guid: TaskId(self.new_id(former.0, target)),
            managed: None,
            row_version: self.row_version(kept.row_version.created, target),
            ..kept
        };
        if let Some(before) = before {
            after.numbering = before.numbering;
            after.index = before.index.clone();
            after.row_version = before.row_version;
            after.managed = before.managed;
        }
        // A root that another task manages has the name of its answer.
        if let Some(before) = before.filter(|before| before.managed.is_some()) {
            after.name = before.name.clone();
            after.content.external_id = None;
        }
        for language in after.content.translations.keys() {
            let key = (former, language.clone());
            let source = self.kept_sources.tasks.get(&key);
            let source = source.map_or(former_name.as_str(), String::as_str);
            if let Some(before) = before.filter(|it| it.content.translations.contains_key(language))
            {
                let stored = self.stored_sources.tasks.get(&key);
                if source != stored.map_or(before.name.as_str(), String::as_str) {
                    after.row_version = before.row_version.next(self.context.write);
                }
            }
            let key = (after.guid, language.clone());
            self.translated_from.tasks.insert(key, source.to_owned());
        }
        after
    }

    fn step(&mut self, kept: Step, task: TaskId, target: Target<'a>) -> Step {
        let before = target
            .stored()
            .and_then(|_| self.stored.steps.get(&kept.guid));
        let before = before.copied().filter(|before| before.task == task);
        let former = kept.guid;
        let mut after = Step {
            guid: StepId(self.new_id(former.0, target)),
            task,
            link: kept.link.map(|task| self.task_id(task)),
            row_version: self.row_version(kept.row_version.created, target),
            ..kept
        };
        if let Some(before) = before {
            after.r_data = before.r_data.clone();
            after.row_version = before.row_version;
        }
        if after.content.translations.is_empty() {
            return after;
        }
        let source = |step: &Step| (step.title.clone(), SourceDigest::for_step_content(step));
        let (own, stored_own) = (source(&after), before.map(source));
        for language in after.content.translations.keys() {
            let key = (former, language.clone());
            let source = self.kept_sources.steps.get(&key).unwrap_or(&own);
            let stored = self.stored_sources.steps.get(&key).or(stored_own.as_ref());
            if let Some(before) = before.filter(|it| it.content.translations.contains_key(language))
                && stored != Some(source)
            {
                after.row_version = before.row_version.next(self.context.write);
            }
            let key = (after.guid, language.clone());
            self.translated_from.steps.insert(key, source.clone());
        }
        after
    }

    /// The id that a task of the revision gets.
    fn task_id(&self, former: TaskId) -> TaskId {
        TaskId(*self.replaced.get(&former.0).unwrap_or(&former.0))
    }

    /// The id that a task or step gets.
    fn new_id(&mut self, former: Uuid, target: Target<'a>) -> Uuid {
        match target {
            Target::Stored(_) | Target::Undeleted => former,
            Target::Replaced => {
                let id = (self.context.write.new_id)();
                self.replaced.insert(former, id);
                id
            }
        }
    }

    /// The version of a task or step that is not stored.
    fn row_version(&self, created: Timestamp, target: Target<'a>) -> RowVersion {
        let context = self.context.write;
        match target {
            Target::Replaced => RowVersion::first(context.now),
            Target::Stored(_) | Target::Undeleted => RowVersion::after_deletion(created, context),
        }
    }

    /// Sets task, product and title of every subtask step. Leaves out steps whose tasks the account does
    /// not have, and returns their ids in the revision.
    fn resolve_references(&self, tree: &mut TaskTree) -> Vec<StepId> {
        let wanted = tree.all().into_iter().map(|tree| &tree.task);
        let wanted = wanted.map(|task| (task.guid, ReferencedTask::to(task)));
        let wanted: BTreeMap<TaskId, ReferencedTask> = wanted.collect();
        let former = self.replaced.iter().map(|(former, id)| (*id, *former));
        let former: BTreeMap<Uuid, Uuid> = former.collect();
        let mut missing = Vec::new();
        tree.retain_steps(&mut |step| {
            let Some(subtask) = step.kind.subtask() else {
                return true;
            };
            let id = step.link.unwrap_or_else(|| self.task_id(subtask.task));
            let target = wanted.get(&id).or_else(|| self.context.referenced.get(&id));
            match target {
                Some(target) => step.refer_to(target.clone()),
                None => {
                    let id = former.get(&step.guid.0).copied();
                    missing.push(id.map_or(step.guid, StepId));
                }
            }
            target.is_some()
        });
        missing
    }
}

/// Whether a task that is no longer managed is as in the revision, with everything below it.
fn is_same(kept: &TaskTree, stored: &TaskTree) -> bool {
    let (a, b) = (&kept.task, &stored.task);
    let same_task = a.name == b.name && a.product == b.product && a.content == b.content;
    let same_step = |(a, b): (&Step, &Step)| {
        // The title of a subtask step follows the task that it refers to.
        let same_title = a.kind.subtask().is_some() || a.title == b.title;
        a.guid == b.guid
            && same_title
            && a.kind == b.kind
            && a.content == b.content
            && a.link == b.link
    };
    let same_managed = |(task, tree): (&TaskId, &TaskTree)| {
        let stored = stored.managed.get(task);
        stored.is_some_and(|stored| is_same(tree, stored))
    };
    same_task
        && kept.steps.len() == stored.steps.len()
        && kept.steps.iter().zip(&stored.steps).all(same_step)
        && kept.managed.len() == stored.managed.len()
        && kept.managed.iter().all(same_managed)
}
