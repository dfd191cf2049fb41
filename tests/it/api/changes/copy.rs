//! What the changes of any writes tell: exactly what differs, so that copies which follow them equal
//! what the service exports.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use prost::Message;
use prost_reflect::{DynamicMessage, MapKey, Value};
use prost_types::Timestamp;

use crate::{
    kit::{
        contract::descriptor,
        random_writes::{Write, write},
    },
    prelude::*,
};

/// What follows from other fields, or is told in another way.
const UNTOLD: [&str; 5] = [
    "dependency_shorthand",
    "dirty_record",
    "etag",
    "modified_ts",
    "steps",
];

/// What a change tells.
#[derive(PartialEq, Debug)]
struct Told {
    kind: ChangeKind,
    etag: String,
    /// `None` if it was deleted.
    time: Option<Timestamp>,
    fields: Vec<String>,
    step_count: usize,
}

impl Told {
    fn by(change: &Change) -> Self {
        Self {
            kind: change.kind(),
            etag: change.etag.clone(),
            time: change.changed_ts.filter(|_| !change.etag.is_empty()),
            fields: change.fields.clone(),
            step_count: change.step_count.try_into().expect("a number of steps"),
        }
    }

    fn new(kind: ChangeKind, etag: &str, time: Option<Timestamp>) -> Self {
        Self {
            kind,
            etag: etag.to_owned(),
            time,
            fields: Vec::new(),
            step_count: 0,
        }
    }
}

/// The changes of each task, and of each of its steps.
type Differences = BTreeMap<(String, String), Told>;

/// The fields in which two states of a task or step differ.
fn differing_fields(name: &str, [before, after]: [&impl Message; 2]) -> Vec<String> {
    let read = |message: &[u8]| DynamicMessage::decode(descriptor(name), message);
    let before = read(&before.encode_to_vec()).expect("a message");
    let after = read(&after.encode_to_vec()).expect("a message");
    let mut differing = BTreeSet::new();
    for field in descriptor(name).fields() {
        let (was, is) = (before.get_field(&field), after.get_field(&field));
        match (&*was, &*is) {
            (Value::Map(was), Value::Map(is)) => {
                let keys = was.keys().chain(is.keys());
                let changed = keys.filter(|key| was.get(key) != is.get(key));
                differing.extend(changed.map(|key| match key {
                    MapKey::String(key) => format!("{}.{key}", field.name()),
                    key => panic!("{key:?}"),
                }));
            }
            _ if was == is || UNTOLD.contains(&field.name()) => {}
            _ => drop(differing.insert(field.name().to_owned())),
        }
    }
    differing.into_iter().collect()
}

/// The copy of a reader: tasks and steps by their ids.
#[derive(Default, PartialEq, Debug)]
pub struct Copy {
    tasks: BTreeMap<String, Task>,
    steps: BTreeMap<String, Step>,
}

impl Copy {
    /// All that there is.
    pub async fn of(client: &Client) -> Self {
        let mut copy = Self::default();
        for (task, steps) in client.tasks_with_steps().await {
            copy.put(task, steps);
        }
        copy
    }

    fn put(&mut self, task: Task, steps: Vec<Step>) {
        self.tasks.insert(task.guid.clone(), task);
        self.steps
            .extend(steps.into_iter().map(|step| (step.guid.clone(), step)));
    }

    /// Reads what a change names. If it no longer exists, a later change deletes it.
    pub async fn follow(&mut self, client: &Client, change: &Change) {
        let task = client.get_task(&change.task).await.ok();
        match change.kind() {
            ChangeKind::TaskDeleted => {
                self.tasks.remove(&change.task);
                self.steps.retain(|_, step| step.task != change.task);
            }
            ChangeKind::StepDeleted => {
                self.steps.remove(&change.step);
            }
            ChangeKind::TaskCreated => {
                self.steps.retain(|_, step| step.task != change.task);
                if let Some(task) = &task {
                    let steps = client.steps_with_bodies(&task.guid).await;
                    self.put(task.clone(), steps);
                }
            }
            ChangeKind::StepCreated | ChangeKind::StepUpdated => {
                if let Ok(step) = client.get_step(&change.step).await {
                    self.steps.insert(step.guid.clone(), step);
                }
            }
            ChangeKind::TaskUpdated | ChangeKind::Unspecified => {}
        }
        // The list of steps is a field of the task.
        if change.kind() != ChangeKind::TaskDeleted {
            self.put_task(task);
        }
    }

