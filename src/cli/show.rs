//! `expertise show`: a guide as a tree.

use std::collections::BTreeMap;

use clap::Args;
use console::style;
use serde_json::Value;

use super::{
    CliError, Format,
    document::{self, value_text},
    guide_ref::GuideRef,
    guides,
    layout::Branch,
    out::{self, sanitize},
    wording,
};
use crate::{
    client::Client,
    config::value,
    domain::translation::Language,
    messages::managed_documents::values,
    proto::v1::{
        DependencyGroup, FeedbackConfig, FeedbackValue, Step, StepTranslation, StepType, Task,
        TaskDocument, TaskTranslation, TaskType,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowArgs {
    /// The guid or unique name of a task, with @ and a number or alias for a revision
    #[arg(value_name = "GUIDE[@REVISION]")]
    pub guide: GuideRef,
    /// Print the texts of steps and their instructions
    #[arg(long)]
    pub full: bool,
    /// Show texts in this language; texts without a translation are marked as source
    #[arg(long, value_parser = value::language)]
    pub language: Option<Language>,
}

pub(super) async fn show(client: &Client, args: &ShowArgs, format: Format) -> Result<(), CliError> {
    let found = guides::find_guide(client, &args.guide).await?;
    let document = found.read(client).await?.document;
    if format == Format::Json {
        return out::print(&document::text(&document));
    }
    let mut languages = Vec::new();
    let mut tag = args.language.as_ref().map(ToString::to_string);
    while let Some(longer) = tag {
        tag = longer
            .rsplit_once('-')
            .map(|(shorter, _)| shorter.to_owned());
        languages.push(longer);
    }
    let tree = GuideTree {
        languages,
        full: args.full,
    };
    out::print_text(&tree.guide(&document).text())
}

struct GuideTree {
    /// The tag of the language, followed by its shorter forms; empty for the source.
    languages: Vec<String>,
    full: bool,
}

impl GuideTree {
    fn guide(&self, document: &TaskDocument) -> Branch {
        // The places of observations by the links of their answers.
        let managers = document.steps.iter().zip(1..).flat_map(|(step, place)| {
            let links = values(step).map(|value| value.link.as_str());
            links
                .filter(|link| !link.is_empty())
                .map(move |link| (link, place))
        });
        let managers: BTreeMap<&str, usize> = managers.collect();
        let steps = document.steps.iter().zip(1..).map(|(step, place)| {
            let manager = managers.get(step.link.as_str()).copied();
            let questions = step
                .feedback_config
                .iter()
                .map(|it| self.question(step, it));
            Branch::new(self.step_lines(place, step, manager), questions.collect())
        });
        let head = document.task.as_ref().map(|task| self.task_lines(task));
        Branch::new(head.unwrap_or_default(), steps.collect())
    }

    fn task_lines(&self, task: &Task) -> Vec<String> {
        let linked = match task.r#type() {
            TaskType::Linked => ", linked",
            _ => "",
        };
        let (product, audience) = (task.product_id(), wording::audience(task));
        let name = |it: &TaskTranslation| it.name.clone();
        let name = self.text(&task.translations, name, &task.name);
        let mut lines = vec![
            style(sanitize(&name)).bold().to_string(),
            ids(&task.guid, task.external_id()),
            format!("product {product}, {audience}{linked}"),
        ];
        lines.extend(when(task.dependencies.as_ref()));
        let translations = task.translations.iter();
        lines.extend(languages(translations.map(|(tag, it)| (tag, it.locked()))));
        lines
    }

    /// `manager` is the place of the observation whose answer leads here.
    fn step_lines(&self, place: usize, step: &Step, manager: Option<usize>) -> Vec<String> {
        let state = match step.published {
            Some(1) | None => String::new(),
            other => format!(
                " {}",
                style(format!("[{}]", wording::published(other))).red()
            ),
        };
        let title = |it: &StepTranslation| it.title.clone();
        let title = self.text(&step.translations, title, &step.title);
        let title = style(sanitize(&title)).bold();
        let kind = wording::step_kind(step.r#type(), step.cost());
        let mut lines = vec![
            format!("{place}. {kind}: {title}{state}"),
            ids(&step.guid, step.external_id()),
        ];
        if step.r#type() == StepType::Subtask {
            let task = ids(&step.subtask_id, step.subtask_external_id());
            lines.push(match manager {
                Some(place) => format!("leads to task {task}, linked to an answer of step {place}"),
                None => format!("leads to task {task} of product {}", step.subtask_pid()),
            });
        }
        lines.extend(when(step.dependencies.as_ref()));
        lines.extend(self.contents(step));
        if self.full {
            lines.extend(self.long_texts(step));
        }
        if step.looping.is_some() {
            let looping = field_json(step, "looping");
            lines.push(format!("repeats {}", sanitize(&value_text(&looping))));
        }
        let translations = step.translations.iter();
        lines.extend(languages(translations.map(|(tag, it)| (tag, it.locked()))));
        lines
    }

    /// The question of a step. Its answers are leaves, each with the task that it leads to.
    fn question(&self, step: &Step, config: &FeedbackConfig) -> Branch {
        let linked = match config.linked() {
            true => ", each leads to a task",
            false => "",
        };
        let (name, kind) = (sanitize(&config.name), sanitize(&config.r#type));
        let head = format!("answers for {} ({kind}){linked}", style(name).magenta());
        let answers = config.values.iter().map(|value| self.answer(step, value));
        Branch::new(vec![head], answers.collect())
    }

    fn answer(&self, step: &Step, value: &FeedbackValue) -> Branch {
        let translated = |translation: &StepTranslation| {
            let configs = translation.feedback_config.iter();
            let mut values = configs.flat_map(|config| &config.values);
            Some(values.find(|it| it.key == value.key)?.value.clone())
        };
        let text = self.text(&step.translations, translated, &value.value);
        let managed = value.task_json.iter().map(|document| self.guide(document));
        let line = format!("{}: {}", sanitize(&value.key), sanitize(&text));
        Branch::new(vec![line], managed.collect())
    }

    fn long_texts(&self, step: &Step) -> Vec<String> {
        let body = step.body.as_ref().map(|source| {
            let body = |it: &StepTranslation| it.body.clone();
            self.text(&step.translations, body, source)
        });
        let mut lines: Vec<String> = body.unwrap_or_default().lines().map(sanitize).collect();
        let instructions =
            |it: &StepTranslation| Some(it.instructions.clone()).filter(|list| !list.is_empty());
        let translated = self.find(&step.translations, instructions);
        let mark = self.mark(translated.as_ref().map(|(tag, _)| *tag));
        let shown = Step {
            instructions: translated.map_or_else(|| step.instructions.clone(), |(_, it)| it),
            ..Step::default()
        };
        let instructions = field_json(&shown, "instructions");
        let instructions = instructions.as_array().into_iter().flatten();
        lines.extend(instructions.map(|instruction| {
            let text = sanitize(&value_text(instruction));
            format!("instruction {text}{mark}")
        }));
        lines
    }

    /// The content of a step besides its title: descriptions of texts that are not shown, such as
    /// `a text of 120 characters`, and its lists.
    fn contents(&self, step: &Step) -> Option<String> {
        let body = step.body.as_ref().map(|body| match body.chars().count() {
            1 => "a text of 1 character".to_owned(),
            count => format!("a text of {count} characters"),
        });
        let instructions = wording::instruction_count(step.instructions.len());
        let hidden_texts = body.into_iter().chain(instructions).filter(|_| !self.full);
        let lists = [
            ("parts", &step.parts),
            ("skills", &step.skills),
            ("tags", &step.tags),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let lists = lists.map(|(name, list)| format!("{name} {}", sanitize(&list.join(", "))));
        let contents: Vec<String> = hidden_texts.chain(lists).collect();
        (!contents.is_empty()).then(|| format!("with {}", contents.join("; ")))
    }

    /// The translated text, or the source text, marked if it is not in the requested language.
    fn text<T>(
        &self,
        translations: &BTreeMap<String, T>,
        text: impl Fn(&T) -> Option<String>,
        source: &str,
    ) -> String {
        let translated = self.find(translations, text);
        let mark = self.mark(translated.as_ref().map(|(tag, _)| *tag));
        translated.map_or_else(|| source.to_owned(), |(_, text)| text) + &mark
    }

    /// The text in the language or its longest shorter form that has one, with the tag.
    fn find<T, U>(
        &self,
        translations: &BTreeMap<String, T>,
        text: impl Fn(&T) -> Option<U>,
    ) -> Option<(&str, U)> {
        let mut languages = self.languages.iter();
        languages.find_map(|tag| Some((tag.as_str(), text(translations.get(tag)?)?)))
    }

    /// The language of a text if it differs from the requested one, as in `preview`.
    fn mark(&self, language: Option<&str>) -> String {
        match (self.languages.first(), language) {
            (Some(asked), Some(found)) if found != asked => format!(" [{found}]"),
            (Some(_), None) => " [source]".to_owned(),
            _ => String::new(),
        }
    }
}

fn field_json(step: &Step, field: &str) -> Value {
    let json = document::json("Step", step);
    json.get(field).cloned().unwrap_or_default()
}

/// The id of a task or step, and its external id if it has one.
fn ids(guid: &str, external_id: &str) -> String {
    let ids = match external_id {
        "" => guid.to_owned(),
        own => format!("{guid}, external id {}", sanitize(own)),
    };
    style(ids).dim().to_string()
}

fn when(dependencies: Option<&DependencyGroup>) -> Option<String> {
    let condition = wording::group(dependencies?);
    Some(style(format!("when {condition}")).yellow().to_string())
}

/// The languages, and whether each is locked against automatic translation.
fn languages<'a>(translations: impl Iterator<Item = (&'a String, bool)>) -> Option<String> {
    let languages = translations.map(|(tag, locked)| match locked {
        true => format!("{} (locked)", sanitize(tag)),
        false => sanitize(tag),
    });
    let languages: Vec<String> = languages.collect();
    let line = format!("translated: {}", languages.join(", "));
    (!languages.is_empty()).then(|| style(line).green().to_string())
}
