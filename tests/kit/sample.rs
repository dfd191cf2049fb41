//! Sample resources, and the JSON and dependencies in them.

use std::collections::BTreeMap;

use expertise::proto::v1::{dependency_node::Node, *};
use prost_types::{ListValue, Struct, Value, value::Kind};

/// The product of the samples.
pub const PRODUCT: i64 = 7;

/// A task with a name and a product.
pub fn task(name: &str) -> Task {
    Task {
        name: name.to_owned(),
        product_id: Some(PRODUCT),
        ..Task::default()
    }
}

/// An update of this task that changes nothing.
pub fn task_of(guid: &str) -> Task {
    Task {
        guid: guid.to_owned(),
        ..Task::default()
    }
}

/// A step with the fields that its type requires; for a subtask step see [`subtask`].
pub fn step(task: &Task, kind: StepType, title: &str) -> Step {
    let feedback_config = match kind {
        StepType::Observation => vec![question("answer", &["yes", "no"])],
        _ => Vec::new(),
    };
    Step {
        task: task.guid.clone(),
        product_id: Some(PRODUCT),
        r#type: kind.into(),
        title: title.to_owned(),
        feedback_config,
        ..Step::default()
    }
}

/// An information step.
pub fn information_step(task: &Task, title: &str) -> Step {
    step(task, StepType::Information, title)
}

/// A subtask step of `task` that refers to the other task.
pub fn subtask(task: &Task, other: &Task) -> Step {
    Step {
        subtask_id: other.guid.clone(),
        subtask_pid: other.product_id,
        ..step(task, StepType::Subtask, "")
    }
}

/// An update of this step that changes nothing.
pub fn step_of(guid: &str) -> Step {
    Step {
        guid: guid.to_owned(),
        ..Step::default()
    }
}

/// A question with these answers, whose texts are their keys.
pub fn question(name: &str, answers: &[&str]) -> FeedbackConfig {
    FeedbackConfig {
        name: name.to_owned(),
        r#type: "enum".to_owned(),
        linked: None,
        values: answers.iter().map(|key| answer(key, key)).collect(),
    }
}

/// One answer of a question.
pub fn answer(key: &str, value: &str) -> FeedbackValue {
    FeedbackValue {
        key: key.to_owned(),
        value: value.to_owned(),
        ..FeedbackValue::default()
    }
}

/// A document that creates a task.
pub fn document(name: &str, steps: Vec<Step>) -> TaskDocument {
    TaskDocument {
        task: Some(task(name)),
        steps,
    }
}

/// A document of an existing task that changes its steps alone.
pub fn document_of(guid: &str, steps: Vec<Step>) -> TaskDocument {
    TaskDocument {
        task: Some(task_of(guid)),
        steps,
    }
}

/// A step of a document with the fields that its type requires.
pub fn document_step(kind: StepType, title: &str) -> Step {
    step(&Task::default(), kind, title)
}

/// A linked observation of a document with these answers, each a key and a text.
pub fn linked_observation(answers: &[(&str, &str)]) -> Step {
    let answers = answers.iter();
    let values = answers.map(|(key, text)| answer(key, text)).collect();
    observation_asking(linked_question(values))
}

/// An observation of a document with this question.
pub fn observation_asking(question: FeedbackConfig) -> Step {
    Step {
        feedback_config: vec![question],
        ..document_step(StepType::Observation, "What is it?")
    }
}

/// A question whose answers each manage a task.
pub fn linked_question(values: Vec<FeedbackValue>) -> FeedbackConfig {
    FeedbackConfig {
        linked: Some(true),
        values,
        ..question("it", &[])
    }
}

/// An answer with the document of the task that it manages.
pub fn answer_with(key: &str, value: &str, document: TaskDocument) -> FeedbackValue {
    FeedbackValue {
        task_json: Some(Box::new(document)),
        ..answer(key, value)
    }
}

