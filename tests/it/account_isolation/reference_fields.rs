//! What each field of a request names, and the answer when the account has no such
//! resource.

use serde_json::{Value, json};

use super::accounts::{CallingAccount, OtherAccount};
use crate::kit::{contract::shown, prelude::*};

/// What a field names.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    Task,
    /// A task that an observation manages.
    Managed,
    Step,
    Role,
    Account,
    /// A request that was sent before.
    Retry,
    /// Where a page of changes ended.
    Cursor,
    /// An alias of a revision.
    Revision,
    /// The external id of a task.
    ExternalId,
}

impl Names {
    pub fn is_guid(self) -> bool {
        !matches!(
            self,
            Self::Role | Self::Cursor | Self::Revision | Self::ExternalId
        )
    }
}

/// A field of a call, and the answer when it names a resource that the account does not
/// have.
pub struct Case {
    pub call: &'static str,
    /// The path of the field, below `document` for a guide; `.*` at its end: every such field
    /// below.
    field: &'static str,
    pub names: Names,
    request: Sent,
    /// The reason of the refusal, or [`OK`].
    pub absent: &'static str,
    /// The same for a malformed id.
    pub malformed: &'static str,
}

/// A request that is accepted without the field.
#[derive(Clone, Copy)]
enum Sent {
    Request(fn(&CallingAccount, &OtherAccount) -> Value),
    Guide(fn(&CallingAccount) -> TaskDocument),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.call, self.field)
    }
}

impl Case {
    /// The request, in JSON.
    pub fn request(&self, caller: &CallingAccount, other: &OtherAccount) -> Value {
        match self.request {
            Sent::Request(request) => request(caller, other),
            Sent::Guide(guide) => {
                let document = shown("TaskDocument", &guide(caller));
                match self.call {
                    "TaskService/ImportTask" => {
                        json!({"document": document, "absent_steps": "ABSENT_STEPS_KEEP"})
                    }
                    "AnalysisService/PreviewTask" => {
                        json!({"document": document, "subtask_depth": 8})
                    }
                    _ => json!({"document": document}),
                }
            }
        }
    }

    pub fn covers(&self, path: &str) -> bool {
        let path = match self.request {
            Sent::Request(_) => path,
            Sent::Guide(_) => match path.strip_prefix("document.") {
                Some(path) => path,
                None => return false,
            },
        };
        match self.field.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.field,
        }
    }

    /// Whether the call changes nothing, whatever it answers.
    pub fn only_reads(&self) -> bool {
        let reads = ["/Get", "/List", "/Export", "/Validate", "/Preview"];
        reads.iter().any(|read| self.call.contains(read))
    }

    /// The answer to the id 0, which counts as missing.
    pub fn nil(&self) -> &'static str {
        match self.absent {
            OK => OK,
            _ => REQUIRED,
        }
    }
}

/// The call goes well: the service sets the field itself, or the id only ties a
/// document together.
pub const OK: &str = "OK";
const NO_TASK: &str = "TASK_NOT_FOUND";
const NO_STEP: &str = "STEP_NOT_FOUND";
const NO_ROLE: &str = "ROLE_NOT_FOUND";
const NO_REVISION: &str = "REVISION_NOT_FOUND";
const NO_CURSOR: &str = "CURSOR_INVALID";
const INVALID: &str = "FIELD_INVALID";
const RANGE: &str = "FIELD_OUT_OF_RANGE";
const REQUIRED: &str = "FIELD_REQUIRED";

