//! `expertise preview`.

mod answers;
mod subtasks;
mod tree;

use std::collections::BTreeSet;

use prost_types::{Value, value::Kind};

use self::subtasks::SubtaskReasons;
use super::{
    CliError, PAGE_SIZE, document, guide_file::GuideFile, guides, layout::with_hanging_indent, out,
    wording,
};
use crate::{
    client::{CallError, Client},
    config::{Format, GuideArg, PreviewArgs},
    proto::v1::{
        PreviewTaskRequest, PreviewTaskResponse, TaskDocument, VisibilityReason,
        preview_task_request::Source,
    },
};

/// Refuses two answers for one variable, as one would be ignored.
pub(super) fn check(args: &PreviewArgs) -> Result<(), CliError> {
    let mut names = BTreeSet::new();
    for (name, _) in &args.answers {
        if !names.insert(name.as_str()) {
            return Err(CliError::Argument(format!(
                "--answer is given twice for {}: give one answer",
                out::sanitize(name)
            )));
        }
    }
    Ok(())
}

/// Shows which steps a user sees with given answers.
pub(super) async fn preview(
    client: &Client,
    args: &PreviewArgs,
    format: Format,
) -> Result<(), CliError> {
    let (request, file) = request(client, args).await?;
    let language = request.language.clone();
    let document = match &request.source {
        Some(Source::Document(document)) => Some(document.clone()),
        Some(Source::Guid(_)) | None => None,
    };
    let preview = preview_all_pages(client, request).await;
    let preview = preview.map_err(|error| match &file {
        Some(file) => file.locate(error),
        None => error,
    })?;
    for warning in answers::warnings(&args.answers, &preview) {
        out::print_error(&warning);
    }
    match format {
        Format::Text => {
            let subtasks = match args.explain {
                true => SubtaskReasons::read(client, args, document.as_ref(), &preview).await,
                false => SubtaskReasons::default(),
            };
            let mut text = tree::text(&preview, &language, &subtasks);
            if args.explain {
                let line = about_levels(client, args, document.as_ref(), &preview).await;
                text.extend(line.map(|line| with_hanging_indent("levels: ", &line)));
            }
            out::print(&text)
        }
        Format::Json => {
            let json = document::json("PreviewTaskResponse", &preview)?;
            out::print_json(&json)
        }
    }
}

/// A line about levels: which may see the task if the given one may not, or that roles are
/// ignored if none is given.
async fn about_levels(
    client: &Client,
    args: &PreviewArgs,
    document: Option<&TaskDocument>,
    preview: &PreviewTaskResponse,
) -> Option<String> {
    if args.level.is_none() {
        return Some("roles are not looked at without --level".to_owned());
    }
    let previewed = preview.task.as_ref()?;
    if !previewed.reasons().any(|it| it == VisibilityReason::Level) {
        return None;
    }
    let task = match document.and_then(|document| document.task.clone()) {
        Some(task) => task,
        None => guides::get_task(client, &previewed.guid).await.ok()?,
    };
    Some(format!("the task is {}", wording::levels(&task)))
}

/// The request, and the file that its document is from.
async fn request(
    client: &Client,
    args: &PreviewArgs,
) -> Result<(PreviewTaskRequest, Option<GuideFile>), CliError> {
    let PreviewArgs {
        guide,
        level,
        language,
        fallback_languages,
        answers,
        variables,
        explain,
        full,
        subtask_depth,
        include_unpublished,
    } = args;
    let (source, file) = match guide {
        GuideArg::Stored(guide) => {
            let found = guides::find_guide_or_file(client, guide).await?;
            let source = match found.revision {
                Some(_) => Source::Document(found.read(client).await?.document),
                None => Source::Guid(found.task.to_string()),
            };
            (source, None)
        }
        GuideArg::File(file) => {
            let file = GuideFile::read(file)?;
            (Source::Document(file.document.clone()), Some(file))
        }
    };
    let expand = full.then(|| "body".to_owned());
    let fallback = fallback_languages.iter().map(ToString::to_string);
    let request = PreviewTaskRequest {
        source: Some(source),
        level: level.map(i32::from),
        language: language
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
        fallback_languages: fallback.collect(),
        answers: answers.iter().map(answer).collect(),
        include_unpublished: *include_unpublished,
        subtask_depth: i32::try_from(*subtask_depth).unwrap_or(i32::MAX),
        explain: *explain,
        expand: expand.into_iter().collect(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
        known_variables: variables.clone(),
    };
    Ok((request, file))
}

/// Encodes an answer. An empty key says that the variable is unanswered.
fn answer((name, key): &(String, String)) -> (String, Value) {
    let kind = match key.as_str() {
        "" => Kind::NullValue(0),
        key => Kind::StringValue(key.to_owned()),
    };
    (name.clone(), Value { kind: Some(kind) })
}

/// Calls page by page. The returned response has the steps of all pages.
async fn preview_all_pages(
    client: &Client,
    message: PreviewTaskRequest,
) -> Result<PreviewTaskResponse, CallError> {
    let mut pages = client.pages(message).await?.into_iter();
    let mut first = pages.next().unwrap_or_default();
    first.steps.extend(pages.flat_map(|page| page.steps));
    first.next_page_token.clear();
    Ok(first)
}
