//! After any history, what is listed equals what a scan of all exports finds, and DeleteTask
//! refuses exactly the tasks that subtask steps of other tasks refer to.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::json;

use super::{oracle, references};
use crate::kit::prelude::*;

on_both_databases! {
    references_equal_a_scan_of_all_exports: (vec(change(), 1..16), 1..5), 16;
}

/// Names of observations. The last one looks like an account-wide name.
const OWN: [&str; 3] = ["a", "b", "components.7.a"];
/// Names that are asked for.
const NAMES: [&str; 5] = ["a", "b", "components.7.a", "components.7.b", "outside"];
const ANSWERS: [&str; 3] = ["", "5", "true"];

/// The path and the variable of a condition.
const READ: [(&str, &str); 6] = [
    ("", "a"),
    ("", "b"),
    ("components.7", "a"),
    ("", "components.7.a"),
    ("components", "7.b"),
    ("", "outside"),
];

/// A condition by its indexes.
#[derive(Clone, Debug)]
struct ConditionPlan {
    read: usize,
    operator: usize,
    target: usize,
    nested: bool,
}

#[derive(Clone, Debug)]
enum StepPlan {
    Reads(Vec<ConditionPlan>),
    Sets(usize),
    Both(usize, Vec<ConditionPlan>),
    Subtask(Index),
}

#[derive(Clone, Debug)]
enum Change {
    CreateTask(Vec<ConditionPlan>),
    UpdateTask(Index, Vec<ConditionPlan>),
    Rename(Index, usize),
    CreateStep(Index, StepPlan),
    CreateBehind(Index, StepPlan),
    UpdateConditions(Index, Vec<ConditionPlan>),
    UpdateQuestion(Index, usize),
    UpdateTitle(Index),
    ReferTo(Index, Index),
    DeleteStep(Index),
    DeleteTask(Index, bool),
    /// A guide whose question manages a task with these steps.
    Import(usize, Vec<StepPlan>, Vec<StepPlan>),
    /// An exported guide without its step at the index and with another one.
    Reimport(Index, Index, StepPlan, bool),
}

fn plans() -> impl Strategy<Value = Vec<ConditionPlan>> {
    let plan = (0..READ.len(), 0..4_usize, 0..5_usize, any::<bool>());
    let plan = plan.prop_map(|(read, operator, target, nested)| ConditionPlan {
        read,
        operator,
        target,
        nested,
    });
    vec(plan, 0..4)
}

