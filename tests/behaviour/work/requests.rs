//! Which work is asked for: languages, a task, and who may ask.

use super::{DE, told};
use crate::harness::prelude::*;

on_both_databases![
    a_language_comes_in_canonical_case,
    a_language_named_twice_counts_once,
    a_hundred_languages_are_accepted_and_one_more_is_not,
    no_language_is_refused,
    malformed_languages_are_refused_all_at_once,
    everything_wrong_is_said_at_once,
    a_task_narrows_the_work_to_itself_and_its_steps,
    the_id_of_a_task_may_be_in_upper_case,
    an_unknown_task_and_a_foreign_one_are_not_found_alike,
    a_deleted_task_is_not_found,
    a_step_is_no_task,
    a_malformed_task_is_refused,
    an_empty_account_has_no_work,
    another_account_is_no_work,
    work_needs_the_scope_translate,
    writes_need_the_scope_translate,
    the_scope_translate_opens_nothing_else,
];

fn of_task(task: &str) -> ListTranslationWorkRequest {
    ListTranslationWorkRequest {
        task: Some(task.to_owned()),
        ..work_into(&DE)
    }
}

async fn a_language_comes_in_canonical_case(world: World) {
    world.given_task(task("Pump")).await;
    let work = world.work(&["ZH-hant-TW", "EN-us", "De"]).await;
    let languages: Vec<String> = told(work).into_iter().map(|(_, tag, _)| tag).collect();
    assert_eq!(languages, ["de", "en-US", "zh-Hant-TW"]);
}

async fn a_language_named_twice_counts_once(world: World) {
    let guide = world.given_task(task("Pump")).await;
    let work = world.work(&["de", "DE", "de", "dE"]).await;
    let missing = TranslationState::Missing;
    assert_eq!(told(work), [(guide.guid, "de".to_owned(), missing)]);
}

async fn a_hundred_languages_are_accepted_and_one_more_is_not(world: World) {
    world.given_task(task("Pump")).await;
    let tags = tags(101);
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    assert_eq!(world.work(&tags[..100]).await.len(), 100);
    let failure = world.list_work(work_into(&tags)).await.refused();
    failure.violates(&[("languages", "TOO_MANY_ELEMENTS")]);
}

async fn no_language_is_refused(world: World) {
    let failure = world.list_work(work_into(&[])).await.refused();
    failure.violates(&[("languages", "FIELD_REQUIRED")]);
}

async fn malformed_languages_are_refused_all_at_once(world: World) {
    let tags = ["de", "de_DE", "fr", "1", "d\0", " de"];
    let failure = world.list_work(work_into(&tags)).await.refused();
    failure.violates(&[
        ("languages[1]", "FIELD_INVALID"),
        ("languages[3]", "FIELD_INVALID"),
        ("languages[4]", "FIELD_INVALID"),
        ("languages[5]", "FIELD_INVALID"),
    ]);
    let failure = world.list_work(work_into(&["de", ""])).await.refused();
    failure.violates_below("languages[1]", failure.reason());
}

async fn everything_wrong_is_said_at_once(world: World) {
    let request = ListTranslationWorkRequest {
        languages: vec!["de_DE".to_owned()],
        task: Some("Pump".to_owned()),
        page_size: -1,
        page_token: "nonsense".to_owned(),
    };
    let failure = world.list_work(request).await.refused();
    failure.violates(&[
        ("languages[0]", "FIELD_INVALID"),
        ("task", "FIELD_INVALID"),
        ("page_size", "FIELD_OUT_OF_RANGE"),
        ("page_token", "PAGE_TOKEN_INVALID"),
    ]);
}

async fn a_task_narrows_the_work_to_itself_and_its_steps(world: World) {
    let mut expected = Vec::new();
    for name in ["Pump", "Valve", "Pipe"] {
        let task = world.given_task(task(name)).await;
        let mut guids = world.given_steps(&task, &["a", "b"]).await;
        guids.push(task.guid);
        guids.sort();
        expected.push(guids);
    }
    let tasks = world.list_tasks(ListTasksRequest::default()).await;
    for (task, guids) in tasks.accepted().tasks.iter().zip(expected) {
        let work = told(world.all_work(of_task(&task.guid)).await);
        let found: Vec<String> = work.into_iter().map(|(guid, ..)| guid).collect();
        assert_eq!(found, guids, "{}", task.name);
    }
}

