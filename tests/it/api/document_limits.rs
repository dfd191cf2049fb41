//! The limits of a document hold for what is stored, so that every export can be read and
//! imported again.

use crate::prelude::*;
use futures_util::future::join_all;
use prost_types::{Struct, Value, value::Kind};

/// A guide of documents nested this deep, and the ids of its tasks, outermost first.
async fn given_nested(client: &Client, depth: usize) -> Vec<String> {
    let inner = |inner, _| document("Guide", vec![observation_of(inner)]);
    let guide = (1..depth).fold(document("Guide", document_steps(&["end"])), inner);
    let made = client.imported(guide).await;
    let exported = client.exported(&made.guid).await;
    let tasks = documents_in(&exported).into_iter();
    tasks
        .map(|document| document.task.as_ref().unwrap().guid.clone())
        .collect()
}

/// An observation that manages the task of a document.
fn observation_of(inner: TaskDocument) -> Step {
    observation_asking(linked_question(vec![answer_with("a", "Inner", inner)]))
}

/// Every export can be read and imported into another account.
async fn exports_and_imports(client: &Client, task: &str) {
    let exported = client.exported(task).await;
    let mut copy = exported.clone();
    copy.task.as_mut().unwrap().guid.clear();
    let other = client.other_account();
    let made = other.imported(copy).await;
    let again = other.exported(&made.guid).await;
    assert_eq!(canonical(again), canonical(exported));
}

fn looping(levels: usize) -> Looping {
    let kind = Some(Kind::StructValue(objects_deep(levels)));
    Looping::default().with(|it| it.array = Some(Value { kind }))
}

/// A loop whose `iterations` are arrays nested this deep within 22 objects.
fn looping_iterations(levels: usize) -> Looping {
    let within = (0..22).fold(arrays_deep(levels, "end"), |inner, _| Value {
        kind: Some(Kind::StructValue(member("a", inner))),
    });
    Looping::default().with(|it| it.iterations = Some(within))
}

fn translated(instructions: Vec<Struct>) -> StepTranslation {
    step_translation("Schritt").with(|it| it.instructions = instructions)
}