    /// What differs in a later state.
    fn differences(&self, later: &Self) -> Differences {
        use ChangeKind::*;
        let mut differences = Differences::new();
        let of_task = |task: &str| (task.to_owned(), String::new());
        let steps = |of: &Self, task: &str| of.tasks[task].steps.len();
        for (guid, task) in &later.tasks {
            let told = |kind| Told::new(kind, &task.etag, task.modified_ts);
            let told = match self.tasks.get(guid) {
                None => Some(Told {
                    step_count: steps(later, guid),
                    ..told(TaskCreated)
                }),
                Some(before) => {
                    let mut fields = differing_fields("Task", [before, task]);
                    let stayed = |of: &Task, in_other: &Task| -> Vec<String> {
                        let steps = of.steps.iter();
                        let stayed = steps.filter(|step| in_other.steps.contains(step));
                        stayed.cloned().collect()
                    };
                    // Created and deleted steps say themselves how the list differs.
                    let moved = stayed(before, task) != stayed(task, before);
                    if moved || !fields.is_empty() && before.steps != task.steps {
                        fields.push("steps".to_owned());
                        fields.sort();
                    }
                    (!fields.is_empty()).then(|| Told {
                        fields,
                        ..told(TaskUpdated)
                    })
                }
            };
            differences.extend(told.map(|told| (of_task(guid), told)));
        }
        for guid in self
            .tasks
            .keys()
            .filter(|it| !later.tasks.contains_key(*it))
        {
            let told = Told {
                step_count: steps(self, guid),
                ..Told::new(TaskDeleted, "", None)
            };
            differences.insert(of_task(guid), told);
        }
        // Steps that come and go with their task are not told.
        let stayed = |step: &&Step| {
            [self, later]
                .iter()
                .all(|it| it.tasks.contains_key(&step.task))
        };
        let of_step = |step: &Step| (step.task.clone(), step.guid.clone());
        for step in later.steps.values().filter(stayed) {
            let told = |kind| Told::new(kind, &step.etag, step.modified_ts);
            let told = match self.steps.get(&step.guid) {
                None => told(StepCreated),
                Some(before) => {
                    let fields = differing_fields("Step", [before, step]);
                    if fields.is_empty() {
                        continue;
                    }
                    Told {
                        fields,
                        ..told(StepUpdated)
                    }
                }
            };
            differences.insert(of_step(step), told);
        }
        let gone = self.steps.values().filter(stayed);
        let gone = gone.filter(|step| !later.steps.contains_key(&step.guid));
        differences.extend(gone.map(|step| (of_step(step), Told::new(StepDeleted, "", None))));
        differences
    }

    fn put_task(&mut self, task: Option<Task>) {
        if let Some(task) = task {
            self.tasks.insert(task.guid.clone(), task);
        }
    }
}

/// Each write reports all differences once, in one transaction. Two copies equal the stored state:
/// the copy of a reader that follows from the beginning, and the copy of a reader that begins in
/// the middle and gets every change of the second half twice.
#[apply(property_on_both_databases)]
#[cases(8, vec(write(), 1..24))]
async fn changes_are_what_differs(client: Client, writes: Vec<Write>) {
    let client = client.with_metadata("x-subject", "ana");
    let start = client.cursor_now().await;
    let (mut cursor, mut before) = (start.clone(), Copy::default());
    let (mut early, mut late) = (Copy::default(), Copy::default());
    let mut middle = start.clone();
    for (number, write) in writes.iter().enumerate() {
        if number == writes.len() / 2 {
            middle = client.cursor_now().await;
            late = Copy::of(&client).await;
        }
        let Some(call) = write.call(&client, number).await.accepted() else {
            continue;
        };
        for _ in 0..=usize::from(call.has_request_id()) {
            call.send(&client).await.ok();
        }
        let (changes, next) = client.changes_after(&cursor).await;
        let after = Copy::of(&client).await;
        let told = changes.iter().map(|change| {
            let about = (change.task.clone(), change.step.clone());
            (about, Told::by(change))
        });
        let once = Differences::from_iter(told);
        assert_eq!(once, before.differences(&after), "{call:?}");
        assert_eq!(once.len(), changes.len(), "{changes:?}");
        for (number, change) in changes.iter().enumerate() {
            let is_last = number + 1 == changes.len();
            assert_eq!(change.transaction, changes[0].transaction, "{changes:?}");
            assert_eq!(change.transaction_end, is_last, "{changes:?}");
            assert_eq!(change.changed_ts, changes[0].changed_ts, "{changes:?}");
            assert_eq!((call.rpc(), "ana"), (&*change.rpc, &*change.subject));
        }
        (cursor, before) = (next, after);
    }
    let (changes, _) = client.changes_after(&start).await;
    for change in &changes {
        early.follow(&client, change).await;
    }
    let (changes, _) = client.changes_after(&middle).await;
    for change in changes.iter().chain(&changes) {
        late.follow(&client, change).await;
    }
    assert_eq!(early, before);
    assert_eq!(late, before);
}
