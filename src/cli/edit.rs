//! `expertise edit`.

mod conditions;
mod file;
mod outdated;

use std::process::{Command, ExitCode};

use console::Term;
use serde_json::{Value, json};
use tokio::signal::{
    self,
    unix::{Signal, SignalKind},
};

use self::{conditions::keep_edited_conditions, file::EditedFile, outdated::OutdatedTranslations};
use super::{
    CliError,
    changes::{self, Change},
    confirm, document,
    field_line::{FieldLines, SentText},
    findings::Findings,
    ignored_step_fields::ignored_lines,
    imported_guide::outcome_name,
    matching::{Matching, TaskIds, match_to_stored},
    merge::{self, MergeConflict, MergeOutcome, MergedGuides},
    out::{self, print, print_error, print_message, sanitize, step_count},
    revisions::undo_note,
    tasks,
    transfer::{self, StoredGuide},
};
use crate::{
    client::{CallError, Client},
    config::{EditArgs, Format},
    proto::v1::{ImportOutcome, ImportTaskResponse, TaskDocument},
};

/// How often a text may be refused where nobody is at a terminal: a script in place of an
/// editor could go on for ever.
const MAX_UNATTENDED_REFUSALS: u32 = 5;

/// How often changes that others make while a text is written are merged.
const MAX_MERGES: u32 = 5;

/// Edits a guide as a document in an editor. A text that is refused comes back to the
/// editor with the errors. One that is given up stays in a file.
pub(super) async fn edit(
    client: &Client,
    args: &EditArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let guid = tasks::find(client, &args.task).await?.to_string();
    let stored = transfer::export_with_etag(client, &guid).await?;
    let file = EditedFile::new(&document::text(&stored.document)?)?;
    // Ctrl-C in an editor must not end this program, which still has to name the file.
    let _interrupts = interrupts()?;
    let result = edit_file(client, &args.editor(), &stored, file).await?;
    match format {
        Format::Text => print(&result.text)?,
        Format::Json => out::print_json(&result.json)?,
    }
    Ok(result.exit_code)
}

/// How the command ends.
struct EditResult {
    /// What is printed for people.
    text: String,
    /// What is printed for scripts.
    json: Value,
    exit_code: ExitCode,
}

async fn edit_file(
    client: &Client,
    editor: &str,
    stored: &StoredGuide,
    mut file: EditedFile,
) -> Result<EditResult, CliError> {
    let guid = transfer::guid(&stored.document);
    let give_up = |file: &EditedFile, reason: &str, advice: &str| {
        give_up(client, stored, file, reason, advice);
        not_imported(guid, file, &[])
    };
    let mut advice = "";
    let mut refusals = 0;
    loop {
        let before = file.read()?;
        if let Err(failure) = run_editor(editor, &file) {
            return Err(editor_error(editor, failure, file));
        }
        let text = file.read()?;
        if !file.is_changed(&text) {
            return Ok(unchanged(&stored.document, file));
        }
        if file.is_refused() && text == before {
            let reason = "the refused text was not corrected, and nothing is imported";
            return Ok(give_up(&file, reason, advice));
        }
        match write_until_interrupted(client, stored, &text).await {
            Ok(EditOutcome::Done(report)) => {
                file.remove();
                return Ok(report.result());
            }
            Ok(EditOutcome::Unchanged) => return Ok(unchanged(&stored.document, file)),
            Ok(EditOutcome::Ignored) => {
                give_up_ignored(&file);
                return Ok(not_imported(guid, &file, &[]));
            }
            Ok(EditOutcome::Conflicts(conflicts)) => {
                let terminal = Term::stderr();
                let texts = conflicts.iter().map(|it| it.text("your text", &terminal));
                texts.collect::<String>().lines().for_each(print_error);
                give_up_conflicts(client, &file, guid);
                return Ok(not_imported(guid, &file, &conflicts));
            }
            Ok(EditOutcome::Refused(reason)) => {
                print_error(&reason);
                advice = "correct it, then ";
                refusals += 1;
                if refusals == MAX_UNATTENDED_REFUSALS && !confirm::is_terminal() {
                    let reason = "the text was refused too often, and nothing is imported";
                    return Ok(give_up(&file, reason, advice));
                }
                file.refuse(&text, &reason)?;
            }
            Ok(EditOutcome::EditAgain) => {
                file.refuse(&text, "you chose to edit it again")?;
                advice = "";
            }
            Ok(EditOutcome::Stopped) => return Ok(give_up(&file, "it is not imported", "")),
            Err(error) => {
                print_message(&error);
                let reason = "it is perhaps not imported";
                return Ok(give_up(&file, reason, ""));
            }
        }
    }
}

