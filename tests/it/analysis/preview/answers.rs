//! Answers: their names, what is not known, and what would be asked next.

use super::{information, observation, reasons, seen, step_titled, title};
use crate::kit::prelude::*;

/// Steps of which each is visible for one value of one name.
fn reading(names: &[(&str, &str)]) -> Vec<Step> {
    let reads = |(path, variable): &(&str, &str)| {
        let condition = Condition {
            variable: (*variable).to_owned(),
            operator: "=".to_owned(),
            targets: vec![text("off")],
            path: (*path).to_owned(),
        };
        information(&format!("{path}/{variable}"), comparison(condition))
    };
    names.iter().map(reads).collect()
}

/// A guide that reads both names of an observation.
async fn both_names(client: &Client) -> String {
    let mut steps = vec![observation("light", &["off", "on"])];
    steps.extend(reading(&[("", "light"), ("components.7", "light")]));
    client.imported(document("Lamp", steps)).await.guid
}

#[apply(on_one_database)]
async fn an_own_name_counts_for_both_names(client: Client) {
    let task = both_names(&client).await;
    for name in ["light", "components.7.light"] {
        let request = preview_of(&task).answering(name, text("off"));
        let preview = client.previewed(request).await;
        let visible = seen(&preview);
        assert!(
            visible.values().all(|seen| *seen == Visibility::Visible),
            "{name}: {visible:?}"
        );
    }
}

#[apply(on_one_database)]
async fn both_names_with_the_same_value_are_accepted(client: Client) {
    let task = both_names(&client).await;
    let request = preview_of(&task)
        .answering("light", text("off"))
        .answering("components.7.light", text("off"));
    let preview = client.previewed(request).await;
    assert_eq!(preview.unused_answers, Vec::<String>::new());
}

#[apply(on_one_database)]
async fn both_names_with_different_values_are_refused(client: Client) {
    let task = both_names(&client).await;
    for other in [text("on"), value(serde_json::Value::Null), number(5.0)] {
        let request = preview_of(&task)
            .answering("light", text("5"))
            .answering("components.7.light", other);
        let failure = client.preview(request).await.refused();
        failure.violates(&[("answers[\"light\"]", "FIELD_INVALID")]);
    }
}

#[apply(on_one_database)]
async fn a_full_name_is_that_of_its_product_alone(client: Client) {
    let task = both_names(&client).await;
    let request = preview_of(&task).answering("components.8.light", text("off"));
    let preview = client.previewed(request).await;
    assert_eq!(preview.unused_answers, ["components.8.light"]);
    assert_eq!(seen(&preview)["/light"], Visibility::Undetermined);
}

#[apply(on_one_database)]
async fn answers_that_nothing_reads_or_sets_are_listed(client: Client) {
    let task = both_names(&client).await;
    let request = preview_of(&task)
        .answering("zebra", text("off"))
        .answering("ant", text("off"))
        .answering("light", text("off"));
    let preview = client.previewed(request).await;
    assert_eq!(preview.unused_answers, ["ant", "zebra"]);
}

#[apply(on_one_database)]
async fn an_answer_need_not_be_a_key(client: Client) {
    let steps = vec![
        observation("light", &["off", "on"]),
        information("green", when("light", "=", "green")),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let request = preview_of(&task.guid).answering("light", text("green"));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["green"], Visibility::Visible);
}

#[apply(on_both_databases)]
async fn a_key_of_another_task_is_no_answer_of_the_own_name(client: Client) {
    let elsewhere = vec![observation("light", &["green"])];
    client.imported(document("Other lamp", elsewhere)).await;
    let steps = vec![
        observation("light", &["off", "on"]),
        information("own", when("light", "!=", "green")),
        information("account", when("components.7.light", "!=", "green")),
    ];
    let task = client.imported(document("Lamp", steps)).await.guid;
    let before = client.previewed(preview_of(&task)).await;
    assert_eq!(seen(&before)["own"], Visibility::Visible);
    assert_eq!(seen(&before)["account"], Visibility::Undetermined);
    for (key, account) in [("green", Visibility::Hidden), ("off", Visibility::Visible)] {
        let request = preview_of(&task).answering("components.7.light", text(key));
        let after = client.previewed(request).await;
        assert_eq!(seen(&after)["own"], Visibility::Visible, "{key}");
        assert_eq!(seen(&after)["account"], account, "{key}");
    }
}

#[apply(on_one_database)]
async fn the_question_shows_the_known_answer(client: Client) {
    let task = both_names(&client).await;
    let null = value(serde_json::Value::Null);
    for (answer, shown) in [
        (None, None),
        (Some(text("off")), Some(text("off"))),
        (Some(null.clone()), Some(null)),
    ] {
        let mut request = preview_of(&task);
        if let Some(answer) = answer {
            request = request.answering("components.7.light", answer);
        }
        let preview = client.previewed(request).await;
        let question = step_titled(&preview, "light").question.as_ref();
        assert_eq!(question.expect("a question").answer, shown);
        assert_eq!(question.expect("a question").name, "light");
    }
}

