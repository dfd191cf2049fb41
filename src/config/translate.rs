//! The settings of `translate`: flags over environment over defaults. The
//! settings file is the server's and holds none of them.

use std::{ffi::OsString, time::Duration};

use clap::{ArgMatches, Command};

use super::{
    WrongSetting,
    connection::{self, Connection},
    secret::Secret,
    sources::Values,
    table::{Fallback, Setting},
    value,
};
use crate::domain::{
    ids::TaskId,
    translation::{LANGUAGES_MAX, Language},
};

/// What a run of the automatic translation needs, every setting valid.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslateConfig {
    /// Where the service is, and who asks.
    pub connection: Connection,
    /// The languages to translate into, 1 to 100.
    pub languages: Vec<Language>,
    /// The language of the source texts.
    pub source_language: Language,
    /// Only this task and its steps.
    pub task: Option<TaskId>,
    /// What translates.
    pub engine: EngineKind,
    /// Where the engine is, without a trailing slash.
    pub engine_url: String,
    /// What the engine wants to see.
    pub engine_api_key: Option<Secret>,
    /// Requests to the engine at once, 1 to 64.
    pub parallel: usize,
    /// How long one request to the engine may take.
    pub timeout: Duration,
}

/// Which engine translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// LibreTranslate.
    LibreTranslate,
    /// Apertium's APY.
    Apertium,
}

impl EngineKind {
    /// Where the engine listens when nobody says otherwise.
    fn default_url(self) -> &'static str {
        match self {
            Self::LibreTranslate => "http://127.0.0.1:5000",
            Self::Apertium => "http://127.0.0.1:2737",
        }
    }
}

/// The name of the subcommand.
pub(super) const COMMAND: &str = "translate";

const LANGUAGES: Setting = Setting {
    key: "languages",
    unit: "TAG,TAG",
    default: Fallback::Depends("none, it must be set"),
    help: "The languages to translate into: BCP-47 tags",
};
const TASK: Setting = Setting {
    key: "task",
    unit: "GUID",
    default: Fallback::Depends("the whole account"),
    help: "Only this task and its steps",
};
const SOURCE_LANGUAGE: Setting = Setting {
    key: "source_language",
    unit: "TAG",
    default: Fallback::Value("en"),
    help: "The language that the texts are written in",
};
const ENGINE: Setting = Setting {
    key: "engine",
    unit: "libretranslate|apertium",
    default: Fallback::Value("libretranslate"),
    help: "What translates",
};
const ENGINE_URL: Setting = Setting {
    key: "engine_url",
    unit: "URL",
    default: Fallback::Depends(
        "http://127.0.0.1:5000 for libretranslate, http://127.0.0.1:2737 for apertium",
    ),
    help: "Where the engine is",
};
pub(super) const ENGINE_API_KEY: Setting = Setting {
    key: "engine_api_key",
    unit: "KEY",
    default: Fallback::Depends("none"),
    help: "The key that a LibreTranslate server asks for",
};
const PARALLEL: Setting = Setting {
    key: "parallel",
    unit: "COUNT",
    default: Fallback::Value("4"),
    help: "Requests to the engine at once, 1 to 64",
};
const TIMEOUT: Setting = Setting {
    key: "timeout",
    unit: "DURATION",
    default: Fallback::Value("30s"),
    help: "How long one request to the engine may take, at most 1day",
};
/// Every setting of `translate` but those of its connection, in the order of its
/// `--help`.
const OWN: [Setting; 8] = [
    LANGUAGES,
    TASK,
    SOURCE_LANGUAGE,
    ENGINE,
    ENGINE_URL,
    ENGINE_API_KEY,
    PARALLEL,
    TIMEOUT,
];

/// Every setting of `translate`, in the order of its `--help`.
pub(super) fn all() -> impl Iterator<Item = Setting> {
    OWN.into_iter().chain(connection::ALL)
}

/// The subcommand.
pub(super) fn command() -> Command {
    Command::new(COMMAND)
        .about("Translate what is missing or outdated on a running server, and end")
        .args(OWN.map(|setting| setting.arg().help_heading("Translation")))
        .args(connection::args())
}

impl TranslateConfig {
    pub(super) fn read(
        flags: &ArgMatches,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, WrongSetting> {
        let values = Values::without_file(all(), flags, environment)?;
        let engine = values.read_or_default(&ENGINE, engine)?;
        let engine_url = values.read(&ENGINE_URL, value::web_address)?;
        let engine_api_key = values.read(&ENGINE_API_KEY, value::secret)?;
        if engine_api_key.is_some() && engine == EngineKind::Apertium {
            return Err(values.wrong(&ENGINE_API_KEY, "left out, as apertium takes none"));
        }
        let source_language = values.read_or_default(&SOURCE_LANGUAGE, language)?;
        Ok(Self {
            connection: Connection::read(&values)?,
            languages: targets(&values, &source_language)?,
            source_language,
            task: values.read(&TASK, value::task)?,
            engine,
            engine_url: engine_url.unwrap_or_else(|| engine.default_url().to_owned()),
            engine_api_key,
            parallel: values.read_or_default(&PARALLEL, value::number(1..=64))?,
            timeout: values.read_or_default(&TIMEOUT, value::duration(Duration::from_millis(1)))?,
        })
    }
}

fn targets(values: &Values, source: &Language) -> Result<Vec<Language>, WrongSetting> {
    let expected =
        format!("1 to {LANGUAGES_MAX} BCP-47 tags with commas between, such as de,pt-BR");
    let languages = values.read(&LANGUAGES, |text| {
        let languages = text.split(',').map(|tag| Language::parse(tag.trim()));
        languages
            .collect::<Option<Vec<_>>>()
            .filter(|languages| languages.len() <= LANGUAGES_MAX)
            .ok_or(&expected)
    })?;
    let languages = languages.ok_or_else(|| values.wrong(&LANGUAGES, &expected))?;
    if languages.contains(source) {
        let other = format!("languages other than that of the texts, {source}");
        return Err(values.wrong(&LANGUAGES, other));
    }
    Ok(languages)
}

fn engine(text: &str) -> Result<EngineKind, &'static str> {
    match text {
        "libretranslate" => Ok(EngineKind::LibreTranslate),
        "apertium" => Ok(EngineKind::Apertium),
        _ => Err("libretranslate or apertium"),
    }
}

fn language(text: &str) -> Result<Language, &'static str> {
    Language::parse(text).ok_or("a BCP-47 tag, such as en or pt-BR")
}
