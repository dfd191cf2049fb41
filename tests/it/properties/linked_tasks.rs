//! Whatever happens to tasks and steps, each value of a linked question names
//! the one task that it manages, and each managed task is wired once.

use std::collections::BTreeMap;

use crate::kit::{
    links::{State, links_are_consistent},
    prelude::*,
};
use proptest::{collection::vec, option, prelude::*, sample::Index};
use tonic::Status;

on_both_databases! {
    links_stay_consistent: (guide(), vec(change(), 1..10)), 24;
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const TEXTS: [&str; 3] = ["Red", "Green", "Blinks"];

/// A step to be listed.
#[derive(Clone, Debug)]
enum Part {
    Note,
    /// Refers to one of the account's tasks.
    Refers(Index),
    Asks {
        linked: bool,
        values: Vec<Value>,
    },
}

#[derive(Clone, Debug)]
struct Value {
    key: usize,
    text: usize,
    document: Option<Vec<Part>>,
}

/// A change to an exported document, at the document, step and value that the
/// indexes choose.
#[derive(Clone, Debug)]
struct Edit {
    document: Index,
    step: Index,
    value: Index,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// The step is left out.
    Drop,
    /// The step goes elsewhere.
    Move(Index),
    /// The step is listed without its id.
    Forget,
    /// A step is listed that was not there.
    Add(Part),
    /// Nothing is said of the question.
    Silence,
    FlipLinked,
    AddValue(Value),
    DropValue,
    SwapValues(Index),
    Reword(usize),
    Rekey(usize),
    DropDocument,
    /// The value holds what another document holds.
    Transplant(Index),
    /// A subtask step refers to another task of the account.
    Retarget(Index),
    /// The task is called otherwise.
    Name(usize),
    /// The id of the task is left out, so that it is one to be made.
    Unname,
}

#[derive(Clone, Debug)]
enum Change {
    Import(Vec<Part>),
    Again {
        task: Index,
        edits: Vec<Edit>,
        absent: AbsentSteps,
        dry: bool,
    },
    Ask {
        question: Index,
        edits: Vec<Edit>,
    },
    Rename(Index, usize),
    Retarget(Index, Index),
    Append(Index, Part),
    DeleteStep(Index),
    DeleteTask {
        task: Index,
        force: bool,
    },
}

/// Steps whose questions hold documents of at most `depth` levels.
fn parts(depth: u32) -> BoxedStrategy<Vec<Part>> {
    let part = prop_oneof![
        1 => Just(Part::Note),
        1 => any::<Index>().prop_map(Part::Refers),
        2 => question(depth),
    ];
    vec(part, 0..4).boxed()
}

fn question(depth: u32) -> BoxedStrategy<Part> {
    let document = match depth {
        0 => Just(None).boxed(),
        depth => option::of(parts(depth - 1)).boxed(),
    };
    let linked = prop::bool::weighted(0.85);
    (linked, vec(value(document), 1..4))
        .prop_map(|(linked, values)| Part::Asks { linked, values })
        .boxed()
}

/// Steps, one of which is a question.
fn guide() -> impl Strategy<Value = Vec<Part>> {
    (parts(2), question(2), parts(0)).prop_map(|(before, question, after)| {
        let mut parts = before;
        parts.push(question);
        parts.extend(after);
        parts
    })
}

fn value(document: BoxedStrategy<Option<Vec<Part>>>) -> impl Strategy<Value = Value> {
    (0..KEYS.len(), 0..TEXTS.len(), document).prop_map(|(key, text, document)| Value {
        key,
        text,
        document,
    })
}

fn part() -> impl Strategy<Value = Part> {
    parts(1).prop_map(|parts| parts.into_iter().next().unwrap_or(Part::Note))
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    let what = prop_oneof![
        3 => Just(What::Drop),
        2 => index().prop_map(What::Move),
        2 => Just(What::Forget),
        2 => part().prop_map(What::Add),
        1 => Just(What::Silence),
        2 => Just(What::FlipLinked),
        3 => value(option::weighted(0.5, parts(1)).boxed()).prop_map(What::AddValue),
        3 => Just(What::DropValue),
        2 => index().prop_map(What::SwapValues),
        2 => (0..TEXTS.len()).prop_map(What::Reword),
        2 => (0..KEYS.len()).prop_map(What::Rekey),
        2 => Just(What::DropDocument),
        1 => index().prop_map(What::Transplant),
        1 => index().prop_map(What::Retarget),
        2 => (0..TEXTS.len()).prop_map(What::Name),
        1 => Just(What::Unname),
    ];
    (index(), index(), index(), what).prop_map(|(document, step, value, what)| Edit {
        document,
        step,
        value,
        what,
    })
}

fn change() -> impl Strategy<Value = Change> {
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
        1 => parts(2).prop_map(Change::Import),
        10 => again.prop_map(|(task, edits, absent, dry)| Change::Again {
            task,
            edits,
            absent,
            dry,
        }),
        4 => (index(), vec(edit(), 1..3)).prop_map(|(question, edits)| Change::Ask {
            question,
            edits,
        }),
        1 => (index(), 0..TEXTS.len()).prop_map(|(task, text)| Change::Rename(task, text)),
        1 => (index(), index()).prop_map(|(step, task)| Change::Retarget(step, task)),
        1 => (index(), part()).prop_map(|(task, part)| Change::Append(task, part)),
        2 => index().prop_map(Change::DeleteStep),
        2 => (index(), any::<bool>()).prop_map(|(task, force)| Change::DeleteTask { task, force }),
    ]
}

