//! The domain model: tasks, steps, and the decisions of every write. Pure code, without a clock,
//! I/O, protobuf or database types.
//!
//! *Invariant:* every value is valid. Its constructor checks it, and no other code checks it again.

pub mod account;
pub mod analysis;
pub mod caller;
pub mod change_feed;
pub mod changes;
pub mod decide;
pub mod dependency;
pub mod error;
pub mod etag;
pub mod external_id;
pub mod feedback;
pub mod history;
pub mod ids;
pub mod import;
pub mod index_work;
pub mod json;
pub mod misspelling;
pub mod nesting;
pub mod order;
pub mod page;
pub mod role;
pub mod row_version;
pub mod sha256;
pub mod shorthand;
pub mod size;
pub mod step;
pub mod task;
pub mod text;
pub mod time;
pub mod translation;
pub mod translation_work;
pub mod validation;
pub mod violation;

pub use error::{
    Contention, Error, Missing, Outage, Overload, Precondition, Result, SizedResource,
};
