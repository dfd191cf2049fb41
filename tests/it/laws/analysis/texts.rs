//! The language of each text.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::prelude::*;

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
        feedback_config: vec![
            question("answer", &[])
                .with(|it| it.values = keys)
                .with(|it| it.linked = None),
        ],
        locked: None,
    }
}

#[apply(property_on_one_database)]
#[cases(20, (vec(option::of(rows()), LANGUAGES.len()), select(&ASKED[..]), vec(select(&ASKED[..]), 0..3)))]
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
    let task = client.given_guide(vec![step]).await;
    let tags: Vec<&str> = fallback.iter().map(|(tag, _)| *tag).collect();
    let request = preview_of(&task.guid)
        .in_language(asked)
        .falling_back_to(&tags)
        .with(|it| it.expand = vec!["body".to_owned()]);
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
