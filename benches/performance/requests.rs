//! The requests that are measured.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use expertise::proto::v1::*;
use prost::Message;
use prost_types::FieldMask;

use super::{
    fixture::{self, BODY_BYTES, LargeTask, Work},
    load::Requests,
};

/// A message in the framing of gRPC, uncompressed.
pub fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(5 + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).expect("a length"));
    message.encode(&mut frame).expect("there is room");
    frame.freeze()
}

/// The frames in turn, again and again.
fn in_turn(path: &'static str, frames: Vec<Bytes>) -> Arc<Requests> {
    let make = move |number: usize| frames[number % frames.len()].clone();
    Arc::new(Requests::new(path, make))
}

/// Stands for the number of a request, with 8 digits.
const NUMBER: &str = "########";

/// The frames in turn, with the number of the request wherever [`NUMBER`] stands.
fn numbered(path: &'static str, frames: Vec<Bytes>) -> Arc<Requests> {
    let mark = NUMBER.as_bytes();
    let places = |frame: &Bytes| -> Vec<usize> {
        let windows = frame.windows(mark.len()).enumerate();
        let found = windows.filter(|(_, window)| *window == mark);
        found.map(|(place, _)| place).collect()
    };
    let frames: Vec<(Bytes, Vec<usize>)> = frames
        .into_iter()
        .map(|frame| {
            let places = places(&frame);
            (frame, places)
        })
        .collect();
    let make = move |number: usize| {
        let (frame, places) = &frames[number % frames.len()];
        let mut frame = BytesMut::from(frame.as_ref());
        let digits = format!("{number:08}");
        for place in places {
            frame[*place..place + digits.len()].copy_from_slice(digits.as_bytes());
        }
        frame.freeze()
    };
    Arc::new(Requests::new(path, make))
}

/// GetStep of each in turn.
pub fn get_step(steps: &[String]) -> Arc<Requests> {
    let frames = steps
        .iter()
        .map(|guid| frame(&GetStepRequest { guid: guid.clone() }));
    in_turn("/expertise.v1.StepService/GetStep", frames.collect())
}

/// GetTask of each in turn.
pub fn get_task(tasks: &[String]) -> Arc<Requests> {
    let frames = tasks
        .iter()
        .map(|guid| frame(&GetTaskRequest { guid: guid.clone() }));
    in_turn("/expertise.v1.TaskService/GetTask", frames.collect())
}

/// ListSteps of each in turn, a page of 100.
pub fn list_steps(tasks: &[String]) -> Arc<Requests> {
    list_steps_expanded(tasks, &[])
}

/// The same with the bodies.
pub fn list_steps_with_bodies(tasks: &[String]) -> Arc<Requests> {
    list_steps_expanded(tasks, &["body"])
}

fn list_steps_expanded(tasks: &[String], expand: &[&str]) -> Arc<Requests> {
    let expand: Vec<String> = expand.iter().map(|field| (*field).to_owned()).collect();
    let frames = tasks.iter().map(|task| {
        frame(&ListStepsRequest {
            task: task.clone(),
            expand: expand.clone(),
            page_size: 100,
            ..ListStepsRequest::default()
        })
    });
    in_turn("/expertise.v1.StepService/ListSteps", frames.collect())
}

/// ExportTask of each in turn.
pub fn export_task(tasks: &[String]) -> Arc<Requests> {
    let frames = tasks
        .iter()
        .map(|guid| frame(&ExportTaskRequest { guid: guid.clone() }));
    in_turn("/expertise.v1.TaskService/ExportTask", frames.collect())
}

/// CreateStep at the end of each in turn.
pub fn create_step(tasks: &[String]) -> Arc<Requests> {
    create_step_after(&ends_of(tasks))
}

/// Each task without a previous step, so that a step is appended.
fn ends_of(tasks: &[String]) -> Vec<(String, String)> {
    let ends = tasks.iter().map(|task| (task.clone(), String::new()));
    ends.collect()
}

/// CreateStep at the end of one task: of the last, and after 5,000 steps of the one before it. A
/// task may have at most 10,000.
pub fn create_step_of_one_task(tasks: &[String]) -> Arc<Requests> {
    const STEPS_OF_ONE: usize = 5_000;
    let tasks = tasks.to_vec();
    let make = move |number: usize| {
        frame(&CreateStepRequest {
            step: Some(Step {
                task: tasks[tasks.len() - 1 - number / STEPS_OF_ONE % tasks.len()].clone(),
                ..fixture::step(0)
            }),
            ..CreateStepRequest::default()
        })
    };
    let path = "/expertise.v1.StepService/CreateStep";
    Arc::new(Requests::new(path, make))
}

/// CreateStep for each pair of a task and a previous step, in turn.
pub fn create_step_after(places: &[(String, String)]) -> Arc<Requests> {
    create_steps(places, &fixture::step(0))
}

/// CreateStep of a step with conditions at the end of each, in turn.
pub fn create_step_with_conditions(tasks: &[String]) -> Arc<Requests> {
    create_steps(&ends_of(tasks), &fixture::step_with_conditions(0))
}

fn create_steps(places: &[(String, String)], step: &Step) -> Arc<Requests> {
    let frames = places.iter().map(|(task, prevstep)| {
        frame(&CreateStepRequest {
            step: Some(Step {
                task: task.clone(),
                ..step.clone()
            }),
            prevstep: prevstep.clone(),
            ..CreateStepRequest::default()
        })
    });
    in_turn("/expertise.v1.StepService/CreateStep", frames.collect())
}

