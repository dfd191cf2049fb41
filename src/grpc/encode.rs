//! Encodes what the store returns as responses. [`crate::messages`] encodes the domain values
//! in them.

mod preview;
mod validation;
mod work;

pub use crate::messages::encode::*;
pub use preview::preview;
pub use validation::{findings, validation};
pub use work::work;
