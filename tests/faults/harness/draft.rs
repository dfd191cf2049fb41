//! What writers write.

use expertise::proto::v1::*;

use super::shelf::Shelf;

/// The product of everything.
pub const PRODUCT: i64 = 7;

/// A task with every field that the service would fill in.
pub fn task(name: String) -> Task {
    Task {
        name,
        product_id: Some(PRODUCT),
        published: Some(1),
        roles: vec![AccessLevel::Tech.into(), AccessLevel::User.into()],
        r#type: None,
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

/// A step with text everywhere, which is rows of several tables. Its mark is in
/// all of them.
pub fn note(shelf: &mut Shelf) -> Step {
    let mark = shelf.name();
    let row = StepTranslation {
        title: Some(mark.clone()),
        body: Some(mark.repeat(20)),
        locked: Some(true),
        ..StepTranslation::default()
    };
    Step {
        body: Some(mark.repeat(100)),
        tags: vec![mark.clone()],
        translations: [("de".to_owned(), row.clone()), ("fr".to_owned(), row)].into(),
        ..step(StepType::Solution, mark)
    }
}

/// A question of two answers, each of which manages a task.
pub fn linked_question(shelf: &mut Shelf) -> Step {
    let question = FeedbackConfig {
        name: "answer".to_owned(),
        r#type: "enum".to_owned(),
        linked: Some(true),
        values: vec![answer(shelf), answer(shelf)],
    };
    Step {
        feedback_config: vec![question],
        ..step(StepType::Observation, shelf.name())
    }
}

/// One of them, with what it leads to.
pub fn answer(shelf: &mut Shelf) -> FeedbackValue {
    let text = shelf.name();
    FeedbackValue {
        key: text.clone(),
        value: text.clone(),
        task_json: Some(TaskDocument {
            task: Some(task(text)),
            steps: vec![note(shelf)],
        }),
        ..FeedbackValue::default()
    }
}
