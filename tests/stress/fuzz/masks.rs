//! Update masks: the error of a path that names nothing says its index, a field that no
//! path names stays as it was, and ignored paths are listed.

use std::collections::BTreeSet;

use expertise::{domain::translation::Language, proto::v1::*};
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use prost_types::FieldMask;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    executions::{Input, execute},
    local_service::{Fixture, LocalService},
    messages::Messages,
    mutations::mutate_text,
    response_rules::is_of_the_contract,
};
use crate::kit::rng::Rng;

const WORDS: [&str; 16] = [
    "translations",
    ".",
    "`",
    "de",
    "pt-BR",
    "*",
    "name",
    "title",
    "body",
    "locked",
    "guid",
    "etag",
    "feedback_config",
    "values",
    "task",
    " ",
];
const TASK_FIELDS: [&str; 5] = ["dependencies", "name", "published", "roles", "translations"];
const STEP_FIELDS: [&str; 14] = [
    "body",
    "cost",
    "dependencies",
    "feedback_config",
    "instructions",
    "looping",
    "parts",
    "published",
    "skills",
    "subtask_id",
    "subtask_pid",
    "tags",
    "title",
    "translations",
];

/// The meaning of a path by the contract.
#[derive(Debug, PartialEq, Eq)]
enum PathMeaning {
    Nothing,
    /// This field is written.
    Written(String),
    /// This field is ignored and listed.
    Listed(String),
    /// The path is ignored.
    Silent,
}

struct Resource {
    /// Its name in requests, and the full name of its message.
    name: &'static str,
    message: &'static str,
    /// The fields of its message, and those of its translation.
    fields: BTreeSet<String>,
    row: BTreeSet<String>,
    /// The fields that an update may write.
    written: Vec<&'static str>,
    /// As it is stored.
    stored: DynamicMessage,
}

#[test]
fn an_update_changes_the_fields_that_its_mask_names() {
    let service = LocalService::new();
    let messages = Messages::new();
    let Fixture { task, step, .. } = service.fill();
    let resource = |name, message, row, written: &[&'static str], stored: Vec<u8>| Resource {
        name,
        message,
        fields: fields(&messages.decode(message, &[])),
        row: fields(&messages.decode(row, &[])),
        written: written.to_vec(),
        stored: messages.decode(message, &stored),
    };
    let (of_task, of_step) = ("expertise.v1.Task", "expertise.v1.Step");
    let task_row = "expertise.v1.TaskTranslation";
    let step_row = "expertise.v1.StepTranslation";
    let resources = [
        resource(
            "task",
            of_task,
            task_row,
            &TASK_FIELDS,
            task.encode_to_vec(),
        ),
        resource(
            "step",
            of_step,
            step_row,
            &STEP_FIELDS,
            step.encode_to_vec(),
        ),
    ];
    let mut accepted = 0_u64;
    execute("masks", 50, |rng| {
        let resource = rng.pick(&resources);
        let paths = resource.paths(rng);
        let described = format!("{} {paths:?}", resource.name);
        let _input = Input {
            target: "masks",
            bytes: described.as_bytes(),
        };
        let answer = match resource.name {
            "task" => update_task(&service, &task, &paths),
            _ => update_step(&service, &step, &paths),
        };
        match answer {
            Ok((answer, ignored)) => {
                accepted += 1;
                let updated = messages.decode(resource.message, &answer);
                resource.changes_named_fields_alone(&paths, &updated, &ignored);
            }
            Err(status) => resource.refuses_paths_that_name_nothing(&paths, &status),
        }
    });
    assert!(accepted > 0, "no request was accepted");
}

/// The encoded resource and the ignored paths of an update.
type Updated = Result<(Vec<u8>, Vec<String>), Status>;

fn update_task(service: &LocalService, task: &Task, paths: &[String]) -> Updated {
    let request = UpdateTaskRequest {
        task: Some(Task {
            guid: task.guid.clone(),
            name: "Other name".to_owned(),
            published: Some(3),
            roles: vec![AccessLevel::Expert.into()],
            ..Task::default()
        }),
        update_mask: mask(paths),
        validate_only: true,
    };
    let answer: UpdateTaskResponse = service.call("TaskService/UpdateTask", &request)?;
    let task = answer.task.expect("a task").encode_to_vec();
    Ok((task, answer.ignored_paths))
}

