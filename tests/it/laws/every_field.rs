//! Every field that a caller may set on a task or step keeps its value on each way through the
//! service. The fields and most of their values come from the contract, so a new field is checked
//! without a line here, unless its values have rules of their own: these are in [`special_value`].

use std::{collections::BTreeSet, fmt::Debug};

use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use crate::{
    kit::contract::{descriptor, json as json_of},
    prelude::*,
};

/// Values of `google.api.field_behavior`.
const OUTPUT_ONLY: i32 = 3;
const IMMUTABLE: i32 = 5;
const IDENTIFIER: i32 = 8;

/// A precondition, and another notation of `dependencies`.
const NO_CONTENT: [&str; 2] = ["etag", "dependency_shorthand"];

/// Fields of a step that depend on its type.
const BY_TYPE: [&str; 5] = [
    "title",
    "cost",
    "subtask_id",
    "subtask_pid",
    "subtask_external_id",
];

/// Fields that have no default, on some type of step at least.
const REQUIRED: [&str; 6] = [
    "name",
    "title",
    "feedback_config",
    "subtask_id",
    "subtask_pid",
    "subtask_external_id",
];

/// A task or step.
pub trait Resource: Message + Default + Clone + PartialEq + Debug {
    const NAME: &'static str;
    /// Its field in a document.
    const IN_DOCUMENT: &'static str;

    async fn create(self, client: &Client) -> Self;
    async fn get(client: &Client, guid: &str) -> Self;
    async fn list(client: &Client, guide: &str) -> Vec<Self>;
    async fn update(self, client: &Client, mask: &[&str]) -> Self;
    fn guid(&self) -> &str;
    /// With the ids of the other one: its own, and for a step that of its task.
    fn with_place_of(self, other: &Self) -> Self;
    fn without_etag(self) -> Self;
    /// The task with all its steps.
    fn guide(&self) -> &str;
    fn all_in(document: TaskDocument) -> Vec<Self>;
    /// A document of its guide that contains it.
    fn in_document(self) -> TaskDocument;
    /// The paths that differ, in a comparison of the guide.
    fn paths_in(compared: CompareRevisionsResponse) -> Vec<String>;
}

impl Resource for Task {
    const NAME: &'static str = "Task";
    const IN_DOCUMENT: &'static str = "task";

    async fn create(self, client: &Client) -> Self {
        client.given_task(self).await
    }

    async fn get(client: &Client, guid: &str) -> Self {
        client.get_task(guid).await.accepted()
    }

    async fn list(client: &Client, _: &str) -> Vec<Self> {
        client.all_tasks().await
    }

    async fn update(self, client: &Client, mask: &[&str]) -> Self {
        client.updated_task(self, mask).await
    }

    fn guid(&self) -> &str {
        &self.guid
    }

    fn with_place_of(self, other: &Self) -> Self {
        self.with_guid(&other.guid)
    }

    fn without_etag(self) -> Self {
        self.with_etag("")
    }

    fn guide(&self) -> &str {
        &self.guid
    }

    fn all_in(document: TaskDocument) -> Vec<Self> {
        document.task.into_iter().collect()
    }

    fn in_document(self) -> TaskDocument {
        document_with(self, Vec::new())
    }

    fn paths_in(compared: CompareRevisionsResponse) -> Vec<String> {
        compared.task_paths
    }
}

impl Resource for Step {
    const NAME: &'static str = "Step";
    const IN_DOCUMENT: &'static str = "steps";

    async fn create(self, client: &Client) -> Self {
        client.given_step(self).await
    }

    async fn get(client: &Client, guid: &str) -> Self {
        client.get_step(guid).await.accepted()
    }

    async fn list(client: &Client, guide: &str) -> Vec<Self> {
        client.steps_with_bodies(guide).await
    }

    async fn update(self, client: &Client, mask: &[&str]) -> Self {
        client.updated_step(self, mask).await
    }

    fn guid(&self) -> &str {
        &self.guid
    }

    fn with_place_of(self, other: &Self) -> Self {
        self.with_guid(&other.guid).in_task(&other.task)
    }

    fn without_etag(self) -> Self {
        self.with_etag("")
    }

    fn guide(&self) -> &str {
        &self.task
    }

