//! Settings: the only reader of the environment and of the settings file.
//!
//! Flags win over the environment, the environment over the file, the file over
//! defaults. Each setting is one documented field, marked by `env`, from which its flag, its
//! variable, its key in the file and docs/configuration.md are generated.

mod analysis_command;
mod auth;
mod client_command;
mod command_line;
mod connection;
mod database_url;
mod enum_arguments;
mod examples;
mod read;
mod server;
mod translate;
mod value;

pub use self::{
    analysis_command::{GraphArgs, GraphFormat, GuideArg, LintArgs, PreviewArgs, ReferencesArgs},
    auth::{AuthMode, KeySource, SigningKey, TokenGrant, TokenRules, TokenSigning},
    client_command::{
        AliasArgs, ApplyArgs, ChangesArgs, ChangesStart, ClientCommand, ClientCommandConfig,
        DeleteArgs, DiffArgs, EditArgs, ExportArgs, Format, GuideRef, HistoryArgs, ImportArgs,
        KeepArgs, ListFilters, RestoreArgs, RevisionRef, ShowArgs, TaskRef,
    },
    command_line::{Command, NewArgs, command_line},
    connection::{ConnectionConfig, Credentials, HealthConfig, RetrySettings, Trust},
    database_url::{DatabaseUrl, PostgresUrl},
    read::{ConfigError, Valid},
    server::{
        Config, DEFAULT_MAX_MESSAGE_BYTES, DatabaseCommandConfig, DatabaseConfig, HistoryConfig,
        LimitsConfig, LogConfig, LogFormat, ServerSettings, TableLayout, TelemetryConfig, Tls,
    },
    translate::{EngineKind, TranslateConfig},
    value::{MASK, Secret},
};
