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
mod tests {
    use http::HeaderValue;
    use opentelemetry::trace::{SpanContext, TraceContextExt};

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
    fn a_second_parent_or_a_state_alone_is_ignored() {
        assert!(context(&[GOOD, GOOD], &[]).is_none());
        assert!(context(&[], &["a=1"]).is_none());
    }

    #[test]
    fn states_are_one_list_and_a_malformed_or_long_one_is_dropped_alone() {
        let state = |states: &[&str]| context(&[GOOD], states).map(|it| it.trace_state().header());
        assert_eq!(state(&["a=1", "b=2,c=3"]).as_deref(), Some("a=1,b=2,c=3"));
        let long = format!("a={}", "x".repeat(MAX_HEADER_BYTES));
        for text in ["a", "A=\u{fc}", &long] {
            assert_eq!(state(&[text]).as_deref(), Some(""), "{text}");
        }
    }
}
