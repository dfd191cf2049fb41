//! Reads command line, environment and settings file. What is wrong is a line each, without
//! secrets: a setting as it was given, its value, and what would be right.

use std::{
    any::TypeId, collections::BTreeMap, env, error::Error, ffi::OsString, fmt::Display, ops::Deref,
    path::PathBuf,
};

use clap::{
    Arg, ArgMatches, Args, FromArgMatches,
    builder::Resettable,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    Command, DatabaseUrl, MASK, Secret,
    command_line::{CommandLine, PREFIX, command_line},
    database_url,
};
use crate::{domain::misspelling::closest, files};

/// The beginning of the name of every variable of tests.
const TEST_PREFIX: &str = "EXPERTISE_TEST_";
/// Variables of builds and tests that share the prefix.
const NON_SETTINGS: [&str; 2] = ["EXPERTISE_COMMIT", "EXPERTISE_REQUIRE_POSTGRES"];

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is invalid, or requests help or the version.
    #[error(transparent)]
    Usage(clap::Error),
    /// What is wrong with settings, a line each.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
}

impl From<clap::Error> for ConfigError {
    fn from(error: clap::Error) -> Self {
        match error.get(ContextKind::Custom) {
            Some(ContextValue::Strings(faults)) => Self::Settings(faults.clone()),
            Some(_) | None => Self::Usage(error),
        }
    }
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

/// Settings that are checked against each other, once each of them is valid.
pub trait Checked: Sized {
    /// The settings as they are given.
    type Settings: Args;

    /// Fails with a line for each fault.
    fn check(settings: Self::Settings) -> Result<Self, Vec<String>>;
}

/// The arguments of a command that are checked when they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid<T>(pub Box<T>);

impl<T> Deref for Valid<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Checked> Args for Valid<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        T::Settings::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        T::Settings::augment_args_for_update(command)
    }
}

impl<T: Checked> FromArgMatches for Valid<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::check(T::Settings::from_arg_matches(matches)?)
            .map(|checked| Self(Box::new(checked)))
            .map_err(|faults| {
                let mut error = clap::Error::new(ErrorKind::ValueValidation);
                error.insert(ContextKind::Custom, ContextValue::Strings(faults));
                error
            })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Command {
    /// Reads command line, environment and file of this process.
    pub fn from_process(version: String) -> Result<Self, ConfigError> {
        let args: Vec<OsString> = env::args_os().collect();
        let active = args.get(1).and_then(|name| name.to_str());
        let active = active.filter(|name| !name.starts_with('-'));
        let mut program = command_line(version);
        let (file, mut faults) = SettingsFile::from_command_line(&args, &program);
        faults.extend(unknown_variables(&program));
        let with_file = program
            .clone()
            .mut_subcommands(|command| command.mut_args(|setting| file.set_default(setting)))
            .mut_args(|setting| match active {
                None => file.set_default(setting),
                // The settings of `serve` do not concern another command.
                Some(_) => setting.env(Resettable::Reset),
            });
        if let Some(active @ ("lint" | "graph")) = active
            && faults.is_empty()
            && let Some(command) = offline(&with_file, active, &args)
        {
            return Ok(command);
        }
        let matches = match with_file.try_get_matches_from(&args) {
            Ok(matches) => matches,
            Err(error) => {
                program.build();
                let command = active.and_then(|name| program.find_subcommand(name));
                let refused = refused_values(command.unwrap_or(&program), &args, &file, &error);
                faults.extend(refused.ok_or_else(|| with_tip(error, active))?);
                return Err(ConfigError::Settings(faults));
            }
        };
        if !faults.is_empty() {
            return Err(ConfigError::Settings(faults));
        }
        let mut command = CommandLine::from_arg_matches(&matches)?.into_command();
        if let (Self::Config { effective, .. }, Some((_, matches))) =
            (&mut command, matches.subcommand())
        {
            *effective = effective_settings(&program, matches, &file);
        }
        Ok(command)
    }
}

