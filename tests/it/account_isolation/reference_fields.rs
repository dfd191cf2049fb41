//! What each field of a request names, and the answer when the account has no such
//! resource.

use prost::Message;

use super::accounts::{CallingAccount, LINKED_VARIABLE, OtherAccount};
use crate::kit::prelude::*;

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
    /// Where a page ended.
    Page,
    /// An alias of a revision.
    Revision,
}

impl Names {
    pub fn is_guid(self) -> bool {
        !matches!(self, Self::Role | Self::Page | Self::Revision)
    }
}

/// A field of a call, and the answer when it names a resource that the account does not
/// have.
pub struct Case {
    pub call: &'static str,
    /// The path of the field; `.*` at its end: every such field below.
    pub field: &'static str,
    pub names: Names,
    /// A request that is accepted without the field.
    pub request: fn(&CallingAccount, &OtherAccount) -> Vec<u8>,
    /// The reason of the refusal, or [`OK`].
    pub absent: &'static str,
    /// The same for a malformed id.
    pub malformed: &'static str,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.call, self.field)
    }
}

impl Case {
    pub fn covers(&self, path: &str) -> bool {
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
const NO_PAGE: &str = "PAGE_TOKEN_INVALID";
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
            "ListReferencesRequest.variable",
            "Looping.alias",
            "PreviewTaskRequest.answers[key]",
            "PreviewTaskRequest.known_variables",
            "Role.name",
            "RuleSetting.rule",
            "Step.body",
            "Step.dependency_shorthand",
            "Step.parts",
            "Step.skills",
            "Step.tags",
            "Step.title",
            "StepTranslation.body",
            "StepTranslation.title",
            "Suppression.path",
            "Suppression.rule",
            "Task.dependency_shorthand",
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
            "ListDeletedTasksRequest.page_size",
            "ListReferencesRequest.page_size",
            "ListRevisionsRequest.page_size",
            "ListFindingsRequest.page_size",
            "ListFindingsRequest.published",
            "ListIndexWorkRequest.page_size",
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
        "names of fields",
        &[
            "ListStepsRequest.expand",
            "PreviewTaskRequest.expand",
            "UpdateStepRequest.update_mask",
            "UpdateTaskRequest.update_mask",
        ],
    ),
];

macro_rules! cases {
    ($($call:literal { $($field:literal $names:ident $request:ident $absent:ident $malformed:ident;)+ })+) => {
        &[$($(Case {
            call: $call,
            field: $field,
            names: Names::$names,
            request: $request,
            absent: $absent,
            malformed: $malformed,
        },)+)+]
    };
}

