//! Random writes of one account.

use std::fmt::Debug;

use proptest::{collection::vec, prelude::*, sample::Index};
use tonic::Status;

use crate::kit::prelude::*;

/// Names of observations. The last one looks like an account-wide name.
const OWN: [&str; 3] = ["a", "b", "components.7.a"];
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
pub struct ConditionPlan {
    read: usize,
    operator: usize,
    target: usize,
    nested: bool,
}

type Conditions = Vec<ConditionPlan>;

/// One write of a history. An index chooses among what there is.
#[derive(Clone, Debug)]
pub enum Write {
    CreateTask(Conditions, bool, bool),
    /// Whether it is renamed, too.
    UpdateTask(Index, i32, bool),
    RenameTask(Index),
    TranslateTask(Index, bool),
    UpdateConditionsOfTask(Index, Conditions),
    DeleteTask(Index, bool),
    AppendStep(Index, Conditions, bool),
    InsertStep(Index, Conditions),
    InsertBehindUnknown(Index),
    AppendSubtask(Index, Index),
    AppendQuestion(Index, usize, Conditions),
    UpdateTitle(Index),
    UpdateBody(Index, bool),
    UpdateConditions(Index, Conditions),
    /// Another question, which unlinks the tasks that the step manages.
    UpdateQuestion(Index, usize),
    ReferTo(Index, Index),
    TranslateStep(Index, bool),
    DropTranslations(Index),
    Unlink(Index),
    DeleteStep(Index),
    /// A guide whose question manages a task with such a step.
    ImportGuide(usize, Conditions),
    /// An exported guide without its step at the index and with another one.
    ImportAgain(Index, Index, Conditions, bool),
    Reverse(Index),
    TranslateAutomatically,
    CreateRole,
    DeleteRole(i64),
}

pub fn write() -> impl Strategy<Value = Write> {
    let index = any::<Index>;
    let flag = any::<bool>;
    let own = || 0..OWN.len();
    let of_tasks = prop_oneof![
        2 => (conditions(), flag(), flag())
            .prop_map(|(read, translated, twice)| Write::CreateTask(read, translated, twice)),
        2 => (index(), 0..2, flag())
            .prop_map(|(task, published, renamed)| Write::UpdateTask(task, published, renamed)),
        2 => index().prop_map(Write::RenameTask),
        1 => (index(), flag()).prop_map(|(task, locked)| Write::TranslateTask(task, locked)),
        2 => (index(), conditions())
            .prop_map(|(task, read)| Write::UpdateConditionsOfTask(task, read)),
        1 => (index(), flag()).prop_map(|(task, force)| Write::DeleteTask(task, force)),
        2 => (own(), conditions()).prop_map(|(own, read)| Write::ImportGuide(own, read)),
        2 => (index(), index(), conditions(), flag())
            .prop_map(|(task, step, read, keep)| Write::ImportAgain(task, step, read, keep)),
        1 => index().prop_map(Write::Reverse),
    ];
    let new_steps = prop_oneof![
        4 => (index(), conditions(), flag())
            .prop_map(|(task, read, twice)| Write::AppendStep(task, read, twice)),
        3 => (index(), conditions()).prop_map(|(step, read)| Write::InsertStep(step, read)),
        1 => index().prop_map(Write::InsertBehindUnknown),
        2 => (index(), index()).prop_map(|(task, other)| Write::AppendSubtask(task, other)),
        3 => (index(), own(), conditions())
            .prop_map(|(task, own, read)| Write::AppendQuestion(task, own, read)),
    ];
    let of_steps = prop_oneof![
        2 => index().prop_map(Write::UpdateTitle),
        2 => (index(), flag()).prop_map(|(step, clear)| Write::UpdateBody(step, clear)),
        3 => (index(), conditions()).prop_map(|(step, read)| Write::UpdateConditions(step, read)),
        2 => (index(), own()).prop_map(|(step, own)| Write::UpdateQuestion(step, own)),
        1 => (index(), index()).prop_map(|(step, task)| Write::ReferTo(step, task)),
        2 => (index(), flag()).prop_map(|(step, locked)| Write::TranslateStep(step, locked)),
        1 => index().prop_map(Write::DropTranslations),
        1 => index().prop_map(Write::Unlink),
        3 => index().prop_map(Write::DeleteStep),
    ];
    let of_the_account = prop_oneof![
        Just(Write::TranslateAutomatically),
        Just(Write::CreateRole),
        (1..3_i64).prop_map(Write::DeleteRole),
    ];
    prop_oneof![15 => of_tasks, 13 => new_steps, 17 => of_steps, 3 => of_the_account]
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let plan = (0..READ.len(), 0..4_usize, 0..5_usize, any::<bool>());
    let plan = plan.prop_map(|(read, operator, target, nested)| ConditionPlan {
        read,
        operator,
        target,
        nested,
    });
    vec(plan, 0..4)
}

