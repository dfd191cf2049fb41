//! Reads. Each returns one state of the database. Most return what one statement reads; exports,
//! previews, validations and large steps are read in one transaction.

mod cached_sql;
mod change_feed;
mod expected_translations;
mod guide;
mod index_work;
mod large_page;
pub mod large_step;
mod off_runtime;
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

use futures_util::future::Either;
use tracing::Instrument;

use crate::{
    call_context::{CallContext, CallSpans},
    domain::{Error, Result},
};

pub use expected_translations::ExpectedTranslations;
pub use guide::GuideSource;
pub use off_runtime::{AnalysisThreads, check_call, run_by_weight};
pub use preview::{PreviewCall, PreviewPage};
pub use validation::{FindingsCall, FindingsCursor, FindingsPage, ValidationCall, ValidationPage};

/// Runs a read in a spawned task, for reads that begin a transaction: a cancelled BEGIN closes
/// its connection. The call's permits are kept until the read has ended.
async fn run_to_end<T: Send + 'static>(
    read: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let read = match CallContext::current() {
        Some(call) => Either::Left(call.scope(read)),
        None => Either::Right(CallSpans::of_current_call().scope(read)),
    };
    tokio::spawn(read.in_current_span())
        .await
        .unwrap_or_else(|_| Err(Error::Internal("a read panicked".to_owned())))
}

#[cfg(test)]
mod tests;
