//! Restores: the guide of a revision as the document of an import, in which tasks and steps have the
//! ids that they get.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::{
    decide::WriteContext,
    history::{KeptGuide, TranslatedFrom},
    ids::{StepId, TaskId},
    row_version::RowVersion,
    step::Step,
    task::Task,
    time::Timestamp,
    translation_work::SourceDigest,
};

use super::{Document, DocumentStep, DocumentTask, DocumentValue, Fields, ImportPlan, TaskTree};

/// The guide of a revision.
pub struct RevisionDocument<'a> {
    pub document: Document,
    /// Stored tasks that nobody manages and that are managed again.
    pub unlinked: BTreeMap<TaskId, &'a TaskTree>,
    replaced: BTreeMap<Uuid, Uuid>,
    /// Deleted tasks that come back.
    undeleted: Vec<TaskId>,
    /// What translations were made from.
    translated_from: TranslatedFrom,
}

impl<'a> RevisionDocument<'a> {
    /// The document of a kept guide. `stored` is the guide as it is now; `others` are the tasks of the
    /// revision that are outside of that guide now, with everything below them. `outdated` is what the
    /// outdated translations of these were made from.
    pub fn new(
        kept: KeptGuide,
        stored: Option<&'a TaskTree>,
        others: &'a [TaskTree],
        outdated: &TranslatedFrom,
        context: &WriteContext,
    ) -> Self {
        let (mut managed, mut outside) = (BTreeMap::new(), BTreeMap::new());
        if let Some(tree) = stored {
            add_managed(tree, &mut managed);
        }
        for tree in others {
            outside.insert(tree.task.guid, tree);
            add_managed(tree, &mut outside);
        }
        let mut reader = Reader {
            context,
            kept_sources: kept.outdated,
            stored_sources: outdated,
            managed,
            outside,
            unlinked: BTreeMap::new(),
            replaced: BTreeMap::new(),
            undeleted: Vec::new(),
            translated_from: TranslatedFrom::default(),
        };
        let target = stored.map_or(Target::Undeleted, Target::Stored);
        Self {
            document: reader.document(kept.tree, target),
            unlinked: reader.unlinked,
            replaced: reader.replaced,
            undeleted: reader.undeleted,
            translated_from: reader.translated_from,
        }
    }

    /// Completes the plan of its import. The request has no field for what is refused but the revision, so
    /// descriptions name the rest.
    pub fn complete(self, plan: &mut ImportPlan) {
        plan.changes.undeleted = self.undeleted;
        plan.changes.translated_from = self.translated_from;
        for claimed in &mut plan.changes.claimed_ids {
            claimed.field = "revision".into();
        }
        for (_, limit) in &mut plan.changes.depth_limits {
            let violation = &mut limit.violation;
            violation.description = format!("{} {}", violation.path, violation.description);
            violation.path = "revision".to_owned();
        }
        let replaced = self.replaced.into_iter();
        let is_skipped = |former: &Uuid| plan.imported.skipped.contains(&StepId(*former));
        plan.imported.replaced = replaced.filter(|(id, _)| !is_skipped(id)).collect();
    }
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

struct Reader<'a, 'c> {
    context: &'c WriteContext,
    /// What outdated translations of the revision were made from.
    kept_sources: TranslatedFrom,
    /// What the outdated translations of stored tasks and steps were made from.
    stored_sources: &'c TranslatedFrom,
    /// The tasks that the guide manages now, at every depth.
    managed: BTreeMap<TaskId, &'a TaskTree>,
    /// Tasks outside of the guide, at every depth.
    outside: BTreeMap<TaskId, &'a TaskTree>,
    unlinked: BTreeMap<TaskId, &'a TaskTree>,
    /// New ids of tasks and steps, by their ids in the revision.
    replaced: BTreeMap<Uuid, Uuid>,
    undeleted: Vec<TaskId>,
    translated_from: TranslatedFrom,
}

impl<'a> Reader<'a, '_> {
    fn document(&mut self, kept: TaskTree, target: Target<'a>) -> Document {
        let TaskTree {
            task,
            steps,
            places: _,
            managed,
        } = kept;
        let (former, task) = (task.guid, self.task(task, target));
        // First, as the steps refer to the ids that these get.
        let managed = managed.into_iter().map(|(id, tree)| {
            let target = self.managed_target(&tree, target);
            (id, self.document(tree, target))
        });
        let mut managed: BTreeMap<TaskId, Document> = managed.collect();
        let stored = target.stored().into_iter().flat_map(|tree| &tree.steps);
        let stored: BTreeMap<StepId, &Step> = stored.map(|step| (step.guid, step)).collect();
        let steps = steps.into_iter().map(|step| {
            let before = stored.get(&step.guid).copied();
            let step = Step {
                task: task.guid,
                ..step
            };
            self.step(step, before, target, &mut managed)
        });
        Document {
            path: "revision".to_owned(),
            steps: steps.collect(),
            task: DocumentTask {
                guid: Some(former),
                fields: Fields::Kept(Box::new(task)),
                ..DocumentTask::default()
            },
        }
    }

