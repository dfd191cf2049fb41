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
    Command, DatabaseUrl, MASK, Secret, ServerSettings, SigningSecret, command_line,
    command_line::CommandLine, database_url,
};
use crate::{domain::misspelling::closest, files};

const PREFIX: &str = "EXPERTISE_";
/// The beginning of the name of every variable of tests.
const TEST_PREFIX: &str = "EXPERTISE_TEST_";
/// Variables of builds and tests that share the prefix.
const NON_SETTINGS: [&str; 2] = ["EXPERTISE_COMMIT", "EXPERTISE_REQUIRE_POSTGRES"];
const HELP: &str = "`expertise --help` lists them";

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
        let settings = T::Settings::from_arg_matches(matches)?;
        T::check(settings)
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
        let program = command_line(version);
        let (file, mut faults) = SettingsFile::from_command_line(&args);
        faults.extend(unknown_variables(&program));
        let mut program = in_active(program, active, |command| file.set_defaults(command));
        if active.is_some() {
            // The settings of `serve` do not concern another command.
            program = program.mut_args(|setting| setting.env(Resettable::Reset));
        }
        let matches = match parse(program, active, &args, &file, &mut faults)? {
            Some(matches) if faults.is_empty() => matches,
            Some(_) | None => return Err(ConfigError::Settings(faults)),
        };
        let mut command = CommandLine::from_arg_matches(&matches)?.into_command();
        if let (Self::Config { effective, .. }, Some((_, matches))) =
            (&mut command, matches.subcommand())
        {
            *effective = effective_settings(matches, &file);
        }
        Ok(command)
    }
}

/// Parses the command line. Each value of the environment or the file that is refused is a fault;
/// the others are found without it. `None` if the command line has one.
fn parse(
    mut program: clap::Command,
    active: Option<&str>,
    args: &[OsString],
    file: &SettingsFile,
    faults: &mut Vec<String>,
) -> Result<Option<ArgMatches>, clap::Error> {
    loop {
        let error = match program.clone().try_get_matches_from(args) {
            Ok(matches) => return Ok(Some(matches)),
            Err(error) => error,
        };
        let command = active.and_then(|name| program.find_subcommand(name));
        let Some(refusal) = Refusal::new(&error, command.unwrap_or(&program), file) else {
            return Err(with_tip(error));
        };
        faults.push(refusal.fault);
        let Some(setting) = refusal.replaceable_setting else {
            return Ok(None);
        };
        program = in_active(program, active, |command| {
            command.mut_arg(&setting, |setting| {
                setting
                    .env(Resettable::Reset)
                    .default_value(Resettable::Reset)
            })
        });
    }
}

