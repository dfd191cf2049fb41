//! Writers, what they were told, and whether it is there.

pub mod agree;
pub mod bystander;
pub mod caller;
pub mod choose;
#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{postgres as cluster, scratch, server_process as process};
pub mod dice;
pub mod draft;
pub mod intent;
pub mod leaver;
pub mod load;
pub mod patience;
pub mod peers;
pub mod relay;
pub mod seen;
pub mod service;
pub mod shelf;
pub mod writer;
