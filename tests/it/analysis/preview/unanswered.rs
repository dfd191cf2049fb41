//! Variables that are not answered, as their observations are hidden.

use super::{information, observation, seen, step_titled};
use crate::{import_task::example_guides, kit::prelude::*};

/// `light`, then `color` if it is on, then `shade` if that is red, and what depends on these.
fn lamp() -> TaskDocument {
    let asked = |name, keys: &[&str], condition| {
        observation(name, keys).depending_on(all_of(vec![condition]))
    };
    let steps = vec![
        information("early", when("shade", "!=", "dark")),
        observation("light", &["on", "off"]),
        asked("color", &["red", "green"], when("light", "=", "on")),
        asked("shade", &["dark", "pale"], when("color", "=", "red")),
        information("dark", when("shade", "=", "dark")),
        information("not red", when("color", "!=", "red")),
    ];
    document("Lamp", steps)
}

#[apply(on_both_databases)]
async fn a_variable_whose_observation_is_hidden_is_not_answered(client: Client) {
    let task = client.imported(lamp()).await;
    let open = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&open)["color"], Visibility::Undetermined);
    assert_eq!(seen(&open)["dark"], Visibility::Undetermined);
    let request = preview_of(&task.guid).answering("light", text("off"));
    let preview = client.previewed(request.with_traces(true)).await;
    let seen = seen(&preview);
    for (title, visibility) in [
        ("color", Visibility::Hidden),
        ("shade", Visibility::Hidden),
        ("dark", Visibility::Hidden),
        ("not red", Visibility::Visible),
        ("early", Visibility::Visible),
    ] {
        assert_eq!(seen[title], visibility, "{title}");
    }
    assert_eq!(preview.open_variables, []);
    assert_eq!(preview.next_observation, Vec::<String>::new());
    let question = step_titled(&preview, "color").question.clone();
    let null = prost_types::value::Kind::NullValue(0);
    assert_eq!(question.and_then(|it| it.answer?.kind), Some(null));
    let trace = format!("{:?}", step_titled(&preview, "dark").trace);
    assert!(trace.contains("reason: Unanswered"), "{trace}");
    assert!(trace.contains("kind: Some(NullValue("), "{trace}");
}

#[apply(on_one_database)]
async fn an_answer_to_a_hidden_observation_counts(client: Client) {
    let task = client.imported(lamp()).await;
    let request = preview_of(&task.guid)
        .answering("light", text("off"))
        .answering("color", text("red"));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["color"], Visibility::Hidden);
    assert_eq!(seen(&preview)["shade"], Visibility::Visible);
    assert_eq!(seen(&preview)["not red"], Visibility::Hidden);
    assert_eq!(seen(&preview)["dark"], Visibility::Undetermined);
}

#[apply(on_one_database)]
async fn observations_that_wait_for_each_other_are_not_answered(client: Client) {
    let asked =
        |name, condition| observation(name, &["x", "y"]).depending_on(all_of(vec![condition]));
    let steps = vec![
        asked("one", when("two", "=", "x")),
        asked("two", when("one", "=", "x")),
        information("either", when("one", "=", "y")),
        information("neither", when("one", "!=", "x")),
    ];
    let task = client.imported(document("Circle", steps)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(preview.open_variables, []);
    assert_eq!(preview.next_observation, Vec::<String>::new());
    for title in ["one", "two", "either"] {
        assert_eq!(seen(&preview)[title], Visibility::Hidden, "{title}");
    }
    assert_eq!(seen(&preview)["neither"], Visibility::Visible);
    // An answer that hides the second settles the first.
    let request = preview_of(&task.guid).answering("one", text("y"));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["two"], Visibility::Hidden);
    assert_eq!(seen(&preview)["one"], Visibility::Hidden);
    assert_eq!(seen(&preview)["either"], Visibility::Visible);
    assert_eq!(preview.hidden_answers, ["one"]);
}

#[apply(on_one_database)]
async fn an_observation_that_only_its_own_answer_shows_is_hidden(client: Client) {
    let paradox = observation("one", &["x", "y"]);
    let paradox = paradox.depending_on(all_of(vec![when("one", "=", "x")]));
    let task = client.imported(document("Paradox", vec![paradox])).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["one"], Visibility::Hidden);
}

fn reads_wide(variable: &str) -> DependencyNode {
    comparison(Condition {
        path: format!("components.{PRODUCT}"),
        variable: variable.to_owned(),
        operator: "=".to_owned(),
        targets: vec![text("pale")],
    })
}

/// `a` waits for the first `g`, which is hidden, or for the second, which waits for `a`.
fn circle() -> TaskDocument {
    let asked = |name, keys: &[&str], group| observation(name, keys).depending_on(group);
    let yes_no = ["yes", "no"];
    let again = all_of(vec![when("r", "=", "y"), when("a", "=", "no")]);
    let either = any_of(vec![when("g", "=", "no"), when("s", "=", "no")]);
    let again = asked("g", &yes_no, again);
    let steps = vec![
        observation("r", &["x", "y"]),
        asked("s", &yes_no, all_of(vec![when("r", "=", "y")])),
        asked("g", &yes_no, all_of(vec![when("r", "=", "x")])),
        asked("a", &yes_no, either),
        again,
    ];
    document("Circle", steps)
}

