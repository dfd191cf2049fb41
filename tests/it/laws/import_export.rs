//! An export equals the import, and importing it changes nothing.

use crate::{
    kit::{contract::descriptor, sample::answer as answer_of},
    prelude::*,
};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select, subsequence},
};
use prost::Message;
use prost_reflect::DynamicMessage;

const KEYS: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 3] = ["Red", "Grün 🔧", "Red"];

/// A plan of a document.
#[derive(Clone, Debug)]
struct DocumentPlan {
    task: Vec<&'static str>,
    steps: Vec<StepPlan>,
}

#[derive(Clone, Debug)]
struct StepPlan {
    what: StepKind,
    fields: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum StepKind {
    Plain(StepType),
    /// A subtask step of a task inside or outside of the whole document.
    Subtask(Index),
    /// Answers that each manage a task.
    Question(Vec<Answer>),
}

#[derive(Clone, Debug)]
struct Answer {
    text: usize,
    document: DocumentPlan,
    /// Where its wiring step is listed, if it is.
    listed: Option<Index>,
    /// Where its wiring step is listed if it must be, and `listed` is absent.
    place: Index,
    named_by: TaskName,
}

/// How a document names its task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TaskName {
    Link,
    Id,
    Both,
}

/// The optional fields of a task.
const TASK_FIELDS: [&str; 5] = [
    "dependencies",
    "external_id",
    "published",
    "roles",
    "translations",
];

/// The optional fields of a step.
const STEP_FIELDS: [&str; 10] = [
    "body",
    "external_id",
    "instructions",
    "looping",
    "parts",
    "published",
    "skills",
    "tags",
    "translations",
    "cost",
];

fn plan(depth: u32) -> BoxedStrategy<DocumentPlan> {
    let task = subsequence(TASK_FIELDS.to_vec(), 0..=TASK_FIELDS.len());
    (task, vec(step_plan(depth), 0..5))
        .prop_map(|(task, steps)| DocumentPlan { task, steps })
        .boxed()
}

fn step_plan(depth: u32) -> impl Strategy<Value = StepPlan> {
    let plain = select(vec![
        StepType::Solution,
        StepType::Observation,
        StepType::Information,
        StepType::End,
        StepType::Idp,
    ]);
    let what = match depth {
        0 => plain.prop_map(StepKind::Plain).boxed(),
        depth => prop_oneof![
            3 => plain.prop_map(StepKind::Plain),
            2 => any::<Index>().prop_map(StepKind::Subtask),
            3 => vec(value(depth - 1), 1..=KEYS.len()).prop_map(StepKind::Question),
        ]
        .boxed(),
    };
    (what, fields()).prop_map(|(what, fields)| StepPlan { what, fields })
}

fn value(depth: u32) -> impl Strategy<Value = Answer> {
    let document = prop_oneof![
        1 => Just(DocumentPlan { task: Vec::new(), steps: Vec::new() }),
        2 => plan(depth),
    ];
    let listed = proptest::option::weighted(0.3, any::<Index>());
    let named_by = select(vec![TaskName::Link, TaskName::Id, TaskName::Both]);
    let value = (0..TEXTS.len(), document, listed, any::<Index>(), named_by);
    value.prop_map(|(text, document, listed, place, named_by)| Answer {
        text,
        document,
        listed,
        place,
        named_by,
    })
}

fn fields() -> impl Strategy<Value = Vec<&'static str>> {
    let dependencies = select(vec![
        vec![],
        vec!["dependencies"],
        vec!["dependency_shorthand"],
    ]);
    let others = prop_oneof![
        1 => Just(Vec::new()),
        2 => subsequence(STEP_FIELDS.to_vec(), 0..=STEP_FIELDS.len()),
    ];
    (dependencies, others).prop_map(|(dependencies, others)| [dependencies, others].concat())
}

impl DocumentPlan {
    /// The task of the document and of those inside it, in the order in which
    /// they nest, with ids that only connect the parts of the document.
    fn tasks(&self, name: &str) -> Vec<Task> {
        let own = task(name).with_guid(unknown_guid());
        let answers = self.steps.iter().flat_map(|planned| match &planned.what {
            StepKind::Question(answers) => answers.as_slice(),
            StepKind::Plain(_) | StepKind::Subtask(_) => &[],
        });
        let inside = answers.flat_map(|answer| answer.document.tasks(TEXTS[answer.text]));
        [own].into_iter().chain(inside).collect()
    }

