//! W3C trace context: the trace of its caller's that a call belongs to, as
//! <https://www.w3.org/TR/trace-context/> has it.

use http::HeaderMap;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// Version, trace id, parent id and flags with the hyphens between them.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;
/// What must be passed on of `tracestate` at least; more is dropped.
const STATE_BYTES: usize = 512;
const STATE_MEMBERS: usize = 32;

/// The caller's span. What is malformed is ignored: a call never fails for it, and
/// without a `traceparent` a `tracestate` means nothing.
pub fn of_headers(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (parent, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (trace, span, flags) = parse(parent.as_bytes())?;
    let state = state(headers).unwrap_or(TraceState::NONE);
    Some(SpanContext::new(trace, span, flags, true, state))
}

fn parse(text: &[u8]) -> Option<(TraceId, SpanId, TraceFlags)> {
    let (known, more) = text.split_at_checked(LENGTH)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let [version] = hex(parts.next()?)?;
    let trace = TraceId::from_bytes(hex(parts.next()?)?);
    let span = SpanId::from_bytes(hex(parts.next()?)?);
    let [flags] = hex(parts.next()?)?;
    let complete = match version {
        0 => more.is_empty(),
        // Later versions may add parts; 255 is none.
        1..=254 => matches!(more.first(), None | Some(b'-')),
        255 => false,
    };
    let valid = complete && trace != TraceId::INVALID && span != SpanId::INVALID;
    // Of the flags only the first one means something to us.
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    valid.then_some((trace, span, flags))
}

/// So many bytes in lower case and nothing else.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = *byte << 4 | value;
        }
    }
    Some(bytes)
}

fn state(headers: &HeaderMap) -> Option<TraceState> {
    let values = headers.get_all(TRACESTATE).iter();
    let values: Result<Vec<_>, _> = values.map(|value| value.to_str()).collect();
    let text = values.ok()?.join(",");
    let fits = text.len() <= STATE_BYTES && text.split(',').count() <= STATE_MEMBERS;
    // The parser takes a member without a name or a value.
    let whole = |member: &str| {
        let member = member.trim_matches([' ', '\t']);
        let parts = member.split_once('=');
        member.is_empty() || parts.is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    (fits && text.split(',').all(whole)).then(|| text.parse().ok())?
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
    fn flags_that_are_not_known_mean_nothing() {
        for (flags, sampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            let parent = format!("{}{flags}", GOOD.trim_end_matches("01"));
            let context = context(&[&parent], &[]).expect("a context");
            assert_eq!(context.is_sampled(), sampled, "{flags}");
        }
    }

    #[test]
    fn a_later_version_may_say_more() {
        for parent in [
            GOOD.replacen("00", "cc", 1),
            GOOD.replacen("00", "cc", 1) + "-what-comes",
        ] {
            assert!(context(&[&parent], &[]).is_some(), "{parent}");
        }
    }

    #[test]
    fn what_is_malformed_is_ignored() {
        let good = |parent: &str| context(&[parent], &[]).is_some();
        for parent in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(!good(parent), "{parent}");
        }
        assert!(!good(&format!("{GOOD}-00")));
        assert!(!good(&format!(" {GOOD}")));
        assert!(context(&[GOOD, GOOD], &[]).is_none());
        assert!(context(&[], &["a=1"]).is_none());
    }

    #[test]
    fn a_state_that_is_malformed_or_long_is_dropped_alone() {
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(STATE_BYTES));
        for state in ["a", "A=\u{fc}", "=", &many, &long] {
            let context = context(&[GOOD], &[state]).expect("a context");
            assert_eq!(context.trace_state().header(), "", "{state}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_survived(bytes in prop::collection::vec(32u8..=255, 0..80)) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.insert(TRACEPARENT, value.clone());
                headers.insert(TRACESTATE, value);
            }
            let _ = of_headers(&headers);
        }
    }
}
