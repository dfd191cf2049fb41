//! Requests and pages of validations.

use std::collections::BTreeSet;

use prost::Message;

use super::{page::PageTokens, previews::GuideCursor, sent_guide};
use crate::{
    domain::{
        page::Page,
        task::TaskFilter,
        validation::Finding,
        violation::{Reason, Violations},
    },
    messages::{
        decode::{field, options},
        encode,
    },
    proto::v1::{self, validate_task_request::Source},
    store::{FindingsCall, FindingsPage, GuideSource, ValidationCall, ValidationPage},
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
    let (id, document) = match message.source {
        Some(Source::Guid(id)) => (Some(id), None),
        Some(Source::Document(document)) => (None, Some(document)),
        None => (None, None),
    };
    let guide = sent_guide::guide(id, document, violations);
    let options_bytes = message.options.clone().unwrap_or_default().encode_to_vec();
    let options = options::options(message.options, violations.at("options"));
    let known_fingerprint = message.known_fingerprint;
    field::refuse_nul(&known_fingerprint, violations.at("known_fingerprint"));
    let start = tokens.start::<GuideCursor>(message.page_size, &message.page_token, violations);
    let (source, document) = guide?.into_source(violations)?;
    let replaced = match &source {
        GuideSource::Document(document) if replaces_stored => document.task_ids(),
        GuideSource::Document(_) | GuideSource::Stored(_) => BTreeSet::new(),
    };
    let (after, size) = start?;
    Some(ValidationCall {
        source,
        document,
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
    let filter = TaskFilter {
        product: violations
            .at("product_id")
            .optional(message.product_id, field::product),
        published: violations
            .at("published")
            .optional(message.published, field::published),
        managed: Some(false),
        ..TaskFilter::default()
    };
    let options = options::options(message.options, violations.at("options"));
    let (after, size) = tokens.start(message.page_size, &message.page_token, violations)?;
    Some(FindingsCall {
        filter,
        options,
        after,
        size,
    })
}

/// A page of the findings of a guide.
pub fn validation(page: ValidationPage, tokens: &PageTokens) -> v1::ValidateTaskResponse {
    let (start, fingerprint) = (page.start, page.fingerprint);
    let mut response = v1::ValidateTaskResponse {
        counts: Some(encode::finding_counts(page.counts)),
        fingerprint: fingerprint.to_string(),
        unchanged: page.unchanged,
        ..v1::ValidateTaskResponse::default()
    };
    let items = page.findings.into_iter().enumerate().collect();
    let more = page.more;
    (response.findings, response.next_page_token) = tokens.rest_of_page(
        response.encoded_len(),
        Page { items, more },
        |(index, _): &(usize, Finding)| GuideCursor {
            start: start + index + 1,
            fingerprint,
        },
        |(_, finding)| encode::finding(finding),
    );
    response
}

/// A page of the findings of an account.
pub fn findings(page: FindingsPage, tokens: &PageTokens) -> v1::ListFindingsResponse {
    let (findings, next_page_token) = tokens.found(
        page.findings,
        page.next,
        |(_, cursor)| cursor.clone(),
        |(found, _)| encode::finding(found),
    );
    v1::ListFindingsResponse {
        findings,
        next_page_token,
    }
}