    fn is_empty(&self) -> bool {
        self.task.is_empty() && self.steps.is_empty()
    }
}

/// A document as it is exported, and as a caller may write it.
struct Written {
    exported: TaskDocument,
    sent: TaskDocument,
}

/// A step as it is exported, as a caller may write it, and its unlisted wiring steps.
struct WrittenStep {
    exported: Step,
    sent: Step,
    behind: Vec<Step>,
}

struct Writer<'a> {
    /// The tasks in the order in which their documents nest.
    tasks: Vec<Task>,
    /// How many documents have been started.
    started: usize,
    outside: &'a Task,
    /// Whether the caller omits default values.
    omits_defaults: bool,
}

impl Writer<'_> {
    /// Writes the next document.
    fn document(&mut self, plan: &DocumentPlan, managed: Option<(&Task, usize)>) -> Written {
        let own = self.tasks[self.started].clone();
        self.started += 1;
        let mut exported = effective_task(own.clone(), &plan.task);
        if managed.is_some() {
            // It has none.
            exported.external_id = None;
        }
        let mut sent = self.sent_task(exported.clone());
        match managed {
            None => {
                exported.set_type(TaskType::Standard);
                sent.guid.clear();
            }
            Some((parent, idx)) => {
                exported.set_type(TaskType::Linked);
                exported.parent_guid.clone_from(&parent.guid);
                exported.idx = i32::try_from(idx).unwrap();
            }
        }
        let mut documents = Written {
            exported: document_with(exported, Vec::new()),
            sent: document_with(sent, Vec::new()),
        };
        for mut step in self.steps(plan, &own) {
            step.exported.task.clone_from(&own.guid);
            step.sent.task.clone_from(&own.guid);
            documents.exported.steps.push(step.exported);
            documents.exported.steps.extend(step.behind);
            documents.sent.steps.push(step.sent);
        }
        documents
    }

    fn steps(&mut self, plan: &DocumentPlan, own: &Task) -> Vec<WrittenStep> {
        let referred: Vec<String> = plan
            .steps
            .iter()
            .filter_map(|planned| match &planned.what {
                StepKind::Subtask(to) => Some(self.target(to).guid.clone()),
                StepKind::Plain(_) | StepKind::Question(_) => None,
            })
            .collect();
        let mut wiring = Vec::new();
        let mut steps: Vec<WrittenStep> = Vec::new();
        for planned in &plan.steps {
            let step = match &planned.what {
                StepKind::Plain(kind) => {
                    self.written(effective(document_step(*kind, "Title"), &planned.fields))
                }
                StepKind::Subtask(to) => {
                    let step = reference(self.target(to));
                    self.written(effective(step, &planned.fields))
                }
                StepKind::Question(answers) => {
                    let mut step = effective(
                        document_step(StepType::Observation, "Which?"),
                        &planned.fields,
                    );
                    step.feedback_config = vec![linked_question(Vec::new())];
                    let mut step = self.written(step);
                    for (idx, answer) in answers.iter().enumerate() {
                        let task = self.tasks[self.started].clone();
                        let [exported, sent] = self.value(answer, own, idx);
                        step.exported.feedback_config[0].values.push(exported);
                        step.sent.feedback_config[0].values.push(sent);
                        let wires =
                            effective(reference(&task), &[]).with(|it| it.link = task.guid.clone());
                        // Otherwise another step that refers to the task would become
                        // its wiring step.
                        let known = referred.contains(&task.guid);
                        match answer.listed.or(known.then_some(answer.place)) {
                            Some(place) => wiring.push((place, self.written(wires))),
                            None => step.behind.push(wires),
                        }
                    }
                    step
                }
            };
            steps.push(step);
        }
        for (place, step) in wiring {
            steps.insert(place.index(steps.len() + 1), step);
        }
        steps
    }

    /// A value as it is exported, and as it is sent.
    fn value(&mut self, answer: &Answer, own: &Task, idx: usize) -> [FeedbackValue; 2] {
        let id = self.tasks[self.started].guid.clone();
        let Written { exported, mut sent } = self.document(&answer.document, Some((own, idx)));
        if answer.named_by == TaskName::Link {
            sent.task.as_mut().unwrap().guid.clear();
        }
        let no_document = answer.named_by == TaskName::Link && answer.document.is_empty();
        let text = TEXTS[answer.text];
        [
            answer_with(KEYS[idx], text, exported).with(|it| it.link = id.clone()),
            FeedbackValue {
                link: if answer.named_by == TaskName::Id {
                    String::new()
                } else {
                    id
                },
                task_json: (!no_document).then(|| Box::new(sent)),
                ..answer_of(KEYS[idx], text)
            },
        ]
    }

    fn target(&self, to: &Index) -> &Task {
        let index = to.index(self.tasks.len() + 1);
        self.tasks.get(index).unwrap_or(self.outside)
    }

    fn written(&self, exported: Step) -> WrittenStep {
        let mut sent = exported.clone();
        if self.omits_defaults {
            sent.cost = sent.cost.filter(|cost| *cost != 0);
            sent.published = sent.published.filter(|published| *published != 1);
            for config in &mut sent.feedback_config {
                config.linked = config.linked.filter(|linked| *linked);
            }
            for row in sent.translations.values_mut() {
                row.locked = row.locked.filter(|locked| !locked);
            }
            if sent.dependency_shorthand.is_some() {
                sent.dependencies = None;
            }
            if sent.r#type() == StepType::Subtask {
                sent.title.clear();
            }
        }
        WrittenStep {
            exported,
            sent,
            behind: Vec::new(),
        }
    }

    fn sent_task(&self, mut task: Task) -> Task {
        if self.omits_defaults {
            task.published = task.published.filter(|published| *published != 1);
            if task.roles.len() == 7 {
                task.roles.clear();
            }
            for row in task.translations.values_mut() {
                row.locked = row.locked.filter(|locked| !locked);
            }
        }
        task
    }
}

