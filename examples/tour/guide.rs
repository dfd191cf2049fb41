//! Reads example guides: files with a `TaskDocument` in the JSON mapping of protobuf.

use anyhow::Context;
use expertise::proto::{FILE_DESCRIPTOR_SET, v1::TaskDocument};
use prost_reflect::{DescriptorPool, DynamicMessage};

/// Reads one of the guides in `examples/guides`. An unknown field is an error.
pub fn read(file: &str) -> anyhow::Result<TaskDocument> {
    let path = format!("{}/examples/guides/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET)?;
    let document = pool.get_message_by_name("expertise.v1.TaskDocument");
    let document = document.context("the contract has no TaskDocument")?;
    let mut json = serde_json::Deserializer::from_str(&text);
    let message = DynamicMessage::deserialize(document, &mut json).context(path)?;
    json.end()?;
    Ok(message.transcode_to()?)
}
