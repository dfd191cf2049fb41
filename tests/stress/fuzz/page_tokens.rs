//! Page tokens: each is valid for its own listing alone, and leads to the same page. An
//! altered one is refused.

use bytes::Bytes;
use expertise::proto::v1::*;
use prost::Message;
use prost_reflect::{DynamicMessage, Value};
use tonic_types::StatusExt;

use super::{
    executions::{Input, execute},
    local_service::LocalService,
    messages::Messages,
    mutations::mutate_text,
    response_rules::is_of_the_contract,
};
use crate::kit::sample;

const WORDS: [&str; 6] = ["A", "_", "-", "=", "==", "AAAAAAAAAAAAAAAAAAAAAA"];

const FIRST_VARIABLE: &str = "components.7.first";
const SECOND_VARIABLE: &str = "components.7.second";

/// A listing with the token of its second page.
struct Listing {
    account: &'static str,
    method: &'static str,
    request: DynamicMessage,
    token: String,
    second_page: Bytes,
}

/// The encoded request with this token.
fn with_token(request: &DynamicMessage, token: &str) -> Bytes {
    let mut request = request.clone();
    request.set_field_by_name("page_token", Value::String(token.to_owned()));
    request.encode_to_vec().into()
}

#[test]
fn a_page_token_is_valid_for_its_own_listing_alone() {
    let mut service = LocalService::new();
    let mut listings = Vec::new();
    for account in ["one", "other"] {
        service.call_as(account);
        listings.extend(listings_of(&service, account));
    }
    let mut accepted = 0_u64;
    execute("page_tokens", 150, |rng| {
        let listing = rng.pick(&listings);
        let other = rng.pick(&listings);
        let token = match rng.below(8) {
            0 => listing.token.clone(),
            1 => other.token.clone(),
            2 => {
                // The beginning of one and the end of another.
                let at = rng.below(listing.token.len().min(other.token.len()));
                format!("{}{}", &listing.token[..at], &other.token[at..])
            }
            _ => mutate_text(rng, &other.token, &WORDS),
        };
        if token.is_empty() {
            return;
        }
        let described = format!("{} {token}", listing.method);
        let _input = Input {
            target: "page_tokens",
            bytes: described.as_bytes(),
        };
        service.call_as(listing.account);
        let answer = service.send(listing.method, with_token(&listing.request, &token));
        match answer {
            Ok(page) => {
                accepted += 1;
                assert_eq!(token, listing.token, "an altered token is accepted");
                assert_eq!(page, listing.second_page);
            }
            Err(status) => {
                assert_ne!(token, listing.token, "{status:?}");
                assert_eq!(is_of_the_contract(&status), "PAGE_TOKEN_INVALID");
                let details = status.get_error_details();
                let bad = details.bad_request().expect("a BadRequest");
                assert_eq!(bad.field_violations[0].field, "page_token");
            }
        }
    });
    assert!(accepted > 0, "no token was accepted");
}

/// Imports a guide with several findings, in which two steps read two variables that nothing
/// sets. Returns its GUID.
fn import_faulty_guide(service: &LocalService) -> String {
    let steps = ["One", "Two"].map(|title| Step {
        dependencies: Some(sample::all_of(vec![
            sample::when(FIRST_VARIABLE, "=", "on"),
            sample::when(SECOND_VARIABLE, "=", "off"),
        ])),
        ..sample::document_step(StepType::Information, title)
    });
    let request = ImportTaskRequest {
        document: Some(sample::document("Faulty", steps.into())),
        ..ImportTaskRequest::default()
    };
    let imported = service.call("TaskService/ImportTask", &request);
    let imported: ImportTaskResponse = imported.expect("it is imported");
    imported.task.expect("a task").guid
}

