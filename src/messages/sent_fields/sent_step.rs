//! A step as it was sent.

use std::{iter::once, sync::Arc};

use prost::Message;
use uuid::Uuid;

use super::{SUBTASK_EXTERNAL_ID, Sent, Source};
use crate::{
    domain::{
        Result,
        decide::SentFields,
        ids::TaskId,
        step::{NewStep, ReferencedTask, Step},
        violation::Violations,
    },
    messages::{bodies::Bodies, decode::step, encode, mask::Mask},
    proto::v1,
};

#[derive(Debug)]
pub struct SentStep(pub Sent);

impl SentStep {
    pub fn new(
        mut message: v1::Step,
        source: Source,
        mask: Arc<Mask>,
        path: &str,
        violations: Violations,
    ) -> Self {
        for id in [&mut message.external_id, &mut message.subtask_external_id] {
            id.take_if(|id| id.is_empty());
        }
        let mut bodies = Bodies::default();
        let translations = message.translations.values_mut().map(|it| &mut it.body);
        let sent = once(&mut message.body).chain(translations).flatten();
        sent.for_each(|body| bodies.take(body));
        Self(Sent {
            path: path.to_owned(),
            source,
            mask,
            message: message.encode_to_vec(),
            bodies,
            violations,
        })
    }

    /// The fields that a stored step does not honor. A wiring step always refers to its managed task.
    fn not_honored_by(&self, stored: &Step) -> Vec<&'static str> {
        let Self(sent) = self;
        if stored.kind.subtask().is_none() {
            return vec![SUBTASK_EXTERNAL_ID, "subtask_id", "subtask_pid"];
        }
        let is_wiring = stored.link.is_some();
        let (keeps_id, keeps_pid) = match sent.source {
            Source::Update => (is_wiring, is_wiring),
            // The product follows the task.
            Source::Document | Source::ManagedDocument => (
                is_wiring && !sent.has("subtask_id"),
                !sent.has("subtask_pid"),
            ),
        };
        let mut fields = vec!["title"];
        fields.extend(is_wiring.then_some(SUBTASK_EXTERNAL_ID));
        fields.extend(keeps_id.then_some("subtask_id"));
        fields.extend(keeps_pid.then_some("subtask_pid"));
        fields
    }

    /// Whether an update would leave a stored subtask step without a task: its mask names the external id
    /// of the task, and the request has neither this id nor another one that the mask names.
    fn clears_subtask(&self, stored: &Step) -> bool {
        let Self(sent) = self;
        let sets = |field| sent.mask.names(field) && sent.has(field);
        let is_honored = stored.kind.subtask().is_some() && stored.link.is_none();
        is_honored
            && sent.mask.names(SUBTASK_EXTERNAL_ID)
            && !sent.has(SUBTASK_EXTERNAL_ID)
            && !sets("subtask_id")
    }
}

impl SentFields<Step, NewStep> for SentStep {
    fn violations(&self) -> Violations {
        let type_dependent = [SUBTASK_EXTERNAL_ID, "subtask_id", "subtask_pid", "title"];
        self.0.check(&type_dependent, step::check)
    }

    fn decode(&self, stored: Option<&Step>, target: Option<&ReferencedTask>) -> Result<NewStep> {
        let Self(sent) = self;
        let mut bodies = sent.bodies.clone();
        let names_subtask = sent.has(SUBTASK_EXTERNAL_ID) && sent.selects(SUBTASK_EXTERNAL_ID);
        let stored = stored.map(|step| {
            let mut encoded = encode::step_without_bodies(step);
            // The stored one follows the task, and does not name it.
            encoded.subtask_external_id.take_if(|_| !names_subtask);
            let encoded = bodies.encode(step, encoded);
            (step, encoded, self.not_honored_by(step))
        });
        if let Some((step, encoded, not_honored)) = &stored
            && sent.source == Source::Document
            && sent.violations.is_empty()
            && sent.mask.keeps_all(encoded, &sent.message, not_honored)
        {
            return Ok(step.to_new());
        }
        let merged = stored.as_ref();
        let merged = merged.map(|(_, encoded, not_honored)| (&encoded[..], &not_honored[..]));
        let mut new = sent.decode(merged, |mut message: v1::Step, mut at| {
            let mut subtask = step::subtask(&message);
            if let Some(target) = target {
                if !(sent.has("subtask_id") && sent.selects("subtask_id")) {
                    subtask.guid = None;
                    message.subtask_id = target.task.to_string();
                }
                if !sent.selects("subtask_pid") {
                    subtask.product = None;
                    message.subtask_pid = Some(target.product.get());
                }
            }
            // The planner finds the task of a step in a document.
            let before = stored.as_ref().map(|(step, ..)| *step);
            let updated = before.filter(|_| sent.source == Source::Update);
            let former = updated.and_then(Step::referenced_task);
            let former = former.filter(|it| message.subtask_id == it.task.to_string());
            // The planner sets the task of a new step.
            let task = before.map_or(TaskId(Uuid::nil()), |step| step.task);
            let new = step::for_task(message, Some(task), &mut at);
            if let Some(target) = target.or(former.as_ref()) {
                at.check(|path, violations| subtask.check(target, path, violations));
            }
            if updated.is_some_and(|step| self.clears_subtask(step)) {
                at.field(SUBTASK_EXTERNAL_ID).required::<()>(None);
            }
            new
        })?;
        bodies.restore(new.content.bodies_mut());
        Ok(new)
    }

    fn ignored(&self, stored: &Step) -> Vec<&'static str> {
        let not_honored = match (self.0.source, stored.kind.subtask()) {
            // The planner lists what it takes from its task.
            (Source::Document, Some(_)) => Vec::new(),
            _ => self.not_honored_by(stored),
        };
        let encoded = || encode::step_without_bodies(stored).encode_to_vec();
        self.0.not_applied(&not_honored, encoded)
    }
}