    fn all_in(document: TaskDocument) -> Vec<Self> {
        document.steps
    }

    fn in_document(self) -> TaskDocument {
        document_of(&self.task.clone(), vec![self])
    }

    fn paths_in(compared: CompareRevisionsResponse) -> Vec<String> {
        let steps = compared.steps.into_iter();
        steps.flat_map(|step| step.paths).collect()
    }
}

/// A resource with all of its content, and one with as little as possible.
struct Sample<R> {
    full: R,
    plain: R,
}

fn behaviors(field: &FieldDescriptor) -> Vec<i32> {
    let options = field.options();
    let mut extensions = options.extensions();
    let found = extensions.find(|(it, _)| it.full_name() == "google.api.field_behavior");
    let found = found.and_then(|(_, value)| Some(value.as_list()?.to_vec()));
    let values = found.unwrap_or_default();
    let values = values
        .iter()
        .filter_map(prost_reflect::Value::as_enum_number);
    values.collect()
}

fn is_content(field: &FieldDescriptor) -> bool {
    let behaviors = behaviors(field);
    let is_given = [OUTPUT_ONLY, IDENTIFIER]
        .iter()
        .any(|it| behaviors.contains(it));
    !is_given && !NO_CONTENT.contains(&field.name())
}

/// The fields of a resource's content.
pub fn content_fields<R: Resource>() -> Vec<FieldDescriptor> {
    descriptor(R::NAME).fields().filter(is_content).collect()
}

/// The fields that a sample sets and that an update may change.
fn updatable_fields<R: Resource>(full: &R) -> Vec<FieldDescriptor> {
    let full = dynamic(full);
    let fields = content_fields::<R>().into_iter();
    let fields = fields.filter(|field| full.has_field(field));
    fields.filter(|field| !is_fixed(field)).collect()
}

/// Whether no update changes it.
pub fn is_fixed(field: &FieldDescriptor) -> bool {
    behaviors(field).contains(&IMMUTABLE)
}

/// The fields of an update that writes this field: the product of a subtask is that of its task.
fn mask_of(field: &str) -> Vec<&str> {
    match field {
        "subtask_id" | "subtask_pid" | "subtask_external_id" => {
            vec!["subtask_id", "subtask_pid", "subtask_external_id"]
        }
        field => vec![field],
    }
}

/// Fields that change with this one: the title of a subtask step is the name of its task.
fn followers(field: &str) -> Option<&'static str> {
    field.starts_with("subtask_").then_some("title")
}

/// Values with rules of their own; null leaves the field out.
fn special_value(field: &FieldDescriptor) -> Option<Value> {
    let name = field.full_name();
    Some(match name.strip_prefix("expertise.v1.").unwrap_or(name) {
        "Task.roles" => json!(["ACCESS_LEVEL_EXPERT", "ACCESS_LEVEL_USER"]),
        // The default is 1.
        "Task.published" | "Step.published" => json!(2),
        "TaskTranslation.locked" | "StepTranslation.locked" => json!(false),
        "DependencyGroup.operator" => json!("LOGICAL_OPERATOR_OR"),
        "DependencyNode.group" => Value::Null,
        "Condition.operator" => json!("!="),
        "Condition.targets" => json!(["red", 2.5, true]),
        "FeedbackConfig.type" => json!("enum"),
        // Only imports link questions, whose answers then have guides.
        "FeedbackConfig.linked" => Value::Null,
        "FeedbackValue.task_json" => Value::Null,
        _ => return None,
    })
}

pub fn value(field: &FieldDescriptor) -> Value {
    special_value(field).unwrap_or_else(|| {
        if field.is_map() {
            let entry = field.kind();
            let entry = entry.as_message().expect("an entry");
            json!({ "de": single_value(&entry.map_entry_value_field()) })
        } else if field.is_list() {
            json!([single_value(field)])
        } else {
            single_value(field)
        }
    })
}

