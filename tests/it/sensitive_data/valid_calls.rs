//! A valid request of every call, with a mark in every text.

use serde_json::{Value, json};

use super::{
    caller::Caller,
    marks::{KEY, TEXT},
};
use crate::{
    every_field::assert_every_field_has_a_value,
    kit::{
        contract::{self, shown},
        prelude::*,
    },
};

/// The resources that the requests are about.
pub struct Resources {
    pub task: Task,
    pub step: Step,
    role: i64,
    /// The id of a task that was deleted.
    deleted: String,
    deleted_step: String,
    work: TranslationWork,
}

impl Resources {
    /// Creates them, all with marks.
    pub async fn of(caller: &Caller) -> Self {
        let create = create_task_request(marked_task());
        let made: CreateTaskResponse = caller.call("TaskService/CreateTask", &create).await;
        let task = made.task.expect("the task");
        let create = create_step_request(marked_step(&task));
        let made: CreateStepResponse = caller.call("StepService/CreateStep", &create).await;
        let create = create_step_request(marked_step(&task));
        let deleted: CreateStepResponse = caller.call("StepService/CreateStep", &create).await;
        let delete_step = DeleteStepRequest {
            guid: deleted.step.expect("the step").guid,
            ..DeleteStepRequest::default()
        };
        let _: DeleteStepResponse = caller.call("StepService/DeleteStep", &delete_step).await;
        let role = Some(Role {
            id: 0,
            name: TEXT.to_owned(),
        });
        let create = CreateRoleRequest { role };
        let role: CreateRoleResponse = caller.call("RoleService/CreateRole", &create).await;
        let language = format!("fr-x-{KEY}");
        let list = translation_work_request(&[language.as_str()]).of_task(task.guid.clone());
        let listed: ListTranslationWorkResponse = caller
            .call("TranslationService/ListTranslationWork", &list)
            .await;
        let create = create_task_request(marked_task());
        let deleted: CreateTaskResponse = caller.call("TaskService/CreateTask", &create).await;
        let deleted = deleted.task.expect("the task").guid;
        let delete = DeleteTaskRequest {
            guid: deleted.clone(),
            ..DeleteTaskRequest::default()
        };
        let _: DeleteTaskResponse = caller.call("TaskService/DeleteTask", &delete).await;
        let create = CreateRevisionRequest {
            task: task.guid.clone(),
            note: TEXT.to_owned(),
            ..CreateRevisionRequest::default()
        };
        let _: CreateRevisionResponse =
            caller.call("RevisionService/CreateRevision", &create).await;
        Self {
            deleted,
            deleted_step: delete_step.guid,
            task,
            step: made.step.expect("the step"),
            role: role.role.expect("the role").id,
            work: listed.work.into_iter().next().expect("some work"),
        }
    }
}

type Make = fn(&Resources) -> Value;

/// Each call of the contract with a request that is accepted.
const CALLS: &[(&str, Make)] = &[
    (
        "AnalysisService/ListReferences",
        |of| json!({"task": of.task.guid, "variable": format!("{TEXT}.{TEXT}"), "answer": TEXT}),
    ),
    ("AnalysisService/PreviewTask", |of| {
        json!({
            "guid": of.task.guid,
            "answers": {TEXT: TEXT},
            "known_variables": [TEXT],
            "language": language(),
            "explain": true,
            "expand": ["body"],
        })
    }),
    ("AnalysisService/ValidateTask", |of| {
        json!({
            "guid": of.task.guid,
            "options": validation_options(of),
            "known_fingerprint": TEXT,
        })
    }),
    (
        "AnalysisService/ListFindings",
        |of| json!({"options": validation_options(of)}),
    ),
    (
        "ChangeService/ListChanges",
        |of| json!({"start": "CHANGE_START_OLDEST", "task": of.task.guid}),
    ),
    ("IndexService/ListIndexWork", nothing),
    (
        "IndexService/AcknowledgeIndexed",
        |of| json!({"items": [{"guid": of.task.guid, "etag": TEXT, "info": TEXT}]}),
    ),
    ("AnalysisService/ListRules", nothing),
    (
        "RevisionService/CreateRevision",
        |of| json!({"task": of.task.guid, "note": TEXT, "alias": KEY}),
    ),
    (
        "RevisionService/GetRevision",
        |of| json!({"task": of.task.guid, "revision": "1"}),
    ),
    (
        "RevisionService/ListRevisions",
        |of| json!({"task": of.task.guid}),
    ),
    (
        "RevisionService/CompareRevisions",
        |of| json!({"task": of.task.guid, "base": "1"}),
    ),
    (
        "RevisionService/RestoreRevision",
        |of| json!({"task": of.deleted, "revision": "1"}),
    ),
    (
        "RevisionService/DeleteRevision",
        |of| json!({"task": of.task.guid, "revision": "1"}),
    ),
    (
        "RevisionService/SetRevisionAlias",
        |of| json!({"task": of.task.guid, "alias": KEY, "revision": "1"}),
    ),
    ("RevisionService/ListDeletedTasks", nothing),
    (
        "RoleService/CreateRole",
        |_| json!({"role": {"name": TEXT}}),
    ),
    ("RoleService/DeleteRole", |of| json!({"id": of.role})),
    ("RoleService/ListRoles", nothing),
    (
        "StepService/CreateStep",
        |of| json!({"step": shown("Step", &marked_step(&of.task))}),
    ),
    ("StepService/DeleteStep", |of| json!({"guid": of.step.guid})),
    ("StepService/GetStep", |of| json!({"guid": of.step.guid})),
    (
        "StepService/ListDeletedSteps",
        |of| json!({"task": of.task.guid}),
    ),
    (
        "StepService/RestoreStep",
        |of| json!({"guid": of.deleted_step}),
    ),
    (
        "StepService/ListSteps",
        |of| json!({"task": of.task.guid, "expand": ["body"]}),
    ),
    ("StepService/UpdateStep", |of| {
        let changed = marked_step(&of.task).with_guid(of.step.guid.clone());
        json!({"step": shown("Step", &changed)})
    }),
    (
        "TaskService/CreateTask",
        |_| json!({"task": shown("Task", &marked_task())}),
    ),
    (
        "TaskService/DeleteTask",
        |of| json!({"guid": of.task.guid, "force": true}),
    ),
    ("TaskService/ExportTask", |of| json!({"guid": of.task.guid})),
    ("TaskService/GetTask", |of| json!({"guid": of.task.guid})),
    ("TaskService/ImportTask", |_| {
        let inner = document(TEXT, vec![marked_step(&Task::default())]);
        let values = vec![answer_with(TEXT, TEXT, inner)];
        let steps = vec![
            marked_step(&Task::default()),
            observation_asking(linked_question(values)),
            document_step(StepType::Information, TEXT),
        ];
        json!({"document": shown("TaskDocument", &document_with(marked_task(), steps))})
    }),
    ("TaskService/ListTasks", nothing),
    ("TaskService/UpdateTask", |of| {
        let changed = marked_task().named(format!("{TEXT} again"));
        json!({"task": shown("Task", &changed.with_guid(of.task.guid.clone()))})
    }),
    (
        "TranslationService/ListTranslationWork",
        |_| json!({"languages": [format!("fr-x-{KEY}")]}),
    ),
    ("TranslationService/WriteTranslations", |of| {
        let text = match of.work.kind() {
            TranslationKind::Task => "name",
            _ => "title",
        };
        json!({"translations": [{
            "guid": of.work.guid,
            "language": of.work.language,
            text: TEXT,
            "source_digest": of.work.source_digest,
        }]})
    }),
];