/// The message of a step. `tasks` are those that it may refer to.
fn listed(part: &Part, tasks: &[Task]) -> Step {
    match part {
        Part::Note => document_step(StepType::Information, "note"),
        Part::Refers(_) if tasks.is_empty() => document_step(StepType::Information, "note"),
        Part::Refers(index) => subtask(&Task::default(), index.get(tasks)),
        Part::Asks { linked, values } => {
            let mut seen = Vec::new();
            let values = values.iter().filter(|value| {
                let new = !seen.contains(&value.key);
                seen.push(value.key);
                new
            });
            observation_asking(FeedbackConfig {
                linked: Some(*linked),
                ..linked_question(values.map(|value| worded(value, *linked, tasks)).collect())
            })
        }
    }
}

fn worded(value: &Value, linked: bool, tasks: &[Task]) -> FeedbackValue {
    let document = value.document.as_ref().filter(|_| linked);
    FeedbackValue {
        task_json: document.map(|parts| TaskDocument {
            task: None,
            steps: parts.iter().map(|part| listed(part, tasks)).collect(),
        }),
        ..answer(KEYS[value.key], TEXTS[value.text])
    }
}

/// Changes the document at the index, in the order in which documents nest.
fn change_nth(
    document: &mut TaskDocument,
    index: &mut usize,
    change: &mut dyn FnMut(&mut TaskDocument),
) {
    if *index == 0 {
        change(document);
    }
    let before = *index;
    *index = index.wrapping_sub(1);
    if before == 0 {
        return;
    }
    let configs = document
        .steps
        .iter_mut()
        .flat_map(|step| &mut step.feedback_config);
    let values = configs.flat_map(|config| &mut config.values);
    for inner in values.filter_map(|value| value.task_json.as_mut()) {
        if *index == usize::MAX {
            return;
        }
        change_nth(inner, index, change);
    }
}

/// Makes the edits, where there is something that they fit.
fn edited(mut document: TaskDocument, edits: &[Edit], tasks: &[Task]) -> TaskDocument {
    for edit in edits {
        let there = documents_in(&document);
        let fitting: Vec<usize> = (0..there.len())
            .filter(|at| edit.fits(there[*at]))
            .collect();
        if fitting.is_empty() {
            continue;
        }
        let mut index = *edit.document.get(&fitting);
        let other = match &edit.what {
            What::Transplant(other) => Some((*other.get(&there)).clone()),
            _ => None,
        };
        change_nth(&mut document, &mut index, &mut |document| {
            edit.make(document, other.clone(), tasks);
        });
    }
    document
}

