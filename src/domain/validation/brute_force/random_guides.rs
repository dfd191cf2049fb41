//! Guides that follow from a seed.

use serde_json::{Value, from_value, json};
use uuid::Uuid;

use crate::domain::{
    analysis::{Guide, GuideDraft, KnownVariables, NEVER, Outside, OutsideSetter, SourceStep},
    decide::WriteContext,
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
                "path": self.pick(&["components.7", "components.7", ""]),
                "variable": self.pick(&NAMES),
                "operator": self.pick(&["=", "=", "=", "!=", "<", ">"]),
                "targets": [self.pick(&targets), self.pick(&targets)],
            }),
        });
        let nodes: Vec<Value> = nodes.collect();
        json!([self.pick(&["AND", "OR"]), nodes])
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
        let product = ProductId::new(7).expect("a product");
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
        let kind = StepKind::new(step_type, Cost::default(), question, subtask).expect("a kind");
        let dependencies = (self.below(5) > 1).then(|| from_value(self.group(2)).expect("a group"));
        let published = Published::new(i32::from(self.below(9) > 0)).expect("a number");
        let content = StepContent {
            dependencies,
            published,
            ..StepContent::default()
        };
        Step::create(
            NewStep {
                task,
                product,
                title: String::new(),
                kind,
                content,
            },
            write,
        )
        .into()
    }

    /// A guide with two more tasks. An observation of another guide sets the name `elsewhere`.
    pub fn guide(&mut self) -> Guide {
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
            let dependencies =
                (self.below(3) == 0).then(|| from_value(self.group(2)).expect("a group"));
            let roles = Vec::from_iter(AccessLevel::ALL.into_iter().take(1 + self.below(2)));
            let content = TaskContent {
                dependencies,
                roles,
                ..TaskContent::default()
            };
            let name = Name::parse("Guide".to_owned()).expect("a name");
            let product = ProductId::new(7).expect("a product");
            let task = Task::create(
                NewTask {
                    name,
                    product,
                    content,
                },
                None,
                &write,
            );
            let task = Task {
                guid: task_id(index),
                ..task
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
        let outside = [("components.7.elsewhere".to_owned(), outside)].into();
        draft
            .and_then(|draft| draft.finish(outside, NEVER))
            .expect("a guide")
    }
}

fn task_id(index: usize) -> TaskId {
    TaskId(Uuid::from_u128(index as u128 + 1))
}
