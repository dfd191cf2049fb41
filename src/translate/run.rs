//! A run lists work, translates it and writes it back, page by page.

use std::{collections::HashSet, fmt};

use futures_util::{StreamExt, stream};
use indicatif::ProgressBar;
use prost::Message;
use tokio::signal;

use super::{
    engine::{Engine, EngineError},
    parts::chunks_within,
    work,
};
use crate::{
    client::{CallError, Client},
    config::TranslateConfig,
    domain::ids::TaskId,
    proto::v1::{
        AutomaticTranslation, ListTranslationWorkRequest, TranslationResult, TranslationWork,
        WriteTranslationsRequest, WriteTranslationsResponse,
    },
    terminal::{print_error, sanitize, spinner},
};

/// Small pages, so an interrupted run loses little work.
const PAGE_SIZE: i32 = 25;
/// The maximum number of items in a write.
const MAX_BATCH_ITEMS: usize = 100;
/// The maximum number of bytes in a write, except for a single larger item.
const MAX_BATCH_BYTES: usize = 3 * 1024 * 1024;
/// The run ends after the engine was unavailable for this many items in a row, each with all its
/// retries.
const MAX_UNAVAILABLE_ITEMS: u32 = 20;

/// Translates missing and outdated texts, of one task if it is given. Returns all results, and the
/// reason if the run ended early. Fails if it cannot begin. Reasons are one line.
pub(crate) async fn run(
    client: Client,
    config: &TranslateConfig,
    task: Option<TaskId>,
) -> Result<(TranslateSummary, Result<(), String>), String> {
    let mut run = TranslateRun {
        client,
        engine: Engine::new(config)?,
        parallel: config.translation.parallel,
        progress: Progress::default(),
    };
    run.engine.probe().await?;
    run.progress.spinner = spinner();
    let outcome = tokio::select! {
        outcome = run.translate_all(first_page(config, task)) => outcome,
        Ok(()) = signal::ctrl_c() => {
            Err("interrupted: the rest is left for the next run".to_owned())
        }
    };
    let Progress { summary, spinner } = run.progress;
    spinner.iter().for_each(ProgressBar::finish_and_clear);
    Ok((summary, outcome))
}

/// Lists missing and outdated texts, of one task if it is given. Needs no engine.
pub(crate) async fn list_work(
    client: &Client,
    config: &TranslateConfig,
    task: Option<TaskId>,
) -> Result<Vec<TranslationWork>, String> {
    let request = first_page(config, task);
    let listed = client.list(request, |page| page.work).await;
    listed.map_err(|error| not_listed(&error))
}

fn first_page(config: &TranslateConfig, task: Option<TaskId>) -> ListTranslationWorkRequest {
    let languages = config.translation.languages.iter();
    ListTranslationWorkRequest {
        languages: languages.map(|it| it.as_str().to_owned()).collect(),
        task: task.map(|task| task.to_string()),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    }
}

/// The number of items by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslateSummary {
    pub written: u64,
    /// Skipped, because the language has been locked since the list was made.
    pub locked: u64,
    /// Left for the next run, because the source text has changed since.
    pub stale: u64,
    /// Skipped, because the task or step has been deleted since.
    pub not_found: u64,
    /// Not translated, or refused by the service.
    pub failed: u64,
}

impl fmt::Display for TranslateSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "written {}, skipped as locked {}, stale {}, not found {}, failed {}",
            self.written, self.locked, self.stale, self.not_found, self.failed
        )
    }
}

#[derive(Default)]
struct Progress {
    summary: TranslateSummary,
    /// A line that is updated, on a terminal. Elsewhere each page has a line.
    spinner: Option<ProgressBar>,
}

impl Progress {
    /// Counts an item that was not translated. `reason` has none of its texts, and is safe on a
    /// terminal.
    fn fail(&mut self, guid: &str, language: &str, reason: &str) {
        self.summary.failed += 1;
        let line = format!("failed {} {}: {reason}", sanitize(guid), sanitize(language));
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| print_error(&line)),
            None => print_error(&line),
        }
    }

    fn end_page(&self) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(self.summary.to_string()),
            None => print_error(&format!("so far: {}", self.summary)),
        }
    }
}

struct TranslateRun {
    client: Client,
    engine: Engine,
    /// The maximum number of items that are translated concurrently.
    parallel: usize,
    progress: Progress,
}

