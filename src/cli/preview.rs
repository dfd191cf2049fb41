//! `expertise preview`.

mod answers;
mod subtasks;
mod tree;

use std::collections::BTreeSet;

use prost_types::{Value, value::Kind};

use self::subtasks::SubtaskReasons;
use super::{
    CliError, PAGE_SIZE, document, field_line::SentText, layout::with_hanging_indent, out,
    revisions, tasks, transfer, wording,
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
    let (request, text) = request(client, args).await?;
    let language = request.language.clone();
    let document = match &request.source {
        Some(Source::Document(document)) => Some(document.clone()),
        Some(Source::Guid(_)) | None => None,
    };
    let preview = preview_all_pages(client, request).await;
    let preview = preview.map_err(|error| match (&text, &document) {
        (Some(text), Some(document)) => SentText { text, document }.with_places(error),
        (Some(_) | None, _) => error,
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
        None => tasks::get(client, previewed.guid.clone()).await.ok()?,
    };
    Some(format!("the task is {}", wording::levels(&task)))
}

/// The request, and the text of the file that its document is from.
async fn request(
    client: &Client,
    args: &PreviewArgs,
) -> Result<(PreviewTaskRequest, Option<String>), CliError> {
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
    let (source, text) = match guide {
        GuideArg::Stored(guide) => {
            let found = tasks::find_guide_or_file(client, guide).await?;
            let source = match found.revision {
                Some(_) => Source::Document(revisions::document(client, &found).await?),
                None => Source::Guid(found.task.to_string()),
            };
            (source, None)
        }
        GuideArg::File(file) => {
            let (text, document) = transfer::read_text_and_document(file)?;
            (Source::Document(document), Some(text))
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
    Ok((request, text))
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
    let mut first: Option<PreviewTaskResponse> = None;
    client
        .for_each_page(message, |page| {
            match &mut first {
                None => first = Some(page),
                Some(first) => first.steps.extend(page.steps),
            }
            Ok::<_, CallError>(())
        })
        .await?;
    Ok(PreviewTaskResponse {
        next_page_token: String::new(),
        ..first.unwrap_or_default()
    })
}
