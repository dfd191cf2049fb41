//! Reads command line, environment and settings file. What is wrong is a line each, without
//! secrets: a setting as it was given, its value, and what would be right.

use std::{any::TypeId, env, error::Error, ffi::OsString, fmt::Display};

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

/// The beginning of the name of every variable of tests.
const TEST_PREFIX: &str = "EXPERTISE_TEST_";
/// Variables of builds and tests that share the prefix.
const NON_SETTINGS: [&str; 2] = ["EXPERTISE_COMMIT", "EXPERTISE_REQUIRE_POSTGRES"];

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is invalid, or requests help or the version.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// What is wrong with settings, a line each.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
}

/// The line about a wrong value.
pub(super) fn wrong(setting: impl Display, value: impl Display, expected: impl Display) -> String {
    format!(
        "{setting} is {:?}: it must be {expected}",
        value.to_string()
    )
}

/// The line about a setting that is missing.
pub(super) fn unset(setting: impl Display, expected: impl Display) -> String {
    format!("{setting} is unset: it must be {expected}")
}

/// The line about a setting that is missing although one that needs it is given.
pub(super) fn unset_beside(setting: impl Display, given: impl Display) -> String {
    unset(setting, format!("set too, as {given} is set"))
}

/// Two settings, each with its name, that are given both or not at all.
pub(super) fn pair<T>(
    (one_name, one): (&str, Option<T>),
    (other_name, other): (&str, Option<T>),
) -> Result<Option<(T, T)>, String> {
    match (one, other) {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (Some(_), None) => Err(unset_beside(other_name, one_name)),
        (None, Some(_)) => Err(unset_beside(one_name, other_name)),
        (None, None) => Ok(None),
    }
}

/// Reads command line, environment and file of this process, and checks each value alone. The
/// arguments of the program itself belong to the command that runs if none is named.
pub fn read(program: Command) -> Result<ArgMatches, ConfigError> {
    let args: Vec<OsString> = env::args_os().collect();
    let active = args.get(1).and_then(|name| name.to_str());
    let active = active.filter(|name| !name.starts_with('-'));
    let (file, mut faults) = SettingsFile::from_command_line(&args);
    faults.extend(unknown_variables(&program));
    let program = program
        .mut_subcommands(|command| command.mut_args(|setting| file.set_default(setting)))
        .mut_args(|setting| match active {
            None => file.set_default(setting),
            // These settings do not concern another command.
            Some(_) => setting.env(Resettable::Reset),
        });
    let (matches, refused) = parse(program, active, &args)?;
    faults.extend(refused.iter().map(|it| it.line(matches.as_ref(), &file)));
    match matches {
        Some(matches) if faults.is_empty() => Ok(matches),
        Some(_) | None => Err(ConfigError::Settings(faults)),
    }
}

/// Parses the arguments, and finds every value that is refused: each is left unchecked in the next
/// attempt. There are no matches if a flag lacks its value.
fn parse(
    mut program: Command,
    active: Option<&str>,
    args: &[OsString],
) -> Result<(Option<ArgMatches>, Vec<RefusedValue>), ConfigError> {
    let mut refused = Vec::<RefusedValue>::new();
    loop {
        let error = match program.clone().try_get_matches_from(args) {
            Ok(matches) => return Ok((Some(matches), refused)),
            Err(error) => error,
        };
        let Some(value) = RefusedValue::from_error(program.clone(), active, &error) else {
            return Err(error.into());
        };
        let id = value.argument.get_id().clone();
        if refused.iter().any(|it| *it.argument.get_id() == id) {
            return Ok((None, refused));
        }
        let leave_unchecked = |argument: Arg| match *argument.get_id() == id {
            true => argument.value_parser(ValueParser::os_string()),
            false => argument,
        };
        program = program
            .mut_args(leave_unchecked)
            .mut_subcommands(|command| command.mut_args(leave_unchecked));
        refused.push(value);
    }
}

/// A value that clap refuses.
struct RefusedValue {
    argument: Arg,
    text: String,
    expected: String,
}

impl RefusedValue {
    /// `None` if the error is not about a value.
    fn from_error(mut program: Command, active: Option<&str>, error: &clap::Error) -> Option<Self> {
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let expected = match (error.kind(), error.get(ContextKind::ValidValue)) {
            (ErrorKind::ValueValidation, _) => error.source()?.to_string(),
            (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) => {
                match values.split_last() {
                    None => "left out, or set to a value".to_owned(),
                    Some((last, [])) => last.clone(),
                    Some((last, others)) => format!("{} or {last}", others.join(", ")),
                }
            }
            _ => return None,
        };
        // Arguments are shown as in the error afterwards.
        program.build();
        let command = active.and_then(|name| program.find_subcommand(name));
        let shown = context(ContextKind::InvalidArg)?;
        let mut arguments = command.unwrap_or(&program).get_arguments();
        Some(Self {
            argument: arguments.find(|it| it.to_string() == shown)?.clone(),
            text: context(ContextKind::InvalidValue)?.to_owned(),
            expected,
        })
    }

    /// The line about the value, with the name by which it was given.
    fn line(&self, matches: Option<&ArgMatches>, file: &SettingsFile) -> String {
        let Self { argument, text, .. } = self;
        let key = argument.get_id().as_str();
        let matches = matches.map(|it| it.subcommand().map_or(it, |(_, matches)| matches));
        let source = matches.and_then(|matches| matches.value_source(key));
        let name = match (source, argument.get_long(), argument.get_env()) {
            (Some(ValueSource::EnvVariable), _, Some(variable)) => variable.display().to_string(),
            (Some(ValueSource::DefaultValue), ..) => file.name(key),
            (_, Some(flag), _) => format!("--{flag}"),
            (_, None, _) => argument.get_value_names().unwrap_or_default().join(" "),
        };
        let shown = match masked(argument, text) {
            _ if text.is_empty() => "empty".to_owned(),
            masked if masked == MASK => masked,
            masked => format!("{masked:?}"),
        };
        format!("{name} is {shown}: it must be {}", self.expected)
    }
}

/// A value without secrets. What may hold one follows from the type of the setting.
fn masked(setting: &Arg, text: &str) -> String {
    let value_type = setting.get_value_parser().type_id();
    let is_database = value_type == TypeId::of::<DatabaseUrl>();
    match value_type == TypeId::of::<Secret>() {
        true => MASK.to_owned(),
        false if is_database || text.contains('@') => database_url::mask(text),
        false => text.to_owned(),
    }
}

/// The settings of a server as a settings file that means the same, with secrets masked. What is
/// unset is left out, but for `auth`, whose default is not one value.
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

/// `EXPERTISE_*` variables that are not settings, except those that Kubernetes makes for Services.
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

/// Whether the variable is one of those of a Service whose name begins with `expertise`.
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
