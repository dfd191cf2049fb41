//! Samples for tests of what each call does.

use expertise::proto::v1::{dependency_node::Node, *};
use prost_types::{ListValue, Struct, Value, value::Kind};

use crate::kit::sample::*;

/// A document with this task.
pub fn document_with(task: Task, steps: Vec<Step>) -> TaskDocument {
    TaskDocument {
        task: Some(task),
        steps,
    }
}

/// Information steps of a document.
pub fn document_steps(titles: &[&str]) -> Vec<Step> {
    let titles = titles.iter();
    titles
        .map(|title| document_step(StepType::Information, title))
        .collect()
}

/// A request to preview a stored task.
pub fn preview_of(guid: &str) -> PreviewTaskRequest {
    PreviewTaskRequest {
        source: Some(preview_task_request::Source::Guid(guid.to_owned())),
        ..PreviewTaskRequest::default()
    }
}

/// A request that restores a revision.
pub fn restore_of(task: &str, revision: impl ToString) -> RestoreRevisionRequest {
    RestoreRevisionRequest {
        task: task.to_owned(),
        revision: revision.to_string(),
        ..RestoreRevisionRequest::default()
    }
}

/// A request for the changes behind a cursor.
pub fn changes_behind(cursor: &str) -> ListChangesRequest {
    ListChangesRequest::default().with(|it| it.cursor = cursor.to_owned())
}

/// A request that deletes the task, if it has no steps.
pub fn deletion_of(guid: &str) -> DeleteTaskRequest {
    DeleteTaskRequest::default().with(|it| it.guid = guid.to_owned())
}

/// Conditions of which one must hold.
pub fn any_of(nodes: Vec<DependencyNode>) -> DependencyGroup {
    DependencyGroup {
        operator: LogicalOperator::Or.into(),
        nodes,
    }
}

/// A group as a node.
pub fn nested(group: DependencyGroup) -> DependencyNode {
    DependencyNode {
        node: Some(Node::Group(group)),
    }
}

/// Groups nested this deep around a condition.
pub fn groups_deep(depth: usize) -> DependencyGroup {
    (1..depth).fold(all_of(vec![when("a", "=", "1")]), |inner, _| {
        all_of(vec![nested(inner)])
    })
}

/// A group of this many conditions.
pub fn conditions(count: usize) -> DependencyGroup {
    all_of(vec![when("a", "=", "1"); count])
}

/// An array.
pub fn array(values: Vec<Value>) -> Value {
    Value {
        kind: Some(Kind::ListValue(ListValue { values })),
    }
}

/// Arrays nested this deep around a text.
pub fn arrays_deep(depth: usize, end: &str) -> Value {
    (0..depth).fold(text(end), |inner, _| array(vec![inner]))
}

/// Objects nested this deep.
pub fn objects_deep(depth: usize) -> Struct {
    (1..depth).fold(object(serde_json::json!({"end": 1})), |inner, _| {
        let kind = Some(Kind::StructValue(inner));
        member("a", Value { kind })
    })
}

/// A JSON object with one member.
pub fn member(key: &str, value: Value) -> Struct {
    Struct {
        fields: [(key.to_owned(), value)].into(),
    }
}

/// A number, which may be one that JSON has no form for.
pub fn number(number: f64) -> Value {
    Value {
        kind: Some(Kind::NumberValue(number)),
    }
}

/// This many well-formed language tags.
pub fn tags(count: u8) -> Vec<String> {
    let letter = |index: u8| char::from(b'a' + index);
    (0..count)
        .map(|n| format!("q{}{}", letter(n / 26), letter(n % 26)))
        .collect()
}

/// A task's name in another language.
pub fn task_translation(name: &str) -> TaskTranslation {
    TaskTranslation {
        name: Some(name.to_owned()),
        locked: None,
    }
}

/// A task with every field that a caller may set.
pub fn full_task() -> Task {
    Task {
        dependencies: Some(all_of(vec![
            when("power", "=", "on"),
            nested(any_of(vec![
                when("model", "!=", "X-1"),
                comparison(Condition {
                    variable: "age".to_owned(),
                    operator: ">".to_owned(),
                    targets: vec![number(2.5), value(true.into())],
                    path: "components.7".to_owned(),
                }),
            ])),
        ])),
        published: Some(0),
        roles: vec![AccessLevel::Expert.into(), AccessLevel::User.into()],
        translations: [
            ("de".to_owned(), task_translation("Pumpe tropft")),
            (
                "zh-Hant".to_owned(),
                TaskTranslation {
                    locked: Some(false),
                    ..task_translation("泵漏水")
                },
            ),
        ]
        .into(),
        ..task("Pump drips")
    }
}

/// A step with every field that a caller may set on its type.
pub fn full_step(task: &Task) -> Step {
    Step {
        body: Some("<p>Open&nbsp;the valve.</p>\r\n<br/>".to_owned()),
        dependencies: Some(any_of(vec![when("valve", "=", "open")])),
        instructions: vec![
            object(serde_json::json!({"tool": "wrench", "size": 13, "extra": [null, true]})),
            object(serde_json::json!({})),
        ],
        looping: Some(Looping {
            alias: "valve".to_owned(),
            array: Some(value(serde_json::json!(["left", "right"]))),
            iterations: Some(value(serde_json::Value::Null)),
        }),
        parts: vec!["seal".to_owned(), "seal".to_owned(), "bolt".to_owned()],
        published: Some(2),
        skills: vec!["plumbing".to_owned()],
        tags: vec!["wet".to_owned(), "cold".to_owned()],
        translations: [(
            "de".to_owned(),
            StepTranslation {
                title: Some("Ventil prüfen".to_owned()),
                body: Some("<p>Ventil öffnen.</p>".to_owned()),
                instructions: vec![object(serde_json::json!({"werkzeug": "Schlüssel"}))],
                feedback_config: vec![question("Antwort", &["ja", "nein"])],
                locked: Some(false),
            },
        )]
        .into(),
        ..step(task, StepType::Observation, "Check the valve")
    }
}

setters!(TaskTranslationSetters of TaskTranslation {
    with_lock(lock: bool) locked = Some(lock);
});

setters!(PreviewSetters of PreviewTaskRequest {
    in_language(tag: impl Into<String>) language = tag.into();
    falling_back_to(tags: &[&str])
        fallback_languages = tags.iter().map(|tag| (*tag).to_owned()).collect();
    to_depth(levels: i32) subtask_depth = levels;
    with_page_size(size: i32) page_size = size;
    after(token: impl Into<String>) page_token = token.into();
});

setters!(AutomaticTranslationSetters of AutomaticTranslation {
    with_body(body: impl Into<String>) body = Some(body.into());
    in_language(tag: impl Into<String>) language = tag.into();
});

/// Answers of a preview, one after the other.
pub trait Answered {
    /// With this value of a variable.
    fn answering(self, name: &str, value: Value) -> Self;
}

impl Answered for PreviewTaskRequest {
    fn answering(mut self, name: &str, value: Value) -> Self {
        self.answers.insert(name.to_owned(), value);
        self
    }
}
