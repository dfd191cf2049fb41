//! More calls of a client, which panic on an error if they return no `Answer`.

use expertise::proto::v1::*;

use super::samples::*;
use crate::kit::{
    client::{Answer, Client},
    deadline::until,
    failure::Outcome,
    sample::*,
};

/// Steps after which no place is left behind the step that [`Client::nearly_full`] returns.
pub const INSERTS_UNTIL_RENUMBERED: usize = 60;

/// Tasks.
impl Client {
    pub async fn delete_task(&self, guid: &str) -> Answer<DeleteTaskRequest> {
        self.call(deletion_of(guid)).await
    }

    /// Deletes the task with its steps.
    pub async fn force_delete_task(&self, guid: &str) -> Answer<DeleteTaskRequest> {
        self.call(deletion_of(guid).with(|it| it.force = true))
            .await
    }

    /// Deletes the task with its steps and its history.
    pub async fn purge(&self, guid: &str) -> Answer<DeleteTaskRequest> {
        let request = deletion_of(guid).with(|it| it.force = true);
        self.call(request.with(|it| it.purge_history = true)).await
    }
}

/// Documents.
impl Client {
    /// Imports the document with this treatment of absent steps.
    pub async fn import_with(
        &self,
        absent: AbsentSteps,
        document: TaskDocument,
    ) -> Answer<ImportTaskRequest> {
        self.call(import_of(document).with(|it| it.set_absent_steps(absent)))
            .await
    }

    /// A guide of these steps.
    pub async fn given_guide(&self, steps: Vec<Step>) -> Task {
        self.imported(document("Guide", steps)).await
    }

    /// Puts steps behind the first one of a task until nearly no place is left behind the last
    /// of them: the task, and that step. [`INSERTS_UNTIL_RENUMBERED`] behind it renumber all.
    pub async fn nearly_full(&self, task: &Task) -> (Task, String) {
        const NEARLY_FULL: usize = 1_020;
        let mut document = self.exported(&task.guid).await;
        let between = document_steps(&vec!["between"; NEARLY_FULL]);
        document.steps.splice(1..1, between);
        let imported = self.imported(document).await;
        let last = imported.steps[NEARLY_FULL].clone();
        (imported, last)
    }
}

/// Steps.
impl Client {
    /// Appends information steps of these titles and returns their ids.
    pub async fn given_steps(&self, task: &Task, titles: &[&str]) -> Vec<String> {
        let mut guids = Vec::new();
        for title in titles {
            guids.push(self.given_step(information_step(task, title)).await.guid);
        }
        guids
    }

    /// The task that an answer of the linked observation manages.
    pub async fn managed_by(&self, observation: &str, answer: usize) -> Task {
        let observation = self.get_step(observation).await.accepted();
        let managed = self.get_task(&answers_of(&observation)[answer].link).await;
        managed.accepted()
    }

    pub async fn retitle(&self, guid: &str, title: impl Into<String>) -> Step {
        self.updated_step(step_of(guid).titled(title), &["title"])
            .await
    }

    pub async fn delete_step(&self, guid: &str) -> Answer<DeleteStepRequest> {
        let (guid, etag) = (guid.to_owned(), String::new());
        self.call(DeleteStepRequest { guid, etag }).await
    }

    /// The deleted steps of a task.
    pub async fn deleted_steps(&self, task: &str) -> Vec<DeletedStep> {
        let request = ListDeletedStepsRequest::default();
        self.list(request.with(|it| it.task = task.to_owned()))
            .await
    }
}

/// Revisions.
impl Client {
    /// The document of a revision.
    pub async fn revision_document(&self, task: &str, revision: i64) -> TaskDocument {
        let response = self.get_revision(task, revision).await.accepted();
        response.document.expect("the response's document")
    }

    /// Every revision of a task, the newest first.
    pub async fn all_revisions(&self, task: &str) -> Vec<TaskRevision> {
        let request = ListRevisionsRequest::default().with(|it| it.page_size = 500);
        self.list(request.with(|it| it.task = task.to_owned()))
            .await
    }