/// Fields that name no resource, by their content. Booleans and enums are not listed.
pub const PLAIN_FIELDS: &[(&str, &[&str])] = &[
    (
        "text of the caller",
        &[
            "AutomaticTranslation.body",
            "AutomaticTranslation.name",
            "AutomaticTranslation.title",
            "Condition.operator",
            "Condition.path",
            "Condition.variable",
            "CreateRevisionRequest.note",
            "FeedbackConfig.name",
            "FeedbackConfig.type",
            "FeedbackValue.key",
            "FeedbackValue.value",
            "IndexedItem.info",
            "ListReferencesRequest.answer",
            "ListTasksRequest.external_id",
            "ListTasksRequest.name",
            "ListReferencesRequest.variable",
            "Looping.alias",
            "PreviewTaskRequest.answers[key]",
            "PreviewTaskRequest.known_variables",
            "Role.name",
            "RuleSetting.rule",
            "Step.body",
            "Step.dependency_shorthand",
            "Step.external_id",
            "Step.parts",
            "Step.skills",
            "Step.tags",
            "Step.title",
            "StepTranslation.body",
            "StepTranslation.title",
            "Suppression.path",
            "Suppression.rule",
            "Task.dependency_shorthand",
            "Task.external_id",
            "Task.name",
            "TaskTranslation.name",
            "ValidationOptions.known_variables",
        ],
    ),
    (
        "JSON of the caller, in which nothing is looked up",
        &[
            "AutomaticTranslation.instructions",
            "Condition.targets",
            "Looping.array",
            "Looping.iterations",
            "PreviewTaskRequest.answers",
            "Step.instructions",
            "Step.r_data",
            "Step.r_data[key]",
            "StepTranslation.instructions",
        ],
    ),
    (
        "a product of the caller's catalogue, which the service does not keep",
        &[
            "ListFindingsRequest.product_id",
            "ListTasksRequest.product_id",
            "Step.product_id",
            "Step.subtask_pid",
            "Task.product_id",
        ],
    ),
    (
        "a language",
        &[
            "AutomaticTranslation.language",
            "ListTranslationWorkRequest.languages",
            "PreviewTaskRequest.fallback_languages",
            "PreviewTaskRequest.language",
            "Step.translations[key]",
            "Task.translations[key]",
            "ValidationOptions.languages",
        ],
    ),
    (
        "a number that counts",
        &[
            "CompareRevisionsRequest.page_size",
            "IndexedItem.index_version",
            "ListChangesRequest.page_size",
            "ListChangesRequest.wait",
            "ListIndexWorkRequest.page_size",
            "ListDeletedStepsRequest.page_size",
            "ListDeletedTasksRequest.page_size",
            "ListReferencesRequest.page_size",
            "ListRevisionsRequest.page_size",
            "ListFindingsRequest.page_size",
            "ListFindingsRequest.published",
            "ListRolesRequest.page_size",
            "ListStepsRequest.page_size",
            "ListTasksRequest.page_size",
            "ListTasksRequest.published",
            "ListTranslationWorkRequest.page_size",
            "PreviewTaskRequest.page_size",
            "PreviewTaskRequest.subtask_depth",
            "Step.cost",
            "Step.published",
            "Task.idx",
            "Task.mvn_version",
            "Task.published",
            "ValidateTaskRequest.page_size",
        ],
    ),
    (
        "a version of the resource that the call names",
        &[
            "AutomaticTranslation.source_digest",
            "CreateRevisionRequest.guide_etag",
            "DeleteStepRequest.etag",
            "DeleteTaskRequest.etag",
            "ImportTaskRequest.etag",
            "ImportTaskRequest.guide_etag",
            "IndexedItem.etag",
            "RestoreRevisionRequest.guide_etag",
            "Step.etag",
            "Task.etag",
            "ValidateTaskRequest.known_fingerprint",
        ],
    ),
    (
        "times and state that the service sets",
        &[
            "Step.created_ts",
            "Step.modified_ts",
            "Task.created_ts",
            "Task.modified_ts",
            "Task.mvn_info",
            "Task.mvn_ts",
        ],
    ),
    (
        "a token, which is that of its account alone: see `paging::every_listing`",
        &[
            "CompareRevisionsRequest.page_token",
            "ListDeletedStepsRequest.page_token",
            "ListDeletedTasksRequest.page_token",
            "ListFindingsRequest.page_token",
            "ListIndexWorkRequest.page_token",
            "ListReferencesRequest.page_token",
            "ListRevisionsRequest.page_token",
            "ListRolesRequest.page_token",
            "ListStepsRequest.page_token",
            "ListTasksRequest.page_token",
            "ListTranslationWorkRequest.page_token",
            "PreviewTaskRequest.page_token",
            "ValidateTaskRequest.page_token",
        ],
    ),
    (
        "names of fields",
        &[
            "ListStepsRequest.expand",
            "PreviewTaskRequest.expand",
            "ImportTaskRequest.reset_fields",
            "UpdateStepRequest.update_mask",
            "UpdateTaskRequest.update_mask",
        ],
    ),
];

