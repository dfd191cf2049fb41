//! After any history, the listed references equal those that a scan of all exports finds, and
//! DeleteTask refuses exactly the tasks that subtask steps of other tasks refer to.

use proptest::collection::vec;

use super::reference_oracle as oracle;
use crate::{
    api::analysis::of_task,
    kit::random_writes::{Write, apply, write},
    prelude::*,
};

/// Names that are asked for.
const NAMES: [&str; 5] = ["a", "b", "components.7.a", "components.7.b", "outside"];
const ANSWERS: [&str; 3] = ["", "5", "true"];

#[apply(property_on_both_databases)]
#[cases(8, (vec(write(), 1..30), 1..5))]
async fn references_equal_a_scan_of_all_exports(
    client: Client,
    (history, size): (Vec<Write>, i32),
) {
    for (number, write) in history.iter().enumerate() {
        apply(&client, write, number).await;
    }
    let exports = oracle::exports(&client).await;
    let mut requests = Vec::new();
    let tasks = exports.iter().map(|(task, _)| task.guid.clone());
    for task in tasks.chain([String::new()]) {
        if !task.is_empty() {
            requests.push((task.clone(), "", ""));
        }
        for name in NAMES {
            requests.extend(ANSWERS.map(|answer| (task.clone(), name, answer)));
        }
    }
    for (task, variable, answer) in requests {
        let request = ListReferencesRequest {
            task,
            variable: variable.to_owned(),
            answer: answer.to_owned(),
            page_size: size,
            page_token: String::new(),
        };
        let expected = oracle::scan(&exports, &request);
        let found = client.list(request.clone()).await;
        assert_eq!(found, expected, "{request:?}");
    }
    for (task, _) in &exports {
        delete_is_refused_by_references(&client, task).await;
    }
}

async fn delete_is_refused_by_references(client: &Client, task: &Task) {
    let listed = client.list(of_task(task)).await;
    let of_others = listed.iter().any(|reference| {
        let place = reference.place.as_ref().expect("a place");
        reference.kind() == ReferenceKind::Subtask && place.task != task.guid
    });
    let managed = listed
        .iter()
        .any(|reference| reference.kind() == ReferenceKind::Manages);
    match client.force_delete_task(&task.guid).await {
        Ok(_) => assert!(!of_others && !managed, "{listed:?}"),
        Err(status) => match Failure::from(status).reason() {
            "TASK_REFERENCED" => assert!(of_others, "{listed:?}"),
            "TASK_MANAGED" => assert!(managed, "{listed:?}"),
            other => panic!("{other}"),
        },
    }
}
