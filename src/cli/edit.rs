//! `expertise edit`.

mod file;
mod outdated;

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
};

use clap::Args;
use serde_json::json;
use tokio::signal::{
    self,
    unix::{SignalKind, signal},
};

use self::{
    file::{EditedFile, Refusal, without_comments},
    outdated::outdated_translations,
};
use super::{
    CliError, Format,
    apply::ids::TaskIds,
    changes, confirm, document,
    findings::Findings,
    guide_file::GuideFile,
    guides::{self, StoredGuide},
    imported::{ImportedGuide, print_ignored},
    merge,
    out::{self, print_error, print_message, print_note, sanitize, step_count},
    pairing::{Locking, lock_changed, refuse_fixed_fields},
};
use crate::{
    client::Client,
    config::{TaskRef, value},
    messages::authored::authored,
    proto::v1::TaskDocument,
    terminal::shell_word,
};

/// The editor if neither a flag nor the environment names one.
const DEFAULT_EDITOR: &str = "vi";

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct EditArgs {
    /// The guid or unique name of a task
    pub task: TaskRef,
    /// The command of the editor, which receives the path of the file [default: $VISUAL, else $EDITOR, else vi]
    #[arg(long, value_name = "COMMAND", value_parser = value::text)]
    pub editor: Option<String>,
    /// Do not lock translations that the edit changes
    #[arg(long)]
    pub keep_unlocked: bool,
}

impl EditArgs {
    /// The command that edits a file.
    pub fn editor(&self) -> String {
        let named = ["VISUAL", "EDITOR"]
            .into_iter()
            .filter_map(|name| env::var(name).ok());
        let mut commands = self.editor.clone().into_iter().chain(named);
        commands
            .find(|command| !command.trim().is_empty())
            .unwrap_or_else(|| DEFAULT_EDITOR.to_owned())
    }
}

/// How often a text may be refused without a terminal. A script instead of an editor could loop
/// forever.
const MAX_UNATTENDED_REFUSALS: u32 = 5;

const ALL_IGNORED: &str = "nothing was changed: all edited fields are ignored";

/// How often concurrent changes of others are merged.
const MAX_MERGES: u32 = 5;

/// Edits a guide as a document in an editor. A refused text returns to the editor with its errors.
/// An abandoned text stays in a file.
pub(super) async fn edit(
    client: &Client,
    args: &EditArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let guid = guides::find(client, &args.task).await?.to_string();
    let stored = guides::read(client, &guid).await?;
    let file = EditedFile::new(&document::text(&authored(&stored.document)))?;
    // Ctrl-C in an editor must not end this program, which must still print the path of the file.
    let _interrupts = signal(SignalKind::interrupt()).map_err(CliError::cannot_listen)?;
    let mut session = EditSession {
        client,
        args,
        format,
        opened: stored,
    };
    session.run(file).await
}

/// The outcome of an edited text.
enum Outcome {
    Imported(Box<ImportedGuide>),
    /// The text changes nothing in the guide.
    Unchanged,
    /// The text returns to the editor.
    Refused {
        reason: String,
        /// The text, merged with the changes of others.
        text: Option<String>,
    },
    /// The text is not imported, for this reason.
    GivenUp(&'static str),
}

impl Outcome {
    fn refused(reason: impl ToString) -> Self {
        Self::Refused {
            reason: reason.to_string(),
            text: None,
        }
    }
}

struct EditSession<'a> {
    client: &'a Client,
    args: &'a EditArgs,
    format: Format,
    /// What the text was made from.
    opened: StoredGuide,
}

