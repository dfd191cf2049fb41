//! Tasks and steps whose writes are shown as statements.

use uuid::Uuid;

use crate::domain::{
    changes::Changes,
    decide::{
        CreateStep, ManagedTasks, NewStepSnapshot, StepSnapshot, UpdateStep, WriteContext,
        create_task,
    },
    dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
    etag::ExpectedEtag,
    feedback::{Feedback, FeedbackValue},
    ids::{AccountId, ProductId, TaskId},
    order::{Insertion, Place},
    step::{NewStep, Step, StepContent, StepKind, StepPatch},
    task::{AccessLevel, NewTask, Published, Task},
    text::{Body, Label, Name, Tag, Title},
    time::Timestamp,
    translation::{Language, StepOverlay, TaskOverlay},
};

pub fn context() -> WriteContext {
    WriteContext {
        account: AccountId::parse("42").expect("an account"),
        now: Timestamp(1),
        new_id: Uuid::nil,
        max_message_bytes: 1 << 20,
    }
}

pub fn name(name: &str) -> Name {
    Name::parse(name.to_owned()).expect("a name")
}

pub fn title(title: &str) -> Title {
    Title::parse(title.to_owned()).expect("a title")
}

pub fn label(label: &str) -> Label {
    Label::parse(label.to_owned()).expect("a label")
}

pub fn language() -> Language {
    Language::parse("de").expect("a language")
}

pub fn task() -> (Changes, Task) {
    let new = NewTask {
        name: name("Task"),
        product: ProductId::new(1).expect("a product"),
        dependencies: None,
        published: Published::default(),
        roles: AccessLevel::ALL.to_vec(),
        translations: [(language(), task_overlay())].into(),
    };
    create_task(new, &context()).expect("a task")
}

pub fn task_overlay() -> TaskOverlay {
    TaskOverlay {
        name: Some(name("Aufgabe")),
        locked: true,
    }
}

pub fn step_overlay() -> StepOverlay {
    StepOverlay {
        title: Some(title("Schritt")),
        body: None,
        instructions: Vec::new(),
        feedback: None,
        locked: true,
    }
}

pub fn new_step(kind: StepKind) -> NewStep {
    NewStep {
        task: TaskId(Uuid::nil()),
        product: ProductId::new(1).expect("a product"),
        kind,
        content: StepContent {
            body: Some(Body::parse("body".to_owned()).expect("a body")),
            translations: [(language(), step_overlay())].into(),
            ..StepContent::default()
        },
    }
}

pub fn information() -> StepKind {
    StepKind::Information {
        title: title("Step"),
        feedback: None,
    }
}

pub fn create(insertion: Insertion) -> (Changes, Step) {
    let create = CreateStep {
        new: new_step(information()),
        prevstep: None,
    };
    let stored = NewStepSnapshot {
        insertion,
        target: None,
        step_count: None,
    };
    let (changes, (step, _)) = create.into_changes(stored, &context()).expect("a step");
    (changes, step)
}

pub fn observation() -> StepKind {
    StepKind::Observation {
        title: title("Look"),
        feedback: Feedback {
            name: label("light"),
            linked: false,
            values: vec![FeedbackValue {
                key: label("on"),
                value: label("On"),
                link: None,
            }],
        },
    }
}

/// Conditions that read these variables.
pub fn reading(variables: &[&str]) -> Group {
    let condition = |name: &&str| Condition {
        variable: label(name),
        operator: Comparison::Equal,
        targets: vec![ConditionTarget::Bool(true)],
        path: Tag::default(),
    };
    let nodes = variables.iter().map(condition).map(Node::Condition);
    Group {
        operator: LogicalOperator::And,
        nodes: nodes.collect(),
    }
}

pub fn stored(step: Step) -> Option<StepSnapshot> {
    Some(StepSnapshot {
        step,
        place: Place::nth(0),
        managed: ManagedTasks::default(),
    })
}

pub fn update(patch: StepPatch, of: StepKind) -> Changes {
    let step = Step::create(new_step(of), "Step".to_owned(), &context());
    let update = UpdateStep {
        guid: step.guid,
        expected: ExpectedEtag::Any,
        patch,
    };
    let decided = update.into_changes(stored(step), None, &context());
    decided.expect("an update").0
}
