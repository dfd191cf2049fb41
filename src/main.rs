//! The binary.

use std::process::ExitCode;

/// Returns memory to the system after large bodies. After 64 concurrent bodies of 16 MB, the system
/// allocator still held 400 MB, and mimalloc 90 MB.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    expertise::program::run()
}
