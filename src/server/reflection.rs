//! Reflection, for tools such as grpcurl. It serves the compiled descriptors, with the options of
//! Google's annotations and without comments.

use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::service::Routes;
use tonic_reflection::server::{Builder, Error};

use super::layers::MAX_PROBE_BYTES;
use crate::proto;

/// Adds reflection, in both versions that clients use, for the API, the error details and health.
pub fn add(routes: Routes) -> Result<Routes, Error> {
    let builder = || {
        let sets = [
            proto::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            // Each version of reflection describes both.
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        sets.into_iter().fold(
            Builder::configure().register_file_descriptor_set(error_details()),
            Builder::register_encoded_file_descriptor_set,
        )
    };
    Ok(routes
        .add_service(
            builder()
                .build_v1()?
                .max_decoding_message_size(MAX_PROBE_BYTES),
        )
        .add_service(
            builder()
                .build_v1alpha()?
                .max_decoding_message_size(MAX_PROBE_BYTES),
        ))
}

/// The error details. Their files are named like Google's, because a Python client cannot load the
/// same messages from two files.
fn error_details() -> FileDescriptorSet {
    // The descriptors are valid: a test reads them.
    let mut set =
        FileDescriptorSet::decode(tonic_types::pb::FILE_DESCRIPTOR_SET).unwrap_or_default();
    for name in set.file.iter_mut().filter_map(|file| file.name.as_mut()) {
        if !name.contains('/') {
            name.insert_str(0, "google/rpc/");
        }
    }
    set
}
