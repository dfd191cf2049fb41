//! Steps. The type of a step decides which fields are honored and which are
//! required.

use super::{
    Field, REQUIRED, Update, feedback,
    field::{expected_etag, guid, non_blank_text, not_a_value, product, sent_text, text},
    json,
};
use crate::{
    domain::{
        feedback::Feedback,
        ids::{StepId, TaskId},
        step::{
            COST_NOT_ALLOWED, Cost, LINKED_OBSERVATIONS_ONLY, Looping, NewStep, StepKind,
            StepPatch, StepType, SubtaskRef,
        },
        text::{MAX_LIST_ITEMS, Tag, Title},
        violation::Reason,
    },
    messages::{ignored::Ignored, mask::Mask},
    proto::v1,
};

mod fields;

pub use fields::STEP_FIELDS;

pub fn new(mut message: v1::Step, mut at: Field<'_>, ignored: &mut Ignored) -> Option<NewStep> {
    list_system_fields(&message, ignored);
    ignored.add_sent([
        ("guid", !message.guid.is_empty()),
        ("etag", !message.etag.is_empty()),
    ]);
    let task = guid(&message.task, TaskId::parse, at.field("task"));
    let product = product(message.product_id, at.field("product_id"));
    let step_type = step_type(message.r#type, at.field("type"));
    let kind = match step_type {
        Some(step_type) => kind(step_type, &mut message, &mut at, ignored),
        None => untyped(&mut message, &mut at),
    };
    let content = fields::content(message, &mut at);
    Some(NewStep {
        task: task?,
        product: product?,
        kind: kind?,
        content: content?,
    })
}

/// An update of a step.
pub fn update(
    message: v1::Step,
    mask: &Mask,
    mut at: Field<'_>,
    ignored: &mut Ignored,
) -> Option<Update<StepId, StepPatch>> {
    list_system_fields(&message, ignored);
    ignored.add_sent([
        ("task", !message.task.is_empty()),
        ("product_id", message.product_id.is_some()),
        ("type", message.r#type != 0),
        (
            "dependency_shorthand",
            message.dependency_shorthand.is_some(),
        ),
    ]);
    let guid = guid(&message.guid, StepId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let mut patch = fields::patch(message, mask, &mut at);
    let Some(guid) = guid else {
        at.refuse_deferred(patch.title);
        at.refuse_deferred(patch.subtask_id);
        at.refuse_deferred(patch.subtask_pid);
        return None;
    };
    patch.violations = at.take_violations();
    Some(Update {
        guid,
        expected,
        patch,
    })
}

fn step_type(number: i32, mut field: Field<'_>) -> Option<StepType> {
    let step_type = StepType::from_number(number);
    match (step_type, number) {
        (Some(_), _) => {}
        (None, 0) => field.refuse(Reason::FieldRequired, REQUIRED),
        (None, _) => {
            let types = StepType::ALL.map(|step_type| {
                let number = step_type.number();
                let name = v1::StepType::try_from(number).map_or("", |value| value.as_str_name());
                (name, number)
            });
            field.refuse(Reason::FieldInvalid, not_a_value("a type of step", types));
        }
    }
    step_type
}

/// Takes the fields that depend on the type out of the message.
fn kind(
    step_type: StepType,
    message: &mut v1::Step,
    at: &mut Field<'_>,
    ignored: &mut Ignored,
) -> Option<StepKind> {
    let is_subtask = step_type == StepType::Subtask;
    let subtask_id = std::mem::take(&mut message.subtask_id);
    let title = std::mem::take(&mut message.title);
    ignored.add_sent([
        ("title", is_subtask && !title.is_empty()),
        ("subtask_id", !is_subtask && !subtask_id.is_empty()),
        ("subtask_pid", !is_subtask && message.subtask_pid.is_some()),
    ]);
    let title = match is_subtask {
        true => None,
        false => non_blank_text(title, at.field("title")),
    };
    let cost = cost_of(step_type, message.cost, at.field("cost"));
    let list = std::mem::take(&mut message.feedback_config);
    let feedback = feedback_of(step_type, list, at.field("feedback_config"));
    if is_subtask {
        let task = guid(&subtask_id, TaskId::parse, at.field("subtask_id"));
        let product = product(message.subtask_pid, at.field("subtask_pid"));
        let subtask = SubtaskRef {
            task: task?,
            product: product?,
        };
        return Some(StepKind::Subtask { subtask, feedback });
    }
    StepKind::titled(step_type, title?, cost?, feedback)
}

/// Checks a step whose type is missing or unknown, by those rules that are the same for all
/// types that have the field.
fn untyped(message: &mut v1::Step, at: &mut Field<'_>) -> Option<StepKind> {
    let title = sent_text(std::mem::take(&mut message.title));
    let _: Option<Title> = title.and_then(|title| non_blank_text(title, at.field("title")));
    if let Some(number) = message.cost {
        cost(number, at.field("cost"));
    }
    let list = std::mem::take(&mut message.feedback_config);
    feedback::feedback(list, at.field("feedback_config"));
    None
}

fn cost_of(step_type: StepType, sent: Option<i32>, mut field: Field<'_>) -> Option<Cost> {
    match sent {
        None => Some(Cost::default()),
        Some(number) if step_type.has_cost() => cost(number, field),
        Some(0) => Some(Cost::default()),
        Some(_) => {
            field.refuse(Reason::FieldOutOfRange, COST_NOT_ALLOWED);
            None
        }
    }
}

/// The cost of a step whose type may have one.
fn cost(number: i32, mut field: Field<'_>) -> Option<Cost> {
    let cost = Cost::new(number);
    if cost.is_none() {
        field.refuse(Reason::FieldOutOfRange, "must be 0, or 2 and more");
    }
    cost
}

fn feedback_of(
    step_type: StepType,
    list: Vec<v1::FeedbackConfig>,
    mut field: Field<'_>,
) -> Option<Feedback> {
    let is_observation = step_type == StepType::Observation;
    if is_observation && list.is_empty() {
        let description = "is required for an observation";
        field.refuse(Reason::FieldRequired, description);
    }
    let linked = list.iter().any(|config| config.linked == Some(true));
    let feedback = feedback::feedback(list, field.reborrow());
    if !is_observation && linked {
        let mut config = field.index(0);
        let mut linked = config.field("linked");
        linked.refuse(Reason::FieldInvalid, LINKED_OBSERVATIONS_ONLY);
    }
    feedback
}

fn looping(message: v1::Looping, mut field: Field<'_>) -> Option<Looping> {
    let v1::Looping {
        alias,
        array,
        iterations,
    } = message;
    let alias = text(alias, field.field("alias"));
    let array = array.and_then(|array| json::json(array, field.field("array")));
    let iterations = iterations.and_then(|count| json::json(count, field.field("iterations")));
    Some(Looping {
        alias: alias?,
        array,
        iterations,
    })
}

/// Parts, skills or tags: order and duplicates are kept.
fn tags(list: Vec<String>, mut field: Field<'_>) -> Vec<Tag> {
    if !field.at_most(list.len(), MAX_LIST_ITEMS) {
        return Vec::new();
    }
    let tags = list.into_iter().enumerate();
    let tag = |(index, tag)| text(tag, field.index(index));
    tags.filter_map(tag).collect()
}

/// Lists the fields that the system sets and that were sent.
fn list_system_fields(message: &v1::Step, ignored: &mut Ignored) {
    ignored.add_sent([
        ("link", !message.link.is_empty()),
        ("account_id", !message.account_id.is_empty()),
        ("r_data", !message.r_data.is_empty()),
        ("dirty_record", message.dirty_record),
        ("created_ts", message.created_ts.is_some()),
        ("modified_ts", message.modified_ts.is_some()),
    ]);
    feedback::list_ignored(&message.feedback_config, ignored);
    for translation in message.translations.values() {
        feedback::list_ignored_of_translation(&translation.feedback_config, ignored);
    }
}
