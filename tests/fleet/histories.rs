//! Histories that go on at both servers at once leave an account as whole as one
//! that had a single server, and both servers show it alike, byte for byte.

use std::{collections::BTreeMap, env};

use bytes::Bytes;
use futures_util::future::join_all;
use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use prost::Message;
use tonic::Status;

use crate::harness::{links::links_are_whole, prelude::*};

on_two_servers![histories_at_both_servers_leave_an_account_whole];

/// Writers at each server, each over a connection of its own.
const WRITERS: usize = 4;
/// Changes that each of them makes in a round.
const CHANGES: usize = 12;

/// How many rounds, each in an account of its own.
fn rounds() -> u32 {
    let rounds = env::var("EXPERTISE_FLEET_ROUNDS").ok();
    rounds.map_or(4, |rounds| rounds.parse().expect("EXPERTISE_FLEET_ROUNDS"))
}

/// What writers start from and add to.
struct Guides {
    /// Plain tasks, each with a first step.
    tasks: Vec<(Task, String)>,
    /// A task whose question manages tasks, and the question.
    linked: (String, String),
}

/// What one writer knows of its own steps.
#[derive(Default)]
struct Made {
    /// Steps with the one each was inserted after.
    after: Vec<(String, String)>,
    kept: Vec<(usize, String)>,
    deleted: Vec<String>,
}

struct Chance(TestRng);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.next_u32()).expect("a number") % limit
    }

    fn text(&mut self) -> String {
        format!("Text {}", self.below(1_000))
    }
}

