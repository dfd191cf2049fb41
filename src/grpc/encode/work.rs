//! Work for an automatic translator.

use super::{json, step::source_feedback};
use crate::{
    domain::translation_work::{ResourceId, SourceTexts, TranslationState, TranslationWork},
    grpc::translations::digest,
    proto::v1,
};

/// A task or step to translate.
pub fn work(work: TranslationWork) -> v1::TranslationWork {
    let (guid, kind) = match work.resource {
        ResourceId::Task(task) => (task.to_string(), v1::TranslationKind::Task),
        ResourceId::Step(step) => (step.to_string(), v1::TranslationKind::Step),
    };
    let state = match work.state {
        TranslationState::Missing => v1::TranslationState::Missing,
        TranslationState::Outdated => v1::TranslationState::Outdated,
    };
    v1::TranslationWork {
        guid,
        kind: kind.into(),
        language: work.language.to_string(),
        state: state.into(),
        source: Some(texts(work.source)),
        source_digest: digest(work.digest),
    }
}

fn texts(source: SourceTexts) -> v1::TranslationSource {
    match source {
        SourceTexts::Task { name } => v1::TranslationSource {
            name: Some(name),
            ..v1::TranslationSource::default()
        },
        SourceTexts::Step {
            title,
            body,
            instructions,
            feedback,
        } => v1::TranslationSource {
            name: None,
            title: Some(title),
            body: body.map(|body| body.into_string()),
            instructions: json::instructions(instructions),
            feedback_config: feedback.map(source_feedback).into_iter().collect(),
        },
    }
}
