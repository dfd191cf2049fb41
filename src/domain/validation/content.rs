//! Rules about the contents of tasks and steps: whether a task has steps, and a step
//! texts and translations.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::domain::{
    analysis::{Guide, GuideStep, TranslationState},
    feedback::Feedback,
    step::StepType,
    translation::{Language, MAX_LANGUAGES, StepTranslation},
};

use super::{
    finding::Finding,
    report::{OtherGuides, OwnStep, OwnTask, Report},
    report_too_large,
    rules::Rule,
    walkthrough::step_type,
};

/// Checks the guide's task, the tasks that it manages, and their steps.
pub fn check(report: &mut Report<'_>) {
    let mut languages = languages(report);
    if languages.len() > MAX_LANGUAGES {
        report_too_large(report, "languages", MAX_LANGUAGES);
        languages.truncate(MAX_LANGUAGES);
    }
    let is_own = own_task_indexes(report);
    let languages: Vec<CheckedLanguage> = languages.into_iter().map(CheckedLanguage::new).collect();
    for own in report.own_tasks() {
        check_steps(report, own);
        for language in &languages {
            check_task_translation(report, own, language);
        }
    }
    for own in report.own_steps() {
        if report.is_stopped() {
            return;
        }
        check_content(report, own);
        for language in &languages {
            check_step_translation(report, own, language, &is_own);
        }
    }
}

/// A language to check.
struct CheckedLanguage {
    language: Language,
    /// The subtag that is not registered.
    unregistered: Option<String>,
}

impl CheckedLanguage {
    fn new(language: Language) -> Self {
        Self {
            unregistered: language.unregistered_subtag(),
            language,
        }
    }

