//! Edits of a file's text, which keep the order of keys, omitted fields and the formatting.

use std::collections::{BTreeMap, BTreeSet};

use jsonc_parser::{
    ast,
    cst::{CstInputValue, CstObject, CstObjectProp},
};

use super::{is_field, member};
use crate::{
    cli::{document, pairing::pairs},
    messages::{
        authored::authored,
        compare::{FieldPath, ManagedDifference, compare_whole},
        fields::{DEPENDENCIES, SHORTHAND, TRANSLATIONS},
        managed_documents::managed_document,
        update::UNMANAGED_ONLY,
    },
    proto::v1::{Step, TaskDocument},
};

/// The field with the question of an observation.
const QUESTION: &str = "feedback_config";

/// Edits the object of a guide. `said` is the document of the file. Returns `None` if a step that
/// differs is not in the file.
pub(super) fn edit_guide(
    guide: &CstObject,
    said: &TaskDocument,
    planned: &TaskDocument,
    target: &TaskDocument,
) -> Option<()> {
    let mut difference = compare_whole(planned, target);
    let written = authored(target);
    let is_managed = target
        .task
        .as_ref()
        .is_some_and(|it| !it.parent_guid.is_empty());
    if is_managed {
        // The file may leave out what follows from the answer.
        let task = property(guide, "task").and_then(|it| it.object_value());
        let has = |name| {
            task.as_ref()
                .is_some_and(|task| property(task, name).is_some())
        };
        let fields = &mut difference.fields;
        fields.retain(|it| {
            it.language.is_some() || !UNMANAGED_ONLY.contains(&it.name) || has(it.name)
        });
    }
    if !difference.fields.is_empty() {
        let text = document::message_text("Task", written.task.as_ref()?);
        let task = guide.object_value_or_set("task");
        set_fields(
            &task,
            &difference.fields,
            document::ast(&text)?.as_object()?,
        );
    }
    if difference.steps.is_empty() {
        return Some(());
    }
    let steps = guide.array_value_or_set("steps");
    let mut listed: BTreeMap<&str, (CstObject, &Step)> = BTreeMap::new();
    for ((said, planned), element) in pairs(said, planned).zip(steps.elements()) {
        listed.insert(planned?.guid.as_str(), (element.as_object()?, said));
    }
    // The texts of the steps that move.
    let mut moved: BTreeMap<&str, String> = BTreeMap::new();
    let mut is_placed = false;
    for step in &difference.steps {
        let Some((_, base)) = step.base else {
            is_placed = true;
            continue;
        };
        let Some((index, _)) = step.target else {
            listed.remove(base.guid.as_str())?.0.remove();
            continue;
        };
        let (element, said) = listed.get(base.guid.as_str())?;
        let text = document::message_text("Step", written.steps.get(index)?);
        let values = document::ast(&text)?;
        let values = values.as_object()?;
        let is_question = |field: &FieldPath| field.language.is_none() && field.name == QUESTION;
        let (question, others): (Vec<_>, Vec<_>) =
            step.fields.iter().cloned().partition(is_question);
        set_fields(element, &others, values);
        let changed = step
            .managed
            .iter()
            .filter_map(|(key, managed)| match managed {
                ManagedDifference::Changed(task) => Some((key, task)),
                ManagedDifference::Added(..) | ManagedDifference::Removed(..) => None,
            });
        let mut documents: Vec<_> = changed.collect();
        let has_same_answers = documents.len() == step.managed.len()
            && (question.is_empty() || set_answers(element, values).is_some());
        if !has_same_answers {
            // With the documents of all answers.
            set(element, QUESTION, values);
            documents.clear();
        }
        for (key, task) in documents {
            let answer = answer(element, key)?;
            let value = property(&answer, "task_json").and_then(|it| it.object_value());
            let value = value.unwrap_or_else(|| answer.object_value_or_set("task_json"));
            let said = managed_document(said, key).cloned().unwrap_or_default();
            edit_guide(&value, &said, task.base, task.target)?;
        }
        if step.moved {
            is_placed = true;
            let (element, _) = listed.remove(base.guid.as_str())?;
            moved.insert(&base.guid, element.to_string());
            element.remove();
        }
    }
    if !is_placed {
        return Some(());
    }
    let known: BTreeSet<&str> = planned.steps.iter().map(|it| it.guid.as_str()).collect();
    let mut index = 0;
    for (step, written) in target.steps.iter().zip(&written.steps) {
        let guid = step.guid.as_str();
        if !listed.contains_key(guid) {
            let text = match moved.remove(guid) {
                Some(text) => text,
                // The file omits a step that leads to a managed task.
                None if known.contains(guid) => continue,
                None => document::message_text("Step", written),
            };
            steps.insert(index, input(&document::ast(&text)?));
        }
        index += 1;
    }
    Some(())
}