fn unchanged(stored: &TaskDocument, file: EditedFile) -> EditResult {
    file.remove();
    print_error("nothing is changed");
    EditResult {
        text: String::new(),
        json: json!({
            "outcome": outcome_name(ImportOutcome::Unchanged),
            "guid": transfer::guid(stored),
            "name": transfer::name(stored),
        }),
        exit_code: ExitCode::SUCCESS,
    }
}

fn not_imported(guid: &str, file: &EditedFile, conflicts: &[MergeConflict]) -> EditResult {
    EditResult {
        text: String::new(),
        json: json!({
            "outcome": "failed",
            "guid": guid,
            "text_kept_in": file.path().display().to_string(),
            "conflicts": conflicts,
        }),
        exit_code: ExitCode::FAILURE,
    }
}

/// What became of an edited text.
enum EditOutcome {
    /// It is imported.
    Done(Box<EditReport>),
    /// It changes nothing in the guide.
    Unchanged,
    /// It differs only in what cannot be changed.
    Ignored,
    /// It is refused, for these reasons.
    Refused(String),
    /// Somebody else has changed the same.
    Conflicts(Vec<MergeConflict>),
    /// It is to be edited again.
    EditAgain,
    /// It is not to be imported.
    Stopped,
}

/// A text that is imported.
struct EditReport {
    answer: ImportTaskResponse,
    /// What it has changed in the guide.
    changes: Vec<Change>,
    /// What others have changed meanwhile.
    merged: Vec<Change>,
    outdated: Vec<OutdatedTranslations>,
}

impl EditReport {
    fn result(self) -> EditResult {
        let Self {
            answer,
            changes,
            merged,
            outdated,
        } = self;
        let task = answer.task.unwrap_or_default();
        let (name, steps) = (sanitize(&task.name), step_count(task.steps.len()));
        let undo = undo_note(&task.guid, answer.previous_revision);
        EditResult {
            text: format!("updated {}: {name}, {steps}{undo}\n", task.guid),
            json: json!({
                "outcome": outcome_name(ImportOutcome::Updated),
                "guid": task.guid,
                "name": task.name,
                "steps": task.steps.len(),
                "changes": changes,
                "merged": merged,
                "outdated_translations": outdated,
                "ignored_paths": answer.ignored_paths,
                "previous_revision": answer.previous_revision,
            }),
            exit_code: ExitCode::SUCCESS,
        }
    }
}

/// Imports a text unless Ctrl-C ends that.
async fn write_until_interrupted(
    client: &Client,
    opened: &StoredGuide,
    text: &str,
) -> Result<EditOutcome, CliError> {
    tokio::select! {
        written = write(client, opened, text) => written,
        Ok(()) = signal::ctrl_c() => Err(CliError::Interrupted),
    }
}

/// Checks a text and imports it. What has changed since the guide was opened is merged. An error
/// is one that another edit would not correct.
async fn write(client: &Client, opened: &StoredGuide, text: &str) -> Result<EditOutcome, CliError> {
    let mut document = match document::parse(text.as_bytes()) {
        Ok(document) => document,
        Err(error) => return Ok(EditOutcome::Refused(error.to_string())),
    };
    let guid = transfer::guid(&opened.document);
    if !transfer::guid(&document).eq_ignore_ascii_case(guid) {
        let reason = format!("task.guid must stay {guid}: use `expertise import` for other tasks");
        return Ok(EditOutcome::Refused(reason));
    }
    let ids = &mut TaskIds::new();
    match_to_stored(&mut document, &opened.document, Matching::ById, ids);
    keep_edited_conditions(&mut document, &opened.document);
    let sent = SentText {
        text,
        document: &document,
    };
    let refused = |error: CallError| match error.code {
        "INVALID_ARGUMENT" | "NOT_FOUND" => {
            Ok(EditOutcome::Refused(sent.with_places(error).to_string()))
        }
        _ => Err(error.into()),
    };
    match write_over(client, opened, &document, &[]).await {
        Err(CliError::Refused(error)) if error.reason == "ETAG_MISMATCH" => {}
        Err(CliError::Refused(error)) => return refused(error),
        outcome => return outcome,
    }
    for _ in 0..MAX_MERGES {
        let now = transfer::export_with_etag(client, guid).await?;
        let planned = merge::planned(client, &opened.document, &document, &now).await;
        let (planned, ignored) = match planned {
            Ok(planned) => planned,
            Err(error) if error.reason == "ETAG_MISMATCH" => continue,
            Err(error) => return refused(error),
        };
        let guides = MergedGuides {
            base: &opened.document,
            ours: &planned,
            theirs: &now.document,
        };
        let merged = match guides.merge()? {
            MergeOutcome::Merged { document, .. } => document,
            MergeOutcome::Conflicts(conflicts) => {
                let conflicts = conflicts.into_iter();
                let lines = FieldLines::new(text);
                let conflicts = conflicts.map(|it| it.with_line(&lines, &document));
                return Ok(EditOutcome::Conflicts(conflicts.collect()));
            }
        };
        // The merged guide has nothing of it, so that its own import ignores nothing.
        let ignored = ignored_lines(&ignored, &document, &planned);
        for line in &ignored {
            print_error(&format!("ignored: {line}"));
        }
        let theirs = guides.changes_of(&now.document)?;
        if !theirs.is_empty() {
            print_error("merged with what has changed since the guide was opened:");
            print_error(changes::text(&theirs, &Term::stderr(), 2).trim_end());
            print_error("your changes:");
        }
        match write_over(client, &now, &merged, &theirs).await {
            Err(CliError::Refused(error)) if error.reason == "ETAG_MISMATCH" => {}
            Ok(EditOutcome::Unchanged) if !ignored.is_empty() => return Ok(EditOutcome::Ignored),
            outcome => return outcome,
        }
    }
    Err(CliError::ChangedSince(guid.to_owned()))
}

