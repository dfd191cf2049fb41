//! Conversions between messages of the API and domain values. The services and the command line use
//! them.

pub mod authored;
pub mod bodies;
pub mod compare;
pub mod decode;
pub mod decoded_size;
pub mod document_masks;
pub mod encode;
pub mod encoded_resource;
pub mod fields;
pub mod kept_guide;
pub mod managed_documents;
pub mod mask;
pub mod merge;
pub mod message_json;
pub mod sent_document;
pub mod update;
pub mod wire;

#[cfg(test)]
mod json_tests;
