//! The arguments of `token`.

use std::time::Duration;

use clap::Args;

use super::value;
use crate::domain::{
    caller::{Scope, Subject},
    ids::AccountId,
};

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TokenGrant {
    /// The account that calls with the token work on
    #[arg(short, long, value_name = "ID", value_parser = value::account)]
    pub account: AccountId,
    /// What the token allows, space-separated, of read write translate admin index
    // The full path keeps clap from reading a list of repeated flags.
    #[arg(long = "scope", value_name = "SCOPES", value_parser = value::scopes)]
    pub scopes: ::std::vec::Vec<Scope>,
    /// How long the token is valid, such as 1h
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1h",
        value_parser = value::lifetime
    )]
    pub expires: Duration,
    /// Who calls, for the log
    #[arg(
        long,
        value_name = "NAME",
        default_value = "expertise-token",
        value_parser = value::subject
    )]
    pub subject: Subject,
}
