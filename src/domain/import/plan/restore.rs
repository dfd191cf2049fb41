//! Planning the restore of a guide from a revision. Unlike a document, a revision names every
//! task and step by its id, so that each becomes exactly what it was.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    Error, Precondition, Result,
    changes::{Changes, StepDeletion},
    decide::WriteContext,
    etag::GuideEtag,
    feedback::Feedback,
    history::{KeptGuide, StepSource, TranslatedFrom},
    ids::{StepId, TaskId},
    import::{ImportOutcome, TaskTree},
    nesting::{DepthLimit, MAX_NESTED_DOCUMENTS, limits_of_step},
    order::Numbering,
    row_version::RowVersion,
    step::{ReferencedTask, Step},
    task::{IndexState, ManagedBy, Task},
    time::Timestamp,
    translation::{Language, StepTranslation, TaskTranslation},
    translation_work::SourceDigest,
    violation::{Path, Violation},
};

use super::planned::{PlannedStep, PlannedTask};

/// What the restore of a guide needs.
pub struct RestoreContext<'a> {
    /// What every write needs.
    pub write: &'a WriteContext,
    /// The guide as the revision has it.
    pub kept: &'a KeptGuide,
    /// The guide as it is now; `None` if the task is gone.
    pub stored: Option<&'a TaskTree>,
    /// The tasks that the revision manages and that are outside of the guide now, with
    /// everything below them.
    pub others: &'a [TaskTree],
    /// What outdated translations of `stored` and `others` were made from.
    pub outdated: &'a TranslatedFrom,
    /// Tasks of the account that subtask steps of the revision refer to.
    pub referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    /// Whether subtask steps are left out that refer to tasks which are gone.
    pub skip_missing_subtasks: bool,
}

/// What a restore writes and answers.
#[derive(Debug)]
pub struct RestorePlan {
    /// What is written.
    pub changes: Changes,
    /// The task.
    pub task: Task,
    /// What the restore does with the guide.
    pub outcome: ImportOutcome,
    /// Steps that are left out.
    pub skipped: BTreeSet<StepId>,
    /// New ids of tasks and steps, by those in the revision.
    pub replaced: BTreeMap<Uuid, Uuid>,
    /// The etag of the guide afterwards.
    pub guide_etag: GuideEtag,
}

/// Plans a restore.
pub fn restore(context: RestoreContext<'_>) -> Result<RestorePlan> {
    let mut stored = BTreeMap::new();
    if let Some(tree) = context.stored {
        add_managed(tree, &mut stored);
    }
    let mut outside = BTreeMap::new();
    for tree in context.others {
        outside.insert(tree.task.guid, tree);
        add_managed(tree, &mut outside);
    }
    let mut plan = Restore {
        context,
        stored,
        outside,
        tasks: Vec::new(),
        ids: BTreeMap::new(),
        replaced: BTreeMap::new(),
        skipped: BTreeSet::new(),
        undeleted: Vec::new(),
        limits: Vec::new(),
        translated_from: TranslatedFrom::default(),
    };
    let kept = &plan.context.kept.tree;
    let target = match plan.context.stored {
        Some(tree) => Target::Stored(tree),
        None => Target::Undeleted,
    };
    plan.add_task(kept, target, None, 1);
    plan.resolve_subtasks()?;
    plan.delete_absent_steps();
    plan.finish()
}

/// Adds the managed tasks of a tree at every depth.
fn add_managed<'a>(tree: &'a TaskTree, all: &mut BTreeMap<TaskId, &'a TaskTree>) {
    for (task, tree) in &tree.managed {
        all.insert(*task, tree);
        add_managed(tree, all);
    }
}

/// What becomes of a task of the revision.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// The stored task is brought to its former state.
    Stored(&'a TaskTree),
    /// It was deleted, and comes back under its id.
    Undeleted,
    /// Its id is in use, so it is made anew under another one.
    Replaced,
}

struct Restore<'a> {
    context: RestoreContext<'a>,
    /// The tasks that the guide manages now, at every depth.
    stored: BTreeMap<TaskId, &'a TaskTree>,
    /// Tasks outside of the guide, at every depth.
    outside: BTreeMap<TaskId, &'a TaskTree>,
    /// The tasks of the guide; parents come before the tasks that they manage.
    tasks: Vec<PlannedTask<'a>>,
    /// The ids that tasks of the revision get.
    ids: BTreeMap<TaskId, TaskId>,
    replaced: BTreeMap<Uuid, Uuid>,
    skipped: BTreeSet<StepId>,
    undeleted: Vec<TaskId>,
    /// Limits of the root's depth, if another task manages it.
    limits: Vec<DepthLimit>,
    translated_from: TranslatedFrom,
}

