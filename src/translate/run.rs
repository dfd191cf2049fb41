//! A run: lists work, translates it and writes it back, page by page.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};
use prost::Message;
use tonic::Status;

use super::{
    TranslateError, TranslateFailure, TranslateProgress, TranslateSummary,
    engine::EngineError,
    service::{self, TranslationClient},
    translator::Translator,
    work::{self, InvalidTranslation},
};
use crate::{
    client,
    proto::v1::{AutomaticTranslation, TranslationResult, TranslationWork},
};

/// The most items in a write that the service accepts.
const MAX_BATCH_ITEMS: usize = 100;
/// The most bytes in a write, except for a single item that is larger.
const MAX_BATCH_BYTES: usize = 3 * 1024 * 1024;
/// The run ends when the engine was unavailable for this many items in a row, each with
/// all its retries.
const MAX_UNAVAILABLE_ITEMS: u32 = 20;

/// A run in progress.
pub(super) struct TranslateRun<'a> {
    pub client: TranslationClient,
    pub translator: Translator,
    /// The most items that are translated at once.
    pub parallel: usize,
    pub summary: &'a mut TranslateSummary,
    pub progress: &'a mut dyn TranslateProgress,
}

/// Why an item was not translated.
#[derive(Debug, thiserror::Error)]
enum ItemError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Invalid(#[from] InvalidTranslation),
}

impl TranslateRun<'_> {
    /// Goes through the work list once. An item that is listed again is left for the next
    /// run.
    pub async fn translate_all(&mut self) -> Result<(), TranslateError> {
        let mut seen = HashSet::new();
        let mut unavailable = 0;
        let mut page_token = String::new();
        loop {
            let page = self
                .client
                .list(&page_token)
                .await
                .map_err(|status| TranslateError::List(service::describe(&status)))?;
            let unseen = page
                .work
                .into_iter()
                .filter(|item| seen.insert((item.guid.clone(), item.language.clone())));
            let translations = self
                .translate_items(unseen.collect(), &mut unavailable)
                .await;
            for batch in batches(translations) {
                self.write(batch).await?;
            }
            self.progress.page_done(self.summary);
            if unavailable >= MAX_UNAVAILABLE_ITEMS {
                return Err(TranslateError::EngineUnavailable(MAX_UNAVAILABLE_ITEMS));
            }
            if page.next_page_token.is_empty() {
                return Ok(());
            }
            page_token = page.next_page_token;
        }
    }

    /// Translates items, several at once, until the engine has been unavailable for too
    /// many in a row.
    async fn translate_items(
        &mut self,
        work: Vec<TranslationWork>,
        unavailable: &mut u32,
    ) -> Vec<AutomaticTranslation> {
        let Self {
            translator,
            parallel,
            summary,
            progress,
            ..
        } = self;
        let mut translations = Vec::with_capacity(work.len());
        let mut outcomes = stream::iter(work)
            .map(|item| translate_item(translator, item))
            .buffer_unordered(*parallel);
        while let Some((item, outcome)) = outcomes.next().await {
            *unavailable = match &outcome {
                Err(ItemError::Engine(EngineError::Unavailable { .. })) => *unavailable + 1,
                Ok(_) | Err(_) => 0,
            };
            match outcome {
                Ok(translation) => translations.push(translation),
                Err(error) => {
                    summary.failed += 1;
                    let (guid, language) = (&item.guid, &item.language);
                    let failure = TranslateFailure::new(guid, language, error.to_string());
                    progress.item_failed(&failure);
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
        match self.client.write(&batch).await {
            Err(status) if service::is_content_refused(&status) && batch.len() > 1 => {
                for item in batch {
                    let alone = [item];
                    let answer = self.client.write(&alone).await;
                    self.count_results(&alone, answer)?;
                }
                Ok(())
            }
            answer => self.count_results(&batch, answer),
        }
    }

    fn count_results(
        &mut self,
        batch: &[AutomaticTranslation],
        answer: Result<Vec<TranslationResult>, Status>,
    ) -> Result<(), TranslateError> {
        let results = match answer {
            Ok(results) => results,
            Err(status) if client::is_caller_refused(&status) => {
                return Err(TranslateError::Write(service::describe(&status)));
            }
            Err(status) => {
                let reason = format!(
                    "the server did not write it: {}",
                    service::describe(&status)
                );
                batch.iter().for_each(|item| self.fail(item, &reason));
                return Ok(());
            }
        };
        let mut results = results.into_iter();
        for item in batch {
            let counted = results
                .next()
                .is_some_and(|result| self.summary.count(result));
            if !counted {
                self.fail(item, "the server returned no result for it");
            }
        }
        Ok(())
    }

    fn fail(&mut self, item: &AutomaticTranslation, reason: &str) {
        self.summary.failed += 1;
        let failure = TranslateFailure::new(&item.guid, &item.language, reason.to_owned());
        self.progress.item_failed(&failure);
    }
}

async fn translate_item(
    translator: &Translator,
    item: TranslationWork,
) -> (TranslationWork, Result<AutomaticTranslation, ItemError>) {
    let texts = item.source.as_ref().map(work::texts).unwrap_or_default();
    let outcome = match translator.translate(&texts, &item.language).await {
        Ok(dictionary) => work::translation(&item, &dictionary).map_err(ItemError::from),
        Err(error) => Err(error.into()),
    };
    (item, outcome)
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
