//! After any history, each value of a linked question names its managed task, and each
//! managed task has one wiring step.

use std::collections::BTreeMap;

use crate::kit::{
    links::{State, links_are_consistent},
    prelude::*,
};
use proptest::{collection::vec, option, prelude::*, sample::Index};
use tonic::Status;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const TEXTS: [&str; 3] = ["Red", "Green", "Blinks"];

/// A plan of a step.
#[derive(Clone, Debug)]
pub enum StepPlan {
    Information,
    /// A subtask step of one of the account's tasks.
    Subtask(Index),
    Question {
        linked: bool,
        values: Vec<Value>,
    },
}

#[derive(Clone, Debug)]
pub struct Value {
    key: usize,
    text: usize,
    document: Option<Vec<StepPlan>>,
}

/// A change to an exported document, at the document, step and value that the
/// indexes choose.
#[derive(Clone, Debug)]
pub struct Edit {
    document: Index,
    step: Index,
    value: Index,
    kind: EditKind,
}

#[derive(Clone, Debug)]
pub enum EditKind {
    /// The step is left out.
    Drop,
    /// The step goes elsewhere.
    Move(Index),
    /// The step is listed without its id.
    OmitStepId,
    /// A new step is listed.
    Add(StepPlan),
    /// The question is omitted.
    OmitQuestion,
    FlipLinked,
    AddValue(Value),
    DropValue,
    SwapValues(Index),
    Reword(usize),
    Rekey(usize),
    DropDocument,
    /// The value gets a copy of another document.
    CopyDocument(Index),
    /// A subtask step refers to another task of the account.
    ReferTo(Index),
    /// The task is renamed.
    Name(usize),
    /// The task's id is left out, so that the import creates a task.
    OmitTaskId,
}

#[derive(Clone, Debug)]
pub enum Change {
    Import(Vec<StepPlan>),
    Reimport {
        task: Index,
        edits: Vec<Edit>,
        absent: AbsentSteps,
        dry: bool,
    },
    UpdateQuestion {
        question: Index,
        edits: Vec<Edit>,
    },
    Rename(Index, usize),
    ReferTo(Index, Index),
    Append(Index, StepPlan),
    DeleteStep(Index),
    DeleteTask {
        task: Index,
        force: bool,
    },
}

/// Steps whose questions hold documents of at most `depth` levels.
fn plans(depth: u32) -> BoxedStrategy<Vec<StepPlan>> {
    let plan = prop_oneof![
        1 => Just(StepPlan::Information),
        1 => any::<Index>().prop_map(StepPlan::Subtask),
        2 => question(depth),
    ];
    vec(plan, 0..4).boxed()
}

fn question(depth: u32) -> BoxedStrategy<StepPlan> {
    let document = match depth {
        0 => Just(None).boxed(),
        depth => option::of(plans(depth - 1)).boxed(),
    };
    let linked = prop::bool::weighted(0.85);
    (linked, vec(value(document), 1..4))
        .prop_map(|(linked, values)| StepPlan::Question { linked, values })
        .boxed()
}

/// Steps, one of which is a question.
pub fn guide() -> impl Strategy<Value = Vec<StepPlan>> {
    (plans(2), question(2), plans(0)).prop_map(|(before, question, after)| {
        let mut plans = before;
        plans.push(question);
        plans.extend(after);
        plans
    })
}

fn value(document: BoxedStrategy<Option<Vec<StepPlan>>>) -> impl Strategy<Value = Value> {
    (0..KEYS.len(), 0..TEXTS.len(), document).prop_map(|(key, text, document)| Value {
        key,
        text,
        document,
    })
}

