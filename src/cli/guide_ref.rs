//! Guides as the user of a command names them.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    config::TaskRef,
    domain::{history::RevisionName, ids::TaskId},
};

/// A guide as the user of a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideRef {
    /// As it is now.
    Now(TaskRef),
    /// As a revision keeps it.
    Revision(RevisionRef),
}

/// A revision of a guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRef {
    /// The guide, which may be deleted.
    pub task: TaskRef,
    /// Its number or an alias.
    pub revision: String,
}

impl GuideRef {
    /// Whether the guide is named by its id.
    pub fn has_id(&self) -> bool {
        match self {
            Self::Now(task) => matches!(task, TaskRef::Id(_)),
            Self::Revision(revision) => matches!(revision.task, TaskRef::Id(_)),
        }
    }
}

impl fmt::Display for GuideRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(task) => task.fmt(f),
            Self::Revision(RevisionRef { task, revision }) => write!(f, "{task}@{revision}"),
        }
    }
}

impl FromStr for GuideRef {
    type Err = &'static str;

    /// Reads a guide, or a revision of it after an `@`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.rsplit_once('@') {
            Some((task, revision)) if RevisionName::parse(revision).is_some() => {
                Ok(Self::Revision(RevisionRef {
                    task: task.parse()?,
                    revision: revision.to_owned(),
                }))
            }
            Some((task, _)) if TaskId::parse(task).is_some() => {
                Err("a guid with the number or alias of a revision after the @, such as GUID@3")
            }
            // The name of a task may have an @.
            Some(_) | None => text.parse().map(Self::Now),
        }
    }
}

impl FromStr for RevisionRef {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse()? {
            GuideRef::Revision(revision) => Ok(revision),
            GuideRef::Now(_) => Err("a guide and its revision, such as GUID@3 or GUID@live"),
        }
    }
}

/// A guide of a command line: a stored one, or a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideArg {
    /// A stored one.
    Stored(GuideRef),
    /// The document in this file; `-` is standard input.
    File(PathBuf),
}

impl FromStr for GuideArg {
    type Err = String;

    /// Reads a task by its guid; else a file, if there is one or the text has the form of a path;
    /// else a task by its name.
    fn from_str(text: &str) -> Result<Self, String> {
        const PATH_STARTS: [&str; 3] = ["/", "./", "../"];
        let path = Path::new(text);
        let is_json = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"));
        let is_path = text == "-" || is_json || PATH_STARTS.iter().any(|it| text.starts_with(it));
        match text.parse::<GuideRef>() {
            Ok(guide) if guide.has_id() => Ok(Self::Stored(guide)),
            _ if is_path || path.exists() => Ok(Self::File(path.to_owned())),
            Ok(name) => Ok(Self::Stored(name)),
            Err(expected) => Err(format!("the path of a file, {expected}")),
        }
    }
}
