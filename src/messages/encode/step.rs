//! Steps.

use super::{json, timestamp};
use crate::{
    domain::{
        etag::Etag,
        external_id::ExternalId,
        feedback::{Feedback, FeedbackValue, TYPE_ENUM},
        row_version::RowVersion,
        step::{Looping, Step, StepContent},
        text::Tag,
        translation::StepTranslation,
    },
    proto::v1,
};

pub fn step(step: Step) -> v1::Step {
    let Step {
        guid,
        account,
        task,
        product,
        kind,
        title,
        content,
        link,
        r_data,
        row_version,
    } = step;
    let RowVersion {
        version: _,
        dirty,
        created,
        modified,
    } = row_version;
    let StepContent {
        body,
        dependencies,
        external_id,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        translations,
    } = content;
    let (dependencies, dependency_shorthand) = json::dependencies(dependencies);
    let subtask = kind.subtask();
    v1::Step {
        guid: guid.to_string(),
        task: task.to_string(),
        product_id: Some(product.get()),
        r#type: kind.step_type().number(),
        title,
        body: body.map(|body| body.into_string()),
        cost: Some(kind.cost().get()),
        dependencies,
        dependency_shorthand,
        subtask_id: subtask.map_or_else(String::new, |subtask| subtask.task.to_string()),
        subtask_pid: subtask.map(|subtask| subtask.product.get()),
        feedback_config: kind
            .into_feedback()
            .map(step_feedback)
            .into_iter()
            .collect(),
        instructions: json::instructions(instructions),
        looping: looping.map(self::looping),
        parts: self::tags(parts),
        published: Some(published.get()),
        skills: self::tags(skills),
        tags: self::tags(tags),
        translations: translations
            .into_iter()
            .map(|(language, row)| (language.to_string(), translation(row)))
            .collect(),
        link: link.map_or_else(String::new, |link| link.to_string()),
        etag: Etag::of(guid.0, &row_version).into_string(),
        account_id: account.into_string(),
        r_data: json::object(r_data).fields,
        dirty_record: dirty,
        created_ts: Some(timestamp(created)),
        modified_ts: Some(timestamp(modified)),
        external_id: external_id.map(ExternalId::into_string),
    }
}

/// A step without its body and those of its translations.
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
fn step_feedback(feedback: Feedback) -> v1::FeedbackConfig {
    let linked = Some(feedback.linked);
    v1::FeedbackConfig {
        linked,
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
    let Feedback {
        name,
        linked: _,
        values,
    } = feedback;
    v1::FeedbackConfig {
        name: name.into_string(),
        r#type: TYPE_ENUM.to_owned(),
        linked: None,
        values: values.into_iter().map(value).collect(),
    }
}

fn value(value: FeedbackValue) -> v1::FeedbackValue {
    let FeedbackValue { key, value, link } = value;
    v1::FeedbackValue {
        key: key.into_string(),
        value: value.into_string(),
        link: link.map_or_else(String::new, |link| link.to_string()),
        task_json: None,
    }
}

fn looping(looping: Looping) -> v1::Looping {
    let Looping {
        alias,
        array,
        iterations,
    } = looping;
    v1::Looping {
        alias: alias.into_string(),
        array: array.map(|json| json::value(json.0)),
        iterations: iterations.map(|json| json::value(json.0)),
    }
}

fn tags(list: Vec<Tag>) -> Vec<String> {
    list.into_iter().map(Tag::into_string).collect()
}

fn translation(row: StepTranslation) -> v1::StepTranslation {
    let StepTranslation {
        title,
        body,
        instructions,
        feedback,
        locked,
    } = row;
    v1::StepTranslation {
        title: title.map(|title| title.into_string()),
        body: body.map(|body| body.into_string()),
        instructions: json::instructions(instructions),
        feedback_config: feedback.map(config).into_iter().collect(),
        locked: Some(locked),
    }
}
