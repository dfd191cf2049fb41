//! HTTP/2 streams that no gRPC client sends, and checks that come before the message.

use http::Method;
use prost::Message;

use crate::{
    kit::{
        http2::{Http2Connection, Http2Response, RequestEnd, framed, prefix},
        scratch::Scratch,
        server::{Settings, TestServer, http_answer, in_memory},
    },
    prelude::*,
};

const GET: &str = "/expertise.v1.TaskService/GetTask";
const LIST: &str = "/expertise.v1.TaskService/ListTasks";
const CREATE: &str = "/expertise.v1.TaskService/CreateTask";

const INVALID: (Code, &str) = (Code::InvalidArgument, "FIELD_INVALID");
const EXPIRED: (Code, &str) = (Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
const TOO_LARGE: (Code, &str) = (Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
const UNIMPLEMENTED: (Code, &str) = (Code::Unimplemented, "UNIMPLEMENTED");

/// A connection of an account.
struct Caller {
    connection: Http2Connection,
    account: String,
}

impl Caller {
    async fn of(client: &Client) -> Self {
        Self {
            connection: Http2Connection::to(client.address()).await,
            account: client.account().to_owned(),
        }
    }

    /// A gRPC request with these headers and the account.
    async fn call(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        bytes: &[u8],
        end: RequestEnd,
    ) -> Http2Response {
        let headers = [&[("x-account-id", &*self.account)], headers].concat();
        self.connection.call(path, &headers, bytes, end).await
    }

    /// ListTasks with these headers.
    async fn list(&self, headers: &[(&str, &str)]) -> Http2Response {
        self.call(LIST, headers, &framed(b""), RequestEnd::Sent)
            .await
    }

    /// ListTasks by another method of HTTP, or with another type of content.
    async fn send(&self, method: Method, content: &str, bytes: &[u8]) -> Http2Response {
        let headers = [("x-account-id", &*self.account), ("content-type", content)];
        self.connection.send(method, LIST, &headers, bytes).await
    }

    /// Asserts that the connection still serves.
    async fn is_served(&self) {
        let answer = self.list(&[]).await;
        assert_eq!(answer.status().code(), Code::Ok, "{answer:?}");
        assert!(answer.body.len() >= 5);
    }
}

#[track_caller]
fn assert_is(answer: &Http2Response, (code, reason): (Code, &str), what: &str) {
    assert_eq!(answer.refusal(), (code, reason.to_owned()), "{what}");
}

#[apply(on_one_database)]
async fn a_body_that_is_not_one_message_is_invalid(client: Client) {
    let caller = Caller::of(&client).await;
    let guid = unknown_guid();
    let guid = GetTaskRequest { guid }.encode_to_vec();
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
        let answer = caller.call(GET, &[], &bytes, RequestEnd::Sent).await;
        assert_is(&answer, INVALID, what);
        caller.is_served().await;
    }
    for encoding in ["gzip", "deflate", "zstd", "odd"] {
        for flag in [0, 1] {
            let bytes = [&prefix(flag, 38), &guid[..]].concat();
            let headers = [("grpc-encoding", encoding)];
            let answer = caller.call(GET, &headers, &bytes, RequestEnd::Sent).await;
            assert_is(&answer, UNIMPLEMENTED, encoding);
            assert_eq!(answer.header("grpc-accept-encoding"), Some("identity"));
        }
    }
    caller.is_served().await;
}

/// Imports and steps may be large, other requests not.
#[apply(on_one_database)]
async fn a_too_long_message_is_refused_by_its_prefix(client: Client) {
    const MIB: usize = 1024 * 1024;
    let caller = Caller::of(&client).await;
    for (path, length, expected) in [
        (CREATE, 72 * MIB + 1, TOO_LARGE),
        (CREATE, u32::MAX as usize, TOO_LARGE),
        (CREATE, 4 * MIB + 1, EXPIRED),
        (GET, 4 * MIB + 1, TOO_LARGE),
        (LIST, 4 * MIB + 1, TOO_LARGE),
    ] {
        let (headers, claim) = ([("grpc-timeout", "100m")], prefix(0, length));
        let answer = caller.call(path, &headers, &claim, RequestEnd::Never).await;
        assert_is(&answer, expected, path);
    }
    caller.is_served().await;
}

#[apply(on_one_database)]
async fn credentials_are_checked_before_64_megabytes_arrive(client: Client) {
    let caller = Caller::of(&client).await;
    let announced = prefix(0, 64_000_000);
    let account = ("x-account-id", client.account());
    for (headers, code, reason) in [
        (&[][..], Code::Unauthenticated, "CREDENTIALS_MISSING"),
        (
            &[("x-account-id", "a b")],
            Code::Unauthenticated,
            "CREDENTIALS_INVALID",
        ),
        (
            &[account, ("x-scopes", "read")],
            Code::PermissionDenied,
            "SCOPE_MISSING",
        ),
    ] {
        let headers = [&[("content-length", "64000005")], headers].concat();
        let connection = &caller.connection;
        let called = connection.call(CREATE, &headers, &announced, RequestEnd::Never);
        called.await.is(code, reason);
    }
    caller.is_served().await;
}

#[apply(on_one_database)]
async fn a_malformed_deadline_is_invalid_and_a_passed_one_exceeded(client: Client) {
    let caller = Caller::of(&client).await;
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
        let answer = caller.list(&[("grpc-timeout", timeout)]).await;
        assert_is(&answer, INVALID, timeout);
        Failure::from(answer.status()).violates(&[("grpc-timeout", "FIELD_INVALID")]);
    }
    for timeout in ["0S", "1n", "00000000H"] {
        let answer = caller.list(&[("grpc-timeout", timeout)]).await;
        assert_is(&answer, EXPIRED, timeout);
    }
    for timeout in ["99999999H", "59M", "60S", "60000m", "60000000u"] {
        let answer = caller.list(&[("grpc-timeout", timeout)]).await;
        assert_eq!(answer.status().code(), Code::Ok, "{timeout}: {answer:?}");
    }
    // Of two, the shorter counts.
    for (first, second, expected) in [
        ("60S", "0S", EXPIRED),
        ("0S", "60S", EXPIRED),
        ("60S", "soon", INVALID),
    ] {
        let both = [("grpc-timeout", first), ("grpc-timeout", second)];
        assert_is(&caller.list(&both).await, expected, second);
    }
}

