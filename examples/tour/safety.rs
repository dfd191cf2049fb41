//! What keeps authors from mishaps: dry runs, complete errors, etags, retries,
//! accounts.

use anyhow::ensure;
use expertise::proto::v1::{
    CreateStepRequest, Step, StepTranslation, StepType, Task, UpdateTaskRequest,
};
use tonic::Code;

use crate::{
    desk::{Desk, mask, there},
    show::{self, refused, say, stage},
};

/// Asks what a call would do.
pub async fn run_dry(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Try without storing: validate_only");
    let before = desk.task(&guide.guid).await?;
    let call = CreateStepRequest {
        step: Some(note(guide, "Thank you for your patience")),
        validate_only: true,
        ..CreateStepRequest::default()
    };
    let would = desk.create_step(call).await?;
    let placement = show::placement(would.placement());
    let step = there(would.step)?;
    say(format!(
        "it would be stored: {:?}, placement {placement}",
        step.title
    ));
    say("and reading it:");
    refused(
        desk.step(&step.guid).await,
        Code::NotFound,
        "STEP_NOT_FOUND",
    )?;
    ensure!(
        desk.task(&guide.guid).await? == before,
        "the dry run left a trace"
    );
    Ok(())
}

/// Gets everything wrong at once, and is told all of it at once.
pub async fn see_every_violation(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("An error names every violation, not just the first");
    let german = StepTranslation {
        title: Some("ä".repeat(401)),
        ..StepTranslation::default()
    };
    let step = Step {
        task: guide.guid.clone(),
        product_id: Some(0),
        r#type: StepType::Observation.into(),
        title: "  ".to_owned(),
        cost: Some(5),
        dependency_shorthand: Some("components.1204.lamp >= 3".to_owned()),
        translations: [("de".to_owned(), german)].into(),
        ..Step::default()
    };
    let call = CreateStepRequest {
        step: Some(step),
        prevstep: "the one before".to_owned(),
        ..CreateStepRequest::default()
    };
    let outcome = desk.create_step(call).await;
    refused(outcome, Code::InvalidArgument, "FIELD_OUT_OF_RANGE")
}

/// Two people read the same task; the second to write is told.
pub async fn collide(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Two editors, one etag");
    let read = desk.task(&guide.guid).await?;
    let rename = |name: &str| UpdateTaskRequest {
        task: Some(Task {
            guid: read.guid.clone(),
            etag: read.etag.clone(),
            name: name.to_owned(),
            ..Task::default()
        }),
        update_mask: mask(&["name"]),
        validate_only: false,
    };
    let first = desk.update_task(rename("Laptop does not start")).await?;
    let etag = there(first.task)?.etag;
    say(format!(
        "both read etag {}; the first writes, which makes it {etag}",
        read.etag
    ));
    let second = desk.update_task(rename("Notebook will not start")).await;
    refused(second, Code::Aborted, "ETAG_MISMATCH")
}

/// Repeats a call whose answer got lost.
pub async fn retry(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Repeat a create with the same request_id: one step, the same answer");
    let call = |title: &str| CreateStepRequest {
        step: Some(note(guide, title)),
        request_id: "6d2c9f0e-3f0b-4a53-9a3e-51c7a2b6f1d4".to_owned(),
        ..CreateStepRequest::default()
    };
    let before = desk.task(&guide.guid).await?.steps.len();
    let first = desk.create_step(call("Keep the receipt")).await?;
    let again = desk.create_step(call("Keep the receipt")).await?;
    let after = desk.task(&guide.guid).await?.steps.len();
    ensure!(
        first == again && after == before + 1,
        "a second step was made"
    );
    let guid = there(first.step)?.guid;
    say(format!(
        "both answers name step {guid}; steps: {before} -> {after}"
    ));
    say("the same id with another payload:");
    let outcome = desk.create_step(call("Keep the box")).await;
    refused(outcome, Code::FailedPrecondition, "REQUEST_ID_REUSED")
}

/// Looks for the guide from another account.
pub async fn stay_apart(stranger: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Another account: the guide is not there");
    let outcome = stranger.task(&guide.guid).await;
    refused(outcome, Code::NotFound, "TASK_NOT_FOUND")
}

/// Something to read at the end of the guide.
fn note(guide: &Task, title: &str) -> Step {
    Step {
        task: guide.guid.clone(),
        product_id: guide.product_id,
        r#type: StepType::Information.into(),
        title: title.to_owned(),
        ..Step::default()
    }
}
