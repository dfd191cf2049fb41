//! Changing a guide: places, masks, names that follow, receipts.

use anyhow::{Context, ensure};
use expertise::proto::v1::{
    CreateStepRequest, Placement, Step, StepTranslation, StepType, Task, UpdateStepRequest,
    UpdateTaskRequest,
};

use crate::{
    authoring,
    desk::{Desk, mask, there},
    guide,
    show::{self, say, stage},
};

/// Creates a second guide step by step and puts it into the first as one step, at a chosen place. Returns
/// the second guide and the step.
pub async fn insert_a_subtask(desk: &Desk, into: &Task) -> anyhow::Result<(Task, Step)> {
    stage("Create a second guide and insert it after a step: CreateStep with prevstep");
    let restart = authoring::create(desk, guide::read("restart-safely.json")?).await?;
    let title = "Give it time once, then start without accessories";
    let before = desk.step_titled(&into.guid, title).await?;
    let call = CreateStepRequest {
        step: Some(authoring::reference(into, &restart)),
        prevstep: before.guid.clone(),
        ..CreateStepRequest::default()
    };
    let created = desk.create_step(call).await?;
    ensure!(
        created.placement() == Placement::AfterPrevstep,
        "not after it"
    );
    say(format!(
        "placement {}",
        show::placement(created.placement())
    ));
    let step = there(created.step)?;
    let steps = desk.steps(&into.guid).await?;
    let place = steps.iter().position(|other| other.guid == step.guid);
    let place = place.context("the step is not in the list")?;
    for (index, other) in steps.iter().enumerate().skip(place - 1).take(3) {
        let remark = if index == place { "   <- new" } else { "" };
        show::step(index + 1, other, remark);
    }
    let now = desk.task(&into.guid).await?;
    say(format!(
        "the task's etag went from {} to {}",
        into.etag, now.etag
    ));
    Ok((restart, step))
}

/// Changes the text of an answer; the task that it manages is renamed, and the
/// step that leads there.
pub async fn rename_by_answer(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Reword a linked answer: its task and the step that leads there follow");
    let question = desk
        .step_titled(&guide.guid, "What does the message say?")
        .await?;
    let mut config = question.feedback_config.clone();
    let answer = config
        .first_mut()
        .and_then(|config| config.values.first_mut());
    let answer = answer.context("no answer")?;
    let (before, link) = (answer.value.clone(), answer.link.clone());
    answer.value = "It finds no drive to start from".to_owned();
    let (after, key) = (answer.value.clone(), answer.key.clone());
    let sent = Step {
        guid: question.guid,
        feedback_config: config,
        ..Step::default()
    };
    update(desk, sent, &["feedback_config"]).await?;
    let task = desk.task(&link).await?;
    let step = desk.step_titled(&guide.guid, &task.name).await?;
    say(format!("answer {key}: {before:?} -> {after:?}"));
    say(format!("task {:?}, step {:?}", task.name, step.title));
    ensure!(
        task.name == after && step.link == link,
        "the names do not follow"
    );
    Ok(())
}

/// Renames a task; the titles of the steps that stand for it follow.
pub async fn rename_the_subtask(desk: &Desk, task: &Task, step: &Step) -> anyhow::Result<()> {
    stage("Rename a task that a subtask step refers to: the step's title follows");
    let name = "Restart without losing work";
    let call = UpdateTaskRequest {
        task: Some(Task {
            guid: task.guid.clone(),
            name: name.to_owned(),
            ..Task::default()
        }),
        update_mask: mask(&["name"]),
        ..UpdateTaskRequest::default()
    };
    desk.update_task(call).await?;
    let now = desk.step(&step.guid).await?;
    say(format!("before: {:?}, etag {}", step.title, step.etag));
    say(format!("after:  {:?}, etag {}", now.title, now.etag));
    ensure!(now.title == name, "the title does not follow");
    Ok(())
}

