//! Tasks and steps as they were sent in an update or a document. The selected fields are merged into
//! the stored task or step, and the result is decoded like a new one. The store does this after it has
//! read what is stored.

use std::{collections::BTreeMap, fmt::Debug, marker::PhantomData, mem::take, sync::Arc};

use prost::Message;
use prost_types::FieldMask;
use uuid::Uuid;

use super::{
    decode::{
        self, Field,
        field::{expected_etag, guid},
        step, task,
    },
    document_masks::DocumentMasks,
    encode,
    fields::{FieldUse, ResourceFields, STEP, TASK},
    ignored::Ignored,
    mask::Mask,
};
use crate::{
    domain::{
        Error, Result,
        decide::{SentFields, UpdateStep, UpdateTask},
        etag::ExpectedEtag,
        ids::{ProductId, StepId, TaskId},
        step::{NewStep, ReferencedTask, Step, check_subtask_product},
        task::{NewTask, Published, Task, check_languages},
        text::{Body, MAX_BODY_CHARS, check},
        translation::MAX_LANGUAGES,
        violation::{Path, Reason, Violations},
    },
    proto::v1,
};

/// The fields that a managed task takes from its value, or does not have.
pub const UNMANAGED_ONLY: &[&str] = &["external_id", "name"];

/// Decodes the step of an update.
pub fn updated_step(
    message: Option<v1::Step>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateStep> {
    let subtask = message.as_ref().map(|step| TaskId::parse(&step.subtask_id));
    let (guid, expected, step) = update(message, StepId::parse, mask, violations, ignored)?;
    Some(UpdateStep {
        guid,
        expected,
        new_subtask: subtask.flatten().filter(|_| step.selects("subtask_id")),
        edits_question: step.selects("feedback_config"),
        fields: Box::new(step),
    })
}

/// Decodes the task of an update.
pub fn updated_task(
    message: Option<v1::Task>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<UpdateTask> {
    let published = message.as_ref().and_then(|task| task.published);
    let published = published.map_or(Some(Published::default()), Published::new);
    let (guid, expected, task) = update(message, TaskId::parse, mask, violations, ignored)?;
    Some(UpdateTask {
        guid,
        expected,
        published: published.filter(|_| task.selects("published")),
        fields: Box::new(task),
    })
}

fn update<M: Resource, Id>(
    message: Option<M>,
    parse: fn(&str) -> Option<Id>,
    mask: Option<FieldMask>,
    violations: &mut Violations,
    ignored: &mut Ignored,
) -> Option<(Id, ExpectedEtag, Sent<M>)> {
    let mask = Arc::new(Mask::parse(mask, M::fields(), violations, ignored));
    let mut at = violations.at(M::NAME);
    let message = at.required(message)?;
    let (id, etag) = message.guid_and_etag();
    let id = guid(id, parse, at.field("guid"));
    let expected = expected_etag(etag, at.field("etag"));
    let sent = Sent::new(message, Source::Update, mask, M::NAME, take(violations));
    if id.is_none() {
        // It is not known which fields it honors.
        *violations = sent.check(&[]);
    }
    Some((id?, expected, sent))
}

/// The task of a document at this path. A managed one takes its name from its value, and its product
/// from its parent. `violations` are those that were found in it already.
pub fn document_task(
    message: v1::Task,
    is_managed: bool,
    masks: &DocumentMasks,
    path: &str,
    violations: Violations,
) -> Box<dyn SentFields<Task, NewTask>> {
    let source = match is_managed {
        true => Source::ManagedDocument,
        false => Source::Document,
    };
    let mask = Arc::clone(&masks.task);
    Box::new(Sent::new(message, source, mask, path, violations))
}

/// The step of a document at this path. `violations` are those that were found in it already.
pub fn document_step(
    message: v1::Step,
    masks: &DocumentMasks,
    path: &str,
    violations: Violations,
) -> Box<dyn SentFields<Step, NewStep>> {
    let mask = Arc::clone(&masks.step);
    Box::new(Sent::new(message, Source::Document, mask, path, violations))
}

/// A task or step as a message.
trait Resource: Message + Default {
    /// The field of an update's request.
    const NAME: &'static str;
    /// The fields that no import changes: a document with other values is told so.
    const FIXED: &'static [&'static str];
    type Translation;

    fn fields() -> &'static ResourceFields;
    fn guid_and_etag(&self) -> (&str, &str);
    fn external_id_mut(&mut self) -> &mut Option<String>;
    fn translations_mut(&mut self) -> &mut BTreeMap<String, Self::Translation>;
    fn bodies_mut(&mut self) -> impl Iterator<Item = &mut String>;
    /// Notes the violations of the sent fields. Nothing is required.
    fn check(self, at: Field<'_>);
}

impl Resource for v1::Task {
    const NAME: &'static str = "task";
    const FIXED: &'static [&'static str] = &["product_id"];
    type Translation = v1::TaskTranslation;

    fn fields() -> &'static ResourceFields {
        &TASK
    }

    fn guid_and_etag(&self) -> (&str, &str) {
        (&self.guid, &self.etag)
    }

    fn external_id_mut(&mut self) -> &mut Option<String> {
        &mut self.external_id
    }

    fn translations_mut(&mut self) -> &mut BTreeMap<String, v1::TaskTranslation> {
        &mut self.translations
    }

    fn bodies_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [].into_iter()
    }

    fn check(self, at: Field<'_>) {
        task::check(self, at);
    }
}

