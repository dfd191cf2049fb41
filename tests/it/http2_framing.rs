//! HTTP/2 streams that no gRPC client sends, and checks that come before the message.

use http::Method;
use prost::Message;

use crate::kit::{
    http2::{Http2Connection, Http2Response, RequestEnd, framed, prefix},
    prelude::*,
    scratch::Scratch,
    server::{Settings, TestServer, http_answer, in_memory},
};

const GET: &str = "/expertise.v1.TaskService/GetTask";
const LIST: &str = "/expertise.v1.TaskService/ListTasks";
const CREATE: &str = "/expertise.v1.TaskService/CreateTask";

/// A connection, and the metadata with the client's account.
async fn connect(client: &Client) -> (Http2Connection, (&str, &str)) {
    let connection = Http2Connection::to(client.address()).await;
    (connection, ("x-account-id", client.account()))
}

/// ListTasks with these headers.
async fn list(connection: &Http2Connection, headers: &[(&str, &str)]) -> Http2Response {
    let empty = framed(b"");
    connection
        .call(LIST, headers, &empty, RequestEnd::Sent)
        .await
}

/// The connection still serves.
async fn assert_serves(connection: &Http2Connection, account: (&str, &str)) {
    let answer = list(connection, &[account]).await;
    let status = answer.status.expect("a status");
    assert_eq!(status.code(), Code::Ok, "{status:?}");
    assert!(answer.body.len() >= 5);
}

