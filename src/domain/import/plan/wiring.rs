//! Managed tasks, one for each value of a linked question, and their wiring steps. Each managed
//! task has exactly one wiring step, in the task of the observation that manages it.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::{replace, take},
};

use crate::domain::{
    ids::{ProductId, TaskId},
    import::{AbsentFields, DocumentStep, Origin},
    nesting::DepthLimit,
    step::{NewStep, Step, StepContent, StepKind, SubtaskRef},
    task::ManagedBy,
    text::Name,
    violation::Path,
};

use super::{InheritedFields, Parent, Planner, Target, steps::PlannedStep};

/// A task that a value of a planned step manages.
pub(super) struct ManagedTask {
    pub id: TaskId,
    /// The ids that the document has for it.
    pub in_document: Vec<TaskId>,
    /// The path of the value that manages it, or of its step if the value is not in the document.
    pub value_path: String,
    /// The product of its wiring step: that of the observation.
    pub product: ProductId,
}

impl<'a> Planner<'a> {
    /// Plans the tasks that a step manages, and returns them in value order.
    pub(super) fn managed_tasks(
        &mut self,
        parent: &mut Parent<'a>,
        step: &mut Step,
        document: &'a DocumentStep,
    ) -> Vec<ManagedTask> {
        if document.values.is_empty() {
            // The update keeps the question, and so its managed tasks.
            parent.keep_managed_tasks(step);
            let kept = step.managed_tasks().into_iter().map(|task| ManagedTask {
                id: task,
                in_document: vec![task],
                value_path: document.path.clone(),
                product: step.product,
            });
            return kept.collect();
        }
        let (own_product, product) = (step.product, parent.product);
        let question = step.kind.observation_feedback_mut();
        let Some(question) = question.filter(|question| question.linked) else {
            return Vec::new();
        };
        let mut values = document.values.iter();
        let mut managed = Vec::with_capacity(question.values.len());
        for (index, value) in question.values.iter_mut().enumerate() {
            let in_document = values.next();
            let name = Name::parse(value.value.as_str().to_owned());
            let (Ok(name), Ok(idx)) = (name, i32::try_from(index)) else {
                continue;
            };
            let value_path = format!("{}.feedback_config[0].values[{index}]", document.path);
            let document = in_document.and_then(|value| value.document.as_deref());
            let managed_now = |task: TaskId| parent.existing?.managed.get(&task);
            let target = match (&self.restored, document) {
                (Some(restored), Some(document)) => {
                    restored.managed_target(document, parent.target)
                }
                _ => {
                    let stored = value.link.and_then(managed_now);
                    stored.map_or(Target::New, Target::Stored)
                }
            };
            let stored = target.stored();
            if let Some(tree) = stored {
                self.stored.add(tree);
            }
            if stored
                .and_then(|tree| managed_now(tree.task.guid))
                .is_none()
            {
                let at = document.map_or(&value_path, |document| &document.path);
                self.limit_depth(DepthLimit::for_managing_task(&Path::root(at)));
            }
            let inherited = InheritedFields {
                managed: ManagedBy {
                    parent: parent.id,
                    idx,
                },
                name,
                product,
            };
            let tree = match (document, stored) {
                (None, Some(stored)) if self.absent.fields == AbsentFields::Keep => {
                    let mut tree = stored.clone();
                    tree.task = tree.task.managed(inherited.managed, inherited.name);
                    tree
                }
                _ => self.task(document, &value_path, target, Some(inherited)),
            };
            let id = tree.task.guid;
            value.link = Some(id);
            let mut ids = in_document.map_or_else(Vec::new, |value| value.ids.clone());
            self.task_ids.extend(ids.iter().map(|sent| (*sent, id)));
            ids.push(id);
            parent.managed.insert(id, tree);
            managed.push(ManagedTask {
                id,
                in_document: ids,
                value_path,
                product: own_product,
            });
        }
        managed
    }

