//! `expertise edit`.

mod conditions;
mod file;

use std::process::{Command, ExitCode};

use console::Term;
use tokio::signal::{
    self,
    unix::{Signal, SignalKind},
};

use self::{conditions::keep_edited_conditions, file::EditedFile};
use super::{
    CliError, changes, confirm, document,
    field_line::SentText,
    findings::Findings,
    ignored_step_fields::ignored_lines,
    matching::{Matching, TaskIds, match_to_stored},
    out::{print, print_error, print_message, sanitize, step_count},
    revisions::undo_note,
    tasks,
    transfer::{self, StoredGuide},
};
use crate::{client::Client, config::EditArgs, proto::v1::TaskDocument};

/// How often a text may be refused where nobody is at a terminal: a script in place of an
/// editor could go on for ever.
const MAX_UNATTENDED_REFUSALS: u32 = 5;

/// Edits a guide as a document in an editor. A text that is refused comes back to the
/// editor with the errors. One that is given up stays in a file.
pub(super) async fn edit(client: &Client, args: &EditArgs) -> Result<ExitCode, CliError> {
    let guid = tasks::find(client, &args.task).await?.to_string();
    let stored = transfer::export_with_etag(client, &guid).await?;
    let mut file = EditedFile::new(&document::text(&stored.document)?)?;
    // Ctrl-C in an editor must not end this program, which still has to name the file.
    let _interrupts = interrupts()?;
    let mut advice = "";
    let mut refusals = 0;
    loop {
        let before = file.read()?;
        if let Err(failure) = run_editor(args.editor(), &file) {
            return Err(editor_error(args.editor(), failure, file));
        }
        let text = file.read()?;
        if !file.is_changed(&text) {
            file.remove();
            print_error("nothing is changed");
            return Ok(ExitCode::SUCCESS);
        }
        if file.is_refused() && text == before {
            return Ok(give_up(
                client,
                &file,
                "the refused text was not corrected, and nothing is imported",
                advice,
            ));
        }
        match write_until_interrupted(client, &stored, &text).await {
            Ok(EditOutcome::Done(line)) => {
                file.remove();
                print(&line)?;
                return Ok(ExitCode::SUCCESS);
            }
            Ok(EditOutcome::Unchanged) => {
                file.remove();
                print_error("nothing is changed");
                return Ok(ExitCode::SUCCESS);
            }
            Ok(EditOutcome::Ignored) => return Ok(give_up_ignored(&file)),
            Ok(EditOutcome::Refused(reason)) => {
                print_error(&reason);
                advice = "correct it, then ";
                refusals += 1;
                if refusals == MAX_UNATTENDED_REFUSALS && !confirm::is_terminal() {
                    let reason = "the text was refused too often, and nothing is imported";
                    return Ok(give_up(client, &file, reason, advice));
                }
                file.refuse(&text, &reason)?;
            }
            Ok(EditOutcome::EditAgain) => {
                file.refuse(&text, "you chose to edit it again")?;
                advice = "";
            }
            Ok(EditOutcome::Stopped) => {
                return Ok(give_up(client, &file, "it is not imported", ""));
            }
            Err(error) => {
                print_message(&error);
                if let CliError::ChangedSince(guid) = &error {
                    return Ok(give_up_changed(client, &file, guid));
                }
                return Ok(give_up(
                    client,
                    &file,
                    "it is not imported, or not completely",
                    "",
                ));
            }
        }
    }
}

/// What became of an edited text.
enum EditOutcome {
    /// It is imported; the line says so.
    Done(String),
    /// It changes nothing in the guide.
    Unchanged,
    /// It differs only in what cannot be changed.
    Ignored,
    /// It is refused, for these reasons.
    Refused(String),
    /// It is to be edited again.
    EditAgain,
    /// It is not to be imported.
    Stopped,
}

/// Imports a text unless Ctrl-C ends that.
async fn write_until_interrupted(
    client: &Client,
    stored: &StoredGuide,
    text: &str,
) -> Result<EditOutcome, CliError> {
    tokio::select! {
        written = write(client, stored, text) => written,
        Ok(()) = signal::ctrl_c() => Err(CliError::Interrupted),
    }
}

