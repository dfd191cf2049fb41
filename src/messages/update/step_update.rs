//! An update of a step.

use super::Update;
use crate::{
    domain::{
        Result,
        decide::{SentFields, Updated},
        step::{NewStep, ReferencedTask, Step},
        violation::Violations,
    },
    messages::{
        bodies::Bodies,
        decode::{Field, step},
        mask::Mask,
    },
    proto::v1,
};

pub const SUBTASK_EXTERNAL_ID: &str = "subtask_external_id";
/// The fields that only subtask steps have.
pub const SUBTASK: &[&str] = &[SUBTASK_EXTERNAL_ID, "subtask_id", "subtask_pid"];
/// The fields that a step has only by its type.
const TYPE_DEPENDENT: &[&str] = &[SUBTASK_EXTERNAL_ID, "subtask_id", "subtask_pid", "title"];

#[derive(Debug)]
pub struct StepUpdate {
    /// Its message has numbers in place of bodies.
    pub update: Update,
    message: v1::Step,
    bodies: Bodies,
}

impl StepUpdate {
    pub fn new(mut message: v1::Step, mask: Mask, found: Violations) -> Self {
        for id in [&mut message.external_id, &mut message.subtask_external_id] {
            id.take_if(|id| id.is_empty());
        }
        let mut bodies = Bodies::default();
        bodies.take_from(&mut message);
        Self {
            update: Update::new("step", &message, mask, found),
            message,
            bodies,
        }
    }

    /// The fields that a stored step does not honor. A wiring step always refers to its managed task.
    fn not_honored_by(stored: &Step) -> &'static [&'static str] {
        match (stored.kind.subtask(), stored.link) {
            (None, _) => SUBTASK,
            (Some(_), None) => &["title"],
            (Some(_), Some(_)) => TYPE_DEPENDENT,
        }
    }

    /// Whether the update would leave a stored subtask step without a task: its mask names the external id
    /// of the task, and the request has neither this id nor another one that the mask names.
    fn clears_subtask(&self, stored: &Step) -> bool {
        let update = &self.update;
        let sets = |field| update.mask.names(field) && update.has(field);
        let is_honored = stored.kind.subtask().is_some() && stored.link.is_none();
        is_honored
            && update.mask.names(SUBTASK_EXTERNAL_ID)
            && !update.has(SUBTASK_EXTERNAL_ID)
            && !sets("subtask_id")
    }
}

impl SentFields<Step, NewStep> for StepUpdate {
    fn violations(&self) -> Violations {
        self.update.check(TYPE_DEPENDENT, step::check)
    }

    fn decode(&self, stored: &Step, target: Option<&ReferencedTask>) -> Result<Updated<NewStep>> {
        let update = &self.update;
        let bodies = &self.bodies;
        let names_subtask = update.has(SUBTASK_EXTERNAL_ID) && update.selects(SUBTASK_EXTERNAL_ID);
        let encoded = bodies.encode_stored(stored, &self.message);
        let not_honored = Self::not_honored_by(stored);
        let decode = |mut message: v1::Step, mut at: Field<'_>| {
            // The stored one follows the task, and does not name it.
            message.subtask_external_id.take_if(|_| !names_subtask);
            let mut subtask = step::subtask(&message);
            if let Some(target) = target {
                if !(update.has("subtask_id") && update.selects("subtask_id")) {
                    subtask.guid = None;
                    message.subtask_id = target.task.to_string();
                }
                if !update.selects("subtask_pid") {
                    subtask.product = None;
                    message.subtask_pid = Some(target.product.get());
                }
            }
            let former = stored.referenced_task();
            let former = former.filter(|it| message.subtask_id == it.task.to_string());
            let new = step::for_task(message, Some(stored.task), &mut at);
            if let Some(target) = target.or(former.as_ref()) {
                at.check(|path, violations| subtask.check(target, path, violations));
            }
            if self.clears_subtask(stored) {
                at.field(SUBTASK_EXTERNAL_ID).required::<()>(None);
            }
            new
        };
        let (mut new, ignored) = update.decode(&encoded, not_honored, decode)?;
        bodies.restore(&mut new.content, Some(stored));
        Ok((new, ignored))
    }
}
