//! Findings and rules.

use prost::Message;

use super::json;
use crate::{
    domain::{
        page::Page,
        validation::{Finding, FindingCounts, FindingPlace, Rule, Severity},
    },
    grpc::{decode::preview::GuideCursor, page, page_token::PageTokens},
    proto::v1,
    store::{FindingsPage, ValidationPage},
};

/// A page of the findings of a guide.
pub fn validation(page: ValidationPage, tokens: &PageTokens<'_>) -> v1::ValidateTaskResponse {
    let ValidationPage {
        findings,
        start,
        more,
        counts,
        fingerprint,
        unchanged,
    } = page;
    let mut response = v1::ValidateTaskResponse {
        findings: Vec::new(),
        next_page_token: String::new(),
        counts: Some(finding_counts(counts)),
        fingerprint: fingerprint.to_string(),
        unchanged,
    };
    let items = findings.into_iter().enumerate().collect();
    (response.findings, response.next_page_token) = page::encode_beside(
        response.encoded_len(),
        Page { items, more },
        tokens,
        |(index, _): &(usize, Finding)| GuideCursor {
            start: start + index + 1,
            fingerprint,
        },
        |(_, finding)| self::finding(finding),
    );
    response
}

/// A page of the findings of an account.
pub fn findings(page: FindingsPage, tokens: &PageTokens<'_>) -> v1::ListFindingsResponse {
    let FindingsPage { findings, next } = page;
    let count = findings.len();
    let items = Page {
        items: findings,
        more: true,
    };
    let (findings, token_of_last) = page::encode(
        items,
        tokens,
        |(_, cursor)| *cursor,
        |(found, _)| finding(found),
    );
    // If all findings fit into the page, the next one starts after the last task that was
    // validated. It may be far after the last finding.
    let next_page_token = if findings.len() == count {
        let next = next.map(|next| tokens.sign(&next));
        next.unwrap_or_default()
    } else {
        token_of_last
    };
    v1::ListFindingsResponse {
        findings,
        next_page_token,
    }
}

/// A rule.
pub fn rule(rule: Rule) -> v1::Rule {
    let text = rule.text();
    v1::Rule {
        id: text.id.to_owned(),
        severity: severity(text.severity).into(),
        description: text.description.to_owned(),
    }
}

fn finding(finding: Finding) -> v1::Finding {
    let id = finding.id();
    let Finding {
        rule,
        severity,
        place,
        language,
        message,
        hint,
        facts,
        related,
        example,
        levels,
        order: _,
    } = finding;
    let FindingPlace {
        task,
        step,
        path,
        title: _,
    } = place;
    let example = example.into_iter().map(|(name, key)| v1::Answer {
        name,
        value: Some(json::value(serde_json::Value::String(key))),
    });
    let language = language.map(|language| language.to_string());
    v1::Finding {
        rule: rule.text().id.to_owned(),
        severity: self::severity(severity).into(),
        task,
        step,
        path,
        language: language.unwrap_or_default(),
        message,
        hint,
        facts: Some(json::object(facts)),
        related: related.into_iter().map(self::place).collect(),
        example: example.collect(),
        levels: levels.iter().map(|level| level.number()).collect(),
        id,
    }
}

fn place(place: FindingPlace) -> v1::Place {
    let FindingPlace {
        task,
        step,
        path,
        title,
    } = place;
    v1::Place {
        task,
        step,
        path,
        title,
    }
}

fn severity(severity: Severity) -> v1::Severity {
    match severity {
        Severity::Info => v1::Severity::Info,
        Severity::Warning => v1::Severity::Warning,
        Severity::Error => v1::Severity::Error,
    }
}

fn finding_counts(counts: FindingCounts) -> v1::FindingCounts {
    let FindingCounts {
        errors,
        warnings,
        infos,
        suppressed,
        undecided,
    } = counts;
    let count = |count| i32::try_from(count).unwrap_or(i32::MAX);
    v1::FindingCounts {
        errors: count(errors),
        warnings: count(warnings),
        infos: count(infos),
        suppressed: count(suppressed),
        undecided: count(undecided),
    }
}
