//! Every field of every call that can name something of an account, as the
//! server's reflection shows them: what belongs to another account answers like
//! what nobody has, and stays as it is.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost_reflect::{Kind, Value};

use super::{
    accounts::{Mine, Theirs},
    reference_fields::{CASES, Case, NO_REFERENCES, Names, OK},
    response::{Answer, Swap},
};
use crate::kit::{
    contract::{Contract, Place},
    prelude::*,
};

on_both_databases![
    every_field_of_every_call_has_a_case,
    task_calls_do_not_tell_foreign_from_absent,
    imports_do_not_tell_foreign_from_absent,
    step_calls_do_not_tell_foreign_from_absent,
    role_calls_do_not_tell_foreign_from_absent,
    translation_calls_do_not_tell_foreign_from_absent,
];

/// Whether a value of this kind can name anything: text and numbers can, truth
/// values and enums cannot.
fn can_name(place: &Place) -> bool {
    !matches!(
        place.kind(),
        Kind::Bool | Kind::Enum(_) | Kind::Float | Kind::Double
    )
}

fn is_no_reference(place: &Place) -> bool {
    let field = place.field();
    NO_REFERENCES
        .iter()
        .any(|(_, fields)| fields.contains(&field.as_str()))
}

/// The places of a call that name something of an account.
fn references(contract: &Contract, call: &str) -> Vec<Place> {
    let places = contract.places(call).into_iter();
    places
        .filter(|place| can_name(place) && !is_no_reference(place))
        .collect()
}

async fn every_field_of_every_call_has_a_case(client: Client) {
    let contract = Contract::of(&client).await;
    let mut without_case = Vec::new();
    let mut fields = BTreeSet::new();
    let mut met = BTreeSet::new();
    for call in contract.calls() {
        for place in contract.places(call) {
            fields.insert(place.field());
        }
        for place in references(&contract, call) {
            let path = place.path();
            let cases = CASES.iter().enumerate();
            let cases: Vec<usize> = cases
                .filter(|(_, case)| case.call == call && case.covers(&path))
                .map(|(index, _)| index)
                .collect();
            if cases.is_empty() {
                without_case.push(format!("{call} {path}"));
            }
            met.extend(cases);
        }
    }
    assert!(
        without_case.is_empty(),
        "what does another account's id do here? {without_case:#?}"
    );
    let cases = CASES.iter().enumerate();
    let stale: Vec<_> = cases.filter(|(index, _)| !met.contains(index)).collect();
    assert!(stale.is_empty(), "no such fields: {stale:#?}");
    let known = NO_REFERENCES.iter().flat_map(|(_, fields)| *fields);
    let gone: Vec<_> = known.filter(|field| !fields.contains(**field)).collect();
    assert!(gone.is_empty(), "no such fields: {gone:#?}");
}

async fn task_calls_do_not_tell_foreign_from_absent(client: Client) {
    let of_tasks = |case: &Case| case.call.starts_with("TaskService/") && !is_import(case);
    walk(client, of_tasks).await;
}

async fn imports_do_not_tell_foreign_from_absent(client: Client) {
    walk(client, is_import).await;
}

async fn step_calls_do_not_tell_foreign_from_absent(client: Client) {
    walk(client, |case| case.call.starts_with("StepService/")).await;
}

async fn role_calls_do_not_tell_foreign_from_absent(client: Client) {
    walk(client, |case| case.call.starts_with("RoleService/")).await;
}

async fn translation_calls_do_not_tell_foreign_from_absent(client: Client) {
    walk(client, |case| case.call.starts_with("TranslationService/")).await;
}

fn is_import(case: &Case) -> bool {
    case.call == "TaskService/ImportTask"
}

async fn walk(client: Client, chosen: impl Fn(&Case) -> bool) {
    let contract = Contract::of(&client).await;
    let theirs = Theirs::settled(&client).await;
    let (tasks, before) = (theirs.tasks().await, theirs.everything().await);
    for case in CASES.iter().filter(|case| chosen(case)) {
        let places = references(&contract, case.call);
        let mut trial = Trial {
            contract: &contract,
            client: &client,
            theirs: &theirs,
            mine: None,
        };
        for place in places.iter().filter(|place| case.covers(&place.path())) {
            trial.check(case, place).await;
        }
        let after = theirs.tasks().await;
        assert_eq!(after, tasks, "{case:?} changed something of theirs");
    }
    assert_eq!(theirs.everything().await, before);
}

/// A case that is tried out.
struct Trial<'a> {
    contract: &'a Contract,
    client: &'a Client,
    theirs: &'a Theirs,
    /// An account that nothing was done to yet: each call finds the same.
    mine: Option<Mine>,
}

impl Trial<'_> {
    /// Sends what is foreign, absent, malformed and nil.
    async fn check(&mut self, case: &Case, place: &Place) {
        let ids = self.theirs.ids(case.names, case.call);
        let named = format!("{} {}", case.call, place.path());
        let foreign = self.send(case, place, &ids.foreign).await;
        assert_eq!(foreign.reason(), case.absent, "{named}: {foreign:?}");
        let absent = self.send(case, place, &ids.absent).await;
        assert_eq!(foreign, absent, "{named}: foreign, absent");
        let malformed = self.send(case, place, &ids.malformed).await;
        assert_eq!(malformed.reason(), case.malformed, "{named}: {malformed:?}");
        let nil = self.send(case, place, &ids.nil).await;
        match case.names {
            // Without a number there is no id.
            Names::Role => assert_eq!(nil.reason(), case.nil(), "{named}: {nil:?}"),
            _ => assert_eq!(nil, absent, "{named}: nil, absent"),
        }
        if case.names.is_guid() {
            let capitals = ids.foreign.to_uppercase();
            let capitals = self.send(case, place, &capitals).await;
            assert_eq!(capitals, absent, "{named}: capitals, absent");
        }
    }

    /// The answer to a call with this id at the place, and without it.
    async fn send(&mut self, case: &Case, place: &Place, id: &str) -> Answer {
        let mine = match self.mine.take() {
            Some(mine) => mine,
            None => Mine::settled(&self.client.other_account()).await,
        };
        let request = (case.request)(&mine, self.theirs);
        let mut request = self.contract.request(case.call, &request);
        let value = match place.kind() {
            Kind::Int64 => Value::I64(id.parse().expect("a number")),
            _ => Value::String(id.to_owned()),
        };
        place.put(&mut request, value);
        let message = Bytes::from(prost::Message::encode_to_vec(&request));
        let outcome = mine.client.send_bytes(case.call, message).await;
        let answer = Answer::of(self.contract, case.call, outcome);
        // An id in capitals comes back as the service writes it.
        let sent = id.to_lowercase();
        self.theirs.is_not_in(&answer, &sent, &place.path());
        let answer = answer.without(&Swap {
            id: &sent,
            account: mine.client.account(),
        });
        if answer.reason() != OK {
            self.mine = Some(mine);
        }
        answer
    }
}
