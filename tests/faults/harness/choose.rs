//! What a writer does next.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::*;
use prost_types::FieldMask;
use tonic::Status;

use super::{
    caller::Caller,
    dice::Dice,
    draft,
    intent::Intent,
    shelf::{Guide, Shelf, is_open, managing},
};

/// The language that only the automatic process writes.
const AUTOMATIC: &str = "es";
/// So that what is read after each fault stays small.
const MOST_GUIDES: usize = 6;
const MOST_STEPS: usize = 10;
const MOST_ROLES: usize = 3;

/// A write that the state of the shelf allows.
pub async fn next(shelf: &mut Shelf, dice: &mut Dice, caller: &Caller) -> Result<Intent, Status> {
    loop {
        let chosen = match dice.below(100) {
            0..8 => create_task(shelf, dice),
            8..16 => import(shelf, dice),
            16..26 => import_again(shelf, dice),
            26..32 => update_task(shelf, dice),
            32..38 => delete_task(shelf, dice),
            38..62 => create_step(shelf, dice),
            62..78 => update_step(shelf, dice),
            78..88 => delete_step(shelf, dice),
            88..93 => role(shelf, dice),
            _ => translate(shelf, dice, caller).await?,
        };
        if let Some(intent) = chosen {
            return Ok(intent);
        }
    }
}

fn create_task(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    has_room(shelf).then(|| {
        Intent::CreateTask(CreateTaskRequest {
            task: Some(draft::task(shelf.name())),
            request_id: dice.request_id(),
            validate_only: false,
        })
    })
}

fn import(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    if !has_room(shelf) {
        return None;
    }
    let mut steps = vec![draft::note(shelf), draft::note(shelf)];
    if dice.once_in(2) {
        steps.insert(1, draft::linked_question(shelf));
    }
    Some(Intent::ImportTask(ImportTaskRequest {
        document: Some(TaskDocument {
            task: Some(draft::task(shelf.name())),
            steps,
        }),
        request_id: dice.request_id(),
        ..ImportTaskRequest::default()
    }))
}

/// The task with its steps in another order, one more, perhaps one less, and
/// its question, if it has one, with other answers.
fn import_again(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let guide = owned(shelf, dice, |guide| !guide.is_managed())?;
    let mut steps: Vec<Step> = guide.steps.into_iter().map(|piece| piece.step).collect();
    if steps.len() >= MOST_STEPS || dice.once_in(2) {
        let plain = steps.iter().position(is_plain);
        plain.map(|index| steps.remove(index));
    }
    dice.shuffle(&mut steps);
    for step in &mut steps {
        if managing(step).next().is_some() {
            answer_otherwise(shelf, dice, step);
        }
    }
    retitle(&mut steps);
    steps.insert(0, draft::note(shelf));
    Some(Intent::ImportTask(ImportTaskRequest {
        document: Some(TaskDocument {
            task: Some(Task {
                guid: guide.task.guid,
                ..Task::default()
            }),
            steps,
        }),
        absent_steps: AbsentSteps::Delete.into(),
        etag: guide.version.etag().unwrap_or_default().to_owned(),
        request_id: dice.request_id(),
        validate_only: false,
    }))
}

/// A new answer, one less, or another text.
fn answer_otherwise(shelf: &mut Shelf, dice: &mut Dice, step: &mut Step) {
    let Some(question) = step.feedback_config.first_mut() else {
        return;
    };
    match dice.below(3) {
        0 if shelf.guides.len() < MOST_GUIDES => question.values.push(draft::answer(shelf)),
        1 if question.values.len() > 1 => {
            question.values.remove(0);
        }
        _ => {
            if let Some(value) = question.values.first_mut() {
                value.value = shelf.name();
            }
        }
    }
}

/// Has steps that refer to the task of an answer bear its text, as another title
/// would be ignored.
fn retitle(steps: &mut [Step]) {
    let answers: BTreeMap<String, String> = steps
        .iter()
        .flat_map(managing)
        .filter(|(_, value)| !value.link.is_empty())
        .map(|(_, value)| (value.link.clone(), value.value.clone()))
        .collect();
    for step in steps {
        if let Some(text) = answers.get(&step.subtask_id) {
            step.title.clone_from(text);
        }
    }
}

fn update_task(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let guide = owned(shelf, dice, |guide| !guide.is_managed())?;
    let name = shelf.name();
    let row = TaskTranslation {
        name: Some(name.clone()),
        locked: Some(true),
    };
    Some(Intent::UpdateTask(UpdateTaskRequest {
        task: Some(Task {
            guid: guide.task.guid,
            published: Some(dice.below(2) as i32),
            translations: [("de".to_owned(), row.clone()), ("fr".to_owned(), row)].into(),
            name,
            etag: guide.version.etag().unwrap_or_default().to_owned(),
            ..Task::default()
        }),
        update_mask: mask(&["name", "published", "translations"]),
        validate_only: false,
    }))
}

/// A task that nothing else refers to.
fn delete_task(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let mut referred = BTreeSet::new();
    for guide in &shelf.guides {
        let steps = guide.steps.iter().map(|piece| &piece.step);
        let others = steps.filter(|step| step.subtask_id != guide.task.guid);
        referred.extend(others.map(|step| step.subtask_id.clone()));
    }
    let free = |guide: &Guide| !guide.is_managed() && !referred.contains(&guide.task.guid);
    let guide = owned(shelf, dice, free)?;
    Some(Intent::DeleteTask(DeleteTaskRequest {
        guid: guide.task.guid,
        etag: String::new(),
        force: true,
    }))
}