fn listings_of(service: &LocalService, account: &'static str) -> Vec<Listing> {
    let filled = service.fill();
    let more = CreateRoleRequest {
        role: Some(Role {
            name: "Expert".to_owned(),
            ..Role::default()
        }),
    };
    let _: CreateRoleResponse = service.call("RoleService/CreateRole", &more).unwrap();
    let tasks = |product_id| ListTasksRequest {
        product_id,
        page_size: 1,
        ..ListTasksRequest::default()
    };
    let steps = |expand: &[&str]| ListStepsRequest {
        task: filled.guide.guid.clone(),
        expand: expand.iter().map(ToString::to_string).collect(),
        page_size: 1,
        ..ListStepsRequest::default()
    };
    let roles = ListRolesRequest {
        page_size: 1,
        ..ListRolesRequest::default()
    };
    let work = |language: &str| ListTranslationWorkRequest {
        languages: vec![language.to_owned()],
        page_size: 1,
        ..ListTranslationWorkRequest::default()
    };
    let preview = |language: &str| PreviewTaskRequest {
        source: Some(preview_task_request::Source::Guid(
            filled.guide.guid.clone(),
        )),
        language: language.to_owned(),
        page_size: 1,
        ..PreviewTaskRequest::default()
    };
    let faulty = import_faulty_guide(service);
    let validation = |include_unpublished| ValidateTaskRequest {
        options: Some(ValidationOptions {
            include_unpublished,
            ..ValidationOptions::default()
        }),
        page_size: 1,
        ..sample::validation_of(&faulty)
    };
    let findings = |product_id| ListFindingsRequest {
        product_id,
        page_size: 1,
        ..ListFindingsRequest::default()
    };
    let references = |variable: &str| ListReferencesRequest {
        variable: variable.to_owned(),
        page_size: 1,
        ..ListReferencesRequest::default()
    };
    let requests = [
        (
            "AnalysisService/ValidateTask",
            validation(false).encode_to_vec(),
        ),
        (
            "AnalysisService/ValidateTask",
            validation(true).encode_to_vec(),
        ),
        (
            "AnalysisService/ListFindings",
            findings(None).encode_to_vec(),
        ),
        (
            "AnalysisService/ListFindings",
            findings(Some(sample::PRODUCT)).encode_to_vec(),
        ),
        (
            "AnalysisService/ListReferences",
            references(FIRST_VARIABLE).encode_to_vec(),
        ),
        (
            "AnalysisService/ListReferences",
            references(SECOND_VARIABLE).encode_to_vec(),
        ),
        ("AnalysisService/PreviewTask", preview("").encode_to_vec()),
        ("AnalysisService/PreviewTask", preview("de").encode_to_vec()),
        ("TaskService/ListTasks", tasks(None).encode_to_vec()),
        ("TaskService/ListTasks", tasks(Some(7)).encode_to_vec()),
        ("StepService/ListSteps", steps(&[]).encode_to_vec()),
        ("StepService/ListSteps", steps(&["body"]).encode_to_vec()),
        ("RoleService/ListRoles", roles.encode_to_vec()),
        (
            "TranslationService/ListTranslationWork",
            work("es").encode_to_vec(),
        ),
        (
            "TranslationService/ListTranslationWork",
            work("fr").encode_to_vec(),
        ),
    ];
    let messages = Messages::new();
    let listing = |(method, request): (&'static str, Vec<u8>)| {
        let (_, name) = method.split_once('/').expect("a method");
        let request = messages.decode(&format!("expertise.v1.{name}Request"), &request);
        let first = service.send(method, with_token(&request, ""));
        let first = first.expect("the first page");
        let first = messages.decode(&format!("expertise.v1.{name}Response"), &first);
        let token = first.get_field_by_name("next_page_token");
        let token = token.expect("a token").as_str().expect("a text").to_owned();
        assert!(!token.is_empty(), "{method} has a second page");
        let second_page = service.send(method, with_token(&request, &token));
        Listing {
            account,
            method,
            second_page: second_page.expect("the second page"),
            request,
            token,
        }
    };
    requests.into_iter().map(listing).collect()
}
