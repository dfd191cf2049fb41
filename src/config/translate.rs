//! The settings of `translate`: flags over environment over defaults. The
//! settings file is the server's and holds none of them.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{
    ConnectionConfig, LogConfig, MASK, Secret, TaskRef,
    read::{ConfigError, fail_if_any, unset, wrong},
    value,
};
use crate::domain::translation::{Language, MAX_LANGUAGES};

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

#[derive(Clone, Debug, PartialEq, Args)]
pub struct TranslateConfig {
    #[command(flatten)]
    pub translation: TranslationConfig,
    #[command(flatten)]
    pub connection: ConnectionConfig,
    #[command(flatten)]
    pub log: LogConfig,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Translation")]
pub struct TranslationConfig {
    /// The languages to translate into, as BCP-47 tags [default: none, it must be set]
    #[arg(
        env,
        value_name = "TAG,TAG",
        default_value = "",
        hide_default_value = true,
        value_parser = languages
    )]
    // The full path keeps clap from reading a list of repeated flags.
    pub languages: ::std::vec::Vec<Language>,
    /// Translate only this task and its steps, by guid or unique name [default: the whole account]
    #[arg(env)]
    pub task: Option<TaskRef>,
    /// The language that the texts are written in
    #[arg(env, default_value = "en", value_parser = value::language)]
    pub source_language: Language,
    /// The translation engine
    #[arg(env, default_value = "libretranslate")]
    pub engine: EngineKind,
    /// The URL of the engine [default: http://127.0.0.1:5000 for libretranslate, http://127.0.0.1:2737 for apertium]
    #[arg(env, value_parser = value::web_address)]
    engine_url: Option<String>,
    /// The API key for a LibreTranslate server that requires one
    #[arg(env, value_name = "KEY")]
    pub engine_api_key: Option<Secret>,
    /// The maximum number of concurrent requests to the engine, 1 to 64
    #[arg(env, default_value = "4", value_parser = value::number::<usize>(1..=64))]
    pub parallel: usize,
    /// How long one request to the engine may take, at most 1day
    #[arg(env, default_value = "30s", value_parser = value::duration("1ms", "1day"))]
    pub timeout: Duration,
}

impl TranslationConfig {
    /// Where the engine is, without a trailing slash.
    pub fn engine_url(&self) -> &str {
        self.engine_url
            .as_deref()
            .unwrap_or_else(|| self.engine.default_url())
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.engine_api_key.is_some() && self.engine == EngineKind::Apertium {
            let expected = "left out, because apertium takes none";
            let fault = format!("EXPERTISE_ENGINE_API_KEY is {MASK}: it must be {expected}");
            faults.push(fault);
        }
        if self.languages.is_empty() {
            let expected = format!("set (or use --languages de,pt-BR), {}", language_list());
            faults.push(unset("EXPERTISE_LANGUAGES", expected));
        }
        let source = &self.source_language;
        if self.languages.contains(source) {
            let expected = "a language that is not in EXPERTISE_LANGUAGES";
            faults.push(wrong("EXPERTISE_SOURCE_LANGUAGE", source, expected));
        }
        faults
    }
}

impl TranslateConfig {
    /// Checks the settings against each other.
    pub fn check(self) -> Result<Self, ConfigError> {
        let mut faults = self.translation.faults();
        faults.extend(self.connection.faults());
        fail_if_any(faults)?;
        Ok(self)
    }
}

/// 1 to [`MAX_LANGUAGES`] tags; none in an empty text.
fn languages(text: &str) -> Result<Vec<Language>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let languages = text.split(',').map(|tag| value::language(tag.trim()).ok());
    languages
        .collect::<Option<Vec<_>>>()
        .filter(|languages| languages.len() <= MAX_LANGUAGES)
        .ok_or_else(language_list)
}

fn language_list() -> String {
    format!(
        "1 to {MAX_LANGUAGES} BCP-47 tags separated by commas, such as de,pt-BR, and not names of \
         languages"
    )
}
