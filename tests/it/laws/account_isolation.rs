//! An account only sees its own resources. Calls behave as if resources of other accounts did not
//! exist.

mod equal_guids;
mod every_field;
mod naming_field;
mod other_account;
mod response;
