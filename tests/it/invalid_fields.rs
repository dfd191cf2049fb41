//! Field values that are refused at their place, beside those next to them that are accepted.

use serde_json::{Value, json};

use crate::kit::{contract, prelude::*};

mod every_text;
mod json;
mod nul;

/// A field of a request, values that it accepts, values that it refuses, and the violation: the
/// field, unless it says another place, and the reason.
struct Field {
    path: &'static str,
    accepted: Value,
    refused: Value,
    place: &'static str,
    reason: &'static str,
}

macro_rules! fields {
    ($($path:literal: $accepted:tt not $refused:tt => $reason:ident $(at $place:literal)?;)+) => {
        [$({
            let path = $path;
            #[allow(unused_variables)]
            let place = path;
            $(let place = $place;)?
            Field {
                path,
                accepted: json!($accepted),
                refused: json!($refused),
                place,
                reason: stringify!($reason),
            }
        }),+]
    };
}

/// Sends the request with each value of each field.
async fn check(client: &Client, call: &str, request: &Value, fields: &[Field]) {
    let send = async |path: &str, value: &Value| {
        let mut request = request.clone();
        *at(&mut request, path) = value.clone();
        let request = contract::request(call, request);
        client.send_bytes(call, request.into()).await
    };
    for field in fields {
        for value in field.accepted.as_array().expect("a list") {
            let answer = send(field.path, value).await;
            assert!(answer.is_ok(), "{call} {}: {answer:?}", field.path);
        }
        for value in field.refused.as_array().expect("a list") {
            let answer = send(field.path, value).await;
            let refused = answer.is_err();
            assert!(refused, "{call} {} accepts {value}", field.path);
            answer.refused().violates(&[(field.place, field.reason)]);
        }
    }
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

fn times(text: &str, count: usize) -> String {
    text.repeat(count)
}

fn list(value: &Value, count: usize) -> Vec<Value> {
    vec![value.clone(); count]
}

/// The numbers from 0 as texts.
fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

fn new_task() -> Value {
    json!({"task": {"name": "Task", "product_id": PRODUCT}})
}

async fn new_step(client: &Client, kind: &str) -> Value {
    let task = client.given_task(task("Guide")).await.guid;
    json!({"step": {"task": task, "product_id": PRODUCT, "type": kind, "title": "Step"}})
}

#[apply(on_both_databases)]
async fn fields_of_tasks(client: Client) {
    let fields = fields! {
        "task": [] not [null] => FIELD_REQUIRED;
        "task.name": [] not ["", " ", "\t\r\n", "\u{a0}", "\u{3000} \u{2003}"] => FIELD_REQUIRED;
        "task.name": [times("x", 200), times("ü", 200), times("🔧", 200)]
            not [times("x", 201), times("🔧", 201)] => FIELD_TOO_LONG;
        "task.product_id": [i64::MAX] not [0, -1, i64::MIN] => FIELD_OUT_OF_RANGE;
        "task.product_id": [] not [null] => FIELD_REQUIRED;
        "task.published": [0, 2, i32::MAX] not [-1, i32::MIN] => FIELD_OUT_OF_RANGE;
        "task.roles[0]": [0, 8] not [4, 6, 9, -1, i32::MAX] => FIELD_INVALID;
    };
    check(&client, "TaskService/CreateTask", &new_task(), &fields).await;
    let guid = client.given_task(task("Named")).await.guid;
    let fields = fields! {
        "task": [] not [null] => FIELD_REQUIRED;
        "task.name": ["Other"] not [" "] => FIELD_REQUIRED;
    };
    let update = json!({"task": {"guid": guid}});
    check(&client, "TaskService/UpdateTask", &update, &fields).await;
}

#[apply(on_both_databases)]
async fn fields_of_steps(client: Client) {
    let element = json!("x");
    let object = json!({"a": 1});
    // What is invalid in a list that is too long is not listed.
    let (nul, invalid) = (json!("\0"), json!({"a": "\0"}));
    let fields = fields! {
        "step": [] not [null] => FIELD_REQUIRED;
        "step.task": [] not [""] => FIELD_REQUIRED;
        "step.type": [] not [0] => FIELD_REQUIRED;
        "step.type": [] not [7, -1, i32::MAX] => FIELD_INVALID;
        "step.title": [] not ["", " ", "\t\r\n", "\u{a0}", "\u{3000} \u{2003}"] => FIELD_REQUIRED;
        "step.title": [times("x", 400), times("🔧", 400)]
            not [times("x", 401), times("🔧", 401)] => FIELD_TOO_LONG;
        "step.product_id": [i64::MAX] not [0, -1, i64::MIN] => FIELD_OUT_OF_RANGE;
        "step.product_id": [] not [null] => FIELD_REQUIRED;
        "step.published": [0, 2, i32::MAX] not [-1, i32::MIN] => FIELD_OUT_OF_RANGE;
        "step.parts": [(list(&element, 1_000))] not [(list(&nul, 1_001))] => TOO_MANY_ELEMENTS;
        "step.skills": [(list(&element, 1_000))] not [(list(&nul, 1_001))] => TOO_MANY_ELEMENTS;
        "step.tags": [(list(&element, 1_000))] not [(list(&nul, 1_001))] => TOO_MANY_ELEMENTS;
        "step.instructions": [(list(&object, 1_000))]
            not [(list(&invalid, 1_001))] => TOO_MANY_ELEMENTS;
        "step.parts[0]": [times("🔧", 1_000)] not [times("🔧", 1_001)] => FIELD_TOO_LONG;
        "step.skills[0]": [times("🔧", 1_000)] not [times("🔧", 1_001)] => FIELD_TOO_LONG;
        "step.tags[0]": [times("🔧", 1_000)] not [times("🔧", 1_001)] => FIELD_TOO_LONG;
        "step.looping.alias": [times("ü", 1_000)] not [times("ü", 1_001)] => FIELD_TOO_LONG;
        "step.dependencies": [] not [{"operator": 1}] => FIELD_REQUIRED at "step.dependencies.nodes";
    };
    let step = new_step(&client, "STEP_TYPE_INFORMATION").await;
    check(&client, "StepService/CreateStep", &step, &fields).await;
    let fields = fields! { "step": [] not [null] => FIELD_REQUIRED; };
    check(&client, "StepService/UpdateStep", &json!({}), &fields).await;
}

#[apply(on_both_databases)]
async fn costs_by_type(client: Client) {
    let costly = fields! {
        "step.cost": [null, 0, 2, 3, i32::MAX] not [1, -1, i32::MIN] => FIELD_OUT_OF_RANGE;
    };
    let free = fields! { "step.cost": [null, 0] not [1, 2, -1] => FIELD_OUT_OF_RANGE; };
    for (kind, fields) in [
        ("STEP_TYPE_SOLUTION", &costly),
        ("STEP_TYPE_IDP", &costly),
        ("STEP_TYPE_INFORMATION", &free),
        ("STEP_TYPE_END", &free),
    ] {
        let step = new_step(&client, kind).await;
        check(&client, "StepService/CreateStep", &step, fields).await;
    }
    let asking = new_question(&client, "STEP_TYPE_OBSERVATION").await;
    check(&client, "StepService/CreateStep", &asking, &free).await;
}

async fn new_question(client: &Client, kind: &str) -> Value {
    let mut step = new_step(client, kind).await;
    step["step"]["feedback_config"] = json!([{
        "name": "q",
        "type": "enum",
        "values": [{"key": "a", "value": "A"}, {"key": "b", "value": "B"}],
    }]);
    step
}

#[apply(on_both_databases)]
async fn fields_of_questions(client: Client) {
    let answers = |count: usize| -> Vec<Value> {
        let keys = numbers(count).into_iter();
        keys.map(|key| json!({"key": key, "value": "x"})).collect()
    };
    let question = json!({"name": "q", "type": "enum", "values": [{"key": "a", "value": "A"}]});
    let empty = json!({"key": "a", "value": ""});
    let fields = fields! {
        "step.feedback_config": [] not [(list(&question, 2))] => TOO_MANY_ELEMENTS;
        "step.feedback_config[0].name": [] not ["", " "] => FIELD_REQUIRED;
        "step.feedback_config[0].name": [times("ü", 1_000)] not [times("ü", 1_001)] => FIELD_TOO_LONG;
        "step.feedback_config[0].type": [] not [""] => FIELD_REQUIRED;
        "step.feedback_config[0].type": ["enum"] not ["ENUM", "text", "enum "] => FIELD_INVALID;
        "step.feedback_config[0].values": [] not [[]] => FIELD_REQUIRED;
        "step.feedback_config[0].values": [answers(1_000)]
            not [answers(1_001), (list(&empty, 1_001))] => TOO_MANY_ELEMENTS;
        "step.feedback_config[0].values[1].key": [] not [""] => FIELD_REQUIRED;
        "step.feedback_config[0].values[1].key": ["A", times("ü", 1_000)]
            not [times("ü", 1_001)] => FIELD_TOO_LONG;
        "step.feedback_config[0].values[1].key": [] not ["a"] => FIELD_INVALID;
        "step.feedback_config[0].values[1].value": [] not ["", " "] => FIELD_REQUIRED;
        "step.feedback_config[0].values[1].value": [times("ü", 1_000)]
            not [times("ü", 1_001)] => FIELD_TOO_LONG;
        "step.feedback_config[0].values[0].task_json": [] not [{}] => FIELD_INVALID;
    };
    for kind in ["STEP_TYPE_OBSERVATION", "STEP_TYPE_INFORMATION"] {
        let step = new_question(&client, kind).await;
        check(&client, "StepService/CreateStep", &step, &fields).await;
    }
    let fields = fields! { "step.feedback_config": [] not [[]] => FIELD_REQUIRED; };
    let asking = new_question(&client, "STEP_TYPE_OBSERVATION").await;
    check(&client, "StepService/CreateStep", &asking, &fields).await;
    let fields = fields! { "step.feedback_config[0].linked": [false] not [true] => FIELD_INVALID; };
    let others = new_question(&client, "STEP_TYPE_INFORMATION").await;
    check(&client, "StepService/CreateStep", &others, &fields).await;
}

#[apply(on_one_database)]
async fn fields_of_subtask_steps(client: Client) {
    let fields = fields! {
        "step.subtask_pid": [PRODUCT] not [null] => FIELD_REQUIRED;
        "step.subtask_pid": [] not [0, -1, i64::MIN] => FIELD_OUT_OF_RANGE;
        "step.cost": [null, 0] not [1, 2, -1] => FIELD_OUT_OF_RANGE;
    };
    let mut step = new_step(&client, "STEP_TYPE_SUBTASK").await;
    step["step"]["title"] = json!("");
    step["step"]["subtask_id"] = step["step"]["task"].clone();
    step["step"]["subtask_pid"] = json!(PRODUCT);
    check(&client, "StepService/CreateStep", &step, &fields).await;
}

/// As a JSON list, targets take their bytes, and brackets, quotes and a comma; a quote in a text
/// takes two.
#[apply(on_both_databases)]
async fn dependencies(client: Client) {
    let targets = |count: usize| json!([times("x", count), "\""]);
    let fields = fields! {
        "task.dependencies.operator": [] not [0] => FIELD_REQUIRED;
        "task.dependencies.operator": [1, 2] not [3, -1, i32::MAX] => FIELD_INVALID;
        "task.dependencies.nodes": [] not [[]] => FIELD_REQUIRED;
        "task.dependencies.nodes[1]": [] not [{"group": {"operator": 2}}] => FIELD_REQUIRED
            at "task.dependencies.nodes[1].group.nodes";
        "task.dependencies.nodes[0].condition.variable": [] not ["", " \t"] => FIELD_REQUIRED;
        "task.dependencies.nodes[0].condition.variable": [times("ä", 1_000)]
            not [times("ä", 1_001)] => FIELD_TOO_LONG;
        "task.dependencies.nodes[0].condition.path": ["any. path", times("🔧", 1_000)]
            not [times("🔧", 1_001)] => FIELD_TOO_LONG;
        "task.dependencies.nodes[0].condition.operator": [] not [""] => FIELD_REQUIRED;
        "task.dependencies.nodes[0].condition.operator": ["=", "!=", ">", "<"]
            not ["==", ">=", "AND", "≠"] => FIELD_INVALID;
        "task.dependencies.nodes[0].condition.targets": [] not [[]] => FIELD_REQUIRED;
        "task.dependencies.nodes[0].condition.targets": [numbers(1_000)]
            not [numbers(1_001)] => TOO_MANY_ELEMENTS;
        "task.dependencies.nodes[0].condition.targets": [targets(65_527)]
            not [targets(65_528)] => FIELD_TOO_LONG;
        "task.dependencies.nodes[0].condition.targets[1]": ["", 1, -0.5, true]
            not [null, [1], {"a": 1}] => FIELD_INVALID;
    };
    let condition = json!({"variable": "v", "operator": "=", "targets": ["1"]});
    let mut task = new_task();
    task["task"]["dependencies"] = json!({"operator": 1, "nodes": [{"condition": condition}]});
    check(&client, "TaskService/CreateTask", &task, &fields).await;
    let shorthand = |values: &[String]| format!("components.7.light = {}", values.join(", "));
    let fields = fields! {
        "task.dependency_shorthand": [shorthand(&numbers(1_000))]
            not [shorthand(&numbers(1_001))] => TOO_MANY_ELEMENTS;
        "task.dependency_shorthand": [shorthand(&[times("x", 65_532)])]
            not [shorthand(&[times("x", 65_533)])] => FIELD_TOO_LONG;
    };
    check(&client, "TaskService/CreateTask", &new_task(), &fields).await;
}

#[apply(on_one_database)]
async fn every_id_is_a_hyphenated_uuid(client: Client) {
    let guid = unknown_guid();
    let others = json!([
        guid.replace('-', ""),
        format!("{{{guid}}}"),
        format!("urn:uuid:{guid}"),
        format!(" {guid}"),
        format!("{guid}0"),
        guid[..35],
        guid.replacen('-', "_", 1),
        "nonsense",
    ]);
    let mut subtask = new_step(&client, "STEP_TYPE_SUBTASK").await;
    subtask["step"]["title"] = json!("");
    subtask["step"]["subtask_pid"] = json!(PRODUCT);
    let step = new_step(&client, "STEP_TYPE_INFORMATION").await;
    for (call, request, path) in [
        ("TaskService/GetTask", json!({}), "guid"),
        ("TaskService/DeleteTask", json!({}), "guid"),
        ("TaskService/ExportTask", json!({}), "guid"),
        (
            "TaskService/UpdateTask",
            json!({"task": {"name": "x"}}),
            "task.guid",
        ),
        ("StepService/GetStep", json!({}), "guid"),
        ("StepService/DeleteStep", json!({}), "guid"),
        ("StepService/ListSteps", json!({}), "task"),
        (
            "StepService/UpdateStep",
            json!({"step": {"title": "x"}}),
            "step.guid",
        ),
        ("StepService/CreateStep", step.clone(), "step.task"),
        ("StepService/CreateStep", subtask, "step.subtask_id"),
        ("StepService/CreateStep", step, "prevstep"),
    ] {
        let field = |refused: &Value, reason| Field {
            path,
            accepted: json!([]),
            refused: refused.clone(),
            place: path,
            reason,
        };
        let invalid = field(&others, "FIELD_INVALID");
        let required = field(&json!([""]), "FIELD_REQUIRED");
        let fields = match path {
            // Without it the step goes behind the others.
            "prevstep" => vec![invalid],
            _ => vec![invalid, required],
        };
        check(&client, call, &request, &fields).await;
    }
}

#[apply(on_one_database)]
async fn fields_of_previews(client: Client) {
    let answers = |count: usize| -> Value {
        let names = numbers(count).into_iter();
        names.map(|name| (name, json!("off"))).collect()
    };
    let (known, french) = (json!("ä"), json!("fr"));
    let guid = client.given_task(task("Lamp")).await.guid;
    let preview = json!({"guid": guid, "language": "de", "fallback_languages": ["de"]});
    let fields = fields! {
        "guid": [] not [null] => FIELD_REQUIRED at "source";
        "guid": [] not [""] => FIELD_REQUIRED;
        "guid": [] not ["lamp"] => FIELD_INVALID;
        "level": [0] not [4] => FIELD_INVALID;
        "language": ["de-CH"] not ["d"] => FIELD_INVALID;
        "fallback_languages[1]": ["fr"] not ["de_CH"] => FIELD_INVALID;
        "fallback_languages": [(list(&french, 10))] not [(list(&french, 11))] => TOO_MANY_ELEMENTS;
        "expand[0]": ["body"] not ["title"] => FIELD_INVALID;
        "subtask_depth": [0, 8] not [-1, 9] => FIELD_OUT_OF_RANGE;
        "known_variables": [(list(&known, 1_000))] not [(list(&known, 1_001))] => TOO_MANY_ELEMENTS;
        "known_variables[0]": [times("ä", 2_001)] not [times("ä", 2_002)] => FIELD_TOO_LONG;
        "answers": [answers(1_000)] not [answers(1_001)] => TOO_MANY_ELEMENTS;
        "answers": [{times("ä", 2_001): "off"}] not [{"": "off"}]
            => FIELD_REQUIRED at "answers[\"\"]";
        "answers.light": ["off", null, 5] not [["off"], {"light": "off"}, "\0"]
            => FIELD_INVALID at "answers[\"light\"]";
    };
    check(&client, "AnalysisService/PreviewTask", &preview, &fields).await;
}

#[apply(on_one_database)]
async fn fields_of_validations(client: Client) {
    let rule = json!({"rule": "step/unreachable", "severity": 2});
    let (suppressed, known) = (json!({"path": "nothing"}), json!("known"));
    let language = json!("de");
    let validation = json!({
        "document": {"task": {"name": "Guide", "product_id": PRODUCT}},
        "options": {"rules": [rule], "suppress": [suppressed]},
    });
    let fields = fields! {
        "document": [] not [null] => FIELD_REQUIRED at "source";
        "known_fingerprint": ["any"] not ["a\0b"] => FIELD_INVALID;
        "options.rules[0].rule": [] not [""] => FIELD_REQUIRED;
        "options.rules[0].rule": [] not ["step/unknown"] => FIELD_INVALID;
        "options.rules[0].severity": [] not [0] => FIELD_REQUIRED;
        "options.rules[0].severity": [1] not [5] => FIELD_INVALID;
        "options.min_severity": [2, 4] not [1, 7] => FIELD_INVALID;
        "options.suppress[0]": [] not [{}] => FIELD_REQUIRED;
        "options.suppress[0].rule": ["step/unreachable"] not ["Step/unreachable"] => FIELD_INVALID;
        "options.suppress[0].task": [] not ["no-id"] => FIELD_INVALID;
        "options.suppress[0].step": [] not ["no-id"] => FIELD_INVALID;
        "options.suppress[0].path": [] not ["a\0b"] => FIELD_INVALID;
        "options.rules": [(list(&rule, 100))] not [(list(&rule, 101))] => TOO_MANY_ELEMENTS;
        "options.suppress": [(list(&suppressed, 1_000))]
            not [(list(&suppressed, 1_001))] => TOO_MANY_ELEMENTS;
        "options.known_variables": [(list(&known, 1_000))]
            not [(list(&known, 1_001))] => TOO_MANY_ELEMENTS;
        "options.known_variables[0]": [times("n", 2_001)] not [times("n", 2_002)] => FIELD_TOO_LONG;
        "options.languages": [(list(&language, 100))] not [(list(&language, 101))]
            => TOO_MANY_ELEMENTS;
    };
    check(
        &client,
        "AnalysisService/ValidateTask",
        &validation,
        &fields,
    )
    .await;
}

#[apply(on_one_database)]
async fn fields_of_searches_for_references(client: Client) {
    let fields = fields! {
        "variable": [] not [""] => FIELD_REQUIRED at "task";
        "variable": [times("ö", 2_001)] not [times("ö", 2_002)] => FIELD_TOO_LONG;
        "variable": [] not ["a\0"] => FIELD_INVALID;
        "task": [] not ["17"] => FIELD_INVALID;
        "answer": [times("ö", 1_000)] not [times("ö", 1_001)] => FIELD_TOO_LONG;
        "answer": [] not ["a\0"] => FIELD_INVALID;
    };
    let search = json!({"variable": "light"});
    check(&client, "AnalysisService/ListReferences", &search, &fields).await;
    let fields = fields! {
        "task": [] not ["17"] => FIELD_INVALID;
        "answer": [] not ["on"] => FIELD_INVALID;
    };
    let search = json!({"task": client.given_task(task("Guide")).await.guid});
    check(&client, "AnalysisService/ListReferences", &search, &fields).await;
}

#[apply(on_both_databases)]
async fn fields_of_roles(client: Client) {
    let fields = fields! {
        "role": [] not [null] => FIELD_REQUIRED;
        "role.name": [] not ["", " ", "\t\n\u{3000}"] => FIELD_REQUIRED;
        "role.name": [times("🔧", 200)] not [times("x", 201)] => FIELD_TOO_LONG;
        "role.name": [] not ["x\0"] => FIELD_INVALID;
    };
    check(&client, "RoleService/CreateRole", &json!({}), &fields).await;
    let fields = fields! {
        "id": [] not [0] => FIELD_REQUIRED;
        "id": [] not [-1, i64::MIN] => FIELD_OUT_OF_RANGE;
    };
    check(&client, "RoleService/DeleteRole", &json!({}), &fields).await;
}

#[apply(on_both_databases)]
async fn fields_of_translations(client: Client) {
    let languages = |count, field: &str, text: &str| -> Value {
        let tags = tags(count).into_iter();
        tags.map(|tag| (tag, json!({ field: text }))).collect()
    };
    let fields = fields! {
        "task.translations": [(languages(100, "name", "x"))]
            not [(languages(101, "name", ""))] => TOO_MANY_ELEMENTS;
        "task.translations.de.name": [null, times("🔧", 200)] not [times("x", 201)]
            => FIELD_TOO_LONG at r#"task.translations["de"].name"#;
        "task.translations.de.name": [] not ["", " "]
            => FIELD_REQUIRED at r#"task.translations["de"].name"#;
    };
    check(&client, "TaskService/CreateTask", &new_task(), &fields).await;
    let object = json!({"a": 1});
    let question = json!({"name": "q", "type": "enum", "values": [{"key": "a", "value": "A"}]});
    let fields = fields! {
        "step.translations": [(languages(100, "title", "x"))]
            not [(languages(101, "title", ""))] => TOO_MANY_ELEMENTS;
        "step.translations.de.title": [times("x", 400)] not [times("x", 401)]
            => FIELD_TOO_LONG at r#"step.translations["de"].title"#;
        "step.translations.de.instructions": [(list(&object, 1_000))] not [(list(&object, 1_001))]
            => TOO_MANY_ELEMENTS at r#"step.translations["de"].instructions"#;
        "step.translations.de.feedback_config": [(list(&question, 1))] not [(list(&question, 2))]
            => TOO_MANY_ELEMENTS at r#"step.translations["de"].feedback_config"#;
    };
    let step = new_step(&client, "STEP_TYPE_INFORMATION").await;
    check(&client, "StepService/CreateStep", &step, &fields).await;
    let client = client.other_account();
    let guide = client.given_task(task("Pump")).await;
    client.given_step(information_step(&guide, "Look")).await;
    let work = client.translation_work(&["de"]).await;
    let sent = |work: &TranslationWork| {
        json!({"translations": [{
            "guid": work.guid,
            "language": work.language,
            "source_digest": work.source_digest,
        }]})
    };
    for item in work {
        let fields = match item.kind() {
            TranslationKind::Task => fields! {
                "translations": [] not [[]] => FIELD_REQUIRED;
                "translations[0].name": [times("🔧", 200)] not [times("🔧", 201)] => FIELD_TOO_LONG;
                "translations[0].name": [] not ["", " \t\n"] => FIELD_REQUIRED;
                "translations[0].name": [] not ["x\0"] => FIELD_INVALID;
            },
            _ => fields! {
                "translations": [] not [[]] => FIELD_REQUIRED;
                "translations[0].title": [times("🔧", 400)] not [times("🔧", 401)] => FIELD_TOO_LONG;
                "translations[0].title": [] not ["", " \t\n"] => FIELD_REQUIRED;
                "translations[0].title": [] not ["x\0"] => FIELD_INVALID;
            },
        };
        let call = "TranslationService/WriteTranslations";
        check(&client, call, &sent(&item), &fields).await;
    }
}

#[apply(on_one_database)]
async fn fields_of_requests_for_translation_work(client: Client) {
    let fields = fields! {
        "languages": [] not [[]] => FIELD_REQUIRED;
        "languages": [(tags(100))] not [(tags(101))] => TOO_MANY_ELEMENTS;
        "languages[1]": ["fr"] not ["de_DE", "1", "d\0", " de"] => FIELD_INVALID;
        "task": [null] not [""] => FIELD_REQUIRED;
        "task": [] not ["1", "Pump", "\0", "0198c2f0"] => FIELD_INVALID;
    };
    let call = "TranslationService/ListTranslationWork";
    check(&client, call, &json!({"languages": ["de"]}), &fields).await;
}

#[apply(on_one_database)]
async fn fields_of_imports(client: Client) {
    let fields = fields! {
        "document": [] not [null] => FIELD_REQUIRED;
        "document.task": [] not [null] => FIELD_REQUIRED;
        "document.task.name": [] not ["", " "] => FIELD_REQUIRED;
        "document.task.product_id": [] not [null] => FIELD_REQUIRED;
        "absent_steps": [1, 2] not [3] => FIELD_INVALID;
        "absent_fields": [1, 2] not [3] => FIELD_INVALID;
    };
    let import = json!({"document": new_task()});
    check(&client, "TaskService/ImportTask", &import, &fields).await;
}

#[apply(on_one_database)]
async fn fields_of_lists(client: Client) {
    let fields = fields! {
        "product_id": [1] not [0, -1] => FIELD_OUT_OF_RANGE;
        "published": [0, 2] not [-1] => FIELD_OUT_OF_RANGE;
        "role": [0, 8] not [4] => FIELD_INVALID;
        "type": [0, 1] not [2] => FIELD_INVALID;
        "page_size": [0, 501] not [-1] => FIELD_OUT_OF_RANGE;
    };
    check(&client, "TaskService/ListTasks", &json!({}), &fields).await;
    let fields = fields! {
        "expand[0]": ["body"] not ["title", "", "Body"] => FIELD_INVALID;
    };
    let steps = json!({"task": client.given_task(task("Guide")).await.guid});
    check(&client, "StepService/ListSteps", &steps, &fields).await;
}
