//! Previews. The guide and the bodies of a page are of one snapshot.

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::{
    ColumnTrait, ConnectionTrait, QueryFilter, QuerySelect,
    sea_query::{Expr, ExprTrait},
};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::GuideSource;
use crate::{
    analysis_threads::{MAX_LIGHT_WEIGHT, analyse_by_weight},
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
        Account,
        account::Scope,
        entity::{step, step_translation},
        error::StoreError,
        rows::valid,
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
    /// Reserves the guide's memory.
    _memory: WorkMemory,
}

impl Account {
    /// Previews a guide. If the page has large bodies, all of it is read again under a permit.
    pub async fn preview_task(&self, call: PreviewCall) -> Result<PreviewPage> {
        let account = self.clone();
        Self::run_to_end(async move {
            let (mut turn, mut permit) = (None, None);
            loop {
                // This ends its transaction, so the waits below hold no connection. A call with a turn
                // or a permit may need that connection to go on.
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

    /// With bodies, a guide is previewed in the transaction that reads them. If it is not light and no
    /// turn is free, this returns `None`: the caller waits for a turn and reads it again.
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
        let snapshot = self.begin_snapshot().await?;
        let field = match source.as_ref() {
            GuideSource::Stored(_) => "guid",
            GuideSource::Document(_) => "document",
        };
        let read = self
            .read_guide(snapshot.scope(), source, None, known)
            .await?;
        let weight = read.weight();
        let needs_turn = *bodies && weight > MAX_LIGHT_WEIGHT && turn.is_none();
        let own_turn = if needs_turn {
            self.analysis_threads().try_turn()
        } else {
            None
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
        // Without bodies, the transaction ends before the preview.
        let snapshot = Some(snapshot).filter(|_| *bodies);
        let evaluated: Result<_> = match &snapshot {
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
        if let Some(snapshot) = &snapshot {
            read_bodies(snapshot.scope(), &mut page, permit).await?;
        }
        Ok(Some(page))
    }
}

/// Reads the bodies of a page: for each stored step the one in the chosen language. Fails with
/// [`StoreError::NeedsLargeReadPermit`] if they are large and there is no permit.
async fn read_bodies(
    scope: Scope<'_, impl ConnectionTrait>,
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
    if bytes > LARGE_PAGE_BYTES && permit.is_none() {
        return Err(StoreError::NeedsLargeReadPermit(bytes));
    }
    let read = |body: Option<String>| valid(Body::parse(body.unwrap_or_default()), "body");
    for (step, body) in source_bodies(scope, sources).await? {
        page.bodies.insert((StepId(step), None), read(body)?);
    }
    for (step, language, body) in translated_bodies(scope, translations).await? {
        let key = (StepId(step), Some(Language::stored(language)));
        page.bodies.insert(key, read(body)?);
    }
    Ok(())
}

async fn source_bodies(
    scope: Scope<'_, impl ConnectionTrait>,
    steps: Vec<Uuid>,
) -> Result<Vec<(Uuid, Option<String>)>, StoreError> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let rows = scope
        .find::<step::Entity>()
        .select_only()
        .columns([step::Column::Guid, step::Column::Body])
        .filter(step::Column::Guid.is_in(steps))
        .into_tuple()
        .all(scope.db);
    Ok(rows.await?)
}

/// The bodies of translations, each with its step and language.
async fn translated_bodies(
    scope: Scope<'_, impl ConnectionTrait>,
    translations: Vec<(Uuid, String)>,
) -> Result<Vec<(Uuid, String, Option<String>)>, StoreError> {
    use step_translation::Column;
    if translations.is_empty() {
        return Ok(Vec::new());
    }
    let key = [Column::Step, Column::Language].map(Expr::col);
    let rows = scope
        .find::<step_translation::Entity>()
        .select_only()
        .columns([Column::Step, Column::Language, Column::Body])
        .filter(Expr::tuple(key).in_tuples(translations))
        .into_tuple()
        .all(scope.db);
    Ok(rows.await?)
}
