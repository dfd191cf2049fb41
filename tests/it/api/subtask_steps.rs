//! Subtask steps, and the deletion of tasks that they refer to.

mod external_ids;

use crate::prelude::*;

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
    for round in 0..8 {
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
