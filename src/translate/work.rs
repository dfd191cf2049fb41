//! One item of the work list: its texts, and its translation.

use std::collections::{BTreeSet, HashMap};

use super::{
    chunking::{TranslateFn, translate_parts},
    html::translate_html,
    instruction::translate_instruction,
};
use crate::{
    domain::text::{
        self, MAX_BODY_CHARS, MAX_LABEL_CHARS, MAX_NAME_CHARS, MAX_TITLE_CHARS, TextError,
    },
    proto::v1::{
        AutomaticTranslation, FeedbackConfig, FeedbackValue, TranslationSource, TranslationWork,
    },
};

/// A translation that the service would refuse, such as one that is too long.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the translated {field} {fault}")]
pub struct InvalidTranslation {
    /// Which text.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: TextError,
}

/// The distinct texts that an engine has to translate for an item.
pub fn texts(source: &TranslationSource) -> Vec<String> {
    let mut texts = BTreeSet::new();
    map_texts(source, &mut |text| {
        texts.insert(text.to_owned());
        String::new()
    });
    texts.into_iter().collect()
}

/// The translation of an item, made from the translations of its [`texts`].
pub fn translation(
    work: &TranslationWork,
    dictionary: &HashMap<String, String>,
) -> Result<AutomaticTranslation, InvalidTranslation> {
    let source = work.source.as_ref();
    let translated = source.map(|source| {
        map_texts(source, &mut |text| {
            dictionary.get(text).map_or(text, String::as_str).to_owned()
        })
    });
    let TranslationSource {
        name,
        title,
        body,
        instructions,
        feedback_config,
    } = translated.unwrap_or_default();
    let translation = AutomaticTranslation {
        guid: work.guid.clone(),
        language: work.language.clone(),
        name,
        title,
        body,
        instructions,
        feedback_config,
        source_digest: work.source_digest.clone(),
    };
    check(&translation, source)?;
    Ok(translation)
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
            .map(|instruction| translate_instruction(instruction, translate))
            .collect(),
        feedback_config: feedback_config
            .iter()
            .map(|config| map_answers(config, translate))
            .collect(),
    }
}

/// Translates the answers of a question. Links and linked documents are no part of a
/// translation.
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

fn check(
    translation: &AutomaticTranslation,
    source: Option<&TranslationSource>,
) -> Result<(), InvalidTranslation> {
    let linked = source
        .into_iter()
        .flat_map(|source| &source.feedback_config)
        .any(|config| config.linked == Some(true));
    let value_max = if linked {
        MAX_NAME_CHARS
    } else {
        MAX_LABEL_CHARS
    };
    // Each field is named, so that a new text is not forgotten.
    let AutomaticTranslation {
        guid: _,
        language: _,
        name,
        title,
        body,
        instructions: _,
        feedback_config,
        source_digest: _,
    } = translation;
    let values = feedback_config
        .iter()
        .flat_map(|config| &config.values)
        .map(|value| ("value of feedback_config", &value.value, value_max));
    let texts = [
        ("name", name.as_ref(), MAX_NAME_CHARS),
        ("title", title.as_ref(), MAX_TITLE_CHARS),
        ("body", body.as_ref(), MAX_BODY_CHARS),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(field, text, max)| Some((field, text?, max)));
    for (field, text, max) in texts.chain(values) {
        text::check(text, max).map_err(|fault| InvalidTranslation { field, fault })?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn config(linked: bool, value: &str) -> FeedbackConfig {
        let value = FeedbackValue {
            key: "yes".to_owned(),
            value: value.to_owned(),
            link: "a link".to_owned(),
            task_json: None,
        };
        FeedbackConfig {
            name: "what is seen".to_owned(),
            r#type: "enum".to_owned(),
            linked: Some(linked),
            values: vec![value],
        }
    }

    fn work(source: TranslationSource) -> TranslationWork {
        TranslationWork {
            guid: "g".to_owned(),
            language: "de".to_owned(),
            source: Some(source),
            source_digest: "d".to_owned(),
            ..TranslationWork::default()
        }
    }

    fn in_upper_case(
        source: TranslationSource,
    ) -> Result<AutomaticTranslation, InvalidTranslation> {
        let dictionary = texts(&source).into_iter().map(|text| {
            let upper = text.to_uppercase();
            (text, upper)
        });
        let dictionary = dictionary.collect();
        translation(&work(source), &dictionary)
    }

    #[test]
    fn each_text_is_listed_once() {
        let source = TranslationSource {
            name: Some("on".to_owned()),
            body: Some("<b>on</b> 12 <i>off</i>".to_owned()),
            ..TranslationSource::default()
        };
        assert_eq!(texts(&source), ["off", "on"]);
    }

    #[test]
    fn too_long_translations_are_refused_whole() {
        // `ß` in upper case is `SS`.
        let long = |count: usize| Some("ß".repeat(count));
        for (source, field, max) in [
            (
                TranslationSource {
                    name: long(101),
                    ..Default::default()
                },
                "name",
                200,
            ),
            (
                TranslationSource {
                    title: long(201),
                    ..Default::default()
                },
                "title",
                400,
            ),
            (
                TranslationSource {
                    feedback_config: vec![config(false, &"ß".repeat(501))],
                    ..Default::default()
                },
                "value of feedback_config",
                1_000,
            ),
            (
                TranslationSource {
                    feedback_config: vec![config(true, &"ß".repeat(101))],
                    ..Default::default()
                },
                "value of feedback_config",
                200,
            ),
        ] {
            let fault = TextError::TooLong(max);
            assert_eq!(
                in_upper_case(source),
                Err(InvalidTranslation { field, fault })
            );
        }
        let fits = TranslationSource {
            name: long(100),
            ..Default::default()
        };
        assert!(in_upper_case(fits).is_ok());
    }
}
