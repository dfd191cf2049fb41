//! New steps. The type decides which fields are honored and which are needed.

use super::{
    REQUIRED, at_most, dependencies, feedback, guid, json, line, product, published, sent_text,
    step_fields::{Asked, Content, Fields, fields, note_system_fields},
    text, translations,
};
use crate::{
    domain::{
        feedback::Feedback,
        ids::TaskId,
        step::{
            COSTLESS, Cost, LINKED_OBSERVATIONS_ONLY, Looping, NewStep, StepContent, StepKind,
            StepType, SubtaskRef,
        },
        task::Published,
        text::{LIST_MAX, Tag, Title},
        violation::{Path, Reason, Violations},
    },
    grpc::ignored::Ignored,
    proto::v1,
};

/// A new step; `at` is where it stands in the request.
pub fn new(
    message: v1::Step,
    at: &Path<'_>,
    faults: &mut Violations,
    ignored: &mut Ignored,
) -> Option<NewStep> {
    note_system_fields(&message, ignored);
    ignored.note([
        ("guid", !message.guid.is_empty()),
        ("etag", !message.etag.is_empty()),
    ]);
    let Fields {
        task,
        product_id,
        r#type,
        asked,
        content,
    } = fields(message);
    let task = guid(&task, TaskId::parse, &at.field("task"), faults);
    let product = product(product_id, &at.field("product_id"), faults);
    let kind = match step_type(r#type, &at.field("type"), faults) {
        Some(of) => kind(of, asked, at, faults, ignored),
        None => untyped(asked, at, faults),
    };
    let content = all_content(content, at, faults);
    Some(NewStep {
        task: task?,
        product: product?,
        kind: kind?,
        content: content?,
    })
}

fn step_type(number: i32, path: &Path<'_>, faults: &mut Violations) -> Option<StepType> {
    let of = StepType::from_number(number);
    match (of, number) {
        (Some(_), _) => {}
        (None, 0) => faults.add(path, Reason::FieldRequired, REQUIRED),
        (None, _) => faults.add(path, Reason::FieldInvalid, "is not a type of step"),
    }
    of
}

/// What a step of a known type asks.
fn kind(
    of: StepType,
    asked: Asked,
    at: &Path<'_>,
    faults: &mut Violations,
    ignored: &mut Ignored,
) -> Option<StepKind> {
    note_unneeded(of, &asked, ignored);
    let Asked {
        title: heading,
        cost: price,
        feedback_config,
        subtask_id,
        subtask_pid,
    } = asked;
    let title = match of {
        StepType::Subtask => None,
        StepType::Solution
        | StepType::Observation
        | StepType::Information
        | StepType::End
        | StepType::Idp => line(heading, &at.field("title"), faults),
    };
    let cost = cost_of(of, price, &at.field("cost"), faults);
    let feedback = question(of, feedback_config, &at.field("feedback_config"), faults);
    if of == StepType::Subtask {
        let subtask = subtask(&subtask_id, subtask_pid, at, faults)?;
        return Some(StepKind::Subtask { subtask, feedback });
    }
    assemble(of, title?, cost?, feedback)
}

/// Lists what was sent and steps of this type do not have.
fn note_unneeded(of: StepType, asked: &Asked, ignored: &mut Ignored) {
    let subtask = of == StepType::Subtask;
    ignored.note([
        ("title", subtask && !asked.title.is_empty()),
        ("subtask_id", !subtask && !asked.subtask_id.is_empty()),
        ("subtask_pid", !subtask && asked.subtask_pid.is_some()),
    ]);
}

/// A step that has a heading of its own.
fn assemble(
    of: StepType,
    title: Title,
    cost: Cost,
    feedback: Option<Feedback>,
) -> Option<StepKind> {
    Some(match of {
        StepType::Solution => StepKind::Solution {
            title,
            cost,
            feedback,
        },
        StepType::Observation => StepKind::Observation {
            title,
            feedback: feedback?,
        },
        StepType::Information => StepKind::Information { title, feedback },
        StepType::Subtask => return None,
        StepType::End => StepKind::End { title, feedback },
        StepType::Idp => StepKind::Idp {
            title,
            cost,
            feedback,
        },
    })
}

