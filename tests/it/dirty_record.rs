//! `dirty_record` is set by every write that changes a task or step. The external index
//! clears it in the database.

use crate::kit::{
    prelude::*,
    server::{TestServer, with_metrics},
    sql::SqlConnection,
};

const CLEAR: &str = "UPDATE tasks SET dirty_record = false; UPDATE steps SET dirty_record = false";

on_own_databases![every_write_marks_what_it_changes];

struct Records {
    client: Client,
    database: SqlConnection,
}

impl Records {
    /// Clears every mark, as the external index does.
    async fn clear(&mut self) {
        self.database.execute(CLEAR).await;
        for (task, steps) in self.client.tasks_with_steps().await {
            assert!(!task.dirty_record, "{task:?}");
            assert!(steps.iter().all(|step| !step.dirty_record), "{steps:?}");
        }
    }

    /// Asserts that these are marked.
    async fn are_marked(&self, what: &str, tasks: &[&Task], steps: &[&Step]) {
        for task in tasks {
            let read = self.client.get_task(&task.guid).await.accepted();
            assert!(read.dirty_record, "{what}: {read:?}");
        }
        for step in steps {
            let read = self.client.get_step(&step.guid).await.accepted();
            assert!(read.dirty_record, "{what}: {read:?}");
        }
    }
}

async fn every_write_marks_what_it_changes(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let mut records = Records {
        client: client.clone(),
        database: SqlConnection::open(&url).await,
    };
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Other")).await;
    let step = client.given_step(information_step(&guide, "Step")).await;
    let named = client.given_step(subtask(&guide, &other)).await;

    records.clear().await;
    let update = task_of(&guide.guid).with_published(0);
    client.updated_task(update, &["published"]).await;
    records.are_marked("an update", &[&guide], &[]).await;

    records.clear().await;
    let update = task_of(&other.guid).named("Renamed");
    client.updated_task(update, &["name"]).await;
    records.are_marked("a rename", &[&other], &[&named]).await;

    records.clear().await;
    let update = step_of(&step.guid).titled("Changed");
    client.updated_step(update, &["title"]).await;
    records.are_marked("an update", &[], &[&step]).await;

    records.clear().await;
    let appended = client.given_step(information_step(&guide, "Last")).await;
    records.are_marked("an append", &[&guide], &[]).await;

    records.clear().await;
    let inserted = information_step(&guide, "Between");
    let inserted = client.create_step_after(inserted, &step.guid).await;
    inserted.accepted();
    records.are_marked("an insert", &[&guide], &[]).await;

    records.clear().await;
    client.given_step(subtask(&guide, &other)).await;
    records.are_marked("a subtask", &[&guide], &[]).await;

    records.clear().await;
    client.delete_step(&appended.guid).await.accepted();
    records.are_marked("a deletion", &[&guide], &[]).await;

    records.clear().await;
    for work in client.translation_work(&["de"]).await {
        client.written(automatic(&work, "Deutsch")).await;
    }
    let translated = "an automatic translation";
    records.are_marked(translated, &[&guide], &[&step]).await;

    let steps = document_steps(&["a", "b"]);
    let imported = client.imported(document("Imported", steps)).await;
    let mut exported = client.exported(&imported.guid).await;
    let before = client.steps_of(&imported.guid, 10).await;
    records.clear().await;
    exported.steps.reverse();
    for step in &mut exported.steps {
        step.title += " again";
    }
    client.imported(exported).await;
    let steps: Vec<&Step> = before.iter().collect();
    records.are_marked("an import", &[&imported], &steps).await;
    server.shut_down().await;
}
