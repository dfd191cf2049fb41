//! Previews of documents that are not stored.

use super::{information, observation, seen, title};
use crate::kit::prelude::*;

fn lamp() -> TaskDocument {
    document(
        "Lamp",
        vec![
            observation("light", &["off", "on"]),
            information("dark", when("light", "=", "off")),
        ],
    )
}

/// A preview without ids and what follows from them.
fn without_ids(mut preview: PreviewTaskResponse) -> PreviewTaskResponse {
    preview.fingerprint.clear();
    preview.next_observation = vec![String::new(); preview.next_observation.len()];
    if let Some(task) = &mut preview.task {
        task.guid.clear();
        task.etag.clear();
    }
    for step in &mut preview.steps {
        step.guid.clear();
        step.task.clear();
        step.etag.clear();
        step.via = vec![String::new(); step.via.len()];
        let question = step.question.iter_mut();
        for answer in question.flat_map(|question| &mut question.answers) {
            answer.link.clear();
        }
    }
    preview
}

#[apply(on_both_databases)]
async fn a_document_is_previewed_like_what_its_import_stores(client: Client) {
    let guid = client.imported(lamp()).await.guid;
    for answer in [None, Some("off"), Some("on")] {
        let with = |request: PreviewTaskRequest| match answer {
            None => request,
            Some(key) => request.with_traces(true).answering("light", text(key)),
        };
        let stored = client.previewed(with(preview_of(&guid))).await;
        let document = client.previewed(with(preview_of_document(lamp()))).await;
        assert_eq!(without_ids(stored), without_ids(document));
    }
}

#[apply(on_both_databases)]
async fn nothing_is_stored(client: Client) {
    client.previewed(preview_of_document(lamp())).await;
    assert_eq!(client.all_tasks().await, Vec::<Task>::new());
}

