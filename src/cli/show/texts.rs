//! Which texts of a guide are shown: those of the source or a translation, long ones or
//! only how long they are.

use std::collections::BTreeMap;

use prost_types::{Struct, Value, value::Kind};

use crate::{
    cli::{out::sanitize, wording},
    config::ShowArgs,
    proto::v1::{FeedbackValue, Step, StepTranslation, Task, TaskTranslation},
};

/// Which texts are shown.
pub struct Texts {
    /// The tag of the language and its shorter forms; empty for the source.
    languages: Vec<String>,
    full: bool,
}

impl Texts {
    pub fn of(show: &ShowArgs) -> Self {
        let mut languages = Vec::new();
        let mut tag = show.language.as_ref().map(ToString::to_string);
        while let Some(longer) = tag {
            tag = longer
                .rsplit_once('-')
                .map(|(shorter, _)| shorter.to_owned());
            languages.push(longer);
        }
        Self {
            languages,
            full: show.full,
        }
    }

    pub fn name(&self, task: &Task) -> String {
        let name = |translation: &TaskTranslation| translation.name.clone();
        self.chosen(&task.translations, name, &task.name)
    }

    pub fn title(&self, step: &Step) -> String {
        let title = |translation: &StepTranslation| translation.title.clone();
        self.chosen(&step.translations, title, &step.title)
    }

    pub fn answer(&self, step: &Step, value: &FeedbackValue) -> String {
        let translated = |translation: &StepTranslation| {
            let values = translation.feedback_config.iter();
            let mut values = values.flat_map(|config| &config.values);
            let same = values.find(|translated| translated.key == value.key)?;
            Some(same.value.clone())
        };
        self.chosen(&step.translations, translated, &value.value)
    }

    /// The long texts of a step as lines, if they are shown.
    pub fn long(&self, step: &Step) -> Vec<String> {
        if !self.full {
            return Vec::new();
        }
        let body = step.body.as_ref().map(|source| {
            let body = |translation: &StepTranslation| translation.body.clone();
            self.chosen_text(&step.translations, body, source)
        });
        let body = body.unwrap_or_default();
        let mut lines: Vec<String> = body.lines().map(sanitize).collect();
        let translated = self.find(&step.translations, |translation| {
            let instructions = &translation.instructions;
            (!instructions.is_empty()).then(|| instructions.clone())
        });
        let mark = self.mark(translated.as_ref().map(|(tag, _)| *tag));
        let instructions = match translated {
            Some((_, instructions)) => instructions,
            None => step.instructions.clone(),
        };
        let instructions = instructions.into_iter();
        lines.extend(instructions.map(|it| format!("instruction {}{mark}", json(it))));
        lines
    }

    /// Phrases for the texts of a step that are not shown, such as `a text of 120 characters`.
    pub fn hidden(&self, step: &Step) -> Vec<String> {
        if self.full {
            return Vec::new();
        }
        let body = step.body.as_ref().map(|body| match body.chars().count() {
            1 => "a text of 1 character".to_owned(),
            count => format!("a text of {count} characters"),
        });
        let instructions = wording::instruction_count(step.instructions.len());
        body.into_iter().chain(instructions).collect()
    }

    fn chosen<T>(
        &self,
        translations: &BTreeMap<String, T>,
        text: impl Fn(&T) -> Option<String>,
        source: &str,
    ) -> String {
        sanitize(&self.chosen_text(translations, text, source))
    }

    /// The translated text, or that of the source; with a mark if it is not in the language.
    fn chosen_text<T>(
        &self,
        translations: &BTreeMap<String, T>,
        text: impl Fn(&T) -> Option<String>,
        source: &str,
    ) -> String {
        let translated = self.find(translations, text);
        let mark = self.mark(translated.as_ref().map(|(tag, _)| *tag));
        let text = translated.map_or_else(|| source.to_owned(), |(_, text)| text);
        text + &mark
    }

    /// The text in the language or the longest shorter form that has one, and its tag.
    fn find<T, U>(
        &self,
        translations: &BTreeMap<String, T>,
        text: impl Fn(&T) -> Option<U>,
    ) -> Option<(&str, U)> {
        let mut languages = self.languages.iter();
        languages.find_map(|tag| Some((tag.as_str(), text(translations.get(tag)?)?)))
    }

    /// The language of a text if it is another than that asked for, as `preview` marks it.
    fn mark(&self, language: Option<&str>) -> String {
        let asked = self.languages.first().map(String::as_str);
        match (asked, language) {
            (Some(asked), Some(found)) if found != asked => format!(" [{found}]"),
            (None, _) | (_, Some(_)) => String::new(),
            (Some(_), None) => " [source]".to_owned(),
        }
    }
}

fn json(instruction: Struct) -> String {
    let kind = Some(Kind::StructValue(instruction));
    sanitize(&wording::json(&Value { kind }))
}
