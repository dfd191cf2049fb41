//! Writes: how each is sent, and what it does to the state.

use expertise::proto::v1::*;
use tonic::Status;

use super::{
    caller::Caller,
    draft,
    shelf::{Guide, Piece, Shelf, Version},
};

/// A write as it is sent, as often as need be.
#[derive(Clone, Debug)]
pub enum Intent {
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

/// What an answer holds.
#[derive(Clone, Debug)]
pub enum Answer {
    Task(Box<Task>),
    Step(Box<Step>),
    Role(Role),
    /// Nothing to be learned from.
    Empty,
}

impl Intent {
    /// Whether a repeated call is answered as the first one was.
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
    pub async fn send(&self, caller: &Caller) -> Result<Answer, Status> {
        let (mut tasks, mut steps) = (caller.tasks(), caller.steps());
        Ok(match self.clone() {
            Self::CreateTask(request) => {
                Answer::Task(boxed(tasks.create_task(request).await?.into_inner().task))
            }
            Self::UpdateTask(request) => {
                Answer::Task(boxed(tasks.update_task(request).await?.into_inner().task))
            }
            Self::ImportTask(request) => {
                let response = tasks.import_task(request).await?.into_inner();
                assert_eq!(response.ignored_paths, [""; 0], "{self:?}");
                Answer::Task(boxed(response.task))
            }
            Self::CreateStep(request) => {
                Answer::Step(boxed(steps.create_step(request).await?.into_inner().step))
            }
            Self::UpdateStep(request) => {
                Answer::Step(boxed(steps.update_step(request).await?.into_inner().step))
            }
            Self::CreateRole(request) => {
                let response = caller.roles().create_role(request).await?;
                Answer::Role(held(response.into_inner().role))
            }
            Self::Translate(request) => {
                let response = caller.translations().write_translations(request).await?;
                for result in response.into_inner().results() {
                    assert_eq!(result, TranslationResult::Written);
                }
                Answer::Empty
            }
            Self::DeleteTask(request) => {
                tasks.delete_task(request).await?;
                Answer::Empty
            }
            Self::DeleteStep(request) => {
                steps.delete_step(request).await?;
                Answer::Empty
            }
            Self::DeleteRole(request) => {
                caller.roles().delete_role(request).await?;
                Answer::Empty
            }
        })
    }
}

fn boxed<T>(resource: Option<T>) -> Box<T> {
    Box::new(held(resource))
}

fn held<T>(resource: Option<T>) -> T {
    resource.expect("the response holds the resource")
}

impl Shelf {
    /// Does to the state what the write does to the service; the id of what it
    /// made or changed.
    pub fn apply(&mut self, intent: &Intent) -> String {
        let before = self.clone();
        let id = match intent.clone() {
            Intent::CreateTask(request) => self.add_guide(held(request.task)),
            Intent::UpdateTask(request) => self.change_task(held(request.task)),
            Intent::DeleteTask(request) => self.remove_guide(request.guid),
            Intent::ImportTask(request) => self.import(held(request.document)),
            Intent::CreateStep(request) => self.add_step(held(request.step), &request.prevstep),
            Intent::UpdateStep(request) => self.change_step(held(request.step)),
            Intent::DeleteStep(request) => self.remove_step(request.guid),
            Intent::CreateRole(request) => self.add_role(held(request.role)),
            Intent::DeleteRole(request) => {
                self.roles.retain(|role| role.id != request.id);
                request.id.to_string()
            }
            Intent::Translate(request) => self.translate(request.translations),
        };
        self.follow();
        self.move_on(&before);
        id
    }

    fn add_guide(&mut self, task: Task) -> String {
        let guid = self.placeholder();
        self.guides.push(Guide {
            task: Task {
                guid: guid.clone(),
                ..task
            },
            version: Version::Unknown,
            steps: Vec::new(),
            shared: false,
        });
        guid
    }

    fn change_task(&mut self, sent: Task) -> String {
        let task = &mut self.guide(&sent.guid).task;
        task.name = sent.name;
        task.published = sent.published;
        task.translations = sent.translations;
        sent.guid
    }

    fn remove_guide(&mut self, guid: String) -> String {
        self.guides.retain(|guide| guide.task.guid != guid);
        guid
    }

    fn add_step(&mut self, step: Step, prevstep: &str) -> String {
        let piece = self.fresh(step);
        let guid = piece.step.guid.clone();
        let steps = &mut self.guide(&piece.step.task).steps;
        let previous = steps.iter().position(|piece| piece.step.guid == prevstep);
        steps.insert(previous.map_or(steps.len(), |index| index + 1), piece);
        guid
    }

    fn fresh(&mut self, step: Step) -> Piece {
        let guid = self.placeholder();
        Piece {
            step: Step { guid, ..step },
            version: Version::Unknown,
        }
    }

    fn change_step(&mut self, sent: Step) -> String {
        let step = &mut self.piece(&sent.guid).step;
        step.title = sent.title;
        step.body = sent.body;
        step.tags = sent.tags;
        step.translations.extend(sent.translations);
        sent.guid
    }

    fn remove_step(&mut self, guid: String) -> String {
        for guide in &mut self.guides {
            guide.steps.retain(|piece| piece.step.guid != guid);
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
            let step = &mut self.piece(&item.guid).step;
            step.translations.insert(item.language, row);
        }
        String::new()
    }

    /// Of an existing task it says nothing but the steps, all of them in full
    /// but for those to be deleted.
    fn import(&mut self, document: TaskDocument) -> String {
        let task = held(document.task);
        let guid = match task.guid.is_empty() {
            true => self.add_guide(task),
            false => task.guid,
        };
        let mut steps = Vec::new();
        for step in document.steps {
            self.list(&guid, step, &mut steps);
        }
        self.guide(&guid).steps = steps;
        guid
    }

    /// Adds the step to the list, and behind it the wiring steps of its new
    /// values, each with the task that it manages.
    fn list(&mut self, task: &str, mut step: Step, steps: &mut Vec<Piece>) {
        task.clone_into(&mut step.task);
        let mut configs = step.feedback_config.iter();
        let linked = configs.any(|config| config.linked == Some(true));
        let mut wiring = Vec::new();
        let values = step.feedback_config.iter_mut();
        for value in values.flat_map(|config| &mut config.values) {
            let inner = value.task_json.take();
            if linked && value.link.is_empty() {
                value.link = self.import(held(inner));
                wiring.push(wiring_step(task, &value.link));
            }
        }
        let piece = match step.guid.is_empty() {
            true => self.fresh(step),
            false => {
                let version = self.piece(&step.guid).version.clone();
                Piece { step, version }
            }
        };
        steps.push(piece);
        for step in wiring {
            let piece = self.fresh(step);
            steps.push(piece);
        }
    }
}

/// The step that stands for a managed task.
fn wiring_step(task: &str, managed: &str) -> Step {
    Step {
        task: task.to_owned(),
        subtask_id: managed.to_owned(),
        subtask_pid: Some(draft::PRODUCT),
        link: managed.to_owned(),
        ..draft::step(StepType::Subtask, String::new())
    }
}
