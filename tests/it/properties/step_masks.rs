//! An update of a step by any mask equals the same edit on a model.

use crate::kit::prelude::*;
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{select, subsequence},
};
use serde_json::json;

on_both_databases! {
    masked_updates_equal_edits_of_a_model: vec(update(), 1..8), 24;
}

/// The paths of a step that are no translation.
const FIELDS: [&str; 11] = [
    "body",
    "cost",
    "dependencies",
    "feedback_config",
    "instructions",
    "looping",
    "parts",
    "published",
    "skills",
    "tags",
    "title",
];

const LANGUAGES: [&str; 2] = ["de", "pt-BR"];

/// The paths below a language.
const BELOW: [&str; 5] = ["title", "body", "instructions", "feedback_config", "locked"];

#[derive(Clone, Debug)]
struct Update {
    sent: Step,
    /// Empty: no mask.
    mask: Vec<String>,
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(select(&["a", "b"][..]).prop_map(str::to_owned), 0..3)
}

fn instructions() -> impl Strategy<Value = Vec<prost_types::Struct>> {
    let one = select(vec![
        object(json!({})),
        object(json!({"b": [1, null], "a": {"x": true}})),
    ]);
    vec(one, 0..3)
}

fn questions() -> impl Strategy<Value = Vec<FeedbackConfig>> {
    let linked = |config| FeedbackConfig {
        linked: Some(false),
        ..config
    };
    select(vec![
        vec![],
        vec![linked(question("q", &["a"]))],
        vec![linked(question("r", &["a", "b"]))],
    ])
}

fn row() -> impl Strategy<Value = StepTranslation> {
    (
        option::of(select(&["t", "u"][..])),
        option::of(select(&["<p>", "<q>"][..])),
        instructions(),
        questions(),
        option::of(any::<bool>()),
    )
        .prop_map(
            |(title, body, instructions, feedback_config, locked)| StepTranslation {
                title: owned(title),
                body: owned(body),
                instructions,
                // `linked` has no meaning in a translation.
                feedback_config: feedback_config
                    .into_iter()
                    .map(|config| FeedbackConfig {
                        linked: None,
                        ..config
                    })
                    .collect(),
                locked,
            },
        )
}

fn sent() -> impl Strategy<Value = Step> {
    let looping = select(vec![
        None,
        Some(Looping {
            alias: "x".to_owned(),
            array: Some(value(json!([1, "2"]))),
            iterations: None,
        }),
        Some(Looping::default()),
    ]);
    let dependencies = select(vec![None, Some(any_of(vec![when("a", "<", "1")]))]);
    let plain = (
        select(&["", "T", "Ü"][..]),
        option::of(select(&["<b>", "<i>"][..])),
        option::of(select(&[0, 1, 2, 9][..])),
        option::of(0..3),
    );
    let lists = (texts(), texts(), texts(), instructions(), questions());
    let rows = btree_map(select(&LANGUAGES[..]).prop_map(str::to_owned), row(), 0..=2);
    (plain, lists, looping, dependencies, rows).prop_map(
        |(plain, lists, looping, dependencies, translations)| Step {
            title: plain.0.to_owned(),
            body: owned(plain.1),
            cost: plain.2,
            published: plain.3,
            parts: lists.0,
            skills: lists.1,
            tags: lists.2,
            instructions: lists.3,
            feedback_config: lists.4,
            looping,
            dependencies,
            translations,
            ..Step::default()
        },
    )
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    // Paths into each language, or the whole map.
    let within = |language: &'static str| {
        let whole = format!("translations.{language}");
        let below = BELOW.map(|field| format!("{whole}.{field}")).to_vec();
        prop_oneof![
            1 => Just(vec![whole]),
            2 => subsequence(below, 0..=3),
        ]
    };
    let rows = LANGUAGES.map(within).prop_map(|paths| paths.concat());
    let whole = Just(vec!["translations".to_owned()]);
    let map = prop_oneof![3 => rows, 1 => whole];
    let fields = FIELDS.map(str::to_owned).to_vec();
    (subsequence(fields, 0..=4), map)
        .prop_map(|(fields, map)| [fields, map].concat())
        .prop_shuffle()
}

fn update() -> impl Strategy<Value = Update> {
    let mask = prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec!["*".to_owned()]),
        5 => paths(),
    ];
    (sent(), mask).prop_map(|(sent, mask)| Update { sent, mask })
}

/// The stored row after a write of the whole row.
fn written(row: &StepTranslation) -> StepTranslation {
    StepTranslation {
        locked: row.locked.or(Some(true)),
        ..row.clone()
    }
}

fn set(step: &mut Step, path: &str, sent: &Step) {
    match path {
        "body" => step.body.clone_from(&sent.body),
        "cost" => step.cost = sent.cost.or(Some(0)),
        "dependencies" => step.dependencies.clone_from(&sent.dependencies),
        "feedback_config" => step.feedback_config.clone_from(&sent.feedback_config),
        "instructions" => step.instructions.clone_from(&sent.instructions),
        "looping" => step.looping.clone_from(&sent.looping),
        "parts" => step.parts.clone_from(&sent.parts),
        "published" => step.published = sent.published.or(Some(1)),
        "skills" => step.skills.clone_from(&sent.skills),
        "tags" => step.tags.clone_from(&sent.tags),
        "title" => step.title.clone_from(&sent.title),
        "translations" => {
            let rows = sent.translations.iter();
            step.translations = rows.map(|(k, row)| (k.clone(), written(row))).collect();
        }
        _ => set_within(step, path, sent),
    }
}

