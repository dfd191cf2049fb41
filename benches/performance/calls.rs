//! The calls that are measured, and their data.

use bytes::Bytes;
use clap::ValueEnum;
use expertise::proto::v1::*;
use prost_types::FieldMask;

use super::{
    kit::sample,
    load::{Requests, frame},
    servers::Server,
};

/// A measured call. Its name on the command line is the name of the rpc.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Call {
    GetStep,
    GetTask,
    ListSteps,
    ExportTask,
    ValidateTask,
    PreviewTask,
    ListFindings,
    CreateStep,
    UpdateStep,
    DeleteStep,
    ImportTask,
    WriteTranslations,
}

const GET_STEP: &str = "/expertise.v1.StepService/GetStep";
const GET_TASK: &str = "/expertise.v1.TaskService/GetTask";
const LIST_STEPS: &str = "/expertise.v1.StepService/ListSteps";
const EXPORT_TASK: &str = "/expertise.v1.TaskService/ExportTask";
const VALIDATE_TASK: &str = "/expertise.v1.AnalysisService/ValidateTask";
const PREVIEW_TASK: &str = "/expertise.v1.AnalysisService/PreviewTask";
const LIST_FINDINGS: &str = "/expertise.v1.AnalysisService/ListFindings";
const CREATE_STEP: &str = "/expertise.v1.StepService/CreateStep";
const UPDATE_STEP: &str = "/expertise.v1.StepService/UpdateStep";
const DELETE_STEP: &str = "/expertise.v1.StepService/DeleteStep";
const IMPORT_TASK: &str = "/expertise.v1.TaskService/ImportTask";
const LIST_TRANSLATION_WORK: &str = "/expertise.v1.TranslationService/ListTranslationWork";
const WRITE_TRANSLATIONS: &str = "/expertise.v1.TranslationService/WriteTranslations";

/// Faster than any build.
const DELETIONS_PER_SECOND: f64 = 8_000.0;

impl Call {
    /// The name of the call in the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::GetStep => "GetStep, body of 1 KB",
            Self::GetTask => "GetTask, 50 steps",
            Self::ListSteps => "ListSteps, 100 without bodies",
            Self::ExportTask => "ExportTask, 1,000 steps of 1 KB",
            Self::ValidateTask => "ValidateTask, 100 steps with 60 conditions",
            Self::PreviewTask => "PreviewTask, 100 steps with 60 conditions",
            Self::ListFindings => "ListFindings, first page of 50",
            Self::CreateStep => "CreateStep, over 1,000 tasks",
            Self::UpdateStep => "UpdateStep, title by mask",
            Self::DeleteStep => "DeleteStep, over many tasks",
            Self::ImportTask => "ImportTask, 1,000 steps of 1 KB",
            Self::WriteTranslations => "WriteTranslations, 100 of 1 KB",
        }
    }

    /// Writes the data of the call, and returns requests for this many seconds of load.
    pub async fn prepare(self, server: &Server, seconds: f64) -> Requests {
        match self {
            Self::GetStep => {
                let steps = interleaved_steps(import(server, 20, 50).await);
                Requests::new(GET_STEP, move |number| {
                    let guid = steps[number % steps.len()].clone();
                    frame(&GetStepRequest { guid })
                })
            }
            Self::GetTask => requests_per_task(GET_TASK, import(server, 20, 50).await, |guid| {
                frame(&GetTaskRequest { guid })
            }),
            Self::ListSteps => {
                requests_per_task(LIST_STEPS, import(server, 20, 150).await, |task| {
                    frame(&ListStepsRequest {
                        task,
                        page_size: 100,
                        ..ListStepsRequest::default()
                    })
                })
            }
            Self::ExportTask => {
                requests_per_task(EXPORT_TASK, import(server, 16, 1_000).await, |guid| {
                    frame(&ExportTaskRequest { guid })
                })
            }
            Self::ValidateTask => {
                let guide = import_document(server, guide_with_conditions()).await;
                requests_per_task(VALIDATE_TASK, vec![guide], |guid| {
                    frame(&ValidateTaskRequest {
                        source: Some(validate_task_request::Source::Guid(guid)),
                        ..ValidateTaskRequest::default()
                    })
                })
            }
            Self::PreviewTask => {
                let guide = import_document(server, guide_with_conditions()).await;
                requests_per_task(PREVIEW_TASK, vec![guide], |guid| {
                    frame(&PreviewTaskRequest {
                        source: Some(preview_task_request::Source::Guid(guid)),
                        ..PreviewTaskRequest::default()
                    })
                })
            }
            Self::ListFindings => {
                import_document(server, guide_with_conditions()).await;
                let request = frame(&ListFindingsRequest {
                    page_size: 50,
                    ..ListFindingsRequest::default()
                });
                Requests::new(LIST_FINDINGS, move |_| request.clone())
            }
            Self::CreateStep => {
                requests_per_task(CREATE_STEP, import(server, 1_000, 0).await, |task| {
                    let step = Step { task, ..step(0) };
                    frame(&CreateStepRequest {
                        step: Some(step),
                        ..CreateStepRequest::default()
                    })
                })
            }
            Self::UpdateStep => {
                let steps = interleaved_steps(import(server, 100, 10).await);
                Requests::new(UPDATE_STEP, move |number| {
                    let guid = steps[number % steps.len()].clone();
                    update_title(guid, number)
                })
            }
            Self::DeleteStep => {
                let tasks = (DELETIONS_PER_SECOND * seconds / 1_000.0).ceil() as usize;
                let steps = interleaved_steps(import(server, tasks, 1_000).await);
                Requests::new(DELETE_STEP, move |number| {
                    let guid = steps.get(number).expect("a step that is left").clone();
                    frame(&DeleteStepRequest {
                        guid,
                        ..DeleteStepRequest::default()
                    })
                })
            }
            Self::ImportTask => {
                let request = frame(&ImportTaskRequest {
                    document: Some(sample::document("Imported", (0..1_000).map(step).collect())),
                    ..ImportTaskRequest::default()
                });
                Requests::new(IMPORT_TASK, move |_| request.clone())
            }
            Self::WriteTranslations => write_translations(server).await,
        }
    }
}