impl Resource for v1::Step {
    const NAME: &'static str = "step";
    const FIXED: &'static [&'static str] = &["product_id", "type"];
    type Translation = v1::StepTranslation;

    fn fields() -> &'static ResourceFields {
        &STEP
    }

    fn guid_and_etag(&self) -> (&str, &str) {
        (&self.guid, &self.etag)
    }

    fn external_id_mut(&mut self) -> &mut Option<String> {
        &mut self.external_id
    }

    fn translations_mut(&mut self) -> &mut BTreeMap<String, v1::StepTranslation> {
        &mut self.translations
    }

    fn bodies_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let translations = self.translations.values_mut();
        let translated = translations.filter_map(|it| it.body.as_mut());
        self.body.iter_mut().chain(translated)
    }

    fn check(self, at: Field<'_>) {
        step::check(self, at);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Update,
    Document,
    /// The document of a managed task.
    ManagedDocument,
}

/// A task or step as it was sent.
#[derive(Debug)]
struct Sent<M> {
    path: String,
    source: Source,
    mask: Arc<Mask>,
    /// It is encoded, with numbers in place of its bodies.
    message: Vec<u8>,
    bodies: Bodies,
    /// The violations of the request that were found already.
    violations: Violations,
    resource: PhantomData<fn() -> M>,
}

impl<M: Resource> Sent<M> {
    fn new(
        mut message: M,
        source: Source,
        mask: Arc<Mask>,
        path: &str,
        violations: Violations,
    ) -> Self {
        message.external_id_mut().take_if(|id| id.is_empty());
        let mut bodies = Bodies::default();
        message.bodies_mut().for_each(|body| bodies.take(body));
        Self {
            path: path.to_owned(),
            source,
            mask,
            message: message.encode_to_vec(),
            bodies,
            violations,
            resource: PhantomData,
        }
    }

    fn has(&self, field: &str) -> bool {
        M::fields().is_sent(field, &self.message)
    }

    /// Whether a field replaces what is stored.
    fn selects(&self, field: &str) -> bool {
        self.mask.selects(field, || self.has(field))
    }

    /// The message as it was sent.
    fn message(&self) -> Result<M> {
        M::decode(&self.message[..]).map_err(|_| undecodable())
    }

    /// An encoded task or step with the sent fields.
    fn merged(&self, stored: &[u8], not_honored: &[&str]) -> Result<M> {
        let merged = self.mask.apply(stored, &self.message, not_honored);
        let message = merged.and_then(|bytes| M::decode(&bytes[..]).ok());
        message.ok_or_else(undecodable)
    }

    /// Whether the sent fields leave an encoded task or step as it is.
    fn keep_all(&self, stored: &[u8], not_honored: &[&str]) -> bool {
        let is_valid = self.violations.is_empty();
        is_valid && self.mask.keeps_all(stored, &self.message, not_honored)
    }

