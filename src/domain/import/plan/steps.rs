//! Steps of a document, their order, and the tasks that their values manage.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::import::{
    AbsentSteps, Document, DocumentStep, DocumentValue, Says, TaskTree,
    wiring::{Wire, wire_up},
};
use crate::domain::{
    changes::StepDeletion,
    ids::{ProductId, StepId, TaskId},
    link::{LinkChanges, keep_links, linked_tasks},
    patch::{Deferred, Edit},
    step::{NewStep, Step, StepContent, StepKind, StepPatch, SubtaskRef},
    task::ManagedBy,
    text::Name,
    violation::{Path, Reason, Violation, Violations},
};

use super::{Draft, Manager, Planner, Reference};

impl Planner<'_> {
    /// The steps of a task in their new order, and those that go.
    pub(super) fn steps(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        said: Vec<DocumentStep>,
        existing: Option<&TaskTree>,
    ) -> (Vec<Draft>, Vec<StepDeletion>) {
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
            self.violations.add(
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
    ) -> Vec<StepDeletion> {
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
                let deletion = |step: &Step| StepDeletion {
                    step: step.guid,
                    revision: step.revision,
                };
                rest.into_iter().map(deletion).collect()
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
        existing: Option<&TaskTree>,
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
        for violation in [
            take_fault(&mut patch.subtask_id),
            take_fault(&mut patch.subtask_pid),
        ] {
            if let Some(violation) = violation.filter(|_| reference.is_some()) {
                self.violations.push(violation);
            }
        }
        let at = Path::root(path);
        let merged = step.merge_at(patch, None, &at, &mut self.violations);
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
        let mut new = match says.new {
            Ok(new) => NewStep { task, ..new },
            Err(violations) => {
                self.violations.append(violations);
                return None;
            }
        };
        let reference = new.kind.subtask().map(|subtask| Reference {
            task: subtask.task,
            product: Some(subtask.product),
            title,
            path: path.to_owned(),
        });
        let mut links = LinkChanges::default();
        if let StepKind::Observation { feedback, .. } = &mut new.kind {
            links = keep_links(None, feedback);
        }
        // The title of a subtask step comes with its reference.
        let title = new.kind.title().map_or("", |title| title.as_str());
        let title = title.to_owned();
        let after = Step::create(new, title, self.write);
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
        existing: Option<&TaskTree>,
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
                managed: ManagedBy { parent: task, idx },
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
                    Some(step.says.patch.violations)
                } else {
                    step.says.new.err()
                });
                self.check_documents(step.values);
            }
        }
    }

    fn check(&mut self, violations: Option<Violations>) {
        self.violations.append(violations.unwrap_or_default());
    }

    /// Lists nested documents that nothing is made of.
    fn note_documents(&mut self, said: &[DocumentValue], path: &str) {
        if said.iter().any(|value| value.document.is_some()) {
            self.ignore(path, "feedback_config.values.task_json");
        }
    }

    /// A new step that wires a managed task in behind its observation.
    fn wiring_step(&mut self, task: TaskId, observation: &Step) -> Draft {
        let new = NewStep {
            task: observation.task,
            product: observation.product,
            kind: StepKind::Subtask {
                subtask: SubtaskRef {
                    task,
                    product: observation.product,
                },
                feedback: None,
            },
            content: StepContent::default(),
        };
        let after = Step {
            link: Some(task),
            // The title comes with the reference.
            ..Step::create(new, String::new(), self.write)
        };
        Draft {
            before: None,
            after,
            reference: Some(Reference::to(task)),
            wires: None,
        }
    }
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

/// Takes an edit out of a patch and returns what was wrong with it.
fn take_fault<T>(edit: &mut Edit<Deferred<T>>) -> Option<Violation> {
    match std::mem::take(edit) {
        Edit::Set(Err(violation)) => Some(violation),
        Edit::Set(Ok(_)) | Edit::Clear | Edit::Keep => None,
    }
}
