//! Requests and pages of previews.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::{Value, value::Kind};
use serde::{Deserialize, Serialize};

use super::{page::PageTokens, sent_guide};
use crate::{
    domain::{
        analysis::{
            Fingerprint, GuideStep, MAX_SUBTASK_LEVELS, StepPosition, Truth, Unpublished,
            VariableValue,
            preview::{
                ChosenText, ListedStep, MAX_FALLBACK_LANGUAGES, MAX_VARIABLE_NAMES, OpenVariable,
                PreviewOptions, TextLanguages, VisibilityReason,
            },
        },
        page::Page,
        text::Body,
        violation::Violations,
    },
    messages::{
        decode::{
            Field,
            field::{self, languages, sent_text},
            names::{check_name, known_variables, variable_value},
            task::access_level,
        },
        encode::{json, text as id},
    },
    proto::v1::{self, preview_task_request::Source},
    store::{PreviewCall, PreviewPage},
};

mod trace;

/// The start of a page of the steps of a preview, or of the findings of a guide.
#[derive(Serialize, Deserialize)]
pub struct GuideCursor {
    /// The index of its first step or finding.
    pub start: usize,
    /// The fingerprint of the guide.
    pub fingerprint: Fingerprint,
}

/// Decodes a request of PreviewTask. Also returns whether the response has traces of conditions.
pub fn preview_task(
    message: v1::PreviewTaskRequest,
    tokens: &PageTokens,
    violations: &mut Violations,
) -> Option<(PreviewCall, bool)> {
    let (id, document) = match message.source {
        Some(Source::Guid(id)) => (Some(id), None),
        Some(Source::Document(document)) => (None, Some(document)),
        None => (None, None),
    };
    let guide = sent_guide::guide(id, document, violations);
    let level = violations.at("level").optional(message.level, access_level);
    let language = violations
        .at("language")
        .optional(sent_text(message.language.as_str()), field::language);
    let list = violations.at("fallback_languages");
    let fallback = languages(message.fallback_languages, MAX_FALLBACK_LANGUAGES, list);
    let answers = answers(message.answers, violations.at("answers"));
    let depth = subtask_levels(message.subtask_depth, violations.at("subtask_depth"));
    field::check_expand(&message.expand, violations);
    let known = known_variables(message.known_variables, violations.at("known_variables"));
    let start = tokens.start::<GuideCursor>(message.page_size, &message.page_token, violations);
    let (source, document) = guide?.into_source(violations)?;
    let (after, size) = start?;
    let call = PreviewCall {
        source,
        document,
        known,
        options: PreviewOptions {
            level,
            texts: TextLanguages::new(language, fallback),
            answers,
            unpublished: Unpublished {
                included: message.include_unpublished,
            },
            subtask_depth: depth?,
        },
        bodies: !message.expand.is_empty(),
        after: after.map(|it| (it.start, it.fingerprint)),
        size,
    };
    Some((call, message.explain))
}

fn answers(
    messages: BTreeMap<String, Value>,
    mut map: Field<'_>,
) -> BTreeMap<String, VariableValue> {
    if !map.at_most(messages.len(), MAX_VARIABLE_NAMES) {
        return BTreeMap::new();
    }
    let answer = |(name, message): (String, Value)| {
        check_name(&name, map.key(&name));
        let value = variable_value(message, map.key(&name))?;
        Some((name, value))
    };
    messages.into_iter().filter_map(answer).collect()
}

fn subtask_levels(number: i32, mut field: Field<'_>) -> Option<usize> {
    let levels = usize::try_from(number).ok();
    let levels = levels.filter(|levels| *levels <= MAX_SUBTASK_LEVELS);
    field.in_range(levels, &format!("must be 0 to {MAX_SUBTASK_LEVELS}"))
}

/// A page of a preview, with traces if `explain`.
pub fn preview(page: &PreviewPage, tokens: &PageTokens, explain: bool) -> v1::PreviewTaskResponse {
    let preview = &page.preview;
    let next_observation = preview.next_observation.iter();
    let mut response = v1::PreviewTaskResponse {
        task: Some(task(page, explain)),
        steps: Vec::new(),
        next_page_token: String::new(),
        next_observation: next_observation.map(|at| numbered_id(page, *at)).collect(),
        open_variables: preview.open_variables.iter().map(open_variable).collect(),
        unused_answers: preview.unused_answers.clone(),
        hidden_answers: preview.hidden_answers.clone(),
        fingerprint: page.fingerprint.to_string(),
    };
    let end = page.start + page.count;
    let steps = Page {
        items: (page.start..end).collect(),
        more: end < preview.steps.len(),
    };
    (response.steps, response.next_page_token) = tokens.rest_of_page(
        response.encoded_len(),
        steps,
        |index: &usize| GuideCursor {
            start: index + 1,
            fingerprint: page.fingerprint,
        },
        |index| step(page, index, explain).unwrap_or_default(),
    );
    response
}

fn task(page: &PreviewPage, explain: bool) -> v1::PreviewedTask {
    let preview = &page.preview;
    let task = preview.guide.root();
    let is_stored = task.origin.is_none();
    v1::PreviewedTask {
        guid: id(task.guid()),
        visibility: visibility(preview.visible).into(),
        reasons: reasons(&preview.reasons),
        name: preview.texts.name(task).map(text),
        trace: explain.then(|| trace::for_task(preview, task)).flatten(),
        etag: id(is_stored.then(|| task.task.etag())),
    }
}