/// Changes what the mask names and nothing else that is sent.
pub async fn patch_a_title(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Patch by field mask: `title` alone, though cost and tags are sent too");
    let before = desk
        .step_titled(&guide.guid, "Drain the residual charge")
        .await?;
    let sent = Step {
        guid: before.guid.clone(),
        title: "Drain the residual charge for a minute".to_owned(),
        cost: Some(99),
        tags: vec!["quick".to_owned()],
        ..Step::default()
    };
    let after = update(desk, sent, &["title"]).await?.0;
    for step in [&before, &after] {
        let (title, cost) = (&step.title, step.cost());
        say(format!(
            "{title:?}, cost {cost}, tags {:?}, etag {}",
            step.tags, step.etag
        ));
    }
    ensure!(
        after.cost == before.cost && after.tags == before.tags,
        "more than the title changed"
    );
    Ok(())
}

/// Shows what keeps the automatic translation off a language, and what does not.
pub async fn translate(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Patch into a map: translations.de.title, and the lock of a language");
    let step = desk
        .step_titled(&guide.guid, "Run the start-up repair")
        .await?;
    german(&step, "as it is")?;
    let sent = in_german(&step, "Die Starthilfe laufen lassen");
    let step = update(desk, sent, &["translations.de.title"]).await?.0;
    let row = german(&step, "translations.de.title")?;
    ensure!(
        row.body.is_some() && !row.locked(),
        "the rest of the row changed"
    );
    let sent = in_german(&step, "Die Starthilfe ausführen");
    let step = update(desk, sent, &["translations.de"]).await?.0;
    let row = german(&step, "translations.de")?;
    ensure!(
        row.body.is_none() && row.locked(),
        "the row was not replaced"
    );
    say("a path into the row leaves the lock; writing the row whole locks it for people");
    Ok(())
}

fn in_german(step: &Step, title: &str) -> Step {
    let row = StepTranslation {
        title: Some(title.to_owned()),
        ..StepTranslation::default()
    };
    Step {
        guid: step.guid.clone(),
        translations: [("de".to_owned(), row)].into(),
        ..Step::default()
    }
}

fn german<'s>(step: &'s Step, mask: &str) -> anyhow::Result<&'s StepTranslation> {
    let row = step.translations.get("de").context("no German")?;
    let body = if row.body.is_some() {
        "with body"
    } else {
        "no body"
    };
    say(format!(
        "{mask:<22} {:?}, {body}, locked {}",
        row.title(),
        row.locked()
    ));
    Ok(row)
}

/// Sends what no caller sets. The call succeeds and says what it left alone.
pub async fn read_the_receipt(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Send what is not honored: no error, and a receipt in ignored_paths");
    let step = desk
        .step_titled(&guide.guid, "Back up your data while it runs")
        .await?;
    let sent = Step {
        guid: step.guid.clone(),
        cost: Some(4),
        r#type: StepType::End.into(),
        account_id: "somebody-else".to_owned(),
        link: guide.guid.clone(),
        ..Step::default()
    };
    say("sent without a mask: cost 4, type END, account_id \"somebody-else\", link");
    let (step, ignored) = update(desk, sent, &[]).await?;
    let (cost, kind, account) = (step.cost(), show::kind(step.r#type()), &step.account_id);
    say(format!(
        "stored: cost {cost}, type {kind}, account_id {account:?}"
    ));
    say(format!("ignored_paths: {}", ignored.join(", ")));
    ensure!(
        ignored == ["step.account_id", "step.link", "step.type"],
        "another receipt"
    );
    Ok(())
}

async fn update(desk: &Desk, step: Step, paths: &[&str]) -> anyhow::Result<(Step, Vec<String>)> {
    let call = UpdateStepRequest {
        step: Some(step),
        update_mask: mask(paths),
        validate_only: false,
    };
    let response = desk.update_step(call).await?;
    Ok((there(response.step)?, response.ignored_paths))
}
