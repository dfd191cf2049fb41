//! Reads the command line, environment and settings file. Each problem is one line without secrets:
//! the setting by the name that was used, its value, and what it must be.

use std::{
    any::TypeId,
    env,
    error::Error,
    ffi::{OsStr, OsString},
    fmt::Display,
};

use clap::{
    Arg, ArgMatches, Command,
    builder::{Resettable, ValueParser},
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    DatabaseUrl, MASK, Secret, database_url, names::PREFIX, server::server_settings,
    settings_file::SettingsFile,
};
use crate::domain::misspelling::closest;

/// The prefix of the variables of tests.
const TEST_PREFIX: &str = "EXPERTISE_TEST_";
/// Variables of builds and tests that share the prefix.
const NON_SETTINGS: [&str; 2] = ["EXPERTISE_COMMIT", "EXPERTISE_REQUIRE_POSTGRES"];

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is invalid, or requests help or the version.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The problems with settings, one per line.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
}

/// The line about a wrong value.
pub(super) fn wrong(setting: impl Display, value: impl Display, expected: impl Display) -> String {
    let value = value.to_string();
    format!("{setting} is {value:?}: it must be {expected}")
}

/// The line about a setting that is missing.
pub(super) fn unset(setting: impl Display, expected: impl Display) -> String {
    format!("{setting} is unset: it must be {expected}")
}

pub(super) fn fail_if_any(faults: Vec<String>) -> Result<(), ConfigError> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::Settings(faults))
    }
}

/// Reads the command line, environment and settings file of this process. The arguments of the
/// program itself belong to the command that runs if none is named.
///
/// The command line is parsed twice: first with all values as texts, to find every wrong value, then
/// with their types and the values of the file as defaults. Help is printed by the first, without the
/// file's values, which may be secrets.
pub fn read(program: Command) -> Result<ArgMatches, ConfigError> {
    let args: Vec<OsString> = env::args_os().collect();
    let as_text = |argument: Arg| match argument.get_action().takes_values() {
        true => argument.value_parser(ValueParser::os_string()),
        false => argument,
    };
    let first = args.get(1).map(|first| first.to_string_lossy());
    let is_named = first.is_some_and(|first| !first.starts_with('-'));
    let program = match is_named {
        // The settings of a server do not concern another command.
        true => program.mut_args(|setting| setting.env(Resettable::Reset)),
        false => program,
    };
    let texts = program.clone().mut_args(as_text);
    let texts = texts.mut_subcommands(|command| command.mut_args(as_text));
    let given = texts.try_get_matches_from(&args)?;
    let (command, given) = match given.subcommand() {
        Some((name, given)) => (program.find_subcommand(name).unwrap_or(&program), given),
        None => (&program, &given),
    };
    let path = given.try_get_one::<OsString>("config").ok().flatten();
    let (file, mut faults) = path.map(SettingsFile::read).unwrap_or_default();
    faults.extend(unknown_variables(&program));
    let arguments = command.get_arguments();
    faults.extend(arguments.flat_map(|argument| wrong_values(argument, given, &file)));
    fail_if_any(faults)?;
    let set_default = |setting| file.set_default(setting);
    let program = match is_named {
        true => program.mut_subcommands(|command| command.mut_args(set_default)),
        false => program.mut_args(set_default),
    };
    Ok(program.try_get_matches_from(&args)?)
}

/// The lines about values that an argument does not accept, with the name by which they were given.
fn wrong_values(argument: &Arg, given: &ArgMatches, file: &SettingsFile) -> Vec<String> {
    let key = argument.get_id().as_str();
    let names = argument.get_value_names().unwrap_or_default();
    let (name, values): (_, Vec<&OsStr>) = match (given.value_source(key), argument.get_env()) {
        (Some(ValueSource::DefaultValue) | None, _) => (
            file.name(key),
            file.text(key).map(OsStr::new).into_iter().collect(),
        ),
        (source, variable) => {
            let name = match (source, variable, argument.get_long()) {
                (Some(ValueSource::EnvVariable), Some(variable), _) => {
                    variable.display().to_string()
                }
                (_, _, Some(flag)) => format!("--{flag}"),
                (_, _, None) => names.join(" "),
            };
            (name, given.get_raw(key).into_iter().flatten().collect())
        }
    };
    let line = |value: &OsStr| {
        let expected = expected(argument, value)?;
        let shown = match masked(argument, &value.to_string_lossy()) {
            _ if value.is_empty() => "empty".to_owned(),
            masked if masked == MASK => masked,
            masked => format!("{masked:?}"),
        };
        Some(format!("{name} is {shown}: it must be {expected}"))
    };
    values.into_iter().filter_map(line).collect()
}