/// A subtask step that refers to the task.
fn reference(task: &Task) -> Step {
    subtask(&Task::default(), task).titled(task.name.clone())
}

/// The task with these fields, and the defaults of the others.
fn effective_task(task: Task, fields: &[&str]) -> Task {
    let mut rich = full_task().with_external_id(unknown_guid());
    for row in rich.translations.values_mut() {
        row.locked = Some(row.locked.unwrap_or(true));
    }
    let plain = task.with_published(1).with_roles(vec![0, 1, 2, 3, 5, 7, 8]);
    with_fields("Task", &plain, &rich, fields)
}

/// The step with these fields, and the defaults of the others.
fn effective(step: Step, fields: &[&str]) -> Step {
    let is_costly = matches!(step.r#type(), StepType::Solution | StepType::Idp);
    let rich = full_step(&Task::default())
        .with(|it| it.cost = Some(if is_costly { 7 } else { 0 }))
        .with_external_id(unknown_guid())
        .with_shorthand("components.7.power = on")
        .translated("fr", step_translation("Vanne").with_lock(true));
    let mut plain = step.with(|it| it.cost = Some(0)).with_published(1);
    for config in &mut plain.feedback_config {
        config.linked = Some(config.linked.unwrap_or(false));
    }
    let mut step = with_fields("Step", &plain, &rich, fields);
    if step.dependency_shorthand.is_some() {
        let mut power = condition("power", "=", "on");
        power.path = "components.7".to_owned();
        step.dependencies = Some(all_of(vec![comparison(power)]));
    }
    step
}

/// The message with these fields of another one.
fn with_fields<M: Message + Default>(name: &str, to: &M, from: &M, fields: &[&str]) -> M {
    let dynamic = |message: &M| {
        let message = DynamicMessage::decode(descriptor(name), &*message.encode_to_vec());
        message.expect("the message")
    };
    let (mut to, from) = (dynamic(to), dynamic(from));
    for field in fields {
        let value = from.get_field_by_name(field).expect("a field");
        to.set_field_by_name(field, value.into_owned());
    }
    to.transcode_to().expect("the message")
}

#[apply(property_on_both_databases)]
#[cases(8, (plan(2), any::<bool>()))]
async fn exports_equal_what_was_imported(
    client: Client,
    (plan, omits_defaults): (DocumentPlan, bool),
) {
    let outside = client.given_task(task("Outside")).await;
    let mut writer = Writer {
        tasks: plan.tasks("Guide"),
        started: 0,
        outside: &outside,
        omits_defaults,
    };
    let Written {
        exported: expected,
        sent,
    } = writer.document(&plan, None);
    // A new task has nothing to reset.
    let absent = [AbsentFields::Keep, AbsentFields::Reset][usize::from(omits_defaults)];
    let request = import_of(sent).with(|it| it.set_absent_fields(absent));
    let response = client.call(request).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let made = response.task.unwrap();
    let mut exported = client.exported(&made.guid).await;
    take_subtask_external_ids(&mut exported, &made);
    assert_eq!(canonical(exported.clone()), canonical(expected));

    let before = client.tasks_with_steps().await;
    for inner in documents_in(&exported) {
        let response = client.import(inner.clone()).await.accepted();
        assert_eq!(response.ignored_paths, [""; 0]);
        assert_eq!(response.task, inner.task);
    }
    assert_eq!(client.tasks_with_steps().await, before);

    let mut copied = exported;
    // No two tasks have one external id.
    copied.task.as_mut().unwrap().external_id = None;
    let mut copy = copied.clone();
    copy.task.as_mut().unwrap().guid.clear();
    let response = client.import(copy).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let copy = client.exported(&response.task.unwrap().guid).await;
    assert_eq!(canonical(copy), canonical(copied));
    let mut after = client.tasks_with_steps().await;
    after.truncate(before.len());
    assert_eq!(after, before);
}

/// Removes the external ids of subtasks. Only the outermost task has one.
fn take_subtask_external_ids(document: &mut TaskDocument, root: &Task) {
    for step in &mut document.steps {
        let is_of_root = step.subtask_id == root.guid;
        let expected = root.external_id.clone().filter(|_| is_of_root);
        assert_eq!(step.subtask_external_id.take(), expected);
        let values = step.feedback_config.iter_mut();
        for value in values.flat_map(|it| &mut it.values) {
            if let Some(inner) = &mut value.task_json {
                take_subtask_external_ids(inner, root);
            }
        }
    }
}

/// Gives the steps of a document the ids of stored ones of the same type.
fn take_ids(sent: &mut TaskDocument, stored: &TaskDocument) {
    for (sent, stored) in sent.steps.iter_mut().zip(&stored.steps) {
        let is_wiring = !sent.link.is_empty() || !stored.link.is_empty();
        if sent.r#type != stored.r#type || is_wiring {
            continue;
        }
        sent.guid.clone_from(&stored.guid);
        let values = sent
            .feedback_config
            .iter_mut()
            .flat_map(|it| &mut it.values);
        for (value, stored) in values.zip(answers_of(stored)) {
            if let (Some(sent), Some(stored)) = (&mut value.task_json, &stored.task_json) {
                take_ids(sent, stored);
            }
        }
    }
}

