//! The tasks and steps that writers write.

use expertise::proto::v1::*;

use super::workspace::Workspace;
use crate::kit::sample::PRODUCT;

/// A task with every field that the service would fill in.
pub fn task(name: String) -> Task {
    Task {
        name,
        product_id: Some(PRODUCT),
        published: Some(1),
        roles: vec![AccessLevel::Tech.into(), AccessLevel::User.into()],
        ..Task::default()
    }
}

/// A step with every field that the service would fill in.
pub fn step(kind: StepType, title: String) -> Step {
    Step {
        product_id: Some(PRODUCT),
        r#type: kind.into(),
        title,
        cost: Some(0),
        published: Some(1),
        ..Step::default()
    }
}

/// A step with a body, tags and translations. The same name is in all of them.
pub fn solution(workspace: &mut Workspace) -> Step {
    let name = workspace.new_name();
    let row = StepTranslation {
        title: Some(name.clone()),
        body: Some(name.repeat(20)),
        locked: Some(true),
        ..StepTranslation::default()
    };
    Step {
        body: Some(name.repeat(100)),
        tags: vec![name.clone()],
        translations: [("de".to_owned(), row.clone()), ("fr".to_owned(), row)].into(),
        ..step(StepType::Solution, name)
    }
}

/// An observation with two answers, each of which manages a task.
pub fn linked_observation(workspace: &mut Workspace) -> Step {
    let question = FeedbackConfig {
        name: "answer".to_owned(),
        r#type: "enum".to_owned(),
        linked: Some(true),
        values: vec![linked_answer(workspace), linked_answer(workspace)],
    };
    Step {
        feedback_config: vec![question],
        ..step(StepType::Observation, workspace.new_name())
    }
}

/// An answer with the task that it manages.
pub fn linked_answer(workspace: &mut Workspace) -> FeedbackValue {
    let text = workspace.new_name();
    FeedbackValue {
        key: text.clone(),
        value: text.clone(),
        task_json: Some(Box::new(TaskDocument {
            task: Some(task(text)),
            steps: vec![solution(workspace)],
        })),
        ..FeedbackValue::default()
    }
}
