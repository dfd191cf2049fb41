//! Writers, what they were told, and whether it is there.

pub mod agree;
pub mod bystander;
pub mod caller;
pub mod choose;
#[path = "../support/cluster.rs"]
pub mod cluster;
pub mod dice;
pub mod draft;
pub mod intent;
pub mod leaver;
pub mod load;
pub mod patience;
pub mod peers;
#[path = "../support/process.rs"]
pub mod process;
pub mod relay;
#[path = "../support/scratch.rs"]
pub mod scratch;
pub mod seen;
pub mod service;
pub mod shelf;
pub mod writer;
