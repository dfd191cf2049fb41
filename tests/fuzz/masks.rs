//! Update masks: a path that names nothing is refused where it stands, a field
//! that no path names stays as it was, and what is named and not honored is
//! listed.

use std::collections::BTreeSet;

use expertise::{domain::translation::Language, proto::v1::*};
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use prost_types::FieldMask;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    chance::Chance,
    laws::is_of_the_contract,
    messages::Messages,
    run::{Input, run},
    service::{Fixture, Service},
};

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
const OF_A_TASK: [&str; 5] = ["dependencies", "name", "published", "roles", "translations"];
const OF_A_STEP: [&str; 14] = [
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

/// What a path is, by the rules of the contract.
#[derive(Debug, PartialEq, Eq)]
enum Means {
    Nothing,
    Honored(String),
    Listed(String),
    Silent,
}

struct Resource {
    /// Its name in requests, and that of its message.
    name: &'static str,
    message: &'static str,
    fields: BTreeSet<String>,
    row: BTreeSet<String>,
    honored: Vec<&'static str>,
    /// As it is stored.
    stored: DynamicMessage,
}

#[test]
fn masks() {
    let service = Service::new();
    let messages = Messages::new();
    let Fixture { task, step, .. } = service.fill();
    let resource = |name, message, row, honored: &[&'static str], stored: Vec<u8>| Resource {
        name,
        message,
        fields: fields(&messages.decode(message, &[])),
        row: fields(&messages.decode(row, &[])),
        honored: honored.to_vec(),
        stored: messages.decode(message, &stored),
    };
    let (of_task, of_step) = ("expertise.v1.Task", "expertise.v1.Step");
    let task_row = "expertise.v1.TaskTranslation";
    let step_row = "expertise.v1.StepTranslation";
    let resources = [
        resource("task", of_task, task_row, &OF_A_TASK, task.encode_to_vec()),
        resource("step", of_step, step_row, &OF_A_STEP, step.encode_to_vec()),
    ];
    let mut accepted = 0_u64;
    run("masks", 50, |chance| {
        let resource = chance.pick(&resources);
        let paths = resource.paths(chance);
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
                resource.changed_what_was_named(&paths, &updated, &ignored);
            }
            Err(status) => resource.refused_what_names_nothing(&paths, &status),
        }
    });
    assert!(accepted > 0, "nothing that was tried is accepted");
}

/// What an update comes to: the resource and the paths that it ignored.
type Updated = Result<(Vec<u8>, Vec<String>), Status>;

fn update_task(service: &Service, task: &Task, paths: &[String]) -> Updated {
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

fn update_step(service: &Service, step: &Step, paths: &[String]) -> Updated {
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
    fn paths(&self, chance: &mut Chance) -> Vec<String> {
        let fields: Vec<&String> = self.fields.iter().collect();
        let row: Vec<&String> = self.row.iter().collect();
        (0..=chance.below(4))
            .map(|_| {
                let field = *chance.pick(&fields);
                let path = match chance.below(4) {
                    0 => format!("translations.de.{}", chance.pick(&row)),
                    1 => format!(
                        "translations.`{}`",
                        chance.pick(&["de", "pt-br", "x-a", "a"])
                    ),
                    _ => field.clone(),
                };
                match chance.below(4) {
                    0 => chance.text(&path, &WORDS),
                    _ => path,
                }
            })
            .collect()
    }

    fn means(&self, path: &str) -> Means {
        if self.honored.contains(&path) {
            return Means::Honored(path.to_owned());
        }
        if path == "guid" || path == "etag" {
            return Means::Silent;
        }
        if self.fields.contains(path) {
            return Means::Listed(path.to_owned());
        }
        let Some(below) = path.strip_prefix("translations.") else {
            return Means::Nothing;
        };
        let (key, field) = match below.strip_prefix('`') {
            Some(quoted) => match quoted.split_once('`') {
                Some((key, "")) => (key, None),
                Some((key, rest)) if rest.starts_with('.') => (key, Some(&rest[1..])),
                _ => return Means::Nothing,
            },
            None => match below.split_once('.') {
                Some((key, field)) => (key, Some(field)),
                None => (below, None),
            },
        };
        let known = field.is_none_or(|field| self.row.contains(field));
        if Language::parse(key).is_some() && known {
            Means::Honored("translations".to_owned())
        } else {
            Means::Nothing
        }
    }

    fn refused_what_names_nothing(&self, paths: &[String], status: &Status) {
        is_of_the_contract(status);
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        let details = status.get_error_details();
        let bad = details.bad_request().expect("a BadRequest");
        let refused = bad.field_violations.iter().map(|v| v.field.clone());
        let refused: BTreeSet<String> = refused.collect();
        for (index, path) in paths.iter().enumerate() {
            let nothing = self.means(path) == Means::Nothing && (paths.len() > 1 || path != "*");
            let place = format!("update_mask.paths[{index}]");
            assert_eq!(refused.contains(&place), nothing, "{path:?}: {status:?}");
        }
    }

    fn changed_what_was_named(
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
            match self.means(path) {
                Means::Nothing => panic!("{path:?} is accepted"),
                Means::Honored(field) => drop(named.insert(field)),
                Means::Listed(field) => drop(listed.insert(format!("{}.{field}", self.name))),
                Means::Silent => {}
            }
        }
        let ignored: BTreeSet<String> = ignored.iter().cloned().collect();
        assert!(listed.is_subset(&ignored), "{listed:?} of {ignored:?}");
        for path in ignored.difference(&listed) {
            let field = path.split('.').nth(1).expect("a field");
            assert!(named.contains(field), "{path} was neither sent nor named");
        }
        for field in &self.honored {
            let follows = *field == "subtask_pid" && named.contains("subtask_id");
            if !named.contains(*field) && !follows {
                let stored = self.stored.get_field_by_name(field);
                assert_eq!(updated.get_field_by_name(field), stored, "{field}");
            }
        }
    }
}
