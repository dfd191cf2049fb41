//! Making guides: whole, from a document, or a task and then step after step.

use std::time::Instant;

use anyhow::{Context, ensure};
use expertise::proto::v1::{
    CreateStepRequest, CreateTaskRequest, ImportTaskRequest, Placement, Step, StepType, Task,
    TaskDocument, TaskType,
};

use crate::{
    desk::{Desk, there},
    guide,
    show::{self, say, stage},
};

const FILE: &str = "laptop-will-not-start.json";

/// Imports the guide that the tour works on.
pub async fn import_a_guide(desk: &Desk) -> anyhow::Result<Task> {
    stage("Import a guide: one call, all or nothing");
    let document = guide::read(FILE)?;
    let in_file = document.steps.len();
    let begun = Instant::now();
    let imported = desk.import_task(import(document)).await?;
    let took = begun.elapsed().as_millis();
    let guide = there(imported.task)?;
    say(format!("{FILE}: {in_file} steps, imported in {took} ms"));
    say(format!(
        "task {} {:?}, etag {}",
        guide.guid, guide.name, guide.etag
    ));
    let steps = desk.steps(&guide.guid).await?;
    outline(&steps);
    say("the answers of step 29 are linked: each manages a task, and a step leads there");
    let linked = steps.iter().find(|step| !step.link.is_empty());
    let linked = desk.task(&linked.context("no linked task")?.link).await?;
    ensure!(
        linked.r#type() == TaskType::Linked && linked.parent_guid == guide.guid,
        "not linked"
    );
    Ok(guide)
}

/// Exports the guide; the document would import as it stands.
pub async fn export_it(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Export the guide, and see what importing that would change");
    let document = desk.export_task(&guide.guid).await?;
    let steps = document.steps.len();
    let before = desk.task(&guide.guid).await?;
    let call = ImportTaskRequest {
        validate_only: true,
        ..import(document)
    };
    let would = there(desk.import_task(call).await?.task)?;
    say(format!(
        "{steps} steps exported; etag {} -> {}: nothing",
        before.etag, would.etag
    ));
    ensure!(would == before, "the export differs from what is stored");
    Ok(())
}

fn import(document: TaskDocument) -> ImportTaskRequest {
    ImportTaskRequest {
        document: Some(document),
        ..ImportTaskRequest::default()
    }
}

/// Prints where the guide begins and ends, and the steps that stand for tasks.
fn outline(steps: &[Step]) {
    let is_subtask = |step: &Step| step.r#type() == StepType::Subtask;
    let mut gap = false;
    for (index, step) in steps.iter().enumerate() {
        let next = steps.get(index + 1);
        if index < 2 || is_subtask(step) || next.is_none_or(is_subtask) {
            show::step(index + 1, step, "");
            gap = false;
        } else if !gap {
            say("  …");
            gap = true;
        }
    }
}

/// Creates a task and then its steps, and returns the task as it is then.
pub async fn create(desk: &Desk, document: TaskDocument) -> anyhow::Result<Task> {
    let TaskDocument { task, steps } = document;
    let call = CreateTaskRequest {
        task,
        ..CreateTaskRequest::default()
    };
    let task = there(desk.create_task(call).await?.task)?;
    for step in steps {
        append(desk, &task, step).await?;
    }
    Ok(desk.task(&task.guid).await?)
}

/// Creates a step behind all others. The id that it has in a file means nothing
/// here, and sent as empty it is not in the receipt.
async fn append(desk: &Desk, task: &Task, step: Step) -> anyhow::Result<()> {
    let step = Step {
        guid: String::new(),
        task: task.guid.clone(),
        ..step
    };
    let call = CreateStepRequest {
        step: Some(step),
        ..CreateStepRequest::default()
    };
    let created = desk.create_step(call).await?;
    ensure!(created.placement() == Placement::Appended, "not at the end");
    ensure!(
        created.ignored_paths.is_empty(),
        "ignored: {:?}",
        created.ignored_paths
    );
    Ok(())
}

/// A step of `task` that stands for another task. It has no title of its own.
pub fn reference(task: &Task, subtask: &Task) -> Step {
    Step {
        task: task.guid.clone(),
        product_id: task.product_id,
        r#type: StepType::Subtask.into(),
        subtask_id: subtask.guid.clone(),
        subtask_pid: subtask.product_id,
        ..Step::default()
    }
}
