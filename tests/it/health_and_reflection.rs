//! The services of gRPC itself: health and reflection.

use crate::kit::{contract::reflect, prelude::*};
use prost::Message;
use prost_types::FileDescriptorProto;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

on_both_databases![
    the_server_and_each_service_are_healthy_without_credentials,
    the_health_of_an_unknown_service_is_not_found,
    reflection_lists_the_services_without_credentials,
    reflection_describes_every_message_without_comments,
    reflection_serves_v1alpha_too,
];

const SERVICES: [&str; 4] = [
    "expertise.v1.TaskService",
    "expertise.v1.StepService",
    "expertise.v1.RoleService",
    "expertise.v1.TranslationService",
];

async fn check(client: &Client, service: &str) -> Result<ServingStatus, tonic::Status> {
    let service = service.to_owned();
    let mut health = HealthClient::new(client.channel());
    let response = health.check(HealthCheckRequest { service }).await?;
    Ok(response.into_inner().status())
}

async fn the_server_and_each_service_are_healthy_without_credentials(client: Client) {
    for service in SERVICES.into_iter().chain([""]) {
        let status = check(&client, service).await.accepted();
        assert_eq!(status, ServingStatus::Serving, "{service}");
    }
}

async fn the_health_of_an_unknown_service_is_not_found(client: Client) {
    let failure = check(&client, "expertise.v1.Nothing").await.refused();
    assert_eq!(failure.code, Code::NotFound);
}

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

async fn reflection_describes_every_message_without_comments(client: Client) {
    for symbol in [
        "expertise.v1.TaskService",
        "expertise.v1.Step",
        "expertise.v1.ErrorReason",
        "google.rpc.BadRequest",
        "google.rpc.ErrorInfo",
    ] {
        let request = MessageRequest::FileContainingSymbol(symbol.to_owned());
        let answer = reflect(&client, request).await;
        let MessageResponse::FileDescriptorResponse(files) = answer else {
            panic!("{symbol}: {answer:?}");
        };
        for file in files.file_descriptor_proto {
            let file = FileDescriptorProto::decode(&*file).unwrap();
            if file.package() == "expertise.v1" {
                assert_eq!(file.source_code_info, None);
            }
        }
    }
}

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