impl TranslateRun {
    /// Goes through the work list once. An item that is listed again is left for the next
    /// run.
    async fn translate_all(
        &mut self,
        mut request: ListTranslationWorkRequest,
    ) -> Result<(), String> {
        let mut seen = HashSet::new();
        let mut unavailable = 0;
        loop {
            let page = self.client.call(request.clone()).await;
            let page = page.map_err(|error| not_listed(&error))?;
            let mut work = page.work;
            work.retain(|item| seen.insert((item.guid.clone(), item.language.clone())));
            let translations = self.translate_items(&work, &mut unavailable).await;
            let size = AutomaticTranslation::encoded_len;
            for batch in chunks_within(&translations, MAX_BATCH_ITEMS, MAX_BATCH_BYTES, size) {
                self.write(batch).await?;
            }
            self.progress.end_page();
            if unavailable >= MAX_UNAVAILABLE_ITEMS {
                return Err(format!(
                    "the engine did not respond for {MAX_UNAVAILABLE_ITEMS} items in a row: the \
                     rest is left for the next run"
                ));
            }
            if page.next_page_token.is_empty() {
                return Ok(());
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Translates several items concurrently, until the engine was unavailable for too many in a
    /// row.
    async fn translate_items(
        &mut self,
        work: &[TranslationWork],
        unavailable: &mut u32,
    ) -> Vec<AutomaticTranslation> {
        let engine = &self.engine;
        let mut translations = Vec::with_capacity(work.len());
        let translated = stream::iter(work)
            .map(async |item| (item, work::translate(item, engine).await))
            .buffer_unordered(self.parallel);
        let mut translated = std::pin::pin!(translated);
        while let Some((item, outcome)) = translated.next().await {
            *unavailable = match &outcome {
                Err(EngineError::Unavailable { .. }) => *unavailable + 1,
                Ok(_) | Err(_) => 0,
            };
            match outcome {
                Ok(translation) => translations.push(translation),
                Err(error) => {
                    let reason = error.to_string();
                    self.progress.fail(&item.guid, &item.language, &reason);
                }
            }
            if *unavailable >= MAX_UNAVAILABLE_ITEMS {
                break;
            }
        }
        translations
    }

    /// Writes a batch. The service refuses a whole batch if one item is invalid. Then each item
    /// gets its own call. Writing a translation twice is harmless.
    async fn write(&mut self, batch: &[AutomaticTranslation]) -> Result<(), String> {
        let message = WriteTranslationsRequest {
            translations: batch.to_vec(),
        };
        let (answer, reason) = match self.client.call(message).await {
            Ok(answer) => (answer, "the server returned no result for it".to_owned()),
            Err(error) if is_content_refused(&error) && batch.len() > 1 => {
                for item in batch.chunks(1) {
                    Box::pin(self.write(item)).await?;
                }
                return Ok(());
            }
            Err(error) if error.caller_refused => {
                let reason = describe(&error);
                return Err(format!(
                    "the server refuses translations from this caller: {reason}"
                ));
            }
            Err(error) => {
                let reason = format!("the server did not write it: {}", describe(&error));
                (WriteTranslationsResponse::default(), reason)
            }
        };
        let mut results = answer.results();
        for item in batch {
            let summary = &mut self.progress.summary;
            match results.next() {
                Some(TranslationResult::Written) => summary.written += 1,
                Some(TranslationResult::SkippedLocked) => summary.locked += 1,
                Some(TranslationResult::Stale) => summary.stale += 1,
                Some(TranslationResult::NotFound) => summary.not_found += 1,
                Some(TranslationResult::Unspecified) | None => {
                    self.progress.fail(&item.guid, &item.language, &reason);
                }
            }
        }
        Ok(())
    }
}

fn not_listed(error: &CallError) -> String {
    format!("the server does not list the work: {}", describe(error))
}

/// An error on one line. The text of another service, such as a proxy, is left out, because it may
/// repeat the request.
fn describe(error: &CallError) -> String {
    match error.reason.as_str() {
        "" if !error.unreachable => error.code.to_owned(),
        _ => error.to_string().replace("\n  ", " "),
    }
}

/// Whether the content of the request was refused, rather than its caller or for lack of capacity.
fn is_content_refused(error: &CallError) -> bool {
    match error.code {
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" => true,
        "RESOURCE_EXHAUSTED" => !error.transient,
        _ => false,
    }
}
