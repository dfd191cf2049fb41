//! Decodes whole requests into calls of the store. [`crate::messages`] decodes the messages in
//! them.

pub mod analysis;
pub mod preview;
pub mod validation;

pub use crate::messages::decode::*;