    /// What becomes of a managed task of the revision.
    fn managed_target(&mut self, kept: &TaskTree, parent: Target<'a>) -> Target<'a> {
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
                self.unlinked.insert(id, tree);
                Target::Stored(tree)
            }
            Some(_) => Target::Replaced,
            None if self.managed.contains_key(&id) => Target::Replaced,
            None => Target::Undeleted,
        }
    }

    /// The task after the restore. A managed task takes more from its value.
    fn task(&mut self, kept: Task, target: Target<'a>) -> Task {
        if let Target::Undeleted = target {
            self.undeleted.push(kept.guid);
        }
        let before = target.stored().map(|tree| &tree.task);
        let guid = TaskId(self.new_id(kept.guid.0, target));
        let mut after = Task {
            guid,
            managed: None,
            row_version: self.row_version(kept.row_version.created, target),
            ..kept.clone()
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
        for language in kept.content.translations.keys() {
            let key = (kept.guid, language.clone());
            let source = self.kept_sources.tasks.get(&key);
            let source = source.map_or(kept.name.as_str(), String::as_str);
            if let Some(before) = before.filter(|it| it.content.translations.contains_key(language))
            {
                let stored = self.stored_sources.tasks.get(&key);
                if source != stored.map_or(before.name.as_str(), String::as_str) {
                    after.row_version = before.row_version.next(self.context.now);
                }
            }
            let key = (guid, language.clone());
            self.translated_from.tasks.insert(key, source.to_owned());
        }
        after
    }

    fn step(
        &mut self,
        mut step: Step,
        before: Option<&Step>,
        target: Target<'a>,
        managed: &mut BTreeMap<TaskId, Document>,
    ) -> DocumentStep {
        let former = step.guid;
        let path = format!("step {former}");
        let guid = StepId(self.new_id(former.0, target));
        let mut row_version = self.row_version(step.row_version.created, target);
        if let Some(before) = before {
            step.r_data = before.r_data.clone();
            row_version = before.row_version;
        }
        if !step.content.translations.is_empty() {
            let source = |step: &Step| (step.title.clone(), SourceDigest::of_step_content(step));
            let (own, stored_own) = (source(&step), before.map(source));
            for language in step.content.translations.keys() {
                let key = (former, language.clone());
                let source = self.kept_sources.steps.get(&key).unwrap_or(&own);
                let stored = self.stored_sources.steps.get(&key).or(stored_own.as_ref());
                if let Some(before) =
                    before.filter(|it| it.content.translations.contains_key(language))
                    && stored != Some(source)
                {
                    row_version = before.row_version.next(self.context.now);
                }
                let key = (guid, language.clone());
                self.translated_from.steps.insert(key, source.clone());
            }
        }
        let task_id = |id: TaskId| TaskId(self.replaced.get(&id.0).copied().unwrap_or(id.0));
        step.link = step.link.map(task_id);
        let mut values = Vec::new();
        if let Some(question) = step.kind.observation_feedback_mut() {
            for value in &mut question.values {
                let document = value.link.and_then(|task| managed.remove(&task));
                value.link = value.link.map(task_id);
                let document = document.map(|document| {
                    let path = path.clone();
                    Box::new(Document { path, ..document })
                });
                let ids = Vec::new();
                values.push(DocumentValue { ids, document });
            }
        }
        let kept = Step {
            guid,
            row_version,
            ..step
        };
        DocumentStep {
            path,
            guid: Some(former),
            values,
            fields: Fields::Kept(Box::new(kept)),
            ..DocumentStep::default()
        }
    }

    /// The id that a task or step gets.
    fn new_id(&mut self, former: Uuid, target: Target<'a>) -> Uuid {
        match target {
            Target::Stored(_) | Target::Undeleted => former,
            Target::Replaced => {
                let id = (self.context.new_id)();
                self.replaced.insert(former, id);
                id
            }
        }
    }

    /// The version of a task or step that is not stored. The number of one that comes back is the
    /// present time in microseconds: larger than any number of writes.
    fn row_version(&self, created: Timestamp, target: Target<'a>) -> RowVersion {
        let first = RowVersion::first(self.context.now);
        match target {
            Target::Replaced => first,
            Target::Stored(_) | Target::Undeleted => RowVersion {
                version: self.context.now.0,
                created,
                ..first
            },
        }
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