/// Checks a text and imports it. An error is one that another edit would not correct.
async fn write(
    client: &Client,
    StoredGuide {
        document: stored,
        guide_etag,
    }: &StoredGuide,
    text: &str,
) -> Result<EditOutcome, CliError> {
    let mut document = match document::parse(text.as_bytes()) {
        Ok(document) => document,
        Err(error) => return Ok(EditOutcome::Refused(error.to_string())),
    };
    let guid = transfer::guid(stored).to_owned();
    if !transfer::guid(&document).eq_ignore_ascii_case(&guid) {
        let reason = format!("task.guid must stay {guid}: use `expertise import` for other tasks");
        return Ok(EditOutcome::Refused(reason));
    }
    match_to_stored(&mut document, stored, Matching::ById, &mut TaskIds::new());
    keep_edited_conditions(&mut document, stored);
    let sent = SentText {
        text,
        document: &document,
    };
    let message = transfer::import_of_whole(document.clone(), guide_etag);
    let checked = match transfer::dry_run(client, message.clone()).await {
        Ok(checked) => checked,
        Err(error) if ["INVALID_ARGUMENT", "NOT_FOUND"].contains(&error.code) => {
            return Ok(EditOutcome::Refused(sent.with_places(error).to_string()));
        }
        Err(error) => return Err(changed_since(error.into(), &guid)),
    };
    let planned = checked.document.unwrap_or_default();
    let changes = changes::between(stored, &planned)?;
    let ignored = ignored_lines(&checked.ignored_paths, &document, &planned);
    for line in &ignored {
        print_error(&format!("ignored: {line}"));
    }
    match (changes.is_empty(), ignored.is_empty()) {
        (true, true) => return Ok(EditOutcome::Unchanged),
        (true, false) => return Ok(EditOutcome::Ignored),
        (false, _) => {}
    }
    print_error(changes::text(&changes, &Term::stderr(), 0).trim_end());
    match show_findings(client, &planned).await {
        FindingsDecision::Import => {}
        FindingsDecision::EditAgain => return Ok(EditOutcome::EditAgain),
        FindingsDecision::Stop => return Ok(EditOutcome::Stopped),
    }
    let answer = transfer::import(client, message).await;
    let answer = answer.map_err(|error| changed_since(error.into(), &guid))?;
    let task = answer.task.unwrap_or_default();
    let (name, steps) = (sanitize(&task.name), step_count(task.steps.len()));
    let undo = undo_note(&guid, answer.previous_revision);
    Ok(EditOutcome::Done(format!(
        "updated {guid}: {name}, {steps}{undo}\n"
    )))
}

fn changed_since(error: CliError, guid: &str) -> CliError {
    match error {
        CliError::Refused(error) if error.reason == "ETAG_MISMATCH" => {
            CliError::ChangedSince(guid.to_owned())
        }
        error => error,
    }
}

/// What to do with a text in spite of its findings.
enum FindingsDecision {
    Import,
    EditAgain,
    Stop,
}

/// Shows the findings. If there are errors, the person at the terminal decides.
async fn show_findings(client: &Client, planned: &TaskDocument) -> FindingsDecision {
    let findings = match Findings::compared(client, planned.clone()).await {
        Ok(findings) => findings,
        Err(error) => {
            print_error(&format!("not analysed: {error}"));
            return FindingsDecision::Import;
        }
    };
    findings.text(&Term::stderr()).lines().for_each(print_error);
    if findings.errors() == 0 || !confirm::is_terminal() {
        return FindingsDecision::Import;
    }
    let question = "import it anyway? y: yes, e: edit again, n: no [y/e/N] ";
    // Ctrl-C is handled while the question waits.
    let answer = tokio::task::spawn_blocking(move || confirm::ask(question)).await;
    match answer.unwrap_or_default().as_str() {
        "y" | "yes" => FindingsDecision::Import,
        "e" | "edit" => FindingsDecision::EditAgain,
        _ => FindingsDecision::Stop,
    }
}

fn interrupts() -> Result<Signal, CliError> {
    signal::unix::signal(SignalKind::interrupt()).map_err(CliError::Signals)
}

/// Runs the editor, or says why it failed. Like git and crontab, the command is one for the
/// shell.
fn run_editor(editor: &str, file: &EditedFile) -> Result<(), String> {
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$@\""), editor])
        .arg(file.path())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The error of an editor that failed. A text that was changed is kept.
fn editor_error(editor: &str, failure: String, file: EditedFile) -> CliError {
    let text = file.read();
    let outcome = match text.is_ok_and(|text| !file.is_changed(&text)) {
        true => {
            file.remove();
            "nothing is changed".to_owned()
        }
        false => {
            file.remove_comments();
            format!(
                "nothing is imported, and the text is kept in {}",
                file.path().display()
            )
        }
    };
    CliError::Editor {
        editor: sanitize(editor),
        failure,
        outcome,
    }
}

/// Keeps a text of which nothing can be imported.
fn give_up_ignored(file: &EditedFile) -> ExitCode {
    file.remove_comments();
    print_error(&format!(
        "nothing is changed, as everything that was edited is ignored: the text is kept in {}",
        file.path().display()
    ));
    ExitCode::FAILURE
}

/// The path of a file in a command for a shell, in single quotes unless all its characters
/// stand for themselves.
fn shell_path(file: &EditedFile) -> String {
    let path = file.path().display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Keeps the text. An import of it would undo the changes that somebody else made.
fn give_up_changed(client: &Client, file: &EditedFile, guid: &str) -> ExitCode {
    file.remove_comments();
    let path = file.path().display();
    let diff = client.command(&format!("diff {}", shell_path(file)));
    let edit = client.command(&format!("edit {guid}"));
    print_error(&format!(
        "the text is kept in {path}: `{diff}` compares it with the guide; make your changes again in \
         `{edit}`"
    ));
    ExitCode::FAILURE
}

/// Keeps the text and says how to import it. `advice` is what to do before.
fn give_up(client: &Client, file: &EditedFile, reason: &str, advice: &str) -> ExitCode {
    file.remove_comments();
    let (path, word) = (file.path().display(), shell_path(file));
    let diff = client.command(&format!("diff {word}"));
    let import = client.command(&format!("import --absent-steps delete {word}"));
    print_error(&format!(
        "{reason}: the text is kept in {path}; `{diff}` compares it with the guide; \
         {advice}`{import}` imports it, but keeps fields that it leaves out"
    ));
    ExitCode::FAILURE
}