#[apply(on_one_database)]
async fn a_body_that_is_not_one_message_is_invalid(client: Client) {
    let (connection, account) = connect(&client).await;
    let guid = GetTaskRequest {
        guid: unknown_guid(),
    }
    .encode_to_vec();
    let whole = framed(&guid);
    for (what, bytes) in [
        ("none", Vec::new()),
        ("part of a prefix", vec![0, 0, 0]),
        ("a prefix alone", prefix(0, 9)),
        ("half of it", whole[..whole.len() / 2].to_vec()),
        ("two", [&whole[..], &whole].concat()),
        ("more than it", [&whole[..], b"more"].concat()),
        ("one byte more", [&whole[..], &[0]].concat()),
        ("a compressed one", [&prefix(1, 38), &guid[..]].concat()),
        ("an odd flag", [&prefix(7, 38), &guid[..]].concat()),
    ] {
        let answer = connection
            .call(GET, &[account], &bytes, RequestEnd::Sent)
            .await;
        let expected = (Code::InvalidArgument, "FIELD_INVALID".to_owned());
        assert_eq!(answer.refusal(), expected, "{what}: {answer:?}");
        assert_serves(&connection, account).await;
    }
    for encoding in ["gzip", "deflate", "zstd", "odd"] {
        let headers = [account, ("grpc-encoding", encoding)];
        for flag in [0, 1] {
            let bytes = [&prefix(flag, 38), &guid[..]].concat();
            let answer = connection
                .call(GET, &headers, &bytes, RequestEnd::Sent)
                .await;
            answer.is(Code::Unimplemented, "UNIMPLEMENTED");
            assert_eq!(answer.header("grpc-accept-encoding"), Some("identity"));
        }
    }
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn a_too_long_message_is_refused_by_its_prefix(client: Client) {
    let (connection, account) = connect(&client).await;
    for length in [72 * 1024 * 1024 + 1, u32::MAX as usize] {
        let claim = prefix(0, length);
        let answer = connection
            .call(CREATE, &[account], &claim, RequestEnd::Never)
            .await;
        answer.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    }
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn credentials_are_checked_before_64_megabytes_arrive(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let announced = prefix(0, 64_000_000);
    let length = ("content-length", "64000005");
    let account = ("x-account-id", client.account());
    for (headers, code, reason) in [
        (&[length][..], Code::Unauthenticated, "CREDENTIALS_MISSING"),
        (
            &[length, ("x-account-id", "a b")],
            Code::Unauthenticated,
            "CREDENTIALS_INVALID",
        ),
        (
            &[length, account, ("x-scopes", "read")],
            Code::PermissionDenied,
            "SCOPE_MISSING",
        ),
    ] {
        let answer = connection
            .call(CREATE, headers, &announced, RequestEnd::Never)
            .await;
        answer.is(code, reason);
    }
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn a_malformed_deadline_is_invalid_and_a_passed_one_exceeded(client: Client) {
    let (connection, account) = connect(&client).await;
    for timeout in [
        "",
        "5",
        "S",
        "1s",
        "-1S",
        "+1S",
        "1.5S",
        "1 S",
        "123456789S",
        "1SS",
    ] {
        let headers = [account, ("grpc-timeout", timeout)];
        let answer = list(&connection, &headers).await;
        let expected = (Code::InvalidArgument, "FIELD_INVALID".to_owned());
        assert_eq!(answer.refusal(), expected, "{timeout:?}");
        let failure = Failure::from(answer.status.expect("a status"));
        failure.violates(&[("grpc-timeout", "FIELD_INVALID")]);
    }
    for timeout in ["0S", "1n", "00000000H"] {
        let headers = [account, ("grpc-timeout", timeout)];
        let answer = list(&connection, &headers).await;
        answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    }
}

#[apply(on_one_database)]
async fn only_a_write_whose_deadline_passed_is_said_to_be_perhaps_done(client: Client) {
    let (connection, account) = connect(&client).await;
    let headers = [account, ("grpc-timeout", "0S")];
    for (path, expected) in [(LIST, false), (GET, false), (CREATE, true)] {
        let answer = connection
            .call(path, &headers, &framed(b""), RequestEnd::Sent)
            .await;
        let status = answer.status.expect("a status");
        assert_eq!(status.message().contains("write"), expected, "{status:?}");
        assert!(status.message().starts_with("the deadline has passed"));
    }
}

#[apply(on_one_database)]
async fn a_long_deadline_is_accepted(client: Client) {
    let (connection, account) = connect(&client).await;
    for timeout in ["99999999H", "59M", "60S", "60000m", "60000000u"] {
        let headers = [account, ("grpc-timeout", timeout)];
        let answer = list(&connection, &headers).await;
        let status = answer.status.expect("a status");
        assert_eq!(status.code(), Code::Ok, "{timeout}: {status:?}");
    }
}

#[apply(on_one_database)]
async fn a_call_whose_message_never_ends_ends_at_its_deadline(client: Client) {
    let (connection, account) = connect(&client).await;
    for begun in [
        &b""[..],
        // A larger message would wait for those of other tests.
        &prefix(0, 1_000_000),
        &[&prefix(0, 9)[..], b"abc"].concat(),
    ] {
        let headers = [account, ("grpc-timeout", "50m")];
        let answer = connection
            .call(CREATE, &headers, begun, RequestEnd::Never)
            .await;
        answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    }
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn unknown_paths_are_unimplemented(client: Client) {
    let (connection, account) = connect(&client).await;
    for path in [
        "/expertise.v1.TaskService/MoveTask",
        "/expertise.v1.TaskService/GetTask/again",
        "/expertise.v1.TaskService/gettask",
        "/expertise.v1.TaskService/GetTasks",
        "/expertise.v1.TaskService/",
        "/expertise.v1.TaskService",
        "/expertise.v1.NoService/GetTask",
        "/expertise.v2.TaskService/GetTask",
        "/TaskService/GetTask",
        "/grpc.health.v1.Nothing/Check",
        "/grpc.health.v1.Health/Nothing",
        "/grpc.reflection.v1.Nothing/ServerReflectionInfo",
        "/",
    ] {
        for headers in [&[][..], &[account]] {
            let answer = connection
                .call(path, headers, &framed(b""), RequestEnd::Sent)
                .await;
            // The service and the first word decide which scope is needed.
            let needs_scope = path.starts_with("/expertise.v1.TaskService/Get");
            let expected = match headers.is_empty() && needs_scope {
                true => (Code::Unauthenticated, "CREDENTIALS_MISSING"),
                false => (Code::Unimplemented, "UNIMPLEMENTED"),
            };
            // Health and reflection refuse without details.
            if path.starts_with("/grpc.") {
                let status = answer.status.as_ref().expect("a status");
                assert_eq!(status.code(), expected.0, "{path}");
                continue;
            }
            let (code, reason) = answer.refusal();
            assert_eq!((code, reason.as_str()), expected, "{path}");
        }
    }
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn requests_that_are_not_grpc_get_http_errors(client: Client) {
    let (connection, account) = connect(&client).await;
    for content in ["", "text/plain", "application/json", "application/grpcs"] {
        let headers = [account, ("content-type", content)];
        let answer = connection
            .send(Method::POST, LIST, &headers, &framed(b""), RequestEnd::Sent)
            .await;
        assert_eq!(answer.http, 415, "{content}");
        assert_eq!(answer.status().code(), Code::Unimplemented);
    }
    for method in [Method::GET, Method::PUT, Method::HEAD, Method::OPTIONS] {
        let headers = [account, ("content-type", "application/grpc")];
        let answer = connection
            .send(method, LIST, &headers, b"", RequestEnd::Sent)
            .await;
        assert_eq!(answer.http, 405);
        assert_eq!(answer.status().code(), Code::Unimplemented);
    }
    for content in [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc;charset=utf-8",
    ] {
        let headers = [account, ("content-type", content)];
        let answer = connection
            .send(Method::POST, LIST, &headers, &framed(b""), RequestEnd::Sent)
            .await;
        let status = answer.status.expect("a status");
        assert_eq!(status.code(), Code::Ok, "{content}: {status:?}");
    }
}

/// The trailers are in the body, after a byte with the highest bit set.
#[apply(on_one_database)]
async fn browsers_are_served_over_grpc_web(client: Client) {
    let (connection, account) = connect(&client).await;
    let headers = [account, ("content-type", "application/grpc-web")];
    let answer = connection
        .send(Method::POST, LIST, &headers, &framed(b""), RequestEnd::Sent)
        .await;
    let body = String::from_utf8_lossy(&answer.body);
    assert!(body.contains("grpc-status:0"), "{answer:?}");
}

/// Pages of other origins may not call, unless a setting allows it.
#[tokio::test]
async fn pages_of_allowed_origins_may_call() {
    const ALLOWED: &str = "access-control-allow-origin";
    let origin = ("origin", "https://guides.example.com");
    let preflight = async |server: &TestServer| {
        let connection = Http2Connection::to(server.address()).await;
        let headers = [
            origin,
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,x-grpc-web"),
        ];
        connection
            .send(Method::OPTIONS, LIST, &headers, b"", RequestEnd::Sent)
            .await
    };
    let closed = TestServer::start(in_memory()).await;
    let answer = preflight(&closed).await;
    assert_eq!(answer.headers.get(ALLOWED), None);
    let origins = "https://guides.example.com,http://127.0.0.1:8080";
    let open = in_memory().set("EXPERTISE_CORS_ORIGINS", origins);
    let answer = preflight(&TestServer::start(open).await).await;
    assert_eq!(answer.http, 200);
    assert_eq!(answer.headers[ALLOWED], origin.1);
    // Browsers do not count `authorization` among `*`.
    let allowed = &answer.headers["access-control-allow-headers"];
    assert_eq!(allowed, "authorization,x-grpc-web");
}

/// No browser would send them like this.
#[tokio::test]
async fn origins_that_match_no_page_are_refused() {
    for origins in [
        "https://A.example",
        "https://*.example",
        "https://a.example:443",
        "https://a.example/",
        "a.example",
        "*,https://a.example",
        "https://a.example,,https://b.example",
    ] {
        let settings = in_memory().set("EXPERTISE_CORS_ORIGINS", origins);
        let error = TestServer::try_start(settings).await.unwrap_err();
        assert!(error.contains("origins as browsers send them"), "{error}");
    }
}

#[tokio::test]
async fn http_1_is_told_what_is_a_call() {
    let server = TestServer::start(in_memory()).await;
    for (request, code) in [
        (
            "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            "405",
        ),
        (
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n",
            "415",
        ),
    ] {
        let (head, _) = http_answer(server.address(), request).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{head}");
        assert!(head.contains("grpc-message: calls%20are"), "{head}");
    }
}

/// Imports and steps may be large, other requests not.
#[apply(on_one_database)]
async fn requests_without_guides_and_bodies_take_4_mebibytes(client: Client) {
    let (connection, account) = connect(&client).await;
    for (path, is_refused) in [(GET, true), (LIST, true), (CREATE, false)] {
        let headers = [account, ("grpc-timeout", "100m")];
        let claim = prefix(0, 4 * 1024 * 1024 + 1);
        let answer = connection
            .call(path, &headers, &claim, RequestEnd::Never)
            .await;
        match is_refused {
            true => answer.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE"),
            false => answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        }
    }
}

#[tokio::test]
async fn a_connection_ends_at_its_age_and_its_calls_go_on_over_another() {
    let settings = in_memory().set("EXPERTISE_MAX_CONNECTION_AGE", "1s");
    let server = TestServer::start(settings).await;
    let client = server.client();
    for _ in 0..25 {
        client.given_task(task("Guide")).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let log = server.log();
    let peers: std::collections::BTreeSet<&str> = log
        .split("\"peer\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(peers.len() > 1, "{log}");
}

#[apply(on_one_database)]
async fn too_large_headers_are_refused(client: Client) {
    let (connection, account) = connect(&client).await;
    let long = "x".repeat(17_000);
    let headers = [account, ("x-long", &long)];
    let answer = list(&connection, &headers).await;
    answer.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let status = answer.status.expect("a status");
    assert!(status.message().contains("metadata"), "{status}");
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn an_authorization_that_is_not_needed_counts_as_a_header(client: Client) {
    let (connection, account) = connect(&client).await;
    let long = "x".repeat(17_000);
    let headers = [account, ("authorization", &long)];
    let answer = list(&connection, &headers).await;
    answer.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_serves(&connection, account).await;
}

#[apply(on_one_database)]
async fn of_two_deadlines_the_shorter_counts(client: Client) {
    let (connection, account) = connect(&client).await;
    for timeouts in [["60S", "0S"], ["0S", "60S"]] {
        let [first, second] = timeouts.map(|timeout| ("grpc-timeout", timeout));
        let answer = list(&connection, &[account, first, second]).await;
        answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    }
    let malformed = [account, ("grpc-timeout", "60S"), ("grpc-timeout", "soon")];
    let answer = list(&connection, &malformed).await;
    answer.is(Code::InvalidArgument, "FIELD_INVALID");
}

#[apply(on_one_database)]
async fn messages_in_another_encoding_are_unimplemented(client: Client) {
    let (connection, account) = connect(&client).await;
    for content in [
        "application/grpc+json",
        "application/grpc+thrift;charset=utf-8",
        "application/grpc+",
    ] {
        let headers = [account, ("content-type", content)];
        let answer = connection
            .send(
                Method::POST,
                LIST,
                &headers,
                &framed(b"{}"),
                RequestEnd::Sent,
            )
            .await;
        assert_eq!(answer.http, 200, "{content}");
        answer.is(Code::Unimplemented, "UNIMPLEMENTED");
    }
    assert_serves(&connection, account).await;
}

/// It needs its own settings, and the database does not matter.
#[tokio::test]
async fn the_servers_time_limit_caps_the_callers_deadline() {
    let settings = in_memory().set("EXPERTISE_REQUEST_TIMEOUT", "50ms");
    let server = TestServer::start(settings).await;
    let connection = Http2Connection::to(server.address()).await;
    for timeout in ["1H", "60S", "100m"] {
        let headers = [("x-account-id", "42"), ("grpc-timeout", timeout)];
        let answer = connection
            .call(CREATE, &headers, &prefix(0, 9), RequestEnd::Never)
            .await;
        answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
        let status = answer.status.expect("a status");
        let message = status.message();
        assert!(message.contains("EXPERTISE_REQUEST_TIMEOUT"), "{message}");
    }
}

/// A stored step may exceed a message limit that was lowered later.
#[tokio::test]
async fn a_too_large_response_is_an_error() {
    let file = Scratch::of_this_run().path("lowered.db");
    let url = format!("sqlite:{}", file.display());
    let server = TestServer::start(Settings::new(&url)).await;
    let before = server.client();
    let guide = before.given_task(task("Guide")).await;
    let large = information_step(&guide, "large").with_body("x".repeat(100_000));
    let step = before.given_step(large).await;

    server.shut_down().await;

    let lowered = Settings::new(&url).set("EXPERTISE_MAX_MESSAGE_BYTES", 65_536);
    let server = TestServer::start(lowered).await;
    let after = server.client();
    let too_large = (Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let read = after.get_step(&step.guid).await.refused();
    read.is(too_large.0, too_large.1);
    assert_eq!(read.metadata()["limit_bytes"], "65536");
    let listed = list_steps_of(&guide.guid).with(|it| it.expand = vec!["body".to_owned()]);
    let listed = after.call(listed).await.refused();
    listed.is(too_large.0, too_large.1);
    let exported = after.export(&guide.guid).await.refused();
    exported.is(too_large.0, too_large.1);
    assert_eq!(
        after.get_task(&guide.guid).await.accepted().steps,
        [step.guid]
    );
}
