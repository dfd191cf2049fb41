//! Guides that follow from a seed.

use serde_json::{Value, from_value, json};
use uuid::Uuid;

use crate::domain::{
    analysis::{Guide, GuideDraft, KnownVariables, Outside, OutsideSetter, SourceStep, StopSignal},
    decide::WriteContext,
    dependency::Group,
    ids::{AccountId, ProductId, StepId, TaskId},
    step::{Cost, NewStep, Step, StepContent, StepKind, StepType, SubtaskRef},
    task::{AccessLevel, NewTask, Published, Task, TaskContent},
    text::Name,
    time::Timestamp,
};

const NAMES: [&str; 5] = ["one", "two", "three", "elsewhere", "unknown"];
const KEYS: [&str; 4] = ["a", "b", "1", "2"];

/// Random numbers that follow from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn group(&mut self, depth: usize) -> Value {
        let targets = KEYS.map(Value::from).into_iter();
        let targets = Vec::from_iter(targets.chain([json!(1.0), json!(1.5), json!(true)]));
        let nodes = (0..1 + self.below(3)).map(|_| match self.below(4) {
            0 if depth > 0 => self.group(depth - 1),
            _ => json!({
                "path": self.pick(&["components.1", "components.1", ""]),
                "variable": self.pick(&NAMES),
                "operator": self.pick(&["=", "=", "=", "!=", "<", ">"]),
                "targets": [self.pick(&targets), self.pick(&targets)],
            }),
        });
        let nodes: Vec<Value> = nodes.collect();
        json!([self.pick(&["AND", "OR"]), nodes])
    }

    fn dependencies(&mut self, share: usize) -> Option<Group> {
        (self.below(6) < share).then(|| from_value(self.group(2)).expect("a group"))
    }

    fn step(&mut self, task: TaskId, write: &WriteContext) -> SourceStep {
        use StepType::{End, Idp, Information, Observation, Solution, Subtask};
        let types = [
            Information,
            Solution,
            Idp,
            End,
            Subtask,
            Observation,
            Observation,
        ];
        let step_type = self.pick(&types);
        let product = ProductId::FIRST;
        let subtask = SubtaskRef {
            task: task_id(self.below(3)),
            product,
        };
        let keys = KEYS.iter().skip(self.below(2)).take(1 + self.below(3));
        let values: Vec<Value> = keys.map(|key| json!({"key": key, "value": key})).collect();
        let name = self.pick(&NAMES[..3]);
        let question = json!({"type": "enum", "name": name, "linked": false, "values": values});
        let question =
            (step_type == Observation).then(|| from_value(question).expect("a question"));
        let subtask = (step_type == Subtask).then_some(subtask);
        let content = StepContent {
            dependencies: self.dependencies(4),
            published: Published::new(i32::from(self.below(9) > 0)).expect("a number"),
            ..StepContent::default()
        };
        let new = NewStep {
            task,
            product,
            title: String::new(),
            kind: StepKind::new(step_type, Cost::default(), question, subtask).expect("a kind"),
            content,
        };
        Step::create(new, write).into()
    }

    /// A guide with two more tasks. An observation of another guide sets the name `elsewhere`.
    pub fn guide(&mut self, stop: StopSignal<'_>) -> Option<Guide> {
        let write = WriteContext {
            account: AccountId::parse("tests").expect("an account"),
            subject: String::new(),
            now: Timestamp(0),
            new_id: Uuid::now_v7,
            max_message_bytes: 1024,
            automatic_revisions: 0,
            keeps_deleted_tasks: false,
        };
        let tasks = [7, 4, 3].into_iter().enumerate().map(|(index, max_steps)| {
            let content = TaskContent {
                dependencies: self.dependencies(2),
                roles: AccessLevel::ALL
                    .into_iter()
                    .take(1 + self.below(2))
                    .collect(),
                ..TaskContent::default()
            };
            let new = NewTask {
                name: Name::parse("Guide".to_owned()).expect("a name"),
                product: ProductId::FIRST,
                content,
            };
            let task = Task {
                guid: task_id(index),
                ..Task::create(new, None, &write)
            };
            let steps = (0..1 + self.below(max_steps)).map(|_| self.step(task.guid, &write));
            let steps = Some(steps.collect());
            (task.guid, (task.into(), steps))
        });
        let draft = GuideDraft::new(task_id(0), tasks.collect(), &KnownVariables::default());
        let setter = OutsideSetter {
            task: task_id(100),
            step: StepId(Uuid::nil()),
            title: String::new(),
            keys: vec!["a".to_owned(), "1".to_owned()],
        };
        let outside = Outside {
            list: vec![setter],
            is_complete: true,
        };
        let outside = [("components.1.elsewhere".to_owned(), outside)].into();
        draft.expect("the root").finish(outside, stop)
    }
}

fn task_id(index: usize) -> TaskId {
    TaskId(Uuid::from_u128(index as u128 + 1))
}