impl Edit {
    /// Whether the document has what the edit changes.
    fn fits(&self, document: &TaskDocument) -> bool {
        let mut steps = document.steps.iter();
        match &self.what {
            What::Add(_) | What::Name(_) | What::Unname => true,
            What::Drop | What::Move(_) | What::Forget => steps.next().is_some(),
            What::Retarget(_) => steps.any(|step| step.r#type() == StepType::Subtask),
            _ => steps.any(|step| !step.feedback_config.is_empty()),
        }
    }

    fn make(&self, document: &mut TaskDocument, other: Option<TaskDocument>, tasks: &[Task]) {
        let count = document.steps.len();
        match &self.what {
            What::Add(part) => {
                let at = self.step.index(count + 1);
                document.steps.insert(at, listed(part, tasks));
                return;
            }
            What::Name(_) | What::Unname => {
                return self.rename(document.task.get_or_insert_default());
            }
            _ if count == 0 => return,
            _ => {}
        }
        let at = self.step.index(count);
        match &self.what {
            What::Drop => {
                document.steps.remove(at);
            }
            What::Move(to) => {
                let step = document.steps.remove(at);
                document.steps.insert(to.index(count), step);
            }
            What::Forget => document.steps[at].guid.clear(),
            What::Silence => document.steps[at].feedback_config.clear(),
            What::Retarget(task) => retarget(&mut document.steps[at], task.get(tasks)),
            _ => {
                // Of the steps only those that ask.
                let mut asking: Vec<&mut FeedbackConfig> = document
                    .steps
                    .iter_mut()
                    .filter(|step| step.r#type() == StepType::Observation)
                    .flat_map(|step| &mut step.feedback_config)
                    .collect();
                let count = asking.len();
                if count > 0 {
                    self.reword(asking[self.step.index(count)], other, tasks);
                }
            }
        }
    }

    fn rename(&self, task: &mut Task) {
        match &self.what {
            What::Name(text) => TEXTS[*text].clone_into(&mut task.name),
            _ => task.guid.clear(),
        }
    }

    /// Changes a question.
    fn reword(&self, config: &mut FeedbackConfig, other: Option<TaskDocument>, tasks: &[Task]) {
        let linked = config.linked.unwrap_or_default();
        let count = config.values.len();
        let at = self.value.index(count);
        let known = |key: usize| config.values.iter().any(|value| value.key == KEYS[key]);
        match &self.what {
            What::FlipLinked => config.linked = Some(!linked),
            What::AddValue(value) if !known(value.key) => {
                config.values.insert(at, worded(value, linked, tasks));
            }
            What::DropValue if count > 1 => {
                config.values.remove(at);
            }
            What::SwapValues(with) => config.values.swap(at, with.index(count)),
            What::Reword(text) => TEXTS[*text].clone_into(&mut config.values[at].value),
            What::Rekey(key) if !known(*key) => {
                KEYS[*key].clone_into(&mut config.values[at].key);
            }
            What::DropDocument => config.values[at].task_json = None,
            What::Transplant(_) if linked => config.values[at].task_json = other,
            _ => {}
        }
    }
}

/// Lets a subtask step refer to the task.
fn retarget(step: &mut Step, task: &Task) {
    if step.r#type() == StepType::Subtask {
        step.subtask_id.clone_from(&task.guid);
        step.subtask_pid = task.product_id;
    }
}

/// The tasks of an account.
fn tasks_of(state: &State) -> Vec<Task> {
    state.iter().map(|(task, _)| task.clone()).collect()
}

/// The tasks of which there is something to say.
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
    let inner = values.filter_map(|value| value.task_json.as_ref());
    1 + inner.map(depth_of).max().unwrap_or(0)
}

/// What a change must come to: `None` when it must go well, else the reasons of
/// which one must be given.
type Refusal = Option<Vec<&'static str>>;

