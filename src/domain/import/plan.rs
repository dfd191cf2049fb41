//! Making the plan: one walk down the document, then references are resolved,
//! as they may point forward.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use crate::domain::{
    Error, Precondition,
    ids::{AccountId, ProductId, StepId, TaskId},
    link::{LinkChanges, carry_over, linked_tasks},
    patch::{Deferred, Edit},
    step::{NewStep, Referenced, Step, StepContent, StepKind, StepPatch, SubtaskRef},
    task::{IndexState, Managed, NewTask, Task},
    text::Name,
    time::Timestamp,
    violation::{Path, Reason, Violation, Violations},
};

use super::{
    AbsentSteps, Context, Document, DocumentStep, DocumentTask, DocumentValue, Plan, PlannedStep,
    PlannedTask, Says, Tree,
    wiring::{Wire, wire_up},
};

/// Plans an import.
pub fn plan(document: Document, context: Context<'_>) -> Result<Plan, Error> {
    let Context {
        account,
        now,
        new_id,
        existing,
        referenced,
        absent,
    } = context;
    let mut planner = Planner {
        account,
        now,
        new_id,
        referenced,
        policy: absent,
        again: existing.is_some(),
        tasks: Vec::new(),
        ignored: BTreeSet::new(),
        faults: Violations::new(),
        unknown: Vec::new(),
        missing: Vec::new(),
        absent: Vec::new(),
        aliases: BTreeMap::new(),
    };
    planner.task(document, existing, None);
    planner.resolve_references();
    planner.finish()
}

/// The value that manages a task.
struct Manager {
    managed: Managed,
    name: Name,
    product: ProductId,
}

/// A step in the making.
#[derive(Debug)]
pub(super) struct Draft {
    /// The step before, if it existed.
    pub before: Option<Step>,
    /// The step after, but for what `reference` says.
    pub after: Step,
    /// The task it refers to, to be resolved.
    pub reference: Option<Reference>,
    /// The task that the document says it wires.
    pub wires: Option<TaskId>,
}

/// A reference of a subtask step as the document writes it.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    /// The document's id of the task.
    pub task: TaskId,
    /// The product that the document gives it.
    pub product: Option<ProductId>,
    /// The title that the document gives the step.
    pub title: Option<String>,
    /// Where the step stands in the request.
    pub path: String,
}

/// A task in the making.
struct TaskDraft {
    before: Option<Task>,
    /// `None` when something is wrong with it.
    after: Option<Task>,
    steps: Vec<Draft>,
    deleted: Vec<StepId>,
}

struct Planner<'a> {
    account: &'a AccountId,
    now: Timestamp,
    new_id: &'a mut (dyn FnMut() -> uuid::Uuid + Send),
    referenced: &'a BTreeMap<TaskId, Referenced>,
    policy: AbsentSteps,
    /// Whether the outermost task existed before.
    again: bool,
    tasks: Vec<TaskDraft>,
    ignored: BTreeSet<String>,
    faults: Violations,
    /// Steps that the document names and the task does not have.
    unknown: Vec<StepId>,
    /// Tasks that the document names and the account does not have.
    missing: Vec<TaskId>,
    /// Steps left out, under a policy that refuses that.
    absent: Vec<StepId>,
    /// The document's ids of tasks it holds.
    aliases: BTreeMap<TaskId, TaskId>,
}

