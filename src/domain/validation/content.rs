//! Rules about the contents of tasks and steps: whether a task has steps, and a step
//! texts and translations.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::domain::{
    analysis::{GuideLimit, GuideStep, TranslationState},
    feedback::Feedback,
    step::StepType,
    translation::{Language, MAX_LANGUAGES, StepTranslation},
};

use super::{
    finding::list_of_keys,
    report::{OtherGuides, Own, Report},
    report_too_large,
    rules::Rule,
};

pub fn check(report: &mut Report<'_>) {
    let mut languages = languages(report);
    if languages.len() > MAX_LANGUAGES {
        report_too_large(report, GuideLimit("languages", MAX_LANGUAGES));
        languages.truncate(MAX_LANGUAGES);
    }
    let languages: Vec<CheckedLanguage> = languages.into_iter().map(CheckedLanguage::new).collect();
    let own_indexes: HashSet<usize> = report.own_tasks().iter().map(|own| own.index).collect();
    for own in report.own_tasks() {
        check_steps(report, own);
        for language in &languages {
            language.check_task(report, own);
        }
    }
    for (own, _, step) in report.own_steps() {
        if report.is_stopped() {
            return;
        }
        check_content(report, own, step);
        for checked in &languages {
            let needs_title = needs_title(report, step, &checked.language, &own_indexes);
            checked.check_step(report, own, step, needs_title);
        }
    }
}

fn languages(report: &Report<'_>) -> Vec<Language> {
    let named = &report.subject.options.languages;
    let mut all: BTreeSet<&Language> = BTreeSet::new();
    if !named.is_empty() {
        return named.iter().filter(|it| all.insert(*it)).cloned().collect();
    }
    for task in &report.subject.guide.tasks {
        all.extend(task.source.task.content.translations.keys());
        for step in task.steps.iter().flatten() {
            all.extend(step.source.step.content.translations.keys());
        }
    }
    all.into_iter().cloned().collect()
}

fn check_steps(report: &mut Report<'_>, own: Own<'_>) {
    let Some(steps) = &own.task.steps else {
        return;
    };
    let unpublished = report.subject.options.unpublished;
    if steps.iter().any(|step| unpublished.shows_step(step)) {
        return;
    }
    let count = steps.len();
    let message = match count {
        0 => "The task has no step.".to_owned(),
        _ => format!("None of the {count} steps is published."),
    };
    report.add(own.finding(Rule::NoSteps, "", [("steps", json!(count))], message));
}

fn check_content(report: &mut Report<'_>, own: Own<'_>, step: &GuideStep) {
    let content = &step.source.step.content;
    let is_information = step.step_type() == StepType::Information;
    if is_information && !step.source.has_body && content.instructions.is_empty() {
        let message = "The step has neither a body nor instructions.".to_owned();
        report.add(own.finding(Rule::NoContent, "", [], message));
    }
    let published = content.published.get();
    if !matches!(published, 0 | 1) {
        let facts = [("published", json!(published))];
        let message = format!("`published` is {published}.");
        report.add(own.finding(Rule::UnknownPublished, "published", facts, message));
    }
}

/// Whether a step without a translated title has none to show in the language. A subtask step shows
/// the translated name of its task. If an own task lacks the name, that is a finding of the task
/// itself. Without the account, names of its tasks are not known.
fn needs_title(
    report: &Report<'_>,
    step: &GuideStep,
    language: &Language,
    own_indexes: &HashSet<usize>,
) -> bool {
    if step.step_type() != StepType::Subtask {
        return true;
    }
    let is_own = step.subtask.is_some_and(|task| own_indexes.contains(&task));
    let subtask = report.subject.guide.subtask(step);
    let subtask = subtask.filter(|_| !is_own && report.subject.other_guides == OtherGuides::Read);
    subtask.is_some_and(|task| {
        let name = task.source.task.content.translations.get(language);
        name.is_none_or(|name| name.name.is_none())
    })
}

struct CheckedLanguage {
    language: Language,
    /// `translations["de"]`
    path: String,
    unregistered: Option<String>,
}

struct Translated {
    locked: bool,
    is_outdated: bool,
}

impl CheckedLanguage {
    fn new(language: Language) -> Self {
        Self {
            path: format!("translations[\"{language}\"]"),
            unregistered: language.unregistered_subtag(),
            language,
        }
    }

    fn check_task(&self, report: &mut Report<'_>, own: Own<'_>) {
        let source = &own.task.source;
        let translation = source.task.content.translations.get(&self.language);
        let state = source.translations.get(&self.language);
        let has_name = translation.is_some_and(|translation| translation.name.is_some());
        let missing: &[&str] = if has_name { &[] } else { &["name"] };
        let translated = translation.map(|translation| Translated {
            locked: translation.locked,
            is_outdated: state.is_some_and(|state| state.outdated_title),
        });
        self.check(report, own, missing, translated);
    }