    /// Gives every managed task its wiring step. A step that the document lists for it
    /// keeps its place; the others follow their observation, in value order.
    pub(super) fn place_wiring_steps(
        &mut self,
        parent: &Parent<'a>,
        mut steps: Vec<PlannedStep<'a>>,
    ) -> Vec<PlannedStep<'a>> {
        let stored = parent.existing.into_iter().flat_map(|tree| &tree.steps);
        let stored = stored.filter_map(|step| Some((step.link?, step)));
        let stored: BTreeMap<TaskId, &Step> = stored.collect();
        let mut linked = BTreeSet::new();
        let mut candidates = Vec::new();
        for (index, PlannedStep { step, document, .. }) in steps.iter().enumerate() {
            let link = document.and_then(|document| document.link);
            if let Some(task) = step.link {
                linked.insert(task);
            } else if let Some(subtask) = step.kind.subtask()
                // A stored step only becomes a wiring step if it is listed as one, for example
                // after it was unlinked.
                && (link.is_some() || !self.stored.steps.contains_key(&step.guid))
            {
                let subtask = subtask.task;
                candidates.push(Candidate {
                    index,
                    link,
                    subtask,
                });
            }
        }
        let mut added: BTreeMap<usize, Vec<PlannedStep<'a>>> = BTreeMap::new();
        let managed = steps.iter_mut().map(|step| take(&mut step.managed));
        let managed: Vec<Vec<ManagedTask>> = managed.collect();
        for (observation, tasks) in managed.into_iter().enumerate() {
            for task in tasks {
                if linked.contains(&task.id) {
                    continue;
                }
                let stored = stored.get(&task.id).copied();
                let index = take_candidate(&mut candidates, &task);
                let step = index.and_then(|index| steps.get_mut(index));
                // A stored step does not become a different one.
                let is_free = |step: &&mut PlannedStep<'_>| {
                    stored.is_none() || !self.stored.steps.contains_key(&step.step.guid)
                };
                match step.filter(is_free) {
                    Some(step) => self.wire(step, task.id, stored),
                    None => {
                        let step = self.wiring_step(parent.id, task, stored);
                        let added = added.entry(observation).or_default();
                        added.push(PlannedStep::unlisted(step));
                    }
                }
            }
        }
        let mut placed = Vec::with_capacity(steps.len());
        for (index, step) in steps.into_iter().enumerate() {
            placed.push(step);
            placed.extend(added.remove(&index).unwrap_or_default());
        }
        placed
    }

    /// Makes a listed step the wiring step of a task. If it is stored, the document lists it without its
    /// id.
    fn wire(&mut self, listed: &mut PlannedStep<'a>, task: TaskId, stored: Option<&Step>) {
        let Some(stored) = stored else {
            listed.step.link = Some(task);
            return;
        };
        let sent = replace(&mut listed.step, stored.clone());
        let translations = replace(&mut listed.step.content, sent.content).translations;
        let path = listed.document.map_or("", |document| &document.path);
        let after = &mut listed.step.content.translations;
        self.keep_locked(&translations, after, path);
        if listed
            .document
            .is_some_and(|document| document.edits_question)
        {
            listed.step.kind.set_feedback(sent.kind.into_feedback());
        }
    }

    /// The wiring step of a task for which the document lists none.
    fn wiring_step(&mut self, parent: TaskId, managed: ManagedTask, stored: Option<&Step>) -> Step {
        let step = match stored {
            Some(stored) => {
                let mut step = stored.clone();
                if self.absent.fields == AbsentFields::Reset {
                    step.content = StepContent::default();
                    step.kind.set_feedback(None);
                    let translations = &mut step.content.translations;
                    // The path of the observation, in whose list of steps it would be.
                    let path = managed.value_path.rsplit_once(".feedback_config");
                    let path = path.map_or("", |(observation, _)| observation);
                    let stored = &stored.content.translations;
                    self.keep_locked(stored, translations, path);
                }
                step
            }
            None => {
                let (task, product) = (managed.id, managed.product);
                let new = NewStep {
                    task: parent,
                    product,
                    // The title is set when references are resolved.
                    title: String::new(),
                    kind: StepKind::for_subtask(SubtaskRef { task, product }),
                    content: StepContent::default(),
                };
                Step {
                    link: Some(task),
                    ..Step::create(new, self.context.write)
                }
            }
        };
        let origin = Origin {
            guid: None,
            path: managed.value_path,
            is_added_for_value: true,
        };
        self.origins.steps.insert(step.guid, origin);
        step
    }
}

/// A listed subtask step that may become a wiring step.
struct Candidate {
    index: usize,
    /// The document's ids of the task whose wiring step it is, and of the task that it refers to.
    link: Option<TaskId>,
    subtask: TaskId,
}

/// Takes the first step whose `link` names a task, or else the first without `link` that refers to
/// it.
fn take_candidate(candidates: &mut Vec<Candidate>, task: &ManagedTask) -> Option<usize> {
    let is_task = |id: TaskId| task.in_document.contains(&id);
    let is_linked = |it: &Candidate| it.link.is_some_and(is_task);
    let refers = |it: &Candidate| it.link.is_none() && is_task(it.subtask);
    let mut steps = candidates.iter();
    let found = steps.position(is_linked);
    let found = found.or_else(|| candidates.iter().position(refers))?;
    Some(candidates.remove(found).index)
}
