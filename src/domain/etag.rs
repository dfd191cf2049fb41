//! Etags: opaque versions of a resource.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use uuid::Uuid;

use super::{
    error::{Error, Result},
    ids::TaskId,
    import::TaskTree,
    row_version::RowVersion,
    sha256::Sha256,
    time::Timestamp,
    translation_work::ResourceId,
};

/// The version of a resource as an opaque text.
///
/// It is a hash of the id, the version and the time of the last update. No version is ever reused,
/// not even after a dry run or a deletion, or if the clock stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etag(String);

impl Etag {
    pub fn for_row_version(guid: Uuid, row_version: &RowVersion) -> Self {
        Self::for_version(guid, row_version.version, row_version.modified)
    }

    /// The etag of a version that was written at a time.
    pub fn for_version(guid: Uuid, version: i64, modified: Timestamp) -> Self {
        let hash = Sha256::default()
            .with(guid)
            .with(version.to_be_bytes())
            .with(modified.0.to_be_bytes())
            .finish::<12>();
        Self(URL_SAFE_NO_PAD.encode(hash))
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The version of a whole guide as an opaque text: a hash of the versions of its tasks and steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideEtag(String);

impl GuideEtag {
    pub fn for_guide(guide: &TaskTree) -> Self {
        // The version of a task also covers the order of its steps.
        let mut row_versions: Vec<(Uuid, &RowVersion)> = Vec::new();
        for TaskTree { task, steps, .. } in guide.all() {
            row_versions.push((task.guid.0, &task.row_version));
            let steps = steps.iter();
            row_versions.extend(steps.map(|step| (step.guid.0, &step.row_version)));
        }
        row_versions.sort_unstable_by_key(|(id, _)| *id);
        let mut hash = Sha256::default();
        for (id, row_version) in row_versions {
            hash.update(id);
            hash.update(row_version.version.to_be_bytes());
            hash.update(row_version.modified.0.to_be_bytes());
        }
        Self(URL_SAFE_NO_PAD.encode(hash.finish::<16>()))
    }

    pub fn stored(etag: String) -> Self {
        Self(etag)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// The etag that a caller expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedEtag {
    /// The caller sent no etag, so any is accepted.
    Any,
    Is(String),
}

impl ExpectedEtag {
    pub fn parse(etag: &str) -> Self {
        if etag.is_empty() {
            Self::Any
        } else {
            Self::Is(etag.to_owned())
        }
    }

    pub fn is_set(&self) -> bool {
        matches!(self, Self::Is(_))
    }

    /// Fails if the etag of a resource is not the expected one.
    pub fn check(&self, etag: &Etag, resource: ResourceId) -> Result<()> {
        match self {
            Self::Is(expected) if *expected != etag.0 => Err(Error::EtagMismatch(resource)),
            Self::Is(_) | Self::Any => Ok(()),
        }
    }

    /// Fails if the etag of a task's guide is not the expected one. A deleted guide has no etag.
    pub fn check_guide(&self, etag: Option<&GuideEtag>, task: TaskId) -> Result<()> {
        match self {
            Self::Any => Ok(()),
            Self::Is(_) if etag.is_none() => Err(Error::EtagOfDeletedGuide(task)),
            Self::Is(expected) if etag.is_some_and(|etag| etag.0 == *expected) => Ok(()),
            Self::Is(_) => Err(Error::GuideEtagMismatch(task)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_matches_only_its_own_revision() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let row_version = |version, modified| RowVersion {
            version,
            modified: Timestamp(modified),
            ..RowVersion::first(Timestamp(0))
        };
        let expected =
            ExpectedEtag::parse(&Etag::for_row_version(one, &row_version(7, 1)).into_string());
        let matches = |guid, version, modified| {
            let etag = Etag::for_row_version(guid, &row_version(version, modified));
            expected.check(&etag, ResourceId::Task(TaskId(one))).is_ok()
        };
        assert!(matches(one, 7, 1));
        assert!(!matches(one, 8, 1));
        assert!(!matches(one, 7, 2));
        assert!(!matches(other, 7, 1));
    }
}
