//! Writes: how each is sent, and what it does to the expected state.

use expertise::proto::v1::*;
use tonic::Status;

use super::{
    drafts,
    workspace::{ExpectedEtag, ExpectedStep, ExpectedTask, Workspace},
};
use crate::kit::{client::Client, sample::PRODUCT};

/// The request of a write, which may be sent repeatedly.
#[derive(Clone, Debug)]
pub enum Write {
    CreateTask(CreateTaskRequest),
    UpdateTask(UpdateTaskRequest),
    DeleteTask(DeleteTaskRequest),
    ImportTask(ImportTaskRequest),
    CreateStep(CreateStepRequest),
    UpdateStep(UpdateStepRequest),
    DeleteStep(DeleteStepRequest),
    CreateRole(CreateRoleRequest),
    DeleteRole(DeleteRoleRequest),
    Translate(WriteTranslationsRequest),
}

/// The resource in a response.
#[derive(Clone, Debug)]
pub enum WriteResponse {
    Task(Box<Task>),
    Step(Box<Step>),
    Role(Role),
    Empty,
}

impl WriteResponse {
    /// The id of the task or step; empty where there is neither.
    pub fn guid(&self) -> String {
        match self {
            Self::Task(task) => task.guid.clone(),
            Self::Step(step) => step.guid.clone(),
            Self::Role(_) | Self::Empty => String::new(),
        }
    }
}

impl Write {
    /// Whether a repeated call gets the response of the first one.
    pub fn has_request_id(&self) -> bool {
        let id = match self {
            Self::CreateTask(request) => &request.request_id,
            Self::CreateStep(request) => &request.request_id,
            Self::ImportTask(request) => &request.request_id,
            _ => return false,
        };
        !id.is_empty()
    }

    /// Calls the service.
    pub async fn send(&self, client: &Client) -> Result<WriteResponse, Status> {
        let (mut tasks, mut steps) = (client.tasks(), client.steps());
        Ok(match self.clone() {
            Self::CreateTask(request) => {
                WriteResponse::Task(boxed(tasks.create_task(request).await?.into_inner().task))
            }
            Self::UpdateTask(request) => {
                WriteResponse::Task(boxed(tasks.update_task(request).await?.into_inner().task))
            }
            Self::ImportTask(request) => {
                let response = tasks.import_task(request).await?.into_inner();
                assert_eq!(response.ignored_paths, [""; 0], "{self:?}");
                WriteResponse::Task(boxed(response.task))
            }
            Self::CreateStep(request) => {
                WriteResponse::Step(boxed(steps.create_step(request).await?.into_inner().step))
            }
            Self::UpdateStep(request) => {
                WriteResponse::Step(boxed(steps.update_step(request).await?.into_inner().step))
            }
            Self::CreateRole(request) => {
                let response = client.roles().create_role(request).await?;
                WriteResponse::Role(required(response.into_inner().role))
            }
            Self::Translate(request) => {
                let response = client.translations().write_translations(request).await?;
                for result in response.into_inner().results() {
                    assert_eq!(result, TranslationResult::Written);
                }
                WriteResponse::Empty
            }
            Self::DeleteTask(request) => {
                tasks.delete_task(request).await?;
                WriteResponse::Empty
            }
            Self::DeleteStep(request) => {
                steps.delete_step(request).await?;
                WriteResponse::Empty
            }
            Self::DeleteRole(request) => {
                client.roles().delete_role(request).await?;
                WriteResponse::Empty
            }
        })
    }
}

fn boxed<T>(resource: Option<T>) -> Box<T> {
    Box::new(required(resource))
}

fn required<T>(resource: Option<T>) -> T {
    resource.expect("the message holds the resource")
}

impl Workspace {
    /// Does to this state what the write does to the service. Returns the id of the task or
    /// step that it makes, changes or deletes, or of the role that it deletes; else an empty text.
    pub fn apply(&mut self, write: &Write) -> String {
        let before = self.clone();
        let id = match write.clone() {
            Write::CreateTask(request) => self.add_task(required(request.task)),
            Write::UpdateTask(request) => self.change_task(required(request.task)),
            Write::DeleteTask(request) => self.remove_task(request.guid),
            Write::ImportTask(request) => self.import(required(request.document)),
            Write::CreateStep(request) => self.add_step(required(request.step), &request.prevstep),
            Write::UpdateStep(request) => self.change_step(required(request.step)),
            Write::DeleteStep(request) => self.remove_step(request.guid),
            Write::CreateRole(request) => self.add_role(required(request.role)),
            Write::DeleteRole(request) => {
                self.roles.retain(|role| role.id != request.id);
                request.id.to_string()
            }
            Write::Translate(request) => self.translate(request.translations),
        };
        self.derive_fields();
        self.note_changes_since(&before);
        id
    }

