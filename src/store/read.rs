//! Reads. Each shows one state of the database: it is one statement, or several in a [`Snapshot`].
//!
//! Without a permit, statements read only small rows. Where rows may be large, their sizes are read
//! first.

mod change_feed;
mod guide;
mod index_work;
mod named;
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

use super::{
    account::{Account, Snapshot},
    error::StoreError,
};
use crate::domain::{
    Result,
    page::{PAGE_BYTES, PageSize},
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
    /// All, under a permit.
    All,
}

/// The maximum number of ids in one statement.
pub const MAX_IDS_PER_STATEMENT: usize = 1_000;

impl Account {
    /// Runs a read of small texts in a snapshot. If it fails with
    /// [`StoreError::NeedsLargeReadPermit`], the read runs again under a permit, with all texts.
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
            let small = read(account.begin_snapshot().await?, Texts::Small).await;
            let Err(StoreError::NeedsLargeReadPermit(bytes)) = small else {
                return Ok(small?);
            };
            let _permit = account.large_read_permit(bytes).await?;
            let all = read(account.begin_snapshot().await?, Texts::All);
            Ok(all.await?)
        })
        .await
    }
}

/// How many rows of these sizes fit into a page: about [`PAGE_BYTES`], but at least one.
fn count_fitting(bytes: impl Iterator<Item = i64>, size: PageSize) -> usize {
    let mut before = 0_i64;
    let starts_within = |bytes: &i64| {
        let starts_within = before < PAGE_BYTES as i64;
        before = before.saturating_add(*bytes);
        starts_within
    };
    bytes
        .take(size.get() as usize)
        .take_while(starts_within)
        .count()
}