fn single_value(field: &FieldDescriptor) -> Value {
    match field.kind() {
        Kind::String => json!(format!("the {}", field.name())),
        Kind::Bool => json!(true),
        Kind::Int32 | Kind::Int64 => json!(PRODUCT),
        Kind::Enum(values) => json!(values.values().last().expect("a value").name()),
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.Value" => json!(["left", null, {"depth": 2.5}]),
            "google.protobuf.Struct" => json!({"tool": "wrench", "sizes": [13, null]}),
            _ => Value::Object(content(&message)),
        },
        kind => panic!("{}: no value of {kind:?}", field.full_name()),
    }
}

/// A message with all of its content.
fn content(message: &MessageDescriptor) -> Map<String, Value> {
    let fields = message.fields().filter(is_content);
    let values = fields.map(|field| (field.name().to_owned(), value(&field)));
    values.filter(|(_, value)| !value.is_null()).collect()
}

/// A resource with this content.
pub fn typed<R: Resource>(content: Map<String, Value>) -> R {
    let message = DynamicMessage::deserialize(descriptor(R::NAME), Value::Object(content));
    let message = message.unwrap_or_else(|error| panic!("{}: {error}", R::NAME));
    message.transcode_to().expect("a message")
}

pub fn dynamic<R: Resource>(resource: &R) -> DynamicMessage {
    let bytes = resource.encode_to_vec();
    DynamicMessage::decode(descriptor(R::NAME), &*bytes).expect("a message")
}

fn task_sample() -> Sample<Task> {
    Sample {
        full: typed(content(&descriptor("Task"))),
        plain: task("Plain").with_roles(vec![AccessLevel::User.into()]),
    }
}

/// A step of each type whose content differs.
async fn step_samples(client: &Client) -> Vec<Sample<Step>> {
    let guide = client.given_task(task("Guide")).await;
    let [one, other] = [PRODUCT, PRODUCT + 1].map(|product| {
        let id = format!("subtask {product}");
        task("Other").with_product(product).with_external_id(id)
    });
    let (one, other) = (client.given_task(one).await, client.given_task(other).await);
    let mut content = content(&descriptor("Step"));
    content.retain(|field, _| !BY_TYPE.contains(&field.as_str()));
    content.insert("task".to_owned(), json!(guide.guid));
    let full = |step_type: StepType, own: Value| {
        let mut content = content.clone();
        content.insert("type".to_owned(), json!(step_type.as_str_name()));
        let Value::Object(own) = own else {
            panic!("no fields of its own");
        };
        content.extend(own);
        let step: Step = typed(content);
        // External ids are unique in the guide.
        let id = step.external_id().to_owned() + step_type.as_str_name();
        step.with_external_id(id)
    };
    vec![
        Sample {
            full: full(StepType::Observation, json!({"title": "Full"})),
            plain: step(&guide, StepType::Observation, "Plain"),
        },
        Sample {
            full: full(StepType::Solution, json!({"title": "Full", "cost": 3})),
            plain: step(&guide, StepType::Solution, "Plain"),
        },
        Sample {
            full: full(
                StepType::Subtask,
                json!({
                    "subtask_id": one.guid,
                    "subtask_pid": one.product_id,
                    "subtask_external_id": one.external_id,
                }),
            ),
            plain: subtask(&guide, &other),
        },
    ]
}

fn assert_field<R: Resource>(got: &R, expected: &R, field: &FieldDescriptor, way: &str) {
    let shown = |resource: &R| {
        let mut message = DynamicMessage::new(descriptor(R::NAME));
        message.set_field(field, dynamic(resource).get_field(field).into_owned());
        let mut shown = json_of(&message);
        remove_unlinked(&mut shown);
        shown
    };
    assert_eq!(shown(got), shown(expected), "{way}: {}", field.full_name());
}

/// Responses say whether a question is linked, requests need not.
pub fn remove_unlinked(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| name != "linked" || *value != json!(false));
            members.values_mut().for_each(remove_unlinked);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_unlinked),
        _ => {}
    }
}

/// Asserts that a resource has the content that the full one sets.
fn assert_content<R: Resource>(got: &R, full: &R, way: &str) {
    let message = dynamic(full);
    let fields = content_fields::<R>().into_iter();
    for field in fields.filter(|field| message.has_field(field)) {
        assert_field(got, full, &field, way);
    }
}

