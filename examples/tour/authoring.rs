//! Creates guides, by import or step by step, and exports one.

use std::time::Instant;

use anyhow::{Context, ensure};
use expertise::proto::v1::{
    CreateStepRequest, CreateTaskRequest, ImportTaskRequest, Placement, Step, StepType, Task,
    TaskDocument, TaskType,
};

use crate::{
    client::{Client, resource},
    guide,
    show::{self, heading, print_line},
};

const FILE: &str = "laptop-will-not-start.json";

/// Imports the guide that the tour works on.
pub async fn import_a_guide(client: &Client) -> anyhow::Result<Task> {
    heading("Import a guide: one call, all or nothing");
    let document = guide::read(FILE)?;
    let step_count = document.steps.len();
    let begun = Instant::now();
    let imported = client.import_task(import(document)).await?;
    let took = begun.elapsed().as_millis();
    let guide = resource(imported.task)?;
    print_line(format!("{FILE}: {step_count} steps, imported in {took} ms"));
    print_line(format!(
        "task {} {:?}, etag {}",
        guide.guid, guide.name, guide.etag
    ));
    let steps = client.steps(&guide.guid).await?;
    outline(&steps);
    print_line(
        "the answers of step 29 are linked: each manages a task, which a wiring step refers to",
    );
    let linked = steps.iter().find(|step| !step.link.is_empty());
    let linked = client.task(&linked.context("no linked task")?.link).await?;
    ensure!(
        linked.r#type() == TaskType::Linked && linked.parent_guid == guide.guid,
        "not linked"
    );
    Ok(guide)
}

/// Exports the guide, and checks that importing it would change nothing.
pub async fn export(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Export the guide; a dry run shows what importing it would change");
    let document = client.export_task(&guide.guid).await?;
    let steps = document.steps.len();
    let before = client.task(&guide.guid).await?;
    let request = ImportTaskRequest {
        validate_only: true,
        ..import(document)
    };
    let dry_run = resource(client.import_task(request).await?.task)?;
    print_line(format!(
        "{steps} steps exported; etag {} -> {}: nothing",
        before.etag, dry_run.etag
    ));
    ensure!(dry_run == before, "the export differs from what is stored");
    Ok(())
}

fn import(document: TaskDocument) -> ImportTaskRequest {
    ImportTaskRequest {
        document: Some(document),
        ..ImportTaskRequest::default()
    }
}

/// Prints the first and last steps of the guide, and each subtask step with the one before it.
fn outline(steps: &[Step]) {
    let is_subtask = |step: &Step| step.r#type() == StepType::Subtask;
    let mut gap = false;
    for (index, step) in steps.iter().enumerate() {
        let next = steps.get(index + 1);
        if index < 2 || is_subtask(step) || next.is_none_or(is_subtask) {
            show::step(index + 1, step, "");
            gap = false;
        } else if !gap {
            print_line("  …");
            gap = true;
        }
    }
}

/// Creates a task and then its steps, and returns the final task.
pub async fn create(client: &Client, document: TaskDocument) -> anyhow::Result<Task> {
    let TaskDocument { task, steps } = document;
    let request = CreateTaskRequest {
        task,
        ..CreateTaskRequest::default()
    };
    let task = resource(client.create_task(request).await?.task)?;
    for step in steps {
        append(client, &task, step).await?;
    }
    Ok(client.task(&task.guid).await?)
}

/// Appends a step. Its id in the file is not sent, as it would be in `ignored_paths`.
async fn append(client: &Client, task: &Task, step: Step) -> anyhow::Result<()> {
    let step = Step {
        guid: String::new(),
        task: task.guid.clone(),
        ..step
    };
    let request = CreateStepRequest {
        step: Some(step),
        ..CreateStepRequest::default()
    };
    let created = client.create_step(request).await?;
    ensure!(created.placement() == Placement::Appended, "not at the end");
    ensure!(
        created.ignored_paths.is_empty(),
        "ignored: {:?}",
        created.ignored_paths
    );
    Ok(())
}

/// A subtask step of `task`. Its title will be the name of the subtask.
pub fn subtask_step(task: &Task, subtask: &Task) -> Step {
    Step {
        task: task.guid.clone(),
        product_id: task.product_id,
        r#type: StepType::Subtask.into(),
        subtask_id: subtask.guid.clone(),
        subtask_pid: subtask.product_id,
        ..Step::default()
    }
}