    /// What `decode` returns for a merged message, or all violations of the request.
    fn decode_merged<T>(
        &self,
        mut message: M,
        decode: impl FnOnce(M, Field<'_>) -> Option<T>,
    ) -> Result<T> {
        let mut languages = message.translations_mut().len();
        if languages > MAX_LANGUAGES {
            // Those that were sent are checked all the same. The decoder counts them itself.
            let mut sent = self.merged(&[], &[])?;
            let sent = sent.translations_mut();
            if sent.len() > MAX_LANGUAGES {
                languages = 0;
            }
            *message.translations_mut() = take(sent);
        }
        let decoded = decode::all(|violations| {
            violations.append(self.violations.clone());
            let decoded = decode(message, violations.at(&self.path));
            check_languages(&Path::root(&self.path), languages, violations);
            decoded
        });
        decoded.map_err(Error::from)
    }

    /// The violations of the request, except for fields that are not honored.
    fn check(&self, not_honored: &[&str]) -> Violations {
        let mut violations = self.violations.clone();
        if let Ok(sent) = self.merged(&[], not_honored) {
            sent.check(violations.at(&self.path));
        }
        violations
    }

    /// The fields whose sent values differ from the stored ones and are not applied, and those of
    /// `not_honored` that a mask names. A document is expected to have what the system sets.
    fn not_applied(
        &self,
        not_honored: &[&'static str],
        stored: impl FnOnce() -> M,
    ) -> Vec<&'static str> {
        let is_listed = |field: &str, field_use| {
            not_honored.contains(&field)
                || match self.source {
                    Source::Update => [FieldUse::System, FieldUse::Creation].contains(&field_use),
                    Source::Document | Source::ManagedDocument => M::FIXED.contains(&field),
                }
        };
        let stored = || stored().encode_to_vec();
        let mut ignored = M::fields().differing(&self.message, is_listed, stored);
        if self.source == Source::Update {
            let named = not_honored.iter().copied();
            ignored.extend(named.filter(|field| self.mask.names(field)));
        }
        ignored
    }
}

fn undecodable() -> Error {
    Error::Internal("a sent task or step cannot be decoded".to_owned())
}

/// The fields that a stored task does not honor.
fn not_honored_by(task: &Task) -> &'static [&'static str] {
    match task.managed {
        Some(_) => UNMANAGED_ONLY,
        None => &[],
    }
}

impl SentFields<Task, NewTask> for Sent<v1::Task> {
    fn violations(&self) -> Violations {
        self.check(UNMANAGED_ONLY)
    }

    fn decode(&self, stored: Option<&Task>, _: Option<&ReferencedTask>) -> Result<NewTask> {
        let message = match stored {
            Some(task) => {
                let stored = encode::task(task.clone()).encode_to_vec();
                self.merged(&stored, not_honored_by(task))?
            }
            // The planner replaces name and product.
            None if self.source == Source::ManagedDocument => {
                let sent = self.message()?;
                v1::Task {
                    name: "managed".to_owned(),
                    product_id: Some(sent.product_id.unwrap_or(1)),
                    external_id: None,
                    ..sent
                }
            }
            None => self.message()?,
        };
        self.decode_merged(message, |message, mut at| {
            if self.source == Source::Update && message.roles.is_empty() {
                // A create without roles gives access to everyone.
                let description = "needs at least one access level";
                at.field("roles").refuse(Reason::FieldRequired, description);
            }
            task::new(message, at)
        })
    }

    fn ignored(&self, stored: &Task) -> Vec<&'static str> {
        self.not_applied(not_honored_by(stored), || encode::task(stored.clone()))
    }
}

impl Sent<v1::Step> {
    /// The fields that a stored step does not honor. A wiring step always refers to its managed task.
    fn not_honored_by(&self, stored: &Step) -> Vec<&'static str> {
        if stored.kind.subtask().is_none() {
            return vec!["subtask_id", "subtask_pid"];
        }
        let is_wiring = stored.link.is_some();
        let (keeps_id, keeps_pid) = match self.source {
            Source::Update => (is_wiring, is_wiring),
            // The product follows the task.
            Source::Document | Source::ManagedDocument => (
                is_wiring && !self.has("subtask_id"),
                !self.has("subtask_pid"),
            ),
        };
        let fields = [
            ("title", true),
            ("subtask_id", keeps_id),
            ("subtask_pid", keeps_pid),
        ];
        let fields = fields.into_iter().filter(|(_, is_kept)| *is_kept);
        fields.map(|(field, _)| field).collect()
    }
}

