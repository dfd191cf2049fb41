//! Paging while the list changes between two pages.

use super::steps_page;
use crate::prelude::*;

fn page_of(task: &Task, token: &str) -> ListStepsRequest {
    steps_page(task, token).with(|it| it.page_size = 2)
}

/// A task, its five steps, and the token of a page of the first two.
async fn guide(client: &Client) -> (Task, Vec<String>, String) {
    let task = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&task, &["a", "b", "c", "d", "e"]).await;
    let page = client.call(page_of(&task, "")).await.accepted();
    assert_eq!(guids(page.steps), steps[..2]);
    (task, steps, page.next_page_token)
}

fn guids(steps: Vec<Step>) -> Vec<String> {
    steps.into_iter().map(|step| step.guid).collect()
}

#[apply(on_both_databases)]
async fn a_deleted_task_at_the_edge_of_a_page_loses_no_other(client: Client) {
    let mut tasks = Vec::new();
    for n in 0..5 {
        tasks.push(client.given_task(task(&format!("task {n}"))).await);
    }
    let mut request = ListTasksRequest::default().with(|it| it.page_size = 2);
    let first = client.call(request.clone()).await.accepted();
    assert_eq!(first.tasks, tasks[..2]);
    for edge in [1, 0, 2] {
        client.delete_task(&tasks[edge].guid).await.accepted();
    }
    request.page_token = first.next_page_token;
    let second = client.call(request).await.accepted();
    assert_eq!(second.tasks, tasks[3..]);
}

#[apply(on_both_databases)]
async fn deleting_everything_ends_the_list(client: Client) {
    let (task, steps, token) = guide(&client).await;
    for step in &steps {
        client.delete_step(step).await.accepted();
    }
    assert_eq!(client.list(page_of(&task, &token)).await, []);
    client.delete_task(&task.guid).await.accepted();
    let listed = client.call(page_of(&task, &token)).await;
    listed.refused().is_task_not_found(&task.guid);
}

/// A page ended at step b. Then b and all later steps are deleted. Steps that are added afterwards,
/// in any way, come after the token.
#[apply(on_both_databases)]
async fn steps_added_after_the_last_ones_were_deleted_are_on_the_next_page(client: Client) {
    let other = client.given_task(task("Other")).await;
    for way in [
        Addition::Append,
        Addition::Subtask,
        Addition::BehindTheLast,
        Addition::Import,
        Addition::ImportThenSubtask,
    ] {
        let (task, steps, token) = guide(&client).await;
        if let Addition::ImportThenSubtask = way {
            let mut document = client.exported(&task.guid).await;
            document.steps.truncate(1);
            let imported = client.import_with(AbsentSteps::Delete, document).await;
            imported.accepted();
        } else {
            for step in &steps[1..] {
                client.delete_step(step).await.accepted();
            }
        }
        let new = information_step(&task, "new");
        match way {
            Addition::Append => {
                client.given_step(new).await;
            }
            Addition::Subtask | Addition::ImportThenSubtask => {
                client.given_step(subtask(&task, &other)).await;
            }
            Addition::BehindTheLast => {
                client.create_step_after(new, &steps[0]).await.accepted();
            }
            Addition::Import => {
                let mut document = client.exported(&task.guid).await;
                document.steps.extend(document_steps(&["new"]));
                client.import(document).await.accepted();
            }
        }
        let order = client.step_order(&task.guid).await;
        assert_eq!(order.len(), 2, "{way:?}");
        let rest = client.list(page_of(&task, &token)).await;
        assert_eq!(guids(rest), order[1..], "{way:?}");
    }
}

/// A way in which a step comes to the end of a task.
#[derive(Debug)]
enum Addition {
    Append,
    Subtask,
    BehindTheLast,
    Import,
    ImportThenSubtask,
}