impl Planner<'_> {
    fn task(&mut self, document: Document, existing: Option<&Tree>, by: Option<Manager>) -> TaskId {
        let Document { path, task, steps } = document;
        let alias = task.guid;
        let task_path = format!("{path}.task");
        let id = existing.map_or_else(|| TaskId((self.new_id)()), |tree| tree.task.guid);
        let after = match existing {
            Some(tree) => Some(self.changed_task(tree, task, by, &task_path)),
            None => self.new_task(id, task, by, &task_path),
        };
        if let Some(alias) = alias {
            self.aliases.insert(alias, id);
        }
        let product = after.as_ref().map(|task| task.product);
        // Parents stand before the tasks that they manage.
        let slot = self.tasks.len();
        self.tasks.push(TaskDraft {
            before: existing.map(|tree| tree.task.clone()),
            after,
            steps: Vec::new(),
            deleted: Vec::new(),
        });
        let (steps, deleted) = self.steps(id, product, steps, existing);
        if let Some(draft) = self.tasks.get_mut(slot) {
            draft.steps = steps;
            draft.deleted = deleted;
        }
        id
    }

    fn new_task(
        &mut self,
        guid: TaskId,
        said: DocumentTask,
        by: Option<Manager>,
        path: &str,
    ) -> Option<Task> {
        if let Some(by) = &by {
            self.note_followed(&said, by, path);
        }
        let NewTask {
            name,
            product,
            dependencies,
            published,
            roles,
            translations,
        } = match said.says.new {
            Ok(new) => new,
            Err(faults) => {
                self.faults.append(faults);
                return None;
            }
        };
        let (name, product, managed) = match by {
            None => (name, product, None),
            Some(by) => (by.name, by.product, Some(by.managed)),
        };
        Some(Task {
            guid,
            account: self.account.clone(),
            name,
            product,
            dependencies,
            published,
            roles,
            translations,
            managed,
            steps: Vec::new(),
            version: 1,
            dirty: true,
            index: IndexState::default(),
            created: self.now,
            modified: self.now,
        })
    }

    fn changed_task(
        &mut self,
        tree: &Tree,
        said: DocumentTask,
        by: Option<Manager>,
        path: &str,
    ) -> Task {
        if let Some(by) = &by {
            self.note_followed(&said, by, path);
        } else if said
            .product
            .is_some_and(|product| product != tree.task.product)
        {
            self.ignore(path, "product_id");
        }
        let named = said.name;
        let at = Path::root(path);
        let (mut task, ignored) = tree.task.merge_at(said.says.patch, &at, &mut self.faults);
        match by {
            Some(by) => {
                task.name = by.name;
                task.managed = Some(by.managed);
            }
            // A managed task that is imported by itself keeps its name.
            None if !ignored.is_empty() && named.as_deref() != Some(task.name.as_str()) => {
                self.ignore(path, "name");
            }
            None => {}
        }
        task
    }

    /// Lists what a managed task's document says that follows the value.
    fn note_followed(&mut self, said: &DocumentTask, by: &Manager, path: &str) {
        if said
            .name
            .as_deref()
            .is_some_and(|name| name != by.name.as_str())
        {
            self.ignore(path, "name");
        }
        if said.product.is_some_and(|product| product != by.product) {
            self.ignore(path, "product_id");
        }
    }

    /// A managed task that the document says nothing of but what its value
    /// shows.
    fn follow(&mut self, tree: &Tree, by: Manager) -> TaskId {
        let mut after = tree.task.clone();
        after.name = by.name;
        after.managed = Some(by.managed);
        self.tasks.push(TaskDraft {
            before: Some(tree.task.clone()),
            after: Some(after),
            steps: Vec::new(),
            deleted: Vec::new(),
        });
        tree.task.guid
    }

    /// A task that no value manages any longer.
    fn unlink(&mut self, tree: &Tree) {
        let mut after = tree.task.clone();
        after.managed = None;
        self.tasks.push(TaskDraft {
            before: Some(tree.task.clone()),
            after: Some(after),
            steps: Vec::new(),
            deleted: Vec::new(),
        });
    }

    /// The steps of a task in their new order, and those that go.
    fn steps(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        said: Vec<DocumentStep>,
        existing: Option<&Tree>,
    ) -> (Vec<Draft>, Vec<StepId>) {
        let mut drafts = Vec::with_capacity(said.len());
        let mut wires = Vec::new();
        let mut listed = BTreeSet::new();
        let mut unlinked = BTreeSet::new();
        for step in said {
            let known = match (existing, step.guid) {
                (Some(tree), Some(guid)) => {
                    let found = tree.steps.iter().find(|known| known.guid == guid);
                    self.note_listing(guid, found.is_some(), &step.path, &mut listed);
                    found
                }
                _ => None,
            };
            if known.is_none() && existing.is_some() && step.guid.is_some() {
                continue;
            }
            let position = drafts.len();
            let Some(built) = self.step(task, product, step, known, existing) else {
                continue;
            };
            unlinked.extend(built.links.unlinked);
            wires.extend(built.children.into_iter().map(|(task, aliases)| Wire {
                observation: position,
                task,
                aliases,
            }));
            drafts.push(built.draft);
        }
        let Some(tree) = existing else {
            let steps = wire_up(drafts, wires, &BTreeMap::new(), |wire, after| {
                self.wiring_step(wire, after)
            });
            return (steps, Vec::new());
        };
        let unlisted: BTreeMap<TaskId, &Step> = tree
            .steps
            .iter()
            .filter(|step| !listed.contains(&step.guid))
            .filter_map(|step| Some((step.link?, step)))
            .collect();
        let wired: BTreeSet<TaskId> = wires.iter().map(|wire| wire.task).collect();
        // Every wire whose step stands in the list is done.
        let wires = wires
            .into_iter()
            .filter(|wire| {
                let stands = |draft: &Draft| draft.after.link == Some(wire.task);
                !drafts.iter().any(stands)
            })
            .collect();
        let mut steps = wire_up(drafts, wires, &unlisted, |wire, after| {
            self.wiring_step(wire, after)
        });
        let placed = |step: &Step| {
            listed.contains(&step.guid) || step.link.is_some_and(|task| wired.contains(&task))
        };
        let rest: Vec<&Step> = tree.steps.iter().filter(|step| !placed(step)).collect();
        let deleted = self.absent_steps(rest, &mut steps, &mut unlinked);
        for draft in &mut steps {
            if draft
                .after
                .link
                .is_some_and(|task| unlinked.contains(&task))
            {
                draft.after.link = None;
            }
        }
        for task in &unlinked {
            if let Some(child) = tree.managed.get(task) {
                self.unlink(child);
            }
        }
        (steps, deleted)
    }

    fn note_listing(
        &mut self,
        guid: StepId,
        found: bool,
        path: &str,
        listed: &mut BTreeSet<StepId>,
    ) {
        if !found {
            self.unknown.push(guid);
        } else if !listed.insert(guid) {
            self.faults.add(
                &Path::root(path).field("guid"),
                Reason::FieldInvalid,
                "is the id of another step of the list",
            );
        }
    }

    /// Deals with steps that the document leaves out.
    fn absent_steps(
        &mut self,
        rest: Vec<&Step>,
        steps: &mut Vec<Draft>,
        unlinked: &mut BTreeSet<TaskId>,
    ) -> Vec<StepId> {
        match self.policy {
            AbsentSteps::Refuse => {
                self.absent.extend(rest.iter().map(|step| step.guid));
                Vec::new()
            }
            AbsentSteps::Keep => {
                steps.extend(rest.into_iter().map(|step| Draft::standing(step.clone())));
                Vec::new()
            }
            AbsentSteps::Delete => {
                let gone = rest.iter().filter_map(|step| step.kind.feedback());
                unlinked.extend(gone.flat_map(linked_tasks));
                rest.into_iter().map(|step| step.guid).collect()
            }
        }
    }

    /// One step and the tasks that its values manage.
    fn step(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        said: DocumentStep,
        known: Option<&Step>,
        existing: Option<&Tree>,
    ) -> Option<Built> {
        let DocumentStep {
            path,
            guid: _,
            task: sent_task,
            link,
            step_type,
            product: sent_product,
            title,
            says,
            values,
        } = said;
        // An unreadable question leaves nobody to manage what its values hold.
        let asks = match known {
            Some(_) => matches!(says.patch.feedback, Edit::Set(_)),
            None => says.new.is_ok(),
        };
        let values = if asks {
            values
        } else {
            self.check_documents(values);
            Vec::new()
        };
        if existing.is_some() && sent_task.is_some_and(|sent| sent != task) {
            self.ignore(&path, "task");
        }
        let (mut draft, links) = match known {
            Some(step) => {
                let sent = Sent {
                    kind: step_type.is_some_and(|kind| kind != step.kind.step_type()),
                    product: sent_product.is_some_and(|product| product != step.product),
                };
                self.note_fixed(sent, &path);
                self.changed_step(step, says, title, &path)
            }
            None => self.new_step(task, says, title, &path)?,
        };
        draft.wires = link;
        let children = self.children(task, product, &mut draft.after, values, existing, &path);
        Some(Built {
            draft,
            links,
            children,
        })
    }

    fn note_fixed(&mut self, sent: Sent, path: &str) {
        if sent.kind {
            self.ignore(path, "type");
        }
        if sent.product {
            self.ignore(path, "product_id");
        }
    }

    fn changed_step(
        &mut self,
        step: &Step,
        says: Says<NewStep, StepPatch>,
        title: Option<String>,
        path: &str,
    ) -> (Draft, LinkChanges) {
        let mut patch = says.patch;
        let reference = step.kind.subtask().map(|subtask| {
            let task = patch.new_subtask();
            let product = match &patch.subtask_pid {
                Edit::Set(Ok(product)) => Some(*product),
                Edit::Set(Err(_)) | Edit::Clear | Edit::Keep => None,
            };
            Reference {
                task: task.unwrap_or(subtask.task),
                product,
                title,
                path: path.to_owned(),
            }
        });
        // References are resolved when every task of the document is known.
        for fault in [
            take_fault(&mut patch.subtask_id),
            take_fault(&mut patch.subtask_pid),
        ] {
            if let Some(fault) = fault.filter(|_| reference.is_some()) {
                self.faults.push(fault);
            }
        }
        let at = Path::root(path);
        let merged = step.merge_at(patch, None, &at, &mut self.faults);
        // What a subtask step takes from elsewhere counts as ignored only if it
        // differs, which is known when references are resolved.
        if step.kind.subtask().is_none() {
            for field in merged.ignored {
                self.ignore(path, field);
            }
        }
        let draft = Draft {
            before: Some(step.clone()),
            after: merged.step,
            reference,
            wires: None,
        };
        (draft, merged.links)
    }

    fn new_step(
        &mut self,
        task: TaskId,
        says: Says<NewStep, StepPatch>,
        title: Option<String>,
        path: &str,
    ) -> Option<(Draft, LinkChanges)> {
        let NewStep {
            task: _,
            product,
            mut kind,
            content,
        } = match says.new {
            Ok(new) => new,
            Err(faults) => {
                self.faults.append(faults);
                return None;
            }
        };
        let reference = kind.subtask().map(|subtask| Reference {
            task: subtask.task,
            product: Some(subtask.product),
            title,
            path: path.to_owned(),
        });
        let mut links = LinkChanges::default();
        if let StepKind::Observation { feedback, .. } = &mut kind {
            links = carry_over(None, feedback);
        }
        let heading = kind.title().map_or("", |title| title.as_str()).to_owned();
        let after = Step {
            guid: StepId((self.new_id)()),
            account: self.account.clone(),
            task,
            product,
            kind,
            title: heading,
            content,
            link: None,
            r_data: Map::new(),
            dirty: true,
            version: 1,
            created: self.now,
            modified: self.now,
        };
        let draft = Draft {
            before: None,
            after,
            reference,
            wires: None,
        };
        Some((draft, links))
    }

    /// Plans the tasks that a linked question's values manage, and returns them
    /// in value order with the document's ids for them.
    fn children(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        step: &mut Step,
        said: Vec<DocumentValue>,
        existing: Option<&Tree>,
        path: &str,
    ) -> Vec<(TaskId, Vec<TaskId>)> {
        let product = product.unwrap_or(step.product);
        let StepKind::Observation { feedback, .. } = &mut step.kind else {
            self.note_documents(&said, path);
            return Vec::new();
        };
        if !feedback.linked {
            self.note_documents(&said, path);
            return Vec::new();
        }
        let restated = !said.is_empty();
        let mut said = said.into_iter();
        let mut children = Vec::new();
        for (index, value) in feedback.values.iter_mut().enumerate() {
            let DocumentValue {
                mut aliases,
                document,
            } = said.next().unwrap_or_default();
            let known = value
                .link
                .and_then(|task| existing.and_then(|tree| tree.managed.get(&task)));
            if !restated {
                // The question stays as it was, and so do its tasks.
                children.extend(value.link.map(|task| (task, vec![task])));
                continue;
            }
            let (Ok(name), Ok(idx)) = (
                Name::parse(value.value.as_str().to_owned()),
                i32::try_from(index),
            ) else {
                continue;
            };
            let by = Manager {
                managed: Managed { parent: task, idx },
                name,
                product,
            };
            let child = match (known, document) {
                (Some(tree), None) => self.follow(tree, by),
                (known, Some(document)) => self.task(document, known, Some(by)),
                (None, None) => {
                    let bare = Document::bare(by.name.clone(), by.product);
                    self.task(bare, None, Some(by))
                }
            };
            for alias in &aliases {
                self.aliases.insert(*alias, child);
            }
            value.link = Some(child);
            aliases.push(child);
            children.push((child, aliases));
        }
        children
    }

    /// Notes what is wrong with documents that stand below something that is
    /// wrong itself.
    fn check_documents(&mut self, said: Vec<DocumentValue>) {
        for document in said.into_iter().filter_map(|value| value.document) {
            self.check(document.task.says.new.err());
            for step in document.steps {
                let may_exist = self.again && step.guid.is_some();
                self.check(if may_exist {
                    Some(step.says.patch.faults)
                } else {
                    step.says.new.err()
                });
                self.check_documents(step.values);
            }
        }
    }

    fn check(&mut self, faults: Option<Violations>) {
        self.faults.append(faults.unwrap_or_default());
    }

    /// Lists nested documents that nothing is made of.
    fn note_documents(&mut self, said: &[DocumentValue], path: &str) {
        if said.iter().any(|value| value.document.is_some()) {
            self.ignore(path, "feedback_config.values.task_json");
        }
    }

    /// A new step that wires a managed task in behind its observation.
    fn wiring_step(&mut self, task: TaskId, observation: &Step) -> Draft {
        let subtask = SubtaskRef {
            task,
            product: observation.product,
        };
        let after = Step {
            guid: StepId((self.new_id)()),
            account: self.account.clone(),
            task: observation.task,
            product: observation.product,
            kind: StepKind::Subtask {
                subtask,
                feedback: None,
            },
            title: String::new(),
            content: StepContent::default(),
            link: Some(task),
            r_data: Map::new(),
            dirty: true,
            version: 1,
            created: self.now,
            modified: self.now,
        };
        Draft {
            before: None,
            after,
            reference: Some(Reference::to(task)),
            wires: None,
        }
    }

    /// Lists something that was sent and not honored.
    fn ignore(&mut self, path: &str, field: &str) {
        let plain = without_indexes(path);
        self.ignored.insert(format!("{plain}.{field}"));
    }

    /// Gives every subtask step its task and that task's name.
    fn resolve_references(&mut self) {
        let planned: BTreeMap<TaskId, Referenced> = self
            .tasks
            .iter()
            .filter_map(|draft| draft.after.as_ref())
            .map(|task| (task.guid, Referenced::to(task)))
            .collect();
        let mut tasks = std::mem::take(&mut self.tasks);
        for draft in tasks.iter_mut().flat_map(|task| &mut task.steps) {
            if let Some(reference) = draft.reference.take() {
                self.resolve(draft, reference, &planned);
            }
        }
        self.tasks = tasks;
    }

    fn resolve(
        &mut self,
        draft: &mut Draft,
        reference: Reference,
        planned: &BTreeMap<TaskId, Referenced>,
    ) {
        let Reference {
            task,
            product,
            title,
            path,
        } = reference;
        let sent = self.aliases.get(&task).copied().unwrap_or(task);
        // A wiring step refers to the task that it wires, whatever was sent.
        let id = draft.after.link.unwrap_or(sent);
        if id != sent && !path.is_empty() {
            self.ignore(&path, "subtask_id");
        }
        let found = planned.get(&id).or_else(|| self.referenced.get(&id));
        let stood = || stood(draft.before.as_ref()?, id);
        let Some(target) = found.cloned().or_else(stood) else {
            self.missing.push(task);
            return;
        };
        if let Some(product) = product.filter(|_| id == sent) {
            target.check_product(product, &Path::root(&path), &mut self.faults);
        }
        if title.is_some_and(|title| title != target.name.as_str()) {
            self.ignore(&path, "title");
        }
        if let StepKind::Subtask { subtask, .. } = &mut draft.after.kind {
            *subtask = SubtaskRef {
                task: target.task,
                product: target.product,
            };
            draft.after.title = target.name.into_string();
        }
    }

    fn finish(self) -> Result<Plan, Error> {
        if !self.faults.is_empty() {
            return Err(Error::Invalid(self.faults));
        }
        if let Some(step) = self.unknown.first() {
            return Err(Error::StepNotFound(*step));
        }
        if let Some(task) = self.missing.first() {
            return Err(Error::TaskNotFound(*task));
        }
        if !self.absent.is_empty() {
            return Err(Precondition::AbsentSteps { steps: self.absent }.into());
        }
        let now = self.now;
        let tasks = self
            .tasks
            .into_iter()
            .filter_map(|draft| draft.settle(now))
            .collect();
        Ok(Plan {
            tasks,
            ignored: self.ignored,
        })
    }
}