    pub async fn compare_revisions(
        &self,
        task: &str,
        base: impl ToString,
        target: impl ToString,
    ) -> Answer<CompareRevisionsRequest> {
        self.call(CompareRevisionsRequest {
            task: task.to_owned(),
            base: base.to_string(),
            target: target.to_string(),
            page_size: 500,
            page_token: String::new(),
        })
        .await
    }

    /// Restores a revision.
    pub async fn restored(&self, task: &str, revision: i64) -> RestoreRevisionResponse {
        self.call(restore_of(task, revision)).await.accepted()
    }

    pub async fn delete_revision(
        &self,
        task: &str,
        revision: impl ToString,
    ) -> Answer<DeleteRevisionRequest> {
        let (task, revision) = (task.to_owned(), revision.to_string());
        self.call(DeleteRevisionRequest { task, revision }).await
    }

    pub async fn set_revision_alias(
        &self,
        task: &str,
        alias: &str,
        revision: impl ToString,
    ) -> Answer<SetRevisionAliasRequest> {
        self.call(SetRevisionAliasRequest {
            task: task.to_owned(),
            alias: alias.to_owned(),
            revision: revision.to_string(),
        })
        .await
    }

    /// Has an alias name this revision, or removes it.
    pub async fn alias(&self, task: &str, alias: &str, revision: impl ToString) {
        let set = self.set_revision_alias(task, alias, revision).await;
        set.accepted();
    }
}

/// Changes.
impl Client {
    /// A cursor behind everything that is committed.
    pub async fn cursor_now(&self) -> String {
        // While old changes are deleted, new ones cannot be put in order.
        until("the changes are in order", async || {
            let page = self.call(changes_from(ChangeStart::Now)).await.accepted();
            assert_eq!(page.changes, [], "no changes before the present");
            page.caught_up.then_some(page.next_cursor)
        })
        .await
    }

    /// Every change behind a cursor, and the cursor behind them.
    pub async fn changes_after(&self, cursor: &str) -> (Vec<Change>, String) {
        let mut request = changes_behind(cursor).with(|it| it.page_size = 500);
        let mut changes = Vec::new();
        loop {
            let page = self.call(request.clone()).await.accepted();
            changes.extend(page.changes);
            request.cursor = page.next_cursor;
            if page.caught_up {
                return (changes, request.cursor);
            }
        }
    }

    /// All work of the index.
    pub async fn index_work(&self) -> Vec<IndexWork> {
        let request = ListIndexWorkRequest::default();
        self.list(request.with(|it| it.page_size = 500)).await
    }

    /// Acknowledges states; the results.
    pub async fn acknowledge(&self, items: Vec<IndexedItem>) -> Vec<IndexResult> {
        let response = self.call(AcknowledgeIndexedRequest { items }).await;
        response.accepted().results().collect()
    }
}

/// Roles.
impl Client {
    pub async fn create_role(&self, name: &str) -> Answer<CreateRoleRequest> {
        let role = Role::default().with(|it| it.name = name.to_owned());
        self.call(CreateRoleRequest { role: Some(role) }).await
    }

    pub async fn given_role(&self, name: &str) -> Role {
        let response = self.create_role(name).await.accepted();
        response.role.expect("the response holds the role")
    }
}

/// Automatic translations.
impl Client {
    /// All work into these languages, from all pages.
    pub async fn translation_work(&self, languages: &[&str]) -> Vec<TranslationWork> {
        self.list(translation_work_request(languages)).await
    }

    /// Writes one translation; its result.
    pub async fn written(&self, translation: AutomaticTranslation) -> TranslationResult {
        let response = self.write_translations(vec![translation]).await.accepted();
        response.results().next().expect("a result")
    }
}

/// Analysis.
impl Client {
    pub async fn previewed(&self, request: PreviewTaskRequest) -> PreviewTaskResponse {
        self.call(request).await.accepted()
    }

    pub async fn validated(&self, request: ValidateTaskRequest) -> ValidateTaskResponse {
        self.call(request).await.accepted()
    }
}
