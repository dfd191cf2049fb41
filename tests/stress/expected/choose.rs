//! The next write of a writer.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::*;
use tonic::Status;

use super::{
    drafts,
    workspace::{ExpectedTask, Workspace, is_placeholder, linked_values},
    write::Write,
};
use crate::kit::{
    client::{Client, field_mask},
    rng::Rng,
    sample::PRODUCT,
};

const AUTOMATIC_LANGUAGE: &str = "es";
// The whole workspace is read after each fault, so it stays small.
const MAX_TASKS: usize = 6;
const MAX_STEPS: usize = 10;
const MAX_ROLES: usize = 3;

/// A random write that the state of the workspace allows.
pub async fn next_write(
    workspace: &mut Workspace,
    rng: &mut Rng,
    client: &Client,
) -> Result<Write, Status> {
    loop {
        let chosen = match rng.below(100) {
            0..8 => create_task(workspace, rng),
            8..16 => import(workspace, rng),
            16..26 => import_again(workspace, rng),
            26..32 => update_task(workspace, rng),
            32..38 => delete_task(workspace, rng),
            38..62 => create_step(workspace, rng),
            62..78 => update_step(workspace, rng),
            78..88 => delete_step(workspace, rng),
            88..93 => create_or_delete_role(workspace, rng),
            _ => translate(workspace, rng, client).await?,
        };
        if let Some(write) = chosen {
            return Ok(write);
        }
    }
}

fn create_task(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    has_room(workspace).then(|| {
        Write::CreateTask(CreateTaskRequest {
            task: Some(drafts::task(workspace.new_name())),
            request_id: rng.uuid(),
            validate_only: false,
        })
    })
}

fn import(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    if !has_room(workspace) {
        return None;
    }
    let mut steps = vec![drafts::solution(workspace), drafts::solution(workspace)];
    if rng.one_in(2) {
        steps.insert(1, drafts::linked_observation(workspace));
    }
    Some(Write::ImportTask(ImportTaskRequest {
        document: Some(TaskDocument {
            task: Some(drafts::task(workspace.new_name())),
            steps,
        }),
        request_id: rng.uuid(),
        ..ImportTaskRequest::default()
    }))
}

/// A task with its steps in another order, one more, perhaps one less, and other
/// answers of its question, if it has one.
fn import_again(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let expected = pick_own_task(workspace, rng, |expected| !expected.is_managed())?;
    let mut steps: Vec<Step> = expected
        .steps
        .into_iter()
        .map(|expected| expected.step)
        .collect();
    if steps.len() >= MAX_STEPS || rng.one_in(2) {
        let solution = steps.iter().position(is_solution);
        if let Some(index) = solution {
            steps.remove(index);
        }
    }
    rng.shuffle(&mut steps);
    for step in &mut steps {
        if linked_values(step).next().is_some() {
            change_answers(workspace, rng, step);
        }
    }
    retitle(&mut steps);
    steps.insert(0, drafts::solution(workspace));
    Some(Write::ImportTask(ImportTaskRequest {
        document: Some(TaskDocument {
            task: Some(Task {
                guid: expected.task.guid,
                ..Task::default()
            }),
            steps,
        }),
        absent_steps: AbsentSteps::Delete.into(),
        etag: expected.etag.to_send(),
        request_id: rng.uuid(),
        ..ImportTaskRequest::default()
    }))
}

/// Adds an answer, removes one, or gives one another text.
fn change_answers(workspace: &mut Workspace, rng: &mut Rng, step: &mut Step) {
    let Some(question) = step.feedback_config.first_mut() else {
        return;
    };
    match rng.below(3) {
        0 if workspace.tasks.len() < MAX_TASKS => {
            question.values.push(drafts::linked_answer(workspace))
        }
        1 if question.values.len() > 1 => {
            question.values.remove(0);
        }
        _ => {
            if let Some(value) = question.values.first_mut() {
                value.value = workspace.new_name();
            }
        }
    }
}

/// Gives each wiring step the text of its answer as title: another one would be ignored.
fn retitle(steps: &mut [Step]) {
    let answers: BTreeMap<String, String> = steps
        .iter()
        .flat_map(linked_values)
        .filter(|(_, value)| !value.link.is_empty())
        .map(|(_, value)| (value.link.clone(), value.value.clone()))
        .collect();
    for step in steps {
        if let Some(text) = answers.get(&step.subtask_id) {
            step.title.clone_from(text);
        }
    }
}

fn update_task(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let expected = pick_own_task(workspace, rng, |expected| !expected.is_managed())?;
    let name = workspace.new_name();
    let row = TaskTranslation {
        name: Some(name.clone()),
        locked: Some(true),
    };
    Some(Write::UpdateTask(UpdateTaskRequest {
        task: Some(Task {
            guid: expected.task.guid,
            published: Some(rng.below(2) as i32),
            translations: [("de".to_owned(), row.clone()), ("fr".to_owned(), row)].into(),
            name,
            etag: expected.etag.to_send(),
            ..Task::default()
        }),
        update_mask: field_mask(&["name", "published", "translations"]),
        validate_only: false,
    }))
}

/// A task that nothing else refers to.
fn delete_task(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let mut referred = BTreeSet::new();
    for expected in &workspace.tasks {
        let steps = expected.steps.iter().map(|expected| &expected.step);
        let others = steps.filter(|step| step.subtask_id != expected.task.guid);
        referred.extend(others.map(|step| step.subtask_id.clone()));
    }
    let is_free =
        |expected: &ExpectedTask| !expected.is_managed() && !referred.contains(&expected.task.guid);
    let expected = pick_own_task(workspace, rng, is_free)?;
    Some(Write::DeleteTask(DeleteTaskRequest {
        guid: expected.task.guid,
        etag: String::new(),
        force: true,
        purge_history: false,
    }))
}

