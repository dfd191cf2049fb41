//! The request ids of a run.

use std::collections::HashMap;

use prost::Message;
use uuid::Uuid;

use crate::{domain::sha256::Sha256, proto::v1::ImportTaskRequest};

/// Makes the request ids of a run. When the run is repeated, the same message gets the same
/// id, and a corrected file gets another one.
pub(super) struct RequestIds {
    run_id: Uuid,
    /// The number of requests so far for each content.
    sent_counts: HashMap<Uuid, u32>,
}

impl RequestIds {
    pub fn of_run(run_id: Uuid) -> Self {
        Self {
            run_id,
            sent_counts: HashMap::new(),
        }
    }

    /// The id of the next request. Files with equal content get different ids, so each becomes
    /// a task.
    pub fn next(&mut self, message: &ImportTaskRequest) -> Uuid {
        let id = hashed_id(&[self.run_id.as_bytes(), &message.encode_to_vec()]);
        let sent_before = self.sent_counts.entry(id).or_default();
        let unique_id = match *sent_before {
            0 => id,
            count => hashed_id(&[id.as_bytes(), &count.to_be_bytes()]),
        };
        *sent_before += 1;
        unique_id
    }
}

fn hashed_id(parts: &[&[u8]]) -> Uuid {
    let mut digest = Sha256::default();
    parts.iter().for_each(|part| digest.update(part));
    uuid::Builder::from_custom_bytes(digest.finish()).into_uuid()
}