async fn histories_at_both_servers_leave_an_account_whole(worlds: [World; 2]) {
    for round in 0..rounds() {
        let account = unknown_guid();
        let worlds = worlds.clone().map(|world| world.calling_as(&account));
        let guides = guides(&worlds).await;
        let writers = (0..2 * WRITERS).map(|writer| {
            let mut seed = [0; 32];
            seed[..4].copy_from_slice(&round.to_le_bytes());
            seed[4] = u8::try_from(writer).expect("a few writers");
            let chance = Chance(TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
            let world = worlds[writer % 2].over_another_connection();
            write(world, &guides, chance)
        });
        let made = join_all(writers).await;
        both_servers_agree(&worlds).await;
        links_are_whole(&worlds[round as usize % 2].everything().await);
        orders_are_kept(&worlds[1], &guides, &made).await;
    }
}

async fn guides(worlds: &[World; 2]) -> Guides {
    let mut tasks = Vec::new();
    for world in worlds {
        let task = world.given_task(task("Guide")).await;
        let first = world.given_step(note(&task, "first")).await;
        tasks.push((task, first.guid));
    }
    let question = linked(&[("a", "Red"), ("b", "Green"), ("c", "Blinks")]);
    let guide = worlds[0].imported(document("Lamp", vec![question])).await;
    let question = guide.steps[0].clone();
    Guides {
        tasks,
        linked: (guide.guid, question),
    }
}

async fn write(world: World, guides: &Guides, mut chance: Chance) -> Made {
    let mut made = Made::default();
    for _ in 0..CHANGES {
        match chance.below(10) {
            0..4 => insert(&world, guides, &mut made, &mut chance).await,
            4 => delete(&world, &mut made, &mut chance).await,
            5 => {
                let (task, _) = &guides.tasks[chance.below(2)];
                let renamed = Task {
                    name: chance.text(),
                    ..task_of(&task.guid)
                };
                world.updated_task(renamed, &["name"]).await;
            }
            6 => refer(&world, guides, &mut made, &mut chance).await,
            7 | 8 => ask(&world, guides, &mut chance).await,
            _ => import_again(&world, guides, &mut chance).await,
        }
    }
    made
}

/// Inserts a step after one of the writer's own, or after the first.
async fn insert(world: &World, guides: &Guides, made: &mut Made, chance: &mut Chance) {
    let index = chance.below(2);
    let (task, first) = &guides.tasks[index];
    let own: Vec<&String> = made
        .kept
        .iter()
        .filter(|(at, _)| *at == index)
        .map(|(_, step)| step)
        .chain([first])
        .collect();
    let prevstep = own[chance.below(own.len())].clone();
    let sent = note(task, "inserted");
    let response = world.create_step_after(sent, &prevstep).await.accepted();
    assert_eq!(response.placement(), Placement::AfterPrevstep);
    let guid = response.step.expect("the step").guid;
    made.after.push((prevstep, guid.clone()));
    made.kept.push((index, guid));
}

async fn delete(world: &World, made: &mut Made, chance: &mut Chance) {
    if made.kept.is_empty() {
        return;
    }
    let (_, step) = made.kept.swap_remove(chance.below(made.kept.len()));
    world.delete_step(&step).await.accepted();
    made.deleted.push(step);
}

/// Appends a step to one task that stands for the other, or for a managed one.
async fn refer(world: &World, guides: &Guides, made: &mut Made, chance: &mut Chance) {
    let index = chance.below(2);
    let all = world.all_tasks().await;
    let other = &all[chance.below(all.len())];
    let sent = subtask(&guides.tasks[index].0, other);
    let step = world.create_step(sent).await.accepted().step;
    made.kept.push((index, step.expect("the step").guid));
}

/// Rewords the linked question, or leaves an answer out. What another writer has
/// unlinked meanwhile cannot be linked again.
async fn ask(world: &World, guides: &Guides, chance: &mut Chance) {
    let mut step = world.get_step(&guides.linked.1).await.accepted();
    step.etag.clear();
    let values = &mut step.feedback_config[0].values;
    let index = chance.below(values.len());
    if values.len() > 1 && chance.below(8) == 0 {
        values.remove(index);
    } else {
        values[index].value = chance.text();
    }
    let update = Step {
        feedback_config: step.feedback_config,
        ..step_of(&step.guid)
    };
    refused_at_most(
        world.update_step(update, &["feedback_config"]).await,
        &["LINKED_IMPORT_ONLY"],
    );
}

/// Imports what was exported a moment ago. Steps and links of the document may be
/// gone by then.
async fn import_again(world: &World, guides: &Guides, chance: &mut Chance) {
    let tasks = [
        &guides.tasks[0].0.guid,
        &guides.tasks[1].0.guid,
        &guides.linked.0,
    ];
    let mut exported = world.exported(tasks[chance.below(3)]).await;
    let task = exported.task.as_mut().expect("the task");
    task.etag.clear();
    if chance.below(2) == 0 {
        task.name = chance.text();
    }
    exported.steps.iter_mut().for_each(|step| step.etag.clear());
    refused_at_most(
        world.import_and(AbsentSteps::Keep, exported).await,
        &[
            "STEP_NOT_FOUND",
            "TASK_NOT_FOUND",
            "ETAG_MISMATCH",
            "FIELD_INVALID",
        ],
    );
}

/// A lost transaction, a deadlock or a fault of the database is never the
/// caller's to deal with.
#[track_caller]
fn refused_at_most<T: std::fmt::Debug>(outcome: Result<T, Status>, reasons: &[&str]) {
    if let Err(status) = outcome {
        let failure = Failure::from(status);
        assert!(reasons.contains(&failure.reason()), "{failure:?}");
    }
}

/// Every step that was inserted after another is behind it, and each is there
/// unless its writer deleted it.
async fn orders_are_kept(world: &World, guides: &Guides, made: &[Made]) {
    let mut places = BTreeMap::new();
    for (index, (task, first)) in guides.tasks.iter().enumerate() {
        let order = world.order_of(&task.guid).await;
        let listed = world.steps_of(&task.guid, 3).await;
        let listed: Vec<String> = listed.into_iter().map(|step| step.guid).collect();
        assert_eq!(listed, order);
        let kept = made.iter().flat_map(|made| &made.kept);
        let kept = kept.filter(|(at, _)| *at == index).map(|(_, step)| step);
        let mut expected: Vec<&String> = kept.chain([first]).collect();
        expected.sort_unstable();
        let mut found: Vec<&String> = order.iter().collect();
        found.sort_unstable();
        assert_eq!(found, expected);
        places.extend(order.into_iter().enumerate().map(|(n, step)| (step, n)));
    }
    for made in made {
        for (prevstep, step) in &made.after {
            if let (Some(before), Some(after)) = (places.get(prevstep), places.get(step)) {
                assert!(before < after, "{step} is not after {prevstep}");
            }
        }
    }
}

/// Asks both servers everything that there is to be read.
async fn both_servers_agree(worlds: &[World; 2]) {
    let tasks = worlds[0].all_tasks().await;
    both_answer_alike(
        worlds,
        "TaskService/ListTasks",
        &ListTasksRequest::default(),
    )
    .await;
    for task in tasks {
        let guid = task.guid.clone();
        both_answer_alike(worlds, "TaskService/GetTask", &GetTaskRequest { guid }).await;
        let guid = task.guid.clone();
        both_answer_alike(
            worlds,
            "TaskService/ExportTask",
            &ExportTaskRequest { guid },
        )
        .await;
        let list = ListStepsRequest {
            task: task.guid,
            page_size: 5,
            expand: vec!["body".to_owned()],
            ..ListStepsRequest::default()
        };
        both_answer_alike(worlds, "StepService/ListSteps", &list).await;
    }
    both_answer_alike(
        worlds,
        "TranslationService/ListTranslationWork",
        &work_into(&["de", "es"]),
    )
    .await;
}

async fn both_answer_alike(worlds: &[World; 2], method: &str, request: &impl Message) {
    let request = Bytes::from(request.encode_to_vec());
    let one = worlds[0].send_raw(method, request.clone()).await;
    let other = worlds[1].send_raw(method, request).await;
    assert_eq!(one.accepted(), other.accepted(), "{method}");
}
