//! Paging while the list changes between two pages.

use crate::prelude::*;

async fn page_of(client: &Client, task: &Task, token: &str) -> (Vec<String>, String) {
    let request = ListStepsRequest {
        task: task.guid.clone(),
        page_size: 2,
        page_token: token.to_owned(),
        expand: Vec::new(),
    };
    let listed = client.call(request).await.accepted();
    let guids = listed.steps.into_iter().map(|step| step.guid).collect();
    (guids, listed.next_page_token)
}

async fn guide(client: &Client) -> (Task, Vec<String>) {
    let task = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&task, &["a", "b", "c", "d", "e"]).await;
    (task, steps)
}

async fn rest(client: &Client, task: &Task, mut token: String) -> Vec<String> {
    let mut found = Vec::new();
    while !token.is_empty() {
        let (page, next) = page_of(client, task, &token).await;
        found.extend(page);
        token = next;
    }
    found
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
    let (task, steps) = guide(&client).await;
    let (_, token) = page_of(&client, &task, "").await;
    for step in &steps {
        client.delete_step(step).await.accepted();
    }
    assert_eq!(rest(&client, &task, token.clone()).await, [""; 0]);
    client.delete_task(&task.guid).await.accepted();
    let request = list_steps_of(&task.guid).with(|it| it.page_token = token);
    let listed = client.call(request).await;
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
        let (task, steps) = guide(&client).await;
        let (first, token) = page_of(&client, &task, "").await;
        assert_eq!(first, steps[..2]);
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
        assert_eq!(rest(&client, &task, token).await, order[1..], "{way:?}");
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
