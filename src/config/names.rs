//! The names of settings, and the value names in help.

use std::{any::TypeId, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Arg, Command, builder::PossibleValue};
use http::Uri;
use tracing_subscriber::filter::Targets;

use super::{DatabaseUrl, TaskRef};
use crate::domain::{
    ids::{AccountId, RequestId},
    translation::Language,
};

/// The prefix of the variables of all settings.
pub(super) const PREFIX: &str = "EXPERTISE_";

/// Completes the arguments of a program and its subcommands.
pub fn with_uniform_names(program: Command) -> Command {
    program
        .mut_args(uniform)
        .mut_subcommands(|command| command.mut_args(uniform))
}

/// A setting, which is marked by `env`, has one name: the key `max_message_bytes` of a settings file
/// is the flag `--max-message-bytes` and the variable `EXPERTISE_MAX_MESSAGE_BYTES`. In place of a
/// value, help shows the choices, or what the type of the value is called.
fn uniform(mut argument: Arg) -> Arg {
    if argument.get_env().is_some() {
        let key = argument.get_id().to_string();
        argument = argument
            .long(key.replace('_', "-"))
            .env(format!("{PREFIX}{}", key.to_uppercase()))
            .hide_env_values(true);
    }
    let choices = argument.get_possible_values();
    let choices: Vec<&str> = choices.iter().map(PossibleValue::get_name).collect();
    if argument.get_action().takes_values() && !choices.is_empty() {
        argument
            .value_name(choices.join("|"))
            .hide_possible_values(true)
    } else if let Some(name) = value_name(&argument) {
        argument.value_name(name)
    } else {
        argument
    }
}

/// The name of a value, if it follows from its type.
fn value_name(argument: &Arg) -> Option<&'static str> {
    let is_size = argument.get_id().as_str().ends_with("_bytes");
    let number = if is_size { "BYTES" } else { "COUNT" };
    let of_all = [
        (TypeId::of::<AccountId>(), "ID"),
        (TypeId::of::<DatabaseUrl>(), "URL"),
        (TypeId::of::<Duration>(), "DURATION"),
        (TypeId::of::<Language>(), "TAG"),
        (TypeId::of::<RequestId>(), "UUID"),
        (TypeId::of::<TaskRef>(), "GUID|NAME"),
    ];
    let of_settings = [
        (TypeId::of::<PathBuf>(), "PATH"),
        (TypeId::of::<SocketAddr>(), "ADDRESS:PORT"),
        (TypeId::of::<Targets>(), "FILTER"),
        (TypeId::of::<Uri>(), "URL"),
        (TypeId::of::<u32>(), number),
        (TypeId::of::<usize>(), number),
    ];
    let of_settings = argument.get_env().map(|_| of_settings);
    let value_type = argument.get_value_parser().type_id();
    of_all
        .into_iter()
        .chain(of_settings.into_iter().flatten())
        .find_map(|(id, name)| (value_type == id).then_some(name))
}
