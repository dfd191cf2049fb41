//! `expertise preview`.

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, ValueHint};
use prost_types::{Value, value::Kind};

use super::{
    CliError, Format, PAGE_SIZE, document,
    guide_file::GuideFile,
    guide_ref::GuideArg,
    guides,
    out::{self, sanitize},
    wording,
};
use crate::{
    client::Client,
    config::value,
    domain::{analysis::MAX_SUBTASK_LEVELS, translation::Language},
    messages::managed_documents::{all_managed, all_steps},
    proto::v1::{
        AccessLevel, PreviewQuestion, PreviewTaskRequest, PreviewTaskResponse, StepType, Task,
        VisibilityReason, preview_task_request::Source,
    },
};

#[derive(Clone, Debug, PartialEq, Args)]
pub struct PreviewArgs {
    /// The guid or unique name of a stored task, with @ and a number or alias for a revision, a document, or - for standard input
    #[arg(value_name = "GUIDE[@REVISION]|FILE", value_hint = ValueHint::FilePath)]
    pub guide: GuideArg,
    /// The access level of the viewer [default: ignore access levels]
    #[arg(long, ignore_case = true)]
    pub level: Option<AccessLevel>,
    /// Show texts in this language; a text in another language is marked with its language or "source", and an outdated translation with "outdated" [default: the language of the source]
    #[arg(long, value_parser = value::language)]
    pub language: Option<Language>,
    /// A language for texts without a translation into --language; may be repeated, in order of preference
    #[arg(long = "fallback-language", value_parser = value::language)]
    pub fallback_languages: Vec<Language>,
    /// An answer: the name of an observation or variable, and the key of the answer; without a key, the variable counts as unanswered
    #[arg(long = "answer", value_name = "NAME=KEY", value_parser = answer_pair)]
    pub answers: Vec<(String, String)>,
    /// A variable that players set themselves; NAME.* covers all names that begin with NAME and a dot
    #[arg(long = "variable", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Explain why each step is visible, hidden or undetermined
    #[arg(long)]
    pub explain: bool,
    /// Print the texts of steps
    #[arg(long)]
    pub full: bool,
    /// How many levels of subtasks to show, 0 to 8
    #[arg(
        long,
        value_name = "LEVELS",
        default_value = "8",
        value_parser = value::number(0..=MAX_SUBTASK_LEVELS)
    )]
    pub subtask_depth: usize,
    /// Treat unpublished tasks and steps as published
    #[arg(long)]
    pub include_unpublished: bool,
}

fn answer_pair(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=');
    let pair = pair.map(|(name, key)| (name.trim(), key.trim()));
    let pair = pair.filter(|(name, _)| !name.is_empty());
    let (name, key) = pair.ok_or("a name and a key, such as charge_light=off")?;
    Ok((name.to_owned(), key.to_owned()))
}

/// The maximum number of names or keys in a warning.
const MAX_LISTED: usize = 20;

/// Refuses two answers for one variable, because one would be ignored.
pub(super) fn check(args: &PreviewArgs) -> Result<(), CliError> {
    let mut names = BTreeSet::new();
    let mut answers = args.answers.iter();
    match answers.find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(CliError::Argument(format!(
            "--answer is given twice for {}: give one answer",
            sanitize(name)
        ))),
        None => Ok(()),
    }
}

pub(super) async fn preview(
    client: &Client,
    args: &PreviewArgs,
    format: Format,
) -> Result<(), CliError> {
    let source = source(client, &args.guide).await?;
    let mut pages = client
        .pages(request(args, source.clone()))
        .await?
        .into_iter();
    let mut preview = pages.next().unwrap_or_default();
    preview.steps.extend(pages.flat_map(|page| page.steps));
    preview.next_page_token.clear();
    for warning in answer_warnings(&args.answers, &preview) {
        out::print_error(&sanitize(&warning));
    }
    if format == Format::Json {
        return out::print_json(&document::json("PreviewTaskResponse", &preview));
    }
    let audiences = match args.explain {
        true => audiences(client, args, source, &preview).await,
        false => BTreeMap::new(),
    };
    let language = args.language.as_ref().map(ToString::to_string);
    let language = language.unwrap_or_default();
    out::print_text(&tree::text(&preview, &language, &audiences))
}

async fn source(client: &Client, guide: &GuideArg) -> Result<Source, CliError> {
    let guide = match guide {
        GuideArg::Stored(guide) => guides::find_guide_or_file(client, guide).await?,
        GuideArg::File(file) => return Ok(Source::Document(GuideFile::read(file)?.document)),
    };
    Ok(match guide.revision {
        Some(_) => Source::Document(guide.read(client).await?.document),
        None => Source::Guid(guide.task.to_string()),
    })
}

