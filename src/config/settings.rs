//! Reads settings. A setting is one field of a struct that derives `clap::Args`: its id
//! is the key in the file, and flag and environment name derive from it. Unit, default,
//! check and help are its attributes and comment. What is masked follows from its type.

use std::{
    any::TypeId,
    collections::BTreeMap,
    error::Error,
    fmt,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgMatches, Args, Command, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    AuthMode, ConfigError, DatabaseUrl, MASK, PostgresUrl, Secret, ServerSettings, SigningSecret,
    WrongSetting, database_url,
    names::{PREFIX, Variables, all_settings, closest_key},
};
use crate::files;

/// The settings of `A`, in the order of its fields.
pub(super) fn settings<A: Args>() -> Vec<Arg> {
    let command = A::augment_args(Command::new("settings"));
    command.get_arguments().cloned().collect()
}

pub(super) fn key(setting: &Arg) -> &str {
    setting.get_id().as_str()
}

/// `--like-this`.
pub(super) fn flag(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// `EXPERTISE_LIKE_THIS`.
pub(super) fn environment_name(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase())
}

/// The settings of `A` as flags, whose help names their variables.
pub(super) struct Flags<A>(pub A);

impl<A: Args> Args for Flags<A> {
    fn augment_args(command: Command) -> Command {
        let flags = settings::<A>().into_iter().map(|setting| {
            let long = key(&setting).replace('_', "-");
            let about = setting.get_help().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let name = environment_name(key(&setting));
            let help = match about.split_once(" [default: ") {
                Some((about, default)) => format!("{about} [{name}] [default: {default}"),
                None => format!("{about} [{name}]"),
            };
            let heading = setting.get_help_heading().unwrap_or("Settings").to_owned();
            setting.long(long).help(help).help_heading(heading)
        });
        command.args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: Args> FromArgMatches for Flags<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettingOrigin {
    Flag,
    Environment,
    File(PathBuf),
}

impl SettingOrigin {
    /// A setting as the user named it.
    fn name(&self, key: &str) -> String {
        match self {
            Self::Flag => flag(key),
            Self::Environment => environment_name(key),
            Self::File(path) => format!("{key} in {}", path.display()),
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment => f.write_str("environment"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

struct GivenValue {
    origin: SettingOrigin,
    text: String,
    /// The text as messages may repeat it: without secrets.
    shown: String,
}

/// Every setting that was given, by its key. What is taken later replaces what was taken
/// before, so the strongest source must be taken last.
#[derive(Default)]
pub(super) struct GivenSettings(BTreeMap<String, GivenValue>);

impl GivenSettings {
    /// Takes settings from a TOML file, which may hold all of a server and no others.
    pub fn take_file(&mut self, path: &Path, settings: &[Arg]) -> Result<(), WrongSetting> {
        let table = read_file(path).map_err(|reason| WrongSetting::File {
            path: path.to_owned(),
            reason,
        })?;
        let origin = SettingOrigin::File(path.to_owned());
        let known = self::settings::<ServerSettings>();
        for (name, value) in table {
            if !known.iter().any(|setting| key(setting) == name) {
                return Err(WrongSetting::Unknown {
                    name: origin.name(&name),
                    closest: closest_key(&name, &known),
                });
            }
            let text = toml_text(&value).ok_or_else(|| WrongSetting::Value {
                setting: origin.name(&name),
                value: format!("of type {}", value.type_str()),
                expected: "a string, a number or a boolean".to_owned(),
            })?;
            if let Some(setting) = settings.iter().find(|setting| key(setting) == name) {
                self.take(setting, origin.clone(), text);
            }
        }
        Ok(())
    }

    /// Takes settings from the environment. A variable that is named almost like one of them
    /// is refused.
    pub fn take_environment(
        &mut self,
        environment: &Variables,
        settings: &[Arg],
    ) -> Result<(), WrongSetting> {
        let is_read = |name: &String| settings.iter().any(|it| environment_name(key(it)) == *name);
        for (name, closest) in environment.unknown() {
            if closest.as_ref().is_some_and(is_read) {
                let name = name.to_owned();
                return Err(WrongSetting::Unknown { name, closest });
            }
        }
        for setting in settings {
            let name = environment_name(key(setting));
            let Some(text) = environment.get(&name) else {
                continue;
            };
            let text = text.to_str().ok_or_else(|| WrongSetting::Value {
                setting: name,
                value: "not text".to_owned(),
                expected: "UTF-8".to_owned(),
            })?;
            self.take(setting, SettingOrigin::Environment, text.to_owned());
        }
        Ok(())
    }

    /// Takes the settings that were given as flags.
    pub fn take_flags(&mut self, matches: &ArgMatches, settings: &[Arg]) {
        for setting in settings {
            let key = key(setting);
            let is_flag = matches.value_source(key) == Some(ValueSource::CommandLine);
            let text = matches.get_raw(key).and_then(|mut texts| texts.next());
            if let Some(text) = text.filter(|_| is_flag) {
                let text = text.to_string_lossy().into_owned();
                self.take(setting, SettingOrigin::Flag, text);
            }
        }
    }

    fn take(&mut self, setting: &Arg, origin: SettingOrigin, text: String) {
        let given = GivenValue {
            shown: masked(setting, &text),
            origin,
            text,
        };
        self.0.insert(key(setting).to_owned(), given);
    }

    /// The command with what was given in place of the defaults of its settings.
    pub fn as_defaults(&self, command: Command) -> Command {
        command.mut_args(|setting| match self.0.get(key(&setting)) {
            Some(given) => setting.default_value(given.text.clone()),
            None => setting,
        })
    }

    /// Where the value of a setting came from; `None` for a default.
    pub fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.0.get(key).map(|given| &given.origin)
    }

    /// The text of a setting that was given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|given| given.text.as_str())
    }

    /// A setting that was given, as the user named it.
    pub fn named(&self, key: &str) -> Option<String> {
        self.origin(key).map(|origin| origin.name(key))
    }

    /// A setting as the user named it, or else by its name in the environment.
    pub fn name(&self, key: &str) -> String {
        self.named(key).unwrap_or_else(|| environment_name(key))
    }

    /// Replaces the names of environment variables in a text: each setting is named as the
    /// user named it. Of two names that begin alike, the longer one comes first.
    pub fn with_names_as_given(&self, text: &str) -> String {
        let given = self.0.iter().rev();
        given.fold(text.to_owned(), |text, (key, given)| {
            text.replace(&environment_name(key), &given.origin.name(key))
        })
    }

    /// The error of a wrong value, with what would be right.
    pub fn wrong(&self, key: &str, expected: impl fmt::Display) -> WrongSetting {
        let (setting, value) = match self.0.get(key) {
            Some(given) if given.text.is_empty() => (given.origin.name(key), "empty".to_owned()),
            Some(given) if given.shown == MASK => (given.origin.name(key), MASK.to_owned()),
            Some(given) => (given.origin.name(key), format!("{:?}", given.shown)),
            None => (environment_name(key), "unset".to_owned()),
        };
        WrongSetting::Value {
            setting,
            value,
            expected: expected.to_string(),
        }
    }

    /// The error of a setting that is unset though one that needs it is given.
    pub fn unset_though_given(&self, missing: &str, given: &str) -> WrongSetting {
        let given = self.named(given).unwrap_or_default();
        self.wrong(missing, format!("set too, as {given} is set"))
    }

    /// The error of a command line, with each other setting that is wrong in the environment or the
    /// file: the command line is read again without those that are known to be.
    pub fn every_refusal(
        mut self,
        mut error: clap::Error,
        read: impl Fn(&Self) -> Result<ArgMatches, clap::Error>,
    ) -> ConfigError {
        let mut wrong = Vec::new();
        loop {
            let argument = value_error(&error).map(|(argument, ..)| argument);
            match self.refusal(error) {
                ConfigError::Settings(settings) => wrong.extend(settings),
                other => return other,
            }
            let given = self.0.extract_if(.., |key, _| Some(flag(key)) == argument);
            let is_in_command_line = given.map(|(_, given)| given.origin == SettingOrigin::Flag);
            match (is_in_command_line.last(), read(&self)) {
                (Some(false), Err(next)) => error = next,
                _ => return ConfigError::Settings(wrong),
            }
        }
    }

    /// The error of a command line. A setting whose wrong text was not given elsewhere has it
    /// from a flag.
    pub fn refusal(&mut self, error: clap::Error) -> ConfigError {
        let Some((argument, text, expected)) = value_error(&error) else {
            return ConfigError::Usage(error);
        };
        let settings = all_settings();
        let wrong = match settings.iter().find(|it| flag(key(it)) == argument) {
            Some(setting) => {
                if self.text(key(setting)) != Some(&text) {
                    self.take(setting, SettingOrigin::Flag, text);
                }
                self.wrong(key(setting), expected)
            }
            None => WrongSetting::Value {
                setting: argument,
                value: match text.contains("://") {
                    true => format!("{:?}", database_url::mask(&text)),
                    false => format!("{text:?}"),
                },
                expected,
            },
        };
        wrong.into()
    }

    /// The settings of a server as a settings file, with the origin of each. What is
    /// unset is left out, but for `auth`, whose default is not one value.
    pub fn effective(&self, auth: &AuthMode) -> String {
        let lines = settings::<ServerSettings>()
            .into_iter()
            .filter_map(|setting| {
                let key = key(&setting);
                let (text, origin) = match self.0.get(key) {
                    Some(given) => (given.shown.clone(), given.origin.to_string()),
                    None => {
                        let default = setting.get_default_values().first();
                        let default = default.map(|text| text.to_string_lossy().into_owned());
                        let auth = || (key == "auth").then(|| auth.to_string());
                        (default.or_else(auth)?, "default".to_owned())
                    }
                };
                let is_number = text
                    .parse()
                    .is_ok_and(|number: i64| number.to_string() == text);
                let value = match is_number || text.parse::<bool>().is_ok() {
                    true => text,
                    false => format!("{text:?}"),
                };
                let assignment = format!("{key} = {value}");
                Some(format!("{assignment:<50} # {origin}\n"))
            });
        lines.collect()
    }
}

/// The argument, its text and what would be right, when its value was refused.
fn value_error(error: &clap::Error) -> Option<(String, String, String)> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    // `--flag <UNIT>` or, of an argument without a flag, `<UNIT>`.
    let argument = text(ContextKind::InvalidArg)?;
    let name = argument.split(' ').next()?.trim_matches(['<', '>', '.']);
    let expected = match error.kind() {
        ErrorKind::ValueValidation => error.source()?.to_string(),
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue)? {
            ContextValue::Strings(values) => alternatives(values)?,
            _ => return None,
        },
        _ => return None,
    };
    Some((name.to_owned(), text(ContextKind::InvalidValue)?, expected))
}

/// `a, b or c`.
fn alternatives(values: &[String]) -> Option<String> {
    Some(match values.split_last()? {
        (last, []) => last.clone(),
        (last, others) => format!("{} or {last}", others.join(", ")),
    })
}

/// A value without secrets. What may hold one follows from the type of the setting.
fn masked(setting: &Arg, text: &str) -> String {
    let value_type = setting.get_value_parser().type_id();
    let is_one_of = |types: [TypeId; 2]| types.iter().any(|it| value_type == *it);
    if is_one_of([TypeId::of::<Secret>(), TypeId::of::<SigningSecret>()]) {
        MASK.to_owned()
    } else if text.contains('@')
        || is_one_of([TypeId::of::<DatabaseUrl>(), TypeId::of::<PostgresUrl>()])
    {
        database_url::mask(text)
    } else {
        text.to_owned()
    }
}

fn toml_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// The settings of a file, or why there are none.
fn read_file(path: &Path) -> Result<toml::Table, String> {
    let text = files::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    text.parse().map_err(|error| toml_reason(&text, &error))
}

/// The parser's message on one line, without the text around it, which may hold a secret.
fn toml_reason(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().next().unwrap_or("not TOML");
    let before = error.span().and_then(|span| text.get(..span.start));
    let Some(before) = before else {
        return message.to_owned();
    };
    let index = before.matches('\n').count();
    let unquoted = text.lines().nth(index).and_then(unquoted_setting);
    let message = unquoted.map_or(message.to_owned(), |key| {
        format!(
            "the value of {key} is neither a number nor true or false: write it in quotes, as in \
             {key} = \"…\""
        )
    });
    format!("line {}: {message}", index + 1)
}

/// The setting of a line of TOML whose value needs quotes and has none.
fn unquoted_setting(line: &str) -> Option<&str> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let has_quotes = value.is_empty() || value.starts_with(['"', '\'', '[', '{']);
    let is_setting = settings::<ServerSettings>()
        .iter()
        .any(|it| key(it) == name);
    (is_setting && !has_quotes && line.parse::<toml::Table>().is_err()).then_some(name)
}
