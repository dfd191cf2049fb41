//! The language of the service: values that are valid by construction, and the
//! pure laws over them. No clock, no I/O, no wire and no database types.

pub mod ids;
