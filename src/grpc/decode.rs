//! Decodes requests: messages that make a call of the store. [`crate::messages`] decodes
//! what they contain.

pub mod analysis;
pub mod preview;
pub mod validation;

pub use crate::messages::decode::*;