    fn add_task(&mut self, task: Task) -> String {
        let guid = self.new_placeholder();
        self.tasks.push(ExpectedTask {
            task: Task {
                guid: guid.clone(),
                ..task
            },
            etag: ExpectedEtag::Any,
            steps: Vec::new(),
            shared: false,
        });
        guid
    }

    fn change_task(&mut self, sent: Task) -> String {
        let task = &mut self.task_mut(&sent.guid).task;
        task.name = sent.name;
        task.published = sent.published;
        task.translations = sent.translations;
        sent.guid
    }

    fn remove_task(&mut self, guid: String) -> String {
        self.tasks.retain(|expected| expected.task.guid != guid);
        self.deleted.push(guid.clone());
        guid
    }

    fn add_step(&mut self, step: Step, prevstep: &str) -> String {
        let made = self.new_step(step);
        let guid = made.step.guid.clone();
        let steps = &mut self.task_mut(&made.step.task).steps;
        let previous = steps
            .iter()
            .position(|expected| expected.step.guid == prevstep);
        steps.insert(previous.map_or(steps.len(), |index| index + 1), made);
        guid
    }

    fn new_step(&mut self, step: Step) -> ExpectedStep {
        let guid = self.new_placeholder();
        ExpectedStep {
            step: Step { guid, ..step },
            etag: ExpectedEtag::Any,
        }
    }

    fn change_step(&mut self, sent: Step) -> String {
        let step = &mut self.step_mut(&sent.guid).step;
        step.title = sent.title;
        step.body = sent.body;
        step.tags = sent.tags;
        step.translations.extend(sent.translations);
        sent.guid
    }

    fn remove_step(&mut self, guid: String) -> String {
        for expected in &mut self.tasks {
            expected.steps.retain(|expected| expected.step.guid != guid);
        }
        guid
    }

    fn add_role(&mut self, role: Role) -> String {
        self.roles.push(role);
        String::new()
    }

    fn translate(&mut self, translations: Vec<AutomaticTranslation>) -> String {
        for item in translations {
            let row = StepTranslation {
                title: item.title,
                locked: Some(false),
                ..StepTranslation::default()
            };
            let step = &mut self.step_mut(&item.guid).step;
            step.translations.insert(item.language, row);
        }
        String::new()
    }

    /// Writers send documents of existing tasks without fields of the task itself, and have
    /// stored steps that the document lacks deleted.
    fn import(&mut self, document: TaskDocument) -> String {
        let task = required(document.task);
        let guid = match task.guid.is_empty() {
            true => self.add_task(task),
            false => task.guid,
        };
        let mut steps = Vec::new();
        for step in document.steps {
            self.import_step(&guid, step, &mut steps);
        }
        self.task_mut(&guid).steps = steps;
        guid
    }

    /// Adds the step to the list. For each new value of a linked step it imports the managed
    /// task, and adds a wiring step after the step.
    fn import_step(&mut self, task: &str, mut step: Step, steps: &mut Vec<ExpectedStep>) {
        task.clone_into(&mut step.task);
        let mut configs = step.feedback_config.iter();
        let linked = configs.any(|config| config.linked == Some(true));
        let mut wiring_steps = Vec::new();
        let values = step.feedback_config.iter_mut();
        for value in values.flat_map(|config| &mut config.values) {
            let inner = value.task_json.take();
            if linked && value.link.is_empty() {
                value.link = self.import(*required(inner));
                wiring_steps.push(wiring_step(task, &value.link));
            }
        }
        let expected = match step.guid.is_empty() {
            true => self.new_step(step),
            false => {
                let etag = self.step_mut(&step.guid).etag.clone();
                ExpectedStep { step, etag }
            }
        };
        steps.push(expected);
        for step in wiring_steps {
            let expected = self.new_step(step);
            steps.push(expected);
        }
    }
}

/// The subtask step that leads to a managed task.
fn wiring_step(task: &str, managed: &str) -> Step {
    Step {
        task: task.to_owned(),
        subtask_id: managed.to_owned(),
        subtask_pid: Some(PRODUCT),
        link: managed.to_owned(),
        ..drafts::step(StepType::Subtask, String::new())
    }
}
