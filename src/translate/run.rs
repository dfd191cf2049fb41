//! A run: lists work, translates it and writes it back, page by page.

use std::{collections::HashSet, error::Error};

use futures_util::{StreamExt, stream};
use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    TranslateError,
    engine::EngineError,
    progress::TranslateProgress,
    translator::Translator,
    work::{self, InvalidTranslation},
};
use crate::{
    client::{self, Client, ConnectError},
    config::TranslateConfig,
    domain::{caller::Scope, ids::TaskId},
    proto::v1::{
        AutomaticTranslation, ListTranslationWorkRequest, TranslationWork,
        WriteTranslationsRequest, WriteTranslationsResponse,
    },
    terminal::sanitize,
};

/// Small pages, so that little work is lost when a run is interrupted.
const PAGE_SIZE: i32 = 25;
/// The most items in a write that the service accepts.
const MAX_BATCH_ITEMS: usize = 100;
/// The most bytes in a write, except for a single item that is larger.
const MAX_BATCH_BYTES: usize = 3 * 1024 * 1024;
/// The run ends when the engine was unavailable for this many items in a row, each with
/// all its retries.
const MAX_UNAVAILABLE_ITEMS: u32 = 20;

/// The pages of a work list.
pub(super) struct WorkList {
    client: Client,
    /// The next page; `None` after the last one.
    next: Option<ListTranslationWorkRequest>,
}

impl WorkList {
    /// Connects with the first call. With a task, only its work is listed.
    pub fn new(config: &TranslateConfig, task: Option<TaskId>) -> Result<Self, ConnectError> {
        let languages = config.translation.languages.iter();
        Ok(Self {
            client: Client::new(&config.connection, &[Scope::Translate])?,
            next: Some(ListTranslationWorkRequest {
                languages: languages.map(|it| it.as_str().to_owned()).collect(),
                task: task.map(|task| task.to_string()),
                page_size: PAGE_SIZE,
                page_token: String::new(),
            }),
        })
    }

    pub async fn next_page(&mut self) -> Result<Option<Vec<TranslationWork>>, TranslateError> {
        let Some(request) = self.next.take() else {
            return Ok(None);
        };
        let page = self.client.call_patiently(request.clone()).await;
        let page = page.map_err(|status| TranslateError::List(describe(&status)))?;
        if !page.next_page_token.is_empty() {
            self.next = Some(ListTranslationWorkRequest {
                page_token: page.next_page_token,
                ..request
            });
        }
        Ok(Some(page.work))
    }
}

pub(super) struct TranslateRun {
    pub list: WorkList,
    pub translator: Translator,
    /// The most items that are translated at once.
    pub parallel: usize,
    pub progress: TranslateProgress,
}

/// Why an item was not translated.
#[derive(Debug, thiserror::Error)]
enum ItemError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Invalid(#[from] InvalidTranslation),
}

impl TranslateRun {
    /// Goes through the work list once. An item that is listed again is left for the next
    /// run.
    pub async fn translate_all(&mut self) -> Result<(), TranslateError> {
        let mut seen = HashSet::new();
        let mut unavailable = 0;
        while let Some(mut work) = self.list.next_page().await? {
            work.retain(|item| seen.insert((item.guid.clone(), item.language.clone())));
            let translations = self.translate_items(work, &mut unavailable).await;
            for batch in batches(translations) {
                self.write(batch).await?;
            }
            self.progress.end_page();
            if unavailable >= MAX_UNAVAILABLE_ITEMS {
                return Err(TranslateError::EngineUnavailable(MAX_UNAVAILABLE_ITEMS));
            }
        }
        Ok(())
    }