/// Field, what it names, its request, and the answers to a foreign or absent id and to
/// a malformed one.
macro_rules! cases {
    ($($call:literal { $($field:literal $names:ident $request:ident $absent:ident $malformed:ident;)* })*) => {
        vec![$($(Case {
            call: $call,
            field: $field,
            names: Names::$names,
            request: Sent::Request($request),
            absent: $absent,
            malformed: $malformed,
        },)*)*]
    };
    (guides of $call:expr; $($field:literal $names:ident $guide:ident $absent:ident $malformed:ident;)*) => {
        [$(Case {
            call: $call,
            field: $field,
            names: Names::$names,
            request: Sent::Guide($guide),
            absent: $absent,
            malformed: $malformed,
        },)*]
    };
}

#[rustfmt::skip]
pub fn cases() -> Vec<Case> {
    let mut cases = cases! {
    "TaskService/CreateTask" {
        "task.guid" Task new_task OK OK;
        "task.steps" Step new_task OK OK;
        "task.account_id" Account new_task OK OK;
        "task.parent_guid" Task new_task OK OK;
        "request_id" Retry new_task OK INVALID;
    }
    "TaskService/GetTask" {
        "guid" Task nothing NO_TASK INVALID;
        "guid" Managed nothing NO_TASK INVALID;
    }
    "TaskService/UpdateTask" {
        "task.guid" Task changed_task NO_TASK INVALID;
        "task.guid" Managed changed_task NO_TASK INVALID;
        "task.steps" Step changed_task OK OK;
        "task.account_id" Account changed_task OK OK;
        "task.parent_guid" Task changed_task OK OK;
    }
    "TaskService/DeleteTask" {
        "guid" Task delete_task NO_TASK INVALID;
        "guid" Managed delete_task NO_TASK INVALID;
    }
    "TaskService/ExportTask" {
        "guid" Task nothing NO_TASK INVALID;
        "guid" Managed nothing NO_TASK INVALID;
    }
    "TaskService/ImportTask" {
        "request_id" Retry import_guide OK INVALID;
    }
    "AnalysisService/ListReferences" {
        "task" Task nothing NO_TASK INVALID;
        "task" Managed nothing NO_TASK INVALID;
        "task" Task list_references NO_TASK INVALID;
    }
    "AnalysisService/PreviewTask" {
        "guid" Task nothing NO_TASK INVALID;
        "guid" Managed nothing NO_TASK INVALID;
    }
    "AnalysisService/ValidateTask" {
        "guid" Task nothing NO_TASK INVALID;
        "guid" Managed nothing NO_TASK INVALID;
        "options.suppress.task" Task suppression_in_a_guide OK INVALID;
        "options.suppress.task" Managed suppression_in_a_guide OK INVALID;
        "options.suppress.step" Step suppression_in_a_guide OK INVALID;
    }
    "AnalysisService/ListFindings" {
        "options.suppress.task" Task suppression OK INVALID;
        "options.suppress.step" Step suppression OK INVALID;
    }
    "StepService/CreateStep" {
        "step.guid" Step new_step OK OK;
        "step.task" Task new_step NO_TASK INVALID;
        "step.task" Managed new_step NO_TASK INVALID;
        "step.subtask_id" Task new_subtask NO_TASK INVALID;
        "step.subtask_external_id" ExternalId new_subtask NO_TASK INVALID;
        "step.subtask_id" Managed new_subtask NO_TASK INVALID;
        "step.subtask_id" Task new_step OK OK;
        "step.link" Managed new_step OK OK;
        "step.link" Managed new_subtask OK OK;
        "step.account_id" Account new_step OK OK;
        "step.feedback_config.values.link" Managed new_step OK OK;
        "step.feedback_config.values.task_json.*" Task new_step INVALID INVALID;
        "step.translations.feedback_config.values.link" Managed new_step OK OK;
        "step.translations.feedback_config.values.task_json.*" Task new_step INVALID INVALID;
        "prevstep" Step new_step OK INVALID;
        "request_id" Retry new_step OK INVALID;
    }
    "StepService/GetStep" {
        "guid" Step nothing NO_STEP INVALID;
    }
    "StepService/ListSteps" {
        "task" Task nothing NO_TASK INVALID;
        "task" Managed nothing NO_TASK INVALID;
    }
    "StepService/UpdateStep" {
        "step.guid" Step changed_step NO_STEP INVALID;
        "step.task" Task changed_step OK OK;
        "step.subtask_id" Task changed_subtask NO_TASK INVALID;
        "step.subtask_external_id" ExternalId changed_subtask NO_TASK INVALID;
        "step.subtask_id" Managed changed_subtask NO_TASK INVALID;
        "step.subtask_id" Task changed_step OK OK;
        "step.link" Managed changed_step OK OK;
        "step.link" Managed changed_subtask OK OK;
        "step.account_id" Account changed_step OK OK;
        "step.feedback_config.values.link" Managed changed_step OK OK;
        "step.feedback_config.values.task_json.*" Task changed_step INVALID INVALID;
        "step.translations.feedback_config.values.link" Managed changed_step OK OK;
        "step.translations.feedback_config.values.task_json.*" Task changed_step INVALID INVALID;
    }
    "StepService/DeleteStep" {
        "guid" Step nothing NO_STEP INVALID;
    }
    "StepService/ListDeletedSteps" {
        "task" Task nothing NO_TASK INVALID;
        "task" Managed nothing NO_TASK INVALID;
    }
    "StepService/RestoreStep" {
        "guid" Step nothing NO_STEP INVALID;
    }
    "RoleService/CreateRole" {
        "role.id" Role new_role OK OK;
    }
    "RoleService/DeleteRole" {
        "id" Role nothing NO_ROLE RANGE;
    }
    "TranslationService/ListTranslationWork" {
        "task" Task list_work NO_TASK INVALID;
        "task" Managed list_work NO_TASK INVALID;
    }
    "TranslationService/WriteTranslations" {
        "translations.guid" Step their_translation OK INVALID;
        "translations.guid" Task their_translation OK INVALID;
        "translations.feedback_config.values.link" Managed my_translation OK OK;
        "translations.feedback_config.values.task_json.*" Task my_translation INVALID INVALID;
    }
    "RevisionService/CreateRevision" {
        "task" Task nothing NO_TASK INVALID;
        "task" Managed nothing NO_TASK INVALID;
        "alias" Revision my_history OK INVALID;
        "request_id" Retry my_history OK INVALID;
    }
    "RevisionService/GetRevision" {
        "task" Task my_revision NO_TASK INVALID;
        "revision" Revision my_revision NO_REVISION INVALID;
    }
    "RevisionService/ListRevisions" {
        "task" Task nothing NO_TASK INVALID;
    }
    "RevisionService/CompareRevisions" {
        "task" Task compare_revisions NO_TASK INVALID;
        "base" Revision compare_revisions NO_REVISION INVALID;
        "target" Revision compare_revisions NO_REVISION INVALID;
    }
    "RevisionService/RestoreRevision" {
        "task" Task my_revision NO_TASK INVALID;
        "revision" Revision my_revision NO_REVISION INVALID;
        "request_id" Retry my_revision OK INVALID;
    }
    "RevisionService/DeleteRevision" {
        "task" Task my_revision NO_TASK INVALID;
        "revision" Revision my_revision NO_REVISION INVALID;
    }
    "RevisionService/SetRevisionAlias" {
        "task" Task set_alias NO_TASK INVALID;
        "alias" Revision set_alias OK INVALID;
        "revision" Revision set_alias NO_REVISION INVALID;
    }
    "ChangeService/ListChanges" {
        "cursor" Cursor nothing NO_CURSOR NO_CURSOR;
        "task" Task oldest_changes OK INVALID;
    }
    "IndexService/AcknowledgeIndexed" {
        "items.guid" Task acknowledgement OK INVALID;
        "items.guid" Step acknowledgement OK INVALID;
    }
    };
    cases.extend(cases! { guides of "TaskService/ImportTask";
        "task.guid" Task new_guide NO_TASK INVALID;
        "task.guid" Task known_guide NO_TASK INVALID;
        "task.guid" Managed new_guide NO_TASK INVALID;
        "task.steps" Step new_guide OK OK;
        "task.steps" Step known_guide OK OK;
        "task.account_id" Account new_guide OK OK;
        "task.parent_guid" Task new_guide OK OK;
        "task.parent_guid" Task known_guide OK OK;
        "steps.guid" Step new_guide OK INVALID;
        "steps.guid" Step known_guide NO_STEP INVALID;
        "steps.task" Task new_guide OK OK;
        "steps.task" Task known_guide OK OK;
        "steps.subtask_id" Task subtask_guide NO_TASK INVALID;
        "steps.subtask_external_id" ExternalId subtask_guide NO_TASK INVALID;
        "steps.subtask_id" Task new_guide OK OK;
        "steps.link" Managed new_guide OK OK;
        "steps.link" Managed known_guide OK OK;
        "steps.link" Managed subtask_guide OK OK;
        "steps.account_id" Account new_guide OK OK;
        "steps.feedback_config.values.link" Managed new_guide OK OK;
        "steps.feedback_config.values.link" Managed known_guide OK OK;
        "steps.feedback_config.values.task_json.task.guid" Managed new_guide OK INVALID;
        "steps.feedback_config.values.task_json.task.guid" Managed known_guide OK INVALID;
        "steps.feedback_config.values.task_json.task.steps" Step new_guide OK OK;
        "steps.feedback_config.values.task_json.task.account_id" Account new_guide OK OK;
        "steps.feedback_config.values.task_json.task.parent_guid" Task new_guide OK OK;
        "steps.feedback_config.values.task_json.task.parent_guid" Task known_guide OK OK;
        "steps.feedback_config.values.task_json.steps.guid" Step new_guide OK INVALID;
        "steps.feedback_config.values.task_json.steps.guid" Step known_guide NO_STEP INVALID;
        "steps.feedback_config.values.task_json.steps.task" Task new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.task" Task known_guide OK OK;
        "steps.feedback_config.values.task_json.steps.subtask_id" Task inner_subtask_guide NO_TASK INVALID;
        "steps.feedback_config.values.task_json.steps.subtask_external_id" ExternalId inner_subtask_guide NO_TASK INVALID;
        "steps.feedback_config.values.task_json.steps.link" Managed new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.link" Managed known_guide OK OK;
        "steps.feedback_config.values.task_json.steps.account_id" Account new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.feedback_config.values.link" Managed inner_question_guide OK OK;
        "steps.feedback_config.values.task_json.steps.translations.feedback_config.values.link" Managed inner_question_guide OK OK;
        "steps.translations.feedback_config.values.link" Managed question_guide OK OK;
        "steps.translations.feedback_config.values.task_json.*" Task question_guide INVALID INVALID;
    });
    for call in ["AnalysisService/PreviewTask", "AnalysisService/ValidateTask"] {
        cases.extend(cases! { guides of call;
        "task.guid" Task new_guide OK INVALID;
        "task.guid" Managed new_guide OK INVALID;
        "task.steps" Step new_guide OK OK;
        "task.account_id" Account new_guide OK OK;
        "task.parent_guid" Task new_guide OK OK;
        "steps.guid" Step new_guide OK INVALID;
        "steps.task" Task new_guide OK OK;
        "steps.subtask_id" Task subtask_guide NO_TASK INVALID;
        "steps.subtask_external_id" ExternalId subtask_guide NO_TASK INVALID;
        "steps.subtask_id" Task new_guide OK OK;
        "steps.link" Managed new_guide OK OK;
        "steps.link" Managed subtask_guide OK OK;
        "steps.account_id" Account new_guide OK OK;
        "steps.feedback_config.values.link" Managed new_guide OK OK;
        "steps.feedback_config.values.task_json.task.guid" Managed new_guide OK INVALID;
        "steps.feedback_config.values.task_json.task.steps" Step new_guide OK OK;
        "steps.feedback_config.values.task_json.task.account_id" Account new_guide OK OK;
        "steps.feedback_config.values.task_json.task.parent_guid" Task new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.guid" Step new_guide OK INVALID;
        "steps.feedback_config.values.task_json.steps.task" Task new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.subtask_id" Task inner_subtask_guide NO_TASK INVALID;
        "steps.feedback_config.values.task_json.steps.subtask_external_id" ExternalId inner_subtask_guide NO_TASK INVALID;
        "steps.feedback_config.values.task_json.steps.link" Managed new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.account_id" Account new_guide OK OK;
        "steps.feedback_config.values.task_json.steps.feedback_config.values.link" Managed inner_question_guide OK OK;
        "steps.feedback_config.values.task_json.steps.translations.feedback_config.values.link" Managed inner_question_guide OK OK;
        "steps.translations.feedback_config.values.link" Managed question_guide OK OK;
        "steps.translations.feedback_config.values.task_json.*" Task question_guide INVALID INVALID;
        });
    }
    cases
}

