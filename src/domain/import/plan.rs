//! Makes the guide that a document describes, in one pass. References are resolved at the end,
//! because they may point to later tasks.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Error, Precondition, Result,
    decide::TranslatedTexts,
    external_id::ExternalId,
    ids::{ProductId, StepId, TaskId},
    nesting::DepthLimit,
    step::{ReferencedTask, SentSubtask, Step},
    task::{
        MAX_TASK_STEPS, ManagedBy, NewTask, TOO_MANY_STEPS, Task, TaskContent, check_languages,
    },
    text::Name,
    translation::Language,
    violation::{Path, Reason, Violations},
};

use super::{
    AbsentFields, AbsentSteps, Document, DocumentStep, ImportContext, ImportPlan, Origin, Origins,
    TaskTree,
    document::without_indexes,
    restore::RestoredIds,
    wanted::{StoredResources, WantedGuide},
};

mod steps;
mod wiring;

/// What an import keeps, resets or deletes of an existing task.
#[derive(Clone, Copy, Debug)]
pub struct Absent {
    pub steps: AbsentSteps,
    pub fields: AbsentFields,
    /// Whether locked translations stay as they are stored.
    pub keeps_locked: bool,
}

impl Absent {
    /// Fields are kept, and steps that are left out are refused.
    pub const DEFAULT: Self = Self {
        steps: AbsentSteps::Refuse,
        fields: AbsentFields::Keep,
        keeps_locked: false,
    };
}

/// What becomes of a task of a document.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// The stored task is brought to the state of the document.
    Stored(&'a TaskTree),
    /// It was deleted, and comes back under its id.
    Undeleted,
    /// It is created under a new id.
    New,
}

impl<'a> Target<'a> {
    pub fn stored(self) -> Option<&'a TaskTree> {
        match self {
            Self::Stored(tree) => Some(tree),
            Self::Undeleted | Self::New => None,
        }
    }
}

/// Plans an import. The document was decoded against the stored guide.
pub fn plan(document: &Document, absent: Absent, context: ImportContext<'_>) -> Result<ImportPlan> {
    let (plan, _) = plan_with_ids(document, absent, None, context)?;
    Ok(plan)
}

/// Plans an import. The tasks and steps of a revision get their former ids where these are free.
///
/// The valid part of an invalid document is planned, too, so that violations that only a plan finds
/// are reported with those of the fields.
pub(super) fn plan_with_ids<'a>(
    document: &'a Document,
    absent: Absent,
    restored: Option<RestoredIds<'a>>,
    context: ImportContext<'a>,
) -> Result<(ImportPlan, Option<RestoredIds<'a>>)> {
    let mut stored = StoredResources::default();
    if let Some(tree) = context.existing {
        stored.add(tree);
    }
    let target = match (context.existing, &restored) {
        (Some(tree), _) => Target::Stored(tree),
        (None, Some(_)) => Target::Undeleted,
        (None, None) => Target::New,
    };
    let mut planner = Planner {
        context,
        absent,
        restored,
        stored,
        depth: 0,
        task_ids: BTreeMap::new(),
        listed: BTreeMap::new(),
        origins: Origins::default(),
        depth_limits: Vec::new(),
        ignored: document.ignored.clone(),
        problems: Problems {
            violations: document.violations.clone(),
            ..Problems::default()
        },
    };
    let mut tree = planner.task(Some(document), "", target, None);
    planner.resolve_references(&mut tree, document.task.new.is_some());
    planner.problems.into_result()?;
    if !document.is_decoded() {
        let description = "a document without violations is not decoded";
        return Err(Error::Internal(description.to_owned()));
    }
    let wanted = WantedGuide {
        tree,
        stored: planner.stored,
        origins: planner.origins,
        depth_limits: planner.depth_limits,
    };
    let mut plan = wanted.into_plan(&context)?;
    plan.imported.ignored = planner.ignored;
    Ok((plan, planner.restored))
}

struct Planner<'a> {
    context: ImportContext<'a>,
    absent: Absent,
    /// Set if the document is a revision.
    restored: Option<RestoredIds<'a>>,
    stored: StoredResources<'a>,
    /// The depth of the task that is planned at the moment: 1 is the outermost.
    depth: usize,
    /// The ids that tasks get, by the document's ids.
    task_ids: BTreeMap<TaskId, TaskId>,
    /// The steps of the document, by the ids that they get.
    listed: BTreeMap<StepId, &'a DocumentStep>,
    origins: Origins,
    depth_limits: Vec<DepthLimit>,
    /// Fields that were sent and not honored.
    ignored: BTreeSet<String>,
    problems: Problems,
}

