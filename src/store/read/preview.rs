//! Previews. The guide and the bodies of a page are of one snapshot.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, QueryFilter, QuerySelect,
    sea_query::{Expr, ExprTrait},
};

use super::{GuideSource, MaxBytes};
use crate::{
    analysis_threads::analyze_by_weight,
    call_context::Permit,
    domain::{
        Result,
        analysis::{
            Fingerprint, KnownVariables, StopSignal,
            preview::{Preview, PreviewOptions},
        },
        ids::StepId,
        page::PageSize,
        size::stored_count,
        text::Body,
        translation::Language,
        violation::Path,
    },
    store::{
        Account,
        account::{Scope, Snapshot},
        entity::{step, step_translation},
        error::StoreError,
        rows::valid,
    },
};

#[derive(Debug)]
pub struct PreviewCall {
    pub source: GuideSource,
    /// The digest of the document, if the guide is one.
    pub document: Option<[u8; 32]>,
    pub known: KnownVariables,
    pub options: PreviewOptions,
    /// Whether bodies are shown.
    pub bodies: bool,
    /// Where the page starts, and the fingerprint that its token has; `None` for the
    /// first page.
    pub after: Option<(usize, Fingerprint)>,
    pub size: PageSize,
}

pub struct PreviewPage {
    /// The preview of the whole guide.
    pub preview: Preview,
    pub fingerprint: Fingerprint,
    /// The index of the first listed step of the page.
    pub start: usize,
    /// How many listed steps the page has.
    pub count: usize,
    pub with_bodies: bool,
    /// The stored bodies of the page, by step and language; `None` for the source.
    pub bodies: BTreeMap<(StepId, Option<Language>), Body>,
    /// Reserves the guide's memory.
    _memory: Permit,
}

impl Account {
    /// Previews a guide. If the page has large bodies, all of it is read again under a permit.
    pub async fn preview_task(&self, call: PreviewCall) -> Result<PreviewPage> {
        self.read_snapshot(|snapshot, max_bytes| self.read_preview(&call, snapshot, max_bytes))
            .await
    }

    async fn read_preview(
        &self,
        call: &PreviewCall,
        snapshot: Snapshot,
        max_bytes: MaxBytes,
    ) -> Result<PreviewPage, StoreError> {
        let field = match &call.source {
            GuideSource::Stored(_) => "guid",
            GuideSource::Document(_) => "document",
        };
        let read = self
            .read_guide(snapshot.scope(), &call.source, None, &call.known)
            .await?;
        let weight = read.weight;
        let (document, options) = (call.document, call.options.clone());
        let seen = call.after.map(|(_, seen)| seen);
        let preview = move |stop: StopSignal<'_>| {
            let (guide, _, memory) = read.finish(stop)?;
            let fingerprint = Fingerprint::new(&guide, document);
            let preview = fingerprint
                .check_page(seen)
                .and_then(|()| Preview::new(guide, options, &Path::root(field), stop));
            let preview = preview.transpose()?;
            Some(preview.map(|preview| (preview, fingerprint, memory)))
        };
        // From here on, only the read of bodies needs the transaction. A call that waits for a
        // thread must not hold one.
        let snapshot = Some(snapshot).filter(|_| call.bodies);
        let evaluated = match &snapshot {
            Some(_) => analyze_by_weight(weight, preview).await?,
            None => {
                let threads = self.analysis_threads();
                threads.run_once(weight, preview).await?
            }
        };
        let (preview, fingerprint, memory) = evaluated?;
        let start = call.after.map_or(0, |(start, _)| start);
        let size = call.size.get() as usize;
        let count = preview.page(start, size, call.bodies).len();
        let mut page = PreviewPage {
            preview,
            fingerprint,
            start,
            count,
            with_bodies: call.bodies,
            bodies: BTreeMap::new(),
            _memory: memory,
        };
        if let Some(snapshot) = &snapshot {
            page.bodies = read_bodies(snapshot.scope(), &page, max_bytes).await?;
        }
        Ok(page)
    }
}

/// Reads the bodies of a page: for each stored step the one in the chosen language. Fails with
/// [`StoreError::NeedsLargeReadPermit`] if they are large and only small ones may be read.
async fn read_bodies(
    scope: Scope<'_, impl ConnectionTrait>,
    page: &PreviewPage,
    max_bytes: MaxBytes,
) -> Result<BTreeMap<(StepId, Option<Language>), Body>, StoreError> {
    let (mut sources, mut translations) = (Vec::new(), Vec::new());
    let mut bytes = 0_usize;
    let listed = page.preview.steps.iter().skip(page.start).take(page.count);
    for step in listed.map(|listed| &page.preview.guide[listed.position]) {
        let shown = page.preview.texts.body(step);
        let Some(shown) = shown.filter(|_| step.origin.is_none()) else {
            continue;
        };
        let guid = step.step.guid.0;
        bytes = bytes.saturating_add(step.body_bytes);
        match shown.language {
            None => sources.push(guid),
            Some(language) => translations.push((guid, language.as_str().to_owned())),
        }
    }
    max_bytes.check(stored_count(bytes))?;
    let mut bodies = BTreeMap::new();
    let body = |body: Option<String>| valid(Body::parse(body.unwrap_or_default()), "body");
    if !sources.is_empty() {
        use step::Column;
        let rows: Vec<(StepId, Option<String>)> = scope
            .find::<step::Entity>()
            .select_only()
            .columns([Column::Guid, Column::Body])
            .filter(Column::Guid.is_in(sources))
            .into_tuple()
            .all(scope.db)
            .await?;
        for (step, text) in rows {
            bodies.insert((step, None), body(text)?);
        }
    }
    if !translations.is_empty() {
        use step_translation::Column;
        let key = [Column::Step, Column::Language].map(Expr::col);
        let rows: Vec<(StepId, String, Option<String>)> = scope
            .find::<step_translation::Entity>()
            .select_only()
            .columns([Column::Step, Column::Language, Column::Body])
            .filter(Expr::tuple(key).in_tuples(translations))
            .into_tuple()
            .all(scope.db)
            .await?;
        for (step, language, text) in rows {
            bodies.insert((step, Some(Language::stored(language))), body(text)?);
        }
    }
    Ok(bodies)
}
