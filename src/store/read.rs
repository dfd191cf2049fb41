//! Reads. Each sees one state of the database, because it is a single statement or runs in a
//! [`Snapshot`].
//!
//! Without a permit, statements read only small rows. Where rows may be large, their sizes are read
//! first.

mod change_feed;
pub mod deleted_steps;
mod guide;
mod index_work;
mod name_users;
mod outside_uses;
mod preview;
pub mod references;
pub mod revisions;
mod roles;
mod step_row;
pub mod steps;
pub mod task_tree;
pub mod tasks;
mod translation_work;
mod validation;

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, FromQueryResult, QueryFilter,
    QuerySelect, QueryTrait, Select, sea_query::Expr,
};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::{
    account::{Account, Scope, Snapshot},
    error::StoreError,
};
use crate::{
    analysis_threads::run_by_weight,
    call_context::CallContext,
    domain::{
        Result,
        page::{PAGE_BYTES, PageSize},
        size::stored_count,
    },
};

pub use change_feed::has_new_changes;
pub use guide::GuideSource;
pub use preview::{PreviewCall, PreviewPage};
pub use validation::{FindingsCall, FindingsPage, ValidationCall, ValidationPage};

/// Rows with more bytes in total are large, and are read under a permit.
pub const LARGE_BYTES: i64 = 1024 * 1024;

/// How many bytes of rows a read may read.
#[derive(Clone, Copy, Debug)]
pub struct MaxBytes(i64);

impl MaxBytes {
    /// For a read without a permit.
    pub const SMALL: Self = Self(LARGE_BYTES);

    /// For a read with a permit for this many bytes.
    pub fn permitted(bytes: i64) -> Self {
        Self(Ord::max(bytes, LARGE_BYTES))
    }

    /// Fails with [`StoreError::NeedsLargeReadPermit`] if rows have more bytes.
    pub fn check(self, bytes: i64) -> Result<(), StoreError> {
        let is_permitted = bytes <= self.0;
        let bytes = usize::try_from(bytes).unwrap_or_default();
        CallContext::note_size(bytes);
        if is_permitted {
            return Ok(());
        }
        Err(StoreError::NeedsLargeReadPermit(bytes))
    }
}

/// Reads the selected row if it has at most `max_bytes`. Otherwise reads only its size, and asks for a
/// permit with [`StoreError::NeedsLargeReadPermit`].
async fn find_within<E: EntityTrait, R: FromQueryResult + Send + Sync>(
    scope: Scope<'_, impl ConnectionTrait>,
    row: Select<E>,
    bytes: Expr,
    max_bytes: MaxBytes,
) -> Result<Option<R>, StoreError> {
    let fitting = row.clone().filter(bytes.clone().lte(max_bytes.0));
    if let Some(row) = fitting.into_model().all(scope.db).await?.pop() {
        return Ok(Some(row));
    }
    let row = row.select_only().expr(bytes).into_tuple();
    match row.all(scope.db).await?.pop() {
        None => Ok(None),
        Some(bytes) => {
            max_bytes.check(bytes)?;
            // The row was not locked, and has become smaller since.
            Err(StoreError::Conflict)
        }
    }
}

/// The maximum number of ids in one statement.
pub const MAX_IDS_PER_STATEMENT: usize = 1_000;

/// The maximum number of tasks whose steps one statement reads. An undecoded row takes several
/// kilobytes.
pub const MAX_TASKS_PER_STATEMENT: usize = 100;

/// Reads the selected rows that have one of these ids in a column. Decoding many rows does not
/// block the other tasks of the thread.
pub async fn read_by_ids<E: EntityTrait, R: FromQueryResult>(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Select<E>,
    column: E::Column,
    ids: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<R>, StoreError> {
    let ids = Vec::from_iter(ids);
    let mut read = Vec::new();
    for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
        let rows = rows.clone().filter(column.is_in(ids.iter().copied()));
        let rows = scope.db.query_all(&rows.into_query()).await?;
        read.reserve(rows.len());
        run_by_weight(rows.len(), || {
            rows.into_iter().try_for_each(|row| {
                read.push(R::from_query_result(&row, "")?);
                Ok::<_, DbErr>(())
            })
        })?;
    }
    Ok(read)
}

/// Groups rows by an id.
fn group_by_id<R>(
    rows: impl IntoIterator<Item = R>,
    id: impl Fn(&R) -> Uuid,
) -> BTreeMap<Uuid, Vec<R>> {
    let mut groups = BTreeMap::<_, Vec<R>>::new();
    for row in rows {
        groups.entry(id(&row)).or_default().push(row);
    }
    groups
}

/// Pairs each row with its translations.
fn join_translations<R, T>(
    rows: Vec<R>,
    id: impl Fn(&R) -> Uuid,
    translations: Vec<T>,
    owner: impl Fn(&T) -> Uuid,
) -> impl Iterator<Item = (R, Vec<T>)> {
    let mut translations = group_by_id(translations, owner);
    rows.into_iter().map(move |row| {
        let own = translations.remove(&id(&row));
        (row, own.unwrap_or_default())
    })
}

impl Account {
    /// Runs a read in a snapshot, first without a permit. If it fails with
    /// [`StoreError::NeedsLargeReadPermit`], it runs again under a permit for that many bytes.
    async fn read_snapshot<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        read: impl Fn(Snapshot, MaxBytes) -> F,
    ) -> Result<T> {
        let (read, _permit) = self.read_with_permit(read).await?;
        Ok(read)
    }

    /// Like [`Self::read_snapshot`], but also returns the permit.
    async fn read_with_permit<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        read: impl Fn(Snapshot, MaxBytes) -> F,
    ) -> Result<(T, Option<OwnedSemaphorePermit>)> {
        let (mut max_bytes, mut permit) = (MaxBytes::SMALL, None);
        loop {
            let outcome = read(self.begin_snapshot().await?, max_bytes).await;
            let Err(StoreError::NeedsLargeReadPermit(bytes)) = outcome else {
                return Ok((outcome?, permit));
            };
            // A call must not hold a permit while it waits for another one.
            drop(permit.take());
            permit = Some(self.large_read_permit(bytes).await?);
            max_bytes = MaxBytes::permitted(stored_count(bytes));
        }
    }
}

/// How many rows of these sizes fit into a page: about [`PAGE_BYTES`], but at least one.
fn count_fitting(bytes: impl Iterator<Item = i64>, size: PageSize) -> usize {
    count_within_page_bytes(bytes.take(size.get() as usize))
}

/// How many rows of these sizes fit into about [`PAGE_BYTES`]; at least one.
fn count_within_page_bytes(bytes: impl Iterator<Item = i64>) -> usize {
    let mut before = 0_i64;
    let starts_within = |bytes: &i64| {
        let starts_within = before < PAGE_BYTES as i64;
        before = before.saturating_add(*bytes);
        starts_within
    };
    bytes.take_while(starts_within).count()
}
