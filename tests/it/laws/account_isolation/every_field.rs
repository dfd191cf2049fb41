//! Every field of every call that can name a resource. A resource of another account behaves like a
//! missing one, and does not change. `tests/calls.json` says what the fields name.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost_reflect::{DynamicMessage, Kind, Value};

use super::naming_field::NamingField;
use super::{
    other_account::{Ids, OtherAccount},
    response::{CallResult, SentId},
};
use crate::{
    fixture::{Fixture, each_call},
    kit::{
        catalogue::{Entry, catalogue},
        contract::{self, message_of, methods},
    },
    laws::field_paths::{FieldPath, field_paths},
    prelude::*,
};

/// The outcome of a call that is accepted: the service sets the field itself, or the id only ties
/// a document together.
const OK: &str = "OK";

/// Whether a value of this kind can name a resource: texts and integers can.
fn may_name_a_resource(place: &FieldPath) -> bool {
    !matches!(
        place.kind(),
        Kind::Bool | Kind::Enum(_) | Kind::Float | Kind::Double
    )
}

/// The fields of a call that name a resource.
fn references(call: &str) -> Vec<FieldPath> {
    let names_something = |place: &FieldPath| {
        may_name_a_resource(place) && catalogue().kind_of(&place.field()).is_none()
    };
    field_paths(call)
        .into_iter()
        .filter(names_something)
        .collect()
}

#[test]
fn every_call_and_every_field_has_an_entry() {
    let calls: BTreeSet<String> = catalogue().calls.keys().cloned().collect();
    let of_contract: BTreeSet<String> = methods().into_iter().collect();
    assert_eq!(calls, of_contract, "the calls of tests/calls.json");
    let (mut without_entry, mut stale) = (Vec::new(), Vec::new());
    let mut fields = BTreeSet::new();
    for (call, entry) in &catalogue().calls {
        fields.extend(field_paths(call).iter().map(FieldPath::field));
        let places = references(call);
        let names = entry.names();
        for place in &places {
            let path = place.path();
            if !names.iter().any(|named| named.covers(&path)) {
                without_entry.push(format!("{call} {path}"));
            }
        }
        let is_known = |named: &&NamingField| places.iter().any(|it| named.covers(&it.path()));
        let unknown = names.iter().filter(|named| !is_known(named));
        stale.extend(unknown.map(|named| format!("{call} {named:?}")));
    }
    assert!(
        without_entry.is_empty(),
        "these fields need an entry in `names` of their call in tests/calls.json, or in `fields`: \
         {without_entry:#?}"
    );
    let known = catalogue().fields.values().flatten();
    stale.extend(known.filter(|field| !fields.contains(*field)).cloned());
    assert!(
        stale.is_empty(),
        "tests/calls.json has fields that no call has: {stale:#?}"
    );
}

#[apply(on_both_databases)]
async fn no_call_tells_foreign_from_absent(client: Client) {
    expect_isolation(&client, Forms::Foreign).await;
}

#[apply(on_one_database)]
async fn malformed_ids_are_refused_and_nil_and_capital_ones_are_absent(client: Client) {
    expect_isolation(&client, Forms::Others).await;
}

/// The ids that are sent, in addition to absent ones.
#[derive(Clone, Copy, PartialEq)]
enum Forms {
    Foreign,
    /// The nil id, a foreign id in capitals, and malformed ones.
    Others,
}

async fn expect_isolation(client: &Client, forms: Forms) {
    let other = OtherAccount::of(client).await;
    each_call(async |call, entry| {
        let mut callers = BTreeMap::new();
        for named in &entry.names() {
            let mut check = Check {
                client,
                call,
                entry,
                named,
                other: &other,
                callers: &mut callers,
            };
            check.check_everywhere(forms).await;
        }
    })
    .await;
    other.expect_unchanged("a call").await;
    other.expect_retries().await;
}

/// A field that is tried out.
struct Check<'a> {
    client: &'a Client,
    call: &'static str,
    entry: &'static Entry,
    named: &'a NamingField,
    other: &'a OtherAccount,
    /// The calling accounts, by request. No call has changed them, so each has the same resources.
    callers: &'a mut BTreeMap<String, Fixture>,
}