fn update_step(service: &LocalService, step: &Step, paths: &[String]) -> Updated {
    let request = UpdateStepRequest {
        step: Some(Step {
            guid: step.guid.clone(),
            title: "Other title".to_owned(),
            body: Some("other".to_owned()),
            cost: Some(9),
            parts: vec!["other".to_owned()],
            ..Step::default()
        }),
        update_mask: mask(paths),
        validate_only: true,
    };
    let answer: UpdateStepResponse = service.call("StepService/UpdateStep", &request)?;
    let step = answer.step.expect("a step").encode_to_vec();
    Ok((step, answer.ignored_paths))
}

fn mask(paths: &[String]) -> Option<FieldMask> {
    let paths = paths.to_vec();
    Some(FieldMask { paths })
}

fn fields(message: &DynamicMessage) -> BTreeSet<String> {
    let descriptor = message.descriptor();
    let fields = descriptor.fields();
    fields.map(|field| field.name().to_owned()).collect()
}

impl Resource {
    fn paths(&self, rng: &mut Rng) -> Vec<String> {
        let fields: Vec<&String> = self.fields.iter().collect();
        let row: Vec<&String> = self.row.iter().collect();
        (0..=rng.below(4))
            .map(|_| {
                let field = *rng.pick(&fields);
                let path = match rng.below(4) {
                    0 => format!("translations.de.{}", rng.pick(&row)),
                    1 => format!("translations.`{}`", rng.pick(&["de", "pt-br", "x-a", "a"])),
                    _ => field.clone(),
                };
                match rng.below(4) {
                    0 => mutate_text(rng, &path, &WORDS),
                    _ => path,
                }
            })
            .collect()
    }

    fn meaning(&self, path: &str) -> PathMeaning {
        if self.written.contains(&path) {
            return PathMeaning::Written(path.to_owned());
        }
        if path == "guid" || path == "etag" {
            return PathMeaning::Silent;
        }
        if self.fields.contains(path) {
            return PathMeaning::Listed(path.to_owned());
        }
        let Some(below) = path.strip_prefix("translations.") else {
            return PathMeaning::Nothing;
        };
        let (key, field) = match below.strip_prefix('`') {
            Some(quoted) => match quoted.split_once('`') {
                Some((key, "")) => (key, None),
                Some((key, rest)) if rest.starts_with('.') => (key, Some(&rest[1..])),
                _ => return PathMeaning::Nothing,
            },
            None => match below.split_once('.') {
                Some((key, field)) => (key, Some(field)),
                None => (below, None),
            },
        };
        let known = field.is_none_or(|field| self.row.contains(field));
        if Language::parse(key).is_some() && known {
            PathMeaning::Written("translations".to_owned())
        } else {
            PathMeaning::Nothing
        }
    }

    fn refuses_paths_that_name_nothing(&self, paths: &[String], status: &Status) {
        is_of_the_contract(status);
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        let details = status.get_error_details();
        let bad = details.bad_request().expect("a BadRequest");
        let refused = bad.field_violations.iter().map(|v| v.field.clone());
        let refused: BTreeSet<String> = refused.collect();
        for (index, path) in paths.iter().enumerate() {
            let nothing =
                self.meaning(path) == PathMeaning::Nothing && (paths.len() > 1 || path != "*");
            let place = format!("update_mask.paths[{index}]");
            assert_eq!(refused.contains(&place), nothing, "{path:?}: {status:?}");
        }
    }

    fn changes_named_fields_alone(
        &self,
        paths: &[String],
        updated: &DynamicMessage,
        ignored: &[String],
    ) {
        if paths == ["*"] {
            return;
        }
        let mut named = BTreeSet::new();
        let mut listed = BTreeSet::new();
        for path in paths {
            match self.meaning(path) {
                PathMeaning::Nothing => panic!("{path:?} is accepted"),
                PathMeaning::Written(field) => drop(named.insert(field)),
                PathMeaning::Listed(field) => drop(listed.insert(format!("{}.{field}", self.name))),
                PathMeaning::Silent => {}
            }
        }
        let ignored: BTreeSet<String> = ignored.iter().cloned().collect();
        assert!(listed.is_subset(&ignored), "{listed:?} of {ignored:?}");
        for path in ignored.difference(&listed) {
            let field = path.split('.').nth(1).expect("a field");
            assert!(named.contains(field), "{path} was neither sent nor named");
        }
        for field in &self.written {
            let follows = *field == "subtask_pid" && named.contains("subtask_id");
            if !named.contains(*field) && !follows {
                let stored = self.stored.get_field_by_name(field);
                assert_eq!(updated.get_field_by_name(field), stored, "{field}");
            }
        }
    }
}