fn plan() -> impl Strategy<Value = StepPlan> {
    plans(1).prop_map(|plans| plans.into_iter().next().unwrap_or(StepPlan::Information))
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    let kind = prop_oneof![
        3 => Just(EditKind::Drop),
        2 => index().prop_map(EditKind::Move),
        2 => Just(EditKind::OmitStepId),
        2 => plan().prop_map(EditKind::Add),
        1 => Just(EditKind::OmitQuestion),
        2 => Just(EditKind::FlipLinked),
        3 => value(option::weighted(0.5, plans(1)).boxed()).prop_map(EditKind::AddValue),
        3 => Just(EditKind::DropValue),
        2 => index().prop_map(EditKind::SwapValues),
        2 => (0..TEXTS.len()).prop_map(EditKind::Reword),
        2 => (0..KEYS.len()).prop_map(EditKind::Rekey),
        2 => Just(EditKind::DropDocument),
        1 => index().prop_map(EditKind::CopyDocument),
        1 => index().prop_map(EditKind::ReferTo),
        2 => (0..TEXTS.len()).prop_map(EditKind::Name),
        1 => Just(EditKind::OmitTaskId),
    ];
    (index(), index(), index(), kind).prop_map(|(document, step, value, kind)| Edit {
        document,
        step,
        value,
        kind,
    })
}

pub fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    let absent = prop_oneof![
        1 => Just(AbsentSteps::Unspecified),
        2 => Just(AbsentSteps::Keep),
        3 => Just(AbsentSteps::Delete),
    ];
    let again = (
        index(),
        vec(edit(), 1..6),
        absent,
        prop::bool::weighted(0.1),
    );
    prop_oneof![
        1 => plans(2).prop_map(Change::Import),
        10 => again.prop_map(|(task, edits, absent, dry)| Change::Reimport {
            task,
            edits,
            absent,
            dry,
        }),
        4 => (index(), vec(edit(), 1..3)).prop_map(|(question, edits)| Change::UpdateQuestion {
            question,
            edits,
        }),
        1 => (index(), 0..TEXTS.len()).prop_map(|(task, text)| Change::Rename(task, text)),
        1 => (index(), index()).prop_map(|(step, task)| Change::ReferTo(step, task)),
        1 => (index(), plan()).prop_map(|(task, plan)| Change::Append(task, plan)),
        2 => index().prop_map(Change::DeleteStep),
        2 => (index(), any::<bool>()).prop_map(|(task, force)| Change::DeleteTask { task, force }),
    ]
}

/// The message of a step. `tasks` are those that it may refer to.
fn step_message(plan: &StepPlan, tasks: &[Task]) -> Step {
    match plan {
        StepPlan::Information => document_step(StepType::Information, "note"),
        StepPlan::Subtask(_) if tasks.is_empty() => document_step(StepType::Information, "note"),
        StepPlan::Subtask(index) => subtask(&Task::default(), index.get(tasks)),
        StepPlan::Question { linked, values } => {
            let mut seen = Vec::new();
            let values = values.iter().filter(|value| {
                let new = !seen.contains(&value.key);
                seen.push(value.key);
                new
            });
            observation_asking(FeedbackConfig {
                linked: Some(*linked),
                ..linked_question(
                    values
                        .map(|value| feedback_value(value, *linked, tasks))
                        .collect(),
                )
            })
        }
    }
}

fn feedback_value(value: &Value, linked: bool, tasks: &[Task]) -> FeedbackValue {
    let document = value.document.as_ref().filter(|_| linked);
    FeedbackValue {
        task_json: document.map(|plans| {
            let steps = plans.iter().map(|plan| step_message(plan, tasks)).collect();
            Box::new(TaskDocument { task: None, steps })
        }),
        ..answer(KEYS[value.key], TEXTS[value.text])
    }
}

/// The document at the index, in the order of [`documents_in`]. Subtracts the documents
/// before it from the index.
fn document_at<'a>(
    document: &'a mut TaskDocument,
    index: &mut usize,
) -> Option<&'a mut TaskDocument> {
    if *index == 0 {
        return Some(document);
    }
    *index -= 1;
    let configs = document
        .steps
        .iter_mut()
        .flat_map(|step| &mut step.feedback_config);
    let values = configs.flat_map(|config| &mut config.values);
    values
        .filter_map(|value| value.task_json.as_mut())
        .find_map(|inner| document_at(inner, index))
}

