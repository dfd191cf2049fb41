//! Guides as revisions keep them: compressed messages.
//!
//! The document is that of the contract, which only grows, so that later versions read what
//! earlier ones have kept.

use std::{collections::BTreeMap, sync::LazyLock};

use prost::Message;
use prost_types::Timestamp as ProtoTimestamp;

use super::{
    decode::{self, json},
    encode,
    ignored::Ignored,
    wire,
};
use crate::{
    domain::{
        history::{EncodedGuide, GuideCodec, KeptGuide, TranslatedFrom},
        ids::{AccountId, StepId, TaskId},
        import::TaskTree,
        order::Numbering,
        row_version::RowVersion,
        step::{NewStep, Step},
        task::{IndexState, ManagedBy, NewTask, Task},
        time::Timestamp,
        translation::Language,
        translation_work::SourceDigest,
    },
    proto::{decoded_size::DecodedSizes, v1},
};

/// Encodes guides for the database, and decodes them.
pub const GUIDE_CODEC: GuideCodec = GuideCodec { encode, decode };

/// The level of zstd: it takes less time than the reading of the guide.
const COMPRESSION_LEVEL: i32 = 3;

/// A guide in the database.
#[derive(Clone, PartialEq, Message)]
struct StoredGuide {
    #[prost(message, optional, tag = "1")]
    document: Option<v1::TaskDocument>,
    #[prost(message, repeated, tag = "2")]
    outdated: Vec<OutdatedTranslation>,
}

/// What the translation of a task or step was made from.
#[derive(Clone, PartialEq, Message)]
struct OutdatedTranslation {
    #[prost(string, tag = "1")]
    guid: String,
    #[prost(string, tag = "2")]
    language: String,
    #[prost(string, tag = "3")]
    title: String,
    /// The digest of the other texts; empty for a task.
    #[prost(bytes = "vec", tag = "4")]
    content: Vec<u8>,
}

fn encode(guide: KeptGuide) -> Option<EncodedGuide> {
    let KeptGuide {
        tree,
        outdated: TranslatedFrom { tasks, steps },
    } = guide;
    let of_tasks = tasks
        .into_iter()
        .map(|((task, language), name)| OutdatedTranslation {
            guid: task.to_string(),
            language: language.to_string(),
            title: name,
            content: Vec::new(),
        });
    let of_steps = steps
        .into_iter()
        .map(|((step, language), (title, content))| OutdatedTranslation {
            guid: step.to_string(),
            language: language.to_string(),
            title,
            content: content.0.to_vec(),
        });
    let outdated = of_tasks.chain(of_steps).collect();
    let document = Some(encode::document(tree));
    let bytes = StoredGuide { document, outdated }.encode_to_vec();
    Some(EncodedGuide {
        document_bytes: bytes.len(),
        content: zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).ok()?,
    })
}

/// The document of a guide in the database; `None` if the bytes are not a guide.
pub fn document(guide: &EncodedGuide) -> Option<v1::TaskDocument> {
    stored(guide)?.document
}

/// How much memory the document of a guide in the database takes when it is decoded, the encoded
/// bytes included. `None` if the bytes are not a guide.
pub fn decoded_bytes(guide: &EncodedGuide) -> Option<usize> {
    static SIZES: LazyLock<DecodedSizes> = LazyLock::new(DecodedSizes::of_contract);
    let bytes = decompressed(guide)?;
    let fields = wire::fields(&bytes)?;
    let documents = fields.iter().filter(|field| field.number == 1);
    let elements = documents.map(|field| SIZES.of_document(field.content));
    Some(2 * bytes.len() + elements.sum::<usize>())
}

fn stored(guide: &EncodedGuide) -> Option<StoredGuide> {
    StoredGuide::decode(decompressed(guide)?.as_slice()).ok()
}

fn decompressed(guide: &EncodedGuide) -> Option<Vec<u8>> {
    zstd::bulk::decompress(&guide.content, guide.document_bytes).ok()
}

fn decode(guide: &EncodedGuide) -> Option<KeptGuide> {
    let StoredGuide { document, outdated } = stored(guide)?;
    let mut from = TranslatedFrom::default();
    for translation in outdated {
        let OutdatedTranslation {
            guid,
            language,
            title,
            content,
        } = translation;
        let language = Language::parse(&language)?;
        if content.is_empty() {
            from.tasks.insert((TaskId::parse(&guid)?, language), title);
        } else {
            let source = (title, SourceDigest(content.try_into().ok()?));
            from.steps.insert((StepId::parse(&guid)?, language), source);
        }
    }
    Some(KeptGuide {
        tree: tree(document?)?,
        outdated: from,
    })
}

fn tree(document: v1::TaskDocument) -> Option<TaskTree> {
    let v1::TaskDocument { task, steps } = document;
    let mut managed = BTreeMap::new();
    let steps = steps.into_iter().map(|step| self::step(step, &mut managed));
    Some(TaskTree {
        steps: steps.collect::<Option<_>>()?,
        task: self::task(task?)?,
        places: BTreeMap::new(),
        managed,
    })
}

