//! The settings in the TOML file of `--config`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Arg, Args};

use super::{
    read::{unknown, wrong},
    server::server_settings,
};
use crate::files;

/// The flag of the commands that read the settings of a server.
#[derive(Clone, Debug, PartialEq, Args)]
#[group(skip)]
pub struct SettingsFileArg {
    /// A TOML file of settings; its keys are the names of the flags, with _ instead of -
    #[arg(long, value_name = "FILE", help_heading = None::<&str>)]
    config: Option<PathBuf>,
}

#[derive(Default)]
pub struct SettingsFile {
    path: PathBuf,
    texts: BTreeMap<String, String>,
}

impl SettingsFile {
    /// Reads the file, and finds its problems.
    pub fn read(path: &OsString) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let mut file = Self {
            path: path.into(),
            texts: BTreeMap::new(),
        };
        let table = read_table(&file.path).unwrap_or_else(|reason| {
            let expected = format!("a readable TOML file: {reason}");
            faults.push(wrong("--config", file.path.display(), expected));
            toml::Table::new()
        });
        let settings = server_settings();
        let known: Vec<&str> = settings.iter().map(|it| it.get_id().as_str()).collect();
        for (key, value) in table {
            let name = file.name(&key);
            let text = match value {
                _ if !known.contains(&key.as_str()) => {
                    faults.push(unknown(name, &key, &known));
                    continue;
                }
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(truth) => truth.to_string(),
                _ => {
                    faults.push(format!(
                        "{name} is of type {}: it must be a string, a whole number or a boolean",
                        value.type_str()
                    ));
                    continue;
                }
            };
            file.texts.insert(key, text);
        }
        (file, faults)
    }

    /// A key as messages name it.
    pub fn name(&self, key: &str) -> String {
        format!("{key} in {}", self.path.display())
    }

    /// What the file sets a key to.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    pub fn set_default(&self, setting: Arg) -> Arg {
        match self.text(setting.get_id().as_str()) {
            Some(text) => setting.default_value(text.to_owned()),
            None => setting,
        }
    }
}

fn read_table(path: &Path) -> Result<toml::Table, String> {
    let text = files::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| "it is not UTF-8")?;
    text.parse().map_err(|error| toml_reason(&text, &error))
}

/// The parser's message on one line, without the text around it, which may hold a secret.
fn toml_reason(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().next().unwrap_or("not TOML");
    let hint = match message {
        "duplicate key" => "set each key once",
        _ => "a value other than a whole number, true or false needs quotes, as in listen = \"…\"",
    };
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!(
            "line {}: {message}; {hint}",
            before.matches('\n').count() + 1
        ),
        None => message.to_owned(),
    }
}
