//! `expertise graph`.

mod dot;
mod mermaid;
mod model;
mod svg;
mod text;

use std::path::Path;

use self::model::Graph;
use super::{CliError, document, export, lint, out, revisions, tasks, transfer};
use crate::{
    client::Client,
    config::{GraphArgs, GraphFormat, GuideArg},
    domain::violation::Violations,
    messages::decode,
};

/// Draws a guide: a document, or a stored one.
pub(super) async fn graph(client: Option<&Client>, args: &GraphArgs) -> Result<(), CliError> {
    let (text, document) = match &args.guide {
        GuideArg::Stored(guide) => {
            let client = client.ok_or_else(lint::needs_server)?;
            let guide = tasks::find_guide_or_file(client, guide).await?;
            let document = revisions::document(client, &guide).await?;
            (document::text(&document)?, document)
        }
        GuideArg::File(file) => transfer::read_text_and_document(file)?,
    };
    let unreachable = lint::unreachable_paths(&text, document.clone())?;
    let decoded = decode::document::unstored(document, &mut Violations::new());
    let decoded = decoded.ok_or(document::DocumentError::Contract)?;
    let graph = Graph::of(&decoded, &unreachable);
    let picture = match args.format {
        GraphFormat::Mermaid => mermaid::mermaid(&graph),
        GraphFormat::Dot => dot::dot(&graph),
        GraphFormat::Svg => svg::svg(&graph),
    };
    match &args.out {
        Some(file) if file != Path::new("-") => export::write(file, &picture),
        Some(_) | None => out::print(&picture),
    }
}
