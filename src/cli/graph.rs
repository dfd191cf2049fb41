//! `expertise graph`.

mod dot;
mod mermaid;
mod model;
mod svg;
mod text;

use self::model::Graph;
use super::{CliError, document, export, lint, out, revisions, tasks, transfer};
use crate::{
    client::Client,
    config::{GraphConfig, GraphFormat, GuideArg},
    domain::{caller::Scope, violation::Violations},
    messages::decode,
};

/// Draws a guide: a document, or a stored one.
pub async fn graph(config: &GraphConfig) -> Result<(), CliError> {
    let (text, document) = match (&config.guide, &config.connection) {
        (GuideArg::Stored(guide), Some(connection)) => {
            let client = Client::connect(connection, &[Scope::Read]).await?;
            let guide = tasks::find_guide_or_file(&client, guide).await?;
            let document = revisions::document(&client, &guide).await?;
            (document::text(&document)?, document)
        }
        (GuideArg::File(file), _) => transfer::read_text_and_document(file)?,
        // The settings have a connection for a stored guide.
        (GuideArg::Stored(_), None) => return Err(lint::needs_server()),
    };
    let unreachable = lint::unreachable_paths(&text, document.clone())?;
    let decoded = decode::document::unstored(document, &mut Violations::new());
    let decoded = decoded.ok_or(document::DocumentError::Contract)?;
    let graph = Graph::of(&decoded, &unreachable);
    let picture = match config.format {
        GraphFormat::Mermaid => mermaid::mermaid(&graph),
        GraphFormat::Dot => dot::dot(&graph),
        GraphFormat::Svg => svg::svg(&graph),
    };
    match &config.out {
        Some(file) => export::write(file, &picture),
        None => out::print(&picture),
    }
}
