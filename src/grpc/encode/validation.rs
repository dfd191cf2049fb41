//! Pages of findings.

use prost::Message;

use super::{finding, finding_counts};
use crate::{
    domain::{page::Page, validation::Finding},
    grpc::{decode::preview::GuideCursor, page::PageTokens},
    proto::v1,
    store::{FindingsPage, ValidationPage},
};

/// A page of the findings of a guide.
pub fn validation(page: ValidationPage, tokens: &PageTokens) -> v1::ValidateTaskResponse {
    let (start, fingerprint) = (page.start, page.fingerprint);
    let mut response = v1::ValidateTaskResponse {
        counts: Some(finding_counts(page.counts)),
        fingerprint: fingerprint.to_string(),
        unchanged: page.unchanged,
        ..v1::ValidateTaskResponse::default()
    };
    let items = page.findings.into_iter().enumerate().collect();
    let more = page.more;
    (response.findings, response.next_page_token) = tokens.page_beside(
        response.encoded_len(),
        Page { items, more },
        |(index, _): &(usize, Finding)| GuideCursor {
            start: start + index + 1,
            fingerprint,
        },
        |(_, finding)| super::finding(finding),
    );
    response
}

/// A page of the findings of an account.
pub fn findings(page: FindingsPage, tokens: &PageTokens) -> v1::ListFindingsResponse {
    let (findings, next_page_token) = tokens.found(
        page.findings,
        page.next,
        |(_, cursor)| cursor.clone(),
        |(found, _)| finding(found),
    );
    v1::ListFindingsResponse {
        findings,
        next_page_token,
    }
}
