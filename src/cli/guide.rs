//! The guide that a command is about: a stored task, or a document in a file.

use crate::config::GuideArg;

/// A guide as the command line has it.
pub(super) fn name(guide: &GuideArg) -> String {
    match guide {
        GuideArg::Task(task) => task.to_string(),
        GuideArg::File(file) => file.display().to_string(),
    }
}
