//! Documents of a task that exists.

use crate::kit::prelude::*;

async fn rich(client: &Client) -> (Task, Step) {
    let sent = document_with(full_task(), vec![full_step(&Task::default())]);
    let made = client.imported(sent).await;
    let step = client.get_step(&made.steps[0]).await.accepted();
    (made, step)
}

async fn guide(client: &Client, titles: &[&str]) -> Task {
    client.given_guide(document_steps(titles)).await
}

#[apply(on_both_databases)]
async fn ids_are_read_in_any_case(client: Client) {
    let made = guide(&client, &["a"]).await;
    let steps = vec![step_of(&made.steps[0].to_uppercase())];
    let after = client
        .imported(document_of(&made.guid.to_uppercase(), steps))
        .await;
    assert_eq!(after, made);
}

#[apply(on_both_databases)]
async fn a_step_may_be_listed_once(client: Client) {
    let made = guide(&client, &["a"]).await;
    let steps = vec![
        step_of(&made.steps[0]),
        step_of(&made.steps[0].to_uppercase()),
    ];
    let failure = client
        .import(document_of(&made.guid, steps))
        .await
        .refused();
    failure.violates(&[("document.steps[1].guid", "FIELD_INVALID")]);
}

/// A guide with a step and a linked question, as it is exported.
async fn exported(client: &Client) -> TaskDocument {
    let inner = document("", document_steps(&["inner"]));
    let question = linked_question(vec![answer_with("a", "A", inner)]);
    let steps = vec![
        document_step(StepType::Information, "a"),
        observation_asking(question),
    ];
    let made = client.given_guide(steps).await;
    client.exported(&made.guid).await
}

#[apply(on_both_databases)]
async fn a_step_of_another_task_is_not_found(client: Client) {
    let other = guide(&client, &["elsewhere"]).await;
    let sent = exported(&client).await;
    let value = &sent.steps[1].feedback_config[0].values[0];
    let inner = &value.task_json.as_ref().unwrap().steps[0];
    let before = client.tasks_with_steps().await;
    let in_value = "document.steps[1].feedback_config[0].values[0].task_json.steps[1].guid";
    for (listed, field) in [
        (&other.steps[0], "document.steps[3].guid"),
        (&inner.guid, "document.steps[3].guid"),
        (&sent.steps[0].guid, in_value),
    ] {
        let mut sent = sent.clone();
        if field == in_value {
            let value = &mut sent.steps[1].feedback_config[0].values[0];
            let inner = value.task_json.as_mut().unwrap();
            inner.steps.push(step_of(listed));
        } else {
            sent.steps.push(step_of(listed));
        }
        let failure = client
            .import_with(AbsentSteps::Delete, sent)
            .await
            .refused();
        failure.is_step_not_found(listed);
        assert_eq!(failure.metadata()["field"], field);
    }
    assert_eq!(client.tasks_with_steps().await, before);
}

/// Gives the task another product and type, and its first step another product, type and task.
fn mistake(document: &mut TaskDocument) {
    let task = document.task.as_mut().unwrap();
    task.product_id = Some(PRODUCT + 1);
    task.r#type = Some(1 - task.r#type.unwrap());
    let first = &mut document.steps[0];
    first.product_id = Some(PRODUCT + 1);
    first.set_type(StepType::End);
    first.task = unknown_guid();
}

/// The same with values that no task or step can have.
fn invalid_mistake(document: &mut TaskDocument) {
    mistake(document);
    document.task.as_mut().unwrap().product_id = Some(-3);
    document.steps[0].product_id = Some(0);
    document.steps[0].r#type = 99;
}

#[apply(on_both_databases)]
async fn changed_fixed_fields_are_ignored_and_listed(client: Client) {
    for mistake in [mistake, invalid_mistake] {
        assert_ignored_and_listed(&client, mistake).await;
    }
}

async fn assert_ignored_and_listed(client: &Client, mistake: fn(&mut TaskDocument)) {
    let mut sent = exported(client).await;
    let before = client.tasks_with_steps().await;
    mistake(&mut sent);
    let values = &mut sent.steps[1].feedback_config[0].values;
    mistake(values[0].task_json.as_mut().unwrap());
    let response = client.import(sent).await.accepted();
    let below = "document.steps.feedback_config.values.task_json";
    let mut expected = Vec::new();
    for at in [below, "document"] {
        for field in [
            "steps.product_id",
            "steps.task",
            "steps.type",
            "task.product_id",
        ] {
            expected.push(format!("{at}.{field}"));
        }
    }
    expected.sort_unstable();
    assert_eq!(response.ignored_paths, expected);
    assert_eq!(client.tasks_with_steps().await, before);
}

#[apply(on_both_databases)]
async fn a_subtask_step_may_refer_to_another_task_from_now_on(client: Client) {
    let first = client.given_task(task("First")).await;
    let second = client.given_task(task("Second").with_product(99)).await;
    let made = client
        .given_guide(vec![subtask(&Task::default(), &first)])
        .await;
    let change = step_of(&made.steps[0]).with_subtask_id(second.guid.clone());
    client.imported(document_of(&made.guid, vec![change])).await;
    let after = client.get_step(&made.steps[0]).await.accepted();
    assert_eq!(after.subtask_id, second.guid);
    assert_eq!(
        (after.subtask_pid, after.title.as_str()),
        (Some(99), "Second")
    );
    client.delete_task(&first.guid).await.accepted();
    let failure = client.delete_task(&second.guid).await.refused();
    failure.is_precondition("TASK_REFERENCED");
}

