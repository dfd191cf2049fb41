//! Page tokens: each is valid for its own listing alone, and leads to the same page. An
//! altered one is refused.

use bytes::Bytes;
use expertise::proto::v1::*;
use prost::Message;
use tonic_types::StatusExt;

use super::{
    executions::{Input, execute},
    local_service::LocalService,
    mutations::mutate_text,
    response_rules::is_of_the_contract,
};

const WORDS: [&str; 6] = ["A", "_", "-", "=", "==", "AAAAAAAAAAAAAAAAAAAAAA"];

/// A listing with the token of its second page.
struct Listing {
    account: &'static str,
    method: &'static str,
    /// The request without a token.
    request: Request,
    token: String,
    second_page: Bytes,
}

#[derive(Clone)]
enum Request {
    Tasks(ListTasksRequest),
    Steps(ListStepsRequest),
    Roles(ListRolesRequest),
    Work(ListTranslationWorkRequest),
}

impl Request {
    fn with(&self, token: &str) -> Bytes {
        let page_token = token.to_owned();
        let bytes = match self.clone() {
            Self::Tasks(request) => ListTasksRequest {
                page_token,
                ..request
            }
            .encode_to_vec(),
            Self::Steps(request) => ListStepsRequest {
                page_token,
                ..request
            }
            .encode_to_vec(),
            Self::Roles(request) => ListRolesRequest {
                page_token,
                ..request
            }
            .encode_to_vec(),
            Self::Work(request) => ListTranslationWorkRequest {
                page_token,
                ..request
            }
            .encode_to_vec(),
        };
        bytes.into()
    }
}

#[test]
fn page_tokens() {
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
        let answer = service.send(listing.method, listing.request.with(&token));
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

fn listings_of(service: &LocalService, account: &'static str) -> Vec<Listing> {
    let filled = service.fill();
    let more = CreateRoleRequest {
        role: Some(Role {
            name: "Expert".to_owned(),
            ..Role::default()
        }),
    };
    let _: CreateRoleResponse = service.call("RoleService/CreateRole", &more).unwrap();
    let tasks = |product_id: Option<i64>| {
        Request::Tasks(ListTasksRequest {
            product_id,
            page_size: 1,
            ..ListTasksRequest::default()
        })
    };
    let steps = |expand: &[&str]| {
        Request::Steps(ListStepsRequest {
            task: filled.guide.guid.clone(),
            expand: expand.iter().map(ToString::to_string).collect(),
            page_size: 1,
            ..ListStepsRequest::default()
        })
    };
    let work = |language: &str| {
        Request::Work(ListTranslationWorkRequest {
            languages: vec![language.to_owned()],
            page_size: 1,
            ..ListTranslationWorkRequest::default()
        })
    };
    let roles = ListRolesRequest {
        page_size: 1,
        ..ListRolesRequest::default()
    };
    let requests = [
        tasks(None),
        tasks(Some(7)),
        steps(&[]),
        steps(&["body"]),
        Request::Roles(roles),
        work("es"),
        work("fr"),
    ];
    requests
        .into_iter()
        .map(|request| listing(service, account, request))
        .collect()
}

fn listing(service: &LocalService, account: &'static str, request: Request) -> Listing {
    let method = match request {
        Request::Tasks(_) => "TaskService/ListTasks",
        Request::Steps(_) => "StepService/ListSteps",
        Request::Roles(_) => "RoleService/ListRoles",
        Request::Work(_) => "TranslationService/ListTranslationWork",
    };
    let first = service.send(method, request.with("")).expect("a page");
    let token = match request {
        Request::Tasks(_) => ListTasksResponse::decode(first).unwrap().next_page_token,
        Request::Steps(_) => ListStepsResponse::decode(first).unwrap().next_page_token,
        Request::Roles(_) => ListRolesResponse::decode(first).unwrap().next_page_token,
        Request::Work(_) => {
            let page = ListTranslationWorkResponse::decode(first).unwrap();
            page.next_page_token
        }
    };
    assert!(!token.is_empty(), "{method} has a second page");
    let second_page = service.send(method, request.with(&token));
    Listing {
        account,
        method,
        second_page: second_page.expect("a page"),
        request,
        token,
    }
}