fn step_plan() -> impl Strategy<Value = StepPlan> {
    prop_oneof![
        2 => plans().prop_map(StepPlan::Reads),
        2 => (0..OWN.len()).prop_map(StepPlan::Sets),
        1 => (0..OWN.len(), plans()).prop_map(|(own, plans)| StepPlan::Both(own, plans)),
        1 => any::<Index>().prop_map(StepPlan::Subtask),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    let own = || 0..OWN.len();
    let steps = || vec(step_plan(), 0..3);
    prop_oneof![
        2 => plans().prop_map(Change::CreateTask),
        2 => (index(), plans()).prop_map(|(task, plans)| Change::UpdateTask(task, plans)),
        1 => (index(), own()).prop_map(|(task, name)| Change::Rename(task, name)),
        4 => (index(), step_plan()).prop_map(|(task, step)| Change::CreateStep(task, step)),
        2 => (index(), step_plan()).prop_map(|(step, plan)| Change::CreateBehind(step, plan)),
        3 => (index(), plans()).prop_map(|(step, plans)| Change::UpdateConditions(step, plans)),
        3 => (index(), own()).prop_map(|(step, own)| Change::UpdateQuestion(step, own)),
        1 => index().prop_map(Change::UpdateTitle),
        1 => (index(), index()).prop_map(|(step, task)| Change::ReferTo(step, task)),
        2 => index().prop_map(Change::DeleteStep),
        1 => (index(), any::<bool>()).prop_map(|(task, force)| Change::DeleteTask(task, force)),
        3 => (own(), steps(), steps())
            .prop_map(|(own, inner, outer)| Change::Import(own, inner, outer)),
        2 => (index(), index(), step_plan(), any::<bool>())
            .prop_map(|(task, step, plan, keep)| Change::Reimport(task, step, plan, keep)),
    ]
}

fn group(plans: &[ConditionPlan]) -> Option<DependencyGroup> {
    let node = |plan: &ConditionPlan| {
        let (path, variable) = READ[plan.read];
        let targets = [
            text("5"),
            number(5.0),
            text("yes"),
            value(json!(true)),
            text("true"),
        ];
        let node = comparison(Condition {
            variable: variable.to_owned(),
            operator: ["=", "!=", ">", "<"][plan.operator].to_owned(),
            targets: vec![targets[plan.target].clone()],
            path: path.to_owned(),
        });
        if plan.nested {
            nested(any_of(vec![when("other", "=", "1"), node]))
        } else {
            node
        }
    };
    (!plans.is_empty()).then(|| all_of(plans.iter().map(node).collect()))
}

/// A new step. A subtask step refers to one of the tasks.
fn new_step(task: &Task, plan: &StepPlan, tasks: &[Task]) -> Step {
    let sets = |own: usize| {
        let step = step(task, StepType::Observation, "Look");
        step.with_question(question(OWN[own], &["5", "yes"]))
    };
    match plan {
        StepPlan::Subtask(index) if !tasks.is_empty() => subtask(task, index.get(tasks)),
        StepPlan::Subtask(_) => information_step(task, "Step"),
        StepPlan::Sets(own) => sets(*own),
        StepPlan::Both(own, plans) => Step {
            dependencies: group(plans),
            ..sets(*own)
        },
        StepPlan::Reads(plans) => Step {
            dependencies: group(plans),
            ..information_step(task, "Step")
        },
    }
}

/// Makes a change if there is something to change; what is refused changes nothing.
async fn apply(client: &Client, change: &Change) {
    let tasks = client.all_tasks().await;
    let steps = client.tasks_with_steps().await;
    let steps: Vec<Step> = steps.into_iter().flat_map(|(_, steps)| steps).collect();
    let task_at = |index: &Index| (!tasks.is_empty()).then(|| index.get(&tasks).clone());
    let step_at = |index: &Index| (!steps.is_empty()).then(|| index.get(&steps).clone());
    match change {
        Change::CreateTask(plans) => {
            let task = Task {
                dependencies: group(plans),
                ..task("Task")
            };
            client.given_task(task).await;
        }
        Change::UpdateTask(task, plans) => {
            let Some(task) = task_at(task) else { return };
            let update = Task {
                dependencies: group(plans),
                ..task_of(&task.guid)
            };
            client.updated_task(update, &["dependencies"]).await;
        }
        Change::Rename(task, name) => {
            let Some(task) = task_at(task) else { return };
            let update = task_of(&task.guid).named(OWN[*name]);
            client.updated_task(update, &["name"]).await;
        }
        Change::CreateStep(task, plan) => {
            let Some(task) = task_at(task) else { return };
            let step = new_step(&task, plan, &tasks);
            drop(client.create_step(step).await);
        }
        Change::CreateBehind(step, plan) => {
            let Some(before) = step_at(step) else { return };
            let step = new_step(&task_of(&before.task), plan, &tasks);
            drop(client.create_step_after(step, &before.guid).await);
        }
        Change::UpdateConditions(step, plans) => {
            let Some(step) = step_at(step) else { return };
            let update = Step {
                dependencies: group(plans),
                ..step_of(&step.guid)
            };
            client.updated_step(update, &["dependencies"]).await;
        }
        // This unlinks the tasks that the step manages.
        Change::UpdateQuestion(step, own) => {
            let Some(step) = step_at(step) else { return };
            let update = step_of(&step.guid).with_question(question(OWN[*own], &["5", "no"]));
            client.updated_step(update, &["feedback_config"]).await;
        }
        Change::UpdateTitle(step) => {
            let Some(step) = step_at(step) else { return };
            let update = step_of(&step.guid).titled("Changed");
            client.updated_step(update, &["title"]).await;
        }
        Change::ReferTo(step, task) => {
            let (Some(step), Some(task)) = (step_at(step), task_at(task)) else {
                return;
            };
            let update = step_of(&step.guid).with_subtask_id(&task.guid);
            drop(client.update_step(update, &["subtask_id"]).await);
        }
        Change::DeleteStep(step) => {
            let Some(step) = step_at(step) else { return };
            drop(client.delete_step(&step.guid).await);
        }
        Change::DeleteTask(task, force) => {
            let Some(task) = task_at(task) else { return };
            drop(match force {
                true => client.force_delete_task(&task.guid).await,
                false => client.delete_task(&task.guid).await,
            });
        }
        Change::Import(own, inner, outer) => {
            let new = |plan: &StepPlan| new_step(&Task::default(), plan, &tasks);
            let inner = document("Inner", inner.iter().map(new).collect());
            let values = vec![answer_with("5", "Five", inner), answer("true", "True")];
            let mut question = linked_question(values);
            question.name = OWN[*own].to_owned();
            let mut steps = vec![observation_asking(question)];
            steps.extend(outer.iter().map(new));
            drop(client.import(document("Outer", steps)).await);
        }
        Change::Reimport(task, step, plan, keep) => {
            let Some(task) = task_at(task) else { return };
            let mut document = client.exported(&task.guid).await;
            if !document.steps.is_empty() {
                document.steps.remove(step.index(document.steps.len()));
            }
            document
                .steps
                .push(new_step(&Task::default(), plan, &tasks));
            let absent = if *keep {
                AbsentSteps::Keep
            } else {
                AbsentSteps::Delete
            };
            drop(client.import_with(absent, document).await);
        }
    }
}

async fn references_equal_a_scan_of_all_exports(
    client: Client,
    (history, size): (Vec<Change>, i32),
) {
    for change in &history {
        apply(&client, change).await;
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
        let found = references(&client, request.clone()).await;
        assert_eq!(found, expected, "{request:?}");
    }
    for (task, _) in &exports {
        delete_is_refused_by_references(&client, task).await;
    }
}

async fn delete_is_refused_by_references(client: &Client, task: &Task) {
    let listed = references(client, super::of_task(task)).await;
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
