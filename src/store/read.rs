//! Reads. Each shows one state of the database: it is one statement, or several in a [`Snapshot`].
//!
//! Without a permit, statements read only small rows. Where rows may be large, their sizes are read
//! first.

mod change_feed;
mod guide;
mod guide_rows;
mod index_work;
mod name_users;
mod outside;
mod preview;
pub mod references;
pub mod revisions;
mod roles;
pub mod steps;
pub mod task_tree;
pub mod tasks;
mod translation_work;
mod validation;

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryTrait, Select,
};
use uuid::Uuid;

use super::{
    account::{Account, Scope, Snapshot},
    error::StoreError,
};
use crate::{
    analysis_threads::run_by_weight,
    domain::{
        Result,
        page::{PAGE_BYTES, PageSize},
        size::stored_count,
    },
};

pub use change_feed::has_new_changes;
pub use guide::GuideSource;
pub use preview::{PreviewCall, PreviewPage};
pub use validation::{FindingsCall, FindingsCursor, FindingsPage, ValidationCall, ValidationPage};

/// Which rows a read may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Only small ones. The read fails with [`StoreError::NeedsLargeReadPermit`] if others are needed.
    Small,
    /// Those that have at most this many bytes together, under a permit for them.
    Permitted(i64),
}

impl Texts {
    /// Fails with [`StoreError::NeedsLargeReadPermit`] if rows of this many bytes may not be read. Small
    /// ones have at most `max_small`.
    pub fn check(self, bytes: i64, max_small: i64) -> Result<(), StoreError> {
        let max_bytes = match self {
            Self::Small => max_small,
            Self::Permitted(permitted) => permitted.max(max_small),
        };
        if bytes <= max_bytes {
            return Ok(());
        }
        let bytes = usize::try_from(bytes).unwrap_or_default();
        Err(StoreError::NeedsLargeReadPermit(bytes))
    }
}

/// Rows that have more bytes together are large: they are read under a permit.
pub const LARGE_BYTES: i64 = 1024 * 1024;

/// The maximum number of ids in one statement.
pub const MAX_IDS_PER_STATEMENT: usize = 1_000;

/// Reads the selected rows that have one of these ids in a column. Many rows are decoded on another
/// thread.
pub async fn read_by_ids<E: EntityTrait, R: FromQueryResult + Send + 'static>(
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
        let decode = |row| R::from_query_result(&row, "");
        let rows = run_by_weight(rows.len(), move || {
            rows.into_iter().map(decode).collect::<Result<Vec<R>, _>>()
        });
        read.extend(rows.await??);
    }
    Ok(read)
}

/// Groups rows by an id.
fn group_by_id<R>(rows: Vec<R>, id: impl Fn(&R) -> Uuid) -> BTreeMap<Uuid, Vec<R>> {
    let mut groups = BTreeMap::<_, Vec<R>>::new();
    for row in rows {
        groups.entry(id(&row)).or_default().push(row);
    }
    groups
}

impl Account {
    /// Runs a read of small texts in a snapshot. If it fails with
    /// [`StoreError::NeedsLargeReadPermit`], the read runs again under a permit for that many bytes.
    async fn read_snapshot<T, F>(
        &self,
        read: impl Fn(Snapshot, Texts) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let account = self.clone();
        Self::run_to_end(async move {
            let (mut texts, mut permit) = (Texts::Small, None);
            loop {
                let outcome = read(account.begin_snapshot().await?, texts).await;
                let Err(StoreError::NeedsLargeReadPermit(bytes)) = outcome else {
                    return Ok(outcome?);
                };
                // A call that waits for a permit holds none.
                drop(permit.take());
                permit = Some(account.large_read_permit(bytes).await?);
                texts = Texts::Permitted(stored_count(bytes));
            }
        })
        .await
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