#[apply(on_both_databases)]
async fn a_preview_is_final_when_nothing_is_left_to_ask(client: Client) {
    let task = client.imported(circle()).await;
    let request = preview_of(&task.guid).answering("r", text("y"));
    let preview = client.previewed(request.clone()).await;
    assert_eq!(preview.next_observation, [task.steps[1].clone()]);
    assert_eq!(preview.steps[3].visibility(), Visibility::Undetermined);
    let request = request.answering("s", text("yes"));
    let preview = client.previewed(request.with_traces(true)).await;
    assert_eq!(preview.next_observation, Vec::<String>::new());
    let visibilities: Vec<_> = preview.steps.iter().map(|it| it.visibility()).collect();
    let (visible, hidden) = (Visibility::Visible, Visibility::Hidden);
    assert_eq!(visibilities, [visible, visible, hidden, hidden, hidden]);
    assert_eq!(preview.open_variables, []);
    let trace = format!("{:?}", preview.steps[3].trace);
    assert!(trace.contains("reason: Unanswered"), "{trace}");
}

#[apply(on_both_databases)]
async fn answers_to_questions_that_nobody_was_asked_are_named(client: Client) {
    let mut guide = lamp();
    guide.steps.push(information("wide", reads_wide("shade")));
    let task = client.imported(guide).await;
    let wide = format!("components.{PRODUCT}.shade");
    let null = value(serde_json::Value::Null);
    let request = preview_of(&task.guid)
        .answering("light", text("off"))
        .answering("nobody", text("x"))
        .answering("color", text("green"))
        .answering(&wide, text("pale"));
    let preview = client.previewed(request.clone()).await;
    assert_eq!(preview.hidden_answers, ["color".to_owned(), wide.clone()]);
    assert_eq!(preview.unused_answers, ["nobody"]);
    // They count, and what is known to be unanswered is no answer.
    assert_eq!(seen(&preview)["not red"], Visibility::Visible);
    let preview = client
        .previewed(request.clone().answering("color", null))
        .await;
    assert_eq!(preview.hidden_answers, std::slice::from_ref(&wide));
    // Another guide may have asked.
    let other = document("Other", vec![observation("shade", &["pale"])]);
    client.imported(other).await;
    let preview = client.previewed(request).await;
    assert_eq!(preview.hidden_answers, ["color"]);
}

#[apply(on_one_database)]
async fn a_variable_that_is_set_elsewhere_or_declared_may_be_answered(client: Client) {
    let wide = |operator: &str| {
        comparison(Condition {
            path: format!("components.{PRODUCT}"),
            variable: "color".to_owned(),
            operator: operator.to_owned(),
            targets: vec![text("red")],
        })
    };
    let mut guide = lamp();
    guide.steps.push(information("wide", wide("=")));
    let task = client.imported(guide).await;
    let request = preview_of(&task.guid).answering("light", text("off"));
    let visibility = async |request: PreviewTaskRequest| {
        let preview = client.previewed(request).await;
        seen(&preview)["wide"]
    };
    assert_eq!(visibility(request.clone()).await, Visibility::Hidden);
    let declared = PreviewTaskRequest {
        known_variables: vec![format!("components.{PRODUCT}.color")],
        ..request.clone()
    };
    assert_eq!(visibility(declared).await, Visibility::Undetermined);
    let other = document("Other", vec![observation("color", &["red"])]);
    client.imported(other).await;
    assert_eq!(visibility(request).await, Visibility::Undetermined);
}

/// A task that is entered in two ways is hidden if both are.
#[apply(on_one_database)]
async fn a_variable_of_a_hidden_subtask_is_not_answered(client: Client) {
    let inner = document("Inner", vec![observation("inner", &["x", "y"])]);
    let inner = client.imported(inner).await;
    let enter =
        |key| subtask(&Task::default(), &inner).depending_on(all_of(vec![when("way", "=", key)]));
    let reads = comparison(Condition {
        path: format!("components.{PRODUCT}"),
        variable: "inner".to_owned(),
        operator: "=".to_owned(),
        targets: vec![text("x")],
    });
    let steps = vec![
        observation("way", &["first", "second", "none"]),
        enter("first"),
        enter("second"),
        information("after", reads),
    ];
    let task = client.imported(document("Outer", steps)).await;
    for (way, visibility) in [
        ("first", Visibility::Undetermined),
        ("second", Visibility::Undetermined),
        ("none", Visibility::Hidden),
    ] {
        let request = preview_of(&task.guid).answering("way", text(way));
        let preview = client.previewed(request).await;
        assert_eq!(seen(&preview)["after"], visibility, "{way}");
    }
}

#[apply(on_one_database)]
async fn an_unpublished_observation_is_not_answered(client: Client) {
    let mut guide = lamp();
    guide.steps[1].published = Some(0);
    let task = client.imported(guide).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["color"], Visibility::Hidden);
    assert_eq!(preview.next_observation, Vec::<String>::new());
    let request = preview_of(&task.guid).with_unpublished(true);
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["color"], Visibility::Undetermined);
    assert_eq!(preview.next_observation, [task.steps[1].clone()]);
}

/// With the first answer to each question, and with the last.
#[apply(on_both_databases)]
async fn the_example_guides_end_without_undetermined_steps(client: Client) {
    for (name, document) in example_guides::guides() {
        let task = client.imported(document).await;
        for from_end in [false, true] {
            let mut request = preview_of(&task.guid).to_depth(8);
            request.page_size = 500;
            let preview = loop {
                let preview = client.previewed(request.clone()).await;
                let Some(next) = preview.next_observation.last() else {
                    break preview;
                };
                let step = client.get_step(next).await.accepted();
                let answers = answers_of(&step);
                let answer = if from_end {
                    answers.last()
                } else {
                    answers.first()
                };
                let key = &answer.expect("an answer").key;
                let question = &step.feedback_config[0].name;
                request = request.answering(question, text(key));
            };
            let undetermined = preview.steps.iter();
            let undetermined =
                undetermined.filter(|step| step.visibility() == Visibility::Undetermined);
            assert_eq!(undetermined.count(), 0, "{name}: {preview:#?}");
        }
    }
}
