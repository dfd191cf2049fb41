//! The account whose resources another account names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::response::CallResult;
use crate::{
    fixture::{Contents, Fixture},
    kit::catalogue::catalogue,
    marks::Mark,
    prelude::*,
};

/// Part of every text of the other account, and of no other text.
const SECRET: Mark = Mark {
    text: "sealed7ledger",
    key: "sealed7k",
    long_bodies: false,
};
/// An alias that only the other account has.
const SECRET_ALIAS: &str = "sealed7alias";

pub struct OtherAccount {
    fixture: Fixture,
    /// The id of a role that other accounts do not have.
    role: i64,
    /// Every id in the account.
    ids: BTreeSet<String>,
    /// What it can read.
    contents: Contents,
    /// A request with a request id, and its response, by call.
    retries: BTreeMap<&'static str, (Value, Value)>,
}

/// Ids to send.
pub struct Ids {
    pub foreign: String,
    pub absent: String,
    pub malformed: Vec<String>,
    pub nil: String,
}

impl OtherAccount {
    pub async fn of(client: &Client) -> Self {
        let fixture = Fixture::marked(&client.other_account(), None, &SECRET).await;
        let alias = json!({ "task": "$task", "alias": SECRET_ALIAS, "revision": "$revision" });
        let alias = fixture.request(&alias);
        let set = fixture.send("RevisionService/SetRevisionAlias", &alias);
        set.await.accepted();
        let role = fixture.client.given_role(SECRET.text).await.id;
        let mut ids = BTreeSet::new();
        let mut retries = BTreeMap::new();
        for (call, entry) in &catalogue().calls {
            let names = entry.names();
            if let Some(named) = names.iter().find(|named| named.kinds == ["retry"]) {
                let mut request = fixture.request(entry.base(&named.request));
                request["request_id"] = json!(unknown_guid());
                let response = fixture.send(call, &request).await.accepted();
                collect_ids(&response, &mut ids);
                retries.insert(call.as_str(), (request, response));
            }
        }
        let contents = fixture.contents().await;
        for response in contents.values() {
            collect_ids(response, &mut ids);
        }
        Self {
            fixture,
            role,
            ids,
            contents,
            retries,
        }
    }

    /// Asserts that the requests with a request id are still answered as before.
    pub async fn expect_retries(&self) {
        for (call, (request, response)) in &self.retries {
            let again = self.fixture.send(call, request).await.accepted();
            assert_eq!(again, *response, "{call}");
        }
    }

    /// Asserts that the account can read what it could.
    pub async fn expect_unchanged(&self, by: &str) {
        for (read, after) in self.fixture.contents().await {
            assert_eq!(
                self.contents[&read], after,
                "{by} changed what {read} of the other account returns"
            );
        }
    }

    /// What stands for a placeholder in this account.
    pub fn values(&self) -> impl Iterator<Item = (String, Value)> {
        let values = self.fixture.values.iter();
        values.map(|(name, value)| (format!("their_{name}"), value.clone()))
    }

    fn value(&self, name: &str) -> &str {
        self.fixture.values[name].as_str().expect(name)
    }

    /// Ids to send in a field of the call that names a resource of this kind.
    pub fn ids(&self, call: &str, kind: &str) -> Ids {
        let ids = |foreign: &str, absent: &str, malformed: &str, nil: &str| Ids {
            foreign: foreign.to_owned(),
            absent: absent.to_owned(),
            malformed: vec![malformed.to_owned()],
            nil: nil.to_owned(),
        };
        let foreign = match kind {
            "role" => return ids(&self.role.to_string(), "9", "-1", "0"),
            "revision" => return ids(SECRET_ALIAS, "tbsent7alias", "no alias", "zzzzzzzzzzzz"),
            "external_id" => {
                let foreign = self.value("external_id");
                let other = "z".repeat(foreign.len());
                return ids(foreign, &other.replace('z', "y"), " no id", &other);
            }
            "cursor" => {
                let foreign = self.value("cursor");
                let (first, rest) = foreign.split_at(1);
                let other = if first == "A" { "B" } else { "A" };
                let nil = "A".repeat(foreign.len());
                return ids(foreign, &format!("{other}{rest}"), "no cursor", &nil);
            }
            "account" => self.fixture.client.account(),
            "retry" => {
                let (request, _) = &self.retries[call];
                request["request_id"].as_str().expect("an id")
            }
            kind => self.value(kind),
        };
        Ids {
            foreign: foreign.to_owned(),
            absent: unknown_guid(),
            malformed: malformed_guids(foreign),
            nil: uuid::Uuid::nil().to_string(),
        }
    }

    /// Asserts that the response holds nothing of the account but the id that was sent.
    pub fn assert_not_in(&self, answer: &CallResult, sent: &str, place: &str) {
        let text = answer.text().replace(sent, "#");
        assert!(!text.contains(SECRET.text), "{place}: {text}");
        let account = self.fixture.client.account();
        let all = self.ids.iter().map(String::as_str).chain([account]);
        for id in all {
            assert!(!text.contains(id), "{place}: {id} in {text}");
        }
    }
}

/// Ids are hyphenated UUIDs.
fn malformed_guids(guid: &str) -> Vec<String> {
    vec![
        "no-guid".to_owned(),
        guid.replace('-', ""),
        format!("{{{guid}}}"),
        format!("urn:uuid:{guid}"),
        format!(" {guid}"),
        format!("{guid}0"),
        guid[..35].to_owned(),
        guid.replacen('-', "_", 1),
    ]
}

fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => {
            ids.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        Value::Object(members) => members.values().for_each(|item| collect_ids(item, ids)),
        _ => {}
    }
}
