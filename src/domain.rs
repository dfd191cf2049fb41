//! The language of the service: values that are valid by construction, and the
//! pure laws over them. No clock, no I/O, no wire and no database types.
//!
//! *Invariant:* a value of a type in here is valid. Whoever holds one never
//! checks it again; whoever makes one goes through its constructor.

pub mod caller;
pub mod changes;
pub mod decide;
pub mod dependency;
pub mod error;
pub mod etag;
pub mod feedback;
pub mod ids;
pub mod import;
pub mod json;
pub mod link;
pub mod order;
pub mod page;
pub mod patch;
pub mod revision;
pub mod role;
pub mod shorthand;
pub mod size;
pub mod step;
pub mod task;
pub mod text;
pub mod time;
pub mod translation;
pub mod translation_work;
pub mod violation;

pub use error::{Error, Outage, Precondition, Result};
