//! Reads settings. A setting is one field of a struct that derives `clap::Args`: its id
//! is the key in the file, and flag and environment name derive from it. Unit, default,
//! check and help are its attributes and comment. What is masked follows from its type.

use std::{
    any::TypeId,
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
    path::{Path, PathBuf},
};

use clap::{
    Arg, Args, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    AuthMode, ConfigError, DatabaseUrl, MASK, PostgresUrl, Secret, SigningSecret, WrongSetting,
    WrongSettings, database_url,
    flags::Flags,
    names::{PREFIX, Variables, closest_key},
};
use crate::files;

/// The environment that settings are read from.
pub(super) type Environment<'a> = &'a Variables;

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

pub(super) fn default_text(setting: &Arg) -> Option<String> {
    let default = setting.get_default_values().first()?;
    Some(default.to_string_lossy().into_owned())
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

/// Every setting that was given, by its key, and what is wrong with them. What is taken
/// later replaces what was taken before, so the strongest source must be taken last.
#[derive(Default)]
pub(super) struct SettingValues {
    given: BTreeMap<String, GivenValue>,
    /// The keys of settings whose text was refused.
    invalid: BTreeSet<String>,
    wrong: WrongSettings,
}

impl SettingValues {
    /// Takes the settings of `A` from a TOML file, which may hold no others.
    pub fn take_file<A: Args>(&mut self, path: PathBuf) {
        let table = match read_file(&path) {
            Ok(table) => table,
            Err(reason) => return self.wrong.add(WrongSetting::File { path, reason }),
        };
        let origin = SettingOrigin::File(path);
        let settings = settings::<A>();
        for (name, value) in table {
            let Some(setting) = settings.iter().find(|setting| key(setting) == name) else {
                self.wrong.add(WrongSetting::Unknown {
                    name: origin.name(&name),
                    closest: closest_key::<A>(&name),
                });
                continue;
            };
            match toml_text(&value) {
                Some(text) => self.take(setting, origin.clone(), text),
                None => self.wrong.add(WrongSetting::Value {
                    setting: origin.name(&name),
                    value: format!("of type {}", value.type_str()),
                    expected: "a string, a number or a boolean".to_owned(),
                }),
            }
        }
    }

    /// Takes the settings of `A` from the environment. A variable that is named almost like
    /// one of them is refused.
    pub fn take_environment<A: Args>(&mut self, environment: Environment<'_>) {
        let settings = settings::<A>();
        for setting in &settings {
            let name = environment_name(key(setting));
            let Some(text) = environment.get(&name) else {
                continue;
            };
            match text.clone().into_string() {
                Ok(text) => self.take(setting, SettingOrigin::Environment, text),
                Err(_) => self.wrong.add(WrongSetting::Value {
                    setting: name,
                    value: "not text".to_owned(),
                    expected: "UTF-8".to_owned(),
                }),
            }
        }
        let is_read = |name: &String| settings.iter().any(|it| environment_name(key(it)) == *name);
        for (name, closest) in environment.unknown() {
            if closest.as_ref().is_some_and(is_read) {
                let name = name.to_owned();
                self.wrong.add(WrongSetting::Unknown { name, closest });
            }
        }
    }

    /// Takes the settings of `A` from flags. Flags of other settings are ignored.
    pub fn take_flags<A: Args, B>(&mut self, flags: &Flags<B>) {
        for setting in settings::<A>() {
            if let Some(text) = flags.text(key(&setting)) {
                self.take(&setting, SettingOrigin::Flag, text.to_owned());
            }
        }
    }

    fn take(&mut self, setting: &Arg, origin: SettingOrigin, text: String) {
        let given = GivenValue {
            shown: masked(setting, &text),
            origin,
            text,
        };
        self.given.insert(key(setting).to_owned(), given);
    }

    /// Drops every setting but these.
    pub fn retain(&mut self, keys: &[&str]) {
        self.given.retain(|key, _| keys.contains(&key.as_str()));
    }

    /// Where the value of a setting came from; `None` for a default.
    pub fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.given.get(key).map(|given| &given.origin)
    }

    /// The text of a setting that was given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(|given| given.text.as_str())
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
    /// user named it.
    pub fn with_names_as_given(&self, text: &str) -> String {
        let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let mut named = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(PREFIX) {
            let (before, from_name) = rest.split_at(start);
            let end = from_name.find(|c: char| !is_of_name(c));
            let (name, after) = from_name.split_at(end.unwrap_or(from_name.len()));
            let key = name.trim_start_matches(PREFIX).to_ascii_lowercase();
            named.push_str(before);
            named.push_str(&self.named(&key).unwrap_or_else(|| name.to_owned()));
            rest = after;
        }
        named + rest
    }

    /// Whether a setting has its default or a text that was accepted.
    pub fn is_valid(&self, key: &str) -> bool {
        !self.invalid.contains(key)
    }

    /// Checks the settings of `A`, applies their defaults, and makes a value of them.
    /// What `make` gets has the defaults in place of what was refused, so that it can find
    /// what else is wrong. Fails with all that is wrong.
    pub fn read<A: Args, T>(
        &mut self,
        make: impl FnOnce(A, &mut Self) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let settings = self.parse()?;
        match make(settings, self) {
            Some(made) if self.wrong.is_empty() => Ok(made),
            Some(_) | None => Err(self.wrong.clone().into()),
        }
    }

    /// The settings of `A`, with defaults in place of what is refused.
    fn parse<A: Args>(&mut self) -> Result<A, ConfigError> {
        let command = A::augment_args(Command::new("settings"))
            .no_binary_name(true)
            .disable_help_flag(true)
            .mut_args(|setting| {
                let long = key(&setting).replace('_', "-");
                setting.long(long)
            });
        loop {
            let flags = command.get_arguments().filter_map(|setting| {
                let key = key(setting);
                let given = self.given.get(key).filter(|_| self.is_valid(key))?;
                Some(format!("{}={}", flag(key), given.text))
            });
            let flags: Vec<String> = flags.collect();
            let error = match command.clone().try_get_matches_from(flags) {
                Ok(matches) => return Ok(A::from_arg_matches(&matches)?),
                Err(error) => error,
            };
            let Some((flag, _, expected)) = value_error(&error) else {
                return Err(error.into());
            };
            let key = flag.trim_start_matches('-').replace('-', "_");
            self.refuse(&key, expected);
            if !self.invalid.insert(key) {
                return Err(error.into());
            }
        }
    }

    /// Records an error, or returns the value.
    pub fn record<T>(&mut self, result: Result<T, WrongSetting>) -> Option<T> {
        result.map_err(|wrong| self.wrong.add(wrong)).ok()
    }

    /// Records that a setting's value is wrong.
    pub fn refuse(&mut self, key: &str, expected: impl fmt::Display) {
        let wrong = self.wrong(key, expected);
        self.wrong.add(wrong);
    }

    /// The error of a wrong value, with what would be right.
    pub fn wrong(&self, key: &str, expected: impl fmt::Display) -> WrongSetting {
        let (setting, value) = match self.given.get(key) {
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

    /// The settings of `A` as a settings file, with the origin of each. What is
    /// unset is left out, but for `auth`, whose default is not one value.
    pub fn effective<A: Args>(&self, auth: &AuthMode) -> String {
        let lines = settings::<A>().into_iter().filter_map(|setting| {
            let key = key(&setting);
            let (text, origin) = match self.given.get(key) {
                Some(given) => (given.shown.clone(), given.origin.to_string()),
                None => {
                    let auth = || (key == "auth").then(|| auth.to_string());
                    (default_text(&setting).or_else(auth)?, "default".to_owned())
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
pub(super) fn value_error(error: &clap::Error) -> Option<(String, String, String)> {
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
        toml::Value::Float(_)
        | toml::Value::Datetime(_)
        | toml::Value::Array(_)
        | toml::Value::Table(_) => None,
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
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message.to_owned(),
    }
}
