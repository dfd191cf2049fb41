//! Documents that make a task with its steps.

use crate::harness::prelude::*;

mod again;
mod guides;
mod left_out;
mod refused;
mod safely;

on_both_databases![
    an_import_makes_a_task_with_its_steps_in_list_order,
    a_document_may_hold_no_steps,
    an_import_reads_like_creates_of_its_parts,
    what_the_system_sets_is_neither_taken_nor_listed,
    what_a_type_does_not_have_is_listed_once,
    a_title_of_a_subtask_step_is_listed_if_it_differs,
    ids_of_steps_are_made_anew,
    ids_of_tasks_are_made_anew,
    a_subtask_step_may_refer_to_its_own_new_task,
    a_subtask_step_may_refer_to_a_task_of_a_value,
    a_subtask_step_may_refer_ahead_and_upwards,
    a_subtask_step_may_refer_to_a_task_outside,
    shorthand_is_honored,
    both_forms_of_dependencies_may_say_the_same,
    one_document_may_be_imported_many_times,
    steps_can_be_added_to_an_imported_task,
];

async fn an_import_makes_a_task_with_its_steps_in_list_order(world: World) {
    let sent = document("Guide", pieces(&["c", "a", "b"]));
    let response = world.import(sent).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let made = response.task.unwrap();
    assert_eq!(made.name, "Guide");
    assert_eq!(made.r#type(), TaskType::Standard);
    assert_eq!(made.steps.len(), 3);
    assert_eq!(world.get_task(&made.guid).await.accepted(), made);
    assert_eq!(world.titles_of(&made.guid).await, ["c", "a", "b"]);
    let listed = world.steps_of(&made.guid, 2).await;
    let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
    assert_eq!(listed, made.steps);
}

async fn a_document_may_hold_no_steps(world: World) {
    let made = world.imported(document("Empty", Vec::new())).await;
    assert_eq!(made.steps, [""; 0]);
    assert_eq!(world.get_task(&made.guid).await.accepted(), made);
}

async fn an_import_reads_like_creates_of_its_parts(world: World) {
    let created = world.given_task(rich_task()).await;
    let outside = world.given_task(task("Outside")).await;
    let mut parts: Vec<Step> = [1, 2, 3, 5, 6]
        .map(|kind| StepType::try_from(kind).unwrap())
        .map(|kind| piece(kind, "a"))
        .into();
    parts.push(subtask(&Task::default(), &outside));
    parts.push(Step {
        cost: Some(2),
        ..piece(StepType::Solution, "costly")
    });
    parts.push(rich_step(&Task::default()));
    for part in &parts {
        let step = Step {
            task: created.guid.clone(),
            ..part.clone()
        };
        world.given_step(step).await;
    }
    let sent = TaskDocument {
        task: Some(rich_task()),
        steps: parts,
    };
    let made = world.imported(sent).await;
    let [created, made] = [
        world.exported(&created.guid).await,
        world.exported(&made.guid).await,
    ];
    assert_eq!(canonical(made), canonical(created));
}

async fn what_the_system_sets_is_neither_taken_nor_listed(world: World) {
    let time = Some(prost_types::Timestamp {
        seconds: 1,
        nanos: 0,
    });
    let mut sent = document("Guide", pieces(&["a"]));
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
        ..piece(StepType::Information, "a")
    };
    let plain = world.imported(document("Guide", pieces(&["a"]))).await;
    let response = world.import(sent).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let made = response.task.unwrap();
    assert_eq!(made.account_id, world.account());
    assert_ne!(made.created_ts, time);
    let [plain, made] = [
        world.exported(&plain.guid).await,
        world.exported(&made.guid).await,
    ];
    assert_eq!(canonical(made), canonical(plain));
}

