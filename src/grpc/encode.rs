//! Encodes responses: pages of the store. [`crate::messages`] encodes what they contain.

mod preview;
mod validation;
mod work;

pub use crate::messages::encode::*;
pub use preview::preview;
pub use validation::{findings, validation};
pub use work::work;
