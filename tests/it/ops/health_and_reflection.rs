//! The services of gRPC itself: health and reflection.

use std::time::{Duration, Instant};

use crate::{
    kit::{
        http2::{Http2Connection, Http2Response, RequestEnd, framed, prefix},
        server::{TestServer, in_memory},
    },
    prelude::*,
};
use prost::Message;
use prost_types::FileDescriptorProto;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

/// Every rpc of both.
const RPCS: [&str; 4] = [
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/// The deadline of a call whose first message must come before it, also on a busy machine.
const ENOUGH_TO_ANSWER: [(&str, &str); 1] = [("grpc-timeout", "2S")];
/// Field 1, a text, that is not UTF-8.
const BROKEN: &[u8] = b"\x0a\x01\xff";

const SERVICES: [&str; 8] = [
    "expertise.v1.TaskService",
    "expertise.v1.StepService",
    "expertise.v1.RoleService",
    "expertise.v1.TranslationService",
    "expertise.v1.RevisionService",
    "expertise.v1.AnalysisService",
    "expertise.v1.ChangeService",
    "expertise.v1.IndexService",
];

/// The response to one reflection request.
async fn reflect(client: &Client, request: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let mut reflection = ServerReflectionClient::new(client.channel());
    let stream = tokio_stream::once(request);
    let answers = reflection.server_reflection_info(stream).await;
    let answer = answers.expect("reflection").into_inner().message().await;
    let answer = answer.expect("reflection").expect("an answer");
    answer.message_response.expect("an answer")
}

async fn check(client: &Client, service: &str) -> Result<ServingStatus, tonic::Status> {
    let service = service.to_owned();
    let mut health = HealthClient::new(client.channel());
    let response = health.check(HealthCheckRequest { service }).await?;
    Ok(response.into_inner().status())
}

#[apply(on_one_database)]
async fn the_server_and_each_service_are_healthy_without_credentials(client: Client) {
    for service in SERVICES.into_iter().chain([""]) {
        let status = check(&client, service).await.accepted();
        assert_eq!(status, ServingStatus::Serving, "{service}");
    }
}

#[apply(on_one_database)]
async fn the_health_of_an_unknown_service_is_not_found(client: Client) {
    let failure = check(&client, "expertise.v1.Nothing").await.refused();
    assert_eq!(failure.code, Code::NotFound);
}

#[apply(on_one_database)]
async fn reflection_lists_the_services_without_credentials(client: Client) {
    let request = MessageRequest::ListServices(String::new());
    let MessageResponse::ListServicesResponse(listed) = reflect(&client, request).await else {
        panic!("no list of services");
    };
    let listed: Vec<String> = listed.service.into_iter().map(|s| s.name).collect();
    for service in SERVICES.into_iter().chain(["grpc.health.v1.Health"]) {
        assert!(listed.iter().any(|name| name == service), "{listed:?}");
    }
}

#[apply(on_one_database)]
async fn reflection_describes_every_message_without_comments(client: Client) {
    for (symbol, file) in [
        (
            "expertise.v1.TaskService",
            "expertise/v1/task_service.proto",
        ),
        ("expertise.v1.Step", "expertise/v1/resources.proto"),
        (
            "expertise.v1.ErrorReason",
            "expertise/v1/error_reason.proto",
        ),
        ("google.rpc.BadRequest", "google/rpc/error_details.proto"),
        ("google.rpc.ErrorInfo", "google/rpc/error_details.proto"),
    ] {
        let request = MessageRequest::FileContainingSymbol(symbol.to_owned());
        let answer = reflect(&client, request).await;
        let MessageResponse::FileDescriptorResponse(files) = answer else {
            panic!("{symbol}: {answer:?}");
        };
        let files = files.file_descriptor_proto.iter();
        let files: Vec<_> = files
            .map(|file| FileDescriptorProto::decode(&**file).unwrap())
            .collect();
        assert_eq!(files[0].name(), file);
        for file in files {
            if file.package() == "expertise.v1" {
                assert_eq!(file.source_code_info, None);
            }
        }
    }
}

/// With the options of Google's annotations, which a decoded descriptor loses.
#[apply(on_one_database)]
async fn reflection_serves_descriptors_as_they_were_compiled(client: Client) {
    for name in [
        "expertise/v1/task_service.proto",
        "expertise/v1/resources.proto",
    ] {
        let request = MessageRequest::FileByFilename(name.to_owned());
        let answer = reflect(&client, request).await;
        let MessageResponse::FileDescriptorResponse(files) = answer else {
            panic!("{name}: {answer:?}");
        };
        let served = &files.file_descriptor_proto[0];
        let compiled = expertise::proto::FILE_DESCRIPTOR_SET;
        let is_part = compiled
            .windows(served.len())
            .any(|part| part == &served[..]);
        assert!(is_part, "{name}");
        let decoded = FileDescriptorProto::decode(&served[..]).unwrap();
        assert!(decoded.encoded_len() < served.len(), "{name} has options");
    }
}

#[apply(on_one_database)]
async fn reflection_serves_v1alpha_too(client: Client) {
    use tonic_reflection::pb::v1alpha::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest,
    };
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut reflection = ServerReflectionClient::new(client.channel());
    let stream = tokio_stream::once(request);
    let answers = reflection.server_reflection_info(stream).await.accepted();
    let answer = answers.into_inner().message().await.accepted();
    assert!(format!("{answer:?}").contains("expertise.v1.StepService"));
}

async fn send(client: &Client, rpc: &str, bytes: &[u8], end: RequestEnd) -> Http2Response {
    let connection = Http2Connection::to(client.address()).await;
    connection.call(rpc, &[], bytes, end).await
}

