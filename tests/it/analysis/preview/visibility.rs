//! What makes a task or step visible, hidden or undetermined.

use super::{information, observation, reasons, seen, step_titled};
use crate::kit::prelude::*;

/// `off` or `on` decides two steps.
fn lamp() -> TaskDocument {
    document(
        "Lamp",
        vec![
            observation("light", &["off", "on"]),
            information("dark", when("light", "=", "off")),
            information("bright", when("light", "!=", "off")),
        ],
    )
}

#[apply(on_one_database)]
async fn a_step_whose_variable_is_not_known_is_undetermined(client: Client) {
    let task = client.imported(lamp()).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["light"], Visibility::Visible);
    assert_eq!(seen(&preview)["dark"], Visibility::Undetermined);
    assert_eq!(reasons(&preview, "dark"), [VisibilityReason::UnknownValue]);
}

#[apply(on_one_database)]
async fn a_condition_that_no_possible_answer_meets_hides_without_an_answer(client: Client) {
    let steps = vec![
        observation("light", &["off", "on"]),
        information("never", when("light", "=", "green")),
        information("always", when("light", "!=", "green")),
        information("number", when("light", ">", "1")),
        information("unset", when("nobody", "=", "green")),
        information("largest", when("nobody", ">", "1.7976931348623157e308")),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    let seen = seen(&preview);
    assert_eq!(seen["never"], Visibility::Hidden);
    assert_eq!(seen["always"], Visibility::Visible);
    assert_eq!(seen["number"], Visibility::Hidden);
    assert_eq!(seen["unset"], Visibility::Undetermined);
    assert_eq!(seen["largest"], Visibility::Hidden);
}

#[apply(on_one_database)]
async fn a_condition_that_every_answer_meets_may_still_be_not_answered(client: Client) {
    let steps = vec![
        observation("light", &["on"]),
        information("met", when("light", "=", "on")),
        information("missed", when("light", "!=", "on")),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["met"], Visibility::Undetermined);
    assert_eq!(seen(&preview)["missed"], Visibility::Undetermined);
}

#[apply(on_one_database)]
async fn an_unpublished_step_is_hidden_unless_they_are_included(client: Client) {
    let hidden = document_step(StepType::Information, "hidden").with_published(0);
    let task = client.imported(document("Lamp", vec![hidden])).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["hidden"], Visibility::Hidden);
    assert_eq!(
        reasons(&preview, "hidden"),
        [VisibilityReason::NotPublished]
    );
    let request = preview_of(&task.guid).with_unpublished(true);
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["hidden"], Visibility::Visible);
}

#[apply(on_one_database)]
async fn every_number_but_one_is_unpublished(client: Client) {
    let inner = client.given_task(task("inner").with_published(2)).await;
    let steps = vec![
        document_step(StepType::Information, "two").with_published(2),
        subtask(&Task::default(), &inner),
    ];
    let guide = document_with(task("Lamp").with_published(2), steps);
    let guide = client.imported(guide).await.guid;
    let preview = client.previewed(preview_of(&guide)).await;
    let root = preview.task.as_ref().expect("a task");
    assert_eq!(root.visibility(), Visibility::Hidden);
    let not_published = VisibilityReason::NotPublished;
    let task_hidden = VisibilityReason::TaskHidden;
    assert_eq!(root.reasons().collect::<Vec<_>>(), [not_published]);
    assert_eq!(reasons(&preview, "two"), [not_published, task_hidden]);
    assert_eq!(
        reasons(&preview, "inner"),
        [VisibilityReason::SubtaskHidden, task_hidden]
    );
    let request = preview_of(&guide).with_unpublished(true);
    let preview = client.previewed(request).await;
    let root = preview.task.as_ref().expect("a task");
    assert_eq!(root.visibility(), Visibility::Visible);
    for title in ["two", "inner"] {
        assert_eq!(seen(&preview)[title], Visibility::Visible, "{title}");
    }
}

#[apply(on_one_database)]
async fn an_undetermined_task_leaves_its_steps_undetermined(client: Client) {
    let gate = all_of(vec![when("gate", "=", "open")]);
    let guide = document_with(
        task("Lamp").with_dependencies(gate),
        document_steps(&["one", "two"]),
    );
    let preview = client.previewed(preview_of_document(guide)).await;
    let root = preview.task.as_ref().expect("a task");
    assert_eq!(root.visibility(), Visibility::Undetermined);
    let unknown = VisibilityReason::UnknownValue;
    assert_eq!(root.reasons().collect::<Vec<_>>(), [unknown]);
    for title in ["one", "two"] {
        assert_eq!(seen(&preview)[title], Visibility::Undetermined);
        let expected = [VisibilityReason::TaskHidden, unknown];
        assert_eq!(reasons(&preview, title), expected);
    }
    let [open] = preview.open_variables.as_slice() else {
        panic!("{:?}", preview.open_variables);
    };
    assert_eq!((open.name.as_str(), open.steps), ("gate", 2));
}

/// An END that depends on `light`, with a step before it and one behind.
fn ending() -> TaskDocument {
    let end = document_step(StepType::End, "end");
    document(
        "Lamp",
        vec![
            observation("light", &["off", "on"]),
            document_step(StepType::Information, "before"),
            end.depending_on(all_of(vec![when("light", "=", "off")])),
            document_step(StepType::Information, "after"),
        ],
    )
}