/// A request that needs nothing but the field.
fn nothing(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({})
}

fn oldest_changes(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"start": "CHANGE_START_OLDEST"})
}

/// Of what the caller names, with the other account's etag.
fn acknowledgement(_: &CallingAccount, other: &OtherAccount) -> Value {
    json!({"items": [{"guid": unknown_guid(), "etag": other.task.etag}]})
}

fn new_task(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"task": {"name": "Anybody's", "product_id": PRODUCT}})
}

fn changed_task(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"task": {"guid": caller.task.guid, "name": "Mine now"}})
}

fn delete_task(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"force": true})
}

fn new_step(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"step": shown("Step", &full_step(&caller.task))})
}

fn new_subtask(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"step": shown("Step", &subtask(&caller.task, &caller.task))})
}

fn changed_step(caller: &CallingAccount, _: &OtherAccount) -> Value {
    let changed = Step {
        guid: caller.observation.guid.clone(),
        task: String::new(),
        product_id: None,
        r#type: 0,
        title: "Mine now".to_owned(),
        ..full_step(&caller.task)
    };
    json!({"step": shown("Step", &changed)})
}

fn changed_subtask(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"step": {"guid": caller.subtask.guid, "cost": 0, "tags": ["caller"]}})
}

fn list_references(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"variable": "components.7.it"})
}

