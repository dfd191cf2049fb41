//! Gathers what was set, and where.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, parser::ValueSource};

use super::{
    MASK, WrongSetting, connection, database_url,
    table::{self, Fallback, Setting},
    translate,
};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    Environment,
    File(PathBuf),
}

impl Origin {
    /// A setting as the user named it.
    fn name(&self, key: &str) -> String {
        match self {
            Self::Flag => table::flag(key),
            Self::Environment => table::env(key),
            Self::File(path) => format!("{key} in {}", path.display()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment => f.write_str("environment"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

struct Given {
    origin: Origin,
    text: String,
}

/// Every setting that was set, from its strongest source.
pub(super) struct Values(BTreeMap<&'static str, Given>);

impl Values {
    /// Gathers flags, of the program and over them of its subcommand, over
    /// environment over file.
    pub fn gather(
        flags: &[&ArgMatches],
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, WrongSetting> {
        let mut values = Self(BTreeMap::new());
        let file = |flags: &&ArgMatches| given::<PathBuf>(flags, table::CONFIG_FILE);
        if let Some(path) = flags.iter().rev().find_map(file) {
            values.take_file(&path)?;
        }
        values.take_environment(&table::ALL, environment)?;
        for flags in flags {
            values.take_flags(&table::ALL, flags);
        }
        Ok(values)
    }

    /// No settings at all.
    pub fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Gathers flags over environment of settings that no file holds.
    pub fn without_file(
        settings: impl Iterator<Item = Setting>,
        flags: &ArgMatches,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, WrongSetting> {
        let settings: Vec<Setting> = settings.collect();
        let mut values = Self::none();
        values.take_environment(&settings, environment)?;
        values.take_flags(&settings, flags);
        Ok(values)
    }

    /// Where the value of a setting came from; `None` for a default.
    pub fn origin(&self, setting: &Setting) -> Option<&Origin> {
        self.0.get(setting.key).map(|given| &given.origin)
    }

    /// A setting that was set, as the user named it.
    pub fn named(&self, setting: &Setting) -> Option<String> {
        let given = self.0.get(setting.key)?;
        Some(given.origin.name(setting.key))
    }

    /// Reads a setting that was set. `parse` says what would be right.
    pub fn read<T, E: fmt::Display>(
        &self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, WrongSetting> {
        self.0
            .get(setting.key)
            .map(|given| parse(&given.text).map_err(|expected| self.wrong(setting, expected)))
            .transpose()
    }

    /// Reads a setting that was set, or else its default value.
    pub fn read_or_default<T, E: fmt::Display>(
        &self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, WrongSetting> {
        let (Fallback::Value(default) | Fallback::Depends(default)) = setting.default;
        match self.read(setting, &parse)? {
            Some(value) => Ok(value),
            None => parse(default).map_err(|expected| self.wrong(setting, expected)),
        }
    }

    /// Says that a setting's value is wrong, and what would be right.
    pub fn wrong(&self, setting: &Setting, expected: impl fmt::Display) -> WrongSetting {
        match self.0.get(setting.key) {
            Some(given) => WrongSetting::Value {
                setting: given.origin.name(setting.key),
                value: shown(setting.key, &given.text),
                expected: expected.to_string(),
            },
            None => WrongSetting::Value {
                setting: setting.env(),
                value: "unset".to_owned(),
                expected: expected.to_string(),
            },
        }
    }

    fn set(&mut self, key: &'static str, origin: Origin, text: String) {
        self.0.insert(key, Given { origin, text });
    }

    fn take_flags(&mut self, settings: &[Setting], flags: &ArgMatches) {
        for setting in settings {
            if let Some(text) = given(flags, setting.key) {
                self.set(setting.key, Origin::Flag, text);
            }
        }
    }

    fn take_environment(
        &mut self,
        settings: &[Setting],
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<(), WrongSetting> {
        for setting in settings {
            let Some(text) = environment(&setting.env()) else {
                continue;
            };
            let text = text.into_string().map_err(|_| WrongSetting::Value {
                setting: setting.env(),
                value: "not text".to_owned(),
                expected: "UTF-8".to_owned(),
            })?;
            self.set(setting.key, Origin::Environment, text);
        }
        Ok(())
    }

    fn take_file(&mut self, path: &Path) -> Result<(), WrongSetting> {
        let unreadable = |reason: String| WrongSetting::File {
            path: path.to_owned(),
            reason,
        };
        let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let table: toml::Table = text
            .parse()
            .map_err(|error| unreadable(toml_reason(&text, &error)))?;
        let origin = Origin::File(path.to_owned());
        for (key, value) in table {
            let Some(setting) = table::ALL.iter().find(|setting| setting.key == key) else {
                return Err(WrongSetting::Unknown(origin.name(&key)));
            };
            let text = plain(&value).ok_or_else(|| WrongSetting::Value {
                setting: origin.name(&key),
                value: format!("of type {}", value.type_str()),
                expected: "a string, a number or a boolean".to_owned(),
            })?;
            self.set(setting.key, origin.clone(), text);
        }
        Ok(())
    }
}

/// The value of a flag, where there is such a flag.
fn given<T: Clone + Send + Sync + 'static>(flags: &ArgMatches, name: &str) -> Option<T> {
    flags.try_get_one::<T>(name).ok().flatten().cloned()
}

/// Refuses flags that are settings of the server for a command that is none.
pub(super) fn refuse_settings(flags: &ArgMatches, command: &str) -> Result<(), WrongSetting> {
    let names = table::ALL.iter().map(|setting| setting.key);
    let mut names = names.chain([table::CONFIG_FILE]);
    let stray = names.find(|name| flags.value_source(name) == Some(ValueSource::CommandLine));
    match stray {
        Some(name) => Err(WrongSetting::Stray {
            flag: table::flag(name),
            command: command.to_owned(),
        }),
        None => Ok(()),
    }
}

/// A value as an error may repeat it: quoted, on one line, secrets masked.
fn shown(key: &str, text: &str) -> String {
    let secrets = [
        table::JWT_SECRET.key,
        connection::TOKEN.key,
        translate::ENGINE_API_KEY.key,
    ];
    let databases = [table::DATABASE_URL.key, table::DATABASE_READ_URL.key];
    if secrets.contains(&key) {
        MASK.to_owned()
    } else if text.contains('@') || databases.contains(&key) {
        format!("{:?}", database_url::mask(text))
    } else {
        format!("{text:?}")
    }
}

fn plain(value: &toml::Value) -> Option<String> {
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

/// The parser's complaint on one line, without the text around it, which may
/// hold a secret.
fn toml_reason(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().next().unwrap_or("not TOML");
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message.to_owned(),
    }
}