fn renaming(guid: &str, etag: &str) -> ImportTaskRequest {
    let sent = document_with(task_of(guid).named("Renamed"), Vec::new());
    import_of(sent).with(|it| it.etag = etag.to_owned())
}

#[apply(on_both_databases)]
async fn an_old_etag_aborts_the_import(client: Client) {
    let made = guide(&client, &[]).await;
    let after = client.call(renaming(&made.guid, "")).await.accepted();
    for etag in [made.etag.as_str(), "x", " "] {
        let failure = client.call(renaming(&made.guid, etag)).await.refused();
        failure.is(Code::Aborted, "ETAG_MISMATCH");
        let expected = format!(
            "task {}: its etag is not the one sent; read it again",
            made.guid
        );
        assert_eq!(failure.message, expected);
    }
    let read = client.get_task(&made.guid).await.accepted();
    assert_eq!(Some(read), after.task);
}

#[apply(on_both_databases)]
async fn an_etag_follows_the_list_of_steps_and_not_their_texts(client: Client) {
    let made = guide(&client, &["a"]).await;
    let step = step_of(&made.steps[0]);
    client.updated_step(step.clone().titled("b"), &[]).await;
    let request = import_of(document_of(&made.guid, vec![step.titled("c")]))
        .with(|it| it.etag = made.etag.clone());
    client.call(request.clone()).await.accepted();
    assert_eq!(client.step_titles(&made.guid).await, ["c"]);
    client.given_step(information_step(&made, "new")).await;
    let refused = client.call(request).await.refused();
    refused.is(Code::Aborted, "ETAG_MISMATCH");
}

#[apply(on_both_databases)]
async fn a_shorthand_alone_replaces_dependencies(client: Client) {
    let (made, step) = rich(&client).await;
    let shorthand = "components.7.power = on";
    let steps = vec![step_of(&step.guid).with_shorthand(shorthand)];
    let sent = document_with(task_of(&made.guid).with_shorthand(shorthand), steps);
    let response = client.import(sent).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let task = response.task.unwrap();
    assert_eq!(task.dependency_shorthand.as_deref(), Some(shorthand));
    let step = client.get_step(&step.guid).await.accepted();
    assert_eq!(step.dependency_shorthand.as_deref(), Some(shorthand));
}

/// Many imports, each with new steps and a new order.
#[apply(on_both_databases)]
async fn a_hundred_orders_in_a_row_are_those_of_their_lists(client: Client) {
    let made = guide(&client, &["a", "b", "c"]).await;
    let mut order = made.steps.clone();
    for round in 0..100 {
        let mut steps: Vec<Step> = order.iter().map(|guid| step_of(guid)).collect();
        match round % 5 {
            0 => steps.reverse(),
            1 => steps.rotate_left(1),
            2 => steps.insert(1, document_step(StepType::Information, "second")),
            3 => steps.insert(0, document_step(StepType::Information, "first")),
            _ => {
                let at = steps.len() / 2;
                steps.insert(at, document_step(StepType::Information, "middle"));
                steps.insert(at, document_step(StepType::Information, "before"));
            }
        }
        let expected: Vec<String> = steps.iter().map(|step| step.guid.clone()).collect();
        let after = client.imported(document_of(&made.guid, steps)).await;
        let known = after.steps.iter().map(|guid| match order.contains(guid) {
            true => guid.clone(),
            false => String::new(),
        });
        assert_eq!(known.collect::<Vec<_>>(), expected);
        assert_eq!(client.step_order(&made.guid).await, after.steps);
        order = after.steps;
    }
    let listed = client.steps_of(&made.guid, 7).await;
    let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
    assert_eq!(listed, order);
}

#[apply(on_both_databases)]
async fn a_step_that_is_moved_and_changed_by_one_import_is_both(client: Client) {
    let made = guide(&client, &["a", "b", "c", "d"]).await;
    let mut order = made.steps.clone();
    order.rotate_right(1);
    let mut steps: Vec<Step> = order.iter().map(|guid| step_of(guid)).collect();
    steps[0].title = "D".to_owned();
    client.imported(document_of(&made.guid, steps)).await;
    assert_eq!(client.step_order(&made.guid).await, order);
    let moved = client.get_step(&order[0]).await.accepted();
    assert_eq!(moved.title, "D");
}

#[apply(on_both_databases)]
async fn subtask_fields_of_other_types_of_steps_are_ignored_and_listed(client: Client) {
    let (made, step) = rich(&client).await;
    let sent = step_of(&step.guid)
        .with_subtask_id(made.guid.clone())
        .with(|it| it.subtask_pid = made.product_id);
    let sent = document_of(&made.guid, vec![sent]);
    let response = client.import(sent).await.accepted();
    assert_eq!(
        response.ignored_paths,
        ["document.steps.subtask_id", "document.steps.subtask_pid"]
    );
    assert_eq!(client.get_step(&step.guid).await.accepted(), step);
}