fn my_history(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"task": caller.task.guid})
}

fn my_revision(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"task": caller.task.guid, "revision": "1"})
}

fn compare_revisions(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"task": caller.task.guid, "base": "1"})
}

fn set_alias(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"task": caller.task.guid, "alias": "mine", "revision": "1"})
}

fn new_role(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"role": {"name": "mine"}})
}

fn list_work(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"languages": ["fr"]})
}

/// A translation that would be valid in the other account.
fn their_translation(_: &CallingAccount, other: &OtherAccount) -> Value {
    translate(&automatic(&other.work, "À moi"))
}

fn my_translation(caller: &CallingAccount, _: &OtherAccount) -> Value {
    translate(&AutomaticTranslation {
        feedback_config: vec![question("Réponse", &["yes", "no"])],
        ..automatic(&caller.work, "À moi")
    })
}

fn translate(translation: &AutomaticTranslation) -> Value {
    json!({"translations": [shown("AutomaticTranslation", translation)]})
}

fn import_guide(caller: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"document": shown("TaskDocument", &new_guide(caller))})
}

fn suppression(_: &CallingAccount, _: &OtherAccount) -> Value {
    json!({"options": {"suppress": [{"path": "nothing"}]}})
}

fn suppression_in_a_guide(caller: &CallingAccount, other: &OtherAccount) -> Value {
    let mut request = suppression(caller, other);
    request["document"] = shown("TaskDocument", &new_guide(caller));
    request
}

/// A document that creates a task, with a document in its first value.
fn new_guide(_: &CallingAccount) -> TaskDocument {
    linked_around(document_step(StepType::Information, "inner"))
}

/// The document of an existing task.
fn known_guide(caller: &CallingAccount) -> TaskDocument {
    caller.document.clone()
}

fn subtask_guide(caller: &CallingAccount) -> TaskDocument {
    single_step(subtask(&Task::default(), &caller.task))
}

fn inner_subtask_guide(caller: &CallingAccount) -> TaskDocument {
    linked_around(subtask(&Task::default(), &caller.task))
}

fn question_guide(_: &CallingAccount) -> TaskDocument {
    single_step(full_step(&Task::default()))
}

fn inner_question_guide(_: &CallingAccount) -> TaskDocument {
    linked_around(full_step(&Task::default()))
}

/// A linked observation, the first value of which has a document of this step.
fn linked_around(inner: Step) -> TaskDocument {
    let values = vec![
        answer_with("first", "First", document("First", vec![inner])),
        answer("second", "Second"),
    ];
    single_step(observation_asking(linked_question(values)))
}

/// A document that creates a task with this step.
fn single_step(step: Step) -> TaskDocument {
    document("Mine", vec![step])
}
