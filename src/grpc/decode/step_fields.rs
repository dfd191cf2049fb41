//! A step taken apart: what a caller may set, by what decides about it.

use std::collections::BTreeMap;

use prost_types::Struct;

use super::feedback;
use crate::{grpc::ignored::Ignored, proto::v1};

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
