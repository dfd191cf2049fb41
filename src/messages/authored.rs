//! Guides reduced to what their authors write.

use prost::Message;
use prost_reflect::DynamicMessage;

use super::{
    decode::{step::STEP_FIELDS, task::TASK_FIELDS},
    message_json,
};
use crate::proto::v1::{Step, StepType, Task, TaskDocument, TaskType};

/// Fields of a task that only its creation honors, and its id.
const TASK_CREATION_FIELDS: &[&str] = &["dependency_shorthand", "guid", "product_id"];
/// Fields of a step that only its creation honors, and its id.
const STEP_CREATION_FIELDS: &[&str] = &["dependency_shorthand", "guid", "product_id", "type"];

/// The guide without what the system sets, and without what follows from other fields: its import
/// changes nothing. A managed task keeps its type, as `apply` warns of its document. `None` if the
/// descriptors of the contract are unusable.
pub fn authored(guide: &TaskDocument) -> Option<TaskDocument> {
    let TaskDocument { task, steps } = guide;
    let steps = steps.iter().map(authored_step);
    Some(TaskDocument {
        task: match task {
            Some(task) => Some(authored_task(task)?),
            None => None,
        },
        steps: steps.collect::<Option<_>>()?,
    })
}

fn authored_task(task: &Task) -> Option<Task> {
    let fields = [TASK_FIELDS.honored, TASK_CREATION_FIELDS].concat();
    let mut authored: Task = with_fields("Task", task, &fields)?;
    if authored.dependency_shorthand.is_some() {
        authored.dependencies = None;
    }
    authored.r#type = task.r#type.filter(|it| *it == i32::from(TaskType::Linked));
    Some(authored)
}

fn authored_step(step: &Step) -> Option<Step> {
    let fields = [STEP_FIELDS.honored, STEP_CREATION_FIELDS].concat();
    let mut authored: Step = with_fields("Step", step, &fields)?;
    if authored.dependency_shorthand.is_some() {
        authored.dependencies = None;
    }
    if authored.r#type() == StepType::Subtask {
        // It is the name of the task that the step refers to.
        authored.title.clear();
    }
    let configs = authored.feedback_config.iter_mut();
    for value in configs.flat_map(|config| &mut config.values) {
        value.link.clear();
        if let Some(managed) = &mut value.task_json {
            **managed = self::authored(managed)?;
            if let Some(task) = &mut managed.task {
                // They are those of the answer and of the guide.
                task.name.clear();
                task.product_id = None;
                task.r#type = None;
            }
        }
    }
    Some(authored)
}

/// The message with these fields alone.
fn with_fields<M: Message + Default>(name: &str, message: &M, fields: &[&str]) -> Option<M> {
    let descriptor = message_json::descriptor(name)?;
    let mut dynamic = DynamicMessage::new(descriptor.clone());
    dynamic.transcode_from(message).ok()?;
    for field in descriptor.fields() {
        if !fields.contains(&field.name()) {
            dynamic.clear_field(&field);
        }
    }
    dynamic.transcode_to().ok()
}