#[apply(property_on_both_databases)]
#[cases(8, (plan(2), plan(2), any::<bool>()))]
async fn a_reset_makes_a_guide_equal_to_any_document(
    client: Client,
    (before, after, omits_defaults): (DocumentPlan, DocumentPlan, bool),
) {
    let outside = client.given_task(task("Outside")).await;
    let writer = |tasks| Writer {
        tasks,
        started: 0,
        outside: &outside,
        omits_defaults,
    };
    let before = writer(before.tasks("Before")).document(&before, None).sent;
    let made = client.imported(before).await;
    let stored = client.exported(&made.guid).await;
    let mut tasks = after.tasks("After");
    tasks[0].guid.clone_from(&made.guid);
    let Written {
        exported: expected,
        mut sent,
    } = writer(tasks).document(&after, None);
    sent.task.as_mut().unwrap().guid = made.guid.clone();
    take_ids(&mut sent, &stored);
    let request = import_of(sent)
        .with(|it| it.set_absent_steps(AbsentSteps::Delete))
        .with(|it| it.set_absent_fields(AbsentFields::Reset));
    let dry = request.clone().with(|it| it.validate_only = true);
    let shown = client.call(dry).await.accepted();
    client.call(request.clone()).await.accepted();
    let exported = client.exported(&made.guid).await;
    assert_eq!(
        canonical(shown.document.unwrap()),
        canonical(exported.clone())
    );
    let mut plain = exported.clone();
    take_subtask_external_ids(&mut plain, &client.get_task(&made.guid).await.accepted());
    assert_eq!(canonical(plain), canonical(expected));

    let again = request.with(|it| it.document = Some(exported.clone()));
    let again = client.call(again).await.accepted();
    assert_eq!(again.outcome(), ImportOutcome::Unchanged);
    assert_eq!(client.exported(&made.guid).await, exported);
}
