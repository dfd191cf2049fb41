//! The guide that a request of AnalysisService is about.

use std::sync::Arc;

use prost::Message;

use crate::{
    domain::{
        ids::TaskId,
        sha256::Sha256,
        violation::{Reason, Violations},
    },
    messages::{decode::field::guid, sent_document::SentDocument},
    proto::v1,
    store::GuideSource,
};

/// The guide of a request with an id or a document, and the digest of a document. Call it after decoding
/// the other fields, like [`SentDocument::decode_new`].
pub fn source(
    id: Option<String>,
    document: Option<v1::TaskDocument>,
    violations: &mut Violations,
) -> Option<(GuideSource, Option<[u8; 32]>)> {
    match (id, document) {
        (Some(id), _) => {
            let task = guid(&id, TaskId::parse, violations.at("guid"))?;
            Some((GuideSource::Stored(task), None))
        }
        (None, Some(document)) => {
            let digest = Sha256::default().with(document.encode_to_vec()).finish();
            let document = SentDocument::unstored(document).decode_new(violations)?;
            Some((GuideSource::Document(Arc::new(document)), Some(digest)))
        }
        (None, None) => {
            let mut field = violations.at("source");
            field.refuse(Reason::FieldRequired, "needs `guid` or `document`");
            None
        }
    }
}
