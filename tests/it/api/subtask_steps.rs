//! Subtask steps, and the deletion of tasks that they refer to.

mod external_ids;

use crate::kit::prelude::*;

/// A guide, another task, and a subtask step of the guide that refers to it.
async fn wired(client: &Client) -> (Task, Task, Step) {
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Other")).await;
    let step = client.given_step(subtask(&guide, &other)).await;
    (guide, other, step)
}

#[apply(on_both_databases)]
async fn a_title_sent_for_a_subtask_step_is_ignored_and_listed(client: Client) {
    let (guide, other, _) = wired(&client).await;
    for title in ["Mine".to_owned(), "x".repeat(401)] {
        let sent = subtask(&guide, &other).titled(title);
        let response = client.create_step(sent).await.accepted();
        assert_eq!(response.ignored_paths, ["step.title"]);
        assert_eq!(response.step.unwrap().title, "Other");
    }
}

#[apply(on_both_databases)]
async fn renaming_a_task_leaves_other_steps_alone(client: Client) {
    let (guide, other, step) = wired(&client).await;
    let own = client.given_step(information_step(&other, "Other")).await;
    client.rename(&guide.guid, "Renamed").await;
    for step in [step, own] {
        assert_eq!(client.get_step(&step.guid).await.accepted(), step);
    }
}

#[apply(on_both_databases)]
async fn a_masked_title_of_a_subtask_step_is_ignored_and_listed(client: Client) {
    let (_, _, step) = wired(&client).await;
    for title in ["Mine", ""] {
        let update = step_of(&step.guid).titled(title);
        let updated = client.update_step(update, &["title"]).await;
        let response = updated.accepted();
        assert_eq!(response.ignored_paths, ["step.title"]);
        assert_eq!(response.step.unwrap(), step);
    }
}

#[apply(on_both_databases)]
async fn twenty_references_are_named(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Other")).await;
    // Its own references to itself do not count.
    client.given_step(subtask(&other, &other)).await;
    let mut guids = Vec::new();
    for _ in 0..21 {
        guids.push(client.given_step(subtask(&guide, &other)).await.guid);
    }
    let purge = deletion_of(&other.guid)
        .with(|it| it.force = true)
        .with(|it| it.purge_history = true);
    for deleted in [
        client.delete_task(&other.guid).await,
        client.force_delete_task(&other.guid).await,
        client.call(purge).await,
    ] {
        let failure = deleted.refused();
        failure.is_precondition("TASK_REFERENCED");
        let named = failure.preconditions().into_iter();
        let named: Vec<&str> = named.map(|(_, subject)| subject).collect();
        assert_eq!(named, guids[..20]);
    }
}

#[apply(on_both_databases)]
async fn a_task_that_refers_to_itself_alone_is_deleted(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    client.given_step(subtask(&guide, &guide)).await;
    client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(client.all_tasks().await, []);
}

#[apply(on_both_databases)]
async fn an_old_etag_keeps_a_task_from_being_deleted(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    client.rename(&guide.guid, "Renamed").await;
    let mut request = DeleteTaskRequest {
        guid: guide.guid.clone(),
        etag: guide.etag,
        force: true,
        purge_history: false,
    };
    for purge_history in [false, true] {
        request.purge_history = purge_history;
        let deleted = client.call(request.clone()).await;
        deleted.refused().is(Code::Aborted, "ETAG_MISMATCH");
    }
    request.etag = client.get_task(&guide.guid).await.accepted().etag;
    client.call(request).await.accepted();
}

/// Each import renames a task, and changes a step that refers to the other one.
#[apply(on_both_databases)]
async fn two_renames_at_once_both_reach_their_steps(client: Client) {
    let mut tasks = vec![
        client.given_task(task("One")).await,
        client.given_task(task("Two")).await,
    ];
    for (from, to) in [(0, 1), (1, 0)] {
        let steps = vec![subtask(&Task::default(), &tasks[to]); 20];
        tasks[from] = client.imported(document_of(&tasks[from].guid, steps)).await;
    }
    let (one, two) = (client.over_new_connection(), client.over_new_connection());
    for round in 0..20 {
        for task in &mut tasks {
            task.name = format!("{} {round}", task.guid);
        }
        let renaming = |task: &Task| {
            let steps = task.steps.iter();
            let steps = steps.map(|step| step_of(step).with_body(format!("{round}")));
            let mut document = document_of(&task.guid, steps.collect());
            document.task = Some(task_of(&task.guid).named(task.name.clone()));
            document
        };
        let (first, second) = tokio::join!(
            one.import_with(AbsentSteps::Keep, renaming(&tasks[0])),
            two.import_with(AbsentSteps::Keep, renaming(&tasks[1])),
        );
        first.accepted();
        second.accepted();
    }
    for (from, to) in [(0, 1), (1, 0)] {
        let titles = client.step_titles(&tasks[from].guid).await;
        assert_eq!(titles, vec![tasks[to].name.clone(); 20]);
    }
}
