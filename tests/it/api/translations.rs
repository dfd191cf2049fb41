//! Translations in tasks and steps: language tags, rows and locks.

use crate::prelude::*;
use std::collections::BTreeMap;

fn in_languages(names: &[&str]) -> Task {
    let rows = names.iter().map(|language| {
        let row = task_translation(&format!("in {language}"));
        ((*language).to_owned(), row)
    });
    task("Translated").with_translations(rows.collect())
}

fn in_language(language: &str, row: TaskTranslation) -> BTreeMap<String, TaskTranslation> {
    [(language.to_owned(), row)].into()
}

#[apply(on_both_databases)]
async fn a_language_tag_has_1000_characters_at_most(client: Client) {
    let longest = format!("de-x-ab{}", "-abcdefgh".repeat(110)) + "-ab";
    assert_eq!(longest.len(), 1_000);
    let of = |tag: &str| task("Pump").with_translations(in_language(tag, task_translation("x")));
    let created = client.given_task(of(&longest)).await;
    assert!(created.translations.contains_key(&longest));
    let longer = longest + "c";
    let failure = client.create_task(of(&longer)).await.refused();
    let (field, _) = failure.violations()[0];
    assert!(field.starts_with("task.translations"), "{failure:?}");
    failure.violates(&[(field, "FIELD_INVALID")]);
}

#[apply(on_both_databases)]
async fn the_limit_of_languages_counts_stored_ones_too(client: Client) {
    let tags = tags(101);
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    let guid = client.given_task(in_languages(&tags[..100])).await.guid;
    let renamed = task_of(&guid).with_translations(in_language(tags[99], task_translation("last")));
    let path = format!("translations.{}", tags[99]);
    client.updated_task(renamed, &[&path]).await;
    let update =
        task_of(&guid).with_translations(in_language(tags[100], task_translation("one too many")));
    let failure = client.update_task(update, &[]).await.refused();
    failure.violates(&[("task.translations", "TOO_MANY_ELEMENTS")]);
    // The sent values are checked, too.
    let mut sent = in_language(tags[100], TaskTranslation::default());
    sent.extend(in_language("de_DE", task_translation("malformed")));
    let update = task_of(&guid).with_translations(sent);
    let failure = client.update_task(update.clone(), &[]).await.refused();
    failure.violates(&[
        ("task.translations", "TOO_MANY_ELEMENTS"),
        (r#"task.translations["de_DE"]"#, "FIELD_INVALID"),
    ]);
    let document = document_with(update, Vec::new());
    let failure = client.import(document).await.refused();
    failure.violates(&[
        ("document.task.translations", "TOO_MANY_ELEMENTS"),
        (r#"document.task.translations["de_DE"]"#, "FIELD_INVALID"),
    ]);
    let guide = client.given_task(task("Guide")).await;
    let with = |tags: &[&str]| {
        let rows = tags
            .iter()
            .map(|tag| ((*tag).to_owned(), step_translation("x")));
        information_step(&guide, "Step").with_translations(rows.collect())
    };
    let step = client.given_step(with(&tags[..100])).await;
    let same = with(&tags[..1]).with_guid(&step.guid);
    assert_eq!(client.updated_step(same, &[]).await, step);
    let update = with(&tags[99..]).with_guid(&step.guid);
    let failure = client.update_step(update, &[]).await.refused();
    failure.violates(&[("step.translations", "TOO_MANY_ELEMENTS")]);
}
