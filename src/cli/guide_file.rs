//! The file of a guide: the positions of its fields, and its text with changed values.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use jsonc_parser::{
    ParseOptions, ast,
    common::Ranged,
    cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode},
};

use super::{
    CliError,
    document::{self, BYTE_ORDER_MARK},
    pairing::pairs,
    place::{DOCUMENT, GuidePlace},
};
use crate::{
    config::DEFAULT_MAX_MESSAGE_BYTES,
    files,
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

/// The maximum size of a document, which is the default limit of servers.
const MAX_DOCUMENT_BYTES: u64 = DEFAULT_MAX_MESSAGE_BYTES as u64;

#[derive(Clone, Debug)]
pub(super) struct GuideFile {
    pub path: PathBuf,
    pub text: String,
    pub document: TaskDocument,
}

impl GuideFile {
    pub fn read(path: &Path) -> Result<Self, CliError> {
        Self::read_up_to(path, MAX_DOCUMENT_BYTES)
            .map_err(|reason| CliError::Failed(format!("{}: {reason}", path.display())))
    }

    /// Reads a file of at most this size. The error does not name the file.
    pub fn read_up_to(path: &Path, max_bytes: u64) -> Result<Self, String> {
        let text = read(path, max_bytes).map_err(|error| match error.kind() {
            io::ErrorKind::IsADirectory => {
                "it is a directory: this command takes files, such as DIR/*.json".to_owned()
            }
            io::ErrorKind::NotFound => "there is no such file: this command takes documents that \
                `expertise export` wrote"
                .to_owned(),
            _ => format!("it cannot be read: {error}"),
        })?;
        if text.len() as u64 > max_bytes {
            return Err(format!(
                "it is larger than {max_bytes} bytes: split the guide, or raise --max-file-bytes \
                 and the server's EXPERTISE_MAX_MESSAGE_BYTES"
            ));
        }
        let text = String::from_utf8(text).map_err(|_| "it is not a guide: it is not UTF-8")?;
        Self::new(path, text)
    }

    pub fn new(path: &Path, text: String) -> Result<Self, String> {
        Ok(Self {
            path: path.to_owned(),
            document: document::parse(&text)?,
            text,
        })
    }

    pub fn lines(&self) -> FieldLines<'_> {
        FieldLines::new(&self.text)
    }

    /// The line of a field and its step, such as `line 12, step 4 "Descale"`; empty if neither is
    /// known.
    pub fn describe_place(&self, path: &str) -> String {
        let line = self.lines().line(path).map(|line| format!("line {line}"));
        let below = path.trim_start_matches(DOCUMENT).trim_start_matches('.');
        let path = format!("{DOCUMENT}.{below}");
        let place = GuidePlace::find(&self.document, &path, ("", ""));
        let label = place.and_then(|place| place.step_label());
        let parts: Vec<String> = line.into_iter().chain(label).collect();
        parts.join(", ")
    }

    /// The text with the changes from `planned`, the content of the file, to `target`. Other
    /// values, the order of keys, omitted fields and the formatting are kept. If that is not
    /// possible, the text is written like an export.
    pub fn updated(&self, planned: &TaskDocument, target: &TaskDocument) -> String {
        let text = self.text.trim_start_matches(BYTE_ORDER_MARK);
        let edited = CstRootNode::parse(text, &ParseOptions::default());
        let edited = edited.ok().and_then(|root| {
            edit_guide(&root.object_value()?, &self.document, planned, target)?;
            Some(root.to_string())
        });
        let edited = edited.filter(|text| document::parse(text).is_ok());
        edited.unwrap_or_else(|| document::text(&authored(target)))
    }
}

/// Reads at most `max_bytes` + 1 bytes, so that the caller can detect a file that is too large.
fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(files::open(path)?),
    };
    let mut text = Vec::new();
    input.take(max_bytes + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// The file, or the `.json` files in a directory and its subdirectories, sorted. Hidden files are
/// skipped, and links to directories are not followed.
pub(super) fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !directory.is_dir() {
        return Ok(vec![directory.to_owned()]);
    }
    let mut files = Vec::new();
    find_files(directory, &mut files)
        .map_err(|error| CliError::Failed(format!("{}: {error}", directory.display())))?;
    files.sort();
    Ok(files)
}

fn find_files(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            find_files(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    Ok(())
}

pub(super) struct FieldLines<'a> {
    text: &'a str,
    root: Option<ast::Value<'a>>,
}

impl<'a> FieldLines<'a> {
    pub fn new(text: &'a str) -> Self {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        Self {
            text,
            root: document::ast(text),
        }
    }

    /// The line of the deepest part of a path that exists in the text, counted from 1. `None` if no
    /// part exists.
    pub fn line(&self, path: &str) -> Option<usize> {
        let path = path.trim_start_matches(DOCUMENT);
        let mut value = self.root.as_ref()?;
        let mut found = None;
        for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
            let part = part.trim_end_matches(']').trim_matches('"');
            let below = match value {
                ast::Value::Object(object) => member(object, part),
                ast::Value::Array(array) => {
                    let index = part.parse::<usize>().ok();
                    index.and_then(|index| array.elements.get(index))
                }
                _ => None,
            };
            let Some(below) = below else { break };
            value = below;
            found = Some(below.start());
        }
        Some(document::line_at(self.text, found?))
    }

    /// A path after its line, if that is known, such as `line 12: task.name`.
    pub fn with_line(&self, path: &str) -> String {
        match self.line(path) {
            Some(line) => format!("line {line}: {path}"),
            None => path.to_owned(),
        }
    }
}

fn member<'o, 'a>(object: &'o ast::Object<'a>, name: &str) -> Option<&'o ast::Value<'a>> {
    let mut properties = object.properties.iter();
    let found = properties.find(|it| is_field(it.name.as_str(), name))?;
    Some(&found.value)
}

/// Whether a key is the name of a field, in either spelling.
fn is_field(key: &str, name: &str) -> bool {
    key == name || key.contains(char::is_uppercase) && key.to_lowercase() == name.replace('_', "")
}

/// Edits the object of a guide. `said` is the document of the file. Returns `None` if a step that
/// differs is not in the file.
fn edit_guide(
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
        let mut documents = Vec::new();
        for (key, managed) in &step.managed {
            if let ManagedDifference::Changed(task) = managed {
                documents.push((key, task));
            }
        }
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
