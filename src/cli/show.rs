//! `expertise show`: a guide as a tree.

mod words;

use std::collections::BTreeMap;

use console::{Style, style};
use termtree::Tree;

use super::{CliError, document, export, out};
use crate::{
    client::Client,
    config::Output,
    domain::ids::TaskId,
    proto::v1::{
        AccessLevel, FeedbackConfig, FeedbackValue, Step, StepType, Task, TaskDocument, TaskType,
    },
};

/// Shows a guide with everything that an author decides but its long texts.
pub(super) async fn show(client: &Client, task: TaskId, output: Output) -> Result<(), CliError> {
    let document = export::fetch(client, task).await?;
    match output {
        Output::Text => out::write(&guide(&document).to_string()),
        Output::Json => out::write(&document::text(&document)?),
    }
}

fn guide(document: &TaskDocument) -> Tree<String> {
    let TaskDocument { task, steps } = document;
    let head = task.as_ref().map(task_lines).unwrap_or_default();
    branch(head, numbered(steps))
}

fn branch(lines: Vec<String>, leaves: Vec<Tree<String>>) -> Tree<String> {
    Tree::new(lines.join("\n"))
        .with_leaves(leaves)
        .with_multiline(true)
}

/// What is said of a task.
fn task_lines(task: &Task) -> Vec<String> {
    let mut about = vec![
        format!("product {}", task.product_id()),
        out::state(task.published()),
        seen_by(task),
    ];
    if task.r#type() == TaskType::Linked {
        about.push("linked".to_owned());
    }
    let name = style(out::plain(&task.name)).bold();
    let mut lines = vec![
        format!("{name}  {}", style(&task.guid).dim()),
        about.join(", "),
    ];
    lines.extend(when(task.dependencies.as_ref()));
    lines.extend(languages(
        task.translations
            .iter()
            .map(|(tag, translation)| (tag.as_str(), translation.locked())),
    ));
    lines
}

fn seen_by(task: &Task) -> String {
    let levels: Vec<String> = task
        .roles()
        .map(|level| words::name(level.as_str_name(), "ACCESS_LEVEL_"))
        .collect();
    if levels.len() == LEVELS {
        "for everybody".to_owned()
    } else {
        format!("for {}", levels.join(", "))
    }
}

/// How many access levels there are.
const LEVELS: usize = [
    AccessLevel::User,
    AccessLevel::Tech,
    AccessLevel::Tech2,
    AccessLevel::Tech3,
    AccessLevel::Expert,
    AccessLevel::User2,
    AccessLevel::User3,
]
.len();

fn numbered(steps: &[Step]) -> Vec<Tree<String>> {
    let titles: BTreeMap<&str, usize> = steps
        .iter()
        .enumerate()
        .flat_map(|(index, step)| {
            let values = step
                .feedback_config
                .iter()
                .flat_map(|config| &config.values);
            values.map(move |value| (value.link.as_str(), index + 1))
        })
        .filter(|(link, _)| !link.is_empty())
        .collect();
    steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let manager = titles.get(step.link.as_str()).copied();
            branch(step_lines(index + 1, step, manager), answers(step))
        })
        .collect()
}

/// What is said of a step at its place, counted from 1. `manager` is the place of
/// the observation whose answer leads here.
fn step_lines(place: usize, step: &Step, manager: Option<usize>) -> Vec<String> {
    let kind = words::kind(step.r#type());
    let cost = match step.cost() {
        0 => String::new(),
        cost => format!(", cost {cost}"),
    };
    let state = match step.published() {
        1 => String::new(),
        other => format!(" {}", style(format!("[{}]", out::state(other))).red()),
    };
    let title = style(out::plain(&step.title)).bold();
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
    lines.extend(words::contents(step));
    lines.extend(words::looping(step));
    lines.extend(languages(
        step.translations
            .iter()
            .map(|(tag, translation)| (tag.as_str(), translation.locked())),
    ));
    lines
}

fn when(dependencies: Option<&crate::proto::v1::DependencyGroup>) -> Option<String> {
    let condition = words::group(dependencies?);
    Some(
        Style::new()
            .yellow()
            .apply_to(format!("when {condition}"))
            .to_string(),
    )
}

/// The languages, and which of them the automatic translation keeps off.
fn languages<'a>(translations: impl Iterator<Item = (&'a str, bool)>) -> Option<String> {
    let languages: Vec<String> = translations
        .map(|(tag, locked)| match locked {
            true => format!("{} (locked)", out::plain(tag)),
            false => out::plain(tag),
        })
        .collect();
    (!languages.is_empty()).then(|| {
        let line = format!("translated: {}", languages.join(", "));
        style(line).green().to_string()
    })
}

/// The question of a step, an answer a leaf, with the task that it manages.
fn answers(step: &Step) -> Vec<Tree<String>> {
    let configs = step.feedback_config.iter();
    configs.map(question).collect()
}

fn question(config: &FeedbackConfig) -> Tree<String> {
    let linked = if config.linked() {
        ", each leads to a task"
    } else {
        ""
    };
    let (name, kind) = (out::plain(&config.name), out::plain(&config.r#type));
    let head = format!("answers {} ({kind}){linked}", style(name).magenta());
    branch(vec![head], config.values.iter().map(answer).collect())
}

fn answer(value: &FeedbackValue) -> Tree<String> {
    let head = format!("{}: {}", out::plain(&value.key), out::plain(&value.value));
    let managed = value.task_json.as_ref().map(guide);
    branch(vec![head], managed.into_iter().collect())
}