/// UpdateStep of the title of each in turn, a new one each time.
pub fn update_step(steps: &[String]) -> Arc<Requests> {
    let steps = steps.to_vec();
    let make = move |number: usize| {
        frame(&UpdateStepRequest {
            step: Some(Step {
                guid: steps[number % steps.len()].clone(),
                title: format!("Replace the fuse behind panel {number:08}"),
                ..Step::default()
            }),
            update_mask: Some(FieldMask {
                paths: vec!["title".to_owned()],
            }),
            ..UpdateStepRequest::default()
        })
    };
    let path = "/expertise.v1.StepService/UpdateStep";
    Arc::new(Requests::new(path, make))
}

/// ImportTask of a new task with `steps` steps.
pub fn import_task(steps: usize) -> Arc<Requests> {
    import_task_of(steps, fixture::step)
}

/// ImportTask of a new task with `steps` steps, each as `step` makes it.
pub fn import_task_of(steps: usize, step: fn(usize) -> Step) -> Arc<Requests> {
    let steps = (0..steps).map(step).collect();
    let request = ImportTaskRequest {
        document: Some(fixture::document("Imported", steps)),
        ..ImportTaskRequest::default()
    };
    in_turn(
        "/expertise.v1.TaskService/ImportTask",
        vec![frame(&request)],
    )
}

/// ImportTask of each in turn, in which the title of one step is new each time.
pub fn reimport_task(tasks: &[LargeTask]) -> Arc<Requests> {
    let frames = tasks.iter().map(|LargeTask { task, first_step }| {
        let guids = task.steps.iter().enumerate();
        let mut steps: Vec<Step> = guids
            .map(|(index, guid)| Step {
                guid: guid.clone(),
                ..fixture::step(first_step + index)
            })
            .collect();
        let changed = steps.len() / 2;
        steps[changed].title = format!("Replace the fuse behind panel {NUMBER}");
        let mut document = fixture::document(&task.name, steps);
        if let Some(sent) = &mut document.task {
            sent.guid.clone_from(&task.guid);
        }
        frame(&ImportTaskRequest {
            document: Some(document),
            absent_steps: AbsentSteps::Keep.into(),
            ..ImportTaskRequest::default()
        })
    });
    numbered("/expertise.v1.TaskService/ImportTask", frames.collect())
}

/// WriteTranslations of each in turn, with new titles each time.
pub fn write_translations(work: &[Vec<Work>]) -> Arc<Requests> {
    let item = |work: &Work| AutomaticTranslation {
        guid: work.guid.clone(),
        language: "de".to_owned(),
        title: Some(format!("Sicherung hinter Tafel {NUMBER} ersetzen")),
        body: Some(fixture::body(BODY_BYTES)),
        source_digest: work.source_digest.clone(),
        ..AutomaticTranslation::default()
    };
    let frames = work.iter().map(|items| {
        frame(&WriteTranslationsRequest {
            translations: items.iter().map(item).collect(),
        })
    });
    let path = "/expertise.v1.TranslationService/WriteTranslations";
    numbered(path, frames.collect())
}

/// DeleteStep of `count` steps, each once. `id` returns their ids by number, from 0.
pub fn delete_step(
    count: usize,
    id: impl Fn(usize) -> String + Send + Sync + 'static,
) -> Arc<Requests> {
    let make = move |number: usize| {
        assert!(number < count, "there are too few steps to delete");
        frame(&DeleteStepRequest {
            guid: id(number),
            ..DeleteStepRequest::default()
        })
    };
    let path = "/expertise.v1.StepService/DeleteStep";
    Arc::new(Requests::new(path, make))
}

/// The first page of ListTranslationWork.
pub fn list_translation_work() -> Arc<Requests> {
    let request = ListTranslationWorkRequest {
        languages: vec!["de".to_owned()],
        page_size: 50,
        ..ListTranslationWorkRequest::default()
    };
    let path = "/expertise.v1.TranslationService/ListTranslationWork";
    in_turn(path, vec![frame(&request)])
}

/// ValidateTask of a stored task.
pub fn validate_task(guid: &str) -> Arc<Requests> {
    let request = ValidateTaskRequest {
        source: Some(validate_task_request::Source::Guid(guid.to_owned())),
        ..ValidateTaskRequest::default()
    };
    let path = "/expertise.v1.AnalysisService/ValidateTask";
    in_turn(path, vec![frame(&request)])
}

/// PreviewTask of a stored task, without answers.
pub fn preview_task(guid: &str) -> Arc<Requests> {
    let request = PreviewTaskRequest {
        source: Some(preview_task_request::Source::Guid(guid.to_owned())),
        ..PreviewTaskRequest::default()
    };
    let path = "/expertise.v1.AnalysisService/PreviewTask";
    in_turn(path, vec![frame(&request)])
}

/// The first page of ListFindings of the account.
pub fn list_findings() -> Arc<Requests> {
    let request = ListFindingsRequest {
        page_size: 50,
        ..ListFindingsRequest::default()
    };
    let path = "/expertise.v1.AnalysisService/ListFindings";
    in_turn(path, vec![frame(&request)])
}

/// The first page of ListReferences of a variable.
pub fn list_references(variable: &str) -> Arc<Requests> {
    let request = ListReferencesRequest {
        variable: variable.to_owned(),
        page_size: 50,
        ..ListReferencesRequest::default()
    };
    let path = "/expertise.v1.AnalysisService/ListReferences";
    in_turn(path, vec![frame(&request)])
}
