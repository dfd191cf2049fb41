//! The file of a guide: the positions of its fields, and its text with changed values.

mod edits;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use jsonc_parser::{ParseOptions, ast, common::Ranged, cst::CstRootNode};

use super::{
    CliError,
    document::{self, BYTE_ORDER_MARK},
    guides,
    out::sanitize,
    place::{DOCUMENT, GuidePlace},
};
use crate::{
    config::DEFAULT_MAX_MESSAGE_BYTES,
    files,
    messages::authored::authored,
    proto::v1::{Task, TaskDocument},
};

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
            edits::edit_guide(&root.object_value()?, &self.document, planned, target)?;
            let mark = self.text.strip_suffix(text)?;
            Some(format!("{mark}{root}"))
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
    find_files(directory, &mut files)?;
    files.sort();
    Ok(files)
}

fn find_files(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let failed = |error| CliError::Failed(format!("{}: {error}", directory.display()));
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            find_files(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    Ok(())
}

/// Files by the ids of the tasks that they describe.
#[derive(Default)]
pub(super) struct FilesByTask(BTreeMap<(&'static str, String), PathBuf>);

impl FilesByTask {
    /// Adds a file. Fails if another one describes the same task.
    pub fn add(&mut self, file: &GuideFile) -> Result<(), String> {
        let external_id = file.document.task.as_ref().map_or("", Task::external_id);
        let ids = [
            ("guid", guides::guid(&file.document).to_ascii_lowercase()),
            ("external_id", external_id.to_owned()),
        ];
        for (field, id) in ids.into_iter().filter(|(_, id)| !id.is_empty()) {
            let shown = sanitize(&id);
            let other = self.0.insert((field, id), file.path.clone());
            if let Some(other) = other.filter(|other| *other != file.path) {
                return Err(format!(
                    "{} and {} both describe task {shown}: remove one of them, or its task.{field}",
                    other.display(),
                    file.path.display()
                ));
            }
        }
        Ok(())
    }
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
