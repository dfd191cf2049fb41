//! Which language a text of a preview is in.

use std::collections::{BTreeMap, HashMap};

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask, TranslationState},
    feedback::FeedbackValue,
    json::Instruction,
    translation::{Language, StepTranslation},
};

/// The languages of a preview, in the order of preference. The source is the last choice.
#[derive(Clone, Debug, Default)]
pub struct TextLanguages(Vec<Language>);

/// A text, and the language that it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenText<'a, T> {
    pub text: T,
    pub language: Option<&'a Language>,
    /// Whether it is in another language than the one asked for.
    pub fallback: bool,
    /// Whether it was made from a source that has changed.
    pub outdated: bool,
}

pub struct AnswerTexts<'a> {
    /// In the order of preference.
    translated: Vec<TranslatedAnswers<'a>>,
    is_language_wanted: bool,
}

struct TranslatedAnswers<'a> {
    language: &'a Language,
    is_fallback: bool,
    is_outdated: bool,
    texts: HashMap<&'a str, &'a str>,
}

impl<'a> AnswerTexts<'a> {
    /// The text of one of the answers: from the most preferred language that has its key,
    /// else that of the source.
    pub fn of(&self, answer: &'a FeedbackValue) -> ChosenText<'a, &'a str> {
        let key = answer.key.as_str();
        let translated = self.translated.iter();
        let mut found = translated.filter_map(|one| Some((one, *one.texts.get(key)?)));
        match found.next() {
            Some((one, text)) => ChosenText {
                text,
                language: Some(one.language),
                fallback: one.is_fallback,
                outdated: one.is_outdated,
            },
            None => ChosenText {
                text: answer.value.as_str(),
                language: None,
                fallback: self.is_language_wanted,
                outdated: false,
            },
        }
    }
}

/// Most forms of a language tag that are looked for. Tags in use have fewer parts.
const MAX_FORMS: usize = 16;

impl TextLanguages {
    /// The language with its shorter forms, then the fallback languages with theirs.
    /// Without a language only the source.
    pub fn new(language: Option<Language>, fallback: Vec<Language>) -> Self {
        let Some(language) = language else {
            return Self::default();
        };
        let mut languages: Vec<Language> = Vec::new();
        for language in std::iter::once(language).chain(fallback) {
            let forms = std::iter::successors(Some(language), Language::shorter);
            for form in forms.take(MAX_FORMS) {
                if !languages.contains(&form) {
                    languages.push(form);
                }
            }
        }
        Self(languages)
    }

    pub fn name<'a>(&self, task: &'a GuideTask) -> Option<ChosenText<'a, &'a str>> {
        let source = &task.source;
        let translations = &source.task.content.translations;
        self.choose(
            translations,
            &source.translations,
            |state| state.outdated_title,
            |_, translation| translation.name.as_ref().map(|name| name.as_str()),
            Some(source.task.name.as_str()),
        )
    }

    /// The title of a step. In each language, a subtask step that has none of its own has the
    /// name of its task.
    pub fn title<'a>(
        &self,
        guide: &'a Guide,
        step: &'a GuideStep,
    ) -> Option<ChosenText<'a, &'a str>> {
        let own = self.of_step(
            step,
            |state| state.outdated_title,
            |_, translation| translation.title.as_ref().map(|title| title.as_str()),
            Some(step.source.step.title.as_str()),
        )?;
        let subtask = step.subtask.and_then(|task| guide.tasks.get(task));
        let name = subtask.and_then(|task| self.name(task));
        let is_preferred = |name: &ChosenText<'_, _>| self.rank(name) < self.rank(&own);
        Some(name.filter(is_preferred).unwrap_or(own))
    }

    /// The place of a text's language in the order of preference; the source is last.
    fn rank<T>(&self, text: &ChosenText<'_, T>) -> usize {
        let language = text.language;
        let place = language.and_then(|language| self.0.iter().position(|one| one == language));
        place.unwrap_or(self.0.len())
    }

    /// Which body of a step is shown, without its text.
    pub fn body<'a>(&self, step: &'a GuideStep) -> Option<ChosenText<'a, ()>> {
        self.of_step(
            step,
            |state| state.outdated_rest,
            |state, _| state?.has_body.then_some(()),
            step.source.has_body.then_some(()),
        )
    }

    pub fn instructions<'a>(
        &self,
        step: &'a GuideStep,
    ) -> Option<ChosenText<'a, &'a [Instruction]>> {
        let non_empty = |list: &'a [Instruction]| (!list.is_empty()).then_some(list);
        self.of_step(
            step,
            |state| state.outdated_rest,
            |_, translation| non_empty(&translation.instructions),
            non_empty(&step.source.step.content.instructions),
        )
    }

    pub fn answers<'a>(&self, step: &'a GuideStep) -> AnswerTexts<'a> {
        let source = &step.source;
        let translations = &source.step.content.translations;
        let wanted = self.0.iter().filter_map(|wanted| {
            let (language, translation) = translations.get_key_value(wanted)?;
            let values = translation.feedback.as_ref()?.values.iter();
            let state = source.translations.get(language);
            Some(TranslatedAnswers {
                language,
                is_fallback: self.0.first() != Some(language),
                is_outdated: state.is_some_and(|state| state.outdated_rest),
                texts: values
                    .map(|value| (value.key.as_str(), value.value.as_str()))
                    .collect(),
            })
        });
        AnswerTexts {
            translated: wanted.collect(),
            is_language_wanted: !self.0.is_empty(),
        }
    }

    fn of_step<'a, T>(
        &self,
        step: &'a GuideStep,
        is_outdated: impl Fn(&TranslationState) -> bool,
        pick: impl Fn(Option<&TranslationState>, &'a StepTranslation) -> Option<T>,
        source: Option<T>,
    ) -> Option<ChosenText<'a, T>> {
        let translations = &step.source.step.content.translations;
        let states = &step.source.translations;
        self.choose(translations, states, is_outdated, pick, source)
    }

    /// The text in the most preferred language that has one, else that of the source.
    fn choose<'a, O, T>(
        &self,
        translations: &'a BTreeMap<Language, O>,
        states: &'a BTreeMap<Language, TranslationState>,
        is_outdated: impl Fn(&TranslationState) -> bool,
        pick: impl Fn(Option<&TranslationState>, &'a O) -> Option<T>,
        source: Option<T>,
    ) -> Option<ChosenText<'a, T>> {
        let asked = self.0.first();
        for wanted in &self.0 {
            let Some((language, translation)) = translations.get_key_value(wanted) else {
                continue;
            };
            let state = states.get(language);
            if let Some(text) = pick(state, translation) {
                return Some(ChosenText {
                    text,
                    language: Some(language),
                    fallback: asked != Some(language),
                    outdated: state.is_some_and(&is_outdated),
                });
            }
        }
        source.map(|text| ChosenText {
            text,
            language: None,
            fallback: asked.is_some(),
            outdated: false,
        })
    }
}
