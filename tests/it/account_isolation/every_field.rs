//! Every field of every call that can name a resource, by reflection: a resource of
//! another account answers like one that does not exist, and does not change.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost_reflect::{Kind, Value};

use super::{
    accounts::{CallingAccount, OtherAccount},
    reference_fields::{Case, Names, OK, PLAIN_FIELDS, cases},
    response::{CallResult, SentId},
};
use crate::kit::{
    contract::{self, Contract, FieldPath},
    prelude::*,
};

/// Whether a value of this kind can name a resource: texts and integers can.
fn may_name_a_resource(place: &FieldPath) -> bool {
    !matches!(
        place.kind(),
        Kind::Bool | Kind::Enum(_) | Kind::Float | Kind::Double
    )
}

fn names_no_resource(place: &FieldPath) -> bool {
    let field = place.field();
    PLAIN_FIELDS
        .iter()
        .any(|(_, fields)| fields.contains(&field.as_str()))
}

/// The fields of a call that name a resource.
fn references(contract: &Contract, call: &str) -> Vec<FieldPath> {
    let places = contract.field_paths(call).into_iter();
    places
        .filter(|place| may_name_a_resource(place) && !names_no_resource(place))
        .collect()
}

#[apply(on_one_database)]
async fn every_field_of_every_call_has_a_case(client: Client) {
    let contract = Contract::of(&client).await;
    let cases = cases();
    let mut without_case = Vec::new();
    let mut fields = BTreeSet::new();
    let mut covered = BTreeSet::new();
    for call in contract.calls() {
        for place in contract.field_paths(call) {
            fields.insert(place.field());
        }
        for place in references(&contract, call) {
            let path = place.path();
            let covering = cases.iter().enumerate();
            let covering: Vec<usize> = covering
                .filter(|(_, case)| case.call == call && case.covers(&path))
                .map(|(index, _)| index)
                .collect();
            if covering.is_empty() {
                without_case.push(format!("{call} {path}"));
            }
            covered.extend(covering);
        }
    }
    assert!(
        without_case.is_empty(),
        "these fields have no case; add them to cases(), or to PLAIN_FIELDS: {without_case:#?}"
    );
    let stale: Vec<_> = cases
        .iter()
        .enumerate()
        .filter(|(index, _)| !covered.contains(index))
        .collect();
    assert!(stale.is_empty(), "no such fields: {stale:#?}");
    let known = PLAIN_FIELDS.iter().flat_map(|(_, fields)| *fields);
    let gone: Vec<_> = known.filter(|field| !fields.contains(**field)).collect();
    assert!(gone.is_empty(), "no such fields: {gone:#?}");
}

#[apply(on_both_databases)]
async fn task_calls_do_not_tell_foreign_from_absent(client: Client) {
    let of_tasks = |case: &Case| case.call.starts_with("TaskService/") && !is_import(case);
    check_cases(client, of_tasks).await;
}

#[apply(on_both_databases)]
async fn imports_do_not_tell_foreign_from_absent(client: Client) {
    check_cases(client, is_import).await;
}

#[apply(on_both_databases)]
async fn step_calls_do_not_tell_foreign_from_absent(client: Client) {
    check_cases(client, |case| case.call.starts_with("StepService/")).await;
}

#[apply(on_both_databases)]
async fn role_calls_do_not_tell_foreign_from_absent(client: Client) {
    check_cases(client, |case| case.call.starts_with("RoleService/")).await;
}

#[apply(on_both_databases)]
async fn translation_calls_do_not_tell_foreign_from_absent(client: Client) {
    check_cases(client, |case| case.call.starts_with("TranslationService/")).await;
}

#[apply(on_both_databases)]
async fn analysis_calls_do_not_tell_foreign_from_absent(client: Client) {
    check_cases(client, |case| case.call.starts_with("AnalysisService/")).await;
}

#[apply(on_both_databases)]
async fn revision_calls_do_not_tell_foreign_from_absent(client: Client) {
    check_cases(client, |case| case.call.starts_with("RevisionService/")).await;
}