fn create_step(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let expected = pick_task(workspace, rng, |expected| expected.steps.len() < MAX_STEPS)?;
    let guid = &expected.task.guid;
    let other = pick_own_task(workspace, rng, |other| other.task.guid != *guid);
    let mut step = match other {
        Some(other) if !expected.shared && rng.one_in(4) => Step {
            subtask_id: other.task.guid,
            subtask_pid: Some(PRODUCT),
            ..drafts::step(StepType::Subtask, String::new())
        },
        _ => drafts::solution(workspace),
    };
    step.task.clone_from(guid);
    let previous = match rng.below(3) {
        0 => None,
        _ => rng.try_pick(&expected.steps),
    };
    let previous = previous.map(|previous| previous.step.guid.clone());
    Some(Write::CreateStep(CreateStepRequest {
        step: Some(step),
        prevstep: previous.unwrap_or_default(),
        request_id: rng.uuid(),
        validate_only: false,
    }))
}

/// Every field of the mask changes, so that half of the write would show.
fn update_step(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let mut expected = pick_task(workspace, rng, |expected| !expected.steps.is_empty())?;
    expected
        .steps
        .retain(|expected| is_solution(&expected.step));
    let old = rng.try_pick(&expected.steps)?;
    let new = drafts::solution(workspace);
    Some(Write::UpdateStep(UpdateStepRequest {
        step: Some(Step {
            guid: old.step.guid.clone(),
            etag: old.etag.to_send(),
            title: new.title,
            body: new.body,
            tags: new.tags,
            translations: new.translations,
            ..Step::default()
        }),
        update_mask: field_mask(&[
            "title",
            "body",
            "tags",
            "translations.de",
            "translations.fr",
        ]),
        validate_only: false,
    }))
}

fn delete_step(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let expected = pick_task(workspace, rng, |expected| expected.steps.len() > 1)?;
    let mut steps = expected.steps.iter().map(|expected| &expected.step);
    let questions: Vec<&Step> = steps
        .clone()
        .filter(|step| linked_values(step).next().is_some())
        .collect();
    // Questions with their links are rare, so they are seldom deleted.
    let step = match rng.try_pick(&questions) {
        Some(question) if rng.one_in(4) => Some(*question),
        _ => steps.rfind(|step| step.link.is_empty() && !questions.contains(step)),
    };
    Some(Write::DeleteStep(DeleteStepRequest {
        guid: step?.guid.clone(),
        etag: String::new(),
    }))
}

fn create_or_delete_role(workspace: &mut Workspace, rng: &mut Rng) -> Option<Write> {
    let known: Vec<i64> = workspace.roles.iter().map(|role| role.id).collect();
    if is_shared(workspace) {
        return None;
    }
    if known.len() < MAX_ROLES {
        let name = workspace.new_name();
        let role = Some(Role { id: 0, name });
        return Some(Write::CreateRole(CreateRoleRequest { role }));
    }
    let id = *rng.try_pick(&known)?;
    Some(Write::DeleteRole(DeleteRoleRequest { id }))
}

/// Translates every solution of a task that lacks the automatic language, in one batch.
async fn translate(
    workspace: &mut Workspace,
    rng: &mut Rng,
    client: &Client,
) -> Result<Option<Write>, Status> {
    let has_steps = |expected: &ExpectedTask| !expected.steps.is_empty();
    let Some(expected) = pick_own_task(workspace, rng, has_steps) else {
        return Ok(None);
    };
    let request = ListTranslationWorkRequest {
        languages: vec![AUTOMATIC_LANGUAGE.to_owned()],
        task: Some(expected.task.guid.clone()),
        page_size: 100,
        page_token: String::new(),
    };
    let response = client.translations().list_translation_work(request).await?;
    let is_own_solution = |guid: &str| {
        let mut steps = expected.steps.iter().map(|expected| &expected.step);
        steps.any(|step| step.guid == guid && is_solution(step))
    };
    let work = response.into_inner().work.into_iter();
    let translations: Vec<_> = work
        .filter(|work| is_own_solution(&work.guid))
        .map(|work| AutomaticTranslation {
            guid: work.guid,
            language: work.language,
            title: Some(workspace.new_name()),
            source_digest: work.source_digest,
            ..AutomaticTranslation::default()
        })
        .collect();
    Ok(match translations.is_empty() {
        true => None,
        false => Some(Write::Translate(WriteTranslationsRequest { translations })),
    })
}

fn is_shared(workspace: &Workspace) -> bool {
    workspace.tasks.iter().any(|expected| expected.shared)
}

fn has_room(workspace: &Workspace) -> bool {
    workspace.tasks.len() < MAX_TASKS && !is_shared(workspace)
}

fn is_solution(step: &Step) -> bool {
    step.r#type() == StepType::Solution
}

/// A suitable task that no other workspace has steps in.
fn pick_own_task(
    workspace: &Workspace,
    rng: &mut Rng,
    suits: impl Fn(&ExpectedTask) -> bool,
) -> Option<ExpectedTask> {
    let suits = |expected: &ExpectedTask| !expected.shared && suits(expected);
    pick_task(workspace, rng, suits)
}

fn pick_task(
    workspace: &Workspace,
    rng: &mut Rng,
    suits: impl Fn(&ExpectedTask) -> bool,
) -> Option<ExpectedTask> {
    let mut found = workspace.tasks.clone();
    found.retain(|expected| !is_placeholder(&expected.task.guid) && suits(expected));
    rng.try_pick(&found).cloned()
}
