//! Makes the guide that a document wants: one walk down the document. References are resolved at
//! the end, as they may point to tasks further down.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Error, Precondition, Result,
    decide::TranslatedTexts,
    external_id::ExternalId,
    ids::{ProductId, StepId, TaskId},
    nesting::DepthLimit,
    step::{ReferencedTask, SentSubtask, Step},
    task::{MAX_TASK_STEPS, ManagedBy, NewTask, Task, TaskContent, check_languages},
    text::Name,
    translation::Language,
    violation::{Path, Reason, Violations},
};

use super::{
    AbsentFields, AbsentSteps, Document, DocumentPath, DocumentStep, ImportContext, ImportPlan,
    Origin, Origins, TaskTree, document::without_indexes, wanted::StoredResources,
    wanted::WantedGuide,
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

/// Plans an import. The document stays as it is, for another attempt.
pub fn plan(document: &Document, absent: Absent, context: ImportContext<'_>) -> Result<ImportPlan> {
    let mut stored = StoredResources::default();
    if let Some(tree) = context.existing {
        stored.add(tree);
    }
    let mut planner = Planner {
        context,
        absent,
        stored,
        depth: 0,
        task_ids: BTreeMap::new(),
        invalid: BTreeSet::new(),
        listed: BTreeMap::new(),
        origins: Origins::default(),
        depth_limits: Vec::new(),
        ignored: BTreeSet::new(),
        problems: Problems::default(),
    };
    let mut tree = planner.task(Some(document), "", context.existing, None);
    planner.resolve_references(&mut tree);
    planner.problems.into_result()?;
    let wanted = WantedGuide {
        tree,
        stored: planner.stored,
        origins: planner.origins,
        depth_limits: planner.depth_limits,
    };
    let mut plan = wanted.into_plan(&context)?;
    plan.imported.ignored = planner.ignored;
    Ok(plan)
}

struct Planner<'a> {
    context: ImportContext<'a>,
    absent: Absent,
    stored: StoredResources<'a>,
    /// The depth of the task that is planned at the moment: 1 is the outermost.
    depth: usize,
    /// The ids that tasks get, by the document's ids.
    task_ids: BTreeMap<TaskId, TaskId>,
    /// New tasks that are invalid. They are planned with other fields, so that the rest is checked.
    invalid: BTreeSet<TaskId>,
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
    /// Why a task or step was not decoded, if that is not a violation.
    failure: Option<Error>,
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
        if let Some(failure) = self.failure {
            return Err(failure);
        }
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
    /// `None` if the task is invalid.
    product: Option<ProductId>,
    existing: Option<&'a TaskTree>,
    managed: BTreeMap<TaskId, TaskTree>,
    /// How many values manage tasks. Each takes a step, so tasks beyond the limit of steps are checked
    /// but not planned: a small document has room for millions of values.
    value_count: usize,
}

