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

/// The guide, and the digest of its document if it is not stored. Like [`SentDocument::decode_new`], it
/// comes after the other fields of the request.
pub fn source(
    id: Option<String>,
    document: Option<v1::TaskDocument>,
    violations: &mut Violations,
) -> Option<(GuideSource, Option<[u8; 32]>)> {
    if let Some(id) = id {
        let task = guid(&id, TaskId::parse, violations.at("guid"));
        return task.map(|task| (GuideSource::Stored(task), None));
    }
    let Some(message) = document else {
        let mut field = violations.at("source");
        field.refuse(Reason::FieldRequired, "needs `guid` or `document`");
        return None;
    };
    let digest = content_digest(message.clone());
    let document = SentDocument::unstored(message).decode_new(violations)?;
    Some((GuideSource::Document(Arc::new(document)), Some(digest)))
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