fn set_within(step: &mut Step, path: &str, sent: &Step) {
    let (language, below) = within(path).expect("a path into translations");
    let sent_row = sent.translations.get(language);
    if below.is_empty() {
        match sent_row {
            Some(row) => step.translations.insert(language.to_owned(), written(row)),
            None => step.translations.remove(language),
        };
        return;
    }
    let empty = StepTranslation::default();
    let from = sent_row.unwrap_or(&empty);
    let fresh = StepTranslation {
        locked: Some(true),
        ..StepTranslation::default()
    };
    let row = step
        .translations
        .entry(language.to_owned())
        .or_insert(fresh);
    match below {
        "title" => row.title.clone_from(&from.title),
        "body" => row.body.clone_from(&from.body),
        "instructions" => row.instructions.clone_from(&from.instructions),
        "feedback_config" => row.feedback_config.clone_from(&from.feedback_config),
        "locked" => row.locked = from.locked.or(Some(true)),
        other => panic!("no such path: {other}"),
    }
}

/// The language of a path into `translations`, and what it names within it.
fn within(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("translations.")?;
    Some(rest.split_once('.').unwrap_or((rest, "")))
}

/// Whether an update without a mask writes this field.
fn populated(sent: &Step, field: &str) -> bool {
    let mut probe = Step::default();
    set(&mut probe, field, sent);
    match field {
        "cost" => sent.cost.is_some(),
        "published" => sent.published.is_some(),
        _ => probe != Step::default(),
    }
}

/// The step after the update; `None` when it must be refused.
fn edited(before: &Step, update: &Update) -> Option<Step> {
    let (mut after, sent) = (before.clone(), &update.sent);
    match update.mask.as_slice() {
        [] => {
            for field in FIELDS.into_iter().filter(|field| populated(sent, field)) {
                set(&mut after, field, sent);
            }
            for (language, row) in &sent.translations {
                after.translations.insert(language.clone(), written(row));
            }
        }
        [star] if star == "*" => {
            for field in FIELDS.into_iter().chain(["translations"]) {
                set(&mut after, field, sent);
            }
        }
        paths => paths.iter().for_each(|path| set(&mut after, path, sent)),
    }
    (!after.title.is_empty() && after.cost != Some(1)).then_some(after)
}

/// The update without cases that the contract leaves open: sub-paths that would create
/// an empty row.
fn unambiguous(mut update: Update, before: &Step) -> Update {
    let sent = &update.sent;
    update.mask.retain(|path| match within(path) {
        None | Some((_, "")) => true,
        Some((language, below)) if !before.translations.contains_key(language) => {
            let row = sent.translations.get(language);
            below == "title" && row.is_some_and(|row| row.title.is_some())
        }
        Some(_) => true,
    });
    update
}

/// The fields of the step that masks reach.
fn reached(step: &Step) -> Step {
    let mut reached = Step {
        title: step.title.clone(),
        body: step.body.clone(),
        cost: step.cost,
        published: step.published,
        parts: step.parts.clone(),
        skills: step.skills.clone(),
        tags: step.tags.clone(),
        instructions: step.instructions.clone(),
        feedback_config: step.feedback_config.clone(),
        looping: step.looping.clone(),
        dependencies: step.dependencies.clone(),
        translations: step.translations.clone(),
        ..Step::default()
    };
    for row in reached.translations.values_mut() {
        for config in &mut row.feedback_config {
            config.linked = None;
        }
    }
    for config in &mut reached.feedback_config {
        config.linked = Some(config.linked.unwrap_or_default());
    }
    reached
}

async fn masked_updates_equal_edits_of_a_model(client: Client, updates: Vec<Update>) {
    let task = client.given_task(task("Masked")).await;
    let sent = step(&task, StepType::Solution, "Start");
    let mut stored = client.given_step(sent).await;
    for update in updates {
        let before = reached(&stored);
        let update = unambiguous(update, &before);
        let mask: Vec<&str> = update.mask.iter().map(String::as_str).collect();
        let sent = update.sent.clone().with_guid(stored.guid.clone());
        let outcome = client.update_step(sent, &mask).await;
        let Some(expected) = edited(&before, &update) else {
            assert_eq!(outcome.refused().code, Code::InvalidArgument);
            let unchanged = client.get_step(&stored.guid).await.accepted();
            assert_eq!(unchanged, stored);
            continue;
        };
        let answered = outcome.accepted().step.unwrap();
        assert_eq!(reached(&answered), expected);
        let changed = expected != before;
        assert_eq!(answered.etag != stored.etag, changed);
        assert_eq!(answered.modified_ts != stored.modified_ts, changed);
        stored = client.get_step(&stored.guid).await.accepted();
        assert_eq!(stored, answered);
    }
}
