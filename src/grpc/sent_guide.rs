//! The guide that a request of AnalysisService is about.

use std::sync::Arc;

use prost::Message;

use crate::{
    domain::{
        ids::TaskId,
        sha256::Sha256,
        violation::{Reason, Violations},
    },
    messages::{decode::field::guid, managed_documents::values_mut, sent_document::SentDocument},
    proto::v1,
    store::GuideSource,
};

/// The guide of a request. A document is not decoded yet.
pub enum SentGuide {
    Stored(TaskId),
    Document(Box<v1::TaskDocument>),
}

/// The guide of a request with an id or a document.
pub fn guide(
    id: Option<String>,
    document: Option<v1::TaskDocument>,
    violations: &mut Violations,
) -> Option<SentGuide> {
    match (id, document) {
        (Some(id), _) => {
            let task = guid(&id, TaskId::parse, violations.at("guid"));
            task.map(SentGuide::Stored)
        }
        (None, Some(document)) => Some(SentGuide::Document(Box::new(document))),
        (None, None) => {
            let mut field = violations.at("source");
            field.refuse(Reason::FieldRequired, "needs `guid` or `document`");
            None
        }
    }
}

impl SentGuide {
    /// Decodes a document, and returns its digest. Call it after decoding the other fields, like
    /// [`SentDocument::decode_new`].
    pub fn into_source(
        self,
        violations: &mut Violations,
    ) -> Option<(GuideSource, Option<[u8; 32]>)> {
        match self {
            Self::Stored(task) => Some((GuideSource::Stored(task), None)),
            Self::Document(message) => {
                let digest = content_digest((*message).clone());
                let document = SentDocument::unstored(*message).decode_new(violations)?;
                Some((GuideSource::Document(Arc::new(document)), Some(digest)))
            }
        }
    }
}

/// The digest of a document without etags and ids. The ids only connect its parts.
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