#[apply(on_one_database)]
async fn only_a_write_whose_deadline_passed_is_said_to_be_perhaps_done(client: Client) {
    let caller = Caller::of(&client).await;
    let headers = [("grpc-timeout", "0S")];
    for (path, expected) in [(LIST, false), (GET, false), (CREATE, true)] {
        let empty = framed(b"");
        let answer = caller.call(path, &headers, &empty, RequestEnd::Sent);
        let status = answer.await.status();
        assert_eq!(status.message().contains("write"), expected, "{status:?}");
        assert!(status.message().starts_with("the deadline has passed"));
    }
}

#[apply(on_one_database)]
async fn a_call_whose_message_never_ends_ends_at_its_deadline(client: Client) {
    let caller = Caller::of(&client).await;
    for begun in [
        &b""[..],
        // A larger message would wait for messages of other tests.
        &prefix(0, 1_000_000),
        &[&prefix(0, 9)[..], b"abc"].concat(),
    ] {
        let headers = [("grpc-timeout", "50m")];
        let answer = caller.call(CREATE, &headers, begun, RequestEnd::Never);
        assert_is(&answer.await, EXPIRED, "it never ends");
    }
    caller.is_served().await;
}

#[apply(on_one_database)]
async fn unknown_paths_are_unimplemented(client: Client) {
    let caller = Caller::of(&client).await;
    let account = ("x-account-id", client.account());
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
            let connection = &caller.connection;
            let empty = framed(b"");
            let answer = connection.call(path, headers, &empty, RequestEnd::Sent);
            let answer = answer.await;
            // The service and the first word decide which scope is needed.
            let needs_scope = path.starts_with("/expertise.v1.TaskService/Get");
            let expected = match headers.is_empty() && needs_scope {
                true => (Code::Unauthenticated, "CREDENTIALS_MISSING"),
                false => UNIMPLEMENTED,
            };
            // Health and reflection refuse without details.
            match path.starts_with("/grpc.") {
                true => assert_eq!(answer.status().code(), expected.0, "{path}"),
                false => assert_is(&answer, expected, path),
            }
        }
    }
    caller.is_served().await;
}

