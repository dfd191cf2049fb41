//! What became of each file.

use std::{io, path::Path};

use serde::{Serialize, Serializer, ser::SerializeMap};
use uuid::Uuid;

use crate::{
    cli::{CliError, out},
    client::Refusal,
    proto::v1::Task,
};

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is a new task.
    Created,
    /// Its task is as it says.
    Updated,
}

/// A document that was taken.
pub struct Outcome {
    pub verdict: Verdict,
    pub task: Task,
    /// What of it was not honored.
    pub ignored_paths: Vec<String>,
}

/// Why a document was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Refused(Refusal),
    #[error("not tried, as {0}")]
    NotTried(&'static str),
}

/// What became of a file.
pub struct Report {
    file: String,
    outcome: Result<Outcome, Failure>,
    dry_run: bool,
}

impl Report {
    pub fn new(file: &Path, outcome: Result<Outcome, Failure>, dry_run: bool) -> Self {
        Self {
            dry_run,
            file: out::plain(&file.display().to_string()),
            outcome,
        }
    }

    pub fn outcome(&self) -> Result<Verdict, &Failure> {
        match &self.outcome {
            Ok(outcome) => Ok(outcome.verdict),
            Err(failure) => Err(failure),
        }
    }

    /// Says it for people: what was done on standard output, what was not on
    /// standard error.
    pub fn say(&self, run: Uuid) -> Result<(), CliError> {
        match &self.outcome {
            Ok(outcome) => out::write(&self.success(outcome)),
            Err(failure) => {
                out::complain(&format!("failed {}: {failure}", self.file));
                if let Failure::Refused(refusal) = failure
                    && refusal.undecided
                {
                    out::complain(&format!(
                        "  it may be imported all the same: to be sure that it is not imported \
                         twice, repeat with --request-id {run}"
                    ));
                }
                Ok(())
            }
        }
    }

    fn success(&self, outcome: &Outcome) -> String {
        let Outcome {
            verdict,
            task,
            ignored_paths,
        } = outcome;
        let file = &self.file;
        let done = match (verdict, self.dry_run) {
            (Verdict::Created, false) => format!("created {} from {file}", task.guid),
            (Verdict::Updated, false) => format!("updated {} from {file}", task.guid),
            (Verdict::Created, true) => format!("would create a task from {file}"),
            (Verdict::Updated, true) => format!("would update {} from {file}", task.guid),
        };
        let (name, steps) = (out::plain(&task.name), out::steps(task.steps.len()));
        let mut text = format!("{done}: {name}, {steps}\n");
        for path in ignored_paths {
            text.push_str(&format!("  left alone: {}\n", out::plain(path)));
        }
        text
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("file", &self.file)?;
        if self.dry_run {
            object.serialize_entry("dry_run", &true)?;
        }
        match &self.outcome {
            Ok(Outcome {
                verdict,
                task,
                ignored_paths,
            }) => {
                let outcome = match verdict {
                    Verdict::Created => "created",
                    Verdict::Updated => "updated",
                };
                object.serialize_entry("outcome", outcome)?;
                // What a dry run would make has no name yet.
                if !self.dry_run || *verdict == Verdict::Updated {
                    object.serialize_entry("guid", &task.guid)?;
                }
                object.serialize_entry("name", &task.name)?;
                object.serialize_entry("steps", &task.steps.len())?;
                object.serialize_entry("etag", &task.etag)?;
                object.serialize_entry("ignored_paths", ignored_paths)?;
            }
            Err(failure) => {
                object.serialize_entry("outcome", "failed")?;
                match failure {
                    Failure::Refused(refusal) => object.serialize_entry("error", refusal)?,
                    Failure::Unreadable(_) | Failure::Malformed(_) | Failure::NotTried(_) => {
                        let message = serde_json::json!({"message": failure.to_string()});
                        object.serialize_entry("error", &message)?;
                    }
                }
            }
        }
        object.end()
    }
}