/// What a value must be, if the argument does not accept it.
fn expected(argument: &Arg, value: &OsStr) -> Option<String> {
    let alone = Arg::new("value")
        .value_parser(argument.get_value_parser().clone())
        .ignore_case(argument.is_ignore_case_set());
    let command = Command::new("").no_binary_name(true).arg(alone);
    let error = command
        .try_get_matches_from([OsStr::new("--"), value])
        .err()?;
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::ValueValidation, _) => Some(error.source()?.to_string()),
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) => {
            Some(match values.split_last() {
                None => "left out, or set to a value".to_owned(),
                Some((last, [])) => last.clone(),
                Some((last, others)) => format!("{} or {last}", others.join(", ")),
            })
        }
        // For example, a value that is not UTF-8 is an error of the command line.
        _ => None,
    }
}

/// A value without secrets. The type of the setting says whether it may contain one.
fn masked(setting: &Arg, text: &str) -> String {
    let value_type = setting.get_value_parser().type_id();
    let is_database = value_type == TypeId::of::<DatabaseUrl>();
    // A positional argument such as `GUIDE@-1` contains no password.
    let may_have_password = text.contains('@') && !setting.is_positional();
    let may_have_secret = may_have_password || text.contains("://");
    match value_type == TypeId::of::<Secret>() {
        true => MASK.to_owned(),
        false if is_database || may_have_secret => database_url::mask(text),
        false => text.to_owned(),
    }
}

/// The settings of a server as an equivalent settings file, with secrets masked. Unset settings are
/// left out, except `auth`, whose default is not a single value.
pub fn effective_settings(matches: &ArgMatches) -> String {
    let line = |setting: &Arg| {
        let key = setting.get_id().as_str();
        let text = match matches.get_raw(key).and_then(|mut texts| texts.next()) {
            Some(text) => masked(setting, &text.to_string_lossy()),
            None if key == "auth" => "header".to_owned(),
            None => return None,
        };
        let number = text.parse::<u64>().map(|number| number.to_string());
        match number.is_ok_and(|it| it == text) || text.parse::<bool>().is_ok() {
            true => Some(format!("{key} = {text}\n")),
            false => Some(format!("{key} = {text:?}\n")),
        }
    };
    server_settings().iter().filter_map(line).collect()
}

/// `EXPERTISE_*` variables that are not settings, except variables that Kubernetes sets for
/// Services.
fn unknown_variables(program: &Command) -> Vec<String> {
    let arguments = program.get_subcommands().flat_map(Command::get_arguments);
    let known: Vec<&str> = arguments.filter_map(|it| it.get_env()?.to_str()).collect();
    let fault = |(name, value): (OsString, OsString)| {
        let name = name.to_str().filter(|name| name.starts_with(PREFIX))?;
        match known.contains(&name) {
            true if value.to_str().is_some() => None,
            true => Some(format!("{name} is not text: it must be UTF-8")),
            false if NON_SETTINGS.contains(&name) || name.starts_with(TEST_PREFIX) => None,
            false if is_made_by_kubernetes(name, &value.to_string_lossy()) => None,
            false => Some(unknown(name.escape_debug(), name, &known)),
        }
    };
    let mut faults: Vec<String> = env::vars_os().filter_map(fault).collect();
    faults.sort();
    faults
}

/// Whether Kubernetes sets the variable for a Service whose name begins with `expertise`.
fn is_made_by_kubernetes(name: &str, value: &str) -> bool {
    name.contains("_PORT_")
        || name.contains("_SERVICE_")
        || name.ends_with("_PORT") && value.contains("://")
}

/// The line about an unknown name. Suggests the closest setting, or one that begins with the name.
pub(super) fn unknown(shown: impl Display, name: &str, known: &[&str]) -> String {
    let known = || known.iter().copied();
    match closest(name, known()).or_else(|| known().find(|known| known.starts_with(name))) {
        Some(closest) => format!("{shown} is not a setting: did you mean {closest}?"),
        None => format!("{shown} is not a setting: `expertise --help` lists them"),
    }
}
