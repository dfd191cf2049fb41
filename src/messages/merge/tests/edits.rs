//! Guides, and random edits of them.

use proptest::{collection::vec, option, prelude::*};

use crate::proto::v1::{
    FeedbackConfig, FeedbackValue, Step, StepTranslation, Task, TaskDocument, TaskTranslation,
};

/// A change of a guide. Steps, values and managed tasks that do not exist leave it as it is.
#[derive(Clone, Debug)]
pub enum Edit {
    OfTask(usize, Option<u8>),
    OfStep(usize, usize, Option<u8>),
    Added(usize, usize),
    Deleted(usize),
    Moved(usize, usize),
    ValueRemoved(usize, usize),
    Managed(usize, usize, Option<u8>),
    InManaged(usize, usize, Box<Edit>),
}

pub fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let (id, name, value) = (0..8_usize, 0..3_usize, option::of(0..3_u8));
    let plain = prop_oneof![
        (name.clone(), value.clone()).prop_map(|(name, value)| Edit::OfTask(name, value)),
        (id.clone(), name.clone(), value.clone())
            .prop_map(|(id, name, value)| Edit::OfStep(id, name, value)),
        (id.clone(), id.clone()).prop_map(|(id, place)| Edit::Added(id, place)),
        id.clone().prop_map(Edit::Deleted),
        (id.clone(), id.clone()).prop_map(|(id, place)| Edit::Moved(id, place)),
        (id.clone(), name.clone()).prop_map(|(id, key)| Edit::ValueRemoved(id, key)),
        (id.clone(), name.clone(), value)
            .prop_map(|(id, key, value)| Edit::Managed(id, key, value)),
    ];
    let edit = plain.prop_recursive(1, 2, 1, move |inner| {
        (id.clone(), name.clone(), inner)
            .prop_map(|(id, key, inner)| Edit::InManaged(id, key, Box::new(inner)))
    });
    vec(edit, 0..5)
}

pub fn guide() -> impl Strategy<Value = TaskDocument> {
    vec(edits(), 3).prop_map(|edits| {
        let first = (0..5).map(|id| Edit::Added(id, id));
        let managed = [0, 1].map(|id| Edit::Managed(id, 0, Some(1)));
        let all = first.chain(managed).chain(edits.into_iter().flatten());
        with_edits(&empty("task"), &all.collect::<Vec<Edit>>())
    })
}

pub fn empty(guid: &str) -> TaskDocument {
    TaskDocument {
        task: Some(Task {
            guid: guid.to_owned(),
            ..Task::default()
        }),
        steps: Vec::new(),
    }
}

fn guid_of(guide: &TaskDocument) -> &str {
    guide.task.as_ref().map_or("", |task| &task.guid)
}

/// A step with three values, which manage no tasks.
pub fn empty_step(guid: String) -> Step {
    let value = |key: i32| FeedbackValue {
        key: key.to_string(),
        ..FeedbackValue::default()
    };
    let config = FeedbackConfig {
        values: (0..3).map(value).collect(),
        ..FeedbackConfig::default()
    };
    Step {
        guid,
        feedback_config: vec![config],
        ..Step::default()
    }
}

pub fn with_edits(guide: &TaskDocument, edits: &[Edit]) -> TaskDocument {
    let mut guide = guide.clone();
    edits.iter().for_each(|edit| apply(&mut guide, edit));
    guide
}

fn apply(guide: &mut TaskDocument, edit: &Edit) {
    let own = guid_of(guide).to_owned();
    let steps = &mut guide.steps;
    let found = |steps: &[Step], id: &usize| {
        let guid = format!("{own}/{id}");
        steps.iter().position(|step| step.guid == guid)
    };
    match edit {
        Edit::OfTask(name, value) => set_task(guide, *name, *value),
        Edit::OfStep(id, name, value) => {
            if let Some(index) = found(steps, id) {
                set_step(&mut steps[index], *name, *value);
            }
        }
        Edit::Added(id, place) if found(steps, id).is_none() => {
            let step = empty_step(format!("{own}/{id}"));
            steps.insert((*place).min(steps.len()), step);
        }
        Edit::Added(..) => {}
        Edit::Deleted(id) => {
            let index = found(steps, id);
            index.map(|index| steps.remove(index));
        }
        Edit::Moved(id, place) => {
            if let Some(index) = found(steps, id) {
                let step = steps.remove(index);
                steps.insert((*place).min(steps.len()), step);
            }
        }
        Edit::ValueRemoved(id, key) => {
            if let Some(index) = found(steps, id) {
                let key = key.to_string();
                let values = &mut steps[index].feedback_config[0].values;
                values.retain(|value| value.key != key);
            }
        }
        Edit::Managed(id, key, value) => {
            if let Some(index) = found(steps, id) {
                let managed = value.map(|value| {
                    let mut task = empty(&format!("{own}/{id}/{key}"));
                    set_task(&mut task, 0, Some(value));
                    Box::new(task)
                });
                if let Some(found) = value_of(&mut steps[index], *key) {
                    found.task_json = managed;
                }
            }
        }
        Edit::InManaged(id, key, edit) => {
            if let Some(index) = found(steps, id) {
                let value = value_of(&mut steps[index], *key);
                let task = value.and_then(|value| value.task_json.as_mut());
                task.into_iter().for_each(|task| apply(task, edit));
            }
        }
    }
}

fn value_of(step: &mut Step, key: usize) -> Option<&mut FeedbackValue> {
    let mut values = step.feedback_config[0].values.iter_mut();
    values.find(|value| value.key == key.to_string())
}

fn set_task(guide: &mut TaskDocument, name: usize, value: Option<u8>) {
    let task = guide.task.as_mut().expect("a task");
    let text = value.map(|value| value.to_string());
    match name {
        0 => task.name = text.unwrap_or_default(),
        1 => task.external_id = text,
        _ => {
            let translation = TaskTranslation {
                name: text,
                locked: None,
            };
            let translations = value.map(|_| ("de".to_owned(), translation));
            task.translations = translations.into_iter().collect();
        }
    }
}

pub fn set_step(step: &mut Step, name: usize, value: Option<u8>) {
    let text = value.map(|value| value.to_string());
    match name {
        0 => step.title = text.unwrap_or_default(),
        1 => step.tags = text.into_iter().collect(),
        _ => {
            let translation = StepTranslation {
                title: text,
                ..StepTranslation::default()
            };
            let translations = value.map(|_| ("de".to_owned(), translation));
            step.translations = translations.into_iter().collect();
        }
    }
}
