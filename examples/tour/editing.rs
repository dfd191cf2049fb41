//! Edits a guide: inserts a subtask step, renames, updates by mask, sends read-only fields.

use anyhow::{Context, ensure};
use expertise::proto::v1::{
    CreateStepRequest, Placement, Step, StepTranslation, StepType, Task, UpdateStepRequest,
    UpdateTaskRequest,
};

use crate::{
    authoring,
    client::{Client, mask, resource},
    guide,
    show::{self, heading, print_line},
};

/// Creates a second guide step by step, and inserts a subtask step for it after a step
/// of the first. Returns the second guide and the subtask step.
pub async fn insert_a_subtask(client: &Client, into: &Task) -> anyhow::Result<(Task, Step)> {
    heading("Create a second guide and insert it after a step: CreateStep with prevstep");
    let restart = authoring::create(client, guide::read("restart-safely.json")?).await?;
    let title = "Give it time once, then start without accessories";
    let before = client.step_titled(&into.guid, title).await?;
    let request = CreateStepRequest {
        step: Some(authoring::subtask_step(into, &restart)),
        prevstep: before.guid.clone(),
        ..CreateStepRequest::default()
    };
    let created = client.create_step(request).await?;
    ensure!(
        created.placement() == Placement::AfterPrevstep,
        "the step is not after prevstep"
    );
    print_line(format!(
        "placement {}",
        show::placement(created.placement())
    ));
    let step = resource(created.step)?;
    let steps = client.steps(&into.guid).await?;
    let place = steps.iter().position(|other| other.guid == step.guid);
    let place = place.context("the step is not in the list")?;
    for (index, other) in steps.iter().enumerate().skip(place - 1).take(3) {
        let remark = if index == place { "   <- new" } else { "" };
        show::step(index + 1, other, remark);
    }
    let now = client.task(&into.guid).await?;
    print_line(format!(
        "the task's etag went from {} to {}",
        into.etag, now.etag
    ));
    Ok((restart, step))
}

/// Changes the text of a linked answer, which renames its managed task and wiring step.
pub async fn change_a_linked_answer(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Change the text of a linked answer: its managed task and wiring step are renamed");
    let question = client
        .step_titled(&guide.guid, "What does the message say?")
        .await?;
    let mut config = question.feedback_config.clone();
    let answer = config
        .first_mut()
        .and_then(|config| config.values.first_mut());
    let answer = answer.context("the question has no answer")?;
    let (before, link) = (answer.value.clone(), answer.link.clone());
    answer.value = "It finds no drive to start from".to_owned();
    let (after, key) = (answer.value.clone(), answer.key.clone());
    let sent = Step {
        guid: question.guid,
        feedback_config: config,
        ..Step::default()
    };
    update(client, sent, &["feedback_config"]).await?;
    let task = client.task(&link).await?;
    let step = client.step_titled(&guide.guid, &task.name).await?;
    print_line(format!("answer {key}: {before:?} -> {after:?}"));
    print_line(format!("task {:?}, step {:?}", task.name, step.title));
    ensure!(
        task.name == after && step.link == link,
        "the task or the step is not renamed"
    );
    Ok(())
}

/// Renames a task, which changes the titles of its subtask steps.
pub async fn rename_the_subtask(client: &Client, task: &Task, step: &Step) -> anyhow::Result<()> {
    heading("Rename a task that a subtask step refers to: the step's title follows");
    let name = "Restart without losing work";
    let request = UpdateTaskRequest {
        task: Some(Task {
            guid: task.guid.clone(),
            name: name.to_owned(),
            ..Task::default()
        }),
        update_mask: mask(&["name"]),
        ..UpdateTaskRequest::default()
    };
    client.update_task(request).await?;
    let now = client.step(&step.guid).await?;
    print_line(format!("before: {:?}, etag {}", step.title, step.etag));
    print_line(format!("after:  {:?}, etag {}", now.title, now.etag));
    ensure!(now.title == name, "the title is not that of the task");
    Ok(())
}

/// Changes only the field that the mask names.
pub async fn update_title(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Update by field mask: only `title`, though cost and tags are sent too");
    let before = client
        .step_titled(&guide.guid, "Drain the residual charge")
        .await?;
    let sent = Step {
        guid: before.guid.clone(),
        title: "Drain the residual charge for a minute".to_owned(),
        cost: Some(99),
        tags: vec!["quick".to_owned()],
        ..Step::default()
    };
    let after = update(client, sent, &["title"]).await?.0;
    for step in [&before, &after] {
        let (title, cost) = (&step.title, step.cost());
        print_line(format!(
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

/// Changes a part of a translation, which locks it, and a whole one.
pub async fn translate(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Update a map: translations.de.title, and the lock of a language");
    let step = client
        .step_titled(&guide.guid, "Run the start-up repair")
        .await?;
    print_german(&step, "as it is")?;
    let sent = in_german(&step, "Die Starthilfe laufen lassen");
    let step = update(client, sent, &["translations.de.title"]).await?.0;
    let translation = print_german(&step, "translations.de.title")?;
    ensure!(
        translation.body.is_some(),
        "the rest of the translation changed"
    );
    ensure!(
        translation.locked(),
        "automatic translation would replace the edit"
    );
    let sent = in_german(&step, "Die Starthilfe ausführen");
    let step = update(client, sent, &["translations.de"]).await?.0;
    let translation = print_german(&step, "translations.de")?;
    ensure!(
        translation.body.is_none() && translation.locked(),
        "the translation was not replaced"
    );
    print_line(
        "a path to a field keeps the rest; both lock the translation against automatic ones",
    );
    Ok(())
}

fn in_german(step: &Step, title: &str) -> Step {
    let translation = StepTranslation {
        title: Some(title.to_owned()),
        ..StepTranslation::default()
    };
    Step {
        guid: step.guid.clone(),
        translations: [("de".to_owned(), translation)].into(),
        ..Step::default()
    }
}

/// Prints the German translation of a step after a label, and returns it.
fn print_german<'s>(step: &'s Step, label: &str) -> anyhow::Result<&'s StepTranslation> {
    let translation = step
        .translations
        .get("de")
        .context("no German translation")?;
    let body = if translation.body.is_some() {
        "with body"
    } else {
        "no body"
    };
    print_line(format!(
        "{label:<22} {:?}, {body}, locked {}",
        translation.title(),
        translation.locked()
    ));
    Ok(translation)
}

/// Sends read-only fields, which the response lists in `ignored_paths`.
pub async fn ignored_paths_of_update(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Send read-only fields: they are ignored and listed in ignored_paths");
    let step = client
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
    print_line("sent without a mask: cost 4, type END, account_id \"somebody-else\", link");
    let (step, ignored) = update(client, sent, &[]).await?;
    let (cost, kind, account) = (step.cost(), show::kind(step.r#type()), &step.account_id);
    print_line(format!(
        "stored: cost {cost}, type {kind}, account_id {account:?}"
    ));
    print_line(format!("ignored_paths: {}", ignored.join(", ")));
    ensure!(
        ignored == ["step.account_id", "step.link", "step.type"],
        "ignored_paths are {ignored:?}"
    );
    Ok(())
}

async fn update(
    client: &Client,
    step: Step,
    paths: &[&str],
) -> anyhow::Result<(Step, Vec<String>)> {
    let request = UpdateStepRequest {
        step: Some(step),
        update_mask: mask(paths),
        validate_only: false,
    };
    let response = client.update_step(request).await?;
    Ok((resource(response.step)?, response.ignored_paths))
}