/// Makes the change, and asserts that it is refused when it has to be.
async fn apply(client: &Client, state: &State, change: &Change) -> Option<Effect> {
    let tasks = tasks_of(state);
    match change {
        Change::Import(parts) => {
            let steps = parts.iter().map(|part| listed(part, &tasks)).collect();
            let made = client.import(document("Guide", steps)).await;
            Some(Effect::of(made, None))
        }
        _ if tasks.is_empty() => None,
        Change::Again {
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
        Change::Ask { question, edits } => {
            let steps = steps_of(state);
            let questions = steps.iter().filter(|s| s.r#type() == StepType::Observation);
            let questions: Vec<&Step> = questions.copied().collect();
            if questions.is_empty() {
                return None;
            }
            Some(
                ask(
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
        Change::Retarget(step, task) => {
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
        Change::Append(task, part) => Some(append(client, &tasks, task.get(&tasks), part).await),
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

/// What a change may have changed.
enum Effect {
    Any,
    Nothing,
}

impl Effect {
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
    let deep = depth_of(&document) > 8;
    let transplanted = edits
        .iter()
        .any(|edit| matches!(edit.what, What::Transplant(_) | What::Rekey(_)));
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
        // A question of which nothing is said cannot be asked anew.
        let silent = edits.iter().any(|edit| matches!(edit.what, What::Silence));
        allowed.extend(silent.then_some("FIELD_REQUIRED"));
        // The steps of another task are none of this one, and under another value's
        // key a document is that value's task's.
        allowed.extend(transplanted.then_some("STEP_NOT_FOUND"));
    }
    let refused = outcome.is_err();
    match Effect::of(outcome, refused.then_some(allowed)) {
        Effect::Any if dry || unchanged => Effect::Nothing,
        outcome => outcome,
    }
}

async fn ask(client: &Client, step: &Step, edits: &[Edit], tasks: &[Task]) -> Effect {
    let before = &step.feedback_config[0];
    let mut after = before.clone();
    for edit in edits {
        edit.reword(&mut after, None, tasks);
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

async fn append(client: &Client, tasks: &[Task], task: &Task, part: &Part) -> Effect {
    let mut step = Step {
        task: task.guid.clone(),
        ..listed(part, tasks)
    };
    for value in step
        .feedback_config
        .iter_mut()
        .flat_map(|config| &mut config.values)
    {
        value.task_json = None;
    }
    let links = matches!(part, Part::Asks { linked: true, .. });
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

/// Asserts that what has changed has a new version, and nothing else has.
fn versions_tell_what_changed(before: &State, after: &State) {
    let tasks: BTreeMap<String, Task> = tasks_of(before)
        .into_iter()
        .map(|task| (task.guid.clone(), task))
        .collect();
    for task in tasks_of(after) {
        if let Some(before) = tasks.get(&task.guid) {
            let settled = without_system_fields_of_task;
            let changed = settled(task.clone()) != settled(before.clone());
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
            let settled = |step: &Step| without_system_fields_of_step(step.clone());
            let changed = settled(step) != settled(before);
            assert_eq!(step.etag != before.etag, changed, "{before:?} {step:?}");
            let later = step.modified_ts != before.modified_ts;
            assert_eq!(later, changed, "{before:?} {step:?}");
        }
    }
}

async fn links_stay_consistent(client: Client, (first, changes): (Vec<Part>, Vec<Change>)) {
    let mut state = State::new();
    for change in [Change::Import(first)].iter().chain(&changes) {
        let Some(outcome) = apply(&client, &state, change).await else {
            continue;
        };
        let after = client.tasks_with_steps().await;
        match outcome {
            Effect::Any => {
                links_are_consistent(&after);
                versions_tell_what_changed(&state, &after);
            }
            Effect::Nothing => assert_eq!(after, state),
        }
        state = after;
    }
    for task in tasks_of(&state) {
        let exported = client.exported(&task.guid).await;
        if depth_of(&exported) <= 8 {
            let response = client.import(exported).await.accepted();
            assert_eq!(response.ignored_paths, [""; 0]);
            assert_eq!(response.task, Some(task));
        }
    }
    assert_eq!(client.tasks_with_steps().await, state);
}
