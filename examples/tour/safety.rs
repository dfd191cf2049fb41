//! Dry runs, complete errors, etags, retries and the separation of accounts.

use anyhow::ensure;
use expertise::proto::v1::{
    CreateStepRequest, Step, StepTranslation, StepType, Task, UpdateTaskRequest,
};
use tonic::Code;

use crate::{
    client::{Client, mask, resource},
    show::{self, expect_error, heading, print_line},
};

/// Shows what a call would do, without storing it.
pub async fn dry_run(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Dry run: validate_only");
    let before = client.task(&guide.guid).await?;
    let request = CreateStepRequest {
        step: Some(note(guide, "Thank you for your patience")),
        validate_only: true,
        ..CreateStepRequest::default()
    };
    let response = client.create_step(request).await?;
    let placement = show::placement(response.placement());
    let step = resource(response.step)?;
    print_line(format!(
        "it would be stored: {:?}, placement {placement}",
        step.title
    ));
    print_line("and reading it:");
    expect_error(
        client.step(&step.guid).await,
        Code::NotFound,
        "STEP_NOT_FOUND",
    )?;
    ensure!(
        client.task(&guide.guid).await? == before,
        "the dry run changed the task"
    );
    Ok(())
}

/// Sends a request with many violations.
pub async fn every_violation(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("An error lists every violation, not only the first");
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
    let request = CreateStepRequest {
        step: Some(step),
        prevstep: "the one before".to_owned(),
        ..CreateStepRequest::default()
    };
    let outcome = client.create_step(request).await;
    expect_error(outcome, Code::InvalidArgument, "SHORTHAND_INVALID")
}

/// Two people read the same task; the second write fails.
pub async fn etag_conflict(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Two editors, one etag");
    let read = client.task(&guide.guid).await?;
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
    let first = client.update_task(rename("Laptop does not start")).await?;
    let etag = resource(first.task)?.etag;
    print_line(format!(
        "both read etag {}; the first writes, which makes it {etag}",
        read.etag
    ));
    let second = client.update_task(rename("Notebook will not start")).await;
    expect_error(second, Code::Aborted, "ETAG_MISMATCH")
}

/// Repeats a create, as after a lost response.
pub async fn repeat_a_create(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Repeat a create with the same request_id: one step, the same response");
    let request = |title: &str| CreateStepRequest {
        step: Some(note(guide, title)),
        request_id: "6d2c9f0e-3f0b-4a53-9a3e-51c7a2b6f1d4".to_owned(),
        ..CreateStepRequest::default()
    };
    let before = client.task(&guide.guid).await?.steps.len();
    let first = client.create_step(request("Keep the receipt")).await?;
    let again = client.create_step(request("Keep the receipt")).await?;
    let after = client.task(&guide.guid).await?.steps.len();
    ensure!(
        first == again && after == before + 1,
        "a second step was made"
    );
    let guid = resource(first.step)?.guid;
    print_line(format!(
        "both responses have step {guid}; steps: {before} -> {after}"
    ));
    print_line("the same id with another payload:");
    let outcome = client.create_step(request("Keep the box")).await;
    expect_error(outcome, Code::FailedPrecondition, "REQUEST_ID_REUSED")
}

/// Reads the guide from another account.
pub async fn other_account(other: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Another account: the guide does not exist for it");
    let outcome = other.task(&guide.guid).await;
    expect_error(outcome, Code::NotFound, "TASK_NOT_FOUND")
}

/// An information step of the guide.
fn note(guide: &Task, title: &str) -> Step {
    Step {
        task: guide.guid.clone(),
        product_id: guide.product_id,
        r#type: StepType::Information.into(),
        title: title.to_owned(),
        ..Step::default()
    }
}
