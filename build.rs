//! Compiles the contract: protox parses the proto files, so nobody installs
//! protoc, and tonic-prost-build writes the messages, servers and clients.

use std::{env, error::Error, fs, path::Path};

use prost::Message;

const FILES: [&str; 6] = [
    "expertise/v1/error_reason.proto",
    "expertise/v1/resources.proto",
    "expertise/v1/role_service.proto",
    "expertise/v1/step_service.proto",
    "expertise/v1/task_service.proto",
    "expertise/v1/translation_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = env::var("OUT_DIR")?;
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    let mut set = compiler.open_files(FILES)?.file_descriptor_set();

    tonic_prost_build::configure()
        // Maps in key order: the same message always encodes to the same bytes,
        // which the digest behind `request_id` relies on.
        .btree_map(".")
        // Our codec reports what it cannot decode as the caller's mistake.
        .codec_path("crate::grpc::codec::Codec")
        .compile_fds(set.clone())?;

    // Reflection needs the shapes, not the comments.
    for file in &mut set.file {
        file.source_code_info = None;
    }
    fs::write(Path::new(&out).join("descriptors.bin"), set.encode_to_vec())?;
    // The reference is written from the comments, and from Google's annotations,
    // which a set that was decoded has lost.
    let documented = compiler.encode_file_descriptor_set();
    fs::write(Path::new(&out).join("documented.bin"), documented)?;
    Ok(())
}
