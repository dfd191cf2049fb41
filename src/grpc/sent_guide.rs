//! The guide that a request of AnalysisService is about.

use std::sync::Arc;

use prost::Message;

use crate::{
    domain::{
        ids::TaskId,
        import::GuideDocument,
        sha256::Sha256,
        violation::{Reason, Violations},
    },
    messages::{decode::field::guid, managed_documents::values_mut, sent_document::SentDocument},
    proto::v1,
    store::GuideSource,
};

/// The guide of a request.
pub enum SentGuide {
    Stored(TaskId),
    /// A document that is not stored, and its digest.
    Document(Box<SentDocument>, [u8; 32]),
}

impl SentGuide {
    /// The guide and the digest of its document. Like [`SentDocument::check`], `None` if it refuses the
    /// request.
    pub fn into_source(
        self,
        violations: &mut Violations,
    ) -> Option<(GuideSource, Option<[u8; 32]>)> {
        Some(match self {
            Self::Stored(task) => (GuideSource::Stored(task), None),
            Self::Document(sent, digest) => {
                sent.check(violations)?;
                let document = Arc::new(sent.decode(None));
                (GuideSource::Document(document), Some(digest))
            }
        })
    }
}

/// The guide of a stored task.
pub fn stored(id: &str, violations: &mut Violations) -> Option<SentGuide> {
    guid(id, TaskId::parse, violations.at("guid")).map(SentGuide::Stored)
}

/// The guide of a document that is not stored.
pub fn document(message: v1::TaskDocument) -> SentGuide {
    let digest = content_digest(message.clone());
    SentGuide::Document(Box::new(SentDocument::unstored(message)), digest)
}

/// The digest of a document without ids, which only tie its parts together, and without
/// etags.
fn content_digest(mut document: v1::TaskDocument) -> [u8; 32] {
    clear_ids_and_etags(&mut document);
    Sha256::default().with(document.encode_to_vec()).finish()
}

fn clear_ids_and_etags(document: &mut v1::TaskDocument) {
    if let Some(task) = &mut document.task {
        task.guid.clear();
        task.steps.clear();
        task.parent_guid.clear();
        task.account_id.clear();
        task.etag.clear();
    }
    for step in &mut document.steps {
        step.guid.clear();
        step.task.clear();
        step.subtask_id.clear();
        step.link.clear();
        step.account_id.clear();
        step.etag.clear();
        for value in values_mut(step) {
            value.link.clear();
            if let Some(managed) = &mut value.task_json {
                clear_ids_and_etags(managed);
            }
        }
    }
}

/// Adds the violation of a request that names no guide.
pub fn refuse_missing_source(violations: &mut Violations) -> Option<SentGuide> {
    let mut field = violations.at("source");
    field.refuse(Reason::FieldRequired, "needs `guid` or `document`");
    None
}
