//! An account sees its own resources alone: those of others answer as if they did not
//! exist.

mod equal_guids;
mod every_field;
mod other_account;
mod response;
