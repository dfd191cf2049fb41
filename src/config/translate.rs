//! The settings of `translate`: flags over environment over defaults. The
//! settings file is the server's and holds none of them.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{
    LogConfig, TaskRef, WrongSetting,
    connection::{ConnectionConfig, ConnectionSettings},
    secret::Secret,
    settings::GivenSettings,
    value,
};
use crate::domain::translation::{Language, MAX_LANGUAGES};

/// What a run of the automatic translation needs, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslateConfig {
    /// Where the service is, and who calls it.
    pub connection: ConnectionConfig,
    /// The languages to translate into, 1 to 100.
    pub languages: Vec<Language>,
    /// The language of the source texts.
    pub source_language: Language,
    /// Only this task and its steps.
    pub task: Option<TaskRef>,
    /// The engine that translates.
    pub engine: EngineKind,
    /// Where the engine is, without a trailing slash.
    pub engine_url: String,
    /// The API key that the engine requires.
    pub engine_api_key: Option<Secret>,
    /// Requests to the engine at once, 1 to 64.
    pub parallel: usize,
    /// How long one request to the engine may take.
    pub timeout: Duration,
    /// What is logged, and how.
    pub log: LogConfig,
}

/// Which engine translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum EngineKind {
    /// LibreTranslate.
    LibreTranslate,
    /// Apertium's APY.
    Apertium,
}

impl EngineKind {
    /// Where the engine listens by default.
    fn default_url(self) -> &'static str {
        match self {
            Self::LibreTranslate => "http://127.0.0.1:5000",
            Self::Apertium => "http://127.0.0.1:2737",
        }
    }
}

#[derive(Args)]
#[command(next_help_heading = "Translation")]
pub(super) struct TranslateSettings {
    /// The languages to translate into: BCP-47 tags [default: none, it must be set]
    #[arg(value_name = "TAG,TAG", value_parser = languages)]
    languages: Option<::std::vec::Vec<Language>>,
    /// Only this task, named by its guid, or by its name if no other task has it, and its steps [default: the whole account]
    #[arg(value_name = "GUID|NAME", value_parser = value::task_ref)]
    task: Option<TaskRef>,
    /// The language that the texts are written in
    #[arg(value_name = "TAG", default_value = "en", value_parser = value::language)]
    source_language: Language,
    /// The engine that translates
    #[arg(
        value_name = "libretranslate|apertium",
        default_value = "libretranslate",
        hide_possible_values = true
    )]
    engine: EngineKind,
    /// Where the engine is [default: http://127.0.0.1:5000 for libretranslate, http://127.0.0.1:2737 for apertium]
    #[arg(value_name = "URL", value_parser = value::web_address)]
    engine_url: Option<String>,
    /// The key that a LibreTranslate server asks for
    #[arg(value_name = "KEY", value_parser = value::secret)]
    engine_api_key: Option<Secret>,
    /// Requests to the engine at once, 1 to 64
    #[arg(value_name = "COUNT", default_value = "4", value_parser = value::number::<usize>(1..=64))]
    parallel: usize,
    /// How long one request to the engine may take, at most 1day
    #[arg(
        value_name = "DURATION",
        default_value = "30s",
        value_parser = value::duration(Duration::from_millis(1))
    )]
    timeout: Duration,
    #[command(flatten)]
    connection: ConnectionSettings,
    #[command(flatten)]
    log: LogConfig,
}

impl TranslateConfig {
    pub(super) fn read(
        settings: TranslateSettings,
        given: &GivenSettings,
    ) -> Result<Self, WrongSetting> {
        let TranslateSettings {
            languages,
            task,
            source_language,
            engine,
            engine_url,
            engine_api_key,
            parallel,
            timeout,
            connection,
            log,
        } = settings;
        if engine_api_key.is_some() && engine == EngineKind::Apertium {
            return Err(given.wrong("engine_api_key", "left out, as apertium takes none"));
        }
        let languages = languages.ok_or_else(|| {
            let expected = format!("set (or use --languages de,pt-BR), {}", language_list());
            given.wrong("languages", expected)
        })?;
        if languages.contains(&source_language) {
            let expected = format!("languages other than that of the texts, {source_language}");
            return Err(given.wrong("languages", expected));
        }
        Ok(Self {
            connection: connection.connection(given)?,
            languages,
            source_language,
            task,
            engine,
            engine_url: engine_url.unwrap_or_else(|| engine.default_url().to_owned()),
            engine_api_key,
            parallel,
            timeout,
            log,
        })
    }
}

fn languages(text: &str) -> Result<Vec<Language>, String> {
    let languages = text.split(',').map(|tag| value::language(tag.trim()).ok());
    languages
        .collect::<Option<Vec<_>>>()
        .filter(|languages| languages.len() <= MAX_LANGUAGES)
        .ok_or_else(language_list)
}

fn language_list() -> String {
    format!(
        "1 to {MAX_LANGUAGES} BCP-47 tags with commas between, such as de,pt-BR, and no names of languages"
    )
}
