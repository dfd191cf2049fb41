//! W3C trace context: the caller's span, from the headers of a call
//! (<https://www.w3.org/TR/trace-context/>).

use http::HeaderMap;
use opentelemetry::{
    Context,
    propagation::{Extractor, TextMapPropagator},
    trace::{SpanContext, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// The largest `tracestate`, in bytes and members; a larger one is dropped.
const MAX_STATE_BYTES: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;

/// The caller's span. A malformed header is ignored, so that no call fails for it.
pub fn of_headers(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (Some(parent), None) = (values.next(), values.next()) else {
        return None;
    };
    let parent = parent.to_str().ok().filter(|text| is_well_formed(text))?;
    let state = state(headers).unwrap_or_default();
    let fields = TraceHeaders { parent, state };
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &fields);
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

/// The two headers, each as one text.
struct TraceHeaders<'a> {
    parent: &'a str,
    state: String,
}

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACEPARENT => Some(self.parent),
            TRACESTATE => Some(&self.state),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT, TRACESTATE]
    }
}

/// Whether version, trace id, span id and flags have their lengths. The propagator
/// accepts shorter ones, signs, spaces and a final hyphen.
fn is_well_formed(parent: &str) -> bool {
    let digits = |part: &str, length| {
        part.len() == length && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut parts = parent.splitn(5, '-');
    let mut next = |length| parts.next().is_some_and(|part| digits(part, length));
    next(2)
        && next(32)
        && next(16)
        && next(2)
        && (!parent.starts_with("00") || parts.next().is_none())
}

/// The members of all `tracestate` headers; `None` when they are malformed or too long.
fn state(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(TRACESTATE).iter();
    let values: Result<Vec<_>, _> = values.map(|value| value.to_str()).collect();
    let text = values.ok()?.join(",");
    let fits = text.len() <= MAX_STATE_BYTES && text.split(',').count() <= MAX_STATE_MEMBERS;
    // The propagator accepts a member without a name or a value.
    let is_complete = |member: &str| {
        let member = member.trim_matches([' ', '\t']);
        let parts = member.split_once('=');
        member.is_empty() || parts.is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    (fits && text.split(',').all(is_complete)).then_some(text)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn context(parents: &[&str], states: &[&str]) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        for (name, values) in [(TRACEPARENT, parents), (TRACESTATE, states)] {
            for value in values {
                let value = HeaderValue::from_bytes(value.as_bytes());
                headers.append(name, value.expect("a header's value"));
            }
        }
        of_headers(&headers)
    }

    #[test]
    fn a_parent_names_trace_span_and_whether_it_is_sampled() {
        let context = context(&[GOOD], &["a=1", "b=2,c=3"]).expect("a context");
        assert_eq!(
            context.trace_id().to_string(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_state().header(), "a=1,b=2,c=3");
    }

    #[test]
    fn unknown_flags_are_ignored() {
        for (flags, sampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            let parent = format!("{}{flags}", GOOD.trim_end_matches("01"));
            let context = context(&[&parent], &[]).expect("a context");
            assert_eq!(context.is_sampled(), sampled, "{flags}");
        }
    }

    #[test]
    fn a_later_version_may_have_more_fields() {
        for parent in [
            GOOD.replacen("00", "cc", 1),
            GOOD.replacen("00", "cc", 1) + "-more",
        ] {
            assert!(context(&[&parent], &[]).is_some(), "{parent}");
        }
    }

    #[test]
    fn a_second_parent_or_a_state_alone_is_ignored() {
        assert!(context(&[GOOD, GOOD], &[]).is_none());
        assert!(context(&[], &["a=1"]).is_none());
    }

    #[test]
    fn a_malformed_or_long_state_is_dropped_alone() {
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(MAX_STATE_BYTES));
        for state in ["a", "A=\u{fc}", "=", &many, &long] {
            let context = context(&[GOOD], &[state]).expect("a context");
            assert_eq!(context.trace_state().header(), "", "{state}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(bytes in prop::collection::vec(32u8..=255, 0..80)) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.insert(TRACEPARENT, value.clone());
                headers.insert(TRACESTATE, value);
            }
            let _ = of_headers(&headers);
        }
    }
}
