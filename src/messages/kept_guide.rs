//! Guides of revisions: compressed messages.
//!
//! The format is the document of the API. The API only grows, so later versions can read it.

use prost::Message;

use super::{
    decoded_size::document_bytes, encode, managed_documents::managed_documents_mut,
    sent_document::decode_unstored, wire,
};
use crate::{
    domain::history::{EncodedGuide, GuideCodec, KeptDocument, KeptGuide, TranslatedFrom},
    proto::v1,
};

/// Encodes guides for the database and decodes them.
pub const GUIDE_CODEC: GuideCodec = GuideCodec { encode, decode };

/// The zstd level. Compression takes less time than reading the guide.
const COMPRESSION_LEVEL: i32 = 3;

/// A guide in the database.
#[derive(Clone, PartialEq, Message)]
struct RevisionMessage {
    #[prost(message, optional, tag = "1")]
    document: Option<v1::TaskDocument>,
    /// [`TranslatedFrom`] as JSON lists of its tasks and of its steps.
    #[prost(bytes = "vec", tag = "3")]
    outdated: Vec<u8>,
}

fn encode(guide: KeptGuide) -> Option<EncodedGuide> {
    let TranslatedFrom { tasks, steps } = guide.outdated;
    let outdated = (Vec::from_iter(tasks), Vec::from_iter(steps));
    let stored = RevisionMessage {
        outdated: serde_json::to_vec(&outdated).ok()?,
        document: Some(encode::document(guide.tree)),
    };
    let bytes = stored.encode_to_vec();
    Some(EncodedGuide {
        document_bytes: bytes.len(),
        content: zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).ok()?,
    })
}

/// The decompressed bytes of a guide in the database; `None` if they are invalid.
pub fn decompressed(guide: &EncodedGuide) -> Option<Vec<u8>> {
    zstd::bulk::decompress(&guide.content, guide.document_bytes).ok()
}

/// The memory that a decompressed guide takes when decoded, including its bytes. `None` if they are
/// invalid.
pub fn decoded_bytes(guide: &[u8]) -> Option<usize> {
    let fields = wire::fields(guide)?;
    let documents = fields.iter().filter(|field| field.number == 1);
    let elements = documents.map(|field| document_bytes(field.content));
    Some(2 * guide.len() + elements.sum::<usize>())
}

/// The document of a decompressed guide; `None` if the bytes are invalid.
pub fn document(guide: &[u8]) -> Option<v1::TaskDocument> {
    RevisionMessage::decode(guide).ok()?.document
}

fn decode(guide: &EncodedGuide) -> Option<KeptDocument> {
    let stored = RevisionMessage::decode(&decompressed(guide)?[..]).ok()?;
    let (tasks, steps): (Vec<_>, Vec<_>) = serde_json::from_slice(&stored.outdated).ok()?;
    let mut message = stored.document?;
    clear_shorthands(&mut message);
    let document = decode_unstored(message);
    let is_readable =
        document.violations.is_empty() && document.all_steps().all(|step| step.r_data.is_some());
    is_readable.then_some(KeptDocument {
        document,
        outdated: TranslatedFrom {
            tasks: tasks.into_iter().collect(),
            steps: steps.into_iter().collect(),
        },
    })
}

/// They are redundant with the dependencies. A later version may write them differently.
fn clear_shorthands(document: &mut v1::TaskDocument) {
    if let Some(task) = &mut document.task {
        task.dependency_shorthand = None;
    }
    for step in &mut document.steps {
        step.dependency_shorthand = None;
        managed_documents_mut(step).for_each(clear_shorthands);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        domain::{
            dependency::{Group, Node},
            json::{Instruction, wire_bytes},
            shorthand,
        },
        messages::{
            encode,
            message_json::{descriptor, from_json},
        },
    };

    /// The elements of a request may take three times the maximum message size. The stored size of
    /// an exportable guide is at most that of one message.
    #[test]
    fn what_may_be_stored_may_be_sent() {
        let of = |step| {
            let document = v1::TaskDocument {
                task: None,
                steps: vec![step],
            };
            document_bytes(&document.encode_to_vec()[..])
        };
        for value in [
            json!(null),
            json!([null]),
            json!([[null]]),
            json!({"": null}),
            json!({"a": {"b": [1]}}),
        ] {
            let with = |count| {
                let members = [("a".to_owned(), vec![value.clone(); count].into())];
                let list = vec![Instruction(members.into_iter().collect())];
                of(v1::Step {
                    instructions: encode::json::instructions(list),
                    ..Default::default()
                })
            };
            let sent = (with(1_001) - with(1)) / 1_000;
            let stored = wire_bytes(&value);
            assert!(sent < 3 * stored, "{value}: {sent} {stored}");
        }
        let inner = shorthand::parse("components.1.a = 1").expect("a condition");
        let outer = Group {
            operator: inner.operator,
            nodes: vec![Node::Group(inner.clone())],
        };
        let stored = outer.wire_bytes() - inner.wire_bytes();
        let sent = [outer, inner].map(|group| {
            of(v1::Step {
                dependencies: encode::json::dependencies(Some(group)).0,
                ..Default::default()
            })
        });
        assert!(sent[0] - sent[1] < 3 * stored, "{sent:?} {stored}");
    }

    #[test]
    fn a_revision_whose_r_data_cannot_be_read_is_refused() {
        let is_decoded = |kind| {
            let task = v1::Task {
                name: "Pump".to_owned(),
                product_id: Some(1),
                ..Default::default()
            };
            let value = prost_types::Value { kind };
            let mut step = v1::Step {
                product_id: Some(1),
                title: "Look".to_owned(),
                r_data: [("seen".to_owned(), value)].into_iter().collect(),
                ..Default::default()
            };
            step.set_type(v1::StepType::Information);
            let document = v1::TaskDocument {
                task: Some(task),
                steps: vec![step],
            };
            let stored = RevisionMessage {
                document: Some(document),
                outdated: b"[[],[]]".to_vec(),
            };
            let bytes = stored.encode_to_vec();
            let guide = EncodedGuide {
                document_bytes: bytes.len(),
                content: zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).expect("a small guide"),
            };
            super::decode(&guide).is_some()
        };
        assert!(is_decoded(Some(prost_types::value::Kind::BoolValue(true))));
        assert!(!is_decoded(None));
    }

    #[test]
    fn the_elements_of_a_kept_guide_are_counted_before_it_is_decoded() {
        const ELEMENTS: usize = 100_000;
        let looping = json!({"array": vec![json!([]); ELEMENTS]});
        let document = descriptor("TaskDocument")
            .and_then(|it| from_json(it, &json!({"steps": [{"looping": looping}]})));
        let outdated = Vec::new();
        let bytes = RevisionMessage { document, outdated }.encode_to_vec();
        let guide = EncodedGuide {
            document_bytes: bytes.len(),
            content: zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).expect("a small guide"),
        };
        let decompressed = decompressed(&guide).expect("a guide");
        let counted = decoded_bytes(&decompressed).expect("a guide");
        let taken = ELEMENTS * size_of::<prost_types::Value>();
        assert!(
            (taken..2 * taken).contains(&counted),
            "{counted} for {taken}"
        );
        let broken = EncodedGuide {
            content: vec![7],
            ..guide
        };
        assert_eq!(super::decompressed(&broken), None);
    }
}
