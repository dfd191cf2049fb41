//! Previews: one transaction reads the guide and the bodies of the page that is shown.

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::ConnectionTrait;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::{
    GuideSource,
    off_runtime::{MAX_LIGHT_WEIGHT, analyse_by_weight},
    run_to_end,
};
use crate::{
    call_context::WorkMemory,
    domain::{
        Result,
        analysis::{
            Fingerprint, KnownVariables, StopSignal,
            preview::{Preview, PreviewOptions},
        },
        ids::StepId,
        page::PageSize,
        text::Body,
        translation::Language,
        violation::Path,
    },
    store::{
        Account, backend,
        connection::TransactionMode,
        error::StoreError,
        json_columns,
        row_reader::RowReader,
        values::{Values, list},
    },
};

/// If the bodies of a page may have more bytes, they are read under a permit.
const LARGE_PAGE_BYTES: usize = 1024 * 1024;

/// The input of a preview.
#[derive(Debug)]
pub struct PreviewCall {
    /// The guide.
    pub source: Arc<GuideSource>,
    /// The digest of the document, if the guide is one.
    pub document: Option<[u8; 32]>,
    /// Variables that the caller declares.
    pub known: KnownVariables,
    /// What is shown.
    pub options: PreviewOptions,
    /// Whether bodies are shown.
    pub bodies: bool,
    /// Where the page starts, and the fingerprint that its token has; `None` for the
    /// first page.
    pub after: Option<(usize, Fingerprint)>,
    /// How many steps the page has at most.
    pub size: PageSize,
}

/// A page of a preview.
pub struct PreviewPage {
    /// The preview of the whole guide.
    pub preview: Preview,
    /// The fingerprint of the guide.
    pub fingerprint: Fingerprint,
    /// The index of the first listed step of the page.
    pub start: usize,
    /// How many listed steps the page has.
    pub count: usize,
    /// Whether bodies are shown.
    pub with_bodies: bool,
    /// The stored bodies of the page, by step and language; `None` for the source.
    pub bodies: BTreeMap<(StepId, Option<Language>), Body>,
    /// What the guide takes.
    _memory: WorkMemory,
}