/// The answers of a step's question.
pub fn answers_of(step: &Step) -> &[FeedbackValue] {
    step.feedback_config
        .first()
        .map_or(&[], |config| &config.values)
}

/// A message that differs from another one.
pub trait With: Sized {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl<T: prost::Message> With for T {}

/// A request that imports the document.
pub fn import_of(document: TaskDocument) -> ImportTaskRequest {
    ImportTaskRequest::default().with(|it| it.document = Some(document))
}

/// A request for the first page of the steps of a task.
pub fn list_steps_of(task: &str) -> ListStepsRequest {
    ListStepsRequest::default().with(|it| it.task = task.to_owned())
}

/// A request that keeps the guide of a task.
pub fn revision_of(task: &str) -> CreateRevisionRequest {
    CreateRevisionRequest::default().with(|it| it.task = task.to_owned())
}

/// A request for the changes from a start on.
pub fn changes_from(start: ChangeStart) -> ListChangesRequest {
    ListChangesRequest::default().with(|it| it.set_start(start))
}

/// A request that creates the task.
pub fn create_task_request(task: Task) -> CreateTaskRequest {
    CreateTaskRequest {
        task: Some(task),
        ..CreateTaskRequest::default()
    }
}

/// A request that appends the step.
pub fn create_step_request(step: Step) -> CreateStepRequest {
    CreateStepRequest {
        step: Some(step),
        ..CreateStepRequest::default()
    }
}

/// A request to preview a document.
pub fn preview_of_document(document: TaskDocument) -> PreviewTaskRequest {
    PreviewTaskRequest {
        source: Some(preview_task_request::Source::Document(document)),
        ..PreviewTaskRequest::default()
    }
}

/// A request to validate a stored task.
pub fn validation_of(guid: &str) -> ValidateTaskRequest {
    ValidateTaskRequest {
        source: Some(validate_task_request::Source::Guid(guid.to_owned())),
        page_size: 500,
        ..ValidateTaskRequest::default()
    }
}

/// A request to validate a document.
pub fn validation_of_document(document: TaskDocument) -> ValidateTaskRequest {
    ValidateTaskRequest {
        source: Some(validate_task_request::Source::Document(document)),
        page_size: 500,
        ..ValidateTaskRequest::default()
    }
}

/// Conditions of which all must hold.
pub fn all_of(nodes: Vec<DependencyNode>) -> DependencyGroup {
    DependencyGroup {
        operator: LogicalOperator::And.into(),
        nodes,
    }
}

/// `variable operator target` as a node.
pub fn when(variable: &str, operator: &str, target: &str) -> DependencyNode {
    comparison(condition(variable, operator, target))
}

/// `variable operator target`.
pub fn condition(variable: &str, operator: &str, target: &str) -> Condition {
    Condition {
        variable: variable.to_owned(),
        operator: operator.to_owned(),
        targets: vec![text(target)],
        path: String::new(),
    }
}

/// A condition as a node.
pub fn comparison(condition: Condition) -> DependencyNode {
    DependencyNode {
        node: Some(Node::Condition(condition)),
    }
}

/// A JSON value.
pub fn value(json: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(bool) => Kind::BoolValue(bool),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(value).collect(),
        }),
        Json::Object(_) => Kind::StructValue(object(json)),
    };
    Value { kind: Some(kind) }
}

/// A JSON object.
pub fn object(json: serde_json::Value) -> Struct {
    let serde_json::Value::Object(members) = json else {
        panic!("not an object: {json}");
    };
    Struct {
        fields: members.into_iter().map(|(k, v)| (k, value(v))).collect(),
    }
}

/// A JSON string.
pub fn text(text: &str) -> Value {
    value(text.into())
}

/// A step's title in another language.
pub fn step_translation(title: &str) -> StepTranslation {
    StepTranslation {
        title: Some(title.to_owned()),
        ..StepTranslation::default()
    }
}

