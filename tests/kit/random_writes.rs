//! Random writes of one account.

use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use tonic::Status;

use super::{client::field_mask, prelude::*, rng::Rng};

/// Names of observations. The last one looks like an account-wide name.
const OWN: [&str; 3] = ["a", "b", "components.7.a"];
/// The path and the variable of a condition.
const READ: [(&str, &str); 6] = [
    ("", "a"),
    ("", "b"),
    ("components.7", "a"),
    ("", "components.7.a"),
    ("components", "7.b"),
    ("", "outside"),
];

/// A condition by its indexes.
#[derive(Clone, Debug)]
pub struct ConditionPlan {
    read: usize,
    operator: usize,
    target: usize,
    nested: bool,
}

type Conditions = Vec<ConditionPlan>;

/// One write of a history. An index chooses among what there is.
#[derive(Clone, Debug)]
pub enum Write {
    CreateTask(Conditions, bool, bool),
    /// Whether it is renamed, too.
    UpdateTask(Index, i32, bool),
    RenameTask(Index),
    TranslateTask(Index, bool),
    UpdateConditionsOfTask(Index, Conditions),
    /// The task gets one of the external ids, or none.
    IdentifyTask(Index, usize),
    DeleteTask(Index, bool),
    AppendStep(Index, Conditions, bool),
    InsertStep(Index, Conditions),
    InsertBehindUnknown(Index),
    AppendSubtask(Index, Index),
    AppendQuestion(Index, usize, Conditions),
    UpdateTitle(Index),
    UpdateBody(Index, bool),
    UpdateConditions(Index, Conditions),
    /// Another question, which unlinks the tasks that the step manages.
    UpdateQuestion(Index, usize),
    /// The step gets one of the external ids, or none.
    IdentifyStep(Index, usize),
    ReferTo(Index, Index),
    TranslateStep(Index, bool),
    DropTranslations(Index),
    Unlink(Index),
    DeleteStep(Index),
    /// A step that was deleted comes back.
    RestoreStep(Index),
    /// A guide whose question manages a task with such a step.
    ImportGuide(usize, Conditions),
    /// An exported guide without its step at the index and with another one.
    ImportAgain(Index, Index, Conditions, bool),
    Reverse(Index),
    TranslateAutomatically,
    CreateRole,
    DeleteRole(i64),
}

pub fn write() -> impl Strategy<Value = Write> {
    let index = any::<Index>;
    let flag = any::<bool>;
    let own = || 0..OWN.len();
    let of_tasks = prop_oneof![
        2 => (conditions(), flag(), flag())
            .prop_map(|(read, translated, twice)| Write::CreateTask(read, translated, twice)),
        2 => (index(), 0..2, flag())
            .prop_map(|(task, published, renamed)| Write::UpdateTask(task, published, renamed)),
        2 => index().prop_map(Write::RenameTask),
        1 => (index(), flag()).prop_map(|(task, locked)| Write::TranslateTask(task, locked)),
        2 => (index(), conditions())
            .prop_map(|(task, read)| Write::UpdateConditionsOfTask(task, read)),
        2 => (index(), 0..3_usize).prop_map(|(task, id)| Write::IdentifyTask(task, id)),
        1 => (index(), flag()).prop_map(|(task, force)| Write::DeleteTask(task, force)),
        2 => (own(), conditions()).prop_map(|(own, read)| Write::ImportGuide(own, read)),
        2 => (index(), index(), conditions(), flag())
            .prop_map(|(task, step, read, keep)| Write::ImportAgain(task, step, read, keep)),
        1 => index().prop_map(Write::Reverse),
    ];
    let new_steps = prop_oneof![
        4 => (index(), conditions(), flag())
            .prop_map(|(task, read, twice)| Write::AppendStep(task, read, twice)),
        3 => (index(), conditions()).prop_map(|(step, read)| Write::InsertStep(step, read)),
        1 => index().prop_map(Write::InsertBehindUnknown),
        2 => (index(), index()).prop_map(|(task, other)| Write::AppendSubtask(task, other)),
        3 => (index(), own(), conditions())
            .prop_map(|(task, own, read)| Write::AppendQuestion(task, own, read)),
    ];
    let of_steps = prop_oneof![
        2 => index().prop_map(Write::UpdateTitle),
        2 => (index(), flag()).prop_map(|(step, clear)| Write::UpdateBody(step, clear)),
        3 => (index(), conditions()).prop_map(|(step, read)| Write::UpdateConditions(step, read)),
        2 => (index(), own()).prop_map(|(step, own)| Write::UpdateQuestion(step, own)),
        1 => (index(), index()).prop_map(|(step, task)| Write::ReferTo(step, task)),
        2 => (index(), 0..3_usize).prop_map(|(step, id)| Write::IdentifyStep(step, id)),
        2 => (index(), flag()).prop_map(|(step, locked)| Write::TranslateStep(step, locked)),
        1 => index().prop_map(Write::DropTranslations),
        1 => index().prop_map(Write::Unlink),
        3 => index().prop_map(Write::DeleteStep),
        2 => index().prop_map(Write::RestoreStep),
    ];
    let of_the_account = prop_oneof![
        Just(Write::TranslateAutomatically),
        Just(Write::CreateRole),
        (1..3_i64).prop_map(Write::DeleteRole),
    ];
    prop_oneof![15 => of_tasks, 13 => new_steps, 19 => of_steps, 3 => of_the_account]
}

