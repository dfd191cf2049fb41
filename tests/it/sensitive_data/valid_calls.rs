//! A valid request of every call, with a mark in every text.

use prost::Message;
use serde_json::json;

use super::{
    caller::Caller,
    marks::{KEY, TEXT},
};
use crate::kit::prelude::*;

/// The resources that the requests are about.
pub struct Resources {
    pub task: Task,
    pub step: Step,
    role: i64,
    /// The id of a task that was deleted.
    deleted: String,
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
        let create = CreateRoleRequest { role: Some(role()) };
        let role: CreateRoleResponse = caller.call("RoleService/CreateRole", &create).await;
        let list = work().of_task(task.guid.clone());
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
            task,
            step: made.step.expect("the step"),
            role: role.role.expect("the role").id,
            work: listed.work.into_iter().next().expect("some work"),
        }
    }
}

type Make = fn(&Resources) -> Vec<u8>;

/// Each call of the contract with a request that is accepted.
pub const CALLS: &[(&str, Make)] = &[
    ("AnalysisService/ListReferences", |resources| {
        let request = ListReferencesRequest {
            task: resources.task.guid.clone(),
            variable: format!("{TEXT}.{TEXT}"),
            answer: TEXT.to_owned(),
            ..ListReferencesRequest::default()
        };
        request.encode_to_vec()
    }),
    ("AnalysisService/PreviewTask", |resources| {
        let request = preview_of(&resources.task.guid)
            .answering(TEXT, text(TEXT))
            .knowing(vec![TEXT.to_owned()])
            .in_language(language())
            .with_traces(true)
            .expanding(vec!["body".to_owned()]);
        request.encode_to_vec()
    }),
    ("AnalysisService/ValidateTask", |resources| {
        let request = ValidateTaskRequest {
            options: Some(validation_options(resources)),
            known_fingerprint: TEXT.to_owned(),
            ..validation_of(&resources.task.guid)
        };
        request.encode_to_vec()
    }),
    ("AnalysisService/ListFindings", |resources| {
        let request = ListFindingsRequest {
            options: Some(validation_options(resources)),
            ..ListFindingsRequest::default()
        };
        request.encode_to_vec()
    }),
    ("AnalysisService/ListRules", |_| {
        ListRulesRequest {}.encode_to_vec()
    }),
    ("RevisionService/CreateRevision", |resources| {
        let request = CreateRevisionRequest {
            task: resources.task.guid.clone(),
            note: TEXT.to_owned(),
            alias: KEY.to_owned(),
            ..CreateRevisionRequest::default()
        };
        request.encode_to_vec()
    }),
    ("RevisionService/GetRevision", revision),
    ("RevisionService/ListRevisions", |resources| {
        let request = ListRevisionsRequest {
            task: resources.task.guid.clone(),
            ..ListRevisionsRequest::default()
        };
        request.encode_to_vec()
    }),
    ("RevisionService/CompareRevisions", revision),
    ("RevisionService/RestoreRevision", |resources| {
        let request = RestoreRevisionRequest {
            task: resources.deleted.clone(),
            revision: "1".to_owned(),
            ..RestoreRevisionRequest::default()
        };
        request.encode_to_vec()
    }),
    ("RevisionService/DeleteRevision", revision),
    ("RevisionService/SetRevisionAlias", |resources| {
        let request = SetRevisionAliasRequest {
            task: resources.task.guid.clone(),
            alias: KEY.to_owned(),
            revision: "1".to_owned(),
        };
        request.encode_to_vec()
    }),
    ("RevisionService/ListDeletedTasks", |_| Vec::new()),
    ("ChangeService/ListChanges", |resources| {
        let request = ListChangesRequest {
            start: ChangeStart::Oldest.into(),
            task: resources.task.guid.clone(),
            ..ListChangesRequest::default()
        };
        request.encode_to_vec()
    }),
    ("IndexService/ListIndexWork", |_| Vec::new()),
    ("IndexService/AcknowledgeIndexed", |resources| {
        let item = IndexedItem {
            guid: resources.task.guid.clone(),
            etag: TEXT.to_owned(),
            info: TEXT.to_owned(),
            ..IndexedItem::default()
        };
        AcknowledgeIndexedRequest { items: vec![item] }.encode_to_vec()
    }),
    ("RoleService/CreateRole", |_| {
        CreateRoleRequest { role: Some(role()) }.encode_to_vec()
    }),
    ("RoleService/DeleteRole", |resources| {
        DeleteRoleRequest { id: resources.role }.encode_to_vec()
    }),
    ("RoleService/ListRoles", |_| Vec::new()),
    ("StepService/CreateStep", |resources| {
        let request = create_step_request(marked_step(&resources.task));
        request.encode_to_vec()
    }),
    ("StepService/DeleteStep", |resources| {
        let request = DeleteStepRequest {
            guid: resources.step.guid.clone(),
            ..DeleteStepRequest::default()
        };
        request.encode_to_vec()
    }),
    ("StepService/GetStep", |resources| {
        let guid = resources.step.guid.clone();
        GetStepRequest { guid }.encode_to_vec()
    }),
    ("StepService/ListSteps", |resources| {
        let request = ListStepsRequest {
            task: resources.task.guid.clone(),
            expand: vec!["body".to_owned()],
            ..ListStepsRequest::default()
        };
        request.encode_to_vec()
    }),
    ("StepService/UpdateStep", |resources| {
        let changed = marked_step(&resources.task).with_guid(resources.step.guid.clone());
        let request = UpdateStepRequest {
            step: Some(changed),
            ..UpdateStepRequest::default()
        };
        request.encode_to_vec()
    }),
    ("TaskService/CreateTask", |_| {
        let request = create_task_request(marked_task());
        request.encode_to_vec()
    }),
    ("TaskService/DeleteTask", |resources| {
        let request = DeleteTaskRequest {
            guid: resources.task.guid.clone(),
            force: true,
            ..DeleteTaskRequest::default()
        };
        request.encode_to_vec()
    }),
    ("TaskService/ExportTask", |resources| {
        let guid = resources.task.guid.clone();
        ExportTaskRequest { guid }.encode_to_vec()
    }),
    ("TaskService/GetTask", |resources| {
        let guid = resources.task.guid.clone();
        GetTaskRequest { guid }.encode_to_vec()
    }),
    ("TaskService/ImportTask", |_| {
        let inner = document(TEXT, vec![marked_step(&Task::default())]);
        let values = vec![answer_with(TEXT, TEXT, inner)];
        let steps = vec![
            marked_step(&Task::default()),
            observation_asking(linked_question(values)),
            document_step(StepType::Information, TEXT),
        ];
        let request = ImportTaskRequest {
            document: Some(TaskDocument {
                task: Some(marked_task()),
                steps,
            }),
            ..ImportTaskRequest::default()
        };
        request.encode_to_vec()
    }),
    ("TaskService/ListTasks", |_| Vec::new()),
    ("TaskService/UpdateTask", |resources| {
        let changed = Task {
            guid: resources.task.guid.clone(),
            name: format!("{TEXT} again"),
            ..marked_task()
        };
        let request = UpdateTaskRequest {
            task: Some(changed),
            ..UpdateTaskRequest::default()
        };
        request.encode_to_vec()
    }),
    ("TranslationService/ListTranslationWork", |_| {
        work().encode_to_vec()
    }),
    ("TranslationService/WriteTranslations", |resources| {
        let name = (resources.work.kind() == TranslationKind::Task).then(|| TEXT.to_owned());
        let translation = AutomaticTranslation {
            guid: resources.work.guid.clone(),
            language: resources.work.language.clone(),
            title: name.is_none().then(|| TEXT.to_owned()),
            name,
            source_digest: resources.work.source_digest.clone(),
            ..AutomaticTranslation::default()
        };
        let translations = vec![translation];
        WriteTranslationsRequest { translations }.encode_to_vec()
    }),
];

/// A request whose first two fields are the task and the revision.
fn revision(resources: &Resources) -> Vec<u8> {
    let request = GetRevisionRequest {
        task: resources.task.guid.clone(),
        revision: "1".to_owned(),
        ..GetRevisionRequest::default()
    };
    request.encode_to_vec()
}

fn role() -> Role {
    Role {
        id: 0,
        name: TEXT.to_owned(),
    }
}

fn work() -> ListTranslationWorkRequest {
    ListTranslationWorkRequest {
        languages: vec![format!("fr-x-{KEY}")],
        ..ListTranslationWorkRequest::default()
    }
}

fn validation_options(resources: &Resources) -> ValidationOptions {
    ValidationOptions {
        rules: vec![RuleSetting {
            rule: "step/no-content".to_owned(),
            severity: Severity::Error.into(),
        }],
        suppress: vec![Suppression {
            rule: "step/no-content".to_owned(),
            task: resources.task.guid.clone(),
            step: resources.step.guid.clone(),
            path: TEXT.to_owned(),
        }],
        known_variables: vec![TEXT.to_owned()],
        languages: vec![language()],
        ..ValidationOptions::default()
    }
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