fn create_step(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let guide = any(shelf, dice, |guide| guide.steps.len() < MOST_STEPS)?;
    let other = owned(shelf, dice, |other| other.task.guid != guide.task.guid);
    let mut step = match other {
        Some(other) if !guide.shared && dice.once_in(4) => Step {
            subtask_id: other.task.guid,
            subtask_pid: Some(draft::PRODUCT),
            ..draft::step(StepType::Subtask, String::new())
        },
        _ => draft::note(shelf),
    };
    step.task = guide.task.guid.clone();
    let previous = match dice.below(3) {
        0 => None,
        _ => dice.pick(&guide.steps),
    };
    let previous = previous.map(|piece| piece.step.guid.clone());
    Some(Intent::CreateStep(CreateStepRequest {
        step: Some(step),
        prevstep: previous.unwrap_or_default(),
        request_id: dice.request_id(),
        validate_only: false,
    }))
}

/// Every field of the mask changes, so that half of it would show.
fn update_step(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let guide = any(shelf, dice, |guide| !guide.steps.is_empty())?;
    let plain: Vec<_> = guide.steps.into_iter().collect();
    let plain: Vec<_> = plain.iter().filter(|p| is_plain(&p.step)).collect();
    let piece = *dice.pick(&plain)?;
    let changed = draft::note(shelf);
    Some(Intent::UpdateStep(UpdateStepRequest {
        step: Some(Step {
            guid: piece.step.guid.clone(),
            etag: piece.version.etag().unwrap_or_default().to_owned(),
            title: changed.title,
            body: changed.body,
            tags: changed.tags,
            translations: changed.translations,
            ..Step::default()
        }),
        update_mask: mask(&[
            "title",
            "body",
            "tags",
            "translations.de",
            "translations.fr",
        ]),
        validate_only: false,
    }))
}

fn delete_step(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let guide = any(shelf, dice, |guide| guide.steps.len() > 1)?;
    let mut pieces = guide.steps.iter().map(|piece| &piece.step);
    let questions: Vec<&Step> = pieces
        .clone()
        .filter(|s| managing(s).next().is_some())
        .collect();
    // A question goes seldom, as its links are the most to lose.
    let step = match dice.pick(&questions) {
        Some(question) if dice.once_in(4) => Some(*question),
        _ => pieces.rfind(|step| step.link.is_empty() && !questions.contains(step)),
    };
    Some(Intent::DeleteStep(DeleteStepRequest {
        guid: step?.guid.clone(),
        etag: String::new(),
    }))
}

fn role(shelf: &mut Shelf, dice: &mut Dice) -> Option<Intent> {
    let known: Vec<i64> = shelf.roles.iter().map(|role| role.id).collect();
    if is_shared(shelf) {
        return None;
    }
    if known.len() < MOST_ROLES {
        let name = shelf.name();
        let role = Some(Role { id: 0, name });
        return Some(Intent::CreateRole(CreateRoleRequest { role }));
    }
    let id = *dice.pick(&known)?;
    Some(Intent::DeleteRole(DeleteRoleRequest { id }))
}

/// Every step of a task that lacks the automatic language, in one batch.
async fn translate(
    shelf: &mut Shelf,
    dice: &mut Dice,
    caller: &Caller,
) -> Result<Option<Intent>, Status> {
    let Some(guide) = owned(shelf, dice, |guide| !guide.steps.is_empty()) else {
        return Ok(None);
    };
    let request = ListTranslationWorkRequest {
        languages: vec![AUTOMATIC.to_owned()],
        task: Some(guide.task.guid.clone()),
        page_size: 100,
        page_token: String::new(),
    };
    let response = caller.translations().list_translation_work(request).await?;
    let work = response.into_inner().work.into_iter();
    let plain = |guid: &str| {
        let mut steps = guide.steps.iter().map(|piece| &piece.step);
        steps.any(|step| step.guid == guid && is_plain(step))
    };
    let translations: Vec<_> = work
        .filter(|work| plain(&work.guid))
        .map(|work| AutomaticTranslation {
            guid: work.guid,
            language: work.language,
            title: Some(shelf.name()),
            source_digest: work.source_digest,
            ..AutomaticTranslation::default()
        })
        .collect();
    let intent = Intent::Translate(WriteTranslationsRequest { translations });
    Ok(match &intent {
        Intent::Translate(request) if request.translations.is_empty() => None,
        _ => Some(intent),
    })
}

fn is_shared(shelf: &Shelf) -> bool {
    shelf.guides.iter().any(|guide| guide.shared)
}

fn has_room(shelf: &Shelf) -> bool {
    shelf.guides.len() < MOST_GUIDES && !is_shared(shelf)
}

/// Text and nothing that links.
fn is_plain(step: &Step) -> bool {
    step.r#type() == StepType::Solution
}

/// One of the tasks that the shelf has for itself.
fn owned(shelf: &Shelf, dice: &mut Dice, suits: impl Fn(&Guide) -> bool) -> Option<Guide> {
    any(shelf, dice, |guide| !guide.shared && suits(guide))
}

fn any(shelf: &Shelf, dice: &mut Dice, suits: impl Fn(&Guide) -> bool) -> Option<Guide> {
    let named = |guide: &&Guide| !is_open(&guide.task.guid) && suits(guide);
    let found: Vec<&Guide> = shelf.guides.iter().filter(named).collect();
    dice.pick(&found).map(|guide| (*guide).clone())
}

fn mask(paths: &[&str]) -> Option<FieldMask> {
    Some(FieldMask {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    })
}