/// Adds a tip to the error about a short flag that stands before its command.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let text = |kind| error.get(kind).map(ToString::to_string);
    let flag = text(ContextKind::InvalidArg).filter(|flag| ["-a", "-s"].contains(&flag.as_str()));
    let usage = text(ContextKind::Usage).filter(|usage| usage.contains("<COMMAND>"));
    if let (Some(flag), Some(_)) = (flag, usage) {
        let tip = format!("it belongs after the command, such as `expertise list {flag} …`");
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Changes the command that runs: the program itself if no subcommand is named.
fn in_active(
    program: clap::Command,
    active: Option<&str>,
    change: impl Fn(clap::Command) -> clap::Command,
) -> clap::Command {
    match active {
        None => change(program),
        Some(name) => program.mut_subcommands(|command| match command.get_name() == name {
            true => change(command),
            false => command,
        }),
    }
}

/// A value that clap refuses.
struct Refusal {
    fault: String,
    /// The setting, unless the value is from the command line.
    replaceable_setting: Option<String>,
}

impl Refusal {
    fn new(error: &clap::Error, command: &clap::Command, file: &SettingsFile) -> Option<Self> {
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        // `--flag <UNIT>` or, of an argument without a flag, `<UNIT>`.
        let argument = context(ContextKind::InvalidArg)?.split(' ').next()?;
        let text = context(ContextKind::InvalidValue)?;
        let expected = match (error.kind(), error.get(ContextKind::ValidValue)) {
            (ErrorKind::ValueValidation, _) => error.source()?.to_string(),
            (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) => alternatives(values),
            _ => return None,
        };
        let flag = argument.strip_prefix("--");
        let setting = command
            .get_arguments()
            .find(|it| it.get_long() == flag && flag.is_some());
        let key = setting.map(|setting| setting.get_id().as_str());
        let in_environment = setting.and_then(Arg::get_env).filter(|variable| {
            env::var_os(variable).is_some_and(|value| value.to_string_lossy() == text)
        });
        let has_default = setting.is_some_and(|it| !it.get_default_values().is_empty());
        let in_file = key.filter(|key| has_default && file.text(key) == Some(text));
        let name = match (in_environment, in_file) {
            (Some(variable), _) => variable.to_string_lossy().into_owned(),
            (None, Some(key)) => file.name(key),
            (None, None) => without_brackets(argument).to_owned(),
        };
        let is_given_elsewhere = in_environment.is_some() || in_file.is_some();
        Some(Self {
            fault: format!("{name} is {}: it must be {expected}", shown(setting, text)),
            replaceable_setting: key.filter(|_| is_given_elsewhere).map(str::to_owned),
        })
    }
}

/// The name of an argument: of `<NAME>`, `<NAME>...` and `[NAME]`.
fn without_brackets(argument: &str) -> &str {
    let argument = argument.trim_end_matches('.');
    let inside = |open, close| argument.strip_prefix(open)?.strip_suffix(close);
    inside('<', '>')
        .or_else(|| inside('[', ']'))
        .unwrap_or(argument)
}

/// `a, b or c`.
fn alternatives(values: &[String]) -> String {
    match values.split_last() {
        None => "left out, or set to a value".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// A value for messages.
fn shown(setting: Option<&Arg>, text: &str) -> String {
    match setting.map_or_else(|| database_url::mask(text), |setting| masked(setting, text)) {
        _ if text.is_empty() => "empty".to_owned(),
        masked if masked == MASK => masked,
        masked => format!("{masked:?}"),
    }
}

/// A value without secrets. What may hold one follows from the type of the setting.
fn masked(setting: &Arg, text: &str) -> String {
    let value_type = setting.get_value_parser().type_id();
    let is = |secret: TypeId| value_type == secret;
    match is(TypeId::of::<Secret>()) || is(TypeId::of::<SigningSecret>()) {
        true => MASK.to_owned(),
        false if text.contains('@') || is(TypeId::of::<DatabaseUrl>()) => database_url::mask(text),
        false => text.to_owned(),
    }
}

/// `EXPERTISE_*` variables that are not settings, except those that Kubernetes makes for Services.
fn unknown_variables(program: &clap::Command) -> Vec<String> {
    let known: Vec<String> = program
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .filter_map(Arg::get_env)
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let fault = |(name, value): (OsString, OsString)| {
        let name = name.to_str().filter(|name| name.starts_with(PREFIX))?;
        match known.iter().any(|known| known == name) {
            true if value.to_str().is_some() => None,
            true => Some(format!("{name} is not text: it must be UTF-8")),
            false if NON_SETTINGS.contains(&name) || name.starts_with(TEST_PREFIX) => None,
            false if is_made_by_kubernetes(name, &value.to_string_lossy()) => None,
            false => Some(unknown(&name.escape_debug(), name, &known)),
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
fn unknown(shown: &dyn Display, name: &str, known: &[String]) -> String {
    let known = || known.iter().map(String::as_str);
    let closest = closest(name, known()).or_else(|| known().find(|known| known.starts_with(name)));
    match closest {
        Some(closest) => format!("{shown} is not a setting: did you mean {closest}?"),
        None => format!("{shown} is not a setting: {HELP}"),
    }
}

/// The settings of a server.
fn server_settings() -> Vec<Arg> {
    let command = ServerSettings::augment_args(clap::Command::new("settings"));
    command.get_arguments().cloned().collect()
}

/// The settings of a server as a settings file, with the source of each. What is unset is left
/// out, but for `auth`, whose default is not one value.
fn effective_settings(matches: &ArgMatches, file: &SettingsFile) -> String {
    let line = |setting: Arg| {
        let key = setting.get_id().as_str();
        let text = matches.get_raw(key).and_then(|mut texts| texts.next());
        let text = match text {
            Some(text) => masked(&setting, &text.to_string_lossy()),
            None if key == "auth" => "header".to_owned(),
            None => return None,
        };
        let source = match matches.value_source(key) {
            Some(ValueSource::CommandLine) => "flag".to_owned(),
            Some(ValueSource::EnvVariable) => "environment".to_owned(),
            _ if file.text(key).is_some() => format!("file {}", file.path.display()),
            _ => "default".to_owned(),
        };
        let is_bare = text
            .parse::<i64>()
            .is_ok_and(|number| number.to_string() == text)
            || text.parse::<bool>().is_ok();
        let assignment = match is_bare {
            true => format!("{key} = {text}"),
            false => format!("{key} = {text:?}"),
        };
        Some(format!("{assignment:<50} # {source}\n"))
    };
    server_settings().into_iter().filter_map(line).collect()
}

/// The settings in the TOML file of `--config`.
#[derive(Default)]
struct SettingsFile {
    path: PathBuf,
    texts: BTreeMap<String, String>,
}

impl SettingsFile {
    /// Reads the file of `--config`, whose values become defaults of the command line that names it.
    fn from_command_line(args: &[OsString]) -> (Self, Vec<String>) {
        let mut args = args.iter().take_while(|arg| *arg != "--");
        let path = args.by_ref().find_map(|arg| {
            let arg = arg.to_str()?;
            (arg == "--config")
                .then_some(None)
                .or_else(|| arg.strip_prefix("--config=").map(Some))
        });
        match path.and_then(|path| {
            path.map(PathBuf::from)
                .or_else(|| args.next().map(PathBuf::from))
        }) {
            None => (Self::default(), Vec::new()),
            Some(path) => Self::read(path.clone()).unwrap_or_else(|reason| {
                let fault = wrong("--config", path.display(), "a readable TOML file");
                (Self::default(), vec![format!("{fault}: {reason}")])
            }),
        }
    }

    /// The settings of a file, and what is wrong with some of them; or why there are none.
    fn read(path: PathBuf) -> Result<(Self, Vec<String>), String> {
        let text = files::read(&path).map_err(|error| error.to_string())?;
        let text = String::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
        let table: toml::Table = text.parse().map_err(|error| toml_reason(&text, &error))?;
        let known: Vec<String> = server_settings()
            .iter()
            .map(|setting| setting.get_id().to_string())
            .collect();
        let mut faults = Vec::new();
        let mut file = Self {
            path,
            texts: BTreeMap::new(),
        };
        for (key, value) in table {
            let name = file.name(&key);
            match value {
                _ if !known.contains(&key) => faults.push(unknown(&name, &key, &known)),
                toml::Value::String(text) => drop(file.texts.insert(key, text)),
                toml::Value::Integer(number) => drop(file.texts.insert(key, number.to_string())),
                toml::Value::Boolean(truth) => drop(file.texts.insert(key, truth.to_string())),
                _ => faults.push(format!(
                    "{name} is of type {}: it must be a string, a whole number or a boolean",
                    value.type_str()
                )),
            }
        }
        Ok((file, faults))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// A key as messages name it.
    fn name(&self, key: &str) -> String {
        format!("{key} in {}", self.path.display())
    }

    fn set_defaults(&self, command: clap::Command) -> clap::Command {
        command.mut_args(|setting| match self.text(setting.get_id().as_str()) {
            // Help would print the default, which may be a secret.
            Some(text) => setting
                .default_value(text.to_owned())
                .hide_default_value(true),
            None => setting,
        })
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