/// The only resource of its kind with this external id.
fn with_external_id<R: Resource>(resources: Vec<R>, full: &R) -> R {
    let id = |resource: &R| {
        let id = dynamic(resource)
            .get_field_by_name("external_id")
            .map(|it| it.into_owned());
        id.expect("a field")
    };
    let mut found = resources.into_iter().filter(|it| id(it) == id(full));
    let resource = found.next().expect("the resource");
    assert!(found.next().is_none());
    resource
}

/// Asserts that each field of the content is set in one of these.
pub fn assert_every_field_has_a_value<R: Resource>(samples: impl IntoIterator<Item = R>) {
    let samples = samples.into_iter().map(|sample| dynamic(&sample));
    let samples: Vec<DynamicMessage> = samples.collect();
    for field in content_fields::<R>() {
        let is_set = samples.iter().any(|sample| sample.has_field(&field));
        assert!(is_set, "{} has no value", field.full_name());
    }
}

#[apply(on_one_database)]
async fn every_field_has_a_value(client: Client) {
    assert_every_field_has_a_value([task_sample().full]);
    let steps = step_samples(&client).await.into_iter();
    assert_every_field_has_a_value(steps.map(|sample| sample.full));
}

#[apply(on_both_databases)]
async fn creates_reads_exports_and_imports_keep_every_field(client: Client) {
    async fn check<R: Resource>(client: &Client, elsewhere: &Client, full: R) {
        let created = full.clone().create(client).await;
        assert_content(&created, &full, "the response of a create");
        let full = full.with_place_of(&created);
        assert_content(&R::get(client, created.guid()).await, &full, "a get");
        let listed = R::list(client, created.guide()).await;
        assert_content(&with_external_id(listed, &full), &full, "a list");
        let document = client.exported(created.guide()).await;
        let exported = with_external_id(R::all_in(document.clone()), &full);
        assert_content(&exported, &full, "an export");
        let import = client.import(document.clone()).await.accepted();
        assert_eq!(import.outcome(), ImportOutcome::Unchanged);
        let copy = elsewhere.imported(canonical(document)).await;
        let copies = R::all_in(elsewhere.exported(&copy.guid).await);
        let copy = with_external_id(copies, &full);
        let full = full.with_place_of(&copy);
        assert_content(&copy, &full, "an import that creates");
    }
    // External ids of tasks are unique in their account.
    check(&client, &client.other_account(), task_sample().full).await;
    for sample in step_samples(&client).await {
        check(&client, &client, sample.full).await;
    }
}

#[apply(on_both_databases)]
async fn an_update_changes_and_reports_only_the_fields_of_its_mask(client: Client) {
    async fn check<R: Resource>(client: &Client, sample: Sample<R>) {
        let before = sample.plain.create(client).await.without_etag();
        let full = sample.full.with_place_of(&before);
        let fields = updatable_fields(&full);
        for field in &fields {
            let mask = mask_of(field.name());
            let cursor = client.cursor_now().await;
            let updated = full.clone().update(client, &mask).await;
            assert_eq!(updated, R::get(client, before.guid()).await);
            for other in &fields {
                let expected = match mask.contains(&other.name()) {
                    true => &full,
                    false => &before,
                };
                let way = format!("an update of {}", field.name());
                assert_field(&updated, expected, other, &way);
            }
            let (changes, _) = client.changes_after(&cursor).await;
            let changed = changes.iter().flat_map(|change| &change.fields);
            let changed = changed.filter_map(|path| path.split('.').next());
            let follow = mask.iter().copied().chain(followers(field.name()));
            let changed: BTreeSet<&str> = changed.collect();
            assert!(changed.contains(field.name()), "{changes:?}");
            assert!(changed.is_subset(&follow.collect()), "{changes:?}");
            let cleared = before.clone().update(client, &mask).await;
            for field in &fields {
                assert_field(&cleared, &before, field, "an update that clears");
            }
        }
        full.clone().update(client, &[]).await;
        let updated = R::get(client, before.guid()).await;
        assert_content(&updated, &full, "an update without a mask");
    }
    check(&client, task_sample()).await;
    for sample in step_samples(&client).await {
        check(&client, sample).await;
    }
}

