//! Every query of the service, and nothing but queries.

use crate::domain::{
    Result,
    etag::Expected,
    ids::{AccountId, RequestId, RoleId, StepId, TaskId},
    order::Cursor,
    page::{Page, PageSize},
    role::Role,
    step::{NewStep, Placement, Step, StepPatch},
    task::{NewTask, Task, TaskFilter, TaskPatch},
    text::Name,
};

/// Whether a write stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is stored.
    Store,
    /// Everything is done and taken back.
    ValidateOnly,
}

/// How a retry of a create is recognised and answered.
pub struct Retry<T> {
    /// The caller's id of the intent.
    pub id: RequestId,
    /// Stands for the payload.
    pub digest: [u8; 32],
    /// What is kept to answer a retry with.
    pub record: Box<dyn Fn(&T) -> Vec<u8> + Send + Sync>,
}

/// The outcome of a create.
#[derive(Debug)]
pub enum Outcome<T> {
    /// It was done now.
    Done(T),
    /// It was done before; what was kept of it.
    Replayed(Vec<u8>),
}

/// The database.
#[derive(Clone)]
pub struct Store;

/// The database as one account sees it. No query can be made without it.
#[derive(Clone)]
pub struct Account;

#[allow(unused_variables, missing_docs, clippy::todo, clippy::unused_async)]
impl Store {
    pub fn account(&self, id: &AccountId) -> Account {
        todo!()
    }
    /// The secret under which page tokens are sealed, the same for every server of a database.
    pub fn page_key(&self) -> &[u8; 32] {
        todo!()
    }
}

#[allow(unused_variables, missing_docs, clippy::todo, clippy::unused_async)]
impl Account {
    pub async fn create_task(
        &self,
        new: NewTask,
        retry: Option<Retry<Task>>,
        mode: Mode,
    ) -> Result<Outcome<Task>> {
        todo!()
    }
    pub async fn get_task(&self, guid: TaskId) -> Result<Task> {
        todo!()
    }
    pub async fn list_tasks(
        &self,
        filter: TaskFilter,
        after: Option<TaskId>,
        size: PageSize,
    ) -> Result<Page<Task>> {
        todo!()
    }
    /// The fields of the update that were not honored come with the task.
    pub async fn update_task(
        &self,
        guid: TaskId,
        expected: Expected,
        patch: TaskPatch,
        mode: Mode,
    ) -> Result<(Task, Vec<&'static str>)> {
        todo!()
    }
    pub async fn delete_task(&self, guid: TaskId, expected: Expected, force: bool) -> Result<()> {
        todo!()
    }
    pub async fn create_step(
        &self,
        new: NewStep,
        prevstep: Option<StepId>,
        retry: Option<Retry<(Step, Placement)>>,
        mode: Mode,
    ) -> Result<Outcome<(Step, Placement)>> {
        todo!()
    }
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        todo!()
    }
    pub async fn list_steps(
        &self,
        task: TaskId,
        bodies: bool,
        after: Option<Cursor>,
        size: PageSize,
    ) -> Result<Page<(Step, Cursor)>> {
        todo!()
    }
    pub async fn update_step(
        &self,
        guid: StepId,
        expected: Expected,
        patch: StepPatch,
        mode: Mode,
    ) -> Result<(Step, Vec<&'static str>)> {
        todo!()
    }
    pub async fn delete_step(&self, guid: StepId, expected: Expected) -> Result<()> {
        todo!()
    }
    pub async fn list_roles(&self, after: Option<RoleId>, size: PageSize) -> Result<Page<Role>> {
        todo!()
    }
    pub async fn create_role(&self, name: Name) -> Result<Role> {
        todo!()
    }
    pub async fn delete_role(&self, id: RoleId) -> Result<()> {
        todo!()
    }
}
