//! ExportTask. That an export imports onto itself and as a copy, and changes nothing else, is
//! in `laws::import_export`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::prelude::*;

/// A guide with full steps, managed tasks that manage others, and subtask steps that
/// refer to tasks inside, above and outside of it.
async fn given_guide(client: &Client, outside: &Task) -> Task {
    // Ids within the document only: of its own task, and of the task that value "a" manages.
    let (root, first) = (unknown_guid(), unknown_guid());
    let refers = |guid: &str| {
        let target = outside.clone().with_guid(guid);
        subtask(&Task::default(), &target)
    };
    let deep = document(
        "",
        vec![refers(&root), refers(&first), full_step(&Task::default())],
    );
    let inner = document_with(
        full_task(),
        vec![
            observation_asking(linked_question(vec![answer_with("x", "X", deep)])),
            refers(&outside.guid),
        ],
    );
    let values = vec![
        answer_with("a", "A", inner).with(|it| it.link = first.clone()),
        answer("b", "B"),
    ];
    let mut steps = vec![
        full_step(&Task::default()),
        observation_asking(linked_question(values)),
        refers(&outside.guid),
        refers(&first),
        refers(&first),
        refers(&root),
    ];
    for step in &mut steps {
        step.task.clone_from(&root);
    }
    let sent = document_with(full_task(), steps);
    client.imported(sent).await
}

async fn guide(client: &Client) -> (Task, Task) {
    let outside = client.given_task(task("Outside")).await;
    let made = given_guide(client, &outside).await;
    (made, outside)
}

#[apply(on_both_databases)]
async fn managed_tasks_stand_below_their_values(client: Client) {
    let (made, _) = guide(&client).await;
    let exported = client.exported(&made.guid).await;
    assert_eq!(documents_in(&exported).len(), 4);
    let mut below = vec![exported];
    while let Some(document) = below.pop() {
        let task = document.task.expect("the task");
        assert_eq!(client.get_task(&task.guid).await.accepted(), task);
        let mut steps = document.steps;
        for value in steps
            .iter_mut()
            .flat_map(|step| &mut step.feedback_config)
            .flat_map(|config| &mut config.values)
        {
            let inner = value.task_json.take();
            let inner_task = inner.as_ref().and_then(|inner| inner.task.as_ref());
            let guid = inner_task.map_or("", |task| task.guid.as_str());
            assert_eq!(guid, value.link);
            below.extend(inner.map(|inner| *inner));
        }
        assert_eq!(client.steps_with_bodies(&task.guid).await, steps);
    }
}

#[apply(on_both_databases)]
async fn a_managed_task_is_exported_by_itself(client: Client) {
    let (made, _) = guide(&client).await;
    let exported = client.exported(&made.guid).await;
    for inner in documents_in(&exported) {
        let guid = &inner.task.as_ref().unwrap().guid;
        assert_eq!(client.exported(guid).await, *inner);
    }
}

/// The document without the id of its outermost task.
fn without_task_id(mut document: TaskDocument) -> TaskDocument {
    let task = document.task.as_mut().expect("the task");
    task.guid.clear();
    document
}

#[apply(on_both_databases)]
async fn an_export_that_refers_outside_stays_in_its_account(client: Client) {
    let (made, outside) = guide(&client).await;
    let copy = without_task_id(client.exported(&made.guid).await);
    let other = client.other_account();
    other
        .import(copy)
        .await
        .refused()
        .is_task_not_found(&outside.guid);
    assert_eq!(other.all_tasks().await, []);
}

#[apply(on_both_databases)]
async fn a_malformed_id_is_refused_and_one_in_upper_case_is_not(client: Client) {
    for (guid, reason) in [("", "FIELD_REQUIRED"), ("guide", "FIELD_INVALID")] {
        let failure = client.export(guid).await.refused();
        failure.violates(&[("guid", reason)]);
    }
    let made = client.given_guide(Vec::new()).await;
    client.export(&made.guid.to_uppercase()).await.accepted();
}

/// Exports the task repeatedly while the writer runs, and asserts that each export
/// shows one state.
async fn exports_while<W>(client: &Client, guid: &str, writer: W, one_state: fn(&TaskDocument))
where
    W: Future<Output = ()> + Send + 'static,
{
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            writer.await;
            done.store(true, Ordering::Relaxed);
        })
    };
    let reader = client.over_new_connection();
    let mut exports = 0;
    while !done.load(Ordering::Relaxed) {
        one_state(&reader.exported(guid).await);
        exports += 1;
    }
    writer.await.expect("the writer");
    assert!(exports > 1, "nothing was read meanwhile");
}

#[apply(on_both_databases)]
async fn an_export_shows_one_state_while_names_change(client: Client) {
    let keys: Vec<String> = (0..20).map(|key| key.to_string()).collect();
    let values = |text: &str| -> Vec<FeedbackValue> {
        let values = keys.iter().map(|key| answer(key, text));
        values.collect()
    };
    let steps = vec![observation_asking(linked_question(values("first")))];
    let made = client.given_guide(steps).await;
    let updates: Vec<Step> = (0..30)
        .map(|round| {
            step_of(&made.steps[0])
                .with_question(linked_question(values(&format!("round {round}"))))
        })
        .collect();
    let writer = client.clone();
    let writes = async move {
        for update in updates {
            writer.updated_step(update, &["feedback_config"]).await;
        }
    };
    exports_while(&client, &made.guid, writes, |document| {
        let text = &answers_of(&document.steps[0])[0].value;
        for value in answers_of(&document.steps[0]) {
            let inner = value
                .task_json
                .as_ref()
                .and_then(|inner| inner.task.as_ref());
            assert_eq!(inner.map(|task| &task.name), Some(text));
            assert_eq!(value.value, *text);
        }
        for wiring in &document.steps[1..] {
            assert_eq!(wiring.title, *text);
        }
    })
    .await;
}

#[apply(on_both_databases)]
async fn an_export_shows_one_state_while_steps_come_and_go(client: Client) {
    let made = client.given_guide(document_steps(&["a", "b"])).await;
    let (writer, task) = (client.clone(), made.clone());
    let writes = async move {
        for _ in 0..40 {
            let created = writer
                .create_step_after(information_step(&task, "new"), &task.steps[0])
                .await;
            let created = created.accepted().step.unwrap();
            writer.delete_step(&created.guid).await.accepted();
        }
    };
    exports_while(&client, &made.guid, writes, |document| {
        let task = document.task.as_ref().expect("the task");
        let steps: Vec<String> = document
            .steps
            .iter()
            .map(|step| step.guid.clone())
            .collect();
        assert_eq!(task.steps, steps);
    })
    .await;
}