/// Random writes, one after the other.
pub fn writes(rng: &mut Rng) -> impl FnMut() -> Write + Send + use<> {
    let seed: Vec<u8> = (0..4).flat_map(|_| rng.next().to_le_bytes()).collect();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    move || {
        let write = write().new_tree(&mut runner);
        write.expect("a write").current()
    }
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let plan = (0..READ.len(), 0..4_usize, 0..5_usize, any::<bool>());
    let plan = plan.prop_map(|(read, operator, target, nested)| ConditionPlan {
        read,
        operator,
        target,
        nested,
    });
    vec(plan, 0..4)
}

/// A group of these conditions; none for no conditions.
fn group(plans: &[ConditionPlan]) -> Option<DependencyGroup> {
    let node = |plan: &ConditionPlan| {
        let (path, variable) = READ[plan.read];
        let targets = [
            text("5"),
            number(5.0),
            text("yes"),
            value(true.into()),
            text("true"),
        ];
        let node = comparison(Condition {
            variable: variable.to_owned(),
            operator: ["=", "!=", ">", "<"][plan.operator].to_owned(),
            targets: vec![targets[plan.target].clone()],
            path: path.to_owned(),
        });
        if plan.nested {
            nested(any_of(vec![when("other", "=", "1"), node]))
        } else {
            node
        }
    };
    (!plans.is_empty()).then(|| all_of(plans.iter().map(node).collect()))
}

/// The call of a write, which may be sent repeatedly.
macro_rules! calls {
    ($($call:ident($request:ty): $service:ident, $method:ident;)+) => {
        #[derive(Clone, Debug)]
        pub enum Call {
            $($call($request),)+
        }

        impl Call {
            /// Its response as a text.
            pub async fn send(&self, client: &Client) -> Result<String, Status> {
                match self.clone() {
                    $(Self::$call(request) => {
                        let response = client.$service().$method(request).await?;
                        Ok(format!("{:?}", response.into_inner()))
                    })+
                }
            }
        }
    };
}