/// Field, what it names, its request, and the answers to a foreign or absent id and to
/// a malformed one.
#[rustfmt::skip]
pub const CASES: &[Case] = cases! {
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
    "TaskService/ListTasks" {
        "page_token" Page nothing NO_PAGE NO_PAGE;
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
        "document.task.guid" Task first_import NO_TASK INVALID;
        "document.task.guid" Task next_import NO_TASK INVALID;
        "document.task.guid" Managed first_import NO_TASK INVALID;
        "document.task.steps" Step first_import OK OK;
        "document.task.steps" Step next_import OK OK;
        "document.task.account_id" Account first_import OK OK;
        "document.task.parent_guid" Task first_import OK OK;
        "document.task.parent_guid" Task next_import OK OK;
        "document.steps.guid" Step first_import OK INVALID;
        "document.steps.guid" Step next_import NO_STEP INVALID;
        "document.steps.task" Task first_import OK OK;
        "document.steps.task" Task next_import OK OK;
        "document.steps.subtask_id" Task subtask_import NO_TASK INVALID;
        "document.steps.subtask_id" Task first_import OK OK;
        "document.steps.link" Managed first_import OK OK;
        "document.steps.link" Managed next_import OK OK;
        "document.steps.link" Managed subtask_import OK OK;
        "document.steps.account_id" Account first_import OK OK;
        "document.steps.feedback_config.values.link" Managed first_import OK OK;
        "document.steps.feedback_config.values.link" Managed next_import OK OK;
        "document.steps.feedback_config.values.task_json.task.guid" Managed first_import OK INVALID;
        "document.steps.feedback_config.values.task_json.task.guid" Managed next_import OK INVALID;
        "document.steps.feedback_config.values.task_json.task.steps" Step first_import OK OK;
        "document.steps.feedback_config.values.task_json.task.account_id" Account first_import OK OK;
        "document.steps.feedback_config.values.task_json.task.parent_guid" Task first_import OK OK;
        "document.steps.feedback_config.values.task_json.task.parent_guid" Task next_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.guid" Step first_import OK INVALID;
        "document.steps.feedback_config.values.task_json.steps.guid" Step next_import NO_STEP INVALID;
        "document.steps.feedback_config.values.task_json.steps.task" Task first_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.task" Task next_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.subtask_id" Task inner_subtask_import NO_TASK INVALID;
        "document.steps.feedback_config.values.task_json.steps.link" Managed first_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.link" Managed next_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.account_id" Account first_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.feedback_config.values.link" Managed inner_question_import OK OK;
        "document.steps.feedback_config.values.task_json.steps.translations.feedback_config.values.link" Managed inner_question_import OK OK;
        "document.steps.translations.feedback_config.values.link" Managed question_import OK OK;
        "document.steps.translations.feedback_config.values.task_json.*" Task question_import INVALID INVALID;
        "request_id" Retry first_import OK INVALID;
    }
    "AnalysisService/ListReferences" {
        "task" Task nothing NO_TASK INVALID;
        "task" Managed nothing NO_TASK INVALID;
        "task" Task list_references NO_TASK INVALID;
        "page_token" Page list_references NO_PAGE NO_PAGE;
    }
    "AnalysisService/PreviewTask" {
        "guid" Task nothing NO_TASK INVALID;
        "guid" Managed nothing NO_TASK INVALID;
        "page_token" Page preview_page NO_PAGE NO_PAGE;
        "document.task.guid" Task first_preview OK INVALID;
        "document.task.guid" Managed first_preview OK INVALID;
        "document.task.steps" Step first_preview OK OK;
        "document.task.account_id" Account first_preview OK OK;
        "document.task.parent_guid" Task first_preview OK OK;
        "document.steps.guid" Step first_preview OK INVALID;
        "document.steps.task" Task first_preview OK OK;
        "document.steps.subtask_id" Task subtask_preview NO_TASK INVALID;
        "document.steps.subtask_id" Task first_preview OK OK;
        "document.steps.link" Managed first_preview OK OK;
        "document.steps.link" Managed subtask_preview OK OK;
        "document.steps.account_id" Account first_preview OK OK;
        "document.steps.feedback_config.values.link" Managed first_preview OK OK;
        "document.steps.feedback_config.values.task_json.task.guid" Managed first_preview OK INVALID;
        "document.steps.feedback_config.values.task_json.task.steps" Step first_preview OK OK;
        "document.steps.feedback_config.values.task_json.task.account_id" Account first_preview OK OK;
        "document.steps.feedback_config.values.task_json.task.parent_guid" Task first_preview OK OK;
        "document.steps.feedback_config.values.task_json.steps.guid" Step first_preview OK INVALID;
        "document.steps.feedback_config.values.task_json.steps.task" Task first_preview OK OK;
        "document.steps.feedback_config.values.task_json.steps.subtask_id" Task inner_subtask_preview NO_TASK INVALID;
        "document.steps.feedback_config.values.task_json.steps.link" Managed first_preview OK OK;
        "document.steps.feedback_config.values.task_json.steps.account_id" Account first_preview OK OK;
        "document.steps.feedback_config.values.task_json.steps.feedback_config.values.link" Managed inner_question_preview OK OK;
        "document.steps.feedback_config.values.task_json.steps.translations.feedback_config.values.link" Managed inner_question_preview OK OK;
        "document.steps.translations.feedback_config.values.link" Managed question_preview OK OK;
        "document.steps.translations.feedback_config.values.task_json.*" Task question_preview INVALID INVALID;
    }
    "AnalysisService/ValidateTask" {
        "guid" Task nothing NO_TASK INVALID;
        "guid" Managed nothing NO_TASK INVALID;
        "page_token" Page validation_page NO_PAGE NO_PAGE;
        "document.task.guid" Task first_validation OK INVALID;
        "document.task.guid" Managed first_validation OK INVALID;
        "document.task.steps" Step first_validation OK OK;
        "document.task.account_id" Account first_validation OK OK;
        "document.task.parent_guid" Task first_validation OK OK;
        "document.steps.guid" Step first_validation OK INVALID;
        "document.steps.task" Task first_validation OK OK;
        "document.steps.subtask_id" Task subtask_validation NO_TASK INVALID;
        "document.steps.subtask_id" Task first_validation OK OK;
        "document.steps.link" Managed first_validation OK OK;
        "document.steps.link" Managed subtask_validation OK OK;
        "document.steps.account_id" Account first_validation OK OK;
        "document.steps.feedback_config.values.link" Managed first_validation OK OK;
        "document.steps.feedback_config.values.task_json.task.guid" Managed first_validation OK INVALID;
        "document.steps.feedback_config.values.task_json.task.steps" Step first_validation OK OK;
        "document.steps.feedback_config.values.task_json.task.account_id" Account first_validation OK OK;
        "document.steps.feedback_config.values.task_json.task.parent_guid" Task first_validation OK OK;
        "document.steps.feedback_config.values.task_json.steps.guid" Step first_validation OK INVALID;
        "document.steps.feedback_config.values.task_json.steps.task" Task first_validation OK OK;
        "document.steps.feedback_config.values.task_json.steps.subtask_id" Task inner_subtask_validation NO_TASK INVALID;
        "document.steps.feedback_config.values.task_json.steps.link" Managed first_validation OK OK;
        "document.steps.feedback_config.values.task_json.steps.account_id" Account first_validation OK OK;
        "document.steps.feedback_config.values.task_json.steps.feedback_config.values.link" Managed inner_question_validation OK OK;
        "document.steps.feedback_config.values.task_json.steps.translations.feedback_config.values.link" Managed inner_question_validation OK OK;
        "document.steps.translations.feedback_config.values.link" Managed question_validation OK OK;
        "document.steps.translations.feedback_config.values.task_json.*" Task question_validation INVALID INVALID;
        "options.suppress.task" Task first_validation OK INVALID;
        "options.suppress.task" Managed first_validation OK INVALID;
        "options.suppress.step" Step first_validation OK INVALID;
    }
    "AnalysisService/ListFindings" {
        "page_token" Page nothing NO_PAGE NO_PAGE;
        "options.suppress.task" Task suppressed_list OK INVALID;
        "options.suppress.step" Step suppressed_list OK INVALID;
    }
    "StepService/CreateStep" {
        "step.guid" Step new_step OK OK;
        "step.task" Task new_step NO_TASK INVALID;
        "step.task" Managed new_step NO_TASK INVALID;
        "step.subtask_id" Task new_subtask NO_TASK INVALID;
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
        "page_token" Page list_steps NO_PAGE NO_PAGE;
    }
    "StepService/UpdateStep" {
        "step.guid" Step changed_step NO_STEP INVALID;
        "step.task" Task changed_step OK OK;
        "step.subtask_id" Task changed_subtask NO_TASK INVALID;
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
    "RoleService/ListRoles" {
        "page_token" Page nothing NO_PAGE NO_PAGE;
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
        "page_token" Page list_work NO_PAGE NO_PAGE;
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
        "page_token" Page my_history NO_PAGE NO_PAGE;
    }
    "RevisionService/CompareRevisions" {
        "task" Task compare_revisions NO_TASK INVALID;
        "base" Revision compare_revisions NO_REVISION INVALID;
        "target" Revision compare_revisions NO_REVISION INVALID;
        "page_token" Page compare_revisions NO_PAGE NO_PAGE;
    }
    "RevisionService/RestoreRevision" {
        "task" Task restore_revision NO_TASK INVALID;
        "revision" Revision restore_revision NO_REVISION INVALID;
        "request_id" Retry restore_revision OK INVALID;
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
    "RevisionService/ListDeletedTasks" {
        "page_token" Page nothing NO_PAGE NO_PAGE;
    }
    "ChangeService/ListChanges" {
        "cursor" Page nothing NO_CURSOR NO_CURSOR;
        "task" Task oldest_changes OK INVALID;
    }
    "IndexService/ListIndexWork" {
        "page_token" Page nothing NO_PAGE NO_PAGE;
    }
    "IndexService/AcknowledgeIndexed" {
        "items.guid" Task acknowledgement OK INVALID;
        "items.guid" Step acknowledgement OK INVALID;
    }
};

/// A request that needs nothing but the field.
fn nothing(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    Vec::new()
}

fn oldest_changes(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = ListChangesRequest {
        start: ChangeStart::Oldest.into(),
        ..ListChangesRequest::default()
    };
    request.encode_to_vec()
}

/// Of what the caller names, with the other account's etag.
fn acknowledgement(_: &CallingAccount, other: &OtherAccount) -> Vec<u8> {
    let item = IndexedItem {
        guid: unknown_guid(),
        etag: other.task.etag.clone(),
        ..IndexedItem::default()
    };
    AcknowledgeIndexedRequest { items: vec![item] }.encode_to_vec()
}

fn new_task(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = create_task_request(task("Anybody's"));
    request.encode_to_vec()
}

fn changed_task(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = UpdateTaskRequest {
        task: Some(task_of(&caller.task.guid).named("Mine now")),
        ..UpdateTaskRequest::default()
    };
    request.encode_to_vec()
}

fn delete_task(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = DeleteTaskRequest {
        force: true,
        ..DeleteTaskRequest::default()
    };
    request.encode_to_vec()
}

fn new_step(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    create(full_step(&caller.task))
}

fn new_subtask(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    create(subtask(&caller.task, &caller.task))
}

fn create(step: Step) -> Vec<u8> {
    let request = create_step_request(step);
    request.encode_to_vec()
}

fn changed_step(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let changed = full_step(&caller.task);
    update(Step {
        guid: caller.observation.guid.clone(),
        task: String::new(),
        product_id: None,
        r#type: 0,
        title: "Mine now".to_owned(),
        ..changed
    })
}

fn changed_subtask(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    update(Step {
        cost: Some(0),
        tags: vec!["caller".to_owned()],
        ..step_of(&caller.subtask.guid)
    })
}

fn update(step: Step) -> Vec<u8> {
    let request = UpdateStepRequest {
        step: Some(step),
        ..UpdateStepRequest::default()
    };
    request.encode_to_vec()
}

fn list_steps(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = ListStepsRequest {
        task: caller.task.guid.clone(),
        page_size: 1,
        ..ListStepsRequest::default()
    };
    request.encode_to_vec()
}

fn list_references(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = ListReferencesRequest {
        variable: LINKED_VARIABLE.to_owned(),
        page_size: 1,
        ..ListReferencesRequest::default()
    };
    request.encode_to_vec()
}

/// A request that needs its first field alone, the task.
fn my_history(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = CreateRevisionRequest {
        task: caller.task.guid.clone(),
        ..CreateRevisionRequest::default()
    };
    request.encode_to_vec()
}

/// A request whose first two fields are the task and the revision.
fn my_revision(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = GetRevisionRequest {
        task: caller.task.guid.clone(),
        revision: "1".to_owned(),
        ..GetRevisionRequest::default()
    };
    request.encode_to_vec()
}

fn compare_revisions(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = CompareRevisionsRequest {
        task: caller.task.guid.clone(),
        base: "1".to_owned(),
        page_size: 1,
        ..CompareRevisionsRequest::default()
    };
    request.encode_to_vec()
}

fn restore_revision(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = RestoreRevisionRequest {
        task: caller.task.guid.clone(),
        revision: "1".to_owned(),
        ..RestoreRevisionRequest::default()
    };
    request.encode_to_vec()
}

fn set_alias(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = SetRevisionAliasRequest {
        task: caller.task.guid.clone(),
        alias: "mine".to_owned(),
        revision: "1".to_owned(),
    };
    request.encode_to_vec()
}

fn new_role(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let role = Role {
        id: 0,
        name: "mine".to_owned(),
    };
    CreateRoleRequest { role: Some(role) }.encode_to_vec()
}

fn list_work(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    translation_work_request(&["fr"]).encode_to_vec()
}

/// A translation that would be valid in the other account.
fn their_translation(_: &CallingAccount, other: &OtherAccount) -> Vec<u8> {
    translate(automatic(&other.work, "À moi"))
}

fn my_translation(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    translate(AutomaticTranslation {
        feedback_config: vec![question("Réponse", &["yes", "no"])],
        ..automatic(&caller.work, "À moi")
    })
}

fn translate(translation: AutomaticTranslation) -> Vec<u8> {
    let translations = vec![translation];
    WriteTranslationsRequest { translations }.encode_to_vec()
}

/// A document that creates a task, with a document in its first value.
fn first_import(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    import(linked_around(document_step(StepType::Information, "inner")))
}

/// The document of an existing task.
fn next_import(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    import(caller.document.clone())
}

fn subtask_import(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    import(single_step(subtask(&Task::default(), &caller.task)))
}

fn inner_subtask_import(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    import(linked_around(subtask(&Task::default(), &caller.task)))
}

fn question_import(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    import(single_step(full_step(&Task::default())))
}

fn inner_question_import(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    import(linked_around(full_step(&Task::default())))
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

fn first_preview(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    preview(linked_around(document_step(StepType::Information, "inner")))
}

fn subtask_preview(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    preview(single_step(subtask(&Task::default(), &caller.task)))
}

fn inner_subtask_preview(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    preview(linked_around(subtask(&Task::default(), &caller.task)))
}

fn question_preview(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    preview(single_step(full_step(&Task::default())))
}

fn inner_question_preview(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    preview(linked_around(full_step(&Task::default())))
}

fn preview_page(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = preview_of(&caller.task.guid).with_page_size(1);
    request.encode_to_vec()
}

fn preview(document: TaskDocument) -> Vec<u8> {
    let request = preview_of_document(document).to_depth(8);
    request.encode_to_vec()
}

fn first_validation(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    validation(linked_around(document_step(StepType::Information, "inner")))
}

fn subtask_validation(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    validation(single_step(subtask(&Task::default(), &caller.task)))
}

fn inner_subtask_validation(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    validation(linked_around(subtask(&Task::default(), &caller.task)))
}

fn question_validation(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    validation(single_step(full_step(&Task::default())))
}

fn inner_question_validation(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    validation(linked_around(full_step(&Task::default())))
}

fn validation_page(caller: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    validation_of(&caller.task.guid).encode_to_vec()
}

fn validation(document: TaskDocument) -> Vec<u8> {
    let request = ValidateTaskRequest {
        options: Some(suppressing_nothing()),
        ..validation_of_document(document)
    };
    request.encode_to_vec()
}

fn suppressed_list(_: &CallingAccount, _: &OtherAccount) -> Vec<u8> {
    let request = ListFindingsRequest {
        options: Some(suppressing_nothing()),
        ..ListFindingsRequest::default()
    };
    request.encode_to_vec()
}

fn suppressing_nothing() -> ValidationOptions {
    let suppression = Suppression {
        path: "nothing".to_owned(),
        ..Suppression::default()
    };
    ValidationOptions {
        suppress: vec![suppression],
        ..ValidationOptions::default()
    }
}

fn import(document: TaskDocument) -> Vec<u8> {
    let request = ImportTaskRequest {
        document: Some(document),
        absent_steps: AbsentSteps::Keep.into(),
        ..ImportTaskRequest::default()
    };
    request.encode_to_vec()
}