#[apply(on_both_databases)]
async fn a_stored_step_has_its_type_cost_and_etag(client: Client) {
    let steps = vec![
        document_step(StepType::Solution, "Clean it").with_cost(7),
        document_step(StepType::Idp, "It is broken").with_cost(2),
    ];
    let task = client.imported(document("Lamp", steps)).await.guid;
    let task = client.get_task(&task).await.accepted();
    let dearer = step_of(&task.steps[1]).with_cost(3);
    client.updated_step(dearer, &["cost"]).await;
    let preview = client.previewed(preview_of(&task.guid)).await;
    let task = client.get_task(&task.guid).await.accepted();
    assert_eq!(preview.task.expect("a task").etag, task.etag);
    assert_eq!(preview.steps.len(), 2);
    for (shown, guid) in preview.steps.iter().zip(&task.steps) {
        let stored = client.get_step(guid).await.accepted();
        assert_eq!(
            (shown.r#type, Some(shown.cost), &shown.etag),
            (stored.r#type, stored.cost, &stored.etag)
        );
    }
}

#[apply(on_both_databases)]
async fn an_invalid_document_is_refused_as_an_import_refuses_it(client: Client) {
    let mut invalid = lamp();
    invalid.task = Some(task(""));
    invalid.steps[0].feedback_config.clear();
    invalid.steps[1].cost = Some(7);
    let preview = client.preview(preview_of_document(invalid.clone())).await;
    let import = client.import(invalid).await;
    let (preview, import) = (preview.refused(), import.refused());
    assert_eq!(preview.violations(), import.violations());
    assert_eq!(preview.violations().len(), 3);
    let empty = preview_of_document(TaskDocument::default());
    let failure = client.preview(empty).await.refused();
    failure.violates(&[("document.task", "FIELD_REQUIRED")]);
}

#[apply(on_both_databases)]
async fn a_document_may_refer_to_stored_tasks(client: Client) {
    let stored = client.imported(lamp()).await;
    let outer = document("Outer", vec![subtask(&Task::default(), &stored)]);
    let request = preview_of_document(outer).to_depth(1);
    let preview = client
        .previewed(request.answering("light", text("on")))
        .await;
    let titles: Vec<&str> = preview.steps.iter().map(title).collect();
    assert_eq!(titles, ["Lamp", "light", "dark"]);
    assert_eq!(seen(&preview)["dark"], Visibility::Hidden);
    assert_eq!(preview.steps[0].guid, "");
    assert_eq!(preview.steps[0].etag, "");
    assert_eq!(preview.steps[1].guid, stored.steps[0]);
    assert_eq!(preview.steps[1].task, stored.guid);
    assert!(!preview.steps[1].etag.is_empty());
}

#[apply(on_both_databases)]
async fn an_export_is_previewed_with_its_own_ids(client: Client) {
    let task = client.imported(lamp()).await;
    let exported = client.exported(&task.guid).await;
    let preview = client.previewed(preview_of_document(exported)).await;
    let guids: Vec<&String> = preview.steps.iter().map(|step| &step.guid).collect();
    assert_eq!(guids, task.steps.iter().collect::<Vec<_>>());
    assert_eq!(preview.next_observation, [task.steps[0].clone()]);
    let root = preview.task.expect("a task");
    assert_eq!((root.guid, root.etag), (task.guid, String::new()));
}

fn linked() -> TaskDocument {
    let inner = document("ignored", document_steps(&["inside"]));
    let values = vec![answer_with("a", "First", inner), answer("b", "Second")];
    let mut steps = vec![observation_asking(linked_question(values))];
    steps.extend(document_steps(&["last"]));
    document("Linked", steps)
}

#[apply(on_both_databases)]
async fn tasks_of_linked_answers_follow_their_observation(client: Client) {
    let request = preview_of_document(linked()).to_depth(1);
    let preview = client.previewed(request).await;
    let titles: Vec<&str> = preview.steps.iter().map(title).collect();
    assert_eq!(titles, ["What is it?", "First", "inside", "Second", "last"]);
}

#[apply(on_both_databases)]
async fn an_export_of_a_linked_guide_is_previewed_like_the_guide(client: Client) {
    let task = client.imported(linked()).await;
    let exported = client.exported(&task.guid).await;
    let stored = client.previewed(preview_of(&task.guid).to_depth(1)).await;
    let request = preview_of_document(exported).to_depth(1);
    let document = client.previewed(request).await;
    let ids = |preview: &PreviewTaskResponse| -> Vec<(String, String, Vec<String>)> {
        let steps = preview.steps.iter();
        steps
            .map(|step| (step.guid.clone(), step.task.clone(), step.via.clone()))
            .collect()
    };
    assert_eq!(ids(&stored), ids(&document));
    assert_eq!(without_ids(stored), without_ids(document));
}

#[apply(on_one_database)]
async fn the_next_observation_without_an_id_is_named_by_its_index(client: Client) {
    let mut guide = lamp();
    guide.steps.insert(0, document_step(StepType::Idp, "First"));
    let preview = client.previewed(preview_of_document(guide.clone())).await;
    assert_eq!(preview.next_observation, ["#1"]);
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    guide.steps[1].guid = id.to_owned();
    let preview = client.previewed(preview_of_document(guide)).await;
    assert_eq!(preview.next_observation, [id]);
}

#[apply(on_one_database)]
async fn questions_of_linked_answers_without_ids_have_names_of_their_own(client: Client) {
    let inner = || document("ignored", vec![observation("inner", &["x"])]);
    let values = vec![
        answer_with("a", "First", inner()),
        answer_with("b", "Second", inner()),
    ];
    let mut steps = document_steps(&["before"]);
    steps.push(observation_asking(linked_question(values)));
    let guide = document("Linked", steps);
    for (hidden, named) in [("b", "#1.values[0]"), ("a", "#1.values[1]")] {
        let mut guide = guide.clone();
        let question = &mut guide.steps[1].feedback_config[0];
        let managed = question.values.iter_mut().find(|value| value.key == hidden);
        let document = managed.and_then(|value| value.task_json.as_mut());
        document.expect("a document").steps.clear();
        let request = preview_of_document(guide).answering("it", text("a"));
        let preview = client.previewed(request).await;
        assert_eq!(preview.next_observation, [named, "#0"]);
    }
}
