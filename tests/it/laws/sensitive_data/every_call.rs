//! Every call of `tests/calls.json`, with every request that is accepted or refused there.

use std::{cell::Cell, collections::BTreeSet};

use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use serde_json::{Value, json};
use tonic::Code;

use super::{
    caller::Caller,
    invalid_values,
    marks::{MARK, TEXT},
    service::{Mode, Service},
};
use crate::{
    databases::Database,
    fixture::{Fixture, each_call},
    kit::{
        catalogue::{Entry, catalogue, changed},
        client::Client,
        contract,
    },
    laws::field_paths::{FieldPath, field_paths},
    prelude::*,
};

macro_rules! leak_tests {
    ($($(#[$ignored:meta])? $name:ident: $database:ident, $mode:ident, $format:literal, $values:expr;)+) => {$(
        #[tokio::test]
        $(#[$ignored])?
        async fn $name() {
            let service =
                Service::start(stringify!($name), Database::$database, Mode::$mode, $format);
            expect_no_leak(service, $values).await;
        }
    )+};
}

// Each pair of database, credentials and format. The slow ones send every invalid value, and the
// others together send each of them once.
leak_tests! {
    #[ignore = "slow"]
    sqlite_with_headers_in_text: Sqlite, Header, "text", Values::All;
    sqlite_with_tokens_in_json: Sqlite, Jwt, "json", Values::TwoThirds;
    #[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
    postgres_with_headers_in_json: Postgres, Header, "json", Values::OtherThird;
    #[ignore = "slow"]
    postgres_with_tokens_in_text: Postgres, Jwt, "text", Values::All;
}

/// Which invalid values are sent, by their numbers over all fields of a call.
#[derive(Clone, Copy)]
enum Values {
    All,
    TwoThirds,
    OtherThird,
}

impl Values {
    fn include(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::TwoThirds => !number.is_multiple_of(3),
            Self::OtherThird => number.is_multiple_of(3),
        }
    }
}

async fn expect_no_leak(service: Service, values: Values) {
    let caller = service.caller();
    let sent_and_refused = Cell::new((0, 0));
    each_call(async |call, entry| {
        let requests = &entry.requests;
        for (name, base) in requests {
            let caller = caller.other_account();
            let good = good_request(&caller, call, base).await;
            let accepted = caller.send(call, good.encode_to_vec()).await;
            accepted.unwrap_or_else(|status| panic!("{call} {name}: {status:?}"));
        }
        let fullest = requests
            .get("full")
            .unwrap_or_else(|| entry.base("example"));
        let caller = caller.other_account();
        let good = good_request(&caller, call, fullest).await;
        let of_call = refused_at_every_place(&caller, call, &good, values).await;
        let (sent, refused) = sent_and_refused.get();
        sent_and_refused.set((sent + of_call.0, refused + of_call.1));
        let good = good.encode_to_vec();
        refused_for_its_bytes(&caller, call, &good).await;
        refused_for_its_credentials(&caller, call, &good).await;
        refused_for_its_state(&caller.other_account(), call, entry).await;
    })
    .await;
    let (sent, refused) = sent_and_refused.get();
    assert!(refused * 4 > sent, "{refused} of {sent}");
    refused_for_a_used_request_id(&caller).await;
    refused_as_unknown(&caller.client).await;
    service.end_and_expect_no_mark(caller.calls());
}

/// A marked request that is accepted, after what it needs is made in the account.
async fn good_request(caller: &Caller, call: &str, base: &Value) -> DynamicMessage {
    let values = caller.prepare(Some(base)).await;
    MARK.message(call, catalogue().expand(base, &values))
}

/// Sends invalid values in each field of the request; how many, and how many are refused. Some are
/// accepted, because most texts are valid. Each call checks its error.
async fn refused_at_every_place(
    caller: &Caller,
    call: &str,
    good: &DynamicMessage,
    values: Values,
) -> (usize, usize) {
    let (mut sent, mut refused) = (0, 0);
    let of_place = |place: FieldPath| {
        let values = invalid_values::values(&place).into_iter();
        values.map(move |value| (place.clone(), value))
    };
    let all = field_paths(call).into_iter().flat_map(of_place);
    for (number, (place, value)) in all.enumerate() {
        if values.include(number) {
            let mut request = good.clone();
            place.set(&mut request, value);
            let outcome = caller.send(call, request.encode_to_vec()).await;
            sent += 1;
            refused += usize::from(outcome.is_err());
        }
    }
    (sent, refused)
}

async fn refused_for_its_bytes(caller: &Caller, call: &str, good: &[u8]) {
    let field_without_end = [&[0x0a, 0x7f][..], TEXT.as_bytes()].concat();
    let mut messages = vec![field_without_end];
    messages.extend(invalid_values::broken(good.to_vec()));
    for message in messages {
        let status = caller.send(call, message).await.expect_err(call);
        assert_eq!(status.code(), Code::InvalidArgument, "{call}: {status:?}");
    }
}

async fn refused_for_its_credentials(caller: &Caller, call: &str, good: &[u8]) {
    for metadata in caller.wrong_credentials() {
        let outcome = caller.send_with(call, good.to_vec(), &metadata).await;
        assert!(outcome.is_err(), "{call}: {metadata:?}");
    }
}

/// Failed preconditions are named by ids, never by texts.
async fn refused_for_its_state(caller: &Caller, call: &str, entry: &Entry) {
    let refused = entry.refused.iter();
    let needed = refused.map(|refusal| json!([entry.base(&refusal.request), refusal.change]));
    let values = caller.prepare(Some(&needed.collect())).await;
    for refusal in &entry.refused {
        let [request, change] = [entry.base(&refusal.request), &refusal.change]
            .map(|it| catalogue().expand(it, &values));
        let message = MARK.message(call, changed(request, &change));
        let outcome = caller.send(call, message.encode_to_vec()).await;
        assert!(outcome.is_err(), "{call} accepts {:?}", refusal.change);
    }
}

async fn refused_for_a_used_request_id(caller: &Caller) {
    let create = |name: &str| {
        let id = "01a1fdaf-d221-7557-a852-5dd7d6531c2e";
        let request = json!({"task": {"name": name, "product_id": 7}, "request_id": id});
        contract::request("TaskService/CreateTask", request)
    };
    let send = async |name| caller.send("TaskService/CreateTask", create(name)).await;
    send("once").await.expect("the first one");
    let status = send(TEXT).await.expect_err("it is used");
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
}

/// The error names the path and nothing of the message.
async fn refused_as_unknown(client: &Client) {
    let message = bytes::Bytes::from_static(TEXT.as_bytes());
    let outcome = client.send_bytes("TaskService/MoveTask", message).await;
    let status = outcome.expect_err("it is not there");
    assert_eq!(status.code(), Code::Unimplemented);
}

/// Fields whose texts are free are in a request, so that they are sent with marks.
#[apply(on_one_database)]
async fn every_text_is_in_a_request(client: Client) {
    let fixture = Fixture::marked(&client, None, &MARK).await;
    let mut sent = BTreeSet::new();
    for (call, entry) in &catalogue().calls {
        for base in entry.requests.values() {
            let request = fixture.request(base);
            collect_fields(&MARK.message(call, request), &mut sent);
        }
    }
    let texts = ["text", "json", "language"].iter();
    let texts = texts.flat_map(|kind| &catalogue().fields[*kind]);
    let missing: Vec<_> = texts.filter(|field| !sent.contains(*field)).collect();
    assert!(
        missing.is_empty(),
        "no request of tests/calls.json has a text in {missing:#?}"
    );
}

fn collect_fields(message: &DynamicMessage, found: &mut BTreeSet<String>) {
    use prost_reflect::Value;
    let name = message.descriptor().name().to_owned();
    for (field, value) in message.fields() {
        let path = format!("{name}.{}", field.name());
        let inner: Vec<&Value> = match value {
            Value::List(items) => items.iter().collect(),
            Value::Map(entries) => {
                found.insert(format!("{path}[key]"));
                entries.values().collect()
            }
            value => vec![value],
        };
        let messages = inner.into_iter().filter_map(Value::as_message);
        messages.for_each(|inner| collect_fields(inner, found));
        found.insert(path);
    }
}
