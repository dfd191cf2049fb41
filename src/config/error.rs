//! What is wrong with a command line or with settings.

use std::{fmt, path::PathBuf};

/// Why nothing was started. A display is one line for each wrong setting.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is invalid, or requests help or the version.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// Settings are wrong.
    #[error(transparent)]
    Settings(#[from] WrongSettings),
}

impl From<WrongSetting> for ConfigError {
    fn from(wrong: WrongSetting) -> Self {
        Self::Settings(WrongSettings(vec![wrong]))
    }
}

/// Every wrong setting, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrongSettings(Vec<WrongSetting>);

impl WrongSettings {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &WrongSetting> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what is wrong, unless something is known to be wrong with the same setting:
    /// the rest may follow from that.
    pub(super) fn add(&mut self, wrong: WrongSetting) {
        let setting = wrong.setting();
        let is_known = |known: &WrongSetting| {
            *known == wrong || setting.is_some() && known.setting() == setting
        };
        if !self.0.iter().any(is_known) {
            self.0.push(wrong);
        }
    }
}

impl fmt::Display for WrongSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, wrong) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{wrong}")?;
        }
        Ok(())
    }
}

impl std::error::Error for WrongSettings {}

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
    /// A setting of the server was given to a command that does not read it.
    #[error("{flag} is a setting of the server: leave it out of `{command}`")]
    NotOfCommand {
        /// The flag.
        flag: String,
        /// The subcommand.
        command: String,
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

impl WrongSetting {
    /// The setting whose value is wrong.
    fn setting(&self) -> Option<&str> {
        match self {
            Self::Value { setting, .. } => Some(setting),
            Self::NotOfCommand { .. }
            | Self::NoCommand(_)
            | Self::Unknown { .. }
            | Self::File { .. } => None,
        }
    }
}

fn advice(closest: Option<&str>) -> String {
    match closest {
        Some(closest) => format!("did you mean {closest}?"),
        None => "`expertise --help` lists them".to_owned(),
    }
}