fn request(args: &PreviewArgs, source: Source) -> PreviewTaskRequest {
    let language = args.language.as_ref().map(ToString::to_string);
    let fallback = args.fallback_languages.iter().map(ToString::to_string);
    let expand = args.full.then(|| "body".to_owned());
    // An answer without a key counts as unanswered.
    let answers = args.answers.iter().map(|(name, key)| {
        let kind = match key.as_str() {
            "" => Kind::NullValue(0),
            key => Kind::StringValue(key.to_owned()),
        };
        (name.clone(), Value { kind: Some(kind) })
    });
    PreviewTaskRequest {
        source: Some(source),
        level: args.level.map(i32::from),
        language: language.unwrap_or_default(),
        fallback_languages: fallback.collect(),
        answers: answers.collect(),
        include_unpublished: args.include_unpublished,
        subtask_depth: i32::try_from(args.subtask_depth).unwrap_or(i32::MAX),
        explain: args.explain,
        expand: expand.into_iter().collect(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
        known_variables: args.variables.clone(),
    }
}

/// A line for each answer whose name or key does not exist in the guide.
fn answer_warnings(answers: &[(String, String)], preview: &PreviewTaskResponse) -> Vec<String> {
    let steps = preview.steps.iter();
    let observations = steps.filter(|step| step.r#type() == StepType::Observation);
    let questions: Vec<&PreviewQuestion> = observations
        .filter_map(|step| step.question.as_ref())
        .collect();
    let names: BTreeSet<&str> = questions.iter().map(|it| it.name.as_str()).collect();
    let asked = match names.is_empty() {
        true => "the preview has no observations".to_owned(),
        false => {
            let names = wording::list(names, MAX_LISTED);
            format!("the observations of the preview are {names}")
        }
    };
    let unused = preview
        .unused_answers
        .iter()
        .map(|name| format!("unused answer: nothing in the guide reads or sets {name:?}; {asked}"));
    let unknown = answers.iter().filter_map(|(name, key)| {
        let asking = questions.iter().filter(|it| sets(it, name));
        let keys = asking.flat_map(|it| &it.answers).map(|it| it.key.as_str());
        let keys: Vec<&str> = keys.collect();
        if key.is_empty() || keys.is_empty() || keys.contains(&key.as_str()) {
            return None;
        }
        let keys = wording::list(keys, MAX_LISTED);
        Some(format!(
            "unknown answer: {name:?} has no answer {key:?}; its answers are {keys}"
        ))
    });
    unused.chain(unknown).collect()
}

/// Whether the question may set the variable: the name of the question, or a full name that ends in
/// it. The product in a full name is not compared, because previews do not contain it.
fn sets(question: &PreviewQuestion, variable: &str) -> bool {
    let full = variable.strip_prefix("components.");
    let name = full.and_then(|full| full.split_once('.'));
    variable == question.name || name.is_some_and(|(_, name)| name == question.name)
}

/// Whether the task is published and for whom, which the response does not say, and the same for
/// the hidden task of each subtask step, by the index of the step. Tasks that cannot be read are
/// left out.
async fn audiences(
    client: &Client,
    args: &PreviewArgs,
    source: Source,
    preview: &PreviewTaskResponse,
) -> BTreeMap<Option<usize>, String> {
    let guide = match source {
        Source::Document(document) => Some(document),
        Source::Guid(guid) => guides::read(client, &guid).await.ok().map(|it| it.document),
    };
    let guide = guide.unwrap_or_default();
    let without_level = match args.level {
        Some(_) => "",
        None => " (levels are ignored without --level)",
    };
    let audience = |task: &Task| wording::audience(task) + without_level;
    let root = guide.task.iter().map(|task| (None, audience(task)));
    let mut audiences: BTreeMap<Option<usize>, String> = root.collect();
    let (steps, managed) = (all_steps(&guide.steps), all_managed(&guide.steps));
    for (index, step) in preview.steps.iter().enumerate() {
        let mut reasons = step.reasons();
        if !reasons.any(|it| it == VisibilityReason::SubtaskHidden) {
            continue;
        }
        // The listed steps of a subtask follow its step.
        let below = preview.steps.get(index + 1);
        let below = below.filter(|below| below.via.len() > step.via.len());
        let known = steps.iter().find(|known| known.guid == step.guid);
        let guid = match (below, known) {
            (Some(below), _) if !below.task.is_empty() => below.task.as_str(),
            (_, Some(known)) if !known.guid.is_empty() => known.subtask_id.as_str(),
            _ => "",
        };
        let title = step.title.as_ref().map(|title| title.text.as_str());
        let mut managed = managed.iter().filter_map(|(value, document)| {
            let task = document.task.as_ref()?;
            let has_title = !guid.is_empty() || title == Some(value.value.as_str());
            (task.guid == guid && has_title).then_some(task)
        });
        let task = match managed.next() {
            Some(task) => Some(task.clone()),
            None if guid.is_empty() => None,
            None => guides::get_task(client, guid).await.ok(),
        };
        audiences.extend(task.map(|task| (Some(index), audience(&task))));
    }
    audiences
}
