//! `expertise show`: a guide as a tree.

use std::collections::BTreeMap;

use clap::ValueEnum;
use console::style;
use termtree::Tree;

use super::{CliError, document, export, out, wording};
use crate::{
    client::Client,
    config::Format,
    domain::ids::TaskId,
    proto::v1::{
        AccessLevel, DependencyGroup, FeedbackConfig, FeedbackValue, Step, StepType, Task,
        TaskDocument, TaskType,
    },
};

/// Shows a guide with everything that an author sets except long texts.
pub(super) async fn show(client: &Client, task: TaskId, format: Format) -> Result<(), CliError> {
    let document = export::export_document(client, task).await?;
    match format {
        Format::Text => out::print(&guide(&document).to_string()),
        Format::Json => out::print(&document::text(&document)?),
    }
}

fn guide(document: &TaskDocument) -> Tree<String> {
    let TaskDocument { task, steps } = document;
    let head = task.as_ref().map(task_lines).unwrap_or_default();
    branch(head, step_trees(steps))
}

fn branch(lines: Vec<String>, leaves: Vec<Tree<String>>) -> Tree<String> {
    Tree::new(lines.join("\n"))
        .with_leaves(leaves)
        .with_multiline(true)
}

/// The lines about a task.
fn task_lines(task: &Task) -> Vec<String> {
    let mut about = vec![
        format!("product {}", task.product_id()),
        out::published_state(task.published()),
        seen_by(task),
    ];
    if task.r#type() == TaskType::Linked {
        about.push("linked".to_owned());
    }
    let name = style(out::sanitize(&task.name)).bold();
    let mut lines = vec![
        format!("{name}  {}", style(&task.guid).dim()),
        about.join(", "),
    ];
    lines.extend(when(task.dependencies.as_ref()));
    let translations = task.translations.iter();
    lines.extend(languages(translations.map(|(tag, it)| (tag, it.locked()))));
    lines
}

fn seen_by(task: &Task) -> String {
    let levels: Vec<String> = task
        .roles()
        .map(|level| wording::name(level.as_str_name(), "ACCESS_LEVEL_"))
        .collect();
    if levels.len() == AccessLevel::value_variants().len() {
        "for everybody".to_owned()
    } else {
        format!("for {}", levels.join(", "))
    }
}

fn step_trees(steps: &[Step]) -> Vec<Tree<String>> {
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
            let questions = step.feedback_config.iter().map(question);
            branch(step_lines(index + 1, step, manager), questions.collect())
        })
        .collect()
}

/// The lines about a step at its place, counted from 1. `manager` is the place of the
/// observation whose answer leads here.
fn step_lines(place: usize, step: &Step, manager: Option<usize>) -> Vec<String> {
    // Every field is shown here or in `wording`, or named as left out.
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
    let title = style(out::sanitize(&step.title)).bold();
    let kind = style(format!("{kind}{cost}")).cyan();
    let mut lines = vec![format!(
        "{place}. {kind}: {title}{state}  {}",
        style(&step.guid).dim()
    )];
    if step.r#type() == StepType::Subtask {
        let task = style(&step.subtask_id).dim();
        lines.push(match manager {
            Some(place) => format!("follows task {task}, linked to an answer of step {place}"),
            None => format!("follows task {task} of product {}", step.subtask_pid()),
        });
    }
    lines.extend(when(step.dependencies.as_ref()));
    lines.extend(wording::contents(step));
    lines.extend(wording::looping(step));
    let translations = step.translations.iter();
    lines.extend(languages(translations.map(|(tag, it)| (tag, it.locked()))));
    lines
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
fn question(config: &FeedbackConfig) -> Tree<String> {
    let linked = if config.linked() {
        ", each leads to a task"
    } else {
        ""
    };
    let (name, kind) = (out::sanitize(&config.name), out::sanitize(&config.r#type));
    let head = format!("answers {} ({kind}){linked}", style(name).magenta());
    branch(vec![head], config.values.iter().map(answer).collect())
}

fn answer(value: &FeedbackValue) -> Tree<String> {
    let head = format!(
        "{}: {}",
        out::sanitize(&value.key),
        out::sanitize(&value.value)
    );
    let managed = value.task_json.as_ref().map(guide);
    branch(vec![head], managed.into_iter().collect())
}