calls! {
    CreateTask(CreateTaskRequest): tasks, create_task;
    UpdateTask(UpdateTaskRequest): tasks, update_task;
    DeleteTask(DeleteTaskRequest): tasks, delete_task;
    ImportTask(ImportTaskRequest): tasks, import_task;
    CreateStep(CreateStepRequest): steps, create_step;
    UpdateStep(UpdateStepRequest): steps, update_step;
    DeleteStep(DeleteStepRequest): steps, delete_step;
    RestoreStep(RestoreStepRequest): steps, restore_step;
    CreateRole(CreateRoleRequest): roles, create_role;
    DeleteRole(DeleteRoleRequest): roles, delete_role;
    WriteTranslations(WriteTranslationsRequest): translations, write_translations;
}

impl Call {
    /// Whether a repeated call gets the response of the first one.
    pub fn has_request_id(&self) -> bool {
        match self {
            Self::CreateTask(request) => !request.request_id.is_empty(),
            Self::CreateStep(request) => !request.request_id.is_empty(),
            _ => false,
        }
    }

    fn update_task(task: Task, mask: &[&str]) -> Self {
        Self::UpdateTask(UpdateTaskRequest {
            task: Some(task),
            update_mask: field_mask(mask),
            validate_only: false,
        })
    }

    fn create_step(step: Step) -> Self {
        Self::CreateStep(create_step_request(step))
    }

    fn create_step_after(step: Step, prevstep: String) -> Self {
        Self::CreateStep(CreateStepRequest {
            prevstep,
            ..create_step_request(step)
        })
    }

    fn update_step(step: Step, mask: &[&str]) -> Self {
        Self::UpdateStep(UpdateStepRequest {
            step: Some(step),
            update_mask: field_mask(mask),
            validate_only: false,
        })
    }

    fn import(document: TaskDocument, absent: AbsentSteps) -> Self {
        Self::ImportTask(ImportTaskRequest {
            document: Some(document),
            absent_steps: absent.into(),
            ..ImportTaskRequest::default()
        })
    }
}

/// Makes the write, and returns its answer; `None` if it needs a task or step and there is none.
/// A write with a request id is made twice.
pub async fn apply(client: &Client, write: &Write, number: usize) -> Option<String> {
    let call = write.call(client, number).await.expect("what there is")?;
    let mut answer = call.send(client).await;
    if call.has_request_id() {
        answer = call.send(client).await;
    }
    Some(answer.unwrap_or_else(|status| format!("{:?} {}", status.code(), status.message())))
}

impl Write {
    /// The call of a write that is the same whatever there is.
    pub fn blind_call(&self, number: usize) -> Option<Call> {
        match self {
            Self::CreateRole => {
                let role = Some(Role {
                    id: 0,
                    name: text_of(number),
                });
                Some(Call::CreateRole(CreateRoleRequest { role }))
            }
            Self::DeleteRole(id) => Some(Call::DeleteRole(DeleteRoleRequest { id: *id })),
            _ => None,
        }
    }