/// A request for the work into these languages.
pub fn translation_work_request(languages: &[&str]) -> ListTranslationWorkRequest {
    ListTranslationWorkRequest {
        languages: languages.iter().map(|tag| (*tag).to_owned()).collect(),
        ..ListTranslationWorkRequest::default()
    }
}

/// An automatic translation of a task's name or a step's title.
pub fn automatic(work: &TranslationWork, text: &str) -> AutomaticTranslation {
    let text = Some(text.to_owned());
    let (name, title) = match work.kind() {
        TranslationKind::Task => (text, None),
        _ => (None, text),
    };
    AutomaticTranslation {
        guid: work.guid.clone(),
        language: work.language.clone(),
        name,
        title,
        source_digest: work.source_digest.clone(),
        ..AutomaticTranslation::default()
    }
}

/// Methods that set one field each, so that a sample differs in what a test is about.
macro_rules! setters {
    ($methods:ident of $message:ident {
        $($method:ident($value:ident: $type:ty) $field:ident = $expression:expr;)+
    }) => {
        pub trait $methods {
            $(fn $method(self, $value: $type) -> Self;)+
        }

        impl $methods for $message {
            $(fn $method(mut self, $value: $type) -> Self {
                self.$field = $expression;
                self
            })+
        }
    };
}

pub(crate) use setters;

setters!(TaskSetters of Task {
    named(name: impl Into<String>) name = name.into();
    with_guid(guid: impl Into<String>) guid = guid.into();
    with_external_id(id: impl Into<String>) external_id = Some(id.into());
    with_etag(etag: impl Into<String>) etag = etag.into();
    with_product(id: i64) product_id = Some(id);
    with_published(published: i32) published = Some(published);
    with_roles(roles: Vec<i32>) roles = roles;
    with_dependencies(group: DependencyGroup) dependencies = Some(group);
    with_shorthand(shorthand: impl Into<String>) dependency_shorthand = Some(shorthand.into());
    with_translations(rows: BTreeMap<String, TaskTranslation>) translations = rows;
});

setters!(StepSetters of Step {
    in_task(guid: impl Into<String>) task = guid.into();
    with_product(id: i64) product_id = Some(id);
    with_tags(list: Vec<String>) tags = list;
    with_translations(rows: BTreeMap<String, StepTranslation>) translations = rows;
    titled(title: impl Into<String>) title = title.into();
    with_guid(guid: impl Into<String>) guid = guid.into();
    with_external_id(id: impl Into<String>) external_id = Some(id.into());
    with_etag(etag: impl Into<String>) etag = etag.into();
    with_body(body: impl Into<String>) body = Some(body.into());
    with_published(number: i32) published = Some(number);
    depending_on(group: DependencyGroup) dependencies = Some(group);
    with_question(question: FeedbackConfig) feedback_config = vec![question];
    with_instructions(list: Vec<Struct>) instructions = list;
    with_shorthand(shorthand: impl Into<String>) dependency_shorthand = Some(shorthand.into());
});

setters!(StepTranslationSetters of StepTranslation {
    with_body(body: impl Into<String>) body = Some(body.into());
    with_lock(lock: bool) locked = Some(lock);
});

setters!(TranslationWorkRequestSetters of ListTranslationWorkRequest {
    of_task(guid: impl Into<String>) task = Some(guid.into());
    with_page_size(size: i32) page_size = size;
    after(token: impl Into<String>) page_token = token.into();
});

/// A resource with texts in other languages.
pub trait Translated<Row> {
    /// With these texts in this language alone.
    fn translated(self, language: impl Into<String>, row: Row) -> Self;
}

impl Translated<TaskTranslation> for Task {
    fn translated(mut self, language: impl Into<String>, row: TaskTranslation) -> Self {
        self.translations.insert(language.into(), row);
        self
    }
}

impl Translated<StepTranslation> for Step {
    fn translated(mut self, language: impl Into<String>, row: StepTranslation) -> Self {
        self.translations.insert(language.into(), row);
        self
    }
}
