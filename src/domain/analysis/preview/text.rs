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

/// A text in a language, and whether it is outdated.
type Translated<'a, T> = (&'a Language, T, bool);

/// The texts of the answers of an observation.
pub struct AnswerTexts<'a> {
    languages: &'a TextLanguages,
    /// By key.
    translated: BTreeMap<&'a Language, Translated<'a, HashMap<&'a str, &'a str>>>,
}

impl<'a> AnswerTexts<'a> {
    /// The text of one of the answers: from the most preferred language that has its key,
    /// else that of the source.
    pub fn of(&self, answer: &'a FeedbackValue) -> Option<ChosenText<'a, &'a str>> {
        let translated = |wanted: &Language| {
            let (language, texts, outdated) = self.translated.get(wanted)?;
            Some((*language, *texts.get(answer.key.as_str())?, *outdated))
        };
        self.languages
            .choose(translated, Some(answer.value.as_str()))
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
        let translated = |wanted: &Language| {
            let translations = &source.task.content.translations;
            let (language, translation) = translations.get_key_value(wanted)?;
            let state = source.translations.get(language);
            let outdated = state.is_some_and(|state| state.outdated_title);
            Some((language, translation.name.as_ref()?.as_str(), outdated))
        };
        self.choose(translated, Some(source.task.name.as_str()))
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
            |translation, state| Some((translation.title.as_ref()?.as_str(), state.outdated_title)),
            Some(step.source.step.title.as_str()),
        )?;
        let name = guide.subtask(step).and_then(|task| self.name(task));
        let is_preferred = |name: &ChosenText<'_, _>| self.rank(name) < self.rank(&own);
        Some(name.filter(is_preferred).unwrap_or(own))
    }

    /// The place of a text's language in the order of preference; the source is last.
    fn rank<T>(&self, text: &ChosenText<'_, T>) -> usize {
        let mut wanted = self.0.iter();
        let place = wanted.position(|wanted| Some(wanted) == text.language);
        place.unwrap_or(self.0.len())
    }

    /// Which body of a step is shown, without its text.
    pub fn body<'a>(&self, step: &'a GuideStep) -> Option<ChosenText<'a, ()>> {
        self.of_step(
            step,
            |_, state| state.has_body.then_some(((), state.outdated_rest)),
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
            |translation, state| Some((non_empty(&translation.instructions)?, state.outdated_rest)),
            non_empty(&step.source.step.content.instructions),
        )
    }

    pub fn answers<'a>(&'a self, step: &'a GuideStep) -> AnswerTexts<'a> {
        let translated = self.0.iter().filter_map(|wanted| {
            let (language, translation, state) = translation_of(step, wanted)?;
            let values = translation.feedback.as_ref()?.values.iter();
            let texts = values.map(|value| (value.key.as_str(), value.value.as_str()));
            Some((language, (language, texts.collect(), state.outdated_rest)))
        });
        AnswerTexts {
            languages: self,
            translated: translated.collect(),
        }
    }

    fn of_step<'a, T>(
        &self,
        step: &'a GuideStep,
        pick: impl Fn(&'a StepTranslation, TranslationState) -> Option<(T, bool)>,
        source: Option<T>,
    ) -> Option<ChosenText<'a, T>> {
        let translated = |wanted: &Language| {
            let (language, translation, state) = translation_of(step, wanted)?;
            let (text, outdated) = pick(translation, state)?;
            Some((language, text, outdated))
        };
        self.choose(translated, source)
    }

    /// The text in the most preferred language that has one, else that of the source.
    fn choose<'a, T>(
        &self,
        translated: impl FnMut(&Language) -> Option<Translated<'a, T>>,
        source: Option<T>,
    ) -> Option<ChosenText<'a, T>> {
        let (language, text, outdated) = match self.0.iter().find_map(translated) {
            Some((language, text, outdated)) => (Some(language), text, outdated),
            None => (None, source?, false),
        };
        Some(ChosenText {
            text,
            language,
            fallback: self.0.first() != language,
            outdated,
        })
    }
}

fn translation_of<'a>(
    step: &'a GuideStep,
    wanted: &Language,
) -> Option<(&'a Language, &'a StepTranslation, TranslationState)> {
    let translations = &step.source.step.content.translations;
    let (language, translation) = translations.get_key_value(wanted)?;
    let state = step.source.translations.get(language);
    Some((language, translation, state.copied().unwrap_or_default()))
}