fn task(mut message: v1::Task) -> Option<Task> {
    let guid = TaskId::parse(&message.guid)?;
    let account = AccountId::parse(&message.account_id)?;
    let managed = match message.r#type() {
        v1::TaskType::Standard => None,
        v1::TaskType::Linked => Some(ManagedBy {
            parent: TaskId::parse(&message.parent_guid)?,
            idx: message.idx,
        }),
    };
    let steps = message.steps.iter().map(|step| StepId::parse(step));
    let steps = steps.collect::<Option<_>>()?;
    let row_version = row_version(
        message.created_ts,
        message.modified_ts,
        message.dirty_record,
    );
    // It says the same as the dependencies.
    message.dependency_shorthand = None;
    let new = decode::all(|violations| {
        let field = violations.at("task");
        decode::task::new(message, field)
    });
    let NewTask {
        name,
        product,
        content,
    } = new.ok()?;
    Some(Task {
        guid,
        account,
        name,
        product,
        content,
        managed,
        steps,
        numbering: Numbering::default(),
        index: IndexState::default(),
        row_version,
    })
}

/// A step. The documents of the tasks that it manages are added to `managed`.
fn step(mut message: v1::Step, managed: &mut BTreeMap<TaskId, TaskTree>) -> Option<Step> {
    let guid = StepId::parse(&message.guid)?;
    let account = AccountId::parse(&message.account_id)?;
    let link = match message.link.as_str() {
        "" => None,
        link => Some(TaskId::parse(link)?),
    };
    let mut links = Vec::new();
    let configs = message.feedback_config.iter_mut();
    for value in configs.flat_map(|config| &mut config.values) {
        links.push(TaskId::parse(&value.link));
        if let Some(document) = value.task_json.take() {
            let tree = tree(*document)?;
            managed.insert(tree.task.guid, tree);
        }
    }
    let subtask_title = message.title.clone();
    let r_data = std::mem::take(&mut message.r_data);
    let row_version = row_version(
        message.created_ts,
        message.modified_ts,
        message.dirty_record,
    );
    message.dependency_shorthand = None;
    let decoded = decode::all(|violations| {
        let field = violations.at("step");
        let new = decode::step::new(message, field, &mut Ignored::default());
        let field = violations.at("r_data");
        Some((new?, json::members(r_data, field)?))
    });
    let (new, r_data) = decoded.ok()?;
    let NewStep {
        task,
        product,
        title,
        mut kind,
        content,
    } = new;
    if let Some(feedback) = kind.observation_feedback_mut() {
        for (value, link) in feedback.values.iter_mut().zip(links) {
            value.link = link;
        }
    }
    Some(Step {
        guid,
        account,
        task,
        product,
        title: match kind.subtask() {
            Some(_) => subtask_title,
            None => title,
        },
        kind,
        content,
        link,
        r_data,
        row_version,
    })
}

/// The row version of a stored task or step, whose number is not kept.
fn row_version(
    created: Option<ProtoTimestamp>,
    modified: Option<ProtoTimestamp>,
    dirty: bool,
) -> RowVersion {
    RowVersion {
        version: 0,
        dirty,
        created: timestamp(created.unwrap_or_default()),
        modified: timestamp(modified.unwrap_or_default()),
    }
}

fn timestamp(time: ProtoTimestamp) -> Timestamp {
    let ProtoTimestamp { seconds, nanos } = time;
    Timestamp(
        seconds
            .saturating_mul(1_000_000)
            .saturating_add(i64::from(nanos) / 1_000),
    )
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use prost_types::{ListValue, Value, value::Kind};
    use serde_json::json;

    use super::*;
    use crate::{
        domain::{
            dependency::{Group, Node},
            json::{Instruction, wire_bytes},
            shorthand,
        },
        messages::encode,
    };

    /// Elements of a request may take three times the largest message, and a guide that may be
    /// exported is as large as one at most, by what its parts are stored with.
    #[test]
    fn what_may_be_stored_may_be_sent() {
        let of = |step| {
            let document = v1::TaskDocument {
                task: None,
                steps: vec![step],
            };
            DecodedSizes::of_contract().of_document(&document.encode_to_vec()[..])
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
    fn the_elements_of_a_kept_guide_are_counted_before_it_is_decoded() {
        const ELEMENTS: usize = 100_000;
        let empty = || Value {
            kind: Some(Kind::ListValue(ListValue::default())),
        };
        let values = (0..ELEMENTS).map(|_| empty()).collect();
        let looping = v1::Looping {
            array: Some(Value {
                kind: Some(Kind::ListValue(ListValue { values })),
            }),
            ..v1::Looping::default()
        };
        let step = v1::Step {
            looping: Some(looping),
            ..v1::Step::default()
        };
        let document = Some(v1::TaskDocument {
            task: None,
            steps: vec![step],
        });
        let outdated = Vec::new();
        let bytes = StoredGuide { document, outdated }.encode_to_vec();
        let guide = EncodedGuide {
            document_bytes: bytes.len(),
            content: zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).expect("a small guide"),
        };
        let counted = decoded_bytes(&guide).expect("a guide");
        let taken = ELEMENTS * size_of::<Value>();
        assert!(
            (taken..2 * taken).contains(&counted),
            "{counted} for {taken}"
        );
        assert_eq!(
            decoded_bytes(&EncodedGuide {
                content: vec![7],
                ..guide
            }),
            None
        );
    }
}