#[apply(on_both_databases)]
async fn imports_keep_set_and_reset_every_field(client: Client) {
    async fn check<R: Resource>(client: &Client, sample: Sample<R>) {
        let plain = sample.plain.clone().create(client).await;
        let full = sample.full.with_place_of(&plain);
        let fields = updatable_fields(&full);
        let mut former = client.exported(plain.guide()).await;
        former.task = former.task.map(Resource::without_etag);
        former.steps = former
            .steps
            .into_iter()
            .map(Resource::without_etag)
            .collect();
        let import_with = async |document, absent_fields: AbsentFields, reset: &[&str]| {
            let request = ImportTaskRequest {
                document: Some(document),
                absent_fields: absent_fields.into(),
                reset_fields: field_mask(reset),
                absent_steps: AbsentSteps::Keep.into(),
                ..ImportTaskRequest::default()
            };
            client.call(request).await.accepted();
            R::get(client, plain.guid()).await
        };
        let import = async |document, absent| import_with(document, absent, &[]).await;
        for field in &fields {
            let mut one = dynamic(&full);
            let others = fields.iter();
            let others = others.filter(|it| !mask_of(field.name()).contains(&it.name()));
            others.for_each(|other| one.clear_field(other));
            let one: R = one.transcode_to().expect("a message");
            let imported = import(one.in_document(), AbsentFields::Keep).await;
            assert_field(&imported, &full, field, "an import of one field");
        }
        assert_content(&R::get(client, plain.guid()).await, &full, "these imports");
        let nothing = R::default().with_place_of(&plain).in_document();
        let kept = import(nothing, AbsentFields::Keep).await;
        assert_content(&kept, &full, "an import without fields");
        let reset = import(former, AbsentFields::Reset).await;
        for field in &fields {
            assert_field(&reset, &plain, field, "an import that resets");
        }
        let required = |of: &R| -> R {
            let mut required = dynamic(of);
            let optional = fields.iter().filter(|it| !REQUIRED.contains(&it.name()));
            optional.for_each(|field| required.clear_field(field));
            required.transcode_to().expect("a message")
        };
        let bare = required(&sample.plain).create(client).await;
        let sent = required(&plain).without_etag();
        let reset = async |mask: &[&str]| {
            let paths = mask.iter().map(|it| format!("{}.{it}", R::IN_DOCUMENT));
            let paths: Vec<String> = paths.collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            import(full.clone().in_document(), AbsentFields::Keep).await;
            import_with(sent.clone().in_document(), AbsentFields::Keep, &paths).await
        };
        for field in &fields {
            let mask = mask_of(field.name());
            let reset = reset(&mask).await;
            for other in &fields {
                let expected = match mask.contains(&other.name()) || dynamic(&sent).has_field(other)
                {
                    true => &bare,
                    false => &full,
                };
                assert_field(&reset, expected, other, field.name());
            }
        }
    }
    check(&client, task_sample()).await;
    for sample in step_samples(&client).await {
        check(&client, sample).await;
    }
}

#[apply(on_both_databases)]
async fn revisions_keep_compare_and_restore_every_field(client: Client) {
    async fn check<R: Resource>(client: &Client, sample: Sample<R>) {
        let created = sample.full.clone().create(client).await;
        let full = sample.full.with_place_of(&created);
        let fields = updatable_fields(&full);
        let revision = client.kept_revision(full.guide()).await.revision;
        let mask: Vec<&str> = fields.iter().map(FieldDescriptor::name).collect();
        let plain = sample.plain.with_place_of(&created);
        plain.update(client, &mask).await;
        let kept = client.revision_document(full.guide(), revision).await;
        let kept = with_external_id(R::all_in(kept), &full);
        assert_content(&kept, &full, "a revision");
        let compared = client.compare_revisions(full.guide(), revision, "");
        let paths = R::paths_in(compared.await.accepted());
        let names = paths
            .iter()
            .filter_map(|path| path.split(['.', '[']).next());
        let differing: BTreeSet<&str> = names.collect();
        assert_eq!(differing, BTreeSet::from_iter(mask), "a comparison");
        client.restored(full.guide(), revision).await;
        let restored = R::get(client, full.guid()).await;
        assert_content(&restored, &full, "a restore");
    }
    check(&client, task_sample()).await;
    for sample in step_samples(&client).await {
        check(&client, sample).await;
    }
}