    /// The call for what there is now; `None` if it needs a task or step and there is none.
    pub async fn call(&self, client: &Client, number: usize) -> Result<Option<Call>, Status> {
        if let Some(call) = self.blind_call(number) {
            return Ok(Some(call));
        }
        let tasks = client.list_tasks(ListTasksRequest {
            page_size: 500,
            ..ListTasksRequest::default()
        });
        let tasks = tasks.await?.tasks;
        let mut steps = Vec::new();
        for task in &tasks {
            let page = client.list_steps(ListStepsRequest {
                task: task.guid.clone(),
                expand: vec!["body".to_owned()],
                page_size: 500,
                ..ListStepsRequest::default()
            });
            steps.extend(page.await?.steps);
        }
        let exported = async |task: Task| client.export(&task.guid).await;
        let any_task = |index: &Index| (!tasks.is_empty()).then(|| index.get(&tasks).clone());
        let any_step = |index: &Index| (!steps.is_empty()).then(|| index.get(&steps).clone());
        let text = text_of(number);
        let reading = |conditions: &Conditions, step| Step {
            dependencies: group(conditions),
            ..step
        };
        // The task or step that a write is about.
        macro_rules! some {
            ($found:expr) => {
                match $found {
                    Some(found) => found,
                    None => return Ok(None),
                }
            };
        }
        Ok(Some(match self {
            Self::CreateTask(conditions, translated, repeated) => {
                let mut new = Task {
                    dependencies: group(conditions),
                    ..task(&text)
                };
                if *translated {
                    new = new.translated("de", task_translation("Aufgabe"));
                }
                Call::CreateTask(CreateTaskRequest {
                    request_id: request_id(*repeated),
                    ..create_task_request(new)
                })
            }
            Self::UpdateTask(task, published, renamed) => {
                let task = task_of(&some!(any_task(task)).guid).with_published(*published);
                let mask: &[&str] = match renamed {
                    true => &["published", "name"],
                    false => &["published"],
                };
                Call::update_task(task.named(text), mask)
            }
            Self::RenameTask(task) => {
                let task = task_of(&some!(any_task(task)).guid).named(text);
                Call::update_task(task, &["name"])
            }
            Self::TranslateTask(task, locked) => {
                let row = TaskTranslation {
                    locked: Some(*locked),
                    ..task_translation(&text)
                };
                let task = task_of(&some!(any_task(task)).guid).translated("fr", row);
                Call::update_task(task, &["translations.fr"])
            }
            Self::UpdateConditionsOfTask(task, conditions) => {
                let task = Task {
                    dependencies: group(conditions),
                    ..task_of(&some!(any_task(task)).guid)
                };
                Call::update_task(task, &["dependencies"])
            }
            Self::IdentifyTask(task, id) => {
                let task = Task {
                    external_id: external_id(*id),
                    ..task_of(&some!(any_task(task)).guid)
                };
                Call::update_task(task, &["external_id"])
            }
            Self::DeleteTask(task, force) => Call::DeleteTask(DeleteTaskRequest {
                guid: some!(any_task(task)).guid,
                force: *force,
                ..DeleteTaskRequest::default()
            }),
            Self::AppendStep(task, conditions, repeated) => {
                let step = information_step(&some!(any_task(task)), "appended").with_body(text);
                Call::CreateStep(CreateStepRequest {
                    request_id: request_id(*repeated),
                    ..create_step_request(reading(conditions, step))
                })
            }
            Self::InsertStep(step, conditions) => {
                let before = some!(any_step(step));
                let new = information_step(&task_of(&before.task), "inserted");
                Call::create_step_after(reading(conditions, new), before.guid)
            }
            Self::InsertBehindUnknown(task) => {
                let new = information_step(&some!(any_task(task)), "inserted");
                Call::create_step_after(new, unknown_guid())
            }
            Self::AppendSubtask(task, other) => {
                Call::create_step(subtask(&some!(any_task(task)), &some!(any_task(other))))
            }
            Self::AppendQuestion(task, own, conditions) => {
                let step = step(&some!(any_task(task)), StepType::Observation, &text);
                let step = step.with_question(question(OWN[*own], &["5", "yes"]));
                Call::create_step(reading(conditions, step))
            }
            Self::UpdateTitle(step) => {
                let step = step_of(&some!(any_step(step)).guid).titled(text);
                Call::update_step(step, &["title"])
            }
            Self::UpdateBody(step, clear) => {
                let step = Step {
                    body: (!clear).then_some(text),
                    ..step_of(&some!(any_step(step)).guid)
                };
                Call::update_step(step, &["body"])
            }
            Self::UpdateConditions(step, conditions) => {
                let step = reading(conditions, step_of(&some!(any_step(step)).guid));
                Call::update_step(step, &["dependencies"])
            }
            Self::UpdateQuestion(step, own) => {
                let question = question(OWN[*own], &["5", "no"]);
                let step = step_of(&some!(any_step(step)).guid).with_question(question);
                Call::update_step(step, &["feedback_config"])
            }
            Self::IdentifyStep(step, id) => {
                let step = Step {
                    external_id: external_id(*id),
                    ..step_of(&some!(any_step(step)).guid)
                };
                Call::update_step(step, &["external_id"])
            }
            Self::ReferTo(step, task) => {
                let step = step_of(&some!(any_step(step)).guid);
                let task = some!(any_task(task));
                match task.external_id {
                    Some(id) => Call::update_step(
                        step.with_subtask_external_id(id),
                        &["subtask_external_id"],
                    ),
                    None => Call::update_step(step.with_subtask_id(task.guid), &["subtask_id"]),
                }
            }
            Self::TranslateStep(step, locked) => {
                let row = step_translation(&text).with_lock(*locked);
                let step = step_of(&some!(any_step(step)).guid).translated("fr", row);
                Call::update_step(step, &["translations.fr"])
            }
            Self::DropTranslations(step) => {
                let step = step_of(&some!(any_step(step)).guid);
                Call::update_step(step, &["translations"])
            }
            Self::Unlink(step) => {
                let mut step = some!(any_step(step));
                if let Some(question) = step.feedback_config.first_mut() {
                    question.linked = Some(false);
                }
                Call::update_step(step, &["feedback_config"])
            }
            Self::DeleteStep(step) => Call::DeleteStep(DeleteStepRequest {
                guid: some!(any_step(step)).guid,
                ..DeleteStepRequest::default()
            }),
            Self::RestoreStep(step) => {
                let mut deleted = Vec::new();
                for task in &tasks {
                    let page = client.list_deleted_steps(ListDeletedStepsRequest {
                        task: task.guid.clone(),
                        ..ListDeletedStepsRequest::default()
                    });
                    deleted.extend(page.await?.steps.into_iter().filter_map(|it| it.step));
                }
                if deleted.is_empty() {
                    return Ok(None);
                }
                let guid = step.get(&deleted).guid.clone();
                Call::RestoreStep(RestoreStepRequest { guid })
            }
            Self::ImportGuide(own, conditions) => {
                let reads = || reading(conditions, document_step(StepType::Information, "reads"));
                let values = vec![
                    answer_with("5", "Five", document("Inner", vec![reads()])),
                    answer("true", "True"),
                ];
                let question = FeedbackConfig {
                    name: OWN[*own].to_owned(),
                    ..linked_question(values)
                };
                let steps = vec![observation_asking(question), reads()];
                Call::import(document(&text, steps), AbsentSteps::Unspecified)
            }
            Self::ImportAgain(task, step, conditions, keep) => {
                let mut document = exported(some!(any_task(task))).await?;
                if !document.steps.is_empty() {
                    document.steps.remove(step.index(document.steps.len()));
                }
                let new = document_step(StepType::Information, "imported");
                document.steps.push(reading(conditions, new));
                let absent = match keep {
                    true => AbsentSteps::Keep,
                    false => AbsentSteps::Delete,
                };
                Call::import(document, absent)
            }
            Self::Reverse(task) => {
                let mut document = exported(some!(any_task(task))).await?;
                document.steps.reverse();
                Call::import(document, AbsentSteps::Unspecified)
            }
            Self::TranslateAutomatically => {
                let request = translation_work_request(&["fr", "nl"]);
                let work = client.list_translation_work(request).await?.work;
                let translations = work.iter().map(|work| automatic(work, &text));
                Call::WriteTranslations(WriteTranslationsRequest {
                    translations: translations.collect(),
                })
            }
            Self::CreateRole | Self::DeleteRole(_) => return Ok(None),
        }))
    }
}

/// Each text has a length of its own, which sizes depend on.
fn text_of(number: usize) -> String {
    format!("text {}", "x".repeat(number))
}

/// One of few, so that some are taken; none for 0.
fn external_id(number: usize) -> Option<String> {
    (number > 0).then(|| format!("id {number}"))
}

fn request_id(wanted: bool) -> String {
    if wanted {
        unknown_guid()
    } else {
        String::new()
    }
}
