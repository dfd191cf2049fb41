//! `expertise graph`.

mod dot;
mod mermaid;
mod model;
mod svg;
mod text;

use std::path::Path;

use self::model::Graph;
use super::{CliError, document, export, guide_file::GuideFile, guides, lint, out};
use crate::{
    client::Client,
    config::{GraphArgs, GraphFormat, GuideArg},
    domain::violation::Violations,
    messages::decode,
};

/// Draws a guide: a document, or a stored one.
pub(super) async fn graph(client: Option<&Client>, args: &GraphArgs) -> Result<(), CliError> {
    let file = match &args.guide {
        GuideArg::Stored(guide) => {
            let client = client.ok_or_else(lint::needs_server)?;
            let guide = guides::find_guide_or_file(client, guide).await?;
            let stored = guide.read(client).await?;
            GuideFile::new(Path::new("-"), document::text(&stored.document)?)?
        }
        GuideArg::File(file) => GuideFile::read(file)?,
    };
    let unreachable = lint::unreachable_paths(&file)?;
    let decoded = decode::document::unstored(file.document, &mut Violations::new());
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