/// Steps with a JSON value that just fits into a document of depth 8, and with one that
/// does not, and the path of the value.
fn deep_steps() -> [(Step, Step, &'static str); 4] {
    let step = document_step(StepType::Information, "Deep");
    let instructed = |levels| {
        step.clone()
            .with_instructions(vec![objects_deep(1), objects_deep(levels)])
    };
    let looping = |levels| step.clone().with(|it| it.looping = Some(looping(levels)));
    let over_arrays = |levels| {
        step.clone()
            .with(|it| it.looping = Some(looping_iterations(levels)))
    };
    let translated = |levels| {
        step.clone()
            .with_translations([("de".to_owned(), translated(vec![objects_deep(levels)]))].into())
    };
    [
        (instructed(23), instructed(24), "instructions[1]"),
        (looping(22), looping(23), "looping.array"),
        (over_arrays(1), over_arrays(2), "looping.iterations"),
        (
            translated(22),
            translated(23),
            "translations[\"de\"].instructions[0]",
        ),
    ]
}

#[apply(on_both_databases)]
async fn a_created_step_fits_into_the_export_of_the_outermost_task(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let first = client.step_order(&tasks[7]).await.remove(0);
    for (fits, too_deep, path) in deep_steps() {
        for prevstep in ["", &first] {
            let of = |step: &Step| step.clone().in_task(tasks[7].clone());
            let failure = client.create_step_after(of(&too_deep), prevstep).await;
            let path = format!("step.{path}");
            failure.refused().violates(&[(&path, "NESTING_TOO_DEEP")]);
            let outside = too_deep.clone().in_task(tasks[0].clone());
            client.given_step(outside).await;
            let created = client.create_step_after(of(&fits), prevstep).await;
            created.accepted();
        }
    }
    exports_and_imports(&client, &tasks[0]).await;
}

#[apply(on_both_databases)]
async fn an_updated_step_fits_into_the_export_of_the_outermost_task(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let step = client.step_order(&tasks[7]).await.remove(0);
    for (fits, too_deep, path) in deep_steps() {
        let field = path.split(['[', '.']).next().unwrap();
        let of = |changed: Step| changed.with_guid(step.clone());
        let failure = client.update_step(of(too_deep), &[field]).await.refused();
        failure.violates(&[(&format!("step.{path}"), "NESTING_TOO_DEEP")]);
        client.updated_step(of(fits), &[field]).await;
    }
    exports_and_imports(&client, &tasks[0]).await;
}

#[apply(on_both_databases)]
async fn an_imported_step_fits_into_the_export_of_the_outermost_task(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let before = client.tasks_with_steps().await;
    for (_, too_deep, path) in deep_steps() {
        let changed = Step {
            guid: client.step_order(&tasks[7]).await.remove(0),
            ..too_deep.clone()
        };
        for step in [too_deep, changed] {
            let guide = document_of(&tasks[7], vec![step]);
            let failure = client.import_with(AbsentSteps::Keep, guide).await.refused();
            failure.violates(&[(&format!("document.steps[0].{path}"), "NESTING_TOO_DEEP")]);
        }
    }
    assert_eq!(client.tasks_with_steps().await, before);
    let fitting = deep_steps().map(|(fits, _, _)| fits).to_vec();
    let guide = document_of(&tasks[7], fitting);
    client
        .import_with(AbsentSteps::Keep, guide)
        .await
        .accepted();
    exports_and_imports(&client, &tasks[0]).await;
}

#[apply(on_both_databases)]
async fn an_automatic_translation_fits_into_the_export_of_the_outermost_task(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let request = translation_work_request(&["de"]).of_task(tasks[7].clone());
    let work = client.list(request).await;
    let work = work
        .iter()
        .find(|work| work.kind() == TranslationKind::Step);
    let item = |levels| {
        automatic(work.unwrap(), "Ende").with(|it| it.instructions = vec![objects_deep(levels)])
    };
    let failure = client.write_translations(vec![item(23)]).await.refused();
    failure.violates(&[("translations[0].instructions[0]", "NESTING_TOO_DEEP")]);
    assert_eq!(client.written(item(22)).await, TranslationResult::Written);
    exports_and_imports(&client, &tasks[0]).await;
}

#[apply(on_both_databases)]
async fn every_value_that_nests_too_deep_is_named(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let step = Step {
        task: tasks[7].clone(),
        instructions: vec![objects_deep(30), objects_deep(1), objects_deep(30)],
        looping: Some(looping(30)),
        ..document_step(StepType::Information, "Deep")
    };
    client.create_step(step).await.refused().violates(&[
        ("step.instructions[0]", "NESTING_TOO_DEEP"),
        ("step.instructions[2]", "NESTING_TOO_DEEP"),
        ("step.looping.array", "NESTING_TOO_DEEP"),
    ]);
}

#[apply(on_both_databases)]
async fn a_task_that_is_no_longer_managed_takes_deeper_values(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let deep = |task: &str| {
        document_step(StepType::Information, "Deep")
            .in_task(task)
            .with_instructions(vec![objects_deep(24)])
    };
    client.create_step(deep(&tasks[7])).await.refused();
    let observation = client.steps_of(&tasks[0], 0).await.remove(0);
    let mut unlinked = step_of(&observation.guid);
    unlinked.feedback_config = observation.feedback_config;
    unlinked.feedback_config[0].linked = Some(false);
    client.updated_step(unlinked, &["feedback_config"]).await;
    client.given_step(deep(&tasks[7])).await;
    exports_and_imports(&client, &tasks[1]).await;
}

#[apply(on_both_databases)]
async fn the_innermost_task_manages_no_others(client: Client) {
    let tasks = given_nested(&client, 8).await;
    let value = "document.steps[0].feedback_config[0].values[0]";
    let with_document = observation_of(document("Inner", Vec::new()));
    for (step, path) in [
        (linked_observation(&[("a", "Inner")]), value.to_owned()),
        (with_document, format!("{value}.task_json")),
    ] {
        let guide = document_of(&tasks[7], vec![step]);
        let failure = client.import_with(AbsentSteps::Keep, guide).await.refused();
        failure.violates(&[(&path, "NESTING_TOO_DEEP")]);
    }
    exports_and_imports(&client, &tasks[0]).await;
}

#[apply(on_both_databases)]
async fn an_import_into_a_managed_task_nests_eight_deep_in_all(client: Client) {
    let tasks = given_nested(&client, 7).await;
    let one_more = linked_observation(&[("a", "Inner")]);
    let two_more = observation_of(document("Inner", vec![one_more.clone()]));
    let guide = document_of(&tasks[6], vec![two_more]);
    let failure = client.import_with(AbsentSteps::Keep, guide).await.refused();
    let path = "document.steps[0].feedback_config[0].values[0].task_json\
        .steps[0].feedback_config[0].values[0]";
    failure.violates(&[(path, "NESTING_TOO_DEEP")]);
    let guide = document_of(&tasks[6], vec![one_more]);
    let made = client.import_with(AbsentSteps::Keep, guide).await;
    made.accepted();
    let exported = client.exported(&tasks[0]).await;
    assert_eq!(documents_in(&exported).len(), 8);
    // The export names the new task by its guid, so importing it again adds no level.
    let again = client.exported(&tasks[6]).await;
    client.import(again).await.accepted();
    exports_and_imports(&client, &tasks[0]).await;
}

#[apply(on_both_databases)]
async fn a_value_without_a_document_counts_as_one(client: Client) {
    let inner = |inner, _| document("Guide", vec![observation_of(inner)]);
    for (observation, end) in [
        (linked_observation(&[("a", "Inner")]), ""),
        (observation_of(document("Inner", Vec::new())), ".task_json"),
    ] {
        let guide = |depth| (1..depth).fold(document("Guide", vec![observation.clone()]), inner);
        let failure = client.import(guide(8)).await.refused();
        let inner = ".steps[0].feedback_config[0].values[0].task_json".repeat(7);
        let path = format!("document{inner}.steps[0].feedback_config[0].values[0]{end}");
        failure.violates(&[(&path, "NESTING_TOO_DEEP")]);
        let made = client.imported(guide(7)).await;
        exports_and_imports(&client, &made.guid).await;
    }
}

/// A task that has room for this many steps.
async fn given_room_for(client: &Client, room: usize) -> Task {
    let steps = vec![document_step(StepType::Information, "one of many"); 10_000 - room];
    client.imported(document("Full", steps)).await
}

#[apply(on_both_databases)]
async fn a_created_step_is_the_ten_thousandth_at_most(client: Client) {
    let full = given_room_for(&client, 1).await;
    let last = create_step_request(information_step(&full, "Last"))
        .with(|it| it.request_id = unknown_guid());
    let created = client.call(last.clone()).await.accepted();
    let one_more = last.clone().with(|it| it.request_id = String::new());
    for request in [
        one_more.clone(),
        one_more
            .clone()
            .with(|it| it.prevstep = full.steps[0].clone()),
        one_more.clone().with(|it| it.validate_only = true),
        one_more.with(|it| it.step = Some(subtask(&full, &full))),
    ] {
        let failure = client.call(request).await.refused();
        failure.violates(&[("step.task", "TOO_MANY_ELEMENTS")]);
    }
    let again = client.call(last).await.accepted();
    assert_eq!(again.step, created.step);
    let read = client.get_task(&full.guid).await.accepted();
    assert_eq!(read.steps.len(), 10_000);
    exports_and_imports(&client, &full.guid).await;
    client.delete_step(&read.steps[0]).await.accepted();
    client.given_step(information_step(&full, "Again")).await;
}

#[apply(on_both_databases)]
async fn concurrent_steps_are_ten_thousand_at_most(client: Client) {
    let full = given_room_for(&client, 3).await;
    let creates = (0..12).map(|_| client.create_step(information_step(&full, "One")));
    let results = join_all(creates).await;
    let created = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(created, 3);
    for result in results.into_iter().filter(Result::is_err) {
        let failure = result.refused();
        failure.violates(&[("step.task", "TOO_MANY_ELEMENTS")]);
    }
    assert_eq!(client.step_order(&full.guid).await.len(), 10_000);
}

#[apply(on_one_database)]
async fn kept_steps_count_for_an_import(client: Client) {
    let full = given_room_for(&client, 1).await;
    let keep = async |added: &[&str]| {
        let guide = document_of(&full.guid, document_steps(added));
        client.import_with(AbsentSteps::Keep, guide).await
    };
    let failure = keep(&["one", "two"]).await.refused();
    failure.violates(&[("document.steps", "TOO_MANY_ELEMENTS")]);
    let made = keep(&["one"]).await.accepted();
    assert_eq!(made.task.unwrap().steps.len(), 10_000);
}

#[apply(on_one_database)]
async fn wiring_steps_count_for_an_import(client: Client) {
    let guide = |listed: usize| {
        let mut steps = vec![document_step(StepType::Information, "one of many"); listed - 1];
        steps.push(linked_observation(&[("a", "A"), ("b", "B")]));
        document("Guide", steps)
    };
    let failure = client.import(guide(9_999)).await.refused();
    failure.violates(&[("document.steps", "TOO_MANY_ELEMENTS")]);
    let expected = "would give the task more than 10000 steps";
    assert_eq!(failure.description_of("document.steps"), expected);
    let failure = client.import(document("Outer", vec![observation_of(guide(9_999))]));
    let inner = "document.steps[0].feedback_config[0].values[0].task_json.steps";
    let failure = failure.await.refused();
    failure.violates(&[(inner, "TOO_MANY_ELEMENTS")]);
    let made = client.imported(guide(9_998)).await;
    assert_eq!(made.steps.len(), 10_000);
}
