//! Fingerprints of what an analysis has read.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::{
    Error, Result,
    row_version::RowVersion,
    sha256::Sha256,
    violation::{Path, Reason},
};

use super::guide::Guide;

/// Identifies the state of a guide, and of the observations elsewhere that set its
/// variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// The fingerprint of a guide. `document` is the digest of its document, if it has one;
    /// the ids of a document's tasks and steps differ in each call and are left out.
    pub fn new(guide: &Guide, document: Option<[u8; 32]>) -> Self {
        let mut hash = Sha256::default();
        hash.update(document.unwrap_or_default());
        for task in &guide.tasks {
            if task.origin.is_none() {
                let task = &task.task;
                add_row_version(&mut hash, task.guid.0, &task.row_version);
            }
            for step in task.steps.iter().flatten() {
                if let Some(subtask) = step.subtask {
                    hash.update((subtask as u64).to_be_bytes());
                }
                if step.origin.is_none() {
                    let step = &step.step;
                    add_row_version(&mut hash, step.guid.0, &step.row_version);
                }
            }
        }
        for variable in &guide.variables {
            if variable.outside.may_exist() {
                hash.update(format!("{:?}", (&variable.name, &variable.outside)));
            }
        }
        Self(hash.finish())
    }

    /// Fails if the guide has changed since the previous page, whose token has the fingerprint
    /// `seen`.
    pub fn check_page(self, seen: Option<Self>) -> Result<()> {
        if seen.is_none_or(|seen| seen == self) {
            return Ok(());
        }
        Err(Error::invalid(
            &Path::root("page_token"),
            Reason::PageTokenInvalid,
            "the guide has changed since the previous page; start again from the first page",
        ))
    }

    /// This fingerprint combined with other input of the response, such as options.
    pub fn with(self, more: &[u8]) -> Self {
        Self(Sha256::default().with(self.0).with(more).finish())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

fn add_row_version(hash: &mut Sha256, guid: Uuid, row_version: &RowVersion) {
    hash.update(guid);
    hash.update(row_version.version.to_be_bytes());
    hash.update(row_version.modified.0.to_be_bytes());
}