fn step(page: &PreviewPage, index: usize, explain: bool) -> Option<v1::PreviewedStep> {
    let preview = &page.preview;
    let listed: &ListedStep = preview.steps.get(index)?;
    let step = &preview.guide[listed.position];
    let task = preview.guide.task(listed.position.task);
    let source = &step.step;
    let is_stored = step.origin.is_none();
    let via = listed.via.iter();
    let instructions = preview.texts.instructions(step);
    let subtask = preview.guide.subtask(step);
    let language = instructions.as_ref().and_then(|chosen| chosen.language);
    Some(v1::PreviewedStep {
        guid: id(step.guid()),
        task: id(task.guid()),
        via: via.map(|at| step_id(page, *at)).collect(),
        r#type: source.kind.step_type().number(),
        cost: source.kind.cost().get(),
        etag: id(is_stored.then(|| source.etag())),
        visibility: visibility(listed.visible).into(),
        reasons: reasons(&listed.reasons),
        title: preview.texts.title(&preview.guide, step).map(text),
        body: body(page, step),
        instructions_language: id(language),
        instructions: instructions
            .map_or_else(Vec::new, |chosen| json::instructions(chosen.text.to_vec())),
        question: question(page, step),
        trace: explain.then(|| trace::for_step(preview, step)).flatten(),
        subtask_trace: subtask
            .filter(|_| explain)
            .and_then(|subtask| trace::for_task(preview, subtask)),
    })
}

/// The body of a step, if bodies are shown.
fn body(page: &PreviewPage, step: &GuideStep) -> Option<v1::PreviewText> {
    let chosen = page.preview.texts.body(step)?;
    let content = &step.step.content;
    let of_document = || match chosen.language {
        None => content.body.as_ref(),
        Some(language) => content.translations.get(language)?.body.as_ref(),
    };
    let key = (step.step.guid, chosen.language.cloned());
    let read: Option<&Body> = match &step.origin {
        None => page.bodies.get(&key),
        Some(_) => of_document().filter(|_| page.with_bodies),
    };
    read.map(|body| {
        text(ChosenText {
            text: body.as_str(),
            language: chosen.language,
            fallback: chosen.fallback,
            outdated: chosen.outdated,
        })
    })
}

fn question(page: &PreviewPage, step: &GuideStep) -> Option<v1::PreviewQuestion> {
    let feedback = step.step.kind.feedback()?;
    let answers = page.preview.texts.answers(step, feedback).into_iter();
    let answers = answers.map(|(answer, shown)| v1::PreviewAnswer {
        key: answer.key.as_str().to_owned(),
        value: shown.map(text),
        link: id(answer
            .link
            .and_then(|task| page.preview.guide.task_guid(task))),
    });
    Some(v1::PreviewQuestion {
        name: feedback.name.as_str().to_owned(),
        answers: answers.collect(),
        answer: page.preview.state.answer(step).map(value),
    })
}

/// A value, which is null if it is known to be unanswered.
fn value(value: &VariableValue) -> Value {
    match value {
        VariableValue::Unanswered => Kind::NullValue(0).into(),
        VariableValue::Text(text) => text.as_str().into(),
        VariableValue::Number(number) => (*number).into(),
        VariableValue::Bool(value) => (*value).into(),
    }
}

fn text(chosen: ChosenText<'_, &str>) -> v1::PreviewText {
    v1::PreviewText {
        text: chosen.text.to_owned(),
        language: id(chosen.language),
        fallback: chosen.fallback,
        outdated: chosen.outdated,
    }
}

fn open_variable(variable: &OpenVariable) -> v1::OpenVariable {
    v1::OpenVariable {
        name: variable.name.clone(),
        steps: i32::try_from(variable.steps).unwrap_or(i32::MAX),
        keys: variable.keys.clone(),
    }
}

fn visibility(visible: Truth) -> v1::Visibility {
    match visible {
        Truth::True => v1::Visibility::Visible,
        Truth::False => v1::Visibility::Hidden,
        Truth::Unknown => v1::Visibility::Undetermined,
    }
}

fn reasons(list: &[VisibilityReason]) -> Vec<i32> {
    list.iter().map(|reason| *reason as i32).collect()
}

fn step_id(page: &PreviewPage, at: StepPosition) -> String {
    id(page.preview.guide[at].guid())
}

/// The id of a step. A step of a document without an id is named by its index, such as `#3`. A
/// subtask step that an import adds for a value is named by the observation and the value, such as
/// `#3.values[1]`.
fn numbered_id(page: &PreviewPage, at: StepPosition) -> String {
    let origin = page.preview.guide[at].origin.as_ref();
    let unnamed = origin.filter(|origin| origin.guid.is_none());
    let number = unnamed.and_then(|origin| {
        let (_, path) = origin.path.rsplit_once("steps[")?;
        let (index, value) = path.split_once(']')?;
        Some(format!(
            "#{index}{}",
            value.replace(".feedback_config[0]", "")
        ))
    });
    number.unwrap_or_else(|| step_id(page, at))
}
