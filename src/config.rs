//! Settings: the only reader of the environment and of the settings file.
//!
//! Flags win over the environment, the environment over the file, the file over defaults. Each
//! setting is one documented field, marked by `env`, from which its flag, its variable, its key in
//! the file and docs/configuration.md are generated.

mod auth;
mod connection;
mod database_url;
mod names;
mod read;
mod server;
mod settings_file;
mod translate;
pub mod value;

pub use self::{
    auth::{AuthMode, KeySource, SigningSettings, TokenConfig, TokenGrant},
    connection::{ConnectionConfig, HealthConfig, RetrySettings, Trust},
    database_url::{DatabaseUrl, PostgresUrl},
    names::with_uniform_names,
    read::{ConfigError, effective_settings, read},
    server::{
        Config, DEFAULT_MAX_MESSAGE_BYTES, DatabaseCommandConfig, DatabaseConfig, HistoryConfig,
        LimitsConfig, LogConfig, LogFormat, ServerSettings, TableLayout, TelemetryConfig, Tls,
        server_settings,
    },
    translate::{EngineKind, TranslateConfig, TranslationConfig},
    value::{MASK, Secret, TaskRef},
};
