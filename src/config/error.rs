//! What is wrong with a command line or with settings.

use std::path::PathBuf;

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is invalid, or requests help or the version.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// Settings are wrong: the first of them, or for `config --check` all.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Settings(Vec<WrongSetting>),
}

impl From<WrongSetting> for ConfigError {
    fn from(wrong: WrongSetting) -> Self {
        Self::Settings(vec![wrong])
    }
}

/// What is wrong with a setting. A display is one line without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongSetting {
    /// The value is not one of those allowed.
    #[error("{setting} is {value}: it must be {expected}")]
    Value {
        /// The setting as the user named it.
        setting: String,
        /// The value, quoted, secrets masked.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A page of the manual for an unknown subcommand.
    #[error("{0:?} is not a subcommand: `expertise --help` lists them")]
    NoCommand(String),
    /// A name that is not a setting: a key of the file, or a variable of the environment
    /// that is named almost like one.
    #[error("{name} is not a setting: {}", advice(.closest.as_deref()))]
    Unknown {
        /// The name, and the file that it is in.
        name: String,
        /// The setting with the closest name, as it is written there.
        closest: Option<String>,
    },
    /// The file cannot be read.
    #[error("--config is {path:?}: it must be a readable TOML file: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
}

fn advice(closest: Option<&str>) -> String {
    match closest {
        Some(closest) => format!("did you mean {closest}?"),
        None => "`expertise --help` lists them".to_owned(),
    }
}
