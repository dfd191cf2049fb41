//! `expertise show`: a guide as a tree.

mod texts;

use std::collections::BTreeMap;

use console::style;

use self::texts::Texts;
use super::{CliError, document, guides, layout::Branch, out, wording};
use crate::{
    client::Client,
    config::{Format, ShowArgs},
    proto::v1::{
        DependencyGroup, FeedbackConfig, FeedbackValue, Step, StepType, Task, TaskDocument,
        TaskType,
    },
};

/// Shows a guide with everything that an author sets.
pub(super) async fn show(client: &Client, args: &ShowArgs, format: Format) -> Result<(), CliError> {
    let found = guides::find_guide(client, &args.guide).await?;
    let document = found.read(client).await?.document;
    match format {
        Format::Text => out::print(&guide(&document, &Texts::of(args)).to_string()),
        Format::Json => out::print(&document::text(&document)?),
    }
}

fn guide(document: &TaskDocument, texts: &Texts) -> Branch {
    let TaskDocument { task, steps } = document;
    let head = task.as_ref().map(|task| task_lines(task, texts));
    Branch::new(head.unwrap_or_default(), step_branches(steps, texts))
}

/// The lines about a task.
fn task_lines(task: &Task, texts: &Texts) -> Vec<String> {
    let mut about = vec![
        format!("product {}", task.product_id()),
        out::published_state(task.published()),
        wording::levels(task),
    ];
    if task.r#type() == TaskType::Linked {
        about.push("linked".to_owned());
    }
    let mut lines = vec![
        style(texts.name(task)).bold().to_string(),
        ids(&task.guid, task.external_id()),
        about.join(", "),
    ];
    lines.extend(when(task.dependencies.as_ref()));
    let translations = task.translations.iter();
    lines.extend(languages(translations.map(|(tag, it)| (tag, it.locked()))));
    lines
}

fn step_branches(steps: &[Step], texts: &Texts) -> Vec<Branch> {
    // The places of observations by the links of their answers.
    let managers: BTreeMap<&str, usize> = steps
        .iter()
        .enumerate()
        .flat_map(|(index, step)| {
            let configs = step.feedback_config.iter();
            let values = configs.flat_map(|config| &config.values);
            values.map(move |value| (value.link.as_str(), index + 1))
        })
        .filter(|(link, _)| !link.is_empty())
        .collect();
    steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let manager = managers.get(step.link.as_str()).copied();
            let questions = step.feedback_config.iter();
            let questions = questions.map(|config| question(step, config, texts));
            let lines = step_lines(index + 1, step, manager, texts);
            Branch::new(lines, questions.collect())
        })
        .collect()
}

/// The lines about a step at its place, counted from 1. `manager` is the place of the
/// observation whose answer leads here.
fn step_lines(place: usize, step: &Step, manager: Option<usize>, texts: &Texts) -> Vec<String> {
    // Every field is shown here, in `texts` or in `wording`, or named as left out.
    let Step {
        guid: _,
        title: _,
        r#type: _,
        cost: _,
        published: _,
        dependencies: _,
        feedback_config: _,
        body: _,
        instructions: _,
        looping: _,
        parts: _,
        skills: _,
        tags: _,
        subtask_id: _,
        subtask_pid: _,
        translations: _,
        link: _,
        external_id: _,
        // Left out: they follow from the guide or from other fields, or are the system's.
        task: _,
        product_id: _,
        dependency_shorthand: _,
        etag: _,
        account_id: _,
        r_data: _,
        dirty_record: _,
        created_ts: _,
        modified_ts: _,
    } = step;
    let kind = wording::kind(step.r#type());
    let cost = match step.cost() {
        0 => String::new(),
        cost => format!(", cost {cost}"),
    };
    let state = match step.published() {
        1 => String::new(),
        other => format!(
            " {}",
            style(format!("[{}]", out::published_state(other))).red()
        ),
    };
    let title = style(texts.title(step)).bold();
    let kind = style(format!("{kind}{cost}")).cyan();
    let mut lines = vec![
        format!("{place}. {kind}: {title}{state}"),
        ids(&step.guid, step.external_id()),
    ];
    if step.r#type() == StepType::Subtask {
        let task = style(&step.subtask_id).dim();
        lines.push(match manager {
            Some(place) => format!("leads to task {task}, linked to an answer of step {place}"),
            None => format!("leads to task {task} of product {}", step.subtask_pid()),
        });
    }
    lines.extend(when(step.dependencies.as_ref()));
    lines.extend(wording::contents(step, texts.hidden(step)));
    lines.extend(texts.long(step));
    lines.extend(wording::looping(step));
    let translations = step.translations.iter();
    lines.extend(languages(translations.map(|(tag, it)| (tag, it.locked()))));
    lines
}

/// The id of a task or step, and the caller's own if it has one.
fn ids(guid: &str, external_id: &str) -> String {
    let ids = match external_id {
        "" => guid.to_owned(),
        own => format!("{guid}, external id {}", out::sanitize(own)),
    };
    style(ids).dim().to_string()
}

fn when(dependencies: Option<&DependencyGroup>) -> Option<String> {
    let condition = wording::group(dependencies?);
    Some(style(format!("when {condition}")).yellow().to_string())
}

/// The languages, each with whether it is locked against automatic translation.
fn languages<'a>(translations: impl Iterator<Item = (&'a String, bool)>) -> Option<String> {
    let languages: Vec<String> = translations
        .map(|(tag, locked)| match locked {
            true => format!("{} (locked)", out::sanitize(tag)),
            false => out::sanitize(tag),
        })
        .collect();
    (!languages.is_empty()).then(|| {
        let line = format!("translated: {}", languages.join(", "));
        style(line).green().to_string()
    })
}

/// The question of a step. Its answers are leaves, each with the task that it leads to.
fn question(step: &Step, config: &FeedbackConfig, texts: &Texts) -> Branch {
    let linked = if config.linked() {
        ", each leads to a task"
    } else {
        ""
    };
    let (name, kind) = (out::sanitize(&config.name), out::sanitize(&config.r#type));
    let head = format!("answers for {} ({kind}){linked}", style(name).magenta());
    let answers = config.values.iter();
    let answers = answers.map(|value| answer(step, value, texts));
    Branch::new(vec![head], answers.collect())
}

fn answer(step: &Step, value: &FeedbackValue, texts: &Texts) -> Branch {
    let (key, text) = (out::sanitize(&value.key), texts.answer(step, value));
    let managed = value
        .task_json
        .as_ref()
        .map(|document| guide(document, texts));
    Branch::new(
        vec![format!("{key}: {text}")],
        managed.into_iter().collect(),
    )
}