fn set_fields(object: &CstObject, fields: &[FieldPath], target: &ast::Object<'_>) {
    for field in fields {
        let Some(language) = &field.language else {
            match field.name {
                DEPENDENCIES | SHORTHAND => {
                    set(object, DEPENDENCIES, target);
                    set(object, SHORTHAND, target);
                }
                name => set(object, name, target),
            }
            continue;
        };
        let translations = object.object_value_or_set(TRANSLATIONS);
        let translated = target.get_object(TRANSLATIONS);
        match translated.and_then(|it| it.get_object(language)) {
            Some(texts) => match translations.object_value(language) {
                Some(own) => set(&own, field.name, texts),
                // The file may leave out an automatic translation, whose other texts stay.
                None => drop(translations.append(language, object_input(texts))),
            },
            None => {
                if let Some(gone) = translations.get(language) {
                    gone.remove();
                }
            }
        }
    }
}

/// Sets a field of an object to its value in another object.
fn set(object: &CstObject, name: &str, target: &ast::Object<'_>) {
    let value = member(target, name).map(input);
    match (property(object, name), value) {
        (Some(property), Some(value)) => property.set_value(value),
        (Some(property), None) => property.remove(),
        (None, Some(value)) => drop(object.append(name, value)),
        (None, None) => {}
    }
}

fn property(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let mut properties = object.properties().into_iter();
    properties.find(|it| it.decoded_name().is_some_and(|key| is_field(&key, name)))
}

/// Sets the name of a question and the texts of its answers. Returns `None` if the target has other
/// answers, or has them in another order.
fn set_answers(step: &CstObject, target: &ast::Object<'_>) -> Option<()> {
    let config = question(step)?;
    let target = member(target, QUESTION)?.as_array()?;
    let target = target.elements.first()?.as_object()?;
    let targets = member(target, "values")?.as_array()?.elements.iter();
    let targets: Vec<_> = targets.map(|it| it.as_object()).collect::<Option<_>>()?;
    let (answers, names) = (answers(&config)?, ["name", "type", "linked"]);
    let keys = targets
        .iter()
        .map(|it| it.get_string("key").map(|key| &*key.value));
    let own: Vec<Option<String>> = answers.iter().map(key).collect();
    if !own.iter().map(Option::as_deref).eq(keys) {
        return None;
    }
    names.iter().for_each(|name| set(&config, name, target));
    for (answer, target) in answers.iter().zip(targets) {
        set(answer, "value", target);
    }
    Some(())
}

fn question(step: &CstObject) -> Option<CstObject> {
    let config = property(step, QUESTION)?.array_value()?;
    config.elements().first()?.as_object()
}

fn answers(question: &CstObject) -> Option<Vec<CstObject>> {
    let values = property(question, "values")?.array_value()?.elements();
    values.iter().map(|it| it.as_object()).collect()
}

fn key(answer: &CstObject) -> Option<String> {
    let text = answer.get("key")?.value()?.as_string_lit()?;
    text.decoded_value().ok()
}

/// The answer of an observation with this key.
fn answer(step: &CstObject, name: &str) -> Option<CstObject> {
    let mut answers = answers(&question(step)?)?.into_iter();
    answers.find(|answer| key(answer).as_deref() == Some(name))
}

fn input(value: &ast::Value<'_>) -> CstInputValue {
    match value {
        ast::Value::NullKeyword(_) => CstInputValue::Null,
        ast::Value::BooleanLit(truth) => CstInputValue::Bool(truth.value),
        ast::Value::NumberLit(number) => CstInputValue::Number(number.value.to_owned()),
        ast::Value::StringLit(text) => CstInputValue::String(text.value.to_string()),
        ast::Value::Array(array) => {
            CstInputValue::Array(array.elements.iter().map(input).collect())
        }
        ast::Value::Object(object) => object_input(object),
    }
}

fn object_input(object: &ast::Object<'_>) -> CstInputValue {
    let properties = object.properties.iter();
    let members = properties.map(|it| (it.name.as_str().to_owned(), input(&it.value)));
    CstInputValue::Object(members.collect())
}