/// Why an import is refused. Violations come first.
#[derive(Default)]
struct Problems {
    violations: Violations,
    /// The first step that the task does not have.
    unknown_step: Option<Error>,
    /// The first task that the account does not have.
    unknown_task: Option<Error>,
    /// Steps that the document leaves out although they are to stay.
    absent_steps: Vec<StepId>,
}

impl Problems {
    fn into_result(self) -> Result<()> {
        self.violations.into_result()?;
        if let Some(unknown) = self.unknown_step.or(self.unknown_task) {
            return Err(unknown);
        }
        match self.absent_steps {
            steps if steps.is_empty() => Ok(()),
            steps => Err(Precondition::AbsentSteps { steps }.into()),
        }
    }

    fn violate(&mut self, at: &Path<'_>, reason: Reason, description: impl Into<String>) {
        self.violations.add(at, reason, description);
    }
}

/// The fields that a managed task takes from its value and its parent.
struct InheritedFields {
    managed: ManagedBy,
    name: Name,
    product: ProductId,
}

/// A task whose steps are planned.
struct Parent<'a> {
    id: TaskId,
    product: ProductId,
    target: Target<'a>,
    existing: Option<&'a TaskTree>,
    managed: BTreeMap<TaskId, TaskTree>,
}

impl<'a> Planner<'a> {
    /// Plans a task with its steps. A managed task inherits fields from the value at `value_path`. If it
    /// has no document, its other fields have their defaults, and it has no steps.
    fn task(
        &mut self,
        document: Option<&'a Document>,
        value_path: &str,
        target: Target<'a>,
        inherited: Option<InheritedFields>,
    ) -> TaskTree {
        let existing = target.stored();
        let before = existing.map(|tree| &tree.task);
        let new = match document {
            Some(document) => document.task.new.clone(),
            None => inherited.as_ref().map(|inherited| NewTask {
                name: inherited.name.clone(),
                product: inherited.product,
                content: TaskContent::default(),
            }),
        };
        let mut task = match (before, new) {
            (Some(before), Some(new)) => before.edited(new),
            (Some(before), None) => before.clone(),
            (None, new) => {
                let mut new = new.unwrap_or_else(invalid_task);
                new.product = inherited.as_ref().map_or(new.product, |it| it.product);
                Task::create(new, None, self.context.write)
            }
        };
        if let Some(inherited) = inherited {
            task = task.managed(inherited.managed, inherited.name);
        } else if let Some(before) = before
            && let Some(managed) = before.managed
        {
            task = task.managed(managed, before.name.clone());
        }
        if let (Some(restored), Some(document)) = (&mut self.restored, document) {
            restored.set_task(document, target, &mut task, self.context.write);
        }
        if let Some(before) = before {
            let path = match document {
                Some(document) => document.task.path.clone(),
                None => format!("{value_path}.task_json.task"),
            };
            let translations = &mut task.content.translations;
            let stored = &before.content.translations;
            self.keep_locked(stored, translations, &path);
        }
        let guid = document.and_then(|document| document.task.guid);
        self.task_ids.extend(guid.map(|guid| (guid, task.guid)));
        let origin = Origin {
            guid,
            path: document.map_or(value_path, |it| &it.task.path).to_owned(),
            is_added_for_value: document.is_none(),
        };
        self.origins.tasks.insert(task.guid, origin);
        let mut parent = Parent {
            id: task.guid,
            product: task.product,
            target,
            existing,
            managed: BTreeMap::new(),
        };
        self.depth += 1;
        let documents = document.map_or(&[][..], |document| &document.steps);
        let steps = self.steps(&mut parent, documents);
        self.depth -= 1;
        if steps.len() > MAX_TASK_STEPS {
            let path = document.map_or(value_path, |document| &document.path);
            let at = Path::root(path);
            self.problems
                .violate(&at.field("steps"), Reason::TooManyElements, TOO_MANY_STEPS);
        }
        TaskTree {
            task,
            steps,
            places: BTreeMap::new(),
            managed: parent.managed,
        }
    }

    /// Restores the locked translations of a task or step, if the import keeps them. Lists those that it
    /// would have changed.
    fn keep_locked<T: TranslatedTexts>(
        &mut self,
        stored: &BTreeMap<Language, T>,
        after: &mut BTreeMap<Language, T>,
        path: &str,
    ) {
        if !self.absent.keeps_locked {
            return;
        }
        for (language, translation) in stored.iter().filter(|(_, it)| it.is_locked()) {
            if after.get(language) != Some(translation) {
                after.insert(language.clone(), translation.clone());
                self.ignore(path, &format!("translations.{language}"));
            }
        }
        check_languages(
            &Path::root(path),
            after.len(),
            &mut self.problems.violations,
        );
    }