/// Applies the edits that fit the document.
fn edited(mut document: TaskDocument, edits: &[Edit], tasks: &[Task]) -> TaskDocument {
    for edit in edits {
        let all = documents_in(&document);
        let fitting: Vec<usize> = (0..all.len()).filter(|at| edit.fits(all[*at])).collect();
        if fitting.is_empty() {
            continue;
        }
        let mut index = *edit.document.get(&fitting);
        let other = match &edit.kind {
            EditKind::CopyDocument(other) => Some((*other.get(&all)).clone()),
            _ => None,
        };
        let chosen = document_at(&mut document, &mut index).expect("a document");
        edit.make(chosen, other, tasks);
    }
    document
}

impl Edit {
    /// Whether the edit fits the document.
    fn fits(&self, document: &TaskDocument) -> bool {
        let mut steps = document.steps.iter();
        match &self.kind {
            EditKind::Add(_) | EditKind::Name(_) | EditKind::OmitTaskId => true,
            EditKind::Drop | EditKind::Move(_) | EditKind::OmitStepId => steps.next().is_some(),
            EditKind::ReferTo(_) => steps.any(|step| step.r#type() == StepType::Subtask),
            _ => steps.any(|step| !step.feedback_config.is_empty()),
        }
    }

    fn make(&self, document: &mut TaskDocument, other: Option<TaskDocument>, tasks: &[Task]) {
        let count = document.steps.len();
        match &self.kind {
            EditKind::Add(plan) => {
                let at = self.step.index(count + 1);
                document.steps.insert(at, step_message(plan, tasks));
                return;
            }
            EditKind::Name(_) | EditKind::OmitTaskId => {
                return self.edit_task(document.task.get_or_insert_default());
            }
            _ if count == 0 => return,
            _ => {}
        }
        let at = self.step.index(count);
        match &self.kind {
            EditKind::Drop => {
                document.steps.remove(at);
            }
            EditKind::Move(to) => {
                let step = document.steps.remove(at);
                document.steps.insert(to.index(count), step);
            }
            EditKind::OmitStepId => document.steps[at].guid.clear(),
            EditKind::OmitQuestion => document.steps[at].feedback_config.clear(),
            EditKind::ReferTo(task) => refer_to(&mut document.steps[at], task.get(tasks)),
            _ => {
                // The remaining edits are of questions.
                let mut asking: Vec<&mut FeedbackConfig> = document
                    .steps
                    .iter_mut()
                    .filter(|step| step.r#type() == StepType::Observation)
                    .flat_map(|step| &mut step.feedback_config)
                    .collect();
                let count = asking.len();
                if count > 0 {
                    self.edit_question(asking[self.step.index(count)], other, tasks);
                }
            }
        }
    }

    fn edit_task(&self, task: &mut Task) {
        match &self.kind {
            EditKind::Name(text) => TEXTS[*text].clone_into(&mut task.name),
            _ => task.guid.clear(),
        }
    }

    /// Changes a question.
    fn edit_question(
        &self,
        config: &mut FeedbackConfig,
        other: Option<TaskDocument>,
        tasks: &[Task],
    ) {
        let linked = config.linked.unwrap_or_default();
        let count = config.values.len();
        let at = self.value.index(count);
        let known = |key: usize| config.values.iter().any(|value| value.key == KEYS[key]);
        match &self.kind {
            EditKind::FlipLinked => config.linked = Some(!linked),
            EditKind::AddValue(value) if !known(value.key) => {
                config
                    .values
                    .insert(at, feedback_value(value, linked, tasks));
            }
            EditKind::DropValue if count > 1 => {
                config.values.remove(at);
            }
            EditKind::SwapValues(with) => config.values.swap(at, with.index(count)),
            EditKind::Reword(text) => TEXTS[*text].clone_into(&mut config.values[at].value),
            EditKind::Rekey(key) if !known(*key) => {
                KEYS[*key].clone_into(&mut config.values[at].key);
            }
            EditKind::DropDocument => config.values[at].task_json = None,
            EditKind::CopyDocument(_) if linked => {
                config.values[at].task_json = other.map(Box::new)
            }
            _ => {}
        }
    }
}

/// Lets a subtask step refer to the task.
fn refer_to(step: &mut Step, task: &Task) {
    if step.r#type() == StepType::Subtask {
        step.subtask_id.clone_from(&task.guid);
        step.subtask_pid = task.product_id;
    }
}

/// The tasks of an account.
fn tasks_of(state: &State) -> Vec<Task> {
    state.iter().map(|(task, _)| task.clone()).collect()
}

/// The tasks that have steps; all tasks when none has.
fn with_steps(tasks: &[Task]) -> Vec<Task> {
    let guides = tasks.iter().filter(|task| !task.steps.is_empty());
    let guides: Vec<Task> = guides.cloned().collect();
    if guides.is_empty() {
        tasks.to_vec()
    } else {
        guides
    }
}

fn steps_of(state: &State) -> Vec<&Step> {
    state.iter().flat_map(|(_, steps)| steps).collect()
}

/// How deep the documents of a document nest.
fn depth_of(document: &TaskDocument) -> usize {
    let values = document.steps.iter().flat_map(answers_of);
    // A linked value without a document gets an empty one.
    let inner = values.map(|value| value.task_json.as_deref().map_or(1, depth_of));
    1 + inner.max().unwrap_or(0)
}

/// How many tasks there are from the one that manages this task up to the outermost.
fn tasks_above(tasks: &[Task], task: &Task) -> usize {
    let parent = |task: &&Task| tasks.iter().find(|other| other.guid == task.parent_guid);
    std::iter::successors(Some(task), parent).count() - 1
}

/// The allowed reasons of an expected error; `None` when the change must succeed.
type Refusal = Option<Vec<&'static str>>;

/// Makes the change and asserts that it succeeds or fails as expected.
pub async fn apply(client: &Client, state: &State, change: &Change) -> Option<Effect> {
    let tasks = tasks_of(state);
    match change {
        Change::Import(plans) => {
            let steps = plans
                .iter()
                .map(|plan| step_message(plan, &tasks))
                .collect();
            let made = client.import(document("Guide", steps)).await;
            Some(Effect::of(made, None))
        }
        _ if tasks.is_empty() => None,
        Change::Reimport {
            task,
            edits,
            absent,
            dry,
        } => Some(
            import_again(
                client,
                &tasks,
                task.get(&with_steps(&tasks)),
                edits,
                *absent,
                *dry,
            )
            .await,
        ),
        Change::UpdateQuestion { question, edits } => {
            let steps = steps_of(state);
            let questions = steps.iter().filter(|s| s.r#type() == StepType::Observation);
            let questions: Vec<&Step> = questions.copied().collect();
            if questions.is_empty() {
                return None;
            }
            Some(
                update_question(
                    client,
                    questions[question.index(questions.len())],
                    edits,
                    &tasks,
                )
                .await,
            )
        }
        Change::Rename(task, text) => {
            let update = task_of(&task.get(&tasks).guid).named(TEXTS[*text].to_owned());
            Some(Effect::of(client.update_task(update, &[]).await, None))
        }
        Change::ReferTo(step, task) => {
            let steps = steps_of(state);
            let steps = steps.iter().filter(|s| s.r#type() == StepType::Subtask);
            let steps: Vec<&Step> = steps.copied().collect();
            if steps.is_empty() {
                return None;
            }
            let update =
                step_of(&step.get(&steps).guid).with_subtask_id(task.get(&tasks).guid.clone());
            Some(Effect::of(client.update_step(update, &[]).await, None))
        }
        Change::Append(task, plan) => Some(append(client, &tasks, task.get(&tasks), plan).await),
        Change::DeleteStep(step) => {
            let steps = steps_of(state);
            if steps.is_empty() {
                return None;
            }
            let step = step.get(&steps);
            let refusal = (!step.link.is_empty()).then(|| vec!["STEP_MANAGED"]);
            Some(Effect::of(client.delete_step(&step.guid).await, refusal))
        }
        Change::DeleteTask { task, force } => {
            Some(delete_task(client, state, task.get(&tasks), *force).await)
        }
    }
}

/// Which resources a change may have changed.
pub enum Effect {
    Any,
    Nothing,
}

impl Effect {
    /// Asserts that a change succeeded, or that it was refused for one of these reasons.
    #[track_caller]
    fn of<T: std::fmt::Debug>(outcome: Result<T, Status>, refusal: Refusal) -> Self {
        match (outcome, refusal) {
            (Ok(_), None) => Self::Any,
            (Ok(made), Some(reasons)) => panic!("not refused with {reasons:?}: {made:?}"),
            (Err(status), reasons) => {
                let failure = Failure::from(status);
                let reasons = reasons.unwrap_or_default();
                assert!(
                    reasons.contains(&failure.reason()),
                    "{reasons:?}: {failure:?}"
                );
                Self::Nothing
            }
        }
    }
}

async fn import_again(
    client: &Client,
    tasks: &[Task],
    task: &Task,
    edits: &[Edit],
    absent: AbsentSteps,
    dry: bool,
) -> Effect {
    let before = client.exported(&task.guid).await;
    let document = edited(before.clone(), edits, tasks);
    let deep = tasks_above(tasks, task) + depth_of(&document) > 8;
    let documents_moved = edits
        .iter()
        .any(|edit| matches!(edit.kind, EditKind::CopyDocument(_) | EditKind::Rekey(_)));
    let unchanged = document == before;
    let request = ImportTaskRequest {
        document: Some(document),
        absent_steps: absent.into(),
        validate_only: dry,
        ..ImportTaskRequest::default()
    };
    let outcome = client.send_import(request).await;
    let mut allowed = Vec::new();
    if outcome.is_err() && !unchanged {
        allowed.extend((absent == AbsentSteps::Unspecified).then_some("ABSENT_STEPS"));
        allowed.extend(deep.then_some("NESTING_TOO_DEEP"));
        // An observation that is created, as its id is left out too, needs its question.
        let omits_question = edits
            .iter()
            .any(|edit| matches!(edit.kind, EditKind::OmitQuestion));
        allowed.extend(omits_question.then_some("FIELD_REQUIRED"));
        // Steps of another task are not found in this one, and a document under another
        // key belongs to that key's task.
        allowed.extend(documents_moved.then_some("STEP_NOT_FOUND"));
    }
    let refused = outcome.is_err();
    match Effect::of(outcome, refused.then_some(allowed)) {
        Effect::Any if dry || unchanged => Effect::Nothing,
        outcome => outcome,
    }
}

async fn update_question(client: &Client, step: &Step, edits: &[Edit], tasks: &[Task]) -> Effect {
    let before = &step.feedback_config[0];
    let mut after = before.clone();
    for edit in edits {
        edit.edit_question(&mut after, None, tasks);
    }
    for value in &mut after.values {
        value.task_json = None;
    }
    let linked = |config: &FeedbackConfig, key: &str| {
        let values = &mut config.values.iter();
        config.linked == Some(true) && values.any(|value| value.key == key)
    };
    let new = |value: &FeedbackValue| linked(&after, &value.key) && !linked(before, &value.key);
    let refusal = after.values.iter().any(new);
    let refusal = refusal.then(|| vec!["LINKED_IMPORT_ONLY"]);
    let update = step_of(&step.guid).with_question(after);
    Effect::of(client.update_step(update, &[]).await, refusal)
}

async fn append(client: &Client, tasks: &[Task], task: &Task, plan: &StepPlan) -> Effect {
    let mut step = step_message(plan, tasks).in_task(task.guid.clone());
    for value in step
        .feedback_config
        .iter_mut()
        .flat_map(|config| &mut config.values)
    {
        value.task_json = None;
    }
    let links = matches!(plan, StepPlan::Question { linked: true, .. });
    let refusal = links.then(|| vec!["LINKED_IMPORT_ONLY"]);
    Effect::of(client.create_step(step).await, refusal)
}

async fn delete_task(client: &Client, state: &State, task: &Task, force: bool) -> Effect {
    let steps = steps_of(state);
    let mut others = steps.iter().filter(|step| step.task != task.guid);
    let refusal = if task.r#type() == TaskType::Linked {
        Some("TASK_MANAGED")
    } else if others.any(|step| step.subtask_id == task.guid) {
        Some("TASK_REFERENCED")
    } else {
        (!task.steps.is_empty() && !force).then_some("TASK_HAS_STEPS")
    };
    let deleted = match force {
        true => client.force_delete_task(&task.guid).await,
        false => client.delete_task(&task.guid).await,
    };
    Effect::of(deleted, refusal.map(|reason| vec![reason]))
}

/// Asserts that a key that a question had, and still has, manages the same task.
fn assert_known_keys_keep_their_tasks(before: &State, after: &State) {
    let links = |state: &State| -> BTreeMap<(String, String), String> {
        let questions = steps_of(state).into_iter();
        let values = questions.flat_map(|step| {
            let values = answers_of(step).iter();
            let linked = values.filter(|value| !value.link.is_empty());
            linked.map(|value| ((step.guid.clone(), value.key.clone()), value.link.clone()))
        });
        values.collect()
    };
    let before = links(before);
    for (value, link) in links(after) {
        let known = before.get(&value).unwrap_or(&link);
        assert_eq!(*known, link, "{value:?}");
    }
}

/// Asserts that exactly the changed resources have a new version.
fn assert_versions_follow_changes(before: &State, after: &State) {
    let tasks: BTreeMap<String, Task> = tasks_of(before)
        .into_iter()
        .map(|task| (task.guid.clone(), task))
        .collect();
    for task in tasks_of(after) {
        if let Some(before) = tasks.get(&task.guid) {
            let comparable = without_system_fields_of_task;
            let changed = comparable(task.clone()) != comparable(before.clone());
            assert_eq!(task.etag != before.etag, changed, "{before:?} {task:?}");
            let later = task.modified_ts != before.modified_ts;
            assert_eq!(later, changed, "{before:?} {task:?}");
        }
    }
    let steps: BTreeMap<&str, &Step> = steps_of(before)
        .into_iter()
        .map(|step| (step.guid.as_str(), step))
        .collect();
    for step in steps_of(after) {
        if let Some(before) = steps.get(step.guid.as_str()) {
            let comparable = |step: &Step| without_system_fields_of_step(step.clone());
            let changed = comparable(step) != comparable(before);
            assert_eq!(step.etag != before.etag, changed, "{before:?} {step:?}");
            let later = step.modified_ts != before.modified_ts;
            assert_eq!(later, changed, "{before:?} {step:?}");
        }
    }
}

#[apply(property_on_both_databases)]
#[cases(24, (guide(), vec(change(), 1..10)))]
async fn links_stay_consistent(client: Client, (first, changes): (Vec<StepPlan>, Vec<Change>)) {
    let mut state = State::new();
    for change in [Change::Import(first)].iter().chain(&changes) {
        let Some(outcome) = apply(&client, &state, change).await else {
            continue;
        };
        let after = client.tasks_with_steps().await;
        match outcome {
            Effect::Any => {
                links_are_consistent(&after);
                assert_known_keys_keep_their_tasks(&state, &after);
                assert_versions_follow_changes(&state, &after);
            }
            Effect::Nothing => assert_eq!(after, state),
        }
        state = after;
    }
    for task in tasks_of(&state) {
        let exported = client.exported(&task.guid).await;
        let response = client.import(exported).await.accepted();
        assert_eq!(response.ignored_paths, [""; 0]);
        assert_eq!(response.task, Some(task));
    }
    assert_eq!(client.tasks_with_steps().await, state);
}