#[apply(on_one_database)]
async fn the_next_observation_is_the_first_visible_one_without_an_answer(client: Client) {
    let second = observation("second", &["a", "b"]);
    let steps = vec![
        observation("first", &["a", "b"]),
        second.depending_on(all_of(vec![when("first", "=", "a")])),
        observation("perhaps", &["a"]).depending_on(all_of(vec![when("nobody", "=", "a")])),
        observation("third", &["a", "b"]),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let null = value(serde_json::Value::Null);
    for (answers, next) in [
        (vec![], Some(0)),
        (vec![("first", text("a"))], Some(1)),
        (vec![("first", text("b"))], Some(3)),
        (vec![("first", null)], Some(3)),
        (vec![("first", text("a")), ("second", text("b"))], Some(3)),
        (vec![("first", text("b")), ("third", text("a"))], None),
    ] {
        let mut request = preview_of(&task.guid);
        for (name, answer) in answers {
            request = request.answering(name, answer);
        }
        let preview = client.previewed(request).await;
        let next: Vec<String> = next
            .map(|index: usize| task.steps[index].clone())
            .into_iter()
            .collect();
        assert_eq!(preview.next_observation, next);
    }
}

#[apply(on_one_database)]
async fn open_variables_come_by_the_steps_that_read_them(client: Client) {
    let both = any_of(vec![when("light", "=", "off"), when("nobody", "=", "1")]);
    let visible = any_of(vec![when("decided", "=", "1"), when("nobody", "=", "1")]);
    let many = (0..101).map(|n| when(&format!("v{n}"), "=", "1")).collect();
    let many = document_step(StepType::Information, "many").depending_on(any_of(many));
    let preview = preview_of_document(document("Many", vec![many]));
    assert_eq!(client.previewed(preview).await.open_variables.len(), 100);
    let steps = vec![
        observation("light", &["off", "on"]),
        document_step(StepType::Information, "both").depending_on(both),
        information("one", when("nobody", ">", "1")),
        information("other", when("decided", "=", "1")),
        // What is hidden or visible whatever the variable is does not count.
        information("draft", when("nobody", "=", "1")).with_published(0),
        document_step(StepType::Information, "visible").depending_on(visible),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let request = preview_of(&task.guid).answering("decided", text("1"));
    let preview = client.previewed(request).await;
    let open = |name: &str, steps, keys: &[&str]| OpenVariable {
        name: name.to_owned(),
        steps,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
    };
    assert_eq!(
        preview.open_variables,
        [open("nobody", 2, &[]), open("light", 1, &["off", "on"])]
    );
}

/// A guide that reads a name that an observation of another guide sets.
async fn set_elsewhere(client: &Client) -> (String, Vec<Step>) {
    let steps = vec![
        information("known", {
            comparison(Condition {
                variable: "light".to_owned(),
                operator: "=".to_owned(),
                targets: vec![text("green")],
                path: "components.7".to_owned(),
            })
        }),
        observation("light", &["off"]),
    ];
    let task = client.imported(document("Lamp", steps.clone())).await;
    (task.guid, steps)
}

#[apply(on_both_databases)]
async fn observations_elsewhere_add_their_keys(client: Client) {
    let (task, steps) = set_elsewhere(&client).await;
    let visibility = async |task: &str| {
        let preview = client.previewed(preview_of(task)).await;
        (seen(&preview)["known"], preview.fingerprint)
    };
    let (before, fingerprint) = visibility(&task).await;
    assert_eq!(before, Visibility::Hidden);
    let elsewhere = vec![observation("light", &["green", "red"])];
    client.imported(document("Elsewhere", elsewhere)).await;
    let (after, changed) = visibility(&task).await;
    assert_eq!(after, Visibility::Undetermined);
    assert_ne!(fingerprint, changed);
    let request = preview_of_document(document("Lamp", steps));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["known"], Visibility::Undetermined);
    assert_eq!(preview.open_variables[0].keys, ["off", "green", "red"]);
}

#[apply(on_both_databases)]
async fn of_the_keys_of_several_tasks_a_hundred_are_listed(client: Client) {
    let keys: Vec<String> = (0..120).map(|n| format!("key {n}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let asking = |keys: &[&str]| {
        let mut steps = reading(&[("", "light")]);
        steps.push(observation("light", &[&["off"], keys].concat()));
        steps
    };
    let inner = client
        .imported(document("Inner", asking(&keys[60..])))
        .await;
    let mut steps = asking(&keys[..60]);
    steps.push(subtask(&Task::default(), &inner));
    let request = preview_of_document(document("Outer", steps));
    let preview = client.previewed(request).await;
    let open = preview.open_variables.iter();
    let open = open.filter(|one| one.name == "light");
    let counts: Vec<usize> = open.map(|one| one.keys.len()).collect();
    assert_eq!(counts, [100]);
}

#[apply(on_both_databases)]
async fn observations_of_another_account_add_nothing(client: Client) {
    let (task, _) = set_elsewhere(&client).await;
    let elsewhere = document("Elsewhere", vec![observation("light", &["green"])]);
    client.other_account().imported(elsewhere).await;
    let preview = client.previewed(preview_of(&task)).await;
    assert_eq!(seen(&preview)["known"], Visibility::Hidden);
}

#[apply(on_one_database)]
async fn known_variables_can_have_any_value(client: Client) {
    let mut steps = vec![observation("light", &["on"])];
    steps.extend(reading(&[("", "light")]));
    let task = client.imported(document("Lamp", steps)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    assert_eq!(seen(&preview)["/light"], Visibility::Hidden);
    let request = preview_of(&task.guid).knowing(vec!["light".to_owned()]);
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["/light"], Visibility::Undetermined);
    assert_eq!(
        reasons(&preview, "/light"),
        [VisibilityReason::UnknownValue]
    );
}

#[apply(on_one_database)]
async fn variables_of_a_loop_can_have_any_value(client: Client) {
    let mut looping = document_step(StepType::Information, "loop");
    looping.looping = Some(Looping {
        alias: "lamp".to_owned(),
        ..Looping::default()
    });
    let mut steps = vec![observation("lamp.color", &["on"]), looping];
    steps.extend(reading(&[("lamp", "color")]));
    let task = client.imported(document("Lamp", steps)).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    let read = preview.steps.last().expect("a step");
    assert_eq!(title(read), "lamp/color");
    assert_eq!(read.visibility(), Visibility::Undetermined);
}