impl Account {
    /// Previews a guide, which is read from the primary. If the page has large bodies, all of it is
    /// read again under a permit.
    pub async fn preview_task(&self, call: PreviewCall) -> Result<PreviewPage> {
        let account = self.clone();
        run_to_end(async move {
            let (mut turn, mut permit) = (None, None);
            loop {
                // When this returns, the transaction has ended, so that the waits below hold no
                // connection: a call with a turn or a permit may need that one to go on.
                match account
                    .read_preview(&call, turn.as_ref(), permit.as_ref())
                    .await
                {
                    Ok(Some(page)) => return Ok(page),
                    Ok(None) => {
                        permit = None;
                        turn = account.analysis_threads().turn().await;
                    }
                    Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                        permit = Some(account.large_read_permit(bytes).await?);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        })
        .await
    }

    /// With bodies, a guide is previewed in the transaction that reads them. If it is not light
    /// and the analyses leave no turn for it, this returns `None`: it is to be read again with one.
    async fn read_preview(
        &self,
        call: &PreviewCall,
        turn: Option<&OwnedSemaphorePermit>,
        permit: Option<&OwnedSemaphorePermit>,
    ) -> Result<Option<PreviewPage>, StoreError> {
        let PreviewCall {
            source,
            document,
            known,
            options,
            bodies,
            after,
            size,
        } = call;
        // Ends on return, so that no wait for a permit holds the connection.
        let db = self.reader().begin(TransactionMode::Snapshot).await?;
        let field = match source.as_ref() {
            GuideSource::Stored(_) => "guid",
            GuideSource::Document(_) => "document",
        };
        let read = self.read_guide(&db, source, None, known).await?;
        let weight = read.weight();
        let needs_turn = *bodies && weight > MAX_LIGHT_WEIGHT && turn.is_none();
        let own_turn = match needs_turn {
            true => self.analysis_threads().try_turn(),
            false => None,
        };
        if needs_turn && own_turn.is_none() {
            return Ok(None);
        }
        let (document, options, seen) = (*document, options.clone(), after.map(|(_, seen)| seen));
        let preview = move |stop: StopSignal<'_>| {
            let (guide, _, memory) = read.finish(stop)?;
            let fingerprint = Fingerprint::of(&guide, document);
            let preview = fingerprint
                .check_page(seen)
                .and_then(|()| Preview::new(guide, options, &Path::root(field), stop));
            let preview = preview.transpose()?;
            Some(preview.map(|preview| (preview, fingerprint, memory)))
        };
        // Bodies are read in the same transaction. Without them it need not wait for the preview.
        let db = Some(db).filter(|_| *bodies);
        let evaluated: Result<_> = match &db {
            Some(_) => analyse_by_weight(weight, preview).await?,
            None => self.analysis_threads().run_once(weight, preview).await?,
        };
        let (preview, fingerprint, memory) = evaluated?;
        let start = after.map_or(0, |(start, _)| start);
        let count = preview.page(start, size.get() as usize, *bodies).len();
        let mut page = PreviewPage {
            preview,
            fingerprint,
            start,
            count,
            with_bodies: *bodies,
            bodies: BTreeMap::new(),
            _memory: memory,
        };
        if let Some(db) = &db {
            self.read_bodies(db, &mut page, permit).await?;
        }
        Ok(Some(page))
    }

    /// Reads the bodies of a page: for each stored step the one in the chosen language. Fails
    /// with [`StoreError::NeedsLargeReadPermit`] if they are large and there is no permit.
    async fn read_bodies(
        &self,
        db: &impl ConnectionTrait,
        page: &mut PreviewPage,
        permit: Option<&OwnedSemaphorePermit>,
    ) -> Result<(), StoreError> {
        let mut sources: Vec<Uuid> = Vec::new();
        let mut translations: Vec<(Uuid, String)> = Vec::new();
        let mut bytes = 0_usize;
        for listed in page.preview.steps.iter().skip(page.start).take(page.count) {
            let Some(step) = page.preview.guide.step(listed.position) else {
                continue;
            };
            let shown = page.preview.texts.body(step);
            let Some(shown) = shown.filter(|_| step.source.origin.is_none()) else {
                continue;
            };
            let guid = step.source.step.guid.0;
            bytes = bytes.saturating_add(step.source.body_bytes);
            match shown.language {
                None => sources.push(guid),
                Some(language) => translations.push((guid, language.as_str().to_owned())),
            }
        }
        let mut values = Values::new();
        let Some(sql) = bodies_sql(sources, translations, &mut values) else {
            return Ok(());
        };
        if bytes > LARGE_PAGE_BYTES && permit.is_none() {
            return Err(StoreError::NeedsLargeReadPermit(bytes));
        }
        let statement = values.statement(sql, backend(db), &self.id);
        for row in db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            let step = StepId(row.take()?);
            let language: Option<String> = row.take()?;
            let body: Option<String> = row.take()?;
            let body = json_columns::valid(Body::parse(body.unwrap_or_default()), "body")?;
            let language = language.map(Language::stored);
            page.bodies.insert((step, language), body);
        }
        Ok(())
    }
}

/// SQL that reads bodies of sources and translations; `None` without any.
pub(super) fn bodies_sql(
    sources: Vec<Uuid>,
    translations: Vec<(Uuid, String)>,
    values: &mut Values,
) -> Option<String> {
    let mut parts = Vec::new();
    if !sources.is_empty() {
        let sources = values.bind_all(sources);
        parts.push(format!(
            "SELECT s.guid, CAST(NULL AS text) AS language, s.body FROM steps s \
             WHERE s.account_id = $1 AND s.guid IN ({sources})"
        ));
    }
    if !translations.is_empty() {
        let pairs = translations.into_iter();
        let pairs =
            list(pairs.map(|(step, language)| values.bind_row([step.into(), language.into()])));
        parts.push(format!(
            "SELECT step, language, body FROM step_translations \
             WHERE account_id = $1 AND (step, language) IN (VALUES {pairs})"
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" UNION ALL "))
}