#[apply(on_one_database)]
async fn a_visible_end_hides_what_follows_in_its_task(client: Client) {
    let task = client.imported(ending()).await;
    let request = preview_of(&task.guid).answering("light", text("off"));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["before"], Visibility::Visible);
    assert_eq!(seen(&preview)["end"], Visibility::Visible);
    assert_eq!(seen(&preview)["after"], Visibility::Hidden);
    assert_eq!(reasons(&preview, "after"), [VisibilityReason::AfterEnd]);
}

#[apply(on_one_database)]
async fn an_undetermined_end_leaves_what_follows_undetermined(client: Client) {
    let task = client.imported(ending()).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["before"], Visibility::Visible);
    assert_eq!(seen(&preview)["after"], Visibility::Undetermined);
    assert_eq!(reasons(&preview, "after"), [VisibilityReason::UnknownValue]);
}

#[apply(on_one_database)]
async fn a_task_that_its_level_may_not_see_hides_its_steps(client: Client) {
    let mut lamp = lamp();
    let root = lamp.task.as_mut().expect("a task");
    root.roles = vec![AccessLevel::Tech.into()];
    let task = client.imported(lamp).await;
    let preview_for = async |level| {
        let request = preview_of(&task.guid).for_level(level);
        client.previewed(request).await
    };
    let preview = preview_for(AccessLevel::User).await;
    let root = preview.task.as_ref().expect("a task");
    assert_eq!(root.visibility(), Visibility::Hidden);
    assert_eq!(
        root.reasons().collect::<Vec<_>>(),
        [VisibilityReason::Level]
    );
    assert_eq!(seen(&preview)["light"], Visibility::Hidden);
    assert_eq!(reasons(&preview, "light"), [VisibilityReason::TaskHidden]);
    let preview = preview_for(AccessLevel::Tech).await;
    assert_eq!(seen(&preview)["light"], Visibility::Visible);
}

#[apply(on_one_database)]
async fn without_a_level_roles_are_not_looked_at(client: Client) {
    let tech = |name: &str| task(name).with_roles(vec![AccessLevel::Tech.into()]);
    let other = client.given_task(tech("Other")).await;
    let task = client.given_task(tech("Lamp")).await;
    let step = client.given_step(subtask(&task, &other)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["Other"], Visibility::Visible);
    let request = preview_of(&task.guid).for_level(AccessLevel::Tech);
    let preview = client.previewed(request).await;
    assert_eq!(preview.steps[0].guid, step.guid);
    assert_eq!(seen(&preview)["Other"], Visibility::Visible);
}

#[apply(on_one_database)]
async fn every_reason_is_given_in_order(client: Client) {
    let condition = |name: &str| all_of(vec![when(name, "=", "off")]);
    let other = client
        .given_task(task("Other").with_dependencies(condition("nobody")))
        .await;
    let mut last = subtask(&Task::default(), &other);
    last.dependencies = Some(condition("light"));
    last.published = Some(0);
    let steps = vec![
        observation("light", &["off", "on"]),
        document_step(StepType::End, "end"),
        last,
    ];
    let mut lamp = document("Lamp", steps);
    let root = lamp.task.as_mut().expect("a task");
    root.published = Some(0);
    root.dependencies = Some(condition("light"));
    root.roles = vec![AccessLevel::Tech.into()];
    let task = client.imported(lamp).await;
    let request = preview_of(&task.guid)
        .answering("light", text("on"))
        .for_level(AccessLevel::User);
    let preview = client.previewed(request).await;
    let root = preview.task.as_ref().expect("a task");
    assert_eq!(
        root.reasons().collect::<Vec<_>>(),
        [
            VisibilityReason::NotPublished,
            VisibilityReason::Level,
            VisibilityReason::Condition
        ]
    );
    assert_eq!(
        reasons(&preview, "Other"),
        [
            VisibilityReason::NotPublished,
            VisibilityReason::Condition,
            VisibilityReason::AfterEnd,
            VisibilityReason::SubtaskHidden,
            VisibilityReason::TaskHidden,
            VisibilityReason::UnknownValue,
        ]
    );
}

#[apply(on_one_database)]
async fn observations_that_are_no_longer_asked_still_count(client: Client) {
    // A variable can have the keys of every observation that sets it, published or not.
    let steps = vec![
        observation("light", &["off"]),
        observation("light", &["green"]).with_published(0),
        information("green", when("light", "=", "green")),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["green"], Visibility::Undetermined);
}

#[apply(on_one_database)]
async fn configs_on_other_types_set_nothing(client: Client) {
    let steps = vec![
        document_step(StepType::Information, "info").with_question(question("light", &["off"])),
        information("green", when("light", "=", "green")),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    // Nothing sets the variable, so it can have any value.
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["green"], Visibility::Undetermined);
    let request = preview_of(&task.guid).answering("light", text("off"));
    let preview = client.previewed(request).await;
    let question = step_titled(&preview, "info").question.as_ref();
    assert_eq!(question.expect("a question").answer, None);
}
