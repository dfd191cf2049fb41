//! Random writes of one account.

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::Index,
    strategy::{Union, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use prost::Message;
use prost_reflect::{DynamicMessage, Value};
use tonic::Status;

use super::{
    client::{self, field_mask},
    contract,
    prelude::*,
    random_edits::{Edit, edit, edited},
    rng::Rng,
    snapshot,
};

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

/// One write of a history. What it does not need is ignored.
#[derive(Clone, Debug)]
pub struct Write {
    kind: Kind,
    /// Chooses among the tasks or steps that there are.
    index: Index,
    /// Chooses another one.
    other: Index,
    conditions: Option<DependencyGroup>,
    /// Chooses a name of an observation or an external id.
    choice: usize,
    flag: bool,
    /// Whether a create has a request id, and is sent twice.
    repeated: bool,
    edits: Vec<Edit>,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    CreateTask,
    UpdateTask,
    DeleteTask,
    /// A guide whose question manages a task with such a step.
    ImportGuide,
    /// An exported guide without one of its steps and with another one.
    ImportAgain,
    /// An exported guide with edits.
    ImportEdited,
    Reverse,
    AppendStep,
    InsertStep,
    InsertBehindUnknown,
    AppendSubtask,
    AppendQuestion,
    UpdateStep,
    /// A question with edits.
    UpdateQuestion,
    /// The tasks that the step manages become ordinary ones.
    Unlink,
    DeleteStep,
    /// A step that was deleted comes back.
    RestoreStep,
    TranslateAutomatically,
    CreateRole,
    DeleteRole,
}

/// How often each kind is made.
const WEIGHTS: [(u32, Kind); 20] = [
    (2, Kind::CreateTask),
    (9, Kind::UpdateTask),
    (1, Kind::DeleteTask),
    (2, Kind::ImportGuide),
    (2, Kind::ImportAgain),
    (8, Kind::ImportEdited),
    (1, Kind::Reverse),
    (4, Kind::AppendStep),
    (3, Kind::InsertStep),
    (1, Kind::InsertBehindUnknown),
    (2, Kind::AppendSubtask),
    (3, Kind::AppendQuestion),
    (15, Kind::UpdateStep),
    (5, Kind::UpdateQuestion),
    (1, Kind::Unlink),
    (3, Kind::DeleteStep),
    (2, Kind::RestoreStep),
    (1, Kind::TranslateAutomatically),
    (1, Kind::CreateRole),
    (1, Kind::DeleteRole),
];
/// The fields that an update changes. The others that it sends are ignored.
const TASK_MASKS: [&[&str]; 6] = [
    &["published"],
    &["name"],
    &["published", "name"],
    &["translations.fr"],
    &["dependencies"],
    &["external_id"],
];
const STEP_MASKS: [&[&str]; 9] = [
    &["title"],
    &["body"],
    &["dependencies"],
    &["feedback_config"],
    &["external_id"],
    &["translations.fr"],
    &["translations"],
    &["subtask_id"],
    &["subtask_external_id"],
];

impl Write {
    /// The same choices for another kind of write.
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }
}

