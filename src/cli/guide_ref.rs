//! Guides as users name them on the command line.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    config::TaskRef,
    domain::{history::RevisionName, ids::TaskId},
};

/// A guide as a user names it on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideRef {
    /// The guide may be deleted if a revision is named.
    pub task: TaskRef,
    /// The number or an alias of a revision; `None` for the current state.
    pub revision: Option<String>,
}

impl fmt::Display for GuideRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.task.fmt(f)?;
        match &self.revision {
            Some(revision) => write!(f, "@{revision}"),
            None => Ok(()),
        }
    }
}

impl FromStr for GuideRef {
    type Err = &'static str;

    /// Parses a guide, or a revision of it after an `@`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The name of a task may contain an @.
        let (task, revision) = match text.rsplit_once('@') {
            Some((task, revision)) if RevisionName::parse(revision).is_some() => {
                (task, Some(revision.to_owned()))
            }
            Some((task, _)) if TaskId::parse(task).is_some() => {
                return Err(
                    "a guid with the number or alias of a revision after the @, such as GUID@3",
                );
            }
            Some(_) | None => (text, None),
        };
        let task = task.parse()?;
        Ok(Self { task, revision })
    }
}

/// Parses a guide with a revision.
pub(super) fn revision_ref(text: &str) -> Result<GuideRef, &'static str> {
    let guide: GuideRef = text.parse()?;
    match guide.revision {
        Some(_) => Ok(guide),
        None => Err("a guide and its revision, such as GUID@3 or GUID@live"),
    }
}

/// A guide as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideArg {
    Stored(GuideRef),
    /// The document in this file; `-` is standard input.
    File(PathBuf),
}

impl FromStr for GuideArg {
    type Err = String;

    /// Parses a guid; else a file, if it exists or the text looks like a path; else the name of a
    /// task.
    fn from_str(text: &str) -> Result<Self, String> {
        const PATH_STARTS: [&str; 3] = ["/", "./", "../"];
        let path = Path::new(text);
        let is_json = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"));
        let is_path = text == "-" || is_json || PATH_STARTS.iter().any(|it| text.starts_with(it));
        match text.parse::<GuideRef>() {
            Ok(guide) if matches!(guide.task, TaskRef::Id(_)) => Ok(Self::Stored(guide)),
            _ if is_path || path.exists() => Ok(Self::File(path.to_owned())),
            Ok(name) => Ok(Self::Stored(name)),
            Err(expected) => Err(format!("the path of a file, {expected}")),
        }
    }
}
