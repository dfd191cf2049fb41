//! Steps.

use super::{json, text, timestamp};
use crate::{
    domain::{
        external_id::ExternalId,
        feedback::{Feedback, FeedbackValue, TYPE_ENUM},
        step::{DeletedStep, Looping, Step},
        text::Tag,
        translation::StepTranslation,
    },
    proto::v1,
};

/// A deleted step that can be restored.
pub fn deleted_step(deleted: DeletedStep) -> v1::DeletedStep {
    v1::DeletedStep {
        step: Some(self::step(deleted.step)),
        deleted_ts: Some(timestamp(deleted.deleted.at)),
        subject: deleted.deleted.subject,
        previous_step: text(deleted.previous),
    }
}

pub fn step(step: Step) -> v1::Step {
    let etag = step.etag().into_string();
    let (content, row, kind) = (step.content, step.row_version, step.kind);
    let (dependencies, dependency_shorthand) = json::dependencies(content.dependencies);
    let subtask = kind.subtask();
    let translations = content.translations.into_iter();
    v1::Step {
        guid: step.guid.to_string(),
        task: step.task.to_string(),
        product_id: Some(step.product.get()),
        r#type: kind.step_type() as i32,
        title: step.title,
        body: content.body.map(|body| body.into_string()),
        cost: Some(kind.cost().get()),
        dependencies,
        dependency_shorthand,
        subtask_id: text(subtask.map(|subtask| subtask.task)),
        subtask_pid: subtask.map(|subtask| subtask.product.get()),
        feedback_config: kind.into_feedback().map(feedback).into_iter().collect(),
        instructions: json::instructions(content.instructions),
        looping: content.looping.map(looping),
        parts: tags(content.parts),
        published: Some(content.published.get()),
        skills: tags(content.skills),
        tags: tags(content.tags),
        translations: translations
            .map(|(language, row)| (language.to_string(), translation(row)))
            .collect(),
        link: text(step.link),
        etag,
        account_id: step.account.into_string(),
        r_data: json::object(step.r_data).fields,
        dirty_record: row.dirty,
        created_ts: Some(timestamp(row.created)),
        modified_ts: Some(timestamp(row.modified)),
        external_id: content.external_id.map(ExternalId::into_string),
        subtask_external_id: step.subtask_external_id.map(ExternalId::into_string),
    }
}

/// A step without its body and the bodies of its translations.
pub fn step_without_bodies(full: &Step) -> v1::Step {
    // The clone shares the bodies.
    let mut without = full.clone();
    without.content.body = None;
    for translation in without.content.translations.values_mut() {
        translation.body = None;
    }
    step(without)
}

/// The feedback of a step itself, which says whether it is linked.
fn feedback(feedback: Feedback) -> v1::FeedbackConfig {
    v1::FeedbackConfig {
        linked: Some(feedback.linked),
        ..config(feedback)
    }
}

/// The feedback of a step for a translator: its texts, without links.
pub fn source_feedback(mut feedback: Feedback) -> v1::FeedbackConfig {
    for value in &mut feedback.values {
        value.link = None;
    }
    config(feedback)
}

/// The feedback of a translation, which has no `linked`.
fn config(feedback: Feedback) -> v1::FeedbackConfig {
    v1::FeedbackConfig {
        name: feedback.name.into_string(),
        r#type: TYPE_ENUM.to_owned(),
        linked: None,
        values: feedback.values.into_iter().map(value).collect(),
    }
}

fn value(value: FeedbackValue) -> v1::FeedbackValue {
    v1::FeedbackValue {
        key: value.key.into_string(),
        value: value.value.into_string(),
        link: text(value.link),
        task_json: None,
    }
}

fn looping(looping: Looping) -> v1::Looping {
    v1::Looping {
        alias: looping.alias.into_string(),
        array: looping.array.map(|json| json::value(json.0)),
        iterations: looping.iterations.map(|json| json::value(json.0)),
    }
}

fn tags(list: Vec<Tag>) -> Vec<String> {
    list.into_iter().map(Tag::into_string).collect()
}

fn translation(row: StepTranslation) -> v1::StepTranslation {
    v1::StepTranslation {
        title: row.title.map(|title| title.into_string()),
        body: row.body.map(|body| body.into_string()),
        instructions: json::instructions(row.instructions),
        feedback_config: row.feedback.map(config).into_iter().collect(),
        locked: Some(row.locked),
    }
}
