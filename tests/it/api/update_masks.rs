//! Update masks. What an update by any mask leaves is held against a model in
//! `laws::update_masks`. `tests/cases/updates.cases` has what is listed as ignored.

use crate::prelude::*;

#[apply(on_both_databases)]
async fn what_is_sent_as_it_is_stored_is_not_listed(client: Client) {
    let full = client.given_task(full_task()).await;
    let step = client.given_step(full_step(&full)).await;
    let steps = vec![
        linked_observation(&[("a", "A"), ("b", "B")]),
        subtask(&Task::default(), &full),
    ];
    let guide = client.given_guide(steps).await;
    for guid in guide.steps.iter().chain([&step.guid]) {
        let read = client.get_step(guid).await.accepted();
        let changed = read.clone().with_body("<p>Changed</p>");
        for sent in [read.clone(), changed] {
            let updated = client.update_step(sent, &[]).await.accepted();
            assert!(updated.ignored_paths.is_empty(), "{updated:?}");
        }
        let read = client.get_step(guid).await.accepted();
        let other = Some("components.7.other = off".to_owned());
        let sent = read.clone().with(|it| it.dependency_shorthand = other);
        let updated = client.update_step(sent, &[]).await.accepted();
        assert_eq!(updated.ignored_paths, ["step.dependency_shorthand"]);
        assert_eq!(updated.step, Some(read));
    }
    let read = client.get_task(&guide.guid).await.accepted();
    let renamed = read.clone().named("Renamed");
    let updated = client.update_task(renamed, &[]).await.accepted();
    assert!(updated.ignored_paths.is_empty(), "{updated:?}");
    let read = client.get_task(&guide.guid).await.accepted();
    let named = client.update_task(read, &["name", "steps"]);
    assert_eq!(named.await.accepted().ignored_paths, ["task.steps"]);
}

#[apply(on_both_databases)]
async fn sending_back_what_was_read_changes_nothing(client: Client) {
    let full = client.given_task(full_task()).await;
    client.given_step(full_step(&full)).await;
    let steps = vec![
        linked_observation(&[("a", "A"), ("b", "B")]),
        document_step(StepType::Solution, "Try it").with(|it| it.cost = Some(5)),
        document_step(StepType::End, "Done"),
        subtask(&Task::default(), &full),
    ];
    client.given_guide(steps).await;
    for (task, steps) in client.tasks_with_steps().await {
        for mask in [&[][..], &["*"]] {
            assert_eq!(client.updated_task(task.clone(), mask).await, task);
            for step in &steps {
                assert_eq!(client.updated_step(step.clone(), mask).await, *step);
            }
        }
    }
}

/// A language is replaced as a whole, and a listed step has no bodies.
#[apply(on_both_databases)]
async fn a_listed_step_sent_back_without_a_mask_loses_the_bodies_of_its_translations(
    client: Client,
) {
    let task = client.given_task(task("Guide")).await;
    let row = step_translation("Titel").with_body("Text");
    let sent = information_step(&task, "title")
        .with_body("text")
        .translated("de", row);
    client.given_step(sent).await;
    let page = client.call(list_steps_of(&task.guid));
    let mut listed = page.await.accepted().steps;
    let listed = listed.pop().expect("a step");
    let masked = client.updated_step(listed.clone(), &["translations.de.title"]);
    assert_eq!(
        masked.await.translations["de"].body.as_deref(),
        Some("Text")
    );
    let after = client.updated_step(listed.with_etag(""), &[]);
    let after = after.await;
    assert_eq!(after.body.as_deref(), Some("text"));
    assert_eq!(after.translations["de"].body, None);
    // An empty body is sent, unlike an absent one.
    let emptied = client.updated_step(step_of(&after.guid).with_body(""), &[]);
    assert_eq!(emptied.await.body.as_deref(), Some(""));
}
