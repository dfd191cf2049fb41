//! PostgreSQL's plans, for all values, of statements that change steps, while statistics are
//! missing or from a time when the table was small: steps are found by their ids, and no
//! statement compares each of its rows with each.

use std::collections::BTreeSet;

use sqlx::{Connection, Executor, PgConnection};

use crate::kit::{plans::generic_plan, postgres::Cluster, prelude::*, store_server};

/// Has a cluster log every statement with its plan.
const SETTINGS: [&str; 5] = [
    "fsync=off",
    "autovacuum=off",
    "shared_preload_libraries=auto_explain",
    "auto_explain.log_min_duration=0",
    "auto_explain.log_level=log",
];
/// Steps that make the table too large to be read as a whole.
const STEPS: usize = 3_000;

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn writes_find_rows_by_their_ids_without_statistics() {
    writes_find_rows_by_their_ids("plans_without_statistics", "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn writes_find_rows_by_their_ids_with_statistics_of_small_tables() {
    writes_find_rows_by_their_ids("plans_of_small_tables", "ANALYZE").await;
}

async fn writes_find_rows_by_their_ids(name: &str, statistics: &'static str) {
    let cluster = Cluster::start(name, &SETTINGS);
    let url = cluster.make_database(name);
    let (_, client) = store_server::serve(&url, 2).await;
    for name in ["a", "b", "c"] {
        let task = client.given_task(task(name)).await;
        client.given_step(information_step(&task, name)).await;
    }
    let mut database = PgConnection::connect(&url).await.expect("PostgreSQL");
    database.execute(statistics).await.expect("statistics");
    let steps = document_steps(&vec!["step"; STEPS]);
    let guide = client.imported(document("Large", steps)).await;
    // Its connections have no plans from before.
    let (_, client) = store_server::serve(&url, 2).await;
    let before = cluster.log().len();
    every_kind_of_write(&client, &guide).await;
    let log = cluster.log();
    let logged = plans(&log[before..]);
    let statements: BTreeSet<String> = logged.iter().map(|plan| statement(plan)).collect();
    assert!(statements.len() > 30, "{} statements", statements.len());
    let mut faults = Vec::new();
    for sql in statements {
        let plan = generic_plan(&mut database, &sql).await;
        let plan = plan.unwrap_or_else(|error| panic!("{sql}: {error}"));
        faults.extend(fault(&format!("{sql}\n{plan}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn tasks_are_found_by_external_id_and_name_in_their_indexes() {
    let cluster = Cluster::start("task_filters", &SETTINGS);
    let url = cluster.make_database("task_filters");
    let (_, client) = store_server::serve(&url, 2).await;
    for n in 0..200 {
        let name = format!("Task {n}");
        client
            .given_task(task(&name).with_external_id(name.clone()))
            .await;
    }
    let mut database = PgConnection::connect(&url).await.expect("PostgreSQL");
    for (external_id, name, index) in [
        ("Task 1", "", "tasks_external_id"),
        ("", "Task 1", "tasks_name"),
        ("Task 1", "Task 1", "tasks_external_id"),
    ] {
        let request = ListTasksRequest {
            external_id: external_id.to_owned(),
            name: name.to_owned(),
            ..ListTasksRequest::default()
        };
        let before = cluster.log().len();
        let listed = client.list_tasks(request).await.accepted();
        assert_eq!(listed.tasks.len(), 1);
        let log = cluster.log();
        let plans = plans(&log[before..]);
        let mut sql = plans.iter().map(|plan| statement(plan));
        let sql = sql.rfind(|sql| sql.contains("FROM tasks"));
        let plan = generic_plan(&mut database, &sql.expect("the statement")).await;
        let plan = plan.expect("a plan");
        assert!(plan.contains(&format!("using {index} on tasks")), "{plan}");
    }
}

async fn every_kind_of_write(client: &Client, guide: &Task) {
    let other = client.given_task(task("Other")).await;
    client.given_step(information_step(guide, "appended")).await;
    let created = client.given_step(subtask(guide, &other)).await;
    // The first inserts are put between others, then all steps are numbered anew.
    let first = &guide.steps[0];
    let (_, last) = client.nearly_full(guide).await;
    for _ in 0..INSERTS_UNTIL_RENUMBERED {
        let inserted = client.create_step_after(information_step(guide, "inserted"), &last);
        inserted.await.accepted();
    }
    let update = step_of(first).translated("de", step_translation("Schritt"));
    client.updated_step(update, &["translations"]).await;
    client.updated_step(step_of(first), &["translations"]).await;
    let update = task_of(&other.guid).translated("de", task_translation("Andere"));
    client.updated_task(update.named("Renamed"), &[]).await;
    let request = translation_work_request(&["fr"]).of_task(&guide.guid);
    let work = client.list_translation_work(request).await.accepted();
    let items = work
        .work
        .iter()
        .map(|item| automatic(item, "texte"))
        .collect();
    client.write_translations(items).await.accepted();
    client.delete_step(&created.guid).await.accepted();

    let linked = document(
        "Linked",
        vec![linked_observation(&[("on", "On"), ("off", "Off")])],
    );
    let linked = client.imported(linked).await;
    let mut changed = client.exported(&linked.guid).await;
    changed.steps[0].feedback_config[0].values.pop();
    changed.steps.push(subtask(&linked, &other));
    changed.steps.reverse();
    client
        .import_with(AbsentSteps::Delete, changed)
        .await
        .accepted();
    let question = FeedbackConfig {
        linked: Some(false),
        ..question("it", &["on"])
    };
    let observation = client.steps_of(&linked.guid, 0).await;
    let observation = observation
        .iter()
        .find(|step| step.r#type() == StepType::Observation);
    let unlink = step_of(&observation.expect("the observation").guid).with_question(question);
    client.updated_step(unlink, &["feedback_config"]).await;
    client.force_delete_task(&linked.guid).await.accepted();

    let mut large = client.exported(&guide.guid).await;
    large.steps.reverse();
    for step in &mut large.steps {
        step.translations = [("nl".to_owned(), step_translation("Stap"))].into();
    }
    client.imported(large).await;
    client.force_delete_task(&guide.guid).await.accepted();
}

/// The statement of a plan.
fn statement(plan: &str) -> String {
    let (_, text) = plan.split_once("Query Text: ").expect("a statement");
    text.lines().next().unwrap_or_default().to_owned()
}

/// The plans of a log, each with the statement that it is of.
fn plans(log: &str) -> Vec<String> {
    let log = log.replace("\n\t", "\u{1}");
    let plans = log.lines().filter(|line| line.contains(" plan:\u{1}"));
    plans.map(|plan| plan.replace('\u{1}', "\n")).collect()
}

/// What is wrong with a plan of a statement that changes steps.
fn fault(plan: &str) -> Option<String> {
    let changes = ["Insert on steps", "Update on steps", "Delete on steps"];
    if !changes.iter().any(|change| plan.contains(change)) {
        return None;
    }
    let by_account_alone = plan
        .lines()
        .any(|line| line.contains("Index Cond:") && !line.contains(" AND "));
    // One request translates few rows, which are told apart by a filter.
    let is_bounded = plan.contains("WITH given (guid, size");
    let what = match () {
        () if plan.contains("Seq Scan on steps") => "reads the whole table",
        () if plan.contains("Join Filter: (steps.guid") => "compares each row with each",
        () if by_account_alone && !is_bounded => "finds rows by the account alone",
        () => return None,
    };
    Some(format!("{what}: {plan}"))
}