impl Check<'_> {
    async fn check_everywhere(&mut self, forms: Forms) {
        let named = self.named;
        let places = references(self.call);
        for place in places.iter().filter(|place| named.covers(&place.path())) {
            for kind in &named.kinds {
                let ids = self.other.ids(self.call, kind);
                let at = format!("{} {} of @{}", self.call, place.path(), named.request);
                let absent = self.send(place, &ids.absent).await;
                match forms {
                    Forms::Foreign => self.check_foreign(kind, place, &ids, &absent, &at).await,
                    Forms::Others => self.check_others(kind, place, &ids, &absent, &at).await,
                }
            }
        }
    }

    async fn check_foreign(
        &mut self,
        kind: &str,
        place: &FieldPath,
        ids: &Ids,
        absent: &CallResult,
        at: &str,
    ) {
        let foreign = self.send(place, &ids.foreign).await;
        assert_eq!(foreign.reason(), self.named.absent, "{at}: {foreign:?}");
        assert_eq!(foreign, *absent, "{at}: foreign, absent");
        if kind != "revision"
            && let CallResult::Error {
                code: Code::NotFound,
                field,
                ..
            } = absent
        {
            assert_eq!(*field, place.indexed(), "{at}: {absent:?}");
        }
    }

    async fn check_others(
        &mut self,
        kind: &str,
        place: &FieldPath,
        ids: &Ids,
        absent: &CallResult,
        at: &str,
    ) {
        let named = self.named;
        let nil = self.send(place, &ids.nil).await;
        match (kind, named.absent.as_str()) {
            // The nil id of a role is 0, which counts as missing.
            ("role", OK) => assert_eq!(nil.reason(), OK, "{at}: {nil:?}"),
            ("role", _) => assert_eq!(nil.reason(), "FIELD_REQUIRED", "{at}: {nil:?}"),
            _ => assert_eq!(nil, *absent, "{at}: nil, absent"),
        }
        if ids.malformed.len() > 1 {
            let capitals = self.send(place, &ids.foreign.to_uppercase()).await;
            assert_eq!(capitals, *absent, "{at}: capitals, absent");
        }
        // Each form of a malformed id is tried in many fields.
        let form = match named.malformed == OK {
            true => 0,
            false => at.len() % ids.malformed.len(),
        };
        let id = &ids.malformed[form];
        let malformed = self.send(place, id).await;
        assert_eq!(
            malformed.reason(),
            named.malformed,
            "{at} {id:?}: {malformed:?}"
        );
        if let Some(expected) = &named.empty {
            let empty = self.send(place, "").await;
            assert_eq!(empty.reason(), expected, "{at}, empty: {empty:?}");
        }
    }

    /// Whether an accepted call adds tasks or steps and changes no other.
    fn only_adds(&self) -> bool {
        match self.call {
            "TaskService/CreateTask" | "StepService/CreateStep" => true,
            "TaskService/ImportTask" => {
                self.named.request != "known_guide" && self.named.request.ends_with("_guide")
            }
            _ => false,
        }
    }

    /// The response to the call with this id in the field, with the id masked.
    async fn send(&mut self, place: &FieldPath, id: &str) -> CallResult {
        let base = self.entry.base(&self.named.request);
        let caller = match self.callers.remove(&self.named.request) {
            Some(caller) => caller,
            None => {
                let mut caller = Fixture::of(self.client, base).await;
                caller.values.extend(self.other.values());
                caller
            }
        };
        let request = contract::request(self.call, caller.request(base));
        let request = DynamicMessage::decode(message_of(self.call, "Request"), &*request);
        let mut request = request.expect("a request");
        let value = match place.kind() {
            Kind::Int64 => Value::I64(id.parse().expect("a number")),
            _ => Value::String(id.to_owned()),
        };
        place.set(&mut request, value);
        let message = Bytes::from(prost::Message::encode_to_vec(&request));
        let outcome = caller.client.send_bytes(self.call, message).await;
        let answer = CallResult::of(self.call, outcome);
        // The service returns ids in lower case.
        let sent = id.to_lowercase();
        self.other
            .assert_not_in(&answer, &sent, &format!("{} {}", self.call, place.path()));
        let answer = answer.masked(&SentId {
            id: &sent,
            account: caller.client.account(),
        });
        if answer.reason() != OK || !self.entry.writes || self.only_adds() {
            self.callers.insert(self.named.request.clone(), caller);
        }
        answer
    }
}
