//! What `token` is asked to sign.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};

use super::{WrongSetting, value};
use crate::domain::{
    caller::{Scope, Subject},
    ids::AccountId,
};

/// What a token is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// The account that calls with the token work on.
    pub account: AccountId,
    /// The person or process that calls, for the log.
    pub subject: Subject,
    /// What the token allows.
    pub scopes: Vec<Scope>,
    /// How long the token is good for.
    pub expires: Duration,
}

const ACCOUNT: &str = "account";
const SUBJECT: &str = "subject";
const SCOPE: &str = "scope";
const EXPIRES: &str = "expires";

/// The subcommand with its arguments.
pub(super) fn command(name: &'static str) -> Command {
    let argument =
        |name: &'static str, value, help| Arg::new(name).long(name).value_name(value).help(help);
    Command::new(name)
        .about("Sign a token with EXPERTISE_JWT_SECRET and print it")
        .arg(argument(ACCOUNT, "ID", "The account that calls work on").required(true))
        .arg(
            argument(
                SCOPE,
                "SCOPES",
                "What the token allows, space-separated, of read write translate admin",
            )
            .required(true),
        )
        .arg(
            argument(EXPIRES, "DURATION", "How long it is good for, such as 1h")
                .default_value("1h"),
        )
        .arg(argument(SUBJECT, "NAME", "Who calls, for the log").default_value("expertise-token"))
}

/// Reads the arguments of the subcommand.
pub(super) fn read(arguments: &ArgMatches) -> Result<TokenGrant, WrongSetting> {
    Ok(TokenGrant {
        account: argument(arguments, ACCOUNT, value::account)?,
        subject: argument(arguments, SUBJECT, value::subject)?,
        scopes: argument(arguments, SCOPE, value::scopes)?,
        expires: argument(arguments, EXPIRES, value::lifetime)?,
    })
}

fn argument<T, E: ToString>(
    arguments: &ArgMatches,
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, WrongSetting> {
    let text = arguments.get_one::<String>(name).map_or("", String::as_str);
    parse(text).map_err(|expected| WrongSetting::Value {
        setting: format!("--{name}"),
        value: format!("{text:?}"),
        expected: expected.to_string(),
    })
}