impl<'a> Restore<'a> {
    /// Plans a task with everything below it, and returns its id. `depth` is counted from the
    /// root.
    fn add_task(
        &mut self,
        kept: &'a TaskTree,
        target: Target<'a>,
        managed: Option<ManagedBy>,
        depth: usize,
    ) -> TaskId {
        let before = match target {
            Target::Stored(tree) => Some(tree),
            Target::Undeleted | Target::Replaced => None,
        };
        let task = self.task(kept, target, managed);
        let id = task.guid;
        self.ids.insert(kept.task.guid, id);
        let index = self.tasks.len();
        self.tasks.push(PlannedTask {
            existing: before,
            after: Some(task),
            steps: Vec::new(),
            deleted: Vec::new(),
            places: Vec::new(),
        });
        let stored: BTreeMap<StepId, &Step> = before
            .iter()
            .flat_map(|tree| &tree.steps)
            .map(|step| (step.guid, step))
            .collect();
        let mut steps = Vec::with_capacity(kept.steps.len());
        for step in &kept.steps {
            let before = stored.get(&step.guid).copied();
            let mut after = self.step(step, before, id, target);
            self.limit_depth(step, depth);
            if let Some(question) = after.kind.observation_feedback_mut() {
                self.add_managed_tasks(question, kept, id, target, depth);
            }
            self.set_step_sources(step, before, &mut after);
            steps.push(PlannedStep::new(before, after, None));
        }
        if let Some(planned) = self.tasks.get_mut(index) {
            planned.steps = steps;
        }
        id
    }

    /// The task after the restore. Its list of steps is set when it is completed.
    fn task(&mut self, kept: &TaskTree, target: Target<'a>, managed: Option<ManagedBy>) -> Task {
        let kept = &kept.task;
        let new = || Task {
            guid: kept.guid,
            account: self.context.write.account.clone(),
            managed,
            steps: Vec::new(),
            numbering: Numbering::default(),
            index: IndexState::default(),
            row_version: self.first_row_version(kept.row_version.created, target),
            ..kept.clone()
        };
        let mut after = match target {
            Target::Stored(tree) => Task {
                guid: tree.task.guid,
                account: tree.task.account.clone(),
                // A root that another task manages has the name of its answer.
                name: match (managed, tree.task.managed) {
                    (None, Some(_)) => tree.task.name.clone(),
                    _ => kept.name.clone(),
                },
                product: tree.task.product,
                content: kept.content.clone(),
                managed: managed.or(tree.task.managed),
                steps: tree.task.steps.clone(),
                numbering: tree.task.numbering,
                index: tree.task.index.clone(),
                row_version: tree.task.row_version,
            },
            Target::Undeleted => new(),
            Target::Replaced => {
                let guid = TaskId((self.context.write.new_id)());
                let task = Task { guid, ..new() };
                self.replaced.insert(kept.guid.0, guid.0);
                task
            }
        };
        // It may be managed now and have been a standard task in the revision.
        if after.managed.is_some() {
            after.content.external_id = None;
        }
        let before = match target {
            Target::Stored(tree) => Some(&tree.task),
            Target::Undeleted | Target::Replaced => None,
        };
        if let Target::Undeleted = target {
            self.undeleted.push(after.guid);
        }
        self.set_task_sources(kept, before, &mut after);
        after
    }

    /// The step after the restore. What it refers to is set when all ids are known.
    fn step(&mut self, kept: &Step, before: Option<&Step>, task: TaskId, to: Target<'a>) -> Step {
        let guid = match to {
            Target::Stored(_) | Target::Undeleted => kept.guid,
            Target::Replaced => {
                let guid = StepId((self.context.write.new_id)());
                self.replaced.insert(kept.guid.0, guid.0);
                guid
            }
        };
        let Step {
            guid: _,
            account: _,
            task: _,
            product,
            kind,
            title,
            content,
            link,
            r_data,
            row_version,
        } = kept;
        Step {
            guid,
            account: self.context.write.account.clone(),
            task,
            product: *product,
            kind: kind.clone(),
            title: title.clone(),
            content: content.clone(),
            link: *link,
            r_data: before.map_or(r_data, |before| &before.r_data).clone(),
            row_version: match before {
                Some(before) => before.row_version,
                None => self.first_row_version(row_version.created, to),
            },
        }
    }

    /// The row version of a task or step that is not stored. The number of one that comes back is the
    /// present time in microseconds: larger than any number of writes.
    fn first_row_version(&self, created: Timestamp, target: Target<'a>) -> RowVersion {
        let now = self.context.write.now;
        match target {
            Target::Replaced => RowVersion::first(now),
            Target::Stored(_) | Target::Undeleted => RowVersion {
                version: now.0,
                created,
                ..RowVersion::first(now)
            },
        }
    }

