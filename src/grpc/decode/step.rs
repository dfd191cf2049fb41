//! New steps. The type decides which fields are honored and which are needed.

use prost_types::Struct;
use std::collections::BTreeMap;

use super::{
    REQUIRED, at_most, dependencies, feedback, guid, json, line, product, published, required,
    sent_text, text, translations,
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

/// Where a step stands in requests.
pub const STEP: Path<'static> = Path::root("step");

/// A new step.
pub fn new(message: v1::Step, faults: &mut Violations, ignored: &mut Ignored) -> Option<NewStep> {
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
    let task = guid(&task, TaskId::parse, &STEP.field("task"), faults);
    let product = product(product_id, &STEP.field("product_id"), faults);
    let kind = match step_type(r#type, faults) {
        Some(of) => kind(of, asked, faults, ignored),
        None => untyped(asked, faults),
    };
    let content = all_content(content, faults);
    Some(NewStep {
        task: task?,
        product: product?,
        kind: kind?,
        content: content?,
    })
}

/// The fields of a step that a caller may set.
pub struct Fields {
    /// The task it belongs to.
    pub task: String,
    /// The product it is about.
    pub product_id: Option<i64>,
    /// What it asks.
    pub r#type: i32,
    /// What the type decides about.
    pub asked: Asked,
    /// What steps of every type have.
    pub content: Content,
}

/// The fields of a step that its type decides about, as they were sent.
pub struct Asked {
    /// The heading.
    pub title: String,
    /// What trying costs.
    pub cost: Option<i32>,
    /// The question.
    pub feedback_config: Vec<v1::FeedbackConfig>,
    /// The task of a subtask.
    pub subtask_id: String,
    /// Its product.
    pub subtask_pid: Option<i64>,
}

/// The fields that steps of every type have, as they were sent.
pub struct Content {
    /// The text.
    pub body: Option<String>,
    /// When it is visible.
    pub dependencies: Option<v1::DependencyGroup>,
    /// The same in short form.
    pub dependency_shorthand: Option<String>,
    /// Instructions.
    pub instructions: Vec<Struct>,
    /// How it repeats.
    pub looping: Option<v1::Looping>,
    /// Parts needed.
    pub parts: Vec<String>,
    /// Whether it is shown.
    pub published: Option<i32>,
    /// Skills needed.
    pub skills: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Its texts in other languages.
    pub translations: BTreeMap<String, v1::StepTranslation>,
}

/// Takes a step apart; what the system sets is dropped.
pub fn fields(message: v1::Step) -> Fields {
    let v1::Step {
        guid: _,
        task,
        product_id,
        r#type,
        title,
        body,
        cost,
        dependencies,
        dependency_shorthand,
        feedback_config,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        subtask_id,
        subtask_pid,
        translations,
        link: _,
        etag: _,
        account_id: _,
        r_data: _,
        dirty_record: _,
        created_ts: _,
        modified_ts: _,
    } = message;
    Fields {
        task,
        product_id,
        r#type,
        asked: Asked {
            title,
            cost,
            feedback_config,
            subtask_id,
            subtask_pid,
        },
        content: Content {
            body,
            dependencies,
            dependency_shorthand,
            instructions,
            looping,
            parts,
            published,
            skills,
            tags,
            translations,
        },
    }
}

/// Lists the fields that the system sets and this message carries.
pub fn note_system_fields(message: &v1::Step, ignored: &mut Ignored) {
    ignored.note([
        ("link", !message.link.is_empty()),
        ("account_id", !message.account_id.is_empty()),
        ("r_data", !message.r_data.is_empty()),
        ("dirty_record", message.dirty_record),
        ("created_ts", message.created_ts.is_some()),
        ("modified_ts", message.modified_ts.is_some()),
    ]);
    feedback::note(&message.feedback_config, ignored);
    for row in message.translations.values() {
        feedback::note_translated(&row.feedback_config, ignored);
    }
}

fn step_type(number: i32, faults: &mut Violations) -> Option<StepType> {
    let path = STEP.field("type");
    let of = StepType::from_number(number);
    match (of, number) {
        (Some(_), _) => {}
        (None, 0) => faults.add(&path, Reason::FieldRequired, REQUIRED),
        (None, _) => faults.add(&path, Reason::FieldInvalid, "is not a type of step"),
    }
    of
}

/// What a step of a known type asks.
fn kind(
    of: StepType,
    asked: Asked,
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
        | StepType::Idp => line(heading, &STEP.field("title"), faults),
    };
    let cost = cost_of(of, price, faults);
    let feedback = question(of, feedback_config, faults);
    if of == StepType::Subtask {
        let subtask = subtask(&subtask_id, subtask_pid, faults)?;
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
fn untyped(asked: Asked, faults: &mut Violations) -> Option<StepKind> {
    let Asked {
        title,
        cost,
        feedback_config,
        subtask_id: _,
        subtask_pid: _,
    } = asked;
    let path = STEP.field("title");
    let _: Option<Title> = sent_text(title).and_then(|title| line(title, &path, faults));
    if let Some(price) = cost {
        price_tag(price, faults);
    }
    feedback::feedback(feedback_config, &STEP.field("feedback_config"), faults);
    None
}

fn subtask(id: &str, pid: Option<i64>, faults: &mut Violations) -> Option<SubtaskRef> {
    let task = guid(id, TaskId::parse, &STEP.field("subtask_id"), faults);
    let product = product(pid, &STEP.field("subtask_pid"), faults);
    Some(SubtaskRef {
        task: task?,
        product: product?,
    })
}

fn cost_of(of: StepType, price: Option<i32>, faults: &mut Violations) -> Option<Cost> {
    match price {
        None => Some(Cost::default()),
        Some(price) if of.has_cost() => price_tag(price, faults),
        Some(0) => Some(Cost::default()),
        Some(_) => {
            faults.add(&STEP.field("cost"), Reason::FieldOutOfRange, COSTLESS);
            None
        }
    }
}

/// What trying costs, for a type that has a cost.
pub fn price_tag(price: i32, faults: &mut Violations) -> Option<Cost> {
    let cost = Cost::new(price);
    if cost.is_none() {
        let description = "must be 0, or 2 and more";
        faults.add(&STEP.field("cost"), Reason::FieldOutOfRange, description);
    }
    cost
}

fn question(
    of: StepType,
    list: Vec<v1::FeedbackConfig>,
    faults: &mut Violations,
) -> Option<Feedback> {
    let path = STEP.field("feedback_config");
    let observes = of == StepType::Observation;
    if observes && list.is_empty() {
        let description = "is required for an observation";
        faults.add(&path, Reason::FieldRequired, description);
    }
    let feedback = feedback::feedback(list, &path, faults);
    if !observes && feedback.as_ref().is_some_and(|config| config.linked) {
        let path = path.index(0);
        let path = path.field("linked");
        faults.add(&path, Reason::FieldInvalid, LINKED_OBSERVATIONS_ONLY);
    }
    feedback
}

fn all_content(content: Content, faults: &mut Violations) -> Option<StepContent> {
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
    let body = body.and_then(|body| text(body, &STEP.field("body"), faults));
    let dependencies =
        dependencies::with_shorthand(dependencies, dependency_shorthand, &STEP, faults);
    let instructions = json::instructions(instructions, &STEP.field("instructions"), faults);
    let looping = repeats.and_then(|repeats| looping(repeats, faults));
    let parts = tags(parts, &STEP.field("parts"), faults);
    let published = shown.map_or(Some(Published::default()), |shown| {
        published(shown, &STEP.field("published"), faults)
    });
    let skills = tags(skills, &STEP.field("skills"), faults);
    let tags = tags(labels, &STEP.field("tags"), faults);
    let translations = translations::all(translations, &STEP.field("translations"), faults);
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
pub fn looping(message: v1::Looping, faults: &mut Violations) -> Option<Looping> {
    let v1::Looping {
        alias,
        array,
        iterations,
    } = message;
    let path = STEP.field("looping");
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

/// The `step` of a request, which must be set.
pub fn sent(step: Option<v1::Step>, faults: &mut Violations) -> Option<v1::Step> {
    required(step, &STEP, faults)
}
