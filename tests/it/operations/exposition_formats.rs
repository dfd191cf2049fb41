//! The formats of `/metrics`.

use crate::kit::server::{TestServer, http_exchange, http_get, http_get_accepting, with_metrics};

#[tokio::test]
async fn collectors_that_accept_open_metrics_get_it() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    // What Prometheus sends.
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,\
                  application/openmetrics-text;version=0.0.1;q=0.4,\
                  text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let (head, text) = http_get_accepting(server.metrics_address(), "/metrics", accept).await;
    let expected = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(expected), "{head}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(text.contains("# TYPE grpc_server_handled counter\n"));
    assert!(text.contains("# UNIT grpc_server_handling_seconds seconds\n"));
}

#[tokio::test]
async fn all_others_get_the_text_format() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    let (head, text) = http_get_accepting(at, "/metrics", "text/plain;version=0.0.4").await;
    let expected = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(head.contains(expected), "{head}");
    assert!(text.contains("# TYPE grpc_server_handled_total counter\n"));
    assert!(text.contains("# TYPE expertise_build_info gauge\n"));
    for only_in_open_metrics in ["# UNIT", "# EOF"] {
        assert!(!text.contains(only_in_open_metrics), "{text}");
    }
    let (_, unasked) = http_get(at, "/metrics").await;
    let types = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("# TYPE "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(types(&unasked), types(&text));
}

#[tokio::test]
async fn a_malformed_accept_header_is_no_error() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    for accept in [",;,", "application/openmetrics-text;q=often", "\u{ff}"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n");
        let (code, text) = http_exchange(server.metrics_address(), &request).await;
        assert_eq!(code, 200, "{accept}");
        assert!(!text.contains("# EOF"), "{accept}: {text}");
    }
}
