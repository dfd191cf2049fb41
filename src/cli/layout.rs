//! Lines and tables that fit the terminal. What is not printed to a terminal is not wrapped.

use std::{array, iter};

use console::{AnsiCodeIterator, Term};
use textwrap::{Options, WordSeparator, core::Word};

/// The code that ends all styles.
const RESET: &str = "\u{1b}[0m";
/// The fewest columns that a text gets, however deep it is indented.
const TEXT_COLUMNS_MIN: usize = 20;

/// The width of a terminal, in columns; `None` if the stream is no terminal.
fn terminal_width(terminal: &Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked()?;
    Some(usize::from(columns))
}

/// The lines of a text on standard output that has `indent` columns before it.
pub(super) fn wrapped(text: &str, indent: usize) -> Vec<String> {
    wrapped_on(&Term::stdout(), text, indent)
}

fn wrapped_on(terminal: &Term, text: &str, indent: usize) -> Vec<String> {
    let Some(width) = terminal_width(terminal) else {
        return vec![text.to_owned()];
    };
    let room = width.saturating_sub(indent).max(TEXT_COLUMNS_MIN);
    let options = Options::new(room).word_separator(WordSeparator::Custom(words));
    let lines = textwrap::wrap(text, options).into_iter();
    end_styles_with_lines(lines.map(|line| line.into_owned()).collect())
}

/// The words of a text. A long word, such as a path, may be broken after dots and slashes.
fn words(text: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let words = WordSeparator::AsciiSpace.find_words(text);
    Box::new(words.flat_map(parts_of_word))
}

fn parts_of_word(word: Word<'_>) -> Vec<Word<'_>> {
    if word.word.len() <= TEXT_COLUMNS_MIN {
        return vec![word];
    }
    let parts = word.word.split_inclusive(['.', '/']);
    let mut parts: Vec<Word<'_>> = parts.map(Word::from).collect();
    if let Some(last) = parts.last_mut() {
        last.whitespace = word.whitespace;
    }
    parts
}

/// Ends each style at the end of its line, and begins it again on the next one, so that
/// what stands before a line is not styled.
fn end_styles_with_lines(lines: Vec<String>) -> Vec<String> {
    let mut open = String::new();
    let styled = lines.into_iter().map(|line| {
        let begun = std::mem::take(&mut open);
        let line = format!("{begun}{line}");
        for (code, is_code) in AnsiCodeIterator::new(&line) {
            match (is_code, code) {
                (true, RESET) => open.clear(),
                (true, code) => open.push_str(code),
                (false, _) => {}
            }
        }
        match open.as_str() {
            "" => line,
            _ => line + RESET,
        }
    });
    styled.collect()
}

/// The lines of a text after `lead`, for standard output. Further lines are indented by the
/// width of `lead`.
pub(super) fn with_hanging_indent(lead: &str, text: &str) -> String {
    with_hanging_indent_on(&Term::stdout(), lead, text)
}

/// Like [`with_hanging_indent`], for another terminal.
pub(super) fn with_hanging_indent_on(terminal: &Term, lead: &str, text: &str) -> String {
    let indent = console::measure_text_width(lead);
    let lines = wrapped_on(terminal, text, indent);
    format!("{lead}{}\n", lines.join(&format!("\n{:indent$}", "")))
}

/// Wraps a text after `indent` spaces in addition to its own leading ones. Further lines are
/// indented a little more.
pub(super) fn indented(terminal: &Term, text: &str, indent: usize) -> String {
    let text_start = text.trim_start_matches(' ');
    let indent = indent + text.len() - text_start.len();
    let further = indent + FURTHER_LINES_INDENT;
    let lines = wrapped_on(terminal, text_start, further);
    format!(
        "{:indent$}{}\n",
        "",
        lines.join(&format!("\n{:further$}", ""))
    )
}

/// The spaces before further lines, in addition to those of the first one.
const FURTHER_LINES_INDENT: usize = 2;

/// A column of a table, by its name.
#[derive(Clone, Copy)]
pub(super) enum TableColumn {
    Text(&'static str),
    Number(&'static str),
}

/// A table without ruled lines. Each row is one line, and only its last cell is wrapped at the width of a
/// terminal. If the terminal is too narrow for the other cells, each row is a list of its cells.
pub(super) fn table<const N: usize>(columns: [TableColumn; N], rows: Vec<[String; N]>) -> String {
    let names = columns.map(|column| match column {
        TableColumn::Text(name) | TableColumn::Number(name) => name.to_owned(),
    });
    let lines: Vec<&[String; N]> = iter::once(&names).chain(&rows).collect();
    let widths: [usize; N] = array::from_fn(|index| {
        let cells = lines.iter().filter_map(|line| line.get(index));
        let widths = cells.map(|cell| console::measure_text_width(cell));
        widths.max().unwrap_or(0)
    });
    let leading = widths.iter().take(N - 1).map(|width| width + "  ".len());
    let needed = leading.sum::<usize>() + TEXT_COLUMNS_MIN;
    if terminal_width(&Term::stdout()).is_some_and(|available| available < needed) {
        return records(&names, &rows);
    }
    let lines = lines.iter().map(|line| {
        let mut lead = String::new();
        for (index, ((cell, width), column)) in line.iter().zip(widths).zip(columns).enumerate() {
            let padding = " ".repeat(width - console::measure_text_width(cell));
            lead += &match column {
                TableColumn::Number(_) => format!("{padding}{cell}  "),
                TableColumn::Text(_) if index + 1 == N => {
                    return with_hanging_indent(&lead, cell).trim_end().to_owned() + "\n";
                }
                TableColumn::Text(_) => format!("{cell}{padding}  "),
            };
        }
        lead.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// The cells of each row below each other, with the names of their columns.
fn records<const N: usize>(names: &[String; N], rows: &[[String; N]]) -> String {
    let longest = names.iter().map(String::len).max().unwrap_or(0);
    let records = rows.iter().map(|row| {
        let cells = names.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let lines =
            cells.map(|(name, cell)| with_hanging_indent(&format!("{name:longest$}  "), cell));
        lines.collect::<String>()
    });
    let records: Vec<String> = records.collect();
    records.join("\n")
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

    /// The tree, each line wrapped at the width of the terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.add("", "", &mut text);
        text
    }

    /// Adds the tree. `lead` stands before its first line, and `indent` before the others.
    fn add(&self, lead: &str, indent: &str, text: &mut String) {
        let columns = console::measure_text_width(indent);
        let lines = self.lines.iter().flat_map(|line| wrapped(line, columns));
        for (index, line) in lines.enumerate() {
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
