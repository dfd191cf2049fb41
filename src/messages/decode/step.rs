//! Steps. The type of a step decides which of its fields are honored and which are required.

use super::{
    Field, dependencies, feedback,
    field::{
        self, external_id, guid, non_blank_text, optional_guid, required_product, sent_text, text,
    },
    json, translations,
};
use crate::{
    domain::{
        external_id::ExternalId,
        ids::ProductId,
        ids::TaskId,
        step::{Cost, Looping, NewStep, SentSubtask, StepContent, StepKind, StepType, SubtaskRef},
        text::{MAX_LIST_ITEMS, Tag, Title},
        violation::Reason,
    },
    proto::v1,
};

/// A new step.
pub fn new(message: v1::Step, mut at: Field<'_>) -> Option<NewStep> {
    let task = guid(&message.task, TaskId::parse, at.field("task"));
    for_task(message, task, &mut at)
}

/// A new step of a task. `task` is `None` if it was invalid, which is already reported.
pub fn for_task(message: v1::Step, task: Option<TaskId>, at: &mut Field<'_>) -> Option<NewStep> {
    decode(message, task, true, at)
}

/// Notes violations that do not depend on the type of the step. No field is required.
pub fn check(message: v1::Step, mut at: Field<'_>) {
    decode(message, None, false, &mut at);
}

/// The task that a step names as its subtask. A malformed id counts as not sent.
pub fn subtask(message: &v1::Step) -> SentSubtask {
    SentSubtask {
        guid: TaskId::parse(&message.subtask_id),
        external_id: ExternalId::parse(message.subtask_external_id().to_owned()).ok(),
        product: message.subtask_pid.and_then(ProductId::new),
    }
}

/// Empty external ids count as not sent.
pub fn clear_empty_ids(message: &mut v1::Step) {
    for id in [&mut message.external_id, &mut message.subtask_external_id] {
        id.take_if(|id| id.is_empty());
    }
}

/// The sent fields that the type of a new step does not have.
pub fn not_honored(message: &v1::Step) -> impl Iterator<Item = &'static str> {
    let is_subtask = message.r#type() == v1::StepType::Subtask;
    let has_title = is_subtask && !message.title.is_empty();
    let subtask = subtask_fields(message).filter(move |_| !is_subtask);
    has_title.then_some("title").into_iter().chain(subtask)
}

/// The sent fields that only a subtask step has.
pub fn subtask_fields(message: &v1::Step) -> impl Iterator<Item = &'static str> {
    let fields = [
        (
            "subtask_external_id",
            !message.subtask_external_id().is_empty(),
        ),
        ("subtask_id", !message.subtask_id.is_empty()),
        ("subtask_pid", message.subtask_pid.is_some()),
    ];
    let sent = fields.into_iter().filter(|(_, is_sent)| *is_sent);
    sent.map(|(field, _)| field)
}

/// The step. Unless it is `typed`, its product, its type, and the fields of a type are not
/// required.
fn decode(
    message: v1::Step,
    task: Option<TaskId>,
    typed: bool,
    at: &mut Field<'_>,
) -> Option<NewStep> {
    let sent_subtask = subtask(&message);
    let (title, subtask_id, subtask_pid) = (message.title, message.subtask_id, message.subtask_pid);
    let subtask_external_id = message.subtask_external_id.and_then(sent_text);
    let cost = at.field("cost").optional(message.cost, self::cost);
    let has_question = !message.feedback_config.is_empty();
    let mut configs = message.feedback_config.iter();
    let is_linked = configs.any(|it| it.linked == Some(true));
    let question = feedback::feedback(message.feedback_config, at.field("feedback_config"));
    let content = StepContent {
        body: at.field("body").optional(message.body, field::body),
        dependencies: dependencies::with_shorthand(
            message.dependencies,
            message.dependency_shorthand,
            at,
        ),
        external_id: at
            .field("external_id")
            .optional(message.external_id.and_then(sent_text), external_id),
        instructions: json::instructions(message.instructions, at.field("instructions")),
        looping: at.field("looping").optional(message.looping, looping),
        parts: tags(message.parts, at.field("parts")),
        published: at
            .field("published")
            .optional(message.published, field::published)
            .unwrap_or_default(),
        skills: tags(message.skills, at.field("skills")),
        tags: tags(message.tags, at.field("tags")),
        translations: translations::all(message.translations, at.field("translations")),
    };
    let (mut product, mut step_type) = (None, None);
    if typed {
        product = required_product(message.product_id, at.field("product_id"));
        step_type = at.field("type").enum_value(
            message.r#type,
            "a type of step",
            "StepType",
            StepType::from_repr,
        );
    }
    let title = match step_type {
        // The title is the name of its task.
        Some(StepType::Subtask) => Some(String::new()),
        None if title.is_empty() => None,
        _ => non_blank_text(title, at.field("title")).map(Title::into_string),
    };
    let subtask = match step_type {
        Some(StepType::Subtask) if subtask_external_id.is_none() => {
            let task = guid(&subtask_id, TaskId::parse, at.field("subtask_id"));
            let product = required_product(subtask_pid, at.field("subtask_pid"));
            task.zip(product)
                .map(|(task, product)| SubtaskRef { task, product })
        }
        Some(StepType::Subtask) | None => {
            at.field("subtask_external_id")
                .optional(subtask_external_id, external_id);
            optional_guid(&subtask_id, TaskId::parse, at.field("subtask_id"));
            at.field("subtask_pid")
                .optional(subtask_pid, field::product);
            // The task is found by its external id.
            step_type.map(|_| sent_subtask.unresolved())
        }
        Some(_) => None,
    };
    let (step_type, cost) = (step_type?, cost.unwrap_or_default());
    if cost != Cost::default() && !step_type.has_cost() {
        let description = "must be 0 for this type of step";
        at.field("cost")
            .refuse(Reason::FieldOutOfRange, description);
    }
    let mut at = at.field("feedback_config");
    match step_type {
        StepType::Observation if !has_question => {
            at.refuse(Reason::FieldRequired, "is required for an observation");
        }
        StepType::Observation => {}
        _ if is_linked => {
            let mut element = at.index(0);
            let mut linked = element.field("linked");
            linked.refuse(Reason::FieldInvalid, "only an observation can be linked");
        }
        _ => {}
    }
    Some(NewStep {
        task: task?,
        product: product?,
        title: title?,
        kind: StepKind::new(step_type, cost, question, subtask)?,
        content,
    })
}

/// The cost of a step whose type may have one.
fn cost(number: i32, mut field: Field<'_>) -> Option<Cost> {
    let otherwise = "must be 0, or 2 and more for a solution or an identified problem";
    field.in_range(Cost::new(number), otherwise)
}

fn looping(message: v1::Looping, mut field: Field<'_>) -> Option<Looping> {
    let alias = text(message.alias, field.field("alias"));
    Some(Looping {
        array: field.field("array").optional(message.array, json::json),
        iterations: field
            .field("iterations")
            .optional(message.iterations, json::json),
        alias: alias?,
    })
}

/// Tags, parts and similar lists. Order and duplicates are kept.
fn tags(list: Vec<String>, mut field: Field<'_>) -> Vec<Tag> {
    field
        .elements(list, MAX_LIST_ITEMS, text)
        .unwrap_or_default()
}