#[apply(on_one_database)]
async fn an_undecodable_message_ends_the_call(client: Client) {
    for end in [RequestEnd::Sent, RequestEnd::Never] {
        for rpc in &RPCS[..2] {
            let answer = send(&client, rpc, &framed(BROKEN), end).await;
            assert_eq!(answer.status().code(), Code::Internal, "{rpc}");
        }
        for rpc in &RPCS[2..] {
            // Field 7, list_services.
            let bytes = [framed(b"\x3a\0"), framed(BROKEN)].concat();
            let answer = send(&client, rpc, &bytes, end).await;
            assert!(!answer.body.is_empty(), "the first message is answered");
        }
    }
}

#[apply(on_one_database)]
async fn a_too_large_message_is_refused_by_its_prefix(client: Client) {
    for rpc in RPCS {
        let declared = prefix(0, 80_000_000);
        let answer = send(&client, rpc, &declared, RequestEnd::Never).await;
        assert!(answer.body.is_empty(), "{rpc}");
    }
    let answer = send(&client, RPCS[0], &prefix(0, 4097), RequestEnd::Never).await;
    assert_eq!(answer.status().code(), Code::OutOfRange);
}

#[apply(on_one_database)]
async fn a_body_that_is_not_one_message_of_health_is_refused(client: Client) {
    for bytes in [
        &b""[..],
        b"\0\0\0",
        &prefix(0, 9),
        &prefix(1, 0),
        &prefix(7, 0),
    ] {
        let answer = send(&client, RPCS[0], bytes, RequestEnd::Sent).await;
        assert_eq!(answer.status().code(), Code::Internal, "{bytes:?}");
    }
}

#[apply(on_one_database)]
async fn a_compressed_request_is_unimplemented(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let gzip = [("grpc-encoding", "gzip")];
    for rpc in RPCS {
        let answer = connection
            .call(rpc, &gzip, &framed(b""), RequestEnd::Sent)
            .await;
        answer.is(Code::Unimplemented, "UNIMPLEMENTED");
        assert_eq!(answer.header("grpc-accept-encoding"), Some("identity"));
    }
}

#[apply(on_one_database)]
async fn other_protocols_are_refused(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    for rpc in RPCS {
        let get = connection.send(http::Method::GET, rpc, &[], b"");
        assert_eq!(get.await.http, 405);
        let json = [("content-type", "application/json")];
        let post = connection.send(http::Method::POST, rpc, &json, b"{}");
        assert_eq!(post.await.http, 415);
    }
}

#[apply(on_one_database)]
async fn too_large_headers_are_refused(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let long = "x".repeat(17_000);
    for rpc in RPCS {
        for name in ["x-pad", "authorization"] {
            let headers = [(name, long.as_str())];
            let answer = connection
                .call(rpc, &headers, &framed(b""), RequestEnd::Never)
                .await;
            answer.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
        }
    }
}

#[apply(on_one_database)]
async fn a_stream_that_never_ends_ends_at_its_deadline(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let timeout = [("grpc-timeout", "50m")];
    for rpc in RPCS {
        for begun in [&b""[..], &prefix(0, 1_000)] {
            let answer = connection.call(rpc, &timeout, begun, RequestEnd::Never);
            answer.await.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
        }
    }
    for rpc in &RPCS[2..] {
        // Field 7, list_services: it is answered, and the stream stays open.
        let begun = framed(b"\x3a\0");
        let answer = connection.call(rpc, &ENOUGH_TO_ANSWER, &begun, RequestEnd::Never);
        let answer = answer.await;
        assert!(!answer.body.is_empty(), "the message is answered");
        answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    }
}

#[apply(on_one_database)]
async fn a_watch_goes_on_until_its_callers_deadline(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let answer = connection
        .call(RPCS[1], &ENOUGH_TO_ANSWER, &framed(b""), RequestEnd::Sent)
        .await;
    assert!(!answer.body.is_empty(), "the status now");
    answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn the_servers_time_limit_ends_all_but_a_watch() {
    let limit = Duration::from_millis(300);
    let server = TestServer::start(in_memory().set("EXPERTISE_REQUEST_TIMEOUT", "300ms")).await;
    let connection = Http2Connection::to(server.address()).await;
    let begun = prefix(0, 9);
    let calls = RPCS.map(|rpc| {
        let longer = [("grpc-timeout", "1H")];
        let (connection, begun) = (&connection, &begun);
        async move {
            let answer = connection.call(rpc, &longer, begun, RequestEnd::Never);
            let answer = answer.await;
            answer.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
            let message = answer.status().message().to_owned();
            assert!(message.contains("EXPERTISE_REQUEST_TIMEOUT"), "{message}");
        }
    });
    futures_util::future::join_all(calls).await;
    let started = Instant::now();
    let watch = connection
        .call(RPCS[1], &ENOUGH_TO_ANSWER, &framed(b""), RequestEnd::Sent)
        .await;
    assert!(!watch.body.is_empty(), "the status now");
    watch.is(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    assert!(started.elapsed() >= 2 * limit);
}

#[tokio::test]
async fn without_reflection_there_is_only_health() {
    let settings = in_memory().set("EXPERTISE_REFLECTION", "false");
    let server = TestServer::start(settings).await;
    let connection = Http2Connection::to(server.address()).await;
    for (rpc, message, code) in [
        (RPCS[0], &b""[..], Code::Ok),
        // Field 7, list_services.
        (RPCS[2], b"\x3a\0", Code::Unimplemented),
        (RPCS[3], b"\x3a\0", Code::Unimplemented),
    ] {
        let message = framed(message);
        let answer = connection.call(rpc, &[], &message, RequestEnd::Sent);
        assert_eq!(answer.await.status().code(), code, "{rpc}");
    }
}