    /// Plans the tasks that a question of the revision manages, and sets its links.
    fn add_managed_tasks(
        &mut self,
        question: &mut Feedback,
        kept: &'a TaskTree,
        parent: TaskId,
        target: Target<'a>,
        depth: usize,
    ) {
        for (index, value) in question.values.iter_mut().enumerate() {
            let Some(tree) = value.link.and_then(|task| kept.managed.get(&task)) else {
                continue;
            };
            let Ok(idx) = i32::try_from(index) else {
                continue;
            };
            let managed = ManagedBy { parent, idx };
            let target = self.target(tree, target);
            value.link = Some(self.add_task(tree, target, Some(managed), depth + 1));
        }
    }

    /// What becomes of a managed task of the revision.
    fn target(&self, kept: &TaskTree, parent: Target<'a>) -> Target<'a> {
        let id = kept.task.guid;
        if let Target::Stored(parent) = parent
            && let Some(tree) = parent.managed.get(&id)
        {
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
                Target::Stored(tree)
            }
            Some(_) => Target::Replaced,
            None if self.stored.contains_key(&id) => Target::Replaced,
            None => Target::Undeleted,
        }
    }

    /// Limits the depth of a managed root, so that the step's JSON and the tasks that it manages
    /// stay within the limits of nesting. The request has no field for them but the revision, so
    /// the description names them.
    fn limit_depth(&mut self, kept: &Step, depth: usize) {
        let is_managed = |tree: &TaskTree| tree.task.managed.is_some();
        if !self.context.stored.is_some_and(is_managed) {
            return;
        }
        let step = format!("step {}", kept.guid);
        let at = Path::root(&step);
        let mut limits = limits_of_step(&kept.content, &at);
        if !kept.managed_tasks().is_empty() {
            limits.push(DepthLimit::of_managing_task(&at));
        }
        let above = depth - 1;
        let limits = limits.into_iter().map(|limit| DepthLimit {
            max_depth: limit.max_depth.saturating_sub(above),
            violation: Violation {
                path: "revision".to_owned(),
                description: format!("{} {}", limit.violation.path, limit.violation.description),
                ..limit.violation
            },
        });
        self.limits.extend(limits);
        debug_assert!(depth <= MAX_NESTED_DOCUMENTS);
    }