impl SentFields<Step, NewStep> for Sent<v1::Step> {
    fn violations(&self) -> Violations {
        self.check(&["subtask_id", "subtask_pid", "title"])
    }

    fn decode(&self, stored: Option<&Step>, target: Option<&ReferencedTask>) -> Result<NewStep> {
        let mut bodies = self.bodies.clone();
        let mut message = match stored {
            Some(step) => {
                let (encoded, not_honored) = (bodies.encode(step), self.not_honored_by(step));
                if self.source == Source::Document && self.keep_all(&encoded, &not_honored) {
                    return Ok(step.to_new());
                }
                self.merged(&encoded, &not_honored)?
            }
            None => self.message()?,
        };
        if let Some(target) = target.filter(|_| !self.selects("subtask_pid")) {
            message.subtask_pid = Some(target.product.get());
        }
        // A missing task has no product.
        let subtask = stored.filter(|_| self.source == Source::Update);
        let subtask = subtask.and_then(|step| step.kind.subtask());
        let subtask = subtask.filter(|it| message.subtask_id == it.task.to_string());
        let task_product = target
            .map(|target| target.product)
            .or(subtask.map(|subtask| subtask.product));
        let product = message.subtask_pid.and_then(ProductId::new);
        // The planner sets the task of a new step.
        let task = stored.map_or(TaskId(Uuid::nil()), |step| step.task);
        let mut new = self.decode_merged(message, |message, mut at| {
            let new = step::for_task(message, Some(task), &mut at);
            if let (Some(product), Some(task_product)) = (product, task_product) {
                at.check(|path, violations| {
                    check_subtask_product(product, task_product, path, violations);
                });
            }
            new
        })?;
        bodies.restore(new.content.bodies_mut());
        Ok(new)
    }

    fn ignored(&self, stored: &Step) -> Vec<&'static str> {
        let not_honored = match (self.source, stored.kind.subtask()) {
            // The planner lists what it takes from its task.
            (Source::Document, Some(_)) => Vec::new(),
            _ => self.not_honored_by(stored),
        };
        self.not_applied(&not_honored, || encode::step_without_bodies(stored))
    }
}

/// Bodies, which can have megabytes. Messages are merged and decoded with their numbers in place of
/// them, and clones share them.
#[derive(Clone, Debug, Default)]
struct Bodies(Vec<Body>);

impl Bodies {
    /// Takes a body out of a message. One that is refused stays, so that the decoder meets it.
    fn take(&mut self, text: &mut String) {
        if check(text, MAX_BODY_CHARS).is_ok()
            && let Ok(body) = Body::parse(take(text))
        {
            *text = self.number(body);
        }
    }

    /// Equal bodies have the same number.
    fn number(&mut self, body: Body) -> String {
        let known = self.0.iter().position(|known| *known == body);
        let number = known.unwrap_or_else(|| {
            self.0.push(body);
            self.0.len() - 1
        });
        number.to_string()
    }

    /// A stored step, with numbers in place of its bodies.
    fn encode(&mut self, step: &Step) -> Vec<u8> {
        let mut message = encode::step_without_bodies(step);
        message.body = step.content.body.clone().map(|body| self.number(body));
        for (language, translation) in &step.content.translations {
            if let Some(sent) = message.translations.get_mut(language.as_str()) {
                sent.body = translation.body.clone().map(|body| self.number(body));
            }
        }
        message.encode_to_vec()
    }

    /// Puts the bodies back where their numbers are.
    fn restore<'b>(&self, numbers: impl Iterator<Item = &'b mut Body>) {
        for body in numbers {
            if let Some(known) = body
                .as_str()
                .parse()
                .ok()
                .and_then(|it: usize| self.0.get(it))
            {
                *body = known.clone();
            }
        }
    }
}
