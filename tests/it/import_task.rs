//! ImportTask of a document that creates a task with its steps.

use crate::kit::prelude::*;

mod absent_fields;
mod absent_steps;
pub mod example_guides;
mod existing_task;
mod outcomes;
mod refused;
mod retries_and_dry_runs;
mod step_limit;

on_both_databases![
    an_import_makes_a_task_with_its_steps_in_list_order,
    a_document_may_hold_no_steps,
    an_import_equals_separate_creates,
    system_set_fields_are_ignored_and_not_listed,
    fields_of_other_types_are_listed_once,
    a_title_of_a_subtask_step_is_listed_if_it_differs,
    steps_get_new_ids,
    tasks_get_new_ids,
    a_subtask_step_may_refer_to_its_own_new_task,
    a_subtask_step_may_refer_to_a_task_of_a_value,
    a_subtask_step_may_refer_ahead_and_upwards,
    a_subtask_step_may_refer_to_a_task_outside,
    shorthand_is_honored,
    equal_shorthand_and_dependencies_are_accepted,
    one_document_may_be_imported_many_times,
    steps_can_be_added_to_an_imported_task,
];

async fn an_import_makes_a_task_with_its_steps_in_list_order(client: Client) {
    let sent = document("Guide", document_steps(&["c", "a", "b"]));
    let response = client.import(sent).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let made = response.task.unwrap();
    assert_eq!(made.name, "Guide");
    assert_eq!(made.r#type(), TaskType::Standard);
    assert_eq!(made.steps.len(), 3);
    assert_eq!(client.get_task(&made.guid).await.accepted(), made);
    assert_eq!(client.step_titles(&made.guid).await, ["c", "a", "b"]);
    let listed = client.steps_of(&made.guid, 2).await;
    let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
    assert_eq!(listed, made.steps);
}

async fn a_document_may_hold_no_steps(client: Client) {
    let made = client.imported(document("Empty", Vec::new())).await;
    assert_eq!(made.steps, [""; 0]);
    assert_eq!(client.get_task(&made.guid).await.accepted(), made);
}

async fn an_import_equals_separate_creates(client: Client) {
    let created = client.given_task(full_task()).await;
    let outside = client.given_task(task("Outside")).await;
    let mut parts: Vec<Step> = [1, 2, 3, 5, 6]
        .map(|kind| StepType::try_from(kind).unwrap())
        .map(|kind| document_step(kind, "a"))
        .into();
    parts.push(subtask(&Task::default(), &outside));
    parts.push(document_step(StepType::Solution, "costly").with_cost(2));
    parts.push(full_step(&Task::default()));
    for part in &parts {
        let step = part.clone().in_task(created.guid.clone());
        client.given_step(step).await;
    }
    let sent = TaskDocument {
        task: Some(full_task()),
        steps: parts,
    };
    let made = client.imported(sent).await;
    let [created, made] = [
        client.exported(&created.guid).await,
        client.exported(&made.guid).await,
    ];
    assert_eq!(canonical(made), canonical(created));
}

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
    let plain = client
        .imported(document("Guide", document_steps(&["a"])))
        .await;
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

async fn fields_of_other_types_are_listed_once(client: Client) {
    let odd = Step {
        subtask_id: unknown_guid(),
        subtask_pid: Some(1),
        ..document_step(StepType::Information, "a")
    };
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

async fn steps_get_new_ids(client: Client) {
    let known = client.given_task(task("Known")).await;
    let known = client.given_step(information_step(&known, "known")).await;
    let sent = [known.guid.clone(), unknown_guid(), known.guid.clone()];
    let steps = sent
        .iter()
        .map(|guid| document_step(StepType::Information, "new").with_guid(guid.clone()));
    let made = client.imported(document("Guide", steps.collect())).await;
    assert_eq!(made.steps.len(), 3);
    assert!(made.steps.iter().all(|guid| !sent.contains(guid)));
    assert_eq!(client.get_step(&known.guid).await.accepted(), known);
}

async fn tasks_get_new_ids(client: Client) {
    let known = client.given_task(task("Known")).await;
    let inner = TaskDocument {
        task: Some(task("A").with_guid(known.guid.clone())),
        steps: document_steps(&["inner"]),
    };
    let value = answer_with("a", "A", inner).with_link(unknown_guid());
    let sent = value.link.clone();
    let made = client
        .imported(document(
            "Guide",
            vec![observation_asking(linked_question(vec![value]))],
        ))
        .await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let link = &answers_of(&question)[0].link;
    assert!(*link != sent && *link != known.guid);
    assert_eq!(client.get_task(&known.guid).await.accepted(), known);
}

/// A subtask step of a document.
fn refers_to(guid: &str) -> Step {
    let target = task("").with_guid(guid);
    subtask(&Task::default(), &target)
}

async fn a_subtask_step_may_refer_to_its_own_new_task(client: Client) {
    let id = unknown_guid();
    let mut steps = vec![refers_to(&id), document_step(StepType::End, "end")];
    for step in &mut steps {
        step.task.clone_from(&id);
    }
    let made = client.imported(document("Loop", steps)).await;
    let step = client.get_step(&made.steps[0]).await.accepted();
    assert_eq!(step.subtask_id, made.guid);
    assert_eq!(step.title, "Loop");
}

async fn a_subtask_step_may_refer_to_a_task_of_a_value(client: Client) {
    let (by_link, by_guid) = (unknown_guid(), unknown_guid());
    let inner = TaskDocument {
        task: Some(task_of(&by_guid)),
        steps: Vec::new(),
    };
    let values = vec![
        answer("a", "A").with_link(by_link.clone()),
        answer_with("b", "B", inner),
    ];
    // The first step that refers to a managed task becomes its wiring step.
    let refers = [&by_link, &by_guid, &by_link, &by_guid];
    let refers = refers.into_iter().map(|guid| refers_to(guid));
    let steps = [observation_asking(linked_question(values))]
        .into_iter()
        .chain(refers);
    let made = client.imported(document("Guide", steps.collect())).await;
    let steps = client.steps_with_bodies(&made.guid).await;
    let links: Vec<&String> = answers_of(&steps[0])
        .iter()
        .map(|value| &value.link)
        .collect();
    let subtasks: Vec<&String> = steps[1..].iter().map(|step| &step.subtask_id).collect();
    assert_eq!(subtasks, [links[0], links[1], links[0], links[1]]);
    let wired: Vec<&str> = steps[1..].iter().map(|step| step.link.as_str()).collect();
    assert_eq!(wired, [links[0], links[1], "", ""]);
    let titles: Vec<&str> = steps[1..].iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["A", "B", "A", "B"]);
}

async fn a_subtask_step_may_refer_ahead_and_upwards(client: Client) {
    let (root, ahead) = (unknown_guid(), unknown_guid());
    let first = document("", vec![refers_to(&root), refers_to(&ahead)]);
    let values = vec![
        answer_with("a", "A", first),
        answer("b", "B").with_link(ahead),
    ];
    let question = observation_asking(linked_question(values)).in_task(root);
    let made = client.imported(document("Guide", vec![question])).await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let [first, second] = answers_of(&question) else {
        panic!("{question:?}");
    };
    let inner = client.steps_with_bodies(&first.link).await;
    let inner: Vec<&String> = inner.iter().map(|step| &step.subtask_id).collect();
    assert_eq!(inner, [&made.guid, &second.link]);
}

async fn a_subtask_step_may_refer_to_a_task_outside(client: Client) {
    let outside = client
        .given_task(task("Outside").with_product(PRODUCT + 1))
        .await;
    let steps = vec![subtask(&Task::default(), &outside)];
    let made = client.imported(document("Guide", steps)).await;
    let step = client.get_step(&made.steps[0]).await.accepted();
    assert_eq!(step.subtask_id, outside.guid);
    assert_eq!(step.subtask_pid, Some(PRODUCT + 1));
    assert_eq!(step.title, "Outside");
    assert_eq!(step.link, "");
}

/// A document whose task and only step have these dependencies.
fn depending(shorthand: Option<&str>, dependencies: Option<DependencyGroup>) -> TaskDocument {
    let shorthand = shorthand.map(str::to_owned);
    TaskDocument {
        task: Some(Task {
            dependency_shorthand: shorthand.clone(),
            dependencies: dependencies.clone(),
            ..task("Guide")
        }),
        steps: vec![Step {
            dependency_shorthand: shorthand,
            dependencies,
            ..document_step(StepType::Information, "a")
        }],
    }
}

const SHORT: &str = "components.7.power = on";

/// The expansion of [`SHORT`].
fn long() -> DependencyGroup {
    all_of(vec![comparison(Condition {
        variable: "power".to_owned(),
        operator: "=".to_owned(),
        targets: vec![text("on")],
        path: "components.7".to_owned(),
    })])
}

async fn shorthand_is_honored(client: Client) {
    let made = client.imported(depending(Some(SHORT), None)).await;
    assert_eq!(made.dependencies, Some(long()));
    let step = client.get_step(&made.steps[0]).await.accepted();
    assert_eq!(step.dependencies, Some(long()));
}

async fn equal_shorthand_and_dependencies_are_accepted(client: Client) {
    let made = client.imported(depending(Some(SHORT), Some(long()))).await;
    assert_eq!(made.dependencies, Some(long()));
    assert_eq!(made.dependency_shorthand.as_deref(), Some(SHORT));
}

async fn one_document_may_be_imported_many_times(client: Client) {
    let sent = document("Guide", vec![linked_observation(&[("a", "A")])]);
    let first = client.imported(sent.clone()).await;
    let second = client.imported(sent).await;
    let [first, second] = [
        client.exported(&first.guid).await,
        client.exported(&second.guid).await,
    ];
    assert_ne!(first, second);
    assert_eq!(canonical(first), canonical(second));
    assert_eq!(client.all_tasks().await.len(), 4);
}

async fn steps_can_be_added_to_an_imported_task(client: Client) {
    let made = client
        .imported(document("Guide", document_steps(&["a", "b", "c"])))
        .await;
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