#[apply(on_both_databases)]
async fn calls_of_followers_do_not_tell_foreign_from_absent(client: Client) {
    let of_followers = |case: &Case| {
        let services = ["ChangeService/", "IndexService/"];
        services
            .iter()
            .any(|service| case.call.starts_with(service))
    };
    check_cases(client, of_followers).await;
}

fn is_import(case: &Case) -> bool {
    case.call == "TaskService/ImportTask"
}

async fn check_cases(client: Client, chosen: impl Fn(&Case) -> bool) {
    let contract = Contract::of(&client).await;
    let other = OtherAccount::with_resources(&client).await;
    let (tasks, before) = (other.tasks().await, other.contents().await);
    for case in cases().iter().filter(|case| chosen(case)) {
        let places = references(&contract, case.call);
        let mut check = ReferenceCheck {
            contract: &contract,
            client: &client,
            other: &other,
            caller: None,
        };
        for place in places.iter().filter(|place| case.covers(&place.path())) {
            check.check(case, place).await;
        }
        let after = other.tasks().await;
        assert_eq!(after, tasks, "{case:?} changed the other account");
    }
    assert_eq!(other.contents().await, before);
}

/// A case that is tried out.
struct ReferenceCheck<'a> {
    contract: &'a Contract,
    client: &'a Client,
    other: &'a OtherAccount,
    /// A calling account that no call has changed, so that each finds the same resources.
    caller: Option<CallingAccount>,
}

impl ReferenceCheck<'_> {
    /// Sends a foreign, an absent, a malformed and a nil id.
    async fn check(&mut self, case: &Case, place: &FieldPath) {
        let ids = self.other.ids(case.names, case.call);
        let named = format!("{} {}", case.call, place.path());
        let foreign = self.send(case, place, &ids.foreign).await;
        assert_eq!(foreign.reason(), case.absent, "{named}: {foreign:?}");
        let absent = self.send(case, place, &ids.absent).await;
        assert_eq!(foreign, absent, "{named}: foreign, absent");
        let malformed = self.send(case, place, &ids.malformed).await;
        assert_eq!(malformed.reason(), case.malformed, "{named}: {malformed:?}");
        let nil = self.send(case, place, &ids.nil).await;
        match case.names {
            // The nil id of a role is 0, which counts as missing.
            Names::Role => assert_eq!(nil.reason(), case.nil(), "{named}: {nil:?}"),
            _ => assert_eq!(nil, absent, "{named}: nil, absent"),
        }
        if case.names.is_guid() {
            let capitals = ids.foreign.to_uppercase();
            let capitals = self.send(case, place, &capitals).await;
            assert_eq!(capitals, absent, "{named}: capitals, absent");
        }
    }

    /// The response to the call with this id in the field, with the id masked.
    async fn send(&mut self, case: &Case, place: &FieldPath, id: &str) -> CallResult {
        let caller = match self.caller.take() {
            Some(caller) => caller,
            None => CallingAccount::with_resources(&self.client.other_account()).await,
        };
        let request = contract::request(case.call, case.request(&caller, self.other));
        let mut request = self.contract.request(case.call, &request);
        let value = match place.kind() {
            Kind::Int64 => Value::I64(id.parse().expect("a number")),
            _ => Value::String(id.to_owned()),
        };
        place.set(&mut request, value);
        let message = Bytes::from(prost::Message::encode_to_vec(&request));
        let outcome = caller.client.send_bytes(case.call, message).await;
        let answer = CallResult::of(self.contract, case.call, outcome);
        // The service returns ids in lower case.
        let sent = id.to_lowercase();
        self.other.assert_not_in(&answer, &sent, &place.path());
        let answer = answer.masked(&SentId {
            id: &sent,
            account: caller.client.account(),
        });
        if answer.reason() != OK || case.only_reads() {
            self.caller = Some(caller);
        }
        answer
    }
}
