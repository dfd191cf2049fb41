//! The loop: list, translate, write, page by page.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};
use prost::Message;
use tonic::Status;

use super::{
    Progress, RunError,
    engine::EngineError,
    service::{self, Service},
    summary::{Failure, Summary},
    translator::Translator,
    work::{self, Unfit},
};
use crate::{
    client,
    proto::v1::{AutomaticTranslation, TranslationWork},
};

/// Items of one write, as the service takes them.
const BATCH_ITEMS: usize = 100;
/// Bytes of one write, but for a single item that is larger.
const BATCH_BYTES: usize = 3 * 1024 * 1024;
/// So many items in a row without an answer of the engine end the run: it is
/// down, and each of them has waited for all its retries.
const SILENT_ITEMS: u32 = 20;

/// A run under way.
pub(super) struct Run<'a> {
    pub service: Service,
    pub translator: Translator,
    /// Items at once.
    pub parallel: usize,
    pub summary: &'a mut Summary,
    pub progress: &'a mut dyn Progress,
}

/// Why an item has no translation.
#[derive(Debug, thiserror::Error)]
enum Untranslated {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

impl Run<'_> {
    /// Goes through the work list once. An item that comes again is left for
    /// the next run.
    pub async fn finish(&mut self) -> Result<(), RunError> {
        let mut seen = HashSet::new();
        let mut silent = 0;
        let mut page_token = String::new();
        loop {
            let page = self
                .service
                .list(&page_token)
                .await
                .map_err(|status| RunError::List(service::describe(&status)))?;
            let fresh = page
                .work
                .into_iter()
                .filter(|item| seen.insert((item.guid.clone(), item.language.clone())));
            let translations = self.translate(fresh.collect(), &mut silent).await;
            for batch in batches(translations) {
                self.write(batch).await?;
            }
            self.progress.page(self.summary);
            if silent >= SILENT_ITEMS {
                return Err(RunError::EngineSilent(SILENT_ITEMS));
            }
            if page.next_page_token.is_empty() {
                return Ok(());
            }
            page_token = page.next_page_token;
        }
    }

    /// Translates items, several at once, until the engine has been silent for
    /// too many of them.
    async fn translate(
        &mut self,
        work: Vec<TranslationWork>,
        silent: &mut u32,
    ) -> Vec<AutomaticTranslation> {
        let Self {
            translator,
            parallel,
            summary,
            progress,
            ..
        } = self;
        let mut translations = Vec::with_capacity(work.len());
        let mut done = stream::iter(work)
            .map(|item| translate(translator, item))
            .buffer_unordered(*parallel);
        while let Some((item, outcome)) = done.next().await {
            *silent = match &outcome {
                Err(Untranslated::Engine(EngineError::Unavailable { .. })) => *silent + 1,
                Ok(_) | Err(_) => 0,
            };
            match outcome {
                Ok(translation) => translations.push(translation),
                Err(error) => {
                    summary.failed += 1;
                    progress.failure(&Failure {
                        guid: item.guid,
                        language: item.language,
                        reason: error.to_string(),
                    });
                }
            }
            if *silent >= SILENT_ITEMS {
                break;
            }
        }
        translations
    }

    /// Writes a batch. The service refuses a batch for what one item holds, so
    /// then each has its own call.
    async fn write(&mut self, batch: Vec<AutomaticTranslation>) -> Result<(), RunError> {
        match self.service.write(&batch).await {
            Err(status) if service::blames_content(&status) && batch.len() > 1 => {
                for item in batch {
                    let alone = [item];
                    let answer = self.service.write(&alone).await;
                    self.settle(&alone, answer)?;
                }
                Ok(())
            }
            answer => self.settle(&batch, answer),
        }
    }

    fn settle(
        &mut self,
        batch: &[AutomaticTranslation],
        answer: Result<Vec<crate::proto::v1::TranslationResult>, Status>,
    ) -> Result<(), RunError> {
        let results = match answer {
            Ok(results) => results,
            Err(status) if client::shuts_out(&status) => {
                return Err(RunError::Write(service::describe(&status)));
            }
            Err(status) => {
                let reason = format!("the server did not take it: {}", service::describe(&status));
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
                self.fail(item, "the server did not say what became of it");
            }
        }
        Ok(())
    }

    fn fail(&mut self, item: &AutomaticTranslation, reason: &str) {
        self.summary.failed += 1;
        self.progress.failure(&Failure {
            guid: item.guid.clone(),
            language: item.language.clone(),
            reason: reason.to_owned(),
        });
    }
}

async fn translate(
    translator: &Translator,
    item: TranslationWork,
) -> (TranslationWork, Result<AutomaticTranslation, Untranslated>) {
    let texts = item.source.as_ref().map(work::texts).unwrap_or_default();
    let outcome = match translator.translate(&texts, &item.language).await {
        Ok(dictionary) => work::translation(&item, &dictionary).map_err(Untranslated::from),
        Err(error) => Err(error.into()),
    };
    (item, outcome)
}

/// Translations in batches that the service takes.
fn batches(translations: Vec<AutomaticTranslation>) -> Vec<Vec<AutomaticTranslation>> {
    let mut batches = Vec::new();
    let mut batch = Vec::new();
    let mut bytes = 0;
    for translation in translations {
        let len = translation.encoded_len();
        if !batch.is_empty() && (batch.len() >= BATCH_ITEMS || bytes + len > BATCH_BYTES) {
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
        assert_eq!(sizes(vec![item(1), item(BATCH_BYTES), item(1)]), [1, 1, 1]);
    }
}