    /// The finding of a language that is not registered; `finding` has its place.
    fn check(
        &self,
        report: &mut Report<'_>,
        finding: impl FnOnce(&str, [(&'static str, Value); 2], String) -> Finding,
    ) {
        if let Some(subtag) = &self.unregistered
            && !report.skips(Rule::UnknownLanguage)
        {
            let language = &self.language;
            let facts = [
                ("language", json!(language.as_str())),
                ("subtag", json!(subtag)),
            ];
            let message = match subtag == language.as_str() {
                true => format!("The language {language} is not registered."),
                false => format!("`{subtag}` of the language {language} is not registered."),
            };
            let finding = finding(&translation_path(language), facts, message);
            report.add(in_language(finding, language));
        }
    }
}

/// The indexes of the own tasks.
fn own_task_indexes(report: &Report<'_>) -> HashSet<usize> {
    report.own_tasks().iter().map(|own| own.index).collect()
}

/// The languages to check.
fn languages(report: &Report<'_>) -> Vec<Language> {
    let options = report.subject.options;
    if !options.languages.is_empty() {
        let mut seen = BTreeSet::new();
        let named = options.languages.iter();
        return named.filter(|it| seen.insert(*it)).cloned().collect();
    }
    let mut all: BTreeSet<&Language> = BTreeSet::new();
    let guide: &Guide = report.subject.guide;
    for task in &guide.tasks {
        all.extend(task.source.task.content.translations.keys());
        for step in task.steps.iter().flatten() {
            all.extend(step.source.step.content.translations.keys());
        }
    }
    all.into_iter().cloned().collect()
}

fn check_steps(report: &mut Report<'_>, own: OwnTask<'_>) {
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

fn check_content(report: &mut Report<'_>, own: OwnStep<'_>) {
    let source = &own.step.source;
    let content = &source.step.content;
    let is_information = step_type(own.step) == StepType::Information;
    if is_information && !source.has_body && content.instructions.is_empty() {
        let message = "The step has neither a body nor instructions.".to_owned();
        report.add(own.finding(Rule::NoContent, "", [], message));
    }
    let published = content.published.get();
    if !matches!(published, 0 | 1) {
        report.add(own.finding(
            Rule::UnknownPublished,
            "published",
            [("published", json!(published))],
            format!("`published` is {published}."),
        ));
    }
}

fn check_task_translation(report: &mut Report<'_>, own: OwnTask<'_>, checked: &CheckedLanguage) {
    let language = &checked.language;
    let source = &own.task.source;
    let path = translation_path(language);
    let translation = source.task.content.translations.get(language);
    if translation.is_none_or(|translation| translation.name.is_none()) {
        let (facts, message) = missing(language, &["name"]);
        let finding = own.finding(Rule::TranslationMissing, &path, facts, message);
        report.add(in_language(finding, language));
    }
    let Some(translation) = translation else {
        return;
    };
    checked.check(report, |path, facts, message| {
        own.finding(Rule::UnknownLanguage, path, facts, message)
    });
    let state = source
        .translations
        .get(language)
        .copied()
        .unwrap_or_default();
    if state.outdated_title {
        let (rule, facts, message) = outdated(language, translation.locked);
        let finding = own.finding(rule, &path, facts, message);
        report.add(in_language(finding, language));
    }
}

fn check_step_translation(
    report: &mut Report<'_>,
    own: OwnStep<'_>,
    checked: &CheckedLanguage,
    is_own: &HashSet<usize>,
) {
    let language = &checked.language;
    let source = &own.step.source;
    let path = translation_path(language);
    let translation = source.step.content.translations.get(language);
    let state = source
        .translations
        .get(language)
        .copied()
        .unwrap_or_default();
    let needs_title = needs_title(report, own.step, language, is_own);
    let fields = missing_fields(own.step, translation, state, needs_title);
    if !fields.is_empty() && !report.skips(Rule::TranslationMissing) {
        let (facts, message) = missing(language, &fields);
        let finding = own.finding(Rule::TranslationMissing, &path, facts, message);
        report.add(in_language(finding, language));
    }
    let Some(translation) = translation else {
        return;
    };
    checked.check(report, |path, facts, message| {
        own.finding(Rule::UnknownLanguage, path, facts, message)
    });
    // A subtask step without a title of its own shows the name of its task.
    let has_title = translation.title.is_some() || step_type(own.step) != StepType::Subtask;
    let title = state.outdated_title && has_title;
    if title || state.outdated_rest {
        let (rule, facts, message) = outdated(language, translation.locked);
        let finding = own.finding(rule, &path, facts, message);
        report.add(in_language(finding, language));
    }
    if let Some(translated) = &translation.feedback {
        check_keys(report, own, language, translated);
    }
}

/// Whether a step lacks a title in the language unless it has a translation of its own. A subtask
/// step shows the translated name of its task. A name that is missing in an own task is a finding
/// of that task, and tasks of the account are not known without the account.
fn needs_title(
    report: &Report<'_>,
    step: &GuideStep,
    language: &Language,
    is_own: &HashSet<usize>,
) -> bool {
    if step_type(step) != StepType::Subtask {
        return true;
    }
    let subtask = step.subtask.filter(|task| !is_own.contains(task));
    let subtask = subtask.and_then(|task| report.subject.guide.tasks.get(task));
    let is_known = report.subject.other_guides == OtherGuides::Read;
    subtask.is_some_and(|task| {
        let name = task.source.task.content.translations.get(language);
        is_known && name.is_none_or(|name| name.name.is_none())
    })
}

/// The texts that the source has and the translation lacks.
fn missing_fields(
    step: &GuideStep,
    translation: Option<&StepTranslation>,
    state: TranslationState,
    needs_title: bool,
) -> Vec<&'static str> {
    let source = &step.source;
    let content = &source.step.content;
    // Each field is named, so that a new text is not forgotten.
    let has_texts = translation.map(|translation| {
        let StepTranslation {
            title,
            body: _,
            instructions,
            feedback,
            locked: _,
        } = translation;
        (
            title.is_some(),
            !instructions.is_empty(),
            feedback.is_some(),
        )
    });
    let (has_title, has_instructions, has_feedback) = has_texts.unwrap_or_default();
    let fields = [
        ("title", needs_title, has_title),
        ("body", source.has_body, state.has_body),
        (
            "instructions",
            !content.instructions.is_empty(),
            has_instructions,
        ),
        (
            "feedback_config",
            source.step.kind.feedback().is_some(),
            has_feedback,
        ),
    ];
    let missing = fields
        .into_iter()
        .filter(|(_, source, translated)| *source && !translated);
    missing.map(|(field, _, _)| field).collect()
}

fn check_keys(
    report: &mut Report<'_>,
    own: OwnStep<'_>,
    language: &Language,
    translated: &Feedback,
) {
    fn keys(feedback: Option<&Feedback>) -> impl Iterator<Item = &str> {
        let values = feedback.map_or(&[][..], |feedback| &feedback.values);
        values.iter().map(|value| value.key.as_str())
    }
    let source = own.step.source.step.kind.feedback();
    let of_source: HashSet<&str> = keys(source).collect();
    let of_translation: HashSet<&str> = keys(Some(translated)).collect();
    if of_source == of_translation || report.skips(Rule::TranslationAnswers) {
        return;
    }
    let without = |keys: &HashSet<&str>, others: &HashSet<&str>| {
        let mut keys: Vec<String> = keys
            .difference(others)
            .map(|key| (*key).to_owned())
            .collect();
        keys.sort_unstable();
        keys
    };
    let missing = without(&of_source, &of_translation);
    let others = without(&of_translation, &of_source);
    let differences = match (missing.as_slice(), others.as_slice()) {
        (missing, []) => format!("lacks {} of the source", keys_text(missing)),
        ([], others) => format!("has {}, not in the source", keys_text(others)),
        (missing, others) => format!(
            "lacks {} of the source and has {} instead",
            keys_text(missing),
            keys_text(others)
        ),
    };
    let message = format!("The question in {language} {differences}.");
    let facts = [
        ("language", json!(language.as_str())),
        ("missing", json!(missing)),
        ("others", json!(others)),
    ];
    let path = format!("{}.feedback_config[0].values", translation_path(language));
    let finding = own.finding(Rule::TranslationAnswers, &path, facts, message);
    report.add(in_language(finding, language));
}

/// Most keys that a message lists.
const MAX_SHOWN_KEYS: usize = 10;

/// Keys in a message.
fn keys_text(keys: &[String]) -> String {
    let word = if keys.len() == 1 { "key" } else { "keys" };
    let shown = keys.iter().take(MAX_SHOWN_KEYS);
    let shown: Vec<String> = shown.map(|key| format!("`{key}`")).collect();
    let more = match keys.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the {word} {}{more}", shown.join(", "))
}

fn translation_path(language: &Language) -> String {
    format!("translations[\"{language}\"]")
}

fn missing(language: &Language, fields: &[&str]) -> ([(&'static str, Value); 2], String) {
    let facts = [
        ("language", json!(language.as_str())),
        ("fields", json!(fields)),
    ];
    let message = format!("Not translated into {language}: {}.", fields.join(", "));
    (facts, message)
}

fn outdated(language: &Language, locked: bool) -> (Rule, [(&'static str, Value); 1], String) {
    let facts = [("language", json!(language.as_str()))];
    let (rule, state) = if locked {
        (Rule::TranslationLockedOutdated, "locked translation")
    } else {
        (Rule::TranslationOutdated, "translation")
    };
    let message = format!("The {state} into {language} was made from a source that has changed.");
    (rule, facts, message)
}

fn in_language(mut finding: Finding, language: &Language) -> Finding {
    finding.language = Some(language.clone());
    finding
}