/// Shows what a document changes, and imports it. `merged` is what it has of others.
async fn write_over(
    client: &Client,
    stored: &StoredGuide,
    document: &TaskDocument,
    merged: &[Change],
) -> Result<EditOutcome, CliError> {
    let message = transfer::import_of_whole(document.clone(), &stored.guide_etag);
    let checked = transfer::dry_run(client, message.clone()).await?;
    let planned = checked.document.unwrap_or_default();
    let changes = changes::between(&stored.document, &planned)?;
    let ignored = ignored_lines(&checked.ignored_paths, document, &planned);
    for line in &ignored {
        print_error(&format!("ignored: {line}"));
    }
    match (changes.is_empty(), ignored.is_empty()) {
        (true, true) => return Ok(EditOutcome::Unchanged),
        (true, false) => return Ok(EditOutcome::Ignored),
        (false, _) => {}
    }
    print_error(changes::text(&changes, &Term::stderr(), 0).trim_end());
    let outdated = outdated::translations(&changes, &planned);
    for line in &outdated {
        print_error(&line.to_string());
    }
    if let Some(outcome) = show_findings(client, &planned).await {
        return Ok(outcome);
    }
    Ok(EditOutcome::Done(Box::new(EditReport {
        answer: transfer::import(client, message).await?,
        changes,
        merged: merged.to_vec(),
        outdated,
    })))
}

/// Shows the findings. If there are errors, the person at the terminal decides. `None` imports
/// the text.
async fn show_findings(client: &Client, planned: &TaskDocument) -> Option<EditOutcome> {
    let findings = match Findings::compared(client, planned.clone()).await {
        Ok(findings) => findings,
        Err(error) => {
            print_error(&format!("not analysed: {error}"));
            return None;
        }
    };
    findings.text(&Term::stderr()).lines().for_each(print_error);
    if findings.errors() == 0 || !confirm::is_terminal() {
        return None;
    }
    let question = "import it anyway? y: yes, e: edit again, n: no [y/e/N] ";
    // Ctrl-C is handled while the question waits.
    let answer = tokio::task::spawn_blocking(move || confirm::ask(question)).await;
    match answer.unwrap_or_default().as_str() {
        "y" | "yes" => None,
        "e" | "edit" => Some(EditOutcome::EditAgain),
        _ => Some(EditOutcome::Stopped),
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
fn give_up_ignored(file: &EditedFile) {
    file.remove_comments();
    print_error(&format!(
        "nothing is changed, as everything that was edited is ignored: the text is kept in {}",
        file.path().display()
    ));
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
fn give_up_conflicts(client: &Client, file: &EditedFile, guid: &str) {
    file.remove_comments();
    let path = file.path().display();
    let diff = client.command(&format!("diff {}", shell_path(file)));
    let edit = client.command(&format!("edit {guid}"));
    print_error(&format!(
        "nothing is imported, as somebody else has changed the same meanwhile: the text is kept in \
         {path}; `{diff}` compares it with the guide; make your changes again in `{edit}`"
    ));
}

/// Keeps the text and says how to import it, without undoing the changes that somebody else makes
/// meanwhile. `advice` is what to do before.
fn give_up(client: &Client, opened: &StoredGuide, file: &EditedFile, reason: &str, advice: &str) {
    file.remove_comments();
    let (path, word) = (file.path().display(), shell_path(file));
    let diff = client.command(&format!("diff {word}"));
    let import = client.command(&format!(
        "import --absent-steps delete --if-unchanged={} {word}",
        opened.guide_etag
    ));
    print_error(&format!(
        "{reason}: the text is kept in {path}; `{diff}` compares it with the guide; \
         {advice}`{import}` imports it if nobody has changed the guide meanwhile, but keeps fields \
         that it leaves out"
    ));
}