impl<'a> Planner<'a> {
    /// Plans a task with its steps. A managed task inherits fields from the value at `value_path`. If it
    /// has no document, its other fields have their defaults, and it has no steps.
    fn task(
        &mut self,
        document: Option<&'a Document>,
        value_path: &str,
        existing: Option<&'a TaskTree>,
        inherited: Option<InheritedFields>,
    ) -> TaskTree {
        let fields = document.and_then(|document| document.task.fields.as_deref());
        let before = existing.map(|tree| &tree.task);
        let new = match (fields, &inherited) {
            (Some(fields), _) => self.accept(fields.decode(before, None)),
            (None, Some(inherited)) => Some(NewTask {
                name: inherited.name.clone(),
                product: inherited.product,
                content: TaskContent::default(),
            }),
            (None, None) => None,
        };
        let is_valid = new.is_some() || before.is_some();
        let mut task = match (new, before) {
            (Some(new), Some(before)) => before.edited(new),
            (None, Some(before)) => before.clone(),
            (new, None) => {
                let new = new.unwrap_or_else(placeholder);
                let inherited = inherited.as_ref();
                let product = inherited.map_or(new.product, |inherited| inherited.product);
                Task::create(NewTask { product, ..new }, None, self.context.write)
            }
        };
        if let Some(inherited) = inherited {
            task = task.managed(inherited.managed, inherited.name);
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
        let path = match document {
            Some(document) => DocumentPath::Listed(document.task.path.clone()),
            None => DocumentPath::OfValue(value_path.to_owned()),
        };
        let origin = Origin { guid, path };
        self.origins.tasks.insert(task.guid, origin);
        if !is_valid {
            self.invalid.insert(task.guid);
        } else if let (Some(document), Some(fields)) = (document, fields) {
            for field in fields.ignored(&task) {
                self.ignore(&document.task.path, field);
            }
        }
        let mut parent = Parent {
            id: task.guid,
            product: is_valid.then_some(task.product),
            existing,
            managed: BTreeMap::new(),
            value_count: 0,
        };
        self.depth += 1;
        let documents = document.map_or(&[][..], |document| &document.steps);
        let steps = self.steps(&mut parent, documents);
        self.depth -= 1;
        if parent.value_count.max(steps.len()) > MAX_TASK_STEPS {
            let path = document.map_or(value_path, |document| &document.path);
            let description = format!("would give the task more than {MAX_TASK_STEPS} steps");
            let at = Path::root(path);
            self.problems
                .violate(&at.field("steps"), Reason::TooManyElements, description);
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

    /// What was decoded, or `None` and its violations.
    fn accept<T>(&mut self, decoded: Result<T>) -> Option<T> {
        match decoded {
            Ok(decoded) => return Some(decoded),
            Err(Error::Invalid(violations)) => self.problems.violations.append(violations),
            Err(error) => self.problems.failure = Some(error),
        }
        None
    }

    /// Lists a field that was sent and not honored.
    fn ignore(&mut self, path: &str, field: &str) {
        let path = without_indexes(path);
        self.ignored.insert(format!("{path}.{field}"));
    }

    /// Lists a field that was sent with another value than it keeps.
    fn ignore_difference<T: PartialEq>(
        &mut self,
        sent: Option<T>,
        kept: T,
        path: &str,
        field: &str,
    ) {
        if sent.is_some_and(|sent| sent != kept) {
            self.ignore(path, field);
        }
    }

    /// Requires that the task that is planned at the moment is not deeper than a limit.
    fn limit_depth(&mut self, limit: DepthLimit) {
        match limit.below(self.depth.saturating_sub(1)) {
            limit if limit.max_depth == 0 => self.problems.violations.push(limit.violation),
            limit => self.depth_limits.push(limit),
        }
    }

    /// Sets task, product and title of every subtask step.
    fn resolve_references(&mut self, tree: &mut TaskTree) {
        let valid = tree.all().into_iter().map(|tree| &tree.task);
        let valid = valid.filter(|task| !self.invalid.contains(&task.guid));
        let wanted = valid.map(|task| (task.guid, ReferencedTask::to(task)));
        let mut tasks = self.context.referenced.clone();
        tasks.extend(wanted);
        let named = tasks.values();
        let named = named.filter_map(|task| Some((task.external_id.as_ref()?, task.task)));
        let named: BTreeMap<&ExternalId, TaskId> = named.collect();
        tree.retain_steps(&mut |step| {
            self.resolve_reference(step, &tasks, &named);
            true
        });
    }

    /// `named` are the ids of tasks by their external ids.
    fn resolve_reference(
        &mut self,
        step: &mut Step,
        tasks: &BTreeMap<TaskId, ReferencedTask>,
        named: &BTreeMap<&ExternalId, TaskId>,
    ) {
        let Some(subtask) = step.kind.subtask() else {
            return;
        };
        let document = self.listed.get(&step.guid).copied();
        let path = document.map_or("", |document| &document.path);
        let at = Path::root(path);
        let mut sent = document.map_or_else(SentSubtask::default, |it| it.subtask.clone());
        if !sent.names_task() {
            sent.guid = Some(subtask.task);
        }
        let not_found = sent.not_found(&at);
        let known = |id: TaskId| self.task_ids.get(&id).copied().unwrap_or(id);
        sent.guid = sent.guid.map(known);
        if let (Some(link), Some(_)) = (step.link, document) {
            // A wiring step refers to its managed task, whatever was sent.
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
            self.problems.unknown_task.get_or_insert(not_found);
            return;
        };
        if let Some(document) = document {
            sent.check(&target, &at, &mut self.problems.violations);
            let title = document.title.as_deref();
            self.ignore_difference(title, target.name.as_str(), path, "title");
        }
        step.refer_to(target);
    }
}

/// The fields of an invalid task.
#[allow(clippy::expect_used)]
fn placeholder() -> NewTask {
    NewTask {
        name: Name::parse("invalid".to_owned()).expect("a valid name"),
        product: ProductId::new(1).expect("a valid product"),
        content: TaskContent::default(),
    }
}
