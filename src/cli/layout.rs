//! Tables and trees, and lines that fit the terminal.

use std::array;

use console::{Term, measure_text_width};
use textwrap::{Options, WordSplitter};

use super::out::sanitize;

/// The additional indentation of the continuation of a long line.
const FURTHER_LINES_INDENT: &str = "  ";

/// Wraps long lines at the width of the terminal, and keeps the branches of trees. Without a
/// terminal, the text is unchanged.
pub(super) fn fitted(text: &str, terminal: &Term) -> String {
    let Some((_, width)) = terminal.size_checked() else {
        return text.to_owned();
    };
    let width = usize::from(width);
    let lines = text.lines().map(|line| {
        if measure_text_width(line) <= width {
            return line.to_owned() + "\n";
        }
        let content = line.trim_start_matches([' ', '│', '├', '└', '─']);
        let lead = line.strip_suffix(content).unwrap_or_default();
        let below = lead.replace("├──", "│  ").replace("└──", "   ") + FURTHER_LINES_INDENT;
        textwrap::fill(
            content,
            Options::new(width)
                .initial_indent(lead)
                .subsequent_indent(&below)
                .word_splitter(WordSplitter::NoHyphenation),
        ) + "\n"
    });
    lines.collect()
}

/// A table without borders. Numbers are right-aligned.
pub(super) fn table<const N: usize>(names: [&str; N], rows: &[[String; N]]) -> String {
    let names = names.map(str::to_owned);
    let lines = [&names].into_iter().chain(rows);
    let lines = lines.map(|cells| cells.each_ref().map(|cell| sanitize(cell)));
    let lines: Vec<[String; N]> = lines.collect();
    // The width of each column, and whether it only has numbers.
    let columns: [(usize, bool); N] = array::from_fn(|column| {
        let cells = lines.iter().filter_map(|cells| cells.get(column));
        let width = cells.clone().map(|it| measure_text_width(it)).max();
        let has_numbers = cells.skip(1).all(|it| it.parse::<u64>().is_ok());
        (width.unwrap_or_default(), has_numbers)
    });
    let lines = lines.iter().map(|cells| {
        let cells = cells
            .iter()
            .zip(columns)
            .map(|(cell, (width, has_numbers))| {
                let padding = width - measure_text_width(cell);
                match has_numbers {
                    true => format!("{:padding$}{cell}  ", ""),
                    false => format!("{cell}{:padding$}  ", ""),
                }
            });
        cells.collect::<String>().trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// A branch of a tree: its lines, and the branches below it.
pub(super) struct Branch {
    lines: Vec<String>,
    leaves: Vec<Branch>,
}

impl Branch {
    pub fn new(lines: Vec<String>, leaves: Vec<Self>) -> Self {
        Self { lines, leaves }
    }

    /// A branch with one line.
    pub fn leaf(line: impl Into<String>) -> Self {
        Self::new(vec![line.into()], Vec::new())
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        self.add("", "", &mut text);
        text
    }

    /// Adds the tree. `lead` is the prefix of its first line, and `indent` of the others.
    fn add(&self, lead: &str, indent: &str, text: &mut String) {
        for (index, line) in self.lines.iter().enumerate() {
            let before = if index == 0 { lead } else { indent };
            text.push_str(&format!("{before}{line}\n"));
        }
        for (index, leaf) in self.leaves.iter().enumerate() {
            let (branch, below) = match index + 1 == self.leaves.len() {
                true => ("└── ", "    "),
                false => ("├── ", "│   "),
            };
            leaf.add(
                &format!("{indent}{branch}"),
                &format!("{indent}{below}"),
                text,
            );
        }
    }
}
