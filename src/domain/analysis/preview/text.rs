//! The languages of the texts in a preview.

use std::collections::{BTreeMap, HashMap};

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask},
    feedback::{Feedback, FeedbackValue},
    json::Instruction,
    translation::Language,
};

/// The languages of a preview, in the order of preference. The source is the last choice.
#[derive(Clone, Debug, Default)]
pub struct TextLanguages(Vec<Language>);

#[derive(Clone, Debug, PartialEq)]
pub struct ChosenText<'a, T> {
    pub text: T,
    /// `None` for the source.
    pub language: Option<&'a Language>,
    /// Whether it is not in the requested language.
    pub fallback: bool,
    /// Whether it was made from a source that has changed.
    pub outdated: bool,
}

/// The maximum number of forms of a language tag that are looked up. Real tags have fewer parts.
const MAX_FORMS: usize = 16;

impl TextLanguages {
    /// The language with its shorter forms, then the fallback languages with theirs. Without a
    /// language, only the source.
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

    pub fn name<'a>(&'a self, task: &'a GuideTask) -> Option<ChosenText<'a, &'a str>> {
        let source = task.task.name.as_str();
        self.choose(Some(source), |language| name_in(task, language))
    }

    /// The title of a step. In each language, a subtask step without its own title has the name of
    /// its task.
    pub fn title<'a>(
        &'a self,
        guide: &'a Guide,
        step: &'a GuideStep,
    ) -> Option<ChosenText<'a, &'a str>> {
        self.choose(Some(step.step.title.as_str()), |language| {
            let own = step.translation(language).and_then(|(translation, state)| {
                Some((translation.title.as_ref()?.as_str(), state.outdated_title))
            });
            own.or_else(|| name_in(guide.subtask(step)?, language))
        })
    }

    /// Which body of a step is shown, without its text.
    pub fn body<'a>(&'a self, step: &GuideStep) -> Option<ChosenText<'a, ()>> {
        self.choose(step.has_body.then_some(()), |language| {
            let (_, state) = step.translation(language)?;
            state.has_body.then_some(((), state.outdated_rest))
        })
    }

    pub fn instructions<'a>(
        &'a self,
        step: &'a GuideStep,
    ) -> Option<ChosenText<'a, &'a [Instruction]>> {
        let some = |list: &'a [Instruction]| (!list.is_empty()).then_some(list);
        self.choose(some(&step.step.content.instructions), |language| {
            let (translation, state) = step.translation(language)?;
            Some((some(&translation.instructions)?, state.outdated_rest))
        })
    }

    /// The answers of a question, each with its text in the most preferred language that has its
    /// key, otherwise in the source language.
    pub fn answers<'a>(
        &'a self,
        step: &'a GuideStep,
        question: &'a Feedback,
    ) -> Vec<(&'a FeedbackValue, Option<ChosenText<'a, &'a str>>)> {
        let translated = self.0.iter().filter_map(|language| {
            let (translation, state) = step.translation(language)?;
            let values = translation.feedback.as_ref()?.values.iter();
            let texts = values.map(|value| (value.key.as_str(), value.value.as_str()));
            Some((language, (texts.collect(), state.outdated_rest)))
        });
        // The texts by key, and whether they are outdated.
        let translated: BTreeMap<&Language, (HashMap<&str, &str>, bool)> = translated.collect();
        let text = |answer: &'a FeedbackValue| {
            self.choose(Some(answer.value.as_str()), |language| {
                let (texts, outdated) = translated.get(language)?;
                Some((*texts.get(answer.key.as_str())?, *outdated))
            })
        };
        let answers = question.values.iter();
        answers.map(|answer| (answer, text(answer))).collect()
    }

    /// The first text in the order of preference. `translated` returns the text in a language, and
    /// whether it is outdated.
    fn choose<'a, T>(
        &'a self,
        source: Option<T>,
        translated: impl Fn(&Language) -> Option<(T, bool)>,
    ) -> Option<ChosenText<'a, T>> {
        let translated = self.0.iter().enumerate().find_map(|(index, language)| {
            let (text, outdated) = translated(language)?;
            Some(ChosenText {
                text,
                language: Some(language),
                fallback: index > 0,
                outdated,
            })
        });
        translated.or_else(|| {
            Some(ChosenText {
                text: source?,
                language: None,
                fallback: !self.0.is_empty(),
                outdated: false,
            })
        })
    }
}

fn name_in<'a>(task: &'a GuideTask, language: &Language) -> Option<(&'a str, bool)> {
    let (translation, state) = task.translation(language)?;
    Some((translation.name.as_ref()?.as_str(), state.outdated_title))
}
