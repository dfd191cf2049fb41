//! The language of each text.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{step_titled, title};
use crate::kit::prelude::*;

const LANGUAGES: [&str; 4] = ["de", "de-CH", "fr", "zh-Hant-TW"];
/// Languages to ask for, each with its forms from the longest to the shortest.
const ASKED: [Asked; 5] = [
    ("de-ch-1996", &["de-CH-1996", "de-CH", "de"]),
    ("de", &["de"]),
    ("FR-x-private", &["fr-x-private", "fr"]),
    ("zh-hant-tw", &["zh-Hant-TW", "zh-Hant", "zh"]),
    ("es", &["es"]),
];

/// A language as it is asked for, and its forms.
type Asked = (&'static str, &'static [&'static str]);
/// Whether a translation has a title, a body, an instruction, and a text of the answer `no`.
type Row = (bool, bool, bool, bool);

fn rows() -> impl Strategy<Value = Row> {
    any::<Row>()
}

fn row(language: &str, (title, body, instruction, answered): Row) -> StepTranslation {
    let instruction = instruction.then(|| object(serde_json::json!({"text": language})));
    let mut keys = vec![answer("yes", &format!("yes {language}"))];
    if answered {
        keys.push(answer("no", &format!("no {language}")));
    }
    StepTranslation {
        title: title.then(|| format!("title {language}")),
        body: body.then(|| format!("body {language}")),
        instructions: instruction.into_iter().collect(),
        feedback_config: vec![FeedbackConfig {
            linked: None,
            ..question("answer", &[]).with_values(keys)
        }],
        locked: None,
    }
}

#[apply(property_on_one_database)]
#[cases(40, (vec(option::of(rows()), LANGUAGES.len()), select(&ASKED[..]), vec(select(&ASKED[..]), 0..3)))]
async fn every_text_is_that_of_the_first_language_in_line_that_has_it(
    client: Client,
    (rows, (asked, forms), fallback): (Vec<Option<Row>>, Asked, Vec<Asked>),
) {
    let rows: BTreeMap<&str, Row> = LANGUAGES
        .into_iter()
        .zip(rows)
        .filter_map(|(language, has)| Some((language, has?)))
        .collect();
    let mut step = document_step(StepType::Observation, "title").with_body("body");
    step.instructions = vec![object(serde_json::json!({"text": "source"}))];
    let translations = rows.iter();
    step.translations = translations
        .map(|(language, has)| ((*language).to_owned(), row(language, *has)))
        .collect();
    let task = client.imported(document("Guide", vec![step])).await;
    let tags: Vec<&str> = fallback.iter().map(|(tag, _)| *tag).collect();
    let request = preview_of(&task.guid)
        .in_language(asked)
        .falling_back_to(&tags)
        .expanding(vec!["body".to_owned()]);
    let preview = client.previewed(request).await;
    let expected = |has: fn(&Row) -> bool| {
        let fallback_forms = fallback.iter().flat_map(|(_, forms)| *forms);
        let mut in_line = forms.iter().chain(fallback_forms);
        let found = in_line.find(|language| rows.get(**language).is_some_and(has));
        found.copied().unwrap_or_default()
    };
    let step = &preview.steps[0];
    let question = step.question.as_ref().expect("a question");
    let texts = [
        (&step.title, "title", expected(|row| row.0)),
        (&step.body, "body", expected(|row| row.1)),
        (&question.answers[0].value, "yes", expected(|_| true)),
        (&question.answers[1].value, "no", expected(|row| row.3)),
    ];
    for (found, source, language) in texts {
        let text = match language {
            "" => source.to_owned(),
            language => format!("{source} {language}"),
        };
        let expected = PreviewText {
            text,
            language: language.to_owned(),
            fallback: language != forms[0],
            outdated: false,
        };
        assert_eq!(found.as_ref(), Some(&expected));
    }
    let language = expected(|row| row.2);
    assert_eq!(step.instructions_language, language);
    let text = if language.is_empty() {
        "source"
    } else {
        language
    };
    assert_eq!(
        step.instructions,
        [object(serde_json::json!({"text": text}))]
    );
}

#[apply(on_both_databases)]
async fn a_text_is_in_the_first_language_in_line_that_has_it(client: Client) {
    let task = task("Guide").translated("de", task_translation("Anleitung"));
    let task = client.given_task(task).await;
    for (asked, name, language, fallback) in [
        ("de", "Anleitung", "de", false),
        ("de-CH", "Anleitung", "de", true),
        ("fr", "Guide", "", true),
        ("", "Guide", "", false),
    ] {
        let request = preview_of(&task.guid).in_language(asked);
        let preview = client.previewed(request).await;
        let expected = PreviewText {
            text: name.to_owned(),
            language: language.to_owned(),
            fallback,
            outdated: false,
        };
        let found = preview.task.and_then(|task| task.name);
        assert_eq!(found, Some(expected), "{asked}");
    }
}

#[apply(on_both_databases)]
async fn a_subtask_step_has_its_own_title_or_the_name_of_its_task_in_each_language(client: Client) {
    let names = [("de", "Innen"), ("fr", "Dedans")];
    let names = names.map(|(language, name)| (language.to_owned(), task_translation(name)));
    let inner = Task {
        translations: names.into(),
        ..task("Inner")
    };
    let inner = client.given_task(inner).await;
    let step = subtask(&Task::default(), &inner).translated("fr", step_translation("Propre"));
    let outer = client.imported(document("Outer", vec![step])).await;
    let shown = async |asked: &str, fallback: &[&str]| {
        let request = preview_of(&outer.guid).in_language(asked);
        let request = request.falling_back_to(fallback);
        let preview = client.previewed(request).await;
        preview.steps[0].title.clone().expect("a title")
    };
    for (asked, fallback, text, language) in [
        ("de", &["fr"][..], "Innen", "de"),
        ("fr", &["de"], "Propre", "fr"),
        ("de-CH", &["fr"], "Innen", "de"),
        ("es", &["fr", "de"], "Propre", "fr"),
        ("es", &[], "Inner", ""),
        ("", &[], "Inner", ""),
    ] {
        let expected = PreviewText {
            text: text.to_owned(),
            language: language.to_owned(),
            fallback: language != asked,
            outdated: false,
        };
        assert_eq!(
            shown(asked, fallback).await,
            expected,
            "{asked} {fallback:?}"
        );
    }
    let renamed = task_of(&inner.guid).named("Renamed");
    client.updated_task(renamed, &["name"]).await;
    for asked in ["de", "fr"] {
        assert!(shown(asked, &[]).await.outdated, "{asked}");
        let request = preview_of(&inner.guid).in_language(asked);
        let name = client.previewed(request).await.task.and_then(|it| it.name);
        assert!(name.expect("a name").outdated, "{asked}");
    }
}

#[apply(on_both_databases)]
async fn without_a_language_texts_are_the_source(client: Client) {
    let step = document_step(StepType::Information, "source");
    let step = step.translated("de", step_translation("Quelle"));
    let task = client.imported(document("Guide", vec![step])).await;
    let request = preview_of(&task.guid).falling_back_to(&["de"]);
    let preview = client.previewed(request).await;
    assert_eq!(title(&preview.steps[0]), "source");
}

#[apply(on_both_databases)]
async fn an_answer_that_a_translation_lacks_comes_from_the_next_in_line(client: Client) {
    let keyed = |key: &str, text: &str| StepTranslation {
        feedback_config: vec![FeedbackConfig {
            linked: None,
            ..question("answer", &[]).with_values(vec![answer(key, text)])
        }],
        ..StepTranslation::default()
    };
    let translations = [
        ("de-CH".to_owned(), keyed("yes", "Ja, CH")),
        ("de".to_owned(), keyed("gone", "weg")),
        ("fr".to_owned(), keyed("no", "non")),
    ];
    let step = document_step(StepType::Observation, "step").with_translations(translations.into());
    let task = client.imported(document("Guide", vec![step])).await;
    let request = preview_of(&task.guid)
        .in_language("de-CH")
        .falling_back_to(&["fr"]);
    let preview = client.previewed(request).await;
    let question = preview.steps[0].question.as_ref().expect("a question");
    let answers: Vec<(&str, &str, &str)> = question
        .answers
        .iter()
        .map(|answer| {
            let text = answer.value.as_ref().expect("a text");
            (
                answer.key.as_str(),
                text.text.as_str(),
                text.language.as_str(),
            )
        })
        .collect();
    assert_eq!(answers, [("yes", "Ja, CH", "de-CH"), ("no", "non", "fr")]);
}

#[apply(on_both_databases)]
async fn a_text_made_from_a_source_that_has_changed_is_outdated(client: Client) {
    let mut step = document_step(StepType::Observation, "step").with_body("body");
    let translation = StepTranslation {
        feedback_config: vec![question("answer", &["yes", "no"])],
        ..step_translation("Schritt").with_body("Text")
    };
    step = step.translated("de", translation);
    let task = client.imported(document("Guide", vec![step])).await;
    let outdated = async || {
        let request = preview_of(&task.guid)
            .in_language("de")
            .expanding(vec!["body".to_owned()]);
        let preview = client.previewed(request).await;
        let step = step_titled(&preview, "Schritt");
        let question = step.question.as_ref().expect("a question");
        let texts = [&step.title, &step.body, &question.answers[0].value];
        texts.map(|text| text.as_ref().expect("a text").outdated)
    };
    assert_eq!(outdated().await, [false, false, false]);
    let update = step_of(&task.steps[0]).titled("other");
    client.updated_step(update, &["title"]).await;
    assert_eq!(outdated().await, [true, false, false]);
    let update = step_of(&task.steps[0]).with_body("other");
    client.updated_step(update, &["body"]).await;
    assert_eq!(outdated().await, [true, true, true]);
}

#[apply(on_both_databases)]
async fn bodies_are_shown_when_expanded(client: Client) {
    let step = |title: &str| document_step(StepType::Information, title);
    let translation = step_translation("zwei").with_body("Zwei");
    let steps = vec![
        step("one").with_body("One"),
        step("two").with_body("Two").translated("de", translation),
        step("three"),
    ];
    let guide = document("Guide", steps);
    let task = client.imported(guide.clone()).await;
    for request in [preview_of(&task.guid), preview_of_document(guide)] {
        let request = request.in_language("de");
        let preview = client.previewed(request.clone()).await;
        assert!(preview.steps.iter().all(|step| step.body.is_none()));
        let request = request.expanding(vec!["body".to_owned()]);
        let preview = client.previewed(request).await;
        let bodies = preview.steps.iter();
        let bodies: Vec<Option<&str>> = bodies
            .map(|step| step.body.as_ref().map(|body| body.text.as_str()))
            .collect();
        assert_eq!(bodies, [Some("One"), Some("Zwei"), None]);
    }
}

#[apply(on_both_databases)]
async fn links_of_answers_are_the_managed_tasks(client: Client) {
    let guide = document("Guide", vec![linked_observation(&[("a", "A"), ("b", "B")])]);
    let task = client.imported(guide).await;
    let stored = client.get_step(&task.steps[0]).await.accepted();
    let preview = client.previewed(preview_of(&task.guid)).await;
    let question = preview.steps[0].question.as_ref().expect("a question");
    let shown: Vec<&str> = question.answers.iter().map(|a| a.link.as_str()).collect();
    let links: Vec<&str> = answers_of(&stored)
        .iter()
        .map(|a| a.link.as_str())
        .collect();
    assert_eq!(shown, links);
    assert!(!links[0].is_empty());
}
