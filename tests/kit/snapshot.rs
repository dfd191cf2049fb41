//! Messages as text for snapshots: JSON with every field, in which ids are numbered and
//! etags and times are placeholders.

use std::collections::BTreeMap;

use expertise::proto::v1::{dependency_node::Node, *};
use prost_types::{Struct, Timestamp, Value as JsonValue, value::Kind};
use serde_json::{Value, json};

use super::failure::Failure;

/// The text of a snapshot.
pub fn text(message: &Value) -> String {
    let pretty = serde_json::to_string_pretty(message).expect("JSON");
    number_ids(&pretty)
}

/// A task with all its fields.
pub fn task(task: Task) -> Value {
    let Task {
        guid,
        name,
        product_id,
        dependencies,
        dependency_shorthand,
        published,
        roles,
        translations,
        r#type,
        steps,
        etag,
        account_id,
        parent_guid,
        idx,
        dirty_record,
        mvn_indexed,
        mvn_version,
        mvn_info,
        mvn_ts,
        created_ts,
        modified_ts,
    } = task;
    let translations = mapped(
        translations,
        |TaskTranslation { name, locked }| json!({"name": name, "locked": locked}),
    );
    json!({
        "guid": guid, "name": name, "product_id": product_id,
        "dependencies": dependencies.map(group),
        "dependency_shorthand": dependency_shorthand, "published": published,
        "roles": roles, "translations": translations, "type": r#type, "steps": steps,
        "etag": version(&etag), "account_id": account_id, "parent_guid": parent_guid,
        "idx": idx, "dirty_record": dirty_record, "mvn_indexed": mvn_indexed,
        "mvn_version": mvn_version, "mvn_info": mvn_info, "mvn_ts": time(mvn_ts),
        "created_ts": time(created_ts), "modified_ts": time(modified_ts),
    })
}

/// A step with all its fields.
pub fn step(step: Step) -> Value {
    let Step {
        guid,
        task,
        product_id,
        r#type,
        title,
        body,
        cost,
        dependencies,
        dependency_shorthand,
        feedback_config,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        subtask_id,
        subtask_pid,
        translations,
        link,
        etag,
        account_id,
        r_data,
        dirty_record,
        created_ts,
        modified_ts,
    } = step;
    let looping = looping.map(
        |Looping {
             alias,
             array,
             iterations,
         }| {
            json!({
                "alias": alias, "array": present(array), "iterations": present(iterations),
            })
        },
    );
    json!({
        "guid": guid, "task": task, "product_id": product_id, "type": r#type,
        "title": title, "body": body, "cost": cost,
        "dependencies": dependencies.map(group),
        "dependency_shorthand": dependency_shorthand,
        "feedback_config": each(feedback_config, question),
        "instructions": each(instructions, object), "looping": looping, "parts": parts,
        "published": published, "skills": skills, "tags": tags, "subtask_id": subtask_id,
        "subtask_pid": subtask_pid, "translations": mapped(translations, step_translation),
        "link": link, "etag": version(&etag), "account_id": account_id,
        "r_data": mapped(r_data, any), "dirty_record": dirty_record,
        "created_ts": time(created_ts), "modified_ts": time(modified_ts),
    })
}

/// An error with its details.
pub fn failure(failure: &Failure) -> Value {
    let details = &failure.details;
    let resource = details.resource_info();
    let metadata: BTreeMap<String, String> = failure.metadata().into_iter().collect();
    let violations = details.bad_request().map(|request| {
        let shown = request.field_violations.iter();
        let shown = shown.map(|v| json!([v.field, v.reason, v.description]));
        shown.collect::<Vec<Value>>()
    });
    let preconditions = details.precondition_failure().map(|failure| {
        let shown = failure.violations.iter();
        let shown = shown.map(|v| json!([v.r#type, v.subject, v.description]));
        shown.collect::<Vec<Value>>()
    });
    json!({
        "code": format!("{:?}", failure.code),
        "message": failure.message,
        "reason": failure.reason(),
        "metadata": metadata,
        "violations": violations,
        "preconditions": preconditions,
        "resource": resource.map(|r| {
            json!([r.resource_type, r.resource_name, r.owner, r.description])
        }),
    })
}

fn step_translation(row: StepTranslation) -> Value {
    let StepTranslation {
        title,
        body,
        instructions,
        feedback_config,
        locked,
    } = row;
    json!({
        "title": title, "body": body, "instructions": each(instructions, object),
        "feedback_config": each(feedback_config, question), "locked": locked,
    })
}

fn question(config: FeedbackConfig) -> Value {
    let FeedbackConfig {
        name,
        r#type,
        linked,
        values,
    } = config;
    let values = each(
        values,
        |FeedbackValue {
             key,
             value,
             link,
             task_json,
         }| {
            json!({
                "key": key, "value": value, "link": link, "task_json": task_json.is_some(),
            })
        },
    );
    json!({"name": name, "type": r#type, "linked": linked, "values": values})
}

fn group(group: DependencyGroup) -> Value {
    let operator = group.operator().as_str_name();
    let nodes = each(group.nodes, |node| match node.node {
        None => Value::Null,
        Some(Node::Group(inner)) => self::group(inner),
        Some(Node::Condition(Condition {
            variable,
            operator,
            targets,
            path,
        })) => json!({
            "variable": variable, "operator": operator, "targets": each(targets, any),
            "path": path,
        }),
    });
    json!([operator, nodes])
}

/// Tells an absent value from null.
fn present(value: Option<JsonValue>) -> Value {
    value.map_or_else(|| json!("[absent]"), any)
}

fn any(value: JsonValue) -> Value {
    match value.kind {
        None => json!("no kind"),
        Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(bool)) => json!(bool),
        Some(Kind::NumberValue(number)) => json!(number),
        Some(Kind::StringValue(text)) => json!(text),
        Some(Kind::ListValue(list)) => each(list.values, any),
        Some(Kind::StructValue(members)) => object(members),
    }
}

fn object(members: Struct) -> Value {
    mapped(members.fields, any)
}

fn each<T>(items: Vec<T>, shown: impl FnMut(T) -> Value) -> Value {
    items.into_iter().map(shown).collect()
}

fn mapped<T>(items: BTreeMap<String, T>, shown: impl Fn(T) -> Value) -> Value {
    let shown = items.into_iter().map(|(key, item)| (key, shown(item)));
    Value::Object(shown.collect())
}

fn version(etag: &str) -> &str {
    if etag.is_empty() { "" } else { "[etag]" }
}

fn time(time: Option<Timestamp>) -> Option<&'static str> {
    time.map(|_| "[time]")
}

/// Replaces each UUID by a number, in the order of their first appearance.
pub fn number_ids(text: &str) -> String {
    const LENGTH: usize = 36;
    let mut seen: Vec<&str> = Vec::new();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let id = rest
            .get(..LENGTH)
            .filter(|piece| piece.contains('-') && uuid::Uuid::try_parse(piece).is_ok());
        let Some(id) = id else {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let number = seen.iter().position(|s| *s == id).unwrap_or_else(|| {
            seen.push(id);
            seen.len() - 1
        });
        shown.push_str(&format!("[id {}]", number + 1));
        rest = &rest[LENGTH..];
    }
    shown
}