/// The command, if it works on files alone: the variables that say how a server is called do not
/// concern it, even if they are wrong.
fn offline(program: &clap::Command, active: &str, args: &[OsString]) -> Option<Command> {
    let program = program.clone().mut_subcommand(active, |command| {
        command.mut_args(|setting| setting.env(Resettable::Reset))
    });
    let matches = program.try_get_matches_from(args).ok()?;
    match CommandLine::from_arg_matches(&matches).ok()?.into_command() {
        Command::Client(command) if command.connection.is_none() => Some(Command::Client(command)),
        _ => None,
    }
}

/// Adds a tip to the error about a short flag that stands before its command.
fn with_tip(mut error: clap::Error, active: Option<&str>) -> clap::Error {
    if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && ["-a", "-s"].contains(&flag.as_str())
        && active.is_none()
    {
        let tip = format!("it belongs after the command, such as `expertise list {flag} …`");
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// A line for each value that the command refuses, if `error` is about one: all values of
/// the environment and the file, each parsed alone, or else the one of the command line.
fn refused_values(
    command: &clap::Command,
    args: &[OsString],
    file: &SettingsFile,
    error: &clap::Error,
) -> Option<Vec<String>> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let argument = context(ContextKind::InvalidArg)?;
    let argument = command
        .get_arguments()
        .find(|it| it.to_string() == argument)?;
    let name = match argument.get_long() {
        Some(flag) => format!("--{flag}"),
        None => argument.get_value_names()?.first()?.to_string(),
    };
    let fault = refusal(&name, argument, context(ContextKind::InvalidValue)?, error)?;
    let settings = command.get_arguments().filter(|it| it.get_env().is_some());
    let mut faults: Vec<String> = settings
        .filter(|setting| !is_flag_given(setting, args))
        .filter_map(|setting| {
            let (name, text) = given_value(setting, file)?;
            let flag = format!("--{}={text}", setting.get_long()?);
            let alone = clap::Command::new("").no_binary_name(true).arg(setting);
            refusal(
                &name,
                setting,
                &text,
                &alone.try_get_matches_from([flag]).err()?,
            )
        })
        .collect();
    if faults.is_empty() || is_flag_given(argument, args) {
        faults.push(fault);
    }
    Some(faults)
}

fn is_flag_given(setting: &Arg, args: &[OsString]) -> bool {
    let flag = format!("--{}", setting.get_long().unwrap_or_default());
    args.iter()
        .any(|arg| arg.to_string_lossy().split('=').next() == Some(&flag))
}

/// The value of a setting in the environment or else in the file, with its name there.
fn given_value(setting: &Arg, file: &SettingsFile) -> Option<(String, String)> {
    let variable = setting.get_env()?.to_str()?;
    let key = setting.get_id().as_str();
    match env::var(variable) {
        Ok(text) => Some((variable.to_owned(), text)),
        Err(_) => Some((file.name(key), file.texts.get(key)?.clone())),
    }
}

/// The line about a value that clap refuses.
fn refusal(name: &str, setting: &Arg, text: &str, error: &clap::Error) -> Option<String> {
    let expected = match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::ValueValidation, _) => error.source()?.to_string(),
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) => match values.split_last()
        {
            None => "left out, or set to a value".to_owned(),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
        },
        _ => return None,
    };
    let shown = match masked(setting, text) {
        _ if text.is_empty() => "empty".to_owned(),
        masked if masked == MASK => masked,
        masked => format!("{masked:?}"),
    };
    Some(format!("{name} is {shown}: it must be {expected}"))
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