/// A group of these conditions; none for no conditions.
fn group(plans: &[ConditionPlan]) -> Option<DependencyGroup> {
    let node = |plan: &ConditionPlan| {
        let (path, variable) = READ[plan.read];
        let targets = [
            text("5"),
            number(5.0),
            text("yes"),
            value(true.into()),
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

/// Makes the write, and returns its answer; `None` if it needs a task or step and there is none.
pub async fn apply(client: &Client, write: &Write, number: usize) -> Option<String> {
    let tasks = client.all_tasks().await;
    let mut steps = Vec::new();
    for task in &tasks {
        steps.extend(client.steps_with_bodies(&task.guid).await);
    }
    let any_task = |index: &Index| (!tasks.is_empty()).then(|| index.get(&tasks).clone());
    let any_step = |index: &Index| (!steps.is_empty()).then(|| index.get(&steps).clone());
    // Each text has a length of its own, which sizes depend on.
    let text = format!("text {}", "x".repeat(number));
    let reading = |conditions: &Conditions, step| Step {
        dependencies: group(conditions),
        ..step
    };
    Some(match write {
        Write::CreateTask(conditions, translated, repeated) => {
            let mut new = Task {
                dependencies: group(conditions),
                ..task(&text)
            };
            if *translated {
                new = new.translated("de", task_translation("Aufgabe"));
            }
            let request = CreateTaskRequest {
                request_id: request_id(*repeated),
                ..create_task_request(new)
            };
            let mut answer = client.tasks().create_task(request.clone()).await;
            if *repeated {
                answer = client.tasks().create_task(request).await;
            }
            shown(answer.map(tonic::Response::into_inner))
        }
        Write::UpdateTask(task, published, renamed) => {
            let task = task_of(&any_task(task)?.guid).with_published(*published);
            let mask: &[&str] = match renamed {
                true => &["published", "name"],
                false => &["published"],
            };
            shown(client.update_task(task.named(text), mask).await)
        }
        Write::RenameTask(task) => {
            let task = task_of(&any_task(task)?.guid).named(text);
            shown(client.update_task(task, &["name"]).await)
        }
        Write::TranslateTask(task, locked) => {
            let row = TaskTranslation {
                locked: Some(*locked),
                ..task_translation(&text)
            };
            let task = task_of(&any_task(task)?.guid).translated("fr", row);
            shown(client.update_task(task, &["translations.fr"]).await)
        }
        Write::UpdateConditionsOfTask(task, conditions) => {
            let task = Task {
                dependencies: group(conditions),
                ..task_of(&any_task(task)?.guid)
            };
            shown(client.update_task(task, &["dependencies"]).await)
        }
        Write::DeleteTask(task, force) => {
            let task = any_task(task)?;
            shown(match force {
                true => client.force_delete_task(&task.guid).await,
                false => client.delete_task(&task.guid).await,
            })
        }
        Write::AppendStep(task, conditions, repeated) => {
            let step = information_step(&any_task(task)?, "appended").with_body(text);
            let request = CreateStepRequest {
                request_id: request_id(*repeated),
                ..create_step_request(reading(conditions, step))
            };
            let mut answer = client.steps().create_step(request.clone()).await;
            if *repeated {
                answer = client.steps().create_step(request).await;
            }
            shown(answer.map(tonic::Response::into_inner))
        }
        Write::InsertStep(step, conditions) => {
            let before = any_step(step)?;
            let new = information_step(&task_of(&before.task), "inserted");
            let new = reading(conditions, new);
            shown(client.create_step_after(new, &before.guid).await)
        }
        Write::InsertBehindUnknown(task) => {
            let new = information_step(&any_task(task)?, "inserted");
            shown(client.create_step_after(new, &unknown_guid()).await)
        }
        Write::AppendSubtask(task, other) => {
            let step = subtask(&any_task(task)?, &any_task(other)?);
            shown(client.create_step(step).await)
        }
        Write::AppendQuestion(task, own, conditions) => {
            let step = step(&any_task(task)?, StepType::Observation, &text);
            let step = step.with_question(question(OWN[*own], &["5", "yes"]));
            shown(client.create_step(reading(conditions, step)).await)
        }
        Write::UpdateTitle(step) => {
            let step = step_of(&any_step(step)?.guid).titled(text);
            shown(client.update_step(step, &["title"]).await)
        }
        Write::UpdateBody(step, clear) => {
            let step = Step {
                body: (!clear).then_some(text),
                ..step_of(&any_step(step)?.guid)
            };
            shown(client.update_step(step, &["body"]).await)
        }
        Write::UpdateConditions(step, conditions) => {
            let step = reading(conditions, step_of(&any_step(step)?.guid));
            shown(client.update_step(step, &["dependencies"]).await)
        }
        Write::UpdateQuestion(step, own) => {
            let question = question(OWN[*own], &["5", "no"]);
            let step = step_of(&any_step(step)?.guid).with_question(question);
            shown(client.update_step(step, &["feedback_config"]).await)
        }
        Write::ReferTo(step, task) => {
            let step = step_of(&any_step(step)?.guid).with_subtask_id(any_task(task)?.guid);
            shown(client.update_step(step, &["subtask_id"]).await)
        }
        Write::TranslateStep(step, locked) => {
            let row = step_translation(&text).with_lock(*locked);
            let step = step_of(&any_step(step)?.guid).translated("fr", row);
            shown(client.update_step(step, &["translations.fr"]).await)
        }
        Write::DropTranslations(step) => {
            let step = step_of(&any_step(step)?.guid);
            shown(client.update_step(step, &["translations"]).await)
        }
        Write::Unlink(step) => {
            let mut step = any_step(step)?;
            if let Some(question) = step.feedback_config.first_mut() {
                question.linked = Some(false);
            }
            shown(client.update_step(step, &["feedback_config"]).await)
        }
        Write::DeleteStep(step) => shown(client.delete_step(&any_step(step)?.guid).await),
        Write::ImportGuide(own, conditions) => {
            let reads = || reading(conditions, document_step(StepType::Information, "reads"));
            let values = vec![
                answer_with("5", "Five", document("Inner", vec![reads()])),
                answer("true", "True"),
            ];
            let question = FeedbackConfig {
                name: OWN[*own].to_owned(),
                ..linked_question(values)
            };
            let steps = vec![observation_asking(question), reads()];
            shown(client.import(document(&text, steps)).await)
        }
        Write::ImportAgain(task, step, conditions, keep) => {
            let mut document = client.exported(&any_task(task)?.guid).await;
            if !document.steps.is_empty() {
                document.steps.remove(step.index(document.steps.len()));
            }
            let new = document_step(StepType::Information, "imported");
            document.steps.push(reading(conditions, new));
            let absent = match keep {
                true => AbsentSteps::Keep,
                false => AbsentSteps::Delete,
            };
            shown(client.import_with(absent, document).await)
        }
        Write::Reverse(task) => {
            let mut document = client.exported(&any_task(task)?.guid).await;
            document.steps.reverse();
            shown(client.import(document).await)
        }
        Write::TranslateAutomatically => {
            let work = client.translation_work(&["fr", "nl"]).await;
            let items = work.iter().map(|work| automatic(work, &text)).collect();
            shown(client.write_translations(items).await)
        }
        Write::CreateRole => shown(client.create_role(&text).await),
        Write::DeleteRole(id) => shown(client.delete_role(*id).await),
    })
}

fn request_id(wanted: bool) -> String {
    if wanted {
        unknown_guid()
    } else {
        String::new()
    }
}

fn shown<T: Debug>(answer: Result<T, Status>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(status) => format!("{:?} {}", status.code(), status.message()),
    }
}