pub fn write() -> impl Strategy<Value = Write> {
    let kinds = WEIGHTS.map(|(weight, kind)| (weight, Just(kind)));
    let kind = Union::new_weighted(kinds.to_vec());
    let chosen = (any::<Index>(), any::<Index>(), 0..OWN.len());
    let flags = (any::<bool>(), any::<bool>());
    let parts = (kind, chosen, conditions(), flags, vec(edit(), 1..5));
    parts.prop_map(
        |(kind, (index, other, choice), conditions, (flag, repeated), edits)| Write {
            kind,
            index,
            other,
            conditions,
            choice,
            flag,
            repeated,
            edits,
        },
    )
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

/// None, or up to three conditions, some of them in a group with another one.
fn conditions() -> impl Strategy<Value = Option<DependencyGroup>> {
    let parts = (0..READ.len(), 0..4_usize, 0..5_usize, any::<bool>());
    let node = parts.prop_map(|(read, operator, target, is_nested)| {
        let (path, variable) = READ[read];
        let targets = [
            text("5"),
            number(5.0),
            text("yes"),
            value(true.into()),
            text("true"),
        ];
        let node = comparison(Condition {
            variable: variable.to_owned(),
            operator: ["=", "!=", ">", "<"][operator].to_owned(),
            targets: vec![targets[target].clone()],
            path: path.to_owned(),
        });
        match is_nested {
            true => nested(any_of(vec![when("other", "=", "1"), node])),
            false => node,
        }
    });
    option::weighted(0.75, vec(node, 1..4).prop_map(all_of))
}

/// The call of a write, which may be sent repeatedly.
#[derive(Clone, Debug)]
pub struct Call {
    /// Such as `TaskService/CreateTask`.
    rpc: &'static str,
    request: DynamicMessage,
}

impl Call {
    fn new<R: client::RpcRequest>(request: &R) -> Self {
        let rpc = R::PATH.trim_start_matches("/expertise.v1.");
        let descriptor = contract::message_of(rpc, "Request");
        let request = DynamicMessage::decode(descriptor, &*request.encode_to_vec());
        let request = request.expect("the request of this rpc");
        Self { rpc, request }
    }

    /// Its response as JSON without times and etags.
    pub async fn send(&self, client: &Client) -> Result<String, Status> {
        let response = self.response(client).await?;
        Ok(snapshot::shown(&response).to_string())
    }

    pub async fn response(&self, client: &Client) -> Result<DynamicMessage, Status> {
        let request = self.request.encode_to_vec().into();
        let response = client.send_bytes(self.rpc, request).await?;
        let response = DynamicMessage::decode(contract::message_of(self.rpc, "Response"), response);
        Ok(response.expect("its response"))
    }

    /// The same as a dry run, if it has one.
    pub fn dry_run(mut self) -> Option<Self> {
        let dry = self
            .request
            .try_set_field_by_name("validate_only", Value::Bool(true));
        dry.is_ok().then_some(self)
    }

    /// Such as `CreateTask`.
    pub fn rpc(&self) -> &'static str {
        let (_, rpc) = self.rpc.split_once('/').expect("a call");
        rpc
    }

    /// Whether a repeated call gets the response of the first one.
    pub fn has_request_id(&self) -> bool {
        let id = self.request.get_field_by_name("request_id");
        id.is_some_and(|id| id.as_str() != Some(""))
    }

    fn create_step(step: Step, prevstep: String, request_id: String) -> Self {
        let request = create_step_request(step)
            .with(|it| it.prevstep = prevstep)
            .with(|it| it.request_id = request_id);
        Self::new(&request)
    }

    fn import(document: TaskDocument, absent: AbsentSteps) -> Self {
        let request = import_of(document).with(|it| it.absent_steps = absent.into());
        Self::new(&request)
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

/// The tasks and steps that writes choose among.
struct Present {
    tasks: Vec<Task>,
    steps: Vec<Step>,
}

impl Present {
    async fn read(client: &Client) -> Result<Self, Status> {
        let tasks = client.call(ListTasksRequest::default().with(|it| it.page_size = 500));
        let tasks = tasks.await?.tasks;
        let mut steps = Vec::new();
        for task in &tasks {
            let page = client.call(
                list_steps_of(&task.guid)
                    .with(|it| it.expand = vec!["body".to_owned()])
                    .with(|it| it.page_size = 500),
            );
            steps.extend(page.await?.steps);
        }
        Ok(Self { tasks, steps })
    }

    fn task(&self, index: Index) -> Option<Task> {
        (!self.tasks.is_empty()).then(|| index.get(&self.tasks).clone())
    }

    fn step(&self, index: Index) -> Option<Step> {
        (!self.steps.is_empty()).then(|| index.get(&self.steps).clone())
    }
}

impl Write {
    /// A write that is the same whatever there is.
    pub fn blind_call(number: usize) -> Call {
        let role = Some(Role {
            id: 0,
            name: text_of(number),
        });
        Call::new(&CreateRoleRequest { role })
    }

    /// The call for what there is now; `None` if it needs a task or step and there is none.
    pub async fn call(&self, client: &Client, number: usize) -> Result<Option<Call>, Status> {
        let text = text_of(number);
        let call = match self.kind {
            Kind::CreateRole => Some(Self::blind_call(number)),
            Kind::DeleteRole => {
                let id = self.choice as i64 + 1;
                Some(Call::new(&DeleteRoleRequest { id }))
            }
            Kind::CreateTask => Some(self.create_task(&text)),
            Kind::ImportGuide => Some(self.import_guide(&text)),
            Kind::TranslateAutomatically => Some(translate_automatically(client, &text).await?),
            Kind::ImportAgain | Kind::ImportEdited | Kind::Reverse => {
                let Some(task) = Present::read(client).await?.task(self.index) else {
                    return Ok(None);
                };
                let guide = client.export(&task.guid).await?.document;
                Some(self.import_changed(guide.expect("a document")))
            }
            Kind::RestoreStep => self.restore_step(client).await?,
            _ => {
                let present = Present::read(client).await?;
                let of_tasks = self.call_of_task(&present, text.clone());
                of_tasks.or_else(|| self.call_of_step(&present, text))
            }
        };
        Ok(call)
    }

    fn create_task(&self, text: &str) -> Call {
        let mut new = self.with_conditions_of_task(task(text));
        if self.flag {
            new = new.translated("de", task_translation("Aufgabe"));
        }
        let request = create_task_request(new).with(|it| it.request_id = self.request_id());
        Call::new(&request)
    }

    fn import_guide(&self, text: &str) -> Call {
        let reads = || self.with_conditions(document_step(StepType::Information, "reads"));
        let values = vec![
            answer_with("5", "Five", document("Inner", vec![reads()])),
            answer("true", "True"),
        ];
        let question = linked_question(values).with(|it| it.name = OWN[self.choice].to_owned());
        let steps = vec![observation_asking(question), reads()];
        Call::import(document(text, steps), AbsentSteps::Unspecified)
    }

    /// Imports an exported document with other steps, or in another order.
    fn import_changed(&self, mut document: TaskDocument) -> Call {
        match self.kind {
            Kind::Reverse => {
                document.steps.reverse();
                return Call::import(document, AbsentSteps::Unspecified);
            }
            Kind::ImportEdited => {
                let absent = [
                    AbsentSteps::Unspecified,
                    AbsentSteps::Keep,
                    AbsentSteps::Delete,
                ];
                return Call::import(edited(document, &self.edits), absent[self.choice]);
            }
            _ => {}
        }
        if !document.steps.is_empty() {
            document
                .steps
                .remove(self.other.index(document.steps.len()));
        }
        let new = document_step(StepType::Information, "imported");
        document.steps.push(self.with_conditions(new));
        let absent = match self.flag {
            true => AbsentSteps::Keep,
            false => AbsentSteps::Delete,
        };
        Call::import(document, absent)
    }

    async fn restore_step(&self, client: &Client) -> Result<Option<Call>, Status> {
        let mut deleted = Vec::new();
        for task in Present::read(client).await?.tasks {
            let page =
                client.call(ListDeletedStepsRequest::default().with(|it| it.task = task.guid));
            deleted.extend(page.await?.steps.into_iter().filter_map(|it| it.step));
        }
        if deleted.is_empty() {
            return Ok(None);
        }
        let guid = self.index.get(&deleted).guid.clone();
        let request = RestoreStepRequest { guid };
        Ok(Some(Call::new(&request)))
    }

    /// The call of a write to a task, or of a step that is appended to it.
    fn call_of_task(&self, present: &Present, text: String) -> Option<Call> {
        let chosen = present.task(self.index)?;
        let append = |step| Call::create_step(step, String::new(), String::new());
        Some(match self.kind {
            Kind::UpdateTask => {
                let row = task_translation(&text).with_lock(self.flag);
                let task = self
                    .with_conditions_of_task(task_of(&chosen.guid))
                    .with(|it| it.external_id = self.external_id());
                let task = task.named(text).translated("fr", row);
                let request = UpdateTaskRequest {
                    task: Some(task.with_published(i32::from(self.flag))),
                    update_mask: field_mask(self.other.get::<&[&str]>(&TASK_MASKS)),
                    validate_only: false,
                };
                Call::new(&request)
            }
            Kind::DeleteTask => {
                let request = deletion_of(&chosen.guid).with(|it| it.force = self.flag);
                Call::new(&request)
            }
            Kind::AppendStep => {
                let step = information_step(&chosen, "appended").with_body(text);
                Call::create_step(self.with_conditions(step), String::new(), self.request_id())
            }
            Kind::InsertBehindUnknown => {
                let step = information_step(&chosen, "inserted");
                Call::create_step(step, unknown_guid(), String::new())
            }
            Kind::AppendSubtask => append(subtask(&chosen, &present.task(self.other)?)),
            Kind::AppendQuestion => {
                let step = step(&chosen, StepType::Observation, &text);
                append(self.with_conditions(step.with_question(self.question())))
            }
            _ => return None,
        })
    }

    /// The call of a write to a step.
    fn call_of_step(&self, present: &Present, text: String) -> Option<Call> {
        let mut chosen = present.step(self.index)?;
        let update = |step, mask| {
            let request = UpdateStepRequest {
                step: Some(step),
                update_mask: field_mask(mask),
                validate_only: false,
            };
            Call::new(&request)
        };
        Some(match self.kind {
            Kind::InsertStep => {
                let new = information_step(&task_of(&chosen.task), "inserted");
                Call::create_step(self.with_conditions(new), chosen.guid, String::new())
            }
            Kind::UpdateStep => {
                let row = step_translation(&text).with_lock(self.flag);
                let other = present.task(self.other)?;
                let step = Step {
                    external_id: self.external_id(),
                    body: (!self.flag).then(|| text.clone()),
                    title: text,
                    subtask_id: other.guid,
                    subtask_external_id: other.external_id,
                    ..self.with_conditions(step_of(&chosen.guid))
                };
                let step = step.with_question(self.question());
                let step = match self.repeated {
                    true => step.translated("fr", row),
                    false => step,
                };
                update(step, self.other.get::<&[&str]>(&STEP_MASKS))
            }
            Kind::Unlink => {
                if let Some(question) = chosen.feedback_config.first_mut() {
                    question.linked = Some(false);
                }
                update(chosen, &["feedback_config"])
            }
            Kind::UpdateQuestion => {
                let is_observation = chosen.r#type() == StepType::Observation;
                let question = chosen.feedback_config.first_mut()?;
                for edit in &self.edits {
                    edit.edit_question(question, &[]);
                }
                // No other step can be linked.
                question.linked = question.linked.filter(|_| is_observation);
                for value in &mut question.values {
                    value.task_json = None;
                }
                let question = question.clone();
                let step = step_of(&chosen.guid).with_question(question);
                update(step, &["feedback_config"])
            }
            Kind::DeleteStep => {
                let request = DeleteStepRequest {
                    guid: chosen.guid,
                    ..DeleteStepRequest::default()
                };
                Call::new(&request)
            }
            _ => return None,
        })
    }

    fn with_conditions(&self, step: Step) -> Step {
        step.with(|it| it.dependencies = self.conditions.clone())
    }

    fn with_conditions_of_task(&self, task: Task) -> Task {
        task.with(|it| it.dependencies = self.conditions.clone())
    }

    fn question(&self) -> FeedbackConfig {
        question(
            OWN[self.choice],
            &["5", if self.flag { "yes" } else { "no" }],
        )
    }

    /// One of few, so that some are taken; none for 0.
    fn external_id(&self) -> Option<String> {
        (self.choice > 0).then(|| format!("id {}", self.choice))
    }

    fn request_id(&self) -> String {
        match self.repeated {
            true => unknown_guid(),
            false => String::new(),
        }
    }
}

async fn translate_automatically(client: &Client, text: &str) -> Result<Call, Status> {
    let request = translation_work_request(&["fr", "nl"]);
    let work = client.call(request).await?.work;
    let translations = work.iter().map(|work| automatic(work, text)).collect();
    let request = WriteTranslationsRequest { translations };
    Ok(Call::new(&request))
}

/// Each text has a length of its own, which sizes depend on.
fn text_of(number: usize) -> String {
    format!("text {}", "x".repeat(number))
}
