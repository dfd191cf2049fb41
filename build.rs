//! Compiles the contract: protox parses the proto files, so nobody installs
//! protoc, and tonic-prost-build writes the messages, servers and clients. Notes
//! which commit is built.

use std::{env, error::Error, fs, path::Path, process::Command};

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

    println!("cargo:rerun-if-env-changed=EXPERTISE_COMMIT");
    let named = env::var("EXPERTISE_COMMIT").ok();
    let commit = named
        .filter(|commit| !commit.trim().is_empty())
        .or_else(commit);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=EXPERTISE_BUILD_COMMIT={}", commit.trim());
    Ok(())
}

/// The commit that is checked out; `None` where this is no checkout of our own, as
/// a tarball inside somebody else's.
fn commit() -> Option<String> {
    let root = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize();
    let here = Path::new(&env::var("CARGO_MANIFEST_DIR").ok()?).canonicalize();
    if root.ok()? != here.ok()? {
        return None;
    }
    // HEAD names the branch, and a file names the branch's commit. To watch a file
    // that is not there would build anew each time.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for place in [Some("HEAD"), branch.as_deref()].into_iter().flatten() {
        let file = git(&["rev-parse", "--git-path", place])?;
        // A branch that rests among packed ones gets its file with its next commit.
        let watched = Path::new(&file).ancestors().find(|path| path.exists())?;
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    git(&["rev-parse", "--short=7", "HEAD"])
}

/// What git prints, if there is git and it has something to say.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
