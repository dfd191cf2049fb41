//! CompareRevisions.

use super::given_guide;
use crate::kit::prelude::*;

#[apply(on_both_databases)]
async fn equal_guides_are_the_same(client: Client) {
    let guide = given_guide(&client).await;
    let other = client.given_task(task("Other")).await;
    client.given_step(subtask(&guide, &other)).await;
    client.kept_revision(&guide.guid).await;
    // The title of a subtask step is the name of its task.
    client.rename(&other.guid, "Renamed").await;
    let compared = client
        .compare_revisions(&guide.guid, 1, "")
        .await
        .accepted();
    assert!(compared.same);
    assert!(compared.task_paths.is_empty() && compared.steps.is_empty());
    client.force_delete_task(&guide.guid).await.accepted();
    let failure = client.compare_revisions(&guide.guid, 1, "").await.refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
    let compared = client.compare_revisions(&guide.guid, 1, 1).await.accepted();
    assert!(compared.same);
}

#[apply(on_both_databases)]
async fn differences_are_listed_in_the_order_of_the_target(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&guide, &["a", "b", "c", "d"]).await;
    client.kept_revision(&guide.guid).await;
    let mut document = client.exported(&guide.guid).await;
    document.steps.remove(1);
    document.steps.swap(0, 1);
    document
        .steps
        .push(document_step(StepType::Information, "e"));
    document.steps[2].title = "changed".to_owned();
    let import = client.import_with(AbsentSteps::Delete, document).await;
    import.accepted();
    let compared = client
        .compare_revisions(&guide.guid, 1, "")
        .await
        .accepted();
    assert!(!compared.same);
    let listed: Vec<_> = compared
        .steps
        .iter()
        .map(|step| (step.title.as_str(), step.kind(), step.moved))
        .collect();
    use DifferenceKind::{Added, Changed, Moved, Removed};
    assert_eq!(
        listed,
        [
            ("c", Moved, true),
            ("b", Removed, false),
            ("changed", Changed, false),
            ("e", Added, false),
        ]
    );
    assert_eq!(compared.steps[2].paths, ["title"]);
    assert_eq!(compared.steps[2].step, steps[3]);
    assert_eq!(compared.steps[2].task, guide.guid);
    // The other way round, with both by aliases.
    let kept = client.kept_revision(&guide.guid).await.revision;
    for (alias, revision) in [("before", 1), ("after", kept)] {
        client.alias(&guide.guid, alias, revision).await;
    }
    let compared = client.compare_revisions(&guide.guid, "after", "before");
    let compared = compared.await.accepted();
    let task = guide.guid.as_str();
    let kinds = [("a", Moved), ("b", Added), ("d", Changed), ("e", Removed)];
    let expected = kinds.map(|(title, kind)| (title, kind, task));
    assert_eq!(self::listed(&compared), expected);
    // A step that has moved and changed counts as changed.
    let both = step_of(&steps[2]).titled("C").with_body("text");
    client.updated_step(both, &[]).await;
    let compared = client.compare_revisions(&guide.guid, 1, "").await;
    let compared = compared.accepted().steps.remove(0);
    assert_eq!((&*compared.title, compared.kind()), ("C", Changed));
    assert!(compared.moved);
    assert_eq!(compared.paths, ["body", "title"]);
}

