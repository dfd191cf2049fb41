//! Requests of previews.

use std::collections::BTreeMap;

use prost_types::Value;
use serde::{Deserialize, Serialize};

use super::{
    Field, analysis,
    field::{self, languages, sent_text},
    names::{check_name, known_variables, variable_value},
    task::access_level,
};
use crate::{
    domain::{
        analysis::{
            Fingerprint, MAX_SUBTASK_LEVELS, VariableValue,
            preview::{MAX_FALLBACK_LANGUAGES, MAX_VARIABLE_NAMES, PreviewOptions, TextLanguages},
        },
        violation::Violations,
    },
    grpc::page::PageTokens,
    proto::v1::{self, preview_task_request::Source},
    store::PreviewCall,
};

/// Where a page of the steps of a preview, or of the findings of a guide, starts.
#[derive(Serialize, Deserialize)]
pub struct GuideCursor {
    /// The index of its first step or finding.
    pub start: usize,
    /// The fingerprint of the guide.
    pub fingerprint: Fingerprint,
}

/// Decodes a request of PreviewTask: the call, and whether traces of conditions are returned.
pub fn preview_task(
    message: v1::PreviewTaskRequest,
    tokens: &PageTokens,
    violations: &mut Violations,
) -> Option<(PreviewCall, bool)> {
    let guide = match message.source {
        Some(Source::Guid(id)) => analysis::stored(&id, violations),
        Some(Source::Document(document)) => analysis::document(document, violations),
        None => analysis::refuse_missing_source(violations),
    };
    let level = message
        .level
        .and_then(|number| access_level(number, violations.at("level")));
    let language = sent_text(message.language)
        .and_then(|tag| field::language(&tag, violations.at("language")));
    let list = violations.at("fallback_languages");
    let fallback = languages(message.fallback_languages, MAX_FALLBACK_LANGUAGES, list);
    let answers = answers(message.answers, violations.at("answers"));
    let depth = subtask_levels(message.subtask_depth, violations.at("subtask_depth"));
    field::check_expand(&message.expand, violations);
    let known = known_variables(message.known_variables, violations.at("known_variables"));
    let start = tokens.start::<GuideCursor>(message.page_size, &message.page_token, violations);
    let guide = guide?;
    guide.add_violations(violations);
    let (after, size) = start?;
    let call = PreviewCall {
        source: guide.source,
        document: guide.document,
        known,
        options: PreviewOptions {
            level,
            texts: TextLanguages::new(language, fallback),
            answers,
            include_unpublished: message.include_unpublished,
            subtask_depth: depth?,
        },
        bodies: !message.expand.is_empty(),
        after: after.map(|it| (it.start, it.fingerprint)),
        size,
    };
    Some((call, message.explain))
}

fn answers(
    messages: BTreeMap<String, Value>,
    mut map: Field<'_>,
) -> BTreeMap<String, VariableValue> {
    if !map.at_most(messages.len(), MAX_VARIABLE_NAMES) {
        return BTreeMap::new();
    }
    let answer = |(name, message): (String, Value)| {
        check_name(&name, map.key(&name));
        let value = variable_value(message, map.key(&name))?;
        Some((name, value))
    };
    messages.into_iter().filter_map(answer).collect()
}

fn subtask_levels(number: i32, mut field: Field<'_>) -> Option<usize> {
    let levels = usize::try_from(number).ok();
    let levels = levels.filter(|levels| *levels <= MAX_SUBTASK_LEVELS);
    field.in_range(levels, &format!("must be 0 to {MAX_SUBTASK_LEVELS}"))
}
