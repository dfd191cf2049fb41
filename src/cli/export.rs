//! `expertise export`.

mod all;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;

use super::{
    CliError,
    document::{self, DocumentError},
    out, revisions, tasks,
    transfer::{self, StoredGuide},
};
use crate::{
    client::Client,
    config::{ExportArgs, Format, GuideRef},
    files,
    messages::authored::authored,
    proto::v1::TaskDocument,
};

/// Writes a guide, or every guide of the account, as documents whose import changes nothing.
pub(super) async fn export(
    client: &Client,
    args: &ExportArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let ExportArgs {
        guide,
        all: _,
        out: file,
        full,
    } = args;
    match (guide, file) {
        (Some(guide), file) => {
            export_one(client, guide, file.as_deref(), *full, format).await?;
            Ok(ExitCode::SUCCESS)
        }
        (None, Some(directory)) => all::export_all(client, directory, *full, format).await,
        // The command line requires a task, or a directory for all.
        (None, None) => Ok(ExitCode::FAILURE),
    }
}

async fn export_one(
    client: &Client,
    guide: &GuideRef,
    file: Option<&Path>,
    full: bool,
    format: Format,
) -> Result<(), CliError> {
    let found = tasks::find_guide(client, guide).await?;
    let guide = revisions::stored_guide(client, &found).await?;
    let text = text(&guide.document, full)?;
    let Some(file) = file.filter(|file| *file != Path::new("-")) else {
        return out::print(&text);
    };
    write(file, &text)?;
    ExportedFile::of(file.to_owned(), &guide).print(format)
}

/// The text of a file: what authors write, or with `full` the whole document.
fn text(document: &TaskDocument, full: bool) -> Result<String, DocumentError> {
    match full {
        true => document::text(document),
        false => document::text(&authored(document)),
    }
}

pub(super) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    files::replace(file, text).map_err(|reason| CliError::Write {
        place: file.display().to_string(),
        reason,
    })
}

/// A file that a guide was written to.
struct ExportedFile {
    file: PathBuf,
    guid: String,
    name: String,
    steps: usize,
    guide_etag: String,
}

impl ExportedFile {
    fn of(
        file: PathBuf,
        StoredGuide {
            document,
            guide_etag,
        }: &StoredGuide,
    ) -> Self {
        Self {
            guide_etag: guide_etag.clone(),
            file,
            guid: transfer::guid(document).to_owned(),
            name: transfer::name(document).to_owned(),
            steps: document.steps.len(),
        }
    }

    fn json(&self) -> serde_json::Value {
        let Self {
            file,
            guid,
            name,
            steps,
            guide_etag,
        } = self;
        json!({
            "file": file.display().to_string(),
            "guid": guid,
            "name": name,
            "steps": steps,
            "guide_etag": guide_etag,
        })
    }

    fn text(&self) -> String {
        let name = out::sanitize(&self.name);
        let steps = out::step_count(self.steps);
        let file = out::sanitize(&self.file.display().to_string());
        format!("wrote {file}: {name}, {steps}\n")
    }

    fn print(&self, format: Format) -> Result<(), CliError> {
        out::print(&match format {
            Format::Text => self.text(),
            Format::Json => out::escape_formatting(&format!("{}\n", self.json())),
        })
    }
}