    fn check_step(
        &self,
        report: &mut Report<'_>,
        own: Own<'_>,
        step: &GuideStep,
        needs_title: bool,
    ) {
        let translation = step.source.step.content.translations.get(&self.language);
        let state = step.source.translations.get(&self.language);
        let state = state.copied().unwrap_or_default();
        let missing = missing_fields(step, translation, state, needs_title);
        let translated = translation.map(|translation| {
            // A subtask step without a title of its own shows the name of its task.
            let has_title = translation.title.is_some() || step.step_type() != StepType::Subtask;
            Translated {
                locked: translation.locked,
                is_outdated: (state.outdated_title && has_title) || state.outdated_rest,
            }
        });
        self.check(report, own, &missing, translated);
        if let Some(translated) = translation.and_then(|it| it.feedback.as_ref()) {
            self.check_keys(report, own, step, translated);
        }
    }

    fn check(
        &self,
        report: &mut Report<'_>,
        own: Own<'_>,
        missing: &[&str],
        translated: Option<Translated>,
    ) {
        let language = &self.language;
        if !missing.is_empty() && !report.skips(Rule::TranslationMissing) {
            let message = format!("Not translated into {language}: {}.", missing.join(", "));
            let facts = [("fields", json!(missing))];
            self.report(report, own, Rule::TranslationMissing, "", facts, message);
        }
        let Some(translated) = translated else {
            return;
        };
        if let Some(subtag) = &self.unregistered
            && !report.skips(Rule::UnknownLanguage)
        {
            let message = match subtag == language.as_str() {
                true => format!("The language {language} is not registered."),
                false => format!("`{subtag}` of the language {language} is not registered."),
            };
            let facts = [("subtag", json!(subtag))];
            self.report(report, own, Rule::UnknownLanguage, "", facts, message);
        }
        if translated.is_outdated {
            let (rule, state) = match translated.locked {
                true => (Rule::TranslationLockedOutdated, "locked translation"),
                false => (Rule::TranslationOutdated, "translation"),
            };
            let message =
                format!("The {state} into {language} was made from a source that has changed.");
            self.report(report, own, rule, "", [], message);
        }
    }

    fn check_keys(
        &self,
        report: &mut Report<'_>,
        own: Own<'_>,
        step: &GuideStep,
        translated: &Feedback,
    ) {
        let of_source: BTreeSet<&str> = step.answer_keys().collect();
        let values = translated.values.iter();
        let of_translation: BTreeSet<&str> = values.map(|value| value.key.as_str()).collect();
        if of_source == of_translation || report.skips(Rule::TranslationAnswers) {
            return;
        }
        let missing: Vec<&str> = of_source.difference(&of_translation).copied().collect();
        let others: Vec<&str> = of_translation.difference(&of_source).copied().collect();
        let keys = |keys: &[&str]| {
            let word = if keys.len() == 1 { "key" } else { "keys" };
            format!("the {word} {}", list_of_keys(keys.iter().copied()))
        };
        let lacks = || format!("lacks {} of the source", keys(&missing));
        let differences = match (missing.is_empty(), others.is_empty()) {
            (_, true) => lacks(),
            (true, false) => format!("has {}, not in the source", keys(&others)),
            (false, false) => format!("{} and has {} instead", lacks(), keys(&others)),
        };
        let message = format!("The question in {} {differences}.", self.language);
        let facts = [("missing", json!(missing)), ("others", json!(others))];
        let field = ".feedback_config[0].values";
        self.report(report, own, Rule::TranslationAnswers, field, facts, message);
    }

    fn report<const N: usize>(
        &self,
        report: &mut Report<'_>,
        own: Own<'_>,
        rule: Rule,
        field: &str,
        facts: [(&str, Value); N],
        message: String,
    ) {
        let path = format!("{}{field}", self.path);
        let mut finding = own.finding(rule, &path, facts, message);
        let language = json!(self.language.as_str());
        finding.facts.insert("language".to_owned(), language);
        report.add(finding.in_language(Some(&self.language)));
    }
}

fn missing_fields(
    step: &GuideStep,
    translation: Option<&StepTranslation>,
    state: TranslationState,
    needs_title: bool,
) -> Vec<&'static str> {
    let source = &step.source;
    let has_instructions = !source.step.content.instructions.is_empty();
    let has_question = source.step.kind.feedback().is_some();
    let lacks = |has: fn(&StepTranslation) -> bool| !translation.is_some_and(has);
    let lacks_title = lacks(|it| it.title.is_some());
    let lacks_instructions = lacks(|it| !it.instructions.is_empty());
    let lacks_question = lacks(|it| it.feedback.is_some());
    let fields = [
        ("title", needs_title && lacks_title),
        ("body", source.has_body && !state.has_body),
        ("instructions", has_instructions && lacks_instructions),
        ("feedback_config", has_question && lacks_question),
    ];
    let missing = fields.into_iter().filter(|(_, is_missing)| *is_missing);
    missing.map(|(field, _)| field).collect()
}