fn update_title(guid: String, number: usize) -> Bytes {
    frame(&UpdateStepRequest {
        step: Some(Step {
            guid,
            title: format!("Replace the fuse behind panel {number:08}"),
            ..Step::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["title".to_owned()],
        }),
        ..UpdateStepRequest::default()
    })
}

/// New titles and bodies of 100 steps of each of 32 tasks in turn.
async fn write_translations(server: &Server) -> Requests {
    let mut work = Vec::new();
    for task in import(server, 32, 100).await {
        let request = ListTranslationWorkRequest {
            languages: vec!["de".to_owned()],
            task: Some(task.guid.clone()),
            page_size: 101,
            ..ListTranslationWorkRequest::default()
        };
        let response: ListTranslationWorkResponse =
            server.call(LIST_TRANSLATION_WORK, &request).await;
        let mut step_work = response.work;
        step_work.retain(|work| work.guid != task.guid);
        work.push(step_work);
    }
    Requests::new(WRITE_TRANSLATIONS, move |number| {
        let translation = |work: &TranslationWork| AutomaticTranslation {
            title: Some(format!("Sicherung hinter Tafel {number:08} ersetzen")),
            body: step(0).body,
            ..sample::automatic(work, "")
        };
        let work = &work[number % work.len()];
        frame(&WriteTranslationsRequest {
            translations: work.iter().map(translation).collect(),
        })
    })
}

/// A request for each task in turn.
fn requests_per_task(
    path: &'static str,
    tasks: Vec<Task>,
    request: fn(String) -> Bytes,
) -> Requests {
    let requests: Vec<_> = tasks.into_iter().map(|task| request(task.guid)).collect();
    Requests::new(path, move |number| {
        requests[number % requests.len()].clone()
    })
}

/// The steps of tasks of one size. Consecutive steps are in different tasks, because a write locks
/// its task.
fn interleaved_steps(tasks: Vec<Task>) -> Vec<String> {
    let size = tasks.first().map_or(0, |task| task.steps.len());
    let nth_steps = |index: usize| tasks.iter().map(move |task| task.steps[index].clone());
    (0..size).flat_map(nth_steps).collect()
}

/// Imports tasks, each with this many steps.
async fn import(server: &Server, tasks: usize, steps: usize) -> Vec<Task> {
    let mut imported = Vec::new();
    for task in 0..tasks {
        let steps = (0..steps).map(step).collect();
        let document = sample::document(&format!("Guide {task:06}"), steps);
        imported.push(import_document(server, document).await);
    }
    imported
}

async fn import_document(server: &Server, document: TaskDocument) -> Task {
    let request = ImportTaskRequest {
        document: Some(document),
        ..ImportTaskRequest::default()
    };
    let response: ImportTaskResponse = server.call(IMPORT_TASK, &request).await;
    response.task.expect("a task")
}

/// A step of 1 KB.
fn step(number: usize) -> Step {
    const SENTENCE: &str = "<p>Switch the mains off, open the panel and look at the fuse.</p>\n";
    Step {
        body: Some(SENTENCE.chars().cycle().take(1_024).collect()),
        cost: Some(2),
        ..sample::document_step(
            StepType::Solution,
            &format!("Replace the fuse behind panel {number:08}"),
        )
    }
}

/// A guide of 100 steps: 20 ask, 60 have a condition, and 20 are always shown.
fn guide_with_conditions() -> TaskDocument {
    let step = |index: usize| {
        let variable = format!("state_{}", index % 20);
        if index < 20 {
            return sample::observation_asking(sample::question(&variable, &["on", "off"]));
        }
        let kind = if index == 99 {
            StepType::End
        } else {
            StepType::Solution
        };
        let answer = if index.is_multiple_of(2) { "on" } else { "off" };
        let variable = format!("components.{}.{variable}", sample::PRODUCT);
        let condition = sample::all_of(vec![sample::when(&variable, "=", answer)]);
        Step {
            cost: (kind == StepType::Solution).then_some(2),
            r#type: kind.into(),
            dependencies: (index < 80).then_some(condition),
            ..step(index)
        }
    };
    sample::document("Guide with conditions", (0..100).map(step).collect())
}
