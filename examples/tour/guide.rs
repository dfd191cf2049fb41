//! Guides as files: `TaskDocument` in the proto3 JSON mapping, as far as the
//! example guides use it. A field that is not read here is an error, so that
//! nothing of a guide gets lost on the way.

use std::collections::BTreeMap;

use anyhow::Context;
use expertise::proto::v1::{
    self, AccessLevel, LogicalOperator, Step, StepTranslation, StepType, Task, TaskDocument,
    TaskTranslation, dependency_node,
};
use prost_types::value::Kind;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Reads one of the guides in `examples/guides`.
pub fn read(file: &str) -> anyhow::Result<TaskDocument> {
    let path = format!("{}/examples/guides/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let document: Document = serde_json::from_str(&text).context(path)?;
    Ok(document.into_message())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    task: TaskPart,
    steps: Vec<StepPart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskPart {
    name: String,
    product_id: Int64,
    published: Option<i32>,
    dependency_shorthand: Option<String>,
    #[serde(default)]
    roles: Vec<Named<AccessLevel>>,
    #[serde(default)]
    translations: BTreeMap<String, TaskTexts>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTexts {
    name: Option<String>,
    locked: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepPart {
    /// Only ties the parts of a file together.
    guid: String,
    product_id: Int64,
    r#type: Named<StepType>,
    title: String,
    body: Option<String>,
    cost: Option<i32>,
    published: Option<i32>,
    dependencies: Option<GroupPart>,
    dependency_shorthand: Option<String>,
    looping: Option<LoopingPart>,
    #[serde(default)]
    feedback_config: Vec<Question>,
    #[serde(default)]
    instructions: Vec<Map<String, Value>>,
    #[serde(default)]
    parts: Vec<String>,
    #[serde(default)]
    skills: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    translations: BTreeMap<String, StepTexts>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTexts {
    title: Option<String>,
    body: Option<String>,
    #[serde(default)]
    instructions: Vec<Map<String, Value>>,
    #[serde(default)]
    feedback_config: Vec<Question>,
    locked: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    name: String,
    r#type: String,
    linked: Option<bool>,
    values: Vec<Answer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    key: String,
    value: String,
    task_json: Option<Document>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoopingPart {
    alias: String,
    array: Option<Value>,
    iterations: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupPart {
    operator: Named<LogicalOperator>,
    nodes: Vec<NodePart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum NodePart {
    Condition(ConditionPart),
    Group(GroupPart),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionPart {
    variable: String,
    operator: String,
    targets: Vec<Value>,
    path: String,
}

/// A 64-bit number, which JSON carries as a text.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Int64(i64);

impl TryFrom<String> for Int64 {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// A value of an enum, which JSON carries by its name.
#[derive(Deserialize)]
#[serde(try_from = "String", bound = "E: ByName")]
struct Named<E>(E);

trait ByName: Sized {
    fn by_name(name: &str) -> Option<Self>;
}

impl<E: ByName> TryFrom<String> for Named<E> {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        E::by_name(&name)
            .map(Self)
            .ok_or_else(|| format!("{name} is not in the contract"))
    }
}

impl ByName for AccessLevel {
    fn by_name(name: &str) -> Option<Self> {
        Self::from_str_name(name)
    }
}

impl ByName for StepType {
    fn by_name(name: &str) -> Option<Self> {
        Self::from_str_name(name)
    }
}

impl ByName for LogicalOperator {
    fn by_name(name: &str) -> Option<Self> {
        Self::from_str_name(name)
    }
}

impl Document {
    fn into_message(self) -> TaskDocument {
        let Self { task, steps } = self;
        TaskDocument {
            task: Some(task.into_message()),
            steps: steps.into_iter().map(StepPart::into_message).collect(),
        }
    }
}

impl TaskPart {
    fn into_message(self) -> Task {
        let Self {
            name,
            product_id,
            published,
            dependency_shorthand,
            roles,
            translations,
        } = self;
        Task {
            name,
            product_id: Some(product_id.0),
            published,
            dependency_shorthand,
            roles: roles.into_iter().map(|role| role.0.into()).collect(),
            translations: each(translations, |TaskTexts { name, locked }| TaskTranslation {
                name,
                locked,
            }),
            ..Task::default()
        }
    }
}

impl StepPart {
    fn into_message(self) -> Step {
        let Self {
            guid,
            product_id,
            r#type,
            title,
            body,
            cost,
            published,
            dependencies,
            dependency_shorthand,
            looping,
            feedback_config,
            instructions,
            parts,
            skills,
            tags,
            translations,
        } = self;
        Step {
            guid,
            product_id: Some(product_id.0),
            r#type: r#type.0.into(),
            title,
            body,
            cost,
            published,
            dependencies: dependencies.map(group),
            dependency_shorthand,
            looping: looping.map(repetition),
            feedback_config: feedback_config.into_iter().map(question).collect(),
            instructions: instructions.into_iter().map(object).collect(),
            parts,
            skills,
            tags,
            translations: each(translations, texts),
            ..Step::default()
        }
    }
}

fn each<T, M>(rows: BTreeMap<String, T>, convert: fn(T) -> M) -> BTreeMap<String, M> {
    let rows = rows.into_iter();
    rows.map(|(key, row)| (key, convert(row))).collect()
}

fn texts(texts: StepTexts) -> StepTranslation {
    let StepTexts {
        title,
        body,
        instructions,
        feedback_config,
        locked,
    } = texts;
    StepTranslation {
        title,
        body,
        instructions: instructions.into_iter().map(object).collect(),
        feedback_config: feedback_config.into_iter().map(question).collect(),
        locked,
    }
}

fn question(question: Question) -> v1::FeedbackConfig {
    let Question {
        name,
        r#type,
        linked,
        values,
    } = question;
    v1::FeedbackConfig {
        name,
        r#type,
        linked,
        values: values.into_iter().map(answer).collect(),
    }
}

fn answer(answer: Answer) -> v1::FeedbackValue {
    let Answer {
        key,
        value,
        task_json,
    } = answer;
    v1::FeedbackValue {
        key,
        value,
        task_json: task_json.map(Document::into_message),
        ..v1::FeedbackValue::default()
    }
}

fn repetition(looping: LoopingPart) -> v1::Looping {
    let LoopingPart {
        alias,
        array,
        iterations,
    } = looping;
    v1::Looping {
        alias,
        array: array.map(value),
        iterations: iterations.map(value),
    }
}

fn group(group: GroupPart) -> v1::DependencyGroup {
    let GroupPart { operator, nodes } = group;
    v1::DependencyGroup {
        operator: operator.0.into(),
        nodes: nodes.into_iter().map(node).collect(),
    }
}

fn node(node: NodePart) -> v1::DependencyNode {
    let node = match node {
        NodePart::Condition(ConditionPart {
            variable,
            operator,
            targets,
            path,
        }) => dependency_node::Node::Condition(v1::Condition {
            variable,
            operator,
            targets: targets.into_iter().map(value).collect(),
            path,
        }),
        NodePart::Group(inner) => dependency_node::Node::Group(group(inner)),
    };
    v1::DependencyNode { node: Some(node) }
}

fn object(members: Map<String, Value>) -> prost_types::Struct {
    let members = members.into_iter();
    prost_types::Struct {
        fields: members.map(|(key, member)| (key, value(member))).collect(),
    }
}

fn value(json: Value) -> prost_types::Value {
    let kind = match json {
        Value::Null => Kind::NullValue(0),
        Value::Bool(truth) => Kind::BoolValue(truth),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(items) => Kind::ListValue(prost_types::ListValue {
            values: items.into_iter().map(value).collect(),
        }),
        Value::Object(members) => Kind::StructValue(object(members)),
    };
    prost_types::Value { kind: Some(kind) }
}