    /// Notes what the translations of a task were made from, where that is not stored, and gives
    /// the task another revision then.
    fn set_task_sources(&mut self, kept: &Task, before: Option<&Task>, after: &mut Task) {
        fn sources<'s>(
            task: &'s Task,
            from: &'s TranslatedFrom,
        ) -> Sources<'s, TaskId, TaskTranslation, String> {
            Sources {
                id: task.guid,
                translations: &task.content.translations,
                own: task.name.as_str().to_owned(),
                outdated: &from.tasks,
            }
        }
        let stored = before.map(|task| sources(task, self.context.outdated));
        let changed = sources(kept, &self.context.kept.outdated).not_stored(stored.as_ref());
        if let (Some(before), false) = (before, changed.is_empty()) {
            after.row_version = before.row_version.next(self.context.write.now);
        }
        let changed = changed.into_iter();
        let changed = changed.map(|(language, source)| ((after.guid, language), source));
        self.translated_from.tasks.extend(changed);
    }

    /// As [`Self::set_task_sources`], for a step.
    fn set_step_sources(&mut self, kept: &Step, before: Option<&Step>, after: &mut Step) {
        fn sources<'s>(
            step: &'s Step,
            from: &'s TranslatedFrom,
        ) -> Sources<'s, StepId, StepTranslation, StepSource> {
            Sources {
                id: step.guid,
                translations: &step.content.translations,
                own: (step.title.clone(), SourceDigest::of_step_content(step)),
                outdated: &from.steps,
            }
        }
        if kept.content.translations.is_empty() {
            return;
        }
        let stored = before.map(|step| sources(step, self.context.outdated));
        let changed = sources(kept, &self.context.kept.outdated).not_stored(stored.as_ref());
        if let (Some(before), false) = (before, changed.is_empty()) {
            after.row_version = before.row_version.next(self.context.write.now);
        }
        let changed = changed.into_iter();
        let changed = changed.map(|(language, source)| ((after.guid, language), source));
        self.translated_from.steps.extend(changed);
    }

    /// Sets task, product and title of every subtask step.
    fn resolve_subtasks(&mut self) -> Result<()> {
        let planned = self.tasks.iter().filter_map(|task| task.after.as_ref());
        let planned: BTreeMap<TaskId, ReferencedTask> = planned
            .map(|task| (task.guid, ReferencedTask::to(task)))
            .collect();
        let mut missing = Vec::new();
        for task in &mut self.tasks {
            task.steps.retain_mut(|step| {
                let step = &mut step.after;
                let Some(subtask) = step.kind.subtask() else {
                    return true;
                };
                let id = self.ids.get(&subtask.task).copied().unwrap_or(subtask.task);
                let target = planned
                    .get(&id)
                    .or_else(|| self.context.referenced.get(&id));
                let Some(target) = target else {
                    missing.push(step.guid);
                    return false;
                };
                step.link = step.link.map(|_| target.task);
                step.refer_to(target.clone());
                true
            });
        }
        for step in &mut missing {
            // A step that was to be made anew is named by its id in the revision.
            let mut replaced = self.replaced.iter();
            let former = replaced.find(|(_, new)| **new == step.0);
            if let Some(former) = former.map(|(former, _)| *former) {
                self.replaced.remove(&former);
                step.0 = former;
            }
        }
        if !missing.is_empty() && !self.context.skip_missing_subtasks {
            return Err(Precondition::MissingSubtasks { steps: missing }.into());
        }
        self.skipped.extend(missing);
        Ok(())
    }

    /// Deletes the steps that the revision lacks.
    fn delete_absent_steps(&mut self) {
        for task in &mut self.tasks {
            let listed: BTreeSet<StepId> = task.steps.iter().map(|step| step.after.guid).collect();
            let stored = task.existing.iter().flat_map(|tree| &tree.steps);
            let deleted = stored.filter(|step| !listed.contains(&step.guid));
            task.deleted = deleted.map(StepDeletion::of).collect();
        }
    }

    fn finish(self) -> Result<RestorePlan> {
        let Self {
            context,
            stored: _,
            outside: _,
            mut tasks,
            ids: _,
            replaced,
            skipped,
            undeleted,
            limits,
            translated_from,
        } = self;
        let guide: BTreeSet<TaskId> = tasks
            .iter()
            .filter_map(|task| Some(task.after.as_ref()?.guid))
            .collect();
        let mut changes = Changes {
            translated_from,
            undeleted,
            ..Changes::default()
        };
        let mut revisions = Vec::new();
        for planned in &mut tasks {
            planned.complete(context.write);
        }
        for planned in &tasks {
            let task = planned.after.iter();
            revisions.extend(task.map(|task| (task.guid.0, &task.row_version)));
            let steps = planned.steps.iter().map(|step| &step.after);
            revisions.extend(steps.map(|step| (step.guid.0, &step.row_version)));
        }
        let guide_etag = GuideEtag::of_row_versions(revisions);
        let mut root = None;
        for planned in tasks {
            // What it manages now and the revision does not becomes a standard task.
            let managed = planned.existing.into_iter().flat_map(|tree| &tree.managed);
            for (_, tree) in managed.filter(|(task, _)| !guide.contains(task)) {
                let before = tree.task.clone();
                changes.put_task(Some(before.clone()), before.unmanaged(), context.write)?;
            }
            changes.claimed_ids.extend(planned.claimed_id("revision"));
            let task = planned.add_to(&mut changes, context.write)?;
            root = root.or(task);
        }
        let task = root.ok_or_else(|| Error::Internal("a restore of no task".to_owned()))?;
        if let Some(managed) = context.stored.filter(|tree| tree.task.managed.is_some()) {
            changes.limit_depth(managed.task.guid, limits);
        }
        Ok(RestorePlan {
            outcome: match (context.stored, changes.is_empty()) {
                (None, _) => ImportOutcome::Created,
                (Some(_), false) => ImportOutcome::Updated,
                (Some(_), true) => ImportOutcome::Unchanged,
            },
            changes,
            task,
            skipped,
            replaced,
            guide_etag,
        })
    }
}

/// What the translations of a task or step were made from.
struct Sources<'s, Id, O, S> {
    id: Id,
    translations: &'s BTreeMap<Language, O>,
    /// Its own texts.
    own: S,
    /// Other texts, of outdated translations.
    outdated: &'s BTreeMap<(Id, Language), S>,
}

impl<Id: Copy + Ord, O: PartialEq, S: Clone + PartialEq> Sources<'_, Id, O, S> {
    fn of(&self, language: &Language) -> &S {
        let outdated = self.outdated.get(&(self.id, language.clone()));
        outdated.unwrap_or(&self.own)
    }

    /// The translations that are not stored so, with their sources.
    fn not_stored(&self, stored: Option<&Self>) -> Vec<(Language, S)> {
        let is_stored = |language: &Language, translation: &O| {
            stored.is_some_and(|stored| {
                stored.translations.get(language) == Some(translation)
                    && stored.of(language) == self.of(language)
            })
        };
        let changed = self.translations.iter();
        let changed = changed.filter(|(language, translation)| !is_stored(language, translation));
        changed
            .map(|(language, _)| (language.clone(), self.of(language).clone()))
            .collect()
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
