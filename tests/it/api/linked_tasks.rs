//! Linked tasks: those that the values of an observation manage, as an import creates
//! them.

use crate::kit::prelude::*;

mod deletes;
mod reimport;
mod updates;

/// A guide with one linked question: its task, the observation and the wiring
/// steps.
async fn guide(client: &Client, answers: &[(&str, &str)]) -> (Task, Step, Vec<Step>) {
    let steps = vec![
        linked_observation(answers),
        document_step(StepType::End, "end"),
    ];
    let made = client.given_guide(steps).await;
    let mut steps = client.steps_with_bodies(&made.guid).await;
    steps.pop();
    let question = steps.remove(0);
    (made, question, steps)
}

/// The tasks that the step's values manage, in value order.
async fn managed_by(client: &Client, step: &Step) -> Vec<Task> {
    let mut tasks = Vec::new();
    for value in answers_of(step) {
        tasks.push(client.get_task(&value.link).await.accepted());
    }
    tasks
}

/// The step as it is now.
async fn now(client: &Client, step: &Step) -> Step {
    client.get_step(&step.guid).await.accepted()
}

/// Asserts that the task is no longer managed and its wiring step is an ordinary
/// subtask step, which keeps the task from being deleted.
async fn unlinked(client: &Client, task: &Task, wiring: &Step) {
    let after = client.get_task(&task.guid).await.accepted();
    let expected = Task {
        r#type: Some(TaskType::Standard.into()),
        parent_guid: String::new(),
        idx: 0,
        etag: after.etag.clone(),
        modified_ts: after.modified_ts,
        ..task.clone()
    };
    assert_eq!(after, expected);
    assert_ne!(after.etag, task.etag);
    let after = now(client, wiring).await;
    let expected = Step {
        link: String::new(),
        etag: after.etag.clone(),
        modified_ts: after.modified_ts,
        ..wiring.clone()
    };
    assert_eq!(after, expected);
    assert_ne!(after.etag, wiring.etag);
    let failure = client.force_delete_task(&task.guid).await.refused();
    let named = [("TASK_REFERENCED", wiring.guid.as_str())];
    assert_eq!(failure.preconditions(), named);
}

/// The wiring step of a document for the value that has this link.
fn wires(link: &str) -> Step {
    let target = task("").with_guid(link);
    subtask(&Task::default(), &target).with_link(link)
}

/// A linked question whose values have these links.
fn question_with(links: &[&str]) -> FeedbackConfig {
    let values = links.iter().enumerate().map(|(index, link)| {
        answer(&index.to_string(), &format!("value {index}")).with_link((*link).to_owned())
    });
    linked_question(values.collect())
}

#[apply(on_both_databases)]
async fn a_listed_wiring_step_keeps_its_fields(client: Client) {
    let link = unknown_guid();
    let wiring = wires(&link)
        .with_body("<p>Go on.</p>")
        .with_tags(vec!["wired".to_owned()]);
    let steps = vec![observation_asking(question_with(&[&link])), wiring.clone()];
    let made = client.given_guide(steps).await;
    assert_eq!(made.steps.len(), 2);
    let after = client.get_step(&made.steps[1]).await.accepted();
    assert_eq!((after.body, after.tags), (wiring.body, wiring.tags));
}

#[apply(on_both_databases)]
async fn the_name_and_product_in_a_values_document_are_ignored_and_listed(client: Client) {
    let inner = document_with(
        Task::default()
            .named("x".repeat(201))
            .with_product(PRODUCT + 1),
        Vec::new(),
    );
    let question = linked_question(vec![answer_with("a", "A", inner)]);
    let response = client
        .import(document("Guide", vec![observation_asking(question)]))
        .await;
    let response = response.accepted();
    let below = "document.steps.feedback_config.values.task_json.task";
    assert_eq!(
        response.ignored_paths,
        [format!("{below}.name"), format!("{below}.product_id")]
    );
    let question = &response.task.unwrap().steps[0];
    let question = client.get_step(question).await.accepted();
    let task = managed_by(&client, &question).await.remove(0);
    assert_eq!((task.name.as_str(), task.product_id), ("A", Some(PRODUCT)));
}