/// What is wrong with a step whose type is not known, beyond that.
fn untyped(asked: Asked, at: &Path<'_>, faults: &mut Violations) -> Option<StepKind> {
    let Asked {
        title,
        cost,
        feedback_config,
        subtask_id: _,
        subtask_pid: _,
    } = asked;
    let path = at.field("title");
    let _: Option<Title> = sent_text(title).and_then(|title| line(title, &path, faults));
    if let Some(price) = cost {
        price_tag(price, &at.field("cost"), faults);
    }
    feedback::feedback(feedback_config, &at.field("feedback_config"), faults);
    None
}

fn subtask(
    id: &str,
    pid: Option<i64>,
    at: &Path<'_>,
    faults: &mut Violations,
) -> Option<SubtaskRef> {
    let task = guid(id, TaskId::parse, &at.field("subtask_id"), faults);
    let product = product(pid, &at.field("subtask_pid"), faults);
    Some(SubtaskRef {
        task: task?,
        product: product?,
    })
}

fn cost_of(
    of: StepType,
    price: Option<i32>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Cost> {
    match price {
        None => Some(Cost::default()),
        Some(price) if of.has_cost() => price_tag(price, path, faults),
        Some(0) => Some(Cost::default()),
        Some(_) => {
            faults.add(path, Reason::FieldOutOfRange, COSTLESS);
            None
        }
    }
}

/// What trying costs, for a type that has a cost.
pub fn price_tag(price: i32, path: &Path<'_>, faults: &mut Violations) -> Option<Cost> {
    let cost = Cost::new(price);
    if cost.is_none() {
        let description = "must be 0, or 2 and more";
        faults.add(path, Reason::FieldOutOfRange, description);
    }
    cost
}

fn question(
    of: StepType,
    list: Vec<v1::FeedbackConfig>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Feedback> {
    let observes = of == StepType::Observation;
    if observes && list.is_empty() {
        let description = "is required for an observation";
        faults.add(path, Reason::FieldRequired, description);
    }
    let linked = list.iter().any(|config| config.linked == Some(true));
    let feedback = feedback::feedback(list, path, faults);
    if !observes && linked {
        let path = path.index(0);
        let path = path.field("linked");
        faults.add(&path, Reason::FieldInvalid, LINKED_OBSERVATIONS_ONLY);
    }
    feedback
}

fn all_content(content: Content, at: &Path<'_>, faults: &mut Violations) -> Option<StepContent> {
    let Content {
        body,
        dependencies,
        dependency_shorthand,
        instructions,
        looping: repeats,
        parts,
        published: shown,
        skills,
        tags: labels,
        translations,
    } = content;
    let body = body.and_then(|text| super::body(text, &at.field("body"), faults));
    let dependencies = dependencies::with_shorthand(dependencies, dependency_shorthand, at, faults);
    let instructions = json::instructions(instructions, &at.field("instructions"), faults);
    let looping = repeats.and_then(|repeats| looping(repeats, &at.field("looping"), faults));
    let parts = tags(parts, &at.field("parts"), faults);
    let published = shown.map_or(Some(Published::default()), |shown| {
        published(shown, &at.field("published"), faults)
    });
    let skills = tags(skills, &at.field("skills"), faults);
    let tags = tags(labels, &at.field("tags"), faults);
    let translations = translations::all(translations, &at.field("translations"), faults);
    Some(StepContent {
        body,
        dependencies,
        instructions,
        looping,
        parts,
        published: published?,
        skills,
        tags,
        translations,
    })
}

/// How a step repeats.
pub fn looping(message: v1::Looping, path: &Path<'_>, faults: &mut Violations) -> Option<Looping> {
    let v1::Looping {
        alias,
        array,
        iterations,
    } = message;
    let alias = text(alias, &path.field("alias"), faults);
    let array = array.and_then(|array| json::json(array, &path.field("array"), faults));
    let iterations =
        iterations.and_then(|count| json::json(count, &path.field("iterations"), faults));
    Some(Looping {
        alias: alias?,
        array,
        iterations,
    })
}

/// Parts, skills or tags: order and duplicates are kept.
pub fn tags(list: Vec<String>, path: &Path<'_>, faults: &mut Violations) -> Vec<Tag> {
    if !at_most(list.len(), LIST_MAX, path, faults) {
        return Vec::new();
    }
    let tags = list.into_iter().enumerate();
    let tag = |(index, tag)| text(tag, &path.index(index), faults);
    tags.filter_map(tag).collect()
}
