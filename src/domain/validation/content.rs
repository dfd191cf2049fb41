//! Rules about the contents of tasks and steps: missing steps, texts and translations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::domain::{
    analysis::{GuideLimit, GuideStep, TranslationState},
    feedback::Feedback,
    step::StepType,
    translation::{Language, MAX_LANGUAGES, StepTranslation},
};

use super::{
    finding::{Finding, quoted_keys},
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
    let languages = languages.iter().map(|it| (it, it.unregistered_subtag()));
    let languages: Vec<(&Language, Option<String>)> = languages.collect();
    let texts = |own| {
        let texts = languages.iter();
        texts.map(move |(language, unregistered)| Texts {
            own,
            language,
            unregistered,
        })
    };
    for own in report.own.clone() {
        check_steps(report, own);
        texts(own).for_each(|texts| texts.check_task(report));
    }
    for (own, _, step) in report.own_steps() {
        if report.budget.is_stopped() {
            return;
        }
        check_content(report, own, step);
        texts(own).for_each(|texts| texts.check_step(report, step));
    }
}

fn languages(report: &Report<'_>) -> Vec<Language> {
    let named = &report.subject.options.languages;
    let mut all: BTreeSet<&Language> = BTreeSet::new();
    if !named.is_empty() {
        return named.iter().filter(|it| all.insert(*it)).cloned().collect();
    }
    for task in &report.subject.guide.tasks {
        all.extend(task.task.content.translations.keys());
        for step in task.steps.iter().flatten() {
            all.extend(step.step.content.translations.keys());
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
    let message = match steps.len() {
        0 => "The task has no step.".to_owned(),
        count => format!("None of the {count} steps is published."),
    };
    let facts = json!({ "steps": steps.len() });
    report.add(own.finding(Rule::NoSteps, "", facts, message));
}

fn check_content(report: &mut Report<'_>, own: Own<'_>, step: &GuideStep) {
    let content = &step.step.content;
    let is_information = step.step_type() == StepType::Information;
    if is_information && !step.has_body && content.instructions.is_empty() {
        let message = "The step has neither a body nor instructions.";
        report.add(own.finding(Rule::NoContent, "", json!({}), message));
    }
    let published = content.published.get();
    if !matches!(published, 0 | 1) {
        let message = format!("`published` is {published}.");
        let facts = json!({ "published": published });
        report.add(own.finding(Rule::UnknownPublished, "published", facts, message));
    }
}

/// The texts of a task or step of the guide in a language.
struct Texts<'a> {
    own: Own<'a>,
    language: &'a Language,
    /// A subtag of the language that is not registered, if any.
    unregistered: &'a Option<String>,
}

/// A translation that exists.
struct Translated {
    locked: bool,
    is_outdated: bool,
}

impl Texts<'_> {
    fn check_task(&self, report: &mut Report<'_>) {
        let translation = self.own.task.translation(self.language);
        let has_name = translation.is_some_and(|(it, _)| it.name.is_some());
        let missing: &[&str] = if has_name { &[] } else { &["name"] };
        let translated = translation.map(|(translation, state)| Translated {
            locked: translation.locked,
            is_outdated: state.outdated_title,
        });
        self.check(report, missing, translated);
    }

    fn check_step(&self, report: &mut Report<'_>, step: &GuideStep) {
        let translation = step.translation(self.language);
        let needs_title = self.needs_title(report, step);
        let translated = translation.map(|(translation, state)| {
            // A subtask step without its own title shows the name of its task.
            let has_title = translation.title.is_some() || step.step_type() != StepType::Subtask;
            Translated {
                locked: translation.locked,
                is_outdated: (state.outdated_title && has_title) || state.outdated_rest,
            }
        });
        let missing = missing_fields(step, translation, needs_title);
        self.check(report, &missing, translated);
        if let Some(translated) = translation.and_then(|(it, _)| it.feedback.as_ref()) {
            self.check_keys(report, step, translated);
        }
    }

    /// Whether a step without a translated title has no title to show in the language. A subtask
    /// step shows the translated name of its task. If an own task lacks that name, the finding is
    /// about the task itself. Without the account, the names of its tasks are unknown.
    fn needs_title(&self, report: &Report<'_>, step: &GuideStep) -> bool {
        let Some(subtask) = report.subject.guide.subtask(step) else {
            return step.step_type() != StepType::Subtask;
        };
        let is_own = step.subtask.is_some_and(|task| report.is_own(task));
        let translation = subtask.translation(self.language);
        let has_name = translation.is_some_and(|(it, _)| it.name.is_some());
        !is_own && report.subject.other_guides == OtherGuides::Read && !has_name
    }

    fn check(&self, report: &mut Report<'_>, missing: &[&str], translated: Option<Translated>) {
        let language = self.language;
        if !missing.is_empty() && !report.skips(Rule::TranslationMissing) {
            let message = format!("Not translated into {language}: {}.", missing.join(", "));
            let facts = json!({ "fields": missing });
            report.add(self.finding(Rule::TranslationMissing, "", facts, message));
        }
        let Some(translated) = translated else {
            return;
        };
        if let Some(subtag) = self.unregistered
            && !report.skips(Rule::UnknownLanguage)
        {
            let message = if subtag == language.as_str() {
                format!("The language {language} is not registered.")
            } else {
                format!("`{subtag}` of the language {language} is not registered.")
            };
            let facts = json!({ "subtag": subtag });
            report.add(self.finding(Rule::UnknownLanguage, "", facts, message));
        }
        if translated.is_outdated {
            let (rule, state) = if translated.locked {
                (Rule::TranslationLockedOutdated, "locked translation")
            } else {
                (Rule::TranslationOutdated, "translation")
            };
            let message =
                format!("The source has changed since the {state} into {language} was made.");
            report.add(self.finding(rule, "", json!({}), message));
        }
    }

    fn check_keys(&self, report: &mut Report<'_>, step: &GuideStep, translated: &Feedback) {
        let source_keys: BTreeSet<&str> = step.answer_keys().collect();
        let values = translated.values.iter();
        let translation_keys: BTreeSet<&str> = values.map(|value| value.key.as_str()).collect();
        if source_keys == translation_keys || report.skips(Rule::TranslationAnswers) {
            return;
        }
        let missing: Vec<&str> = source_keys.difference(&translation_keys).copied().collect();
        let others: Vec<&str> = translation_keys.difference(&source_keys).copied().collect();
        let keys = |keys: &[&str]| {
            let word = if keys.len() == 1 { "key" } else { "keys" };
            format!("the {word} {}", quoted_keys(keys.iter().copied()))
        };
        let lacks = format!("lacks {} of the source", keys(&missing));
        let has = keys(&others);
        let differences = match (missing.is_empty(), others.is_empty()) {
            (_, true) => lacks,
            (true, false) => format!("has {has}, not in the source"),
            (false, false) => format!("{lacks} and has {has} instead"),
        };
        let message = format!("The question in {} {differences}.", self.language);
        let facts = json!({ "missing": missing, "others": others });
        let field = ".feedback_config[0].values";
        report.add(self.finding(Rule::TranslationAnswers, field, facts, message));
    }

    fn finding(&self, rule: Rule, field: &str, facts: Value, message: String) -> Finding {
        let language = self.language;
        let path = format!("translations[\"{language}\"]{field}");
        let mut finding = self.own.finding(rule, &path, facts, message);
        let language_fact = json!(language.as_str());
        finding.facts.insert("language".to_owned(), language_fact);
        finding.language = Some(language.clone());
        finding
    }
}

fn missing_fields(
    step: &GuideStep,
    translation: Option<(&StepTranslation, TranslationState)>,
    needs_title: bool,
) -> Vec<&'static str> {
    let has_instructions = !step.step.content.instructions.is_empty();
    let has_question = step.step.kind.feedback().is_some();
    let lacks = |has: fn(&StepTranslation) -> bool| !translation.is_some_and(|(it, _)| has(it));
    let has_body = translation.is_some_and(|(_, state)| state.has_body);
    let fields = [
        ("title", needs_title && lacks(|it| it.title.is_some())),
        ("body", step.has_body && !has_body),
        (
            "instructions",
            has_instructions && lacks(|it| !it.instructions.is_empty()),
        ),
        (
            "feedback_config",
            has_question && lacks(|it| it.feedback.is_some()),
        ),
    ];
    let missing = fields.into_iter().filter(|(_, is_missing)| *is_missing);
    missing.map(|(field, _)| field).collect()
}