async fn what_a_type_does_not_have_is_listed_once(world: World) {
    let odd = Step {
        subtask_id: unknown_guid(),
        subtask_pid: Some(1),
        ..piece(StepType::Information, "a")
    };
    let inner = document("Inner", vec![odd.clone()]);
    let steps = vec![
        odd.clone(),
        odd,
        asking(linked_question(vec![answer_with("a", "A", inner)])),
    ];
    let response = world.import(document("Guide", steps)).await.accepted();
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

async fn a_title_of_a_subtask_step_is_listed_if_it_differs(world: World) {
    let outside = world.given_task(task("Outside")).await;
    let titled = |title: &str| Step {
        title: title.to_owned(),
        ..subtask(&Task::default(), &outside)
    };
    let same = document("Guide", vec![titled("Outside"), titled("")]);
    let response = world.import(same).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let other = document("Guide", vec![titled("Mine")]);
    let response = world.import(other).await.accepted();
    assert_eq!(response.ignored_paths, ["document.steps.title"]);
    let guid = response.task.unwrap().guid;
    assert_eq!(world.titles_of(&guid).await, ["Outside"]);
}

async fn ids_of_steps_are_made_anew(world: World) {
    let known = world.given_task(task("Known")).await;
    let known = world.given_step(note(&known, "known")).await;
    let sent = [known.guid.clone(), unknown_guid(), known.guid.clone()];
    let steps = sent.iter().map(|guid| Step {
        guid: guid.clone(),
        ..piece(StepType::Information, "new")
    });
    let made = world.imported(document("Guide", steps.collect())).await;
    assert_eq!(made.steps.len(), 3);
    assert!(made.steps.iter().all(|guid| !sent.contains(guid)));
    assert_eq!(world.get_step(&known.guid).await.accepted(), known);
}

async fn ids_of_tasks_are_made_anew(world: World) {
    let known = world.given_task(task("Known")).await;
    let inner = TaskDocument {
        task: Some(Task {
            guid: known.guid.clone(),
            ..task("A")
        }),
        steps: pieces(&["inner"]),
    };
    let value = FeedbackValue {
        link: unknown_guid(),
        ..answer_with("a", "A", inner)
    };
    let sent = value.link.clone();
    let made = world
        .imported(document(
            "Guide",
            vec![asking(linked_question(vec![value]))],
        ))
        .await;
    let question = world.get_step(&made.steps[0]).await.accepted();
    let link = &answers_of(&question)[0].link;
    assert!(*link != sent && *link != known.guid);
    assert_eq!(world.get_task(&known.guid).await.accepted(), known);
}

/// A subtask step of a document.
fn refers_to(guid: &str) -> Step {
    let target = Task {
        guid: guid.to_owned(),
        ..task("")
    };
    subtask(&Task::default(), &target)
}

async fn a_subtask_step_may_refer_to_its_own_new_task(world: World) {
    let id = unknown_guid();
    let mut steps = vec![refers_to(&id), piece(StepType::End, "end")];
    for step in &mut steps {
        step.task.clone_from(&id);
    }
    let made = world.imported(document("Loop", steps)).await;
    let step = world.get_step(&made.steps[0]).await.accepted();
    assert_eq!(step.subtask_id, made.guid);
    assert_eq!(step.title, "Loop");
}

async fn a_subtask_step_may_refer_to_a_task_of_a_value(world: World) {
    let (by_link, by_guid) = (unknown_guid(), unknown_guid());
    let inner = TaskDocument {
        task: Some(task_of(&by_guid)),
        steps: Vec::new(),
    };
    let values = vec![
        FeedbackValue {
            link: by_link.clone(),
            ..answer("a", "A")
        },
        answer_with("b", "B", inner),
    ];
    // The first to refer to a managed task wires it.
    let refers = [&by_link, &by_guid, &by_link, &by_guid];
    let refers = refers.into_iter().map(|guid| refers_to(guid));
    let steps = [asking(linked_question(values))].into_iter().chain(refers);
    let made = world.imported(document("Guide", steps.collect())).await;
    let steps = world.full_steps_of(&made.guid).await;
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

async fn a_subtask_step_may_refer_ahead_and_upwards(world: World) {
    let (root, ahead) = (unknown_guid(), unknown_guid());
    let first = document("", vec![refers_to(&root), refers_to(&ahead)]);
    let values = vec![
        answer_with("a", "A", first),
        FeedbackValue {
            link: ahead,
            ..answer("b", "B")
        },
    ];
    let question = Step {
        task: root,
        ..asking(linked_question(values))
    };
    let made = world.imported(document("Guide", vec![question])).await;
    let question = world.get_step(&made.steps[0]).await.accepted();
    let [first, second] = answers_of(&question) else {
        panic!("{question:?}");
    };
    let inner = world.full_steps_of(&first.link).await;
    let inner: Vec<&String> = inner.iter().map(|step| &step.subtask_id).collect();
    assert_eq!(inner, [&made.guid, &second.link]);
}

async fn a_subtask_step_may_refer_to_a_task_outside(world: World) {
    let outside = world
        .given_task(Task {
            product_id: Some(PRODUCT + 1),
            ..task("Outside")
        })
        .await;
    let steps = vec![subtask(&Task::default(), &outside)];
    let made = world.imported(document("Guide", steps)).await;
    let step = world.get_step(&made.steps[0]).await.accepted();
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
            ..piece(StepType::Information, "a")
        }],
    }
}

const SHORT: &str = "components.7.power = on";

/// What [`SHORT`] stands for.
fn long() -> DependencyGroup {
    all_of(vec![comparison(Condition {
        variable: "power".to_owned(),
        operator: "=".to_owned(),
        targets: vec![text("on")],
        path: "components.7".to_owned(),
    })])
}

async fn shorthand_is_honored(world: World) {
    let made = world.imported(depending(Some(SHORT), None)).await;
    assert_eq!(made.dependencies, Some(long()));
    let step = world.get_step(&made.steps[0]).await.accepted();
    assert_eq!(step.dependencies, Some(long()));
}

async fn both_forms_of_dependencies_may_say_the_same(world: World) {
    let made = world.imported(depending(Some(SHORT), Some(long()))).await;
    assert_eq!(made.dependencies, Some(long()));
    assert_eq!(made.dependency_shorthand.as_deref(), Some(SHORT));
}

async fn one_document_may_be_imported_many_times(world: World) {
    let sent = document("Guide", vec![linked(&[("a", "A")])]);
    let first = world.imported(sent.clone()).await;
    let second = world.imported(sent).await;
    let [first, second] = [
        world.exported(&first.guid).await,
        world.exported(&second.guid).await,
    ];
    assert_ne!(first, second);
    assert_eq!(canonical(first), canonical(second));
    assert_eq!(world.all_tasks().await.len(), 4);
}

async fn steps_can_be_added_to_an_imported_task(world: World) {
    let made = world
        .imported(document("Guide", pieces(&["a", "b", "c"])))
        .await;
    world.given_step(note(&made, "end")).await;
    let created = world
        .create_step_after(note(&made, "a2"), &made.steps[0])
        .await;
    assert_eq!(created.accepted().placement(), Placement::AfterPrevstep);
    assert_eq!(
        world.titles_of(&made.guid).await,
        ["a", "a2", "b", "c", "end"]
    );
}