#[apply(on_one_database)]
async fn requests_that_are_not_grpc_get_http_errors(client: Client) {
    let caller = Caller::of(&client).await;
    let grpc = "application/grpc";
    for (method, content, http, code) in [
        (Method::POST, "", 415, Code::Unimplemented),
        (Method::POST, "text/plain", 415, Code::Unimplemented),
        (Method::POST, "application/json", 415, Code::Unimplemented),
        (Method::POST, "application/grpcs", 415, Code::Unimplemented),
        (Method::GET, grpc, 405, Code::Unimplemented),
        (Method::PUT, grpc, 405, Code::Unimplemented),
        (Method::HEAD, grpc, 405, Code::Unimplemented),
        (Method::OPTIONS, grpc, 405, Code::Unimplemented),
        (Method::POST, grpc, 200, Code::Ok),
        (Method::POST, "application/grpc+proto", 200, Code::Ok),
        (
            Method::POST,
            "application/grpc;charset=utf-8",
            200,
            Code::Ok,
        ),
    ] {
        let bytes = match method {
            Method::POST => framed(b""),
            _ => Vec::new(),
        };
        let answer = caller.send(method, content, &bytes).await;
        let found = (answer.http, answer.status().code());
        assert_eq!(found, (http, code), "{content}: {answer:?}");
    }
    // Messages in another encoding.
    for content in [
        "application/grpc+json",
        "application/grpc+thrift;charset=utf-8",
        "application/grpc+",
    ] {
        let answer = caller.send(Method::POST, content, &framed(b"{}")).await;
        assert_is(&answer, UNIMPLEMENTED, content);
    }
    caller.is_served().await;
}

/// The trailers are in the body, after a byte with the highest bit set.
#[apply(on_one_database)]
async fn browsers_are_served_over_grpc_web(client: Client) {
    let caller = Caller::of(&client).await;
    let content = "application/grpc-web";
    let answer = caller.send(Method::POST, content, &framed(b"")).await;
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
        connection.send(Method::OPTIONS, LIST, &headers, b"").await
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
    for (method, content, code, message) in [
        ("GET", "application/grpc", "405", "calls%20are"),
        ("POST", "application/json", "415", "calls%20are"),
        ("POST", "application/grpcs", "415", "calls%20are"),
        ("POST", "application/grpc", "415", "gRPC%20needs%20HTTP/2"),
        (
            "POST",
            "application/grpc+proto",
            "415",
            "gRPC%20needs%20HTTP/2",
        ),
        (
            "POST",
            "application/grpc;x=y",
            "415",
            "gRPC%20needs%20HTTP/2",
        ),
    ] {
        let request = format!(
            "{method} / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {content}\r\n\
             content-length: 0\r\n\r\n"
        );
        let (head, _) = http_answer(server.address(), &request).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{head}");
        let message = format!("grpc-message: {message}");
        assert!(head.contains(&message), "{content}: {head}");
    }
}

#[tokio::test]
async fn a_connection_ends_at_its_age_and_its_calls_go_on_over_another() {
    let settings = in_memory().set("EXPERTISE_MAX_CONNECTION_AGE", "1s");
    let server = TestServer::start(settings).await;
    let client = server.client();
    for _ in 0..25 {
        // hyper cancels a call that it has not sent when the connection ends.
        let is_unsent = |it: &tonic::Status| it.message() == "operation was canceled";
        match client.create_task(task("Guide")).await {
            Err(status) if is_unsent(&status) => drop(client.given_task(task("Guide")).await),
            created => drop(created.accepted()),
        }
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

/// An authorization that is not needed counts as well.
#[apply(on_one_database)]
async fn too_large_headers_are_refused(client: Client) {
    let caller = Caller::of(&client).await;
    let long = "x".repeat(17_000);
    for name in ["x-long", "authorization"] {
        let answer = caller.list(&[(name, &long)]).await;
        assert_is(&answer, TOO_LARGE, name);
        let message = answer.status().message().to_owned();
        assert!(message.contains("metadata"), "{message}");
    }
    caller.is_served().await;
}

/// It needs its own settings, and the database does not matter.
#[tokio::test]
async fn the_servers_time_limit_caps_the_callers_deadline() {
    let settings = in_memory().set("EXPERTISE_REQUEST_TIMEOUT", "50ms");
    let server = TestServer::start(settings).await;
    let caller = Caller::of(&server.client()).await;
    for timeout in ["1H", "60S", "100m"] {
        let headers = [("grpc-timeout", timeout)];
        let begun = prefix(0, 9);
        let answer = caller.call(CREATE, &headers, &begun, RequestEnd::Never);
        let answer = answer.await;
        assert_is(&answer, EXPIRED, timeout);
        let message = answer.status().message().to_owned();
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
    let read = after.get_step(&step.guid).await.refused();
    read.is(TOO_LARGE.0, TOO_LARGE.1);
    assert_eq!(read.metadata()["limit_bytes"], "65536");
    let listed = list_steps_of(&guide.guid).with(|it| it.expand = vec!["body".to_owned()]);
    let listed = after.call(listed).await.refused();
    listed.is(TOO_LARGE.0, TOO_LARGE.1);
    let exported = after.export(&guide.guid).await.refused();
    exported.is(TOO_LARGE.0, TOO_LARGE.1);
    assert_eq!(
        after.get_task(&guide.guid).await.accepted().steps,
        [step.guid]
    );
}