#[apply(on_both_databases)]
async fn fields_are_named_by_their_paths(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    let name = TaskTranslation::default().with(|it| it.name = Some("Anleitung".to_owned()));
    let renamed = guide
        .clone()
        .translated("de", name)
        .named("Renamed")
        .with_etag("");
    client
        .updated_task(renamed, &["name", "translations"])
        .await;
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = answers_of(&observation)[1].link.clone();
    let managed = client.get_task(&managed).await.accepted();
    for answer in answers_of(&observation) {
        let hidden = task_of(&answer.link).with_published(0);
        client.updated_task(hidden, &["published"]).await;
    }
    client.retitle(&observation.guid, "Which?").await;
    let below = client.given_step(information_step(&managed, "Below")).await;
    let compared = client
        .compare_revisions(&guide.guid, 1, "")
        .await
        .accepted();
    assert_eq!(
        compared.task_paths,
        [
            "name",
            "translations[\"de\"].locked",
            "translations[\"de\"].name"
        ]
    );
    let [observed, added] = &compared.steps[..] else {
        panic!("{compared:?}");
    };
    assert_eq!(observed.step, observation.guid);
    assert_eq!(
        observed.paths,
        [
            "feedback_config.values[\"no\"].task_json.task.published",
            "feedback_config.values[\"yes\"].task_json.task.published",
            "title",
        ]
    );
    assert_eq!(
        (added.step.as_str(), added.task.as_str()),
        (&*below.guid, &*managed.guid)
    );
    assert_eq!(added.kind(), DifferenceKind::Added);
    let types = (observed.r#type(), added.r#type());
    assert_eq!(types, (StepType::Observation, StepType::Information));
}

/// The title, kind and task of each step that differs, except wiring steps.
fn listed(compared: &CompareRevisionsResponse) -> Vec<(&str, DifferenceKind, &str)> {
    let steps = compared.steps.iter();
    let steps = steps.filter(|step| step.r#type() != StepType::Subtask);
    steps
        .map(|step| (&*step.title, step.kind(), &*step.task))
        .collect()
}

#[apply(on_both_databases)]
async fn steps_of_managed_tasks_stand_behind_their_observation(client: Client) {
    let guide = given_guide(&client).await;
    let managed = client.managed_by(&guide.steps[0], 0).await;
    client.given_steps(&managed, &["a", "b", "c"]).await;
    client.kept_revision(&guide.guid).await;
    let mut document = client.exported(&guide.guid).await;
    document.steps[3].title = "Changed".to_owned();
    let values = &mut document.steps[0].feedback_config[0].values;
    let inner = values[0].task_json.as_mut().expect("a document");
    inner.steps.remove(2);
    inner.steps.swap(0, 1);
    inner.steps[1].title = "A".to_owned();
    inner.steps.extend(document_steps(&["d"]));
    let import = client.import_with(AbsentSteps::Delete, document).await;
    import.accepted();
    let compared = client.compare_revisions(&guide.guid, 1, "").await;
    let compared = compared.accepted();
    assert!(!compared.same);
    assert_eq!(compared.task_paths, [""; 0]);
    use DifferenceKind::{Added, Changed, Moved, Removed};
    // Nothing of the observation itself differs.
    let (root, below) = (guide.guid.as_str(), managed.guid.as_str());
    let kinds = [("b", Moved), ("c", Removed), ("A", Changed), ("d", Added)];
    let mut expected = kinds.map(|(title, kind)| (title, kind, below)).to_vec();
    expected.push(("Changed", Changed, root));
    assert_eq!(listed(&compared), expected);
}

#[apply(on_both_databases)]
async fn a_new_observation_is_listed_with_the_steps_that_it_manages(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    client.kept_revision(&guide.guid).await;
    let answer = |key, title| answer_with(key, key, document("", document_steps(&[title])));
    let question = linked_question(vec![answer("b", "in b"), answer("a", "in a")]);
    let after = document_step(StepType::Information, "after");
    let steps = vec![observation_asking(question), after];
    client.imported(document_of(&guide.guid, steps)).await;
    client.kept_revision(&guide.guid).await;
    let mut document = client.exported(&guide.guid).await;
    let answers = answers_of(&document.steps[0]).to_vec();
    let root = guide.guid.as_str();
    let tasks = [
        root,
        answers[0].link.as_str(),
        answers[1].link.as_str(),
        root,
    ];
    for (base, target, kind) in [
        (1, 2, DifferenceKind::Added),
        (2, 1, DifferenceKind::Removed),
    ] {
        let compared = client.compare_revisions(&guide.guid, base, target).await;
        let compared = compared.accepted();
        let titles = ["What is it?", "in b", "in a", "after"];
        let expected = titles
            .iter()
            .zip(tasks)
            .map(|(title, task)| (*title, kind, task));
        assert_eq!(listed(&compared), expected.collect::<Vec<_>>());
    }
    document.steps[0].feedback_config[0].values.remove(0);
    document.steps.retain(|step| step.link != tasks[1]);
    let import = client.import_with(AbsentSteps::Delete, document);
    import.await.accepted();
    client.kept_revision(&guide.guid).await;
    use DifferenceKind::{Added, Changed, Removed};
    for (base, target, kind) in [(2, 3, Removed), (3, 2, Added)] {
        let compared = client.compare_revisions(&guide.guid, base, target).await;
        let expected = [("What is it?", Changed, root), ("in b", kind, tasks[1])];
        assert_eq!(listed(&compared.accepted()), expected);
    }
}

#[apply(on_both_databases)]
async fn pages_hold_all_differences(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    client.kept_revision(&guide.guid).await;
    let titles = ["a", "b", "c", "d", "e"];
    client.given_steps(&guide, &titles).await;
    client.rename(&guide.guid, "Renamed").await;
    client.alias(&guide.guid, "base", 1).await;
    let mut request = CompareRevisionsRequest {
        task: guide.guid.clone(),
        base: "base".to_owned(),
        page_size: 2,
        ..CompareRevisionsRequest::default()
    };
    let mut listed = Vec::new();
    let token = loop {
        let page = client.call(request.clone()).await.accepted();
        assert!(!page.same);
        let task_paths: &[&str] = match request.page_token.as_str() {
            "" => &["name"],
            _ => &[],
        };
        assert_eq!(page.task_paths, task_paths);
        listed.extend(page.steps.into_iter().map(|step| step.title));
        if page.next_page_token.is_empty() {
            break request.page_token;
        }
        request.page_token = page.next_page_token;
    };
    assert_eq!(listed, titles);
    client.given_steps(&guide, &["f"]).await;
    request.page_token = token;
    let failure = client.call(request.clone()).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
    // Nor is it another revision that the alias names by now.
    request.page_token.clear();
    let page = client.call(request.clone()).await.accepted();
    request.page_token = page.next_page_token;
    client.kept_revision(&guide.guid).await;
    client.alias(&guide.guid, "base", 2).await;
    let failure = client.call(request).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

#[apply(on_both_databases)]
async fn a_managed_task_is_compared_without_its_name_and_external_id(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = answers_of(&observation)[0].link.clone();
    client.kept_revision(&managed).await;
    // It becomes a standard task with its own name, and another revision is created.
    let mut unlinked = observation;
    unlinked.feedback_config[0].linked = Some(false);
    unlinked.etag.clear();
    client.updated_step(unlinked, &["feedback_config"]).await;
    let own = task_of(&managed).named("Own").with_external_id("own");
    client.updated_task(own, &["name", "external_id"]).await;
    client.kept_revision(&managed).await;
    let compared = client.compare_revisions(&managed, 1, "").await.accepted();
    assert_eq!(compared.task_paths, ["external_id", "name"]);
    // It is managed again.
    client.restored(&managed, 1).await;
    client.restored(&guide.guid, 1).await;
    assert!(
        !client
            .get_task(&managed)
            .await
            .accepted()
            .parent_guid
            .is_empty()
    );
    let compared = client.compare_revisions(&managed, 2, "").await.accepted();
    assert!(compared.same, "{compared:?}");
    let restored = client.restored(&managed, 2).await;
    assert_eq!(restored.outcome(), ImportOutcome::Unchanged);
}
