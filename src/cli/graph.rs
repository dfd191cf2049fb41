//! `expertise graph`.

mod dot;
mod mermaid;
mod model;
mod svg;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use textwrap::{Options, WordSplitter};

use self::model::Graph;
use super::{
    CliError, document, export, guide_file::GuideFile, guide_ref::GuideArg, guides, lint, out,
};
use crate::client::Client;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct GraphArgs {
    /// A document, - for standard input, or the guid or unique name of a stored task, with @ and a number or alias for a revision
    #[arg(value_name = "FILE|GUIDE[@REVISION]", value_hint = ValueHint::FilePath)]
    pub guide: GuideArg,
    /// The format of the graph: mermaid and dot are text that other programs draw, svg is an image
    #[arg(long, default_value = "mermaid")]
    pub format: GraphFormat,
    /// The file to write, - for standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Text of Mermaid.
    Mermaid,
    /// Text of Graphviz.
    Dot,
    /// An image.
    Svg,
}

pub(super) async fn graph(client: Option<&Client>, args: &GraphArgs) -> Result<(), CliError> {
    let file = match &args.guide {
        GuideArg::Stored(guide) => {
            let client = client.ok_or_else(lint::needs_server)?;
            let guide = guides::find_guide_or_file(client, guide).await?;
            let document = guide.read(client).await?.document;
            GuideFile {
                path: "-".into(),
                text: document::text(&document),
                document,
            }
        }
        GuideArg::File(file) => GuideFile::read(file)?,
    };
    let unreachable = lint::unreachable_paths(&file)?;
    let graph = Graph::new(&file.document, &unreachable);
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

/// The lines of a text. Ids are not broken if they fit.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let options = Options::new(columns).word_splitter(WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(text, options).into_iter();
    lines.map(|line| line.into_owned()).collect()
}