impl EditSession<'_> {
    async fn run(&mut self, mut file: EditedFile) -> Result<ExitCode, CliError> {
        let mut refusals = 0;
        loop {
            let before = file.read_all()?;
            let editor = self.args.editor();
            if let Err(failure) = run_editor(&editor, &file.path) {
                let reason = format!("the editor `{}` failed ({failure})", sanitize(&editor));
                if file.is_changed(&file.read()?) {
                    return self.give_up(&file, &format!("{reason}, so nothing was imported"));
                }
                file.remove();
                return Err(CliError::Failed(format!("{reason}: nothing was changed")));
            }
            let saved = file.read_all()?;
            let text = without_comments(&saved);
            if !file.is_changed(&text) {
                return self.unchanged(file);
            }
            if let Some(reason) = file.reason_to_stop(&before, &saved) {
                return self.give_up(&file, reason);
            }
            let written = tokio::select! {
                written = self.write(&text) => written,
                Ok(()) = signal::ctrl_c() => Err(CliError::Failed("interrupted".to_owned())),
            };
            match written {
                Ok(Outcome::Imported(imported)) => {
                    file.remove();
                    return self.imported(&imported);
                }
                Ok(Outcome::Unchanged) => return self.unchanged(file),
                Ok(Outcome::Refused {
                    reason,
                    text: merged,
                }) => {
                    print_error(&reason);
                    refusals += 1;
                    match merged {
                        Some(merged) => file.refuse(&merged, Refusal::Conflict, &reason)?,
                        None => file.refuse(&text, Refusal::Error, &reason)?,
                    }
                }
                Ok(Outcome::GivenUp(reason)) => return self.give_up(&file, reason),
                Err(error) => {
                    print_message(&error);
                    return self.give_up(&file, "it may not have been imported");
                }
            }
            if refusals == MAX_UNATTENDED_REFUSALS && !confirm::is_terminal() {
                let reason = "the text was refused too often, so nothing was imported";
                return self.give_up(&file, reason);
            }
        }
    }

    /// Checks a text and imports it. Merges changes made since the guide was opened. Only fails if
    /// another edit would not help.
    async fn write(&mut self, text: &str) -> Result<Outcome, CliError> {
        let file = match GuideFile::new(Path::new(""), text.to_owned()) {
            Ok(file) => file,
            Err(error) => return Ok(Outcome::refused(error)),
        };
        let guid = guides::guid(&self.opened.document).to_owned();
        if !guides::guid(&file.document).eq_ignore_ascii_case(&guid) {
            return Ok(Outcome::refused(format!(
                "task.guid must stay {guid}: use `expertise import` for other tasks"
            )));
        }
        let mut said = file.document.clone();
        TaskIds::default().adopt(&mut said, &self.opened.document, None);
        if let Err(error) = refuse_fixed_fields(&said, &self.opened.document) {
            return Ok(Outcome::refused(error));
        }
        let locking = Locking {
            keep_unlocked: self.args.keep_unlocked,
            may_unlock: true,
        };
        let notes = lock_changed(&mut said, &self.opened.document, locking);
        for attempt in 0..=MAX_MERGES {
            let written = match attempt {
                0 => self.write_over(&self.opened, said.clone(), &notes).await,
                _ => self.write_merged(&file, &said, &notes).await,
            };
            match written {
                Err(CliError::Refused(error)) => match (error.reason.as_str(), error.code) {
                    ("ETAG_MISMATCH", _) => {}
                    ("MESSAGE_TOO_LARGE", _)
                    | (_, "INVALID_ARGUMENT" | "NOT_FOUND" | "ALREADY_EXISTS") => {
                        return Ok(Outcome::refused(error));
                    }
                    _ => return Err(error.into()),
                },
                outcome => return outcome,
            }
        }
        Err(CliError::changed_since(&guid))
    }

    /// Merges a text with the changes made since the guide was opened, and imports it.
    async fn write_merged(
        &mut self,
        file: &GuideFile,
        said: &TaskDocument,
        notes: &[String],
    ) -> Result<Outcome, CliError> {
        let opened = self.opened.document.clone();
        let now = guides::read(self.client, guides::guid(&opened)).await?;
        let mut sent = said.clone();
        TaskIds::default().adopt(&mut sent, &now.document, None);
        let planned = merge::planned(self.client, &sent, said, &now).await?;
        // The merged guide does not have the ignored fields, so its import ignores nothing.
        print_ignored(&planned.ignored_paths);
        let ignored = !planned.ignored_paths.is_empty();
        let planned = planned.document.unwrap_or_default();
        let mut merged = match merge::merge(file, &opened, &planned, &now.document) {
            Ok(merged) => merged,
            Err(failed) => {
                // The text that returns to the editor includes the changes of others.
                let mut ours = failed.preferring_ours.clone();
                merge::clear_new_ids(&mut ours, &now.document);
                let text = document::text(&authored(&ours));
                let file = GuideFile::new(Path::new(""), text).map_err(CliError::Failed)?;
                let conflicts = failed.conflicts.iter();
                let conflicts = conflicts.map(|it| it.located(&file, &failed.preferring_ours));
                let reason: String = conflicts.map(|it| it.text("your text")).collect();
                self.opened = now;
                return Ok(Outcome::Refused {
                    reason: reason.trim_end().to_owned(),
                    text: Some(file.text),
                });
            }
        };
        merge::clear_new_ids(&mut merged, &now.document);
        let theirs = changes::between(&opened, &now.document);
        if !theirs.is_empty() {
            print_error("merged with the changes made since the guide was opened:");
            print_note(&changes::text(&theirs, 2));
            print_error("your changes:");
        }
        match self.write_over(&now, merged, notes).await {
            Ok(Outcome::Unchanged) if ignored => Ok(Outcome::GivenUp(ALL_IGNORED)),
            outcome => outcome,
        }
    }

    /// Shows what a document changes, and imports it.
    async fn write_over(
        &self,
        stored: &StoredGuide,
        document: TaskDocument,
        notes: &[String],
    ) -> Result<Outcome, CliError> {
        let message = guides::whole_import(document, &stored.guide_etag);
        let checked = guides::dry_run(self.client, message.clone()).await?;
        let planned = checked.document.unwrap_or_default();
        let changes = changes::between(&stored.document, &planned);
        print_ignored(&checked.ignored_paths);
        match (changes.is_empty(), checked.ignored_paths.is_empty()) {
            (true, true) => return Ok(Outcome::Unchanged),
            (true, false) => return Ok(Outcome::GivenUp(ALL_IGNORED)),
            (false, _) => {}
        }
        print_note(&changes::text(&changes, 0));
        let mut notes = notes.to_vec();
        notes.extend(outdated_translations(&changes, &planned));
        notes.iter().for_each(|line| print_error(line));
        if let Some(outcome) = self.show_findings(&planned).await {
            return Ok(outcome);
        }
        let answer = self.client.call(message).await?;
        Ok(Outcome::Imported(Box::new(ImportedGuide {
            answer,
            changes,
            notes,
            ..ImportedGuide::default()
        })))
    }

    /// Shows the findings. If there are errors, asks the user. `None` means that the text is
    /// imported.
    async fn show_findings(&self, planned: &TaskDocument) -> Option<Outcome> {
        let findings = match Findings::compared(self.client, planned.clone()).await {
            Ok(findings) => findings,
            Err(error) => {
                print_error(&format!("not analyzed: {error}"));
                return None;
            }
        };
        print_note(&findings.text());
        if findings.counts.errors == 0 || !confirm::is_terminal() {
            return None;
        }
        let question = "import it anyway? y: yes, e: edit again, n: no [y/e/N] ";
        // Ctrl-C still works during the question.
        let answer = tokio::task::spawn_blocking(move || confirm::ask(question)).await;
        match answer.unwrap_or_default().as_str() {
            "y" | "yes" => None,
            "e" | "edit" => Some(Outcome::refused("you chose to edit it again")),
            _ => Some(Outcome::GivenUp("it is not imported")),
        }
    }

    fn unchanged(&self, file: EditedFile) -> Result<ExitCode, CliError> {
        file.remove();
        print_error("nothing is changed");
        let outcome = json!({
            "outcome": "IMPORT_OUTCOME_UNCHANGED",
            "guid": guides::guid(&self.opened.document),
        });
        out::print_either(self.format, "", &outcome)?;
        Ok(ExitCode::SUCCESS)
    }

    fn imported(&self, imported: &ImportedGuide) -> Result<ExitCode, CliError> {
        let task = imported.answer.task.clone().unwrap_or_default();
        let (name, steps) = (sanitize(&task.name), step_count(task.steps.len()));
        let undo = guides::undo_note(&task.guid, imported.answer.previous_revision);
        let text = format!("updated {}: {name}, {steps}{undo}\n", task.guid);
        out::print_either(self.format, &text, &imported.json())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Keeps the text, and prints how to import it without undoing concurrent changes.
    fn give_up(&self, file: &EditedFile, reason: &str) -> Result<ExitCode, CliError> {
        file.remove_comments();
        let path = file.path.display().to_string();
        let word = shell_word(&path);
        let diff = self.client.command(&format!("diff {word}"));
        let import = self.client.command(&format!(
            "import --absent-steps delete --if-unchanged={} {word}",
            self.opened.guide_etag
        ));
        let first = match GuideFile::read(&file.path) {
            Ok(_) => "",
            Err(_) => "it is not a guide, so correct it first; ",
        };
        print_error(&format!(
            "{reason}: the text is kept in {path}; {first}`{diff}` compares it with the guide; \
             `{import}` imports it unless the guide has changed since, but keeps fields that it \
             leaves out"
        ));
        let guid = guides::guid(&self.opened.document);
        let kept = json!({"guid": guid, "text_kept_in": path});
        out::print_either(self.format, "", &kept)?;
        Ok(ExitCode::FAILURE)
    }
}

/// Runs the editor, or returns why it failed. As in git and crontab, the command is run by the
/// shell.
fn run_editor(editor: &str, file: &Path) -> Result<(), String> {
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$@\""), editor])
        .arg(file)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
