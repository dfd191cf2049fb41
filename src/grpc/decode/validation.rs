//! Requests of validations.

use std::collections::BTreeSet;

use prost::Message;

use super::{analysis, field, options, preview::GuideCursor};
use crate::{
    domain::{
        task::TaskFilter,
        violation::{Reason, Violations},
    },
    grpc::page::PageTokens,
    proto::v1::{self, validate_task_request::Source},
    store::{FindingsCall, GuideSource, ValidationCall},
};

/// Decodes a request of ValidateTask.
pub fn validate_task(
    message: v1::ValidateTaskRequest,
    tokens: &PageTokens,
    violations: &mut Violations,
) -> Option<ValidationCall> {
    let replaces_stored = message.replaces_stored;
    if replaces_stored && matches!(message.source, Some(Source::Guid(_))) {
        let mut field = violations.at("replaces_stored");
        field.refuse(Reason::FieldInvalid, "is for a `document` only");
    }
    let guide = match message.source {
        Some(Source::Guid(id)) => analysis::stored(&id, violations),
        Some(Source::Document(document)) => analysis::document(document, violations),
        None => analysis::refuse_missing_source(violations),
    };
    let options_bytes = message.options.clone().unwrap_or_default().encode_to_vec();
    let options = options::options(message.options, violations.at("options"));
    let known_fingerprint = message.known_fingerprint;
    field::refuse_nul(&known_fingerprint, violations.at("known_fingerprint"));
    let start = tokens.start::<GuideCursor>(message.page_size, &message.page_token, violations);
    let guide = guide?;
    guide.add_violations(violations);
    let replaced = match &guide.source {
        GuideSource::Document(document) if replaces_stored => document.task_ids(),
        GuideSource::Document(_) | GuideSource::Stored(_) => BTreeSet::new(),
    };
    let (after, size) = start?;
    Some(ValidationCall {
        source: guide.source,
        document: guide.document,
        replaced,
        options,
        options_bytes,
        after: after.map(|it| (it.start, it.fingerprint)),
        size,
        known_fingerprint,
    })
}

/// Decodes a request of ListFindings.
pub fn list_findings(
    message: v1::ListFindingsRequest,
    tokens: &PageTokens,
    violations: &mut Violations,
) -> Option<FindingsCall> {
    let product = message
        .product_id
        .and_then(|id| field::product(Some(id), violations.at("product_id")));
    let published = message
        .published
        .and_then(|number| field::published(number, violations.at("published")));
    let options = options::options(message.options, violations.at("options"));
    let (after, size) = tokens.start(message.page_size, &message.page_token, violations)?;
    Some(FindingsCall {
        filter: TaskFilter {
            product,
            published,
            role: None,
            managed: Some(false),
            external_id: None,
            name: None,
        },
        options,
        after,
        size,
    })
}