/// `EXPERTISE_*` variables that are not settings, except those that Kubernetes makes for Services.
fn unknown_variables(program: &clap::Command) -> Vec<String> {
    let arguments = program
        .get_subcommands()
        .flat_map(clap::Command::get_arguments);
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
fn unknown(shown: impl Display, name: &str, known: &[&str]) -> String {
    let known = || known.iter().copied();
    match closest(name, known()).or_else(|| known().find(|known| known.starts_with(name))) {
        Some(closest) => format!("{shown} is not a setting: did you mean {closest}?"),
        None => format!("{shown} is not a setting: `expertise --help` lists them"),
    }
}

/// The settings of a server as a settings file, with the source of each. What is unset is left
/// out, but for `auth`, whose default is not one value.
fn effective_settings(
    program: &clap::Command,
    matches: &ArgMatches,
    file: &SettingsFile,
) -> String {
    let line = |setting: &Arg| {
        let key = setting.get_id().as_str();
        let text = match matches.get_raw(key).and_then(|mut texts| texts.next()) {
            Some(text) => masked(setting, &text.to_string_lossy()),
            None if key == "auth" => "header".to_owned(),
            None => return None,
        };
        let source = match matches.value_source(key) {
            Some(ValueSource::CommandLine) => "flag".to_owned(),
            Some(ValueSource::EnvVariable) => "environment".to_owned(),
            _ if file.texts.contains_key(key) => format!("file {}", file.path.display()),
            _ => "default".to_owned(),
        };
        let number = text.parse::<u64>().map(|number| number.to_string());
        let assignment = match number.is_ok_and(|it| it == text) || text.parse::<bool>().is_ok() {
            true => format!("{key} = {text}"),
            false => format!("{key} = {text:?}"),
        };
        Some(format!("{assignment:<50} # {source}\n"))
    };
    server_settings(program).filter_map(line).collect()
}

/// The settings of a server: the keys of a settings file.
fn server_settings(program: &clap::Command) -> impl Iterator<Item = &Arg> {
    program.get_arguments().filter(|it| it.get_env().is_some())
}

/// The settings in the TOML file of `--config`.
#[derive(Default)]
struct SettingsFile {
    path: PathBuf,
    texts: BTreeMap<String, String>,
}

impl SettingsFile {
    /// Reads the file that the command line names, and finds what is wrong with it.
    fn from_command_line(args: &[OsString], program: &clap::Command) -> (Self, Vec<String>) {
        let mut args = args.iter().take_while(|arg| *arg != "--");
        let mut file = Self::default();
        let path = args.by_ref().find_map(|arg| match arg.to_str()? {
            "--config" => Some(None),
            arg => arg.strip_prefix("--config=").map(|path| Some(path.into())),
        });
        let Some(path) = path.and_then(|path| path.or_else(|| args.next().map(PathBuf::from)))
        else {
            return (file, Vec::new());
        };
        file.path = path;
        let faults = file.read(program).unwrap_or_else(|reason| {
            let fault = wrong("--config", file.path.display(), "a readable TOML file");
            vec![format!("{fault}: {reason}")]
        });
        (file, faults)
    }

    /// Reads the settings, and returns what is wrong with some of them. Fails if the file has none.
    fn read(&mut self, program: &clap::Command) -> Result<Vec<String>, String> {
        let text = files::read(&self.path).map_err(|error| error.to_string())?;
        let text = String::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
        let table: toml::Table = text.parse().map_err(|error| toml_reason(&text, &error))?;
        let known: Vec<&str> = server_settings(program)
            .map(|it| it.get_id().as_str())
            .collect();
        let mut faults = Vec::new();
        for (key, value) in table {
            let name = self.name(&key);
            let text = match value {
                _ if !known.contains(&key.as_str()) => Err(unknown(name, &key, &known)),
                toml::Value::String(text) => Ok(text),
                toml::Value::Integer(number) => Ok(number.to_string()),
                toml::Value::Boolean(truth) => Ok(truth.to_string()),
                _ => Err(format!(
                    "{name} is of type {}: it must be a string, a whole number or a boolean",
                    value.type_str()
                )),
            };
            match text {
                Ok(text) => drop(self.texts.insert(key, text)),
                Err(fault) => faults.push(fault),
            }
        }
        Ok(faults)
    }

    /// A key as messages name it.
    fn name(&self, key: &str) -> String {
        format!("{key} in {}", self.path.display())
    }

    fn set_default(&self, setting: Arg) -> Arg {
        match self.texts.get(setting.get_id().as_str()) {
            // Help would print the default, which may be a secret.
            Some(text) => setting.default_value(text.clone()).hide_default_value(true),
            None => setting,
        }
    }
}

/// The parser's message on one line, without the text around it, which may hold a secret.
fn toml_reason(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().next().unwrap_or("not TOML");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!(
            "line {}: {message}; a value that is neither a number nor true or false needs quotes, \
             as in listen = \"…\"",
            before.matches('\n').count() + 1
        ),
        None => message.to_owned(),
    }
}