    /// Lists a field that was sent and not honored.
    fn ignore(&mut self, path: &str, field: &str) {
        let path = without_indexes(path);
        self.ignored.insert(format!("{path}.{field}"));
    }

    /// Requires that the task that is planned at the moment is not deeper than a limit.
    fn limit_depth(&mut self, mut limit: DepthLimit) {
        if self.restored.is_some() {
            let violation = &mut limit.violation;
            violation.description = format!("{} {}", violation.path, violation.description);
            violation.path = "revision".to_owned();
        }
        match limit.below(self.depth.saturating_sub(1)) {
            limit if limit.max_depth == 0 => self.problems.violations.push(limit.violation),
            limit => self.depth_limits.push(limit),
        }
    }

    /// Sets task, product and title of every subtask step. If the outermost task is invalid, no step can
    /// refer to a task of the guide, because their product is not known.
    fn resolve_references(&mut self, tree: &mut TaskTree, is_valid: bool) {
        let wanted = tree.all().into_iter().filter(|_| is_valid);
        let wanted = wanted.map(|tree| &tree.task);
        let wanted = wanted.map(|task| (task.guid, ReferencedTask::to(task)));
        let mut tasks = self.context.referenced.clone();
        tasks.extend(wanted);
        let named = tasks.values();
        let named = named.filter_map(|task| Some((task.external_id.as_ref()?, task.task)));
        let named: BTreeMap<&ExternalId, TaskId> = named.collect();
        tree.retain_steps(&mut |step| self.resolve_reference(step, &tasks, &named));
    }

    /// Returns whether the step stays in the guide. `named` are the ids of tasks by their external ids.
    fn resolve_reference(
        &mut self,
        step: &mut Step,
        tasks: &BTreeMap<TaskId, ReferencedTask>,
        named: &BTreeMap<&ExternalId, TaskId>,
    ) -> bool {
        let Some(subtask) = step.kind.subtask() else {
            return true;
        };
        let document = self.listed.get(&step.guid).copied();
        let path = document.map_or("", |document| &document.path);
        let at = Path::root(path);
        let mut sent = document.map_or_else(SentSubtask::default, |it| it.subtask.clone());
        if !sent.names_task() {
            sent.guid = Some(subtask.task);
        }
        let not_found = sent.not_found(&at);
        let stored = self.stored.steps.get(&step.guid);
        let former_link = stored
            .and_then(|it| it.link)
            .filter(|_| step.link.is_none());
        // A former wiring step still refers to its task, which is no longer managed.
        if former_link.is_none() || sent.guid != former_link || self.restored.is_some() {
            sent.guid = sent.guid.map(|id| self.new_id(id));
        }
        if let (Some(link), Some(_)) = (step.link, document) {
            // A wiring step refers to its managed task, regardless of what was sent.
            if sent.external_id.take().is_some() {
                self.ignore(path, "subtask_external_id");
            }
            if sent.guid.is_some_and(|id| id != link) {
                self.ignore(path, "subtask_id");
                (sent.guid, sent.product) = (None, None);
            }
        }
        let id = step.link.or_else(|| match &sent.external_id {
            Some(id) => named.get(id).copied(),
            None => sent.guid,
        });
        let former = || {
            let former = self.stored.steps.get(&step.guid)?.referenced_task();
            former.filter(|former| Some(former.task) == id)
        };
        let target = id.and_then(|id| tasks.get(&id)).cloned();
        let Some(target) = target.or_else(former) else {
            match &mut self.restored {
                Some(restored) => restored.leave_out(step.guid),
                None => drop(self.problems.unknown_task.get_or_insert(not_found)),
            }
            return false;
        };
        if let Some(document) = document {
            sent.check(&target, &at, &mut self.problems.violations);
            let title = document.title.as_deref();
            if title.is_some_and(|title| title != target.name.as_str()) {
                self.ignore(path, "title");
            }
        }
        step.refer_to(target);
        true
    }

    /// The id that a task of the document gets.
    fn new_id(&self, task: TaskId) -> TaskId {
        self.task_ids.get(&task).copied().unwrap_or(task)
    }
}

/// Stands for a task that is invalid, while the rest of its document is checked.
#[allow(clippy::expect_used)]
fn invalid_task() -> NewTask {
    NewTask {
        name: Name::parse("invalid".to_owned()).expect("the name is valid"),
        product: ProductId::new(1).expect("the product is valid"),
        content: TaskContent::default(),
    }
}
