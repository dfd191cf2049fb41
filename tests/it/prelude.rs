//! What most modules of tests import.

pub mod at_once;
mod calls;
pub mod documents;
mod samples;
mod violations;

pub use self::{at_once::*, calls::*, documents::*, samples::*};
pub use crate::kit::prelude::*;
