//! ImportTask of a document that creates a task with its steps.

use crate::kit::prelude::*;

mod absent_fields;
mod absent_steps;
pub mod example_guides;
mod existing_task;
mod outcomes;
mod refused;
mod retries;
mod step_limit;

#[apply(on_both_databases)]
async fn steps_with_equal_ids_are_made_separately(client: Client) {
    let id = unknown_guid();
    let steps = document_steps(&["a", "b"]).into_iter();
    let steps = steps.map(|step| step.with_guid(id.clone()));
    let made = client.given_guide(steps.collect()).await;
    assert_eq!(client.step_titles(&made.guid).await, ["a", "b"]);
    assert!(!made.steps.contains(&id), "{made:?}");
}

#[apply(on_both_databases)]
async fn system_set_fields_are_ignored_and_not_listed(client: Client) {
    let time = Some(prost_types::Timestamp {
        seconds: 1,
        nanos: 0,
    });
    let mut sent = document("Guide", document_steps(&["a"]));
    sent.task = Some(Task {
        r#type: Some(TaskType::Linked.into()),
        steps: vec![unknown_guid()],
        etag: "old".to_owned(),
        account_id: "theirs".to_owned(),
        parent_guid: unknown_guid(),
        idx: 3,
        dirty_record: false,
        mvn_indexed: true,
        mvn_version: 4,
        mvn_info: "known".to_owned(),
        mvn_ts: time,
        created_ts: time,
        modified_ts: time,
        ..task("Guide")
    });
    sent.steps[0] = Step {
        link: unknown_guid(),
        etag: "old".to_owned(),
        account_id: "theirs".to_owned(),
        r_data: [("r_data_x".to_owned(), text("x"))].into(),
        created_ts: time,
        modified_ts: time,
        ..document_step(StepType::Information, "a")
    };
    let plain = client.given_guide(document_steps(&["a"])).await;
    let response = client.import(sent).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let made = response.task.unwrap();
    assert_eq!(made.account_id, client.account());
    assert_ne!(made.created_ts, time);
    let [plain, made] = [
        client.exported(&plain.guid).await,
        client.exported(&made.guid).await,
    ];
    assert_eq!(canonical(made), canonical(plain));
}

#[apply(on_both_databases)]
async fn fields_of_other_types_are_listed_once(client: Client) {
    let odd = document_step(StepType::Information, "a")
        .with_subtask_id(unknown_guid())
        .with_subtask_pid(1);
    let inner = document("Inner", vec![odd.clone()]);
    let steps = vec![
        odd.clone(),
        odd,
        observation_asking(linked_question(vec![answer_with("a", "A", inner)])),
    ];
    let response = client.import(document("Guide", steps)).await.accepted();
    let below = "document.steps.feedback_config.values.task_json";
    let expected = [
        format!("{below}.steps.subtask_id"),
        format!("{below}.steps.subtask_pid"),
        format!("{below}.task.name"),
        "document.steps.subtask_id".to_owned(),
        "document.steps.subtask_pid".to_owned(),
    ];
    assert_eq!(response.ignored_paths, expected);
}

#[apply(on_both_databases)]
async fn a_title_of_a_subtask_step_is_listed_if_it_differs(client: Client) {
    let outside = client.given_task(task("Outside")).await;
    let titled = |title: &str| subtask(&Task::default(), &outside).titled(title);
    let same = document("Guide", vec![titled("Outside"), titled("")]);
    let response = client.import(same).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let other = document("Guide", vec![titled("Mine")]);
    let response = client.import(other).await.accepted();
    assert_eq!(response.ignored_paths, ["document.steps.title"]);
    let guid = response.task.unwrap().guid;
    assert_eq!(client.step_titles(&guid).await, ["Outside"]);
}

#[apply(on_both_databases)]
async fn steps_can_be_added_to_an_imported_task(client: Client) {
    let made = client.given_guide(document_steps(&["a", "b", "c"])).await;
    client.given_step(information_step(&made, "end")).await;
    let created = client
        .create_step_after(information_step(&made, "a2"), &made.steps[0])
        .await;
    assert_eq!(created.accepted().placement(), Placement::AfterPrevstep);
    assert_eq!(
        client.step_titles(&made.guid).await,
        ["a", "a2", "b", "c", "end"]
    );
}
