//! Lines and tables that fit the terminal. What is not printed to a terminal is not wrapped.

use std::fmt;

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use console::{AnsiCodeIterator, Term};
use termtree::Tree;
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

/// The spaces between two columns of a table.
const PADDING_COLUMNS: u16 = 2;

/// A column of a table.
#[derive(Clone, Copy)]
pub(super) enum TableColumn {
    /// Of texts.
    Text(&'static str),
    /// Of ids and paths, which are never broken.
    Whole(&'static str),
    /// Of numbers.
    Number(&'static str),
}

impl TableColumn {
    fn name(self) -> &'static str {
        match self {
            Self::Text(name) | Self::Whole(name) | Self::Number(name) => name,
        }
    }

    /// The least width that a cell needs on a terminal.
    fn width_min(self, cell: &str) -> usize {
        match self {
            Self::Text(_) => {
                let words = cell.split_whitespace().map(console::measure_text_width);
                words.max().unwrap_or(0).min(TEXT_COLUMNS_MIN)
            }
            Self::Whole(_) | Self::Number(_) => console::measure_text_width(cell),
        }
    }
}

/// A table without ruled lines. Each row is one line, unless the terminal is too narrow.
/// Where even the words would not fit, each row is a list of its cells.
pub(super) fn table<const N: usize>(columns: [TableColumn; N], rows: Vec<[String; N]>) -> String {
    let widths_min: [usize; N] = std::array::from_fn(|index| {
        let Some(column) = columns.get(index) else {
            return 0;
        };
        let cells = rows.iter().filter_map(|row| row.get(index));
        let cells = cells.map(|cell| column.width_min(cell));
        cells.max().unwrap_or(0).max(column.name().len())
    });
    let padding = usize::from(PADDING_COLUMNS);
    let needed = widths_min.iter().map(|width| width + padding).sum();
    match terminal_width(&Term::stdout()) {
        Some(available) if available < needed => records(&columns, &rows),
        available => wide_table(columns, widths_min, rows, available),
    }
}

fn wide_table<const N: usize>(
    columns: [TableColumn; N],
    widths_min: [usize; N],
    rows: Vec<[String; N]>,
    available: Option<usize>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match available.and_then(|width| u16::try_from(width).ok()) {
        Some(width) => table
            .set_width(width)
            .set_content_arrangement(ContentArrangement::Dynamic),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(columns.map(|column| match column {
        TableColumn::Text(name) | TableColumn::Whole(name) => Cell::new(name),
        TableColumn::Number(name) => Cell::new(name).set_alignment(CellAlignment::Right),
    }));
    for row in rows {
        table.add_row(row);
    }
    for (index, (column, width_min)) in columns.iter().zip(widths_min).enumerate() {
        let Some(table_column) = table.column_mut(index) else {
            continue;
        };
        // None before a column, so that the first begins its line.
        table_column.set_padding((0, PADDING_COLUMNS));
        match column {
            TableColumn::Text(_) => {
                let width = u16::try_from(width_min).unwrap_or(u16::MAX);
                let width = width.saturating_add(PADDING_COLUMNS);
                table_column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            }
            TableColumn::Whole(_) => {
                table_column.set_constraint(ColumnConstraint::ContentWidth);
            }
            TableColumn::Number(_) => {
                table_column.set_constraint(ColumnConstraint::ContentWidth);
                table_column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// The cells of each row below each other, with the names of their columns.
fn records<const N: usize>(columns: &[TableColumn; N], rows: &[[String; N]]) -> String {
    let names = columns.map(TableColumn::name);
    let longest = names.map(str::len).into_iter().max().unwrap_or(0);
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

/// The columns that each level of a tree takes.
const LEVEL_COLUMNS: usize = 4;

impl Branch {
    pub fn new(lines: Vec<String>, leaves: Vec<Self>) -> Self {
        Self { lines, leaves }
    }

    fn tree(&self, depth: usize) -> Tree<String> {
        let lines = self.lines.iter();
        let lines = lines.flat_map(|line| wrapped(line, depth * LEVEL_COLUMNS));
        let lines: Vec<String> = lines.collect();
        let leaves = self.leaves.iter().map(|leaf| leaf.tree(depth + 1));
        Tree::new(lines.join("\n"))
            .with_leaves(leaves)
            .with_multiline(true)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree(0).fmt(f)
    }
}