    /// Translates items, several at once, until the engine has been unavailable for too
    /// many in a row.
    async fn translate_items(
        &mut self,
        work: Vec<TranslationWork>,
        unavailable: &mut u32,
    ) -> Vec<AutomaticTranslation> {
        let translator = &self.translator;
        let mut translations = Vec::with_capacity(work.len());
        let mut outcomes = stream::iter(work)
            .map(async |item| {
                let translated = translate_item(translator, &item).await;
                (item, translated)
            })
            .buffer_unordered(self.parallel);
        while let Some((item, outcome)) = outcomes.next().await {
            *unavailable = match &outcome {
                Err(ItemError::Engine(EngineError::Unavailable { .. })) => *unavailable + 1,
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

    /// Writes a batch. The service refuses a whole batch for the content of one item, so
    /// then each item gets its own call.
    async fn write(&mut self, batch: Vec<AutomaticTranslation>) -> Result<(), TranslateError> {
        match self.send(&batch).await {
            Err(status) if is_content_refused(&status) && batch.len() > 1 => {
                for item in batch {
                    let alone = [item];
                    let answer = self.send(&alone).await;
                    self.count(&alone, answer)?;
                }
                Ok(())
            }
            answer => self.count(&batch, answer),
        }
    }

    /// Writing a translation twice is harmless.
    async fn send(
        &self,
        batch: &[AutomaticTranslation],
    ) -> Result<WriteTranslationsResponse, Status> {
        let message = WriteTranslationsRequest {
            translations: batch.to_vec(),
        };
        self.list.client.call_patiently(message).await
    }

    fn count(
        &mut self,
        batch: &[AutomaticTranslation],
        answer: Result<WriteTranslationsResponse, Status>,
    ) -> Result<(), TranslateError> {
        let (answer, reason) = match answer {
            Ok(answer) => (answer, "the server returned no result for it".to_owned()),
            Err(status) if client::is_caller_refused(&status) => {
                return Err(TranslateError::Write(describe(&status)));
            }
            Err(status) => {
                let reason = format!("the server did not write it: {}", describe(&status));
                (WriteTranslationsResponse::default(), reason)
            }
        };
        let mut results = answer.results();
        for item in batch {
            let result = results.next();
            if !result.is_some_and(|result| self.progress.count(result)) {
                self.progress.fail(&item.guid, &item.language, &reason);
            }
        }
        Ok(())
    }
}

async fn translate_item(
    translator: &Translator,
    item: &TranslationWork,
) -> Result<AutomaticTranslation, ItemError> {
    let texts = item.source.as_ref().map(work::texts).unwrap_or_default();
    let dictionary = translator.translate(&texts, &item.language).await?;
    Ok(work::translation(item, &dictionary)?)
}

/// Splits translations into batches that the service accepts.
fn batches(translations: Vec<AutomaticTranslation>) -> Vec<Vec<AutomaticTranslation>> {
    let mut batches = Vec::new();
    let mut batch = Vec::new();
    let mut bytes = 0;
    for translation in translations {
        let len = translation.encoded_len();
        if !batch.is_empty() && (batch.len() >= MAX_BATCH_ITEMS || bytes + len > MAX_BATCH_BYTES) {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += len;
        batch.push(translation);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// A status on one line with its details, without any text that was sent. It is safe on a
/// terminal.
fn describe(status: &Status) -> String {
    let details = status.get_error_details();
    let info = details.error_info();
    let reason = info.map(|info| info.reason.clone());
    let scope = info.and_then(|info| info.metadata.get("scope"));
    let scope = scope.map(|scope| format!("use a token that has the scope `{scope}`"));
    let field = details.bad_request();
    let field = field.and_then(|bad| bad.field_violations.first());
    let field = field.map(|violation| format!("at {}", violation.field));
    let cause = status
        .source()
        .map(|error| client::root_cause(error).to_string());
    let code = Some(format!("{:?}", status.code()));
    let parts = [code, reason, field, cause, scope].into_iter().flatten();
    sanitize(&parts.collect::<Vec<_>>().join(", "))
}

/// Whether the content of the request was refused, not its caller, nor for want of capacity.
fn is_content_refused(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => true,
        Code::ResourceExhausted => !client::is_transient(status),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_count_and_size() {
        let item = |bytes: usize| AutomaticTranslation {
            body: Some("x".repeat(bytes)),
            ..AutomaticTranslation::default()
        };
        let sizes = |items: Vec<AutomaticTranslation>| {
            let sizes = batches(items).into_iter().map(|batch| batch.len());
            sizes.collect::<Vec<_>>()
        };
        assert!(batches(Vec::new()).is_empty());
        assert_eq!(sizes(vec![item(1); 101]), [100, 1]);
        assert_eq!(sizes(vec![item(1_000_000); 4]), [3, 1]);
        assert_eq!(
            sizes(vec![item(1), item(MAX_BATCH_BYTES), item(1)]),
            [1, 1, 1]
        );
    }
}
