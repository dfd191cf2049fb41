//! W3C trace context: the caller's span, from the headers of a call
//! (<https://www.w3.org/TR/trace-context/>).

use std::collections::HashMap;

use http::HeaderMap;
use opentelemetry::{Context, propagation::TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const HEADERS: [&str; 2] = ["traceparent", "tracestate"];
/// The maximum length of a header in bytes. Longer headers are dropped, because spans hold
/// `tracestate` until they are exported.
const MAX_HEADER_BYTES: usize = 512;

/// A context with the caller's span, if any. Malformed headers are ignored, so they never fail a call.
pub fn from_headers(headers: &HeaderMap) -> Context {
    if !headers.contains_key(HEADERS[0]) {
        return Context::new();
    }
    let texts = HEADERS.map(|name| Some((name.to_owned(), joined(headers, name)?)));
    let texts: HashMap<String, String> = texts.into_iter().flatten().collect();
    TraceContextPropagator::new().extract_with_context(&Context::new(), &texts)
}

/// Joins all headers of this name into one list. Two `traceparent` headers are invalid together, so
/// both are ignored.
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter().map(|value| value.to_str());
    let values: Vec<&str> = values.collect::<Result<_, _>>().ok()?;
    let text = values.join(",");
    (1..=MAX_HEADER_BYTES).contains(&text.len()).then_some(text)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use http::HeaderValue;
    use opentelemetry::trace::{SpanContext, TraceContextExt};
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn context(parents: &[&str], states: &[&str]) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        for (name, values) in HEADERS.into_iter().zip([parents, states]) {
            for value in values {
                let value = HeaderValue::from_bytes(value.as_bytes());
                headers.append(name, value.expect("a header's value"));
            }
        }
        let span = from_headers(&headers).span().span_context().clone();
        span.is_valid().then_some(span)
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
    fn a_second_parent_or_a_state_alone_is_ignored() {
        assert!(context(&[GOOD, GOOD], &[]).is_none());
        assert!(context(&[], &["a=1"]).is_none());
    }

    #[test]
    fn a_malformed_or_long_state_is_dropped_alone() {
        let long = format!("a={}", "x".repeat(MAX_HEADER_BYTES));
        for state in ["a", "A=\u{fc}", &long] {
            let context = context(&[GOOD], &[state]).expect("a context");
            assert_eq!(context.trace_state().header(), "", "{state}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(bytes in prop::collection::vec(32u8..=255, 0..80)) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                for name in HEADERS {
                    headers.insert(name, value.clone());
                }
            }
            let _ = from_headers(&headers);
        }
    }
}
