//! One item of the work list: its texts, and its translation.

use std::collections::{BTreeSet, HashMap};

use prost_types::{ListValue, Struct, Value, value::Kind};

use super::{
    engine::{Engine, EngineError},
    html::translate_html,
    parts::{TranslateFn, translate_parts},
};
use crate::{
    domain::text::MAX_NAME_CHARS,
    proto::v1::{
        AutomaticTranslation, FeedbackConfig, FeedbackValue, TranslationSource, TranslationWork,
    },
};

/// The lowercase names of members of instructions that contain text. Authors choose the structure
/// of instructions, and many values are for machines, such as kinds, command lines and addresses.
/// So a string is text only if its nearest member name, looking through arrays, is in this list.
const TEXT_MEMBERS: &str = "alt body caption description heading help hint html items label \
                            message note placeholder prompt question subtitle summary text title \
                            tooltip warning warnings";

/// Translates an item with an engine.
pub(super) async fn translate(
    work: &TranslationWork,
    engine: &Engine,
) -> Result<AutomaticTranslation, EngineError> {
    let source = work.source.clone().unwrap_or_default();
    let mut texts = BTreeSet::new();
    map_texts(&source, &mut |text| {
        texts.insert(text.to_owned());
        String::new()
    });
    let texts: Vec<String> = texts.into_iter().collect();
    let translated = engine.translate(&texts, &work.language).await?;
    let dictionary: HashMap<String, String> = texts.into_iter().zip(translated).collect();
    let TranslationSource {
        name,
        title,
        body,
        instructions,
        feedback_config,
    } = map_texts(&source, &mut |text| {
        dictionary.get(text).map_or(text, String::as_str).to_owned()
    });
    check_linked_answers(&source, &feedback_config)?;
    Ok(AutomaticTranslation {
        guid: work.guid.clone(),
        language: work.language.clone(),
        name,
        title,
        body,
        instructions,
        feedback_config,
        source_digest: work.source_digest.clone(),
    })
}

/// The answers of a linked question become names of tasks, which are shorter.
fn check_linked_answers(
    source: &TranslationSource,
    translated: &[FeedbackConfig],
) -> Result<(), EngineError> {
    let mut questions = source.feedback_config.iter();
    let linked = questions.any(|question| question.linked == Some(true));
    let mut answers = translated.iter().flat_map(|question| &question.values);
    if linked && answers.any(|answer| answer.value.chars().count() > MAX_NAME_CHARS) {
        let fault = "an answer of a linked question is too long";
        return Err(EngineError::Unusable(fault));
    }
    Ok(())
}

/// Translates every text of a source and copies the rest.
fn map_texts(source: &TranslationSource, translate: &mut TranslateFn<'_>) -> TranslationSource {
    let TranslationSource {
        name,
        title,
        body,
        instructions,
        feedback_config,
    } = source;
    TranslationSource {
        name: name.as_ref().map(|name| translate_parts(name, translate)),
        title: title
            .as_ref()
            .map(|title| translate_parts(title, translate)),
        body: body.as_ref().map(|body| translate_html(body, translate)),
        instructions: instructions
            .iter()
            .map(|instruction| map_instruction(instruction, translate))
            .collect(),
        feedback_config: feedback_config
            .iter()
            .map(|config| map_answers(config, translate))
            .collect(),
    }
}

/// Translates the answers of a question. Translations contain no links and no linked documents.
fn map_answers(config: &FeedbackConfig, translate: &mut TranslateFn<'_>) -> FeedbackConfig {
    let values = config.values.iter().map(|value| FeedbackValue {
        key: value.key.clone(),
        value: translate_parts(&value.value, translate),
        link: String::new(),
        task_json: None,
    });
    FeedbackConfig {
        name: config.name.clone(),
        r#type: config.r#type.clone(),
        linked: None,
        values: values.collect(),
    }
}

fn map_instruction(instruction: &Struct, translate: &mut TranslateFn<'_>) -> Struct {
    let fields = instruction.fields.iter().map(|(name, value)| {
        let mut texts = TEXT_MEMBERS.split(' ');
        let is_text = texts.any(|text| name.eq_ignore_ascii_case(text));
        (name.clone(), map_value(value, is_text, translate))
    });
    Struct {
        fields: fields.collect(),
    }
}

fn map_value(value: &Value, is_text: bool, translate: &mut TranslateFn<'_>) -> Value {
    let kind = value.kind.as_ref().map(|kind| match kind {
        Kind::StringValue(text) if is_text && !is_address(text) => {
            Kind::StringValue(translate_html(text, translate))
        }
        Kind::ListValue(list) => {
            let values = list.values.iter();
            Kind::ListValue(ListValue {
                values: values
                    .map(|value| map_value(value, is_text, translate))
                    .collect(),
            })
        }
        Kind::StructValue(inner) => Kind::StructValue(map_instruction(inner, translate)),
        kind => kind.clone(),
    });
    Value { kind }
}

fn is_address(text: &str) -> bool {
    text.contains("://") && !text.trim().contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object<const N: usize>(members: [(&str, Value); N]) -> Struct {
        Struct {
            fields: members.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    #[test]
    fn answers_of_linked_questions_are_as_short_as_names() {
        let question = |linked, length| FeedbackConfig {
            linked: Some(linked),
            values: vec![FeedbackValue {
                value: "x".repeat(length),
                ..FeedbackValue::default()
            }],
            ..FeedbackConfig::default()
        };
        let is_refused = |linked, length| {
            let source = TranslationSource {
                feedback_config: vec![question(linked, 1)],
                ..TranslationSource::default()
            };
            check_linked_answers(&source, &[question(false, length)]).is_err()
        };
        assert!(is_refused(true, MAX_NAME_CHARS + 1));
        assert!(!is_refused(true, MAX_NAME_CHARS));
        assert!(!is_refused(false, MAX_NAME_CHARS + 1));
    }

    #[test]
    fn only_members_that_people_read_are_translated() {
        let instruction = |[label, item, text]: [&str; 3]| {
            let inner = Value::from(object([("id", "a b".into()), ("text", text.into())]).fields);
            object([
                ("kind", "timer".into()),
                ("Label", label.into()),
                ("seconds", 30.0.into()),
                ("items", vec![item.into(), inner.clone()].into()),
                ("media", vec![inner, "a b".into()].into()),
                ("line", "nmcli networking off".into()),
                ("text", "https://example.com/a".into()),
            ])
        };
        let source = instruction(["Hold <b>the</b> button", "one", "two"]);
        let translated = map_instruction(&source, &mut |text| text.to_uppercase());
        let expected = instruction(["HOLD <b>THE</b> BUTTON", "ONE", "TWO"]);
        assert_eq!(translated, expected);
    }
}