/// The calls of the list.
pub fn calls() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(call, _)| *call)
}

/// An accepted request of a call.
pub fn request(call: &str, resources: &Resources) -> Vec<u8> {
    let found = CALLS.iter().find(|(known, _)| *known == call);
    contract::request(call, found.expect(call).1(resources))
}

fn nothing(_: &Resources) -> Value {
    json!({})
}

fn validation_options(of: &Resources) -> Value {
    json!({
        "rules": [{"rule": "step/no-content", "severity": "SEVERITY_ERROR"}],
        "suppress": [{
            "rule": "step/no-content",
            "task": of.task.guid,
            "step": of.step.guid,
            "path": TEXT,
        }],
        "known_variables": [TEXT],
        "languages": [language()],
    })
}

fn language() -> String {
    format!("de-x-{KEY}")
}

fn condition() -> DependencyGroup {
    all_of(vec![comparison(Condition {
        variable: TEXT.to_owned(),
        operator: "=".to_owned(),
        targets: vec![text(TEXT)],
        path: TEXT.to_owned(),
    })])
}

/// Fields that the system sets are marked too: they are ignored.
pub fn marked_task() -> Task {
    let translation = TaskTranslation {
        name: Some(TEXT.to_owned()),
        locked: Some(false),
    };
    Task {
        dependencies: Some(condition()),
        translations: [(language(), translation)].into(),
        account_id: TEXT.to_owned(),
        mvn_info: TEXT.to_owned(),
        steps: vec![TEXT.to_owned()],
        parent_guid: TEXT.to_owned(),
        external_id: Some(format!("{TEXT} {}", unknown_guid())),
        ..task(TEXT)
    }
}

fn marked_step(task: &Task) -> Step {
    let instructions = || vec![object(json!({KEY: TEXT, "list": [TEXT, {KEY: TEXT}]}))];
    let translation = StepTranslation {
        title: Some(TEXT.to_owned()),
        body: Some(TEXT.to_owned()),
        instructions: instructions(),
        feedback_config: vec![question(TEXT, &[TEXT])],
        locked: Some(false),
    };
    Step {
        // More than one frame.
        body: Some(format!("<p>{TEXT}</p>").repeat(1_200)),
        dependencies: Some(condition()),
        external_id: Some(format!("{TEXT} {}", unknown_guid())),
        feedback_config: vec![question(TEXT, &[TEXT])],
        instructions: instructions(),
        looping: Some(Looping {
            alias: TEXT.to_owned(),
            array: Some(value(json!([TEXT]))),
            iterations: Some(value(json!({KEY: TEXT}))),
        }),
        parts: vec![TEXT.to_owned()],
        skills: vec![TEXT.to_owned()],
        tags: vec![TEXT.to_owned()],
        translations: [(language(), translation)].into(),
        account_id: TEXT.to_owned(),
        r_data: [(KEY.to_owned(), text(TEXT))].into(),
        ..step(task, StepType::Observation, TEXT)
    }
}

#[test]
fn every_field_is_marked() {
    let (task, step) = (marked_task(), marked_step(&Task::default()));
    // Numbers and ids have no marks.
    let unmarked_task = Task {
        published: Some(0),
        roles: vec![0],
        ..task.clone()
    };
    let unmarked_step = Step {
        task: unknown_guid(),
        cost: Some(2),
        published: Some(0),
        subtask_id: unknown_guid(),
        subtask_pid: Some(PRODUCT),
        subtask_external_id: Some("task".to_owned()),
        ..step.clone()
    };
    assert_every_field_has_a_value([task, unmarked_task]);
    assert_every_field_has_a_value([step, unmarked_step]);
}