/// A path as receipts name it: list indexes and map keys left out.
pub fn without_indexes(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut depth = 0_u32;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// A step of the document and what comes with it.
struct Built {
    draft: Draft,
    links: LinkChanges,
    children: Vec<(TaskId, Vec<TaskId>)>,
}

/// Which fixed fields were sent with another value.
struct Sent {
    kind: bool,
    product: bool,
}

/// The task that a step referred to before, if it is this one: it need not be
/// looked up.
fn stood(before: &Step, task: TaskId) -> Option<Referenced> {
    let subtask = before.kind.subtask()?;
    let name = Name::parse(before.title.clone()).ok()?;
    (subtask.task == task).then_some(Referenced {
        task,
        product: subtask.product,
        name,
    })
}

/// Takes an edit out of a patch and returns what was wrong with it.
fn take_fault<T>(edit: &mut Edit<Deferred<T>>) -> Option<Violation> {
    match std::mem::take(edit) {
        Edit::Set(Err(fault)) => Some(fault),
        Edit::Set(Ok(_)) | Edit::Clear | Edit::Keep => None,
    }
}

impl Draft {
    /// A step that stays as it is.
    pub fn standing(step: Step) -> Self {
        Self {
            before: Some(step.clone()),
            reference: step
                .kind
                .subtask()
                .map(|subtask| Reference::to(subtask.task)),
            after: step,
            wires: None,
        }
    }
}

impl Reference {
    /// A reference that the document does not write.
    pub fn to(task: TaskId) -> Self {
        Self {
            task,
            product: None,
            title: None,
            path: String::new(),
        }
    }
}

impl TaskDraft {
    /// The task with its new order and, where something changed, its new
    /// version.
    fn settle(self, now: Timestamp) -> Option<PlannedTask> {
        let Self {
            before,
            after,
            steps,
            deleted,
        } = self;
        let mut after = after?;
        let restated = !steps.is_empty() || !deleted.is_empty();
        let steps: Vec<PlannedStep> = steps.into_iter().map(|draft| draft.settle(now)).collect();
        if restated {
            after.steps = steps.iter().map(|step| step.after.guid).collect();
        }
        if before.as_ref().is_some_and(|before| *before != after) {
            after.version += 1;
            after.dirty = true;
            after.modified = now;
        }
        Some(PlannedTask {
            before,
            after,
            steps,
            deleted,
        })
    }
}

impl Draft {
    fn settle(self, now: Timestamp) -> PlannedStep {
        let Self {
            before, mut after, ..
        } = self;
        if before.as_ref().is_some_and(|before| *before != after) {
            after.version += 1;
            after.dirty = true;
            after.modified = now;
        }
        PlannedStep { before, after }
    }
}