async fn the_id_of_a_task_may_be_in_upper_case(world: World) {
    let guide = world.given_task(task("Pump")).await;
    let request = of_task(&guide.guid.to_uppercase());
    let work = world.list_work(request).await.accepted().work;
    assert_eq!(work[0].guid, guide.guid);
}

async fn an_unknown_task_and_a_foreign_one_are_not_found_alike(world: World) {
    let foreign = world.foreign().given_task(task("Pump")).await.guid;
    let unknown = unknown_guid();
    let mut messages = Vec::new();
    for guid in [&foreign, &unknown] {
        let failure = world.list_work(of_task(guid)).await.refused();
        failure.misses_task(guid);
        messages.push(failure.message.replace(guid, "?"));
    }
    assert_eq!(messages[0], messages[1]);
}

async fn a_deleted_task_is_not_found(world: World) {
    let guide = world.given_task(task("Pump")).await;
    world.delete_task(&guide.guid).await.accepted();
    let failure = world.list_work(of_task(&guide.guid)).await.refused();
    failure.misses_task(&guide.guid);
}

async fn a_step_is_no_task(world: World) {
    let guide = world.given_task(task("Pump")).await;
    let step = world.given_step(note(&guide, "Look")).await;
    let failure = world.list_work(of_task(&step.guid)).await.refused();
    failure.misses_task(&step.guid);
}

async fn a_malformed_task_is_refused(world: World) {
    for task in ["1", "Pump", "\0", "0198c2f0"] {
        let failure = world.list_work(of_task(task)).await.refused();
        failure.violates(&[("task", "FIELD_INVALID")]);
    }
}

async fn an_empty_account_has_no_work(world: World) {
    let listed = world.list_work(work_into(&DE)).await.accepted();
    assert_eq!(listed, ListTranslationWorkResponse::default());
}

async fn another_account_is_no_work(world: World) {
    let guide = world.given_task(task("Pump")).await;
    world.given_step(note(&guide, "Look")).await;
    assert_eq!(world.foreign().work(&DE).await, []);
}

#[track_caller]
fn lacks_translate(failure: Failure) {
    failure.is(Code::PermissionDenied, "SCOPE_MISSING");
    let scope = failure.metadata().remove("scope");
    assert_eq!(scope.as_deref(), Some("translate"));
}

async fn work_needs_the_scope_translate(world: World) {
    world.given_task(task("Pump")).await;
    for scopes in ["read", "write", "admin", "read write admin"] {
        let other = world.with_scopes(scopes);
        lacks_translate(other.list_work(work_into(&DE)).await.refused());
        // Before anything of the message is looked at.
        lacks_translate(other.list_work(work_into(&[])).await.refused());
    }
    let process = world.with_scopes("translate");
    assert_eq!(process.work(&DE).await.len(), 1);
}

async fn writes_need_the_scope_translate(world: World) {
    let guide = world.given_task(task("Pump")).await;
    let work = world.work(&DE).await;
    let sent = automatic(&work[0], "Pumpe");
    for scopes in ["read", "write", "admin", "read write admin"] {
        let other = world.with_scopes(scopes);
        let outcome = other.write_translations(vec![sent.clone()]).await;
        lacks_translate(outcome.refused());
    }
    let read = world.get_task(&guide.guid).await.accepted();
    assert!(read.translations.is_empty());
    let process = world.with_scopes("translate");
    assert_eq!(process.written(sent).await, TranslationResult::Written);
}

async fn the_scope_translate_opens_nothing_else(world: World) {
    let guide = world.given_task(task("Pump")).await;
    let process = world.with_scopes("translate");
    let failure = process.get_task(&guide.guid).await.refused();
    failure.is(Code::PermissionDenied, "SCOPE_MISSING");
    let failure = process.update_task(task_of(&guide.guid), &[]).await;
    let failure = failure.refused();
    failure.is(Code::PermissionDenied, "SCOPE_MISSING");
}