#[apply(on_both_databases)]
async fn a_managed_task_has_the_product_of_its_parent(client: Client) {
    let observation = linked_observation(&[("a", "A")]).with_product(PRODUCT + 1);
    let made = client.given_guide(vec![observation]).await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let task = managed_by(&client, &question).await.remove(0);
    assert_eq!(task.product_id, Some(PRODUCT));
    let wiring = client.get_step(&made.steps[1]).await.accepted();
    assert_eq!(wiring.subtask_pid, Some(PRODUCT));
}

#[apply(on_both_databases)]
async fn a_link_is_never_taken_from_a_caller(client: Client) {
    let other = client.given_task(task("Other")).await;
    let (made, question, _) = guide(&client, &[("a", "A")]).await;
    let mine = &answers_of(&question)[0].link;
    let sent = |config: &FeedbackConfig| {
        let mut config = config.clone();
        config.values[0].link.clone_from(&other.guid);
        config
    };

    let copied = vec![observation_asking(sent(&question.feedback_config[0]))];
    let copied = client.imported(document("Copy", copied)).await;
    let copied = client.get_step(&copied.steps[0]).await.accepted();
    let link = &answers_of(&copied)[0].link;
    assert!(link != mine && *link != other.guid);

    let change = step_of(&question.guid).with_question(sent(&question.feedback_config[0]));
    let updated = client
        .update_step(change.clone(), &["feedback_config"])
        .await;
    let updated = updated.accepted();
    assert_eq!(updated.ignored_paths, ["step.feedback_config.values.link"]);
    assert_eq!(updated.step, Some(question.clone()));
    let sent = document_of(&made.guid, vec![change, step_of(&made.steps[2])]);
    client.imported(sent).await;
    assert_eq!(now(&client, &question).await, question);
    assert_eq!(client.get_task(&other.guid).await.accepted(), other);

    let plain = Step {
        link: other.guid.clone(),
        feedback_config: vec![
            copied.feedback_config[0]
                .clone()
                .with(|it| it.linked = None),
        ],
        ..step(&made, StepType::Observation, "plain")
    };
    let created = client.create_step(plain).await.accepted();
    let ignored = ["step.feedback_config.values.link", "step.link"];
    assert_eq!(created.ignored_paths, ignored);
    let created = created.step.unwrap();
    assert_eq!(created.link, "");
    assert_eq!(answers_of(&created)[0].link, "");
}

#[apply(on_both_databases)]
async fn a_thousand_values_manage_a_thousand_tasks(client: Client) {
    let keys: Vec<String> = (0..1_000).map(|key| key.to_string()).collect();
    let values: Vec<(&str, &str)> = keys
        .iter()
        .map(|key| (key.as_str(), key.as_str()))
        .collect();
    let made = client.given_guide(vec![linked_observation(&values)]).await;
    assert_eq!(made.steps.len(), 1_001);
    let titles = client.step_titles(&made.guid).await;
    assert_eq!(titles[1..], keys);
    let tasks = client.all_tasks().await;
    assert_eq!(tasks.len(), 1_001);
    let exported = client.exported(&made.guid).await;
    client.import(exported).await.accepted();
    assert_eq!(client.get_task(&made.guid).await.accepted(), made);
}

#[apply(on_both_databases)]
async fn managed_tasks_are_listed_by_their_type(client: Client) {
    let (made, question, _) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let managed = managed_by(&client, &question).await;
    for (kind, expected) in [
        (TaskType::Linked, managed),
        (TaskType::Standard, vec![made]),
    ] {
        let request = ListTasksRequest::default().with(|it| it.r#type = Some(kind.into()));
        assert_eq!(client.call(request).await.accepted().tasks, expected);
    }
}

#[apply(on_both_databases)]
async fn a_translated_question_links_nothing(client: Client) {
    let translated = StepTranslation::default()
        .with(|it| it.feedback_config = vec![question_with(&[&unknown_guid()])]);
    let observation = linked_observation(&[("a", "A")]).translated("de", translated);
    let response = client.import(document("Guide", vec![observation])).await;
    let response = response.accepted();
    let listed = "document.steps.translations.feedback_config.linked";
    assert_eq!(response.ignored_paths, [listed]);
    let question = &response.task.unwrap().steps[0];
    let question = client.get_step(question).await.accepted();
    let config = &question.translations["de"].feedback_config[0];
    assert!(!config.linked.unwrap_or_default());
    assert_eq!(config.values[0].link, "");
    assert_eq!(client.all_tasks().await.len(), 2);
}
