//! Requests that are refused at the field that is wrong, and similar ones that are accepted: `fields` and
//! `refused` of `tests/calls.json`.

use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, each_call},
    kit::{
        catalogue::{Entry, Values, catalogue},
        contract,
    },
    prelude::*,
};

mod every_text;
mod json;
mod rules;

use rules::FieldRule;

#[apply(on_both_databases)]
async fn every_field_accepts_what_its_rules_say(client: Client) {
    each_call(async |call, entry| {
        for name in entry.fields.keys() {
            let (fixture, request) = Fixture::with_request(&client, call, name).await;
            for rule in entry.rules(name, &fixture.values) {
                for value in &rule.accepted {
                    check_accepted(&fixture, call, &request, &rule, value).await;
                }
            }
        }
    })
    .await;
}

async fn check_accepted(
    fixture: &Fixture,
    call: &str,
    request: &Value,
    rule: &FieldRule,
    value: &Value,
) {
    let (path, shown) = (&rule.path, shortened(value));
    let request = with_value(request, path, value);
    match fixture.send(call, &request).await {
        Ok(response) => assert_kept(call, &request, &response, path, &shown),
        Err(status) => panic!("{call} {path} refuses {shown}: {status:?}"),
    }
}

#[apply(on_one_database)]
async fn every_field_refuses_what_its_rules_say(client: Client) {
    each_call(async |call, entry| {
        for name in entry.fields.keys() {
            let (fixture, request) = Fixture::with_request(&client, call, name).await;
            let before = fixture.client.all_tasks().await;
            for rule in entry.rules(name, &fixture.values) {
                for value in &rule.refused {
                    check_refused_value(&fixture, call, &request, &rule, value).await;
                }
            }
            let is_unchanged = fixture.client.all_tasks().await == before;
            assert!(
                is_unchanged,
                "{call} @{name} is refused and changes something"
            );
        }
    })
    .await;
}

async fn check_refused_value(
    fixture: &Fixture,
    call: &str,
    request: &Value,
    rule: &FieldRule,
    value: &Value,
) {
    let FieldRule {
        path,
        place,
        reason,
        ..
    } = rule;
    let shown = shortened(value);
    let request = with_value(request, path, value);
    let Err(status) = fixture.send(call, &request).await else {
        panic!("{call} {path} accepts {shown}");
    };
    let failure = Failure::from(status);
    let violations = failure.violations();
    let is_at_place = match place.strip_suffix('*') {
        Some(start) => matches!(*violations, [(at, _)] if at.starts_with(start)),
        None => violations == [(place.as_str(), reason.as_str())],
    };
    assert!(is_at_place, "{call} {path} with {shown}: {failure:?}");
    assert_eq!(
        violations[0].1, reason,
        "{call} {path} with {shown}: {failure:?}"
    );
    failure.violates(&violations);
}

fn with_value(request: &Value, path: &str, value: &Value) -> Value {
    let mut request = request.clone();
    *at(&mut request, path) = value.clone();
    request
}

/// Asserts that a task, step or role in the response has the value that was sent.
fn assert_kept(call: &str, request: &Value, response: &Value, path: &str, shown: &str) {
    let resource = path.split('.').next().expect("a field");
    // A shorthand is returned as what it is short for.
    if response.get(resource).is_none() || path.ends_with("_shorthand") {
        return;
    }
    let mut sent = contract::proto_json(&contract::message(call, request.clone()));
    let (sent, mut got) = (at(&mut sent, path).clone(), response.clone());
    let is_kept = is_within(&sent, at(&mut got, path));
    assert!(is_kept, "{call} {path} does not keep {shown}");
}

/// Whether the response contains the sent values. It also has values that the system sets.
fn is_within(sent: &Value, got: &Value) -> bool {
    match (sent, got) {
        (Value::Null, _) => true,
        (Value::Object(sent), Value::Object(got)) => sent.iter().all(|(name, value)| {
            let got = got.get(name).unwrap_or(&Value::Null);
            is_within(value, got)
        }),
        (Value::Array(sent), Value::Array(got)) => {
            let mut pairs = sent.iter().zip(got);
            sent.len() == got.len() && pairs.all(|(sent, got)| is_within(sent, got))
        }
        (sent, got) => sent == got,
    }
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(120).collect()
}

/// The value at a path such as `task.roles[1]`, which is made where it is missing.
fn at<'a>(mut value: &'a mut Value, path: &str) -> &'a mut Value {
    for part in path.replace('[', ".[").split('.') {
        let index = part
            .strip_prefix('[')
            .and_then(|part| part.strip_suffix(']')?.parse::<usize>().ok());
        value = match index {
            None => &mut value[part],
            Some(index) => {
                if value.is_null() {
                    *value = json!([]);
                }
                let list = value.as_array_mut().expect("a list");
                if list.len() <= index {
                    list.resize(index + 1, Value::Null);
                }
                &mut list[index]
            }
        };
    }
    value
}

#[apply(on_both_databases)]
async fn every_refused_request_fails_as_listed(client: Client) {
    each_call(|call, entry| check_refused(&client, call, entry)).await;
}

async fn check_refused(client: &Client, call: &'static str, entry: &'static Entry) {
    let refused = entry.refused.iter();
    let needed = refused.map(|refusal| json!([entry.base(&refusal.request), refusal.change]));
    let fixture = Fixture::of(client, &needed.collect()).await;
    let before = fixture.client.tasks_with_steps().await;
    for refusal in &entry.refused {
        let request = fixture.request(entry.base(&refusal.request));
        let request = fixture.changed(&request, &refusal.change);
        let at = format!("{call} @{} with {}", refusal.request, refusal.change);
        let Err(status) = fixture.send(call, &request).await else {
            panic!("{at} is accepted");
        };
        let failure = Failure::from(status);
        let after = fixture.client.tasks_with_steps().await;
        assert_eq!(after, before, "{at} changes something");
        match catalogue().expand(&refusal.fails, &Values::new()) {
            Value::String(reason) => {
                assert_eq!(failure.reason(), reason, "{at}: {failure:?}");
                failure.is(code_of(&reason), &reason);
            }
            violations => {
                let expected = violations.as_array().expect("violations").iter();
                let expected = expected.filter_map(|it| it.as_str()?.rsplit_once(' '));
                let mut expected: Vec<_> = expected.collect();
                let mut found = failure.violations();
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected, "{at}");
                failure.violates(&expected);
            }
        }
    }
}
