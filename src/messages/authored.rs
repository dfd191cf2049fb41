//! Guides reduced to what their authors write.

use prost::Message;

use super::{
    fields::{FieldUse, ResourceFields, STEP, TASK},
    managed_documents::values_mut,
    wire,
};
use crate::proto::v1::{Step, StepType, Task, TaskDocument, TaskType};

/// The guide without fields that the system sets or that follow from other fields, so that its
/// import changes nothing. A managed task keeps its type, because `apply` warns about its document.
pub fn authored(guide: &TaskDocument) -> TaskDocument {
    let TaskDocument { task, steps } = guide;
    TaskDocument {
        task: task.as_ref().map(authored_task),
        steps: steps.iter().map(authored_step).collect(),
    }
}

fn authored_task(task: &Task) -> Task {
    let mut authored = authored_fields(&TASK, task);
    if authored.dependency_shorthand.is_some() {
        authored.dependencies = None;
    }
    authored.r#type = task.r#type.filter(|it| *it == i32::from(TaskType::Linked));
    // A written translation is locked by default.
    for translation in authored.translations.values_mut() {
        translation.locked = translation.locked.filter(|locked| !locked);
    }
    authored
}

fn authored_step(step: &Step) -> Step {
    let mut authored = authored_fields(&STEP, step);
    // It is the task of the document.
    authored.task.clear();
    for translation in authored.translations.values_mut() {
        translation.locked = translation.locked.filter(|locked| !locked);
    }
    if authored.dependency_shorthand.is_some() {
        authored.dependencies = None;
    }
    if authored.r#type() == StepType::Subtask {
        // The title is the name of the task that the step refers to.
        authored.title.clear();
    }
    for value in values_mut(&mut authored) {
        value.link.clear();
        if let Some(managed) = &mut value.task_json {
            **managed = self::authored(managed);
            if let Some(task) = &mut managed.task {
                // The name and product are those of the answer and the guide.
                task.name.clear();
                task.product_id = None;
                task.r#type = None;
            }
        }
    }
    authored
}

/// The message with its id and the fields that creates honor.
fn authored_fields<M: Message + Default>(resource: &ResourceFields, message: &M) -> M {
    let bytes = message.encode_to_vec();
    let fields = wire::fields(&bytes).unwrap_or_default().into_iter();
    let authored = fields.filter(|field| {
        let found = resource.get(field.number);
        found.is_some_and(|(name, field_use)| match field_use {
            FieldUse::Honored | FieldUse::Creation => true,
            FieldUse::Identity => name == "guid",
            FieldUse::System => false,
        })
    });
    let authored: Vec<&[u8]> = authored.map(|field| field.whole).collect();
    // A message that was just encoded can be decoded.
    M::decode(&authored.concat()[..]).unwrap_or_default()
}
