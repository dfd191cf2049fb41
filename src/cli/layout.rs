//! Lines and tables that fit the terminal. What is not printed to a terminal is not wrapped.

use std::fmt;

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use console::{AnsiCodeIterator, Term};
use termtree::Tree;

/// The code that ends all styles.
const RESET: &str = "\u{1b}[0m";
/// The fewest columns that a text gets, however deep it is indented.
const TEXT_COLUMNS_MIN: usize = 20;

/// The columns of a terminal; `None` if the stream is none.
fn columns(terminal: &Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked()?;
    Some(usize::from(columns))
}

/// The lines of a text on standard output that has `indent` columns before it.
pub(super) fn wrapped(text: &str, indent: usize) -> Vec<String> {
    wrapped_on(&Term::stdout(), text, indent)
}

fn wrapped_on(terminal: &Term, text: &str, indent: usize) -> Vec<String> {
    let Some(columns) = columns(terminal) else {
        return vec![text.to_owned()];
    };
    let room = columns.saturating_sub(indent).max(TEXT_COLUMNS_MIN);
    let lines = textwrap::wrap(text, room).into_iter();
    within_lines(lines.map(|line| line.into_owned()).collect())
}

/// Ends each style at the end of its line, and begins it again on the next one, so that
/// what stands before a line is not styled.
fn within_lines(lines: Vec<String>) -> Vec<String> {
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

/// The lines of a text that begins with `lead`, under which its further lines stand. For
/// standard output.
pub(super) fn hanging(lead: &str, text: &str) -> String {
    hanging_on(&Term::stdout(), lead, text)
}

/// The same for another terminal.
pub(super) fn hanging_on(terminal: &Term, lead: &str, text: &str) -> String {
    let indent = console::measure_text_width(lead);
    let lines = wrapped_on(terminal, text, indent);
    format!("{lead}{}\n", lines.join(&format!("\n{:indent$}", "")))
}

/// Where a path may be broken: a space without width, which is not printed.
const PATH_BREAK: char = '\u{200b}';
/// The columns between two columns of a table.
const PADDING_COLUMNS: usize = 2;

/// A column of a table.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// Of texts.
    Text(&'static str),
    /// Of ids, which are never broken.
    Id(&'static str),
    /// Of paths, which are broken at their dots.
    Path(&'static str),
    /// Of numbers.
    Number(&'static str),
}

/// A table without rules, whose rows are one line each unless the terminal is too narrow.
pub(super) fn table<const N: usize>(columns: [Column; N], rows: Vec<[String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match self::columns(&Term::stdout()).and_then(|columns| u16::try_from(columns).ok()) {
        Some(columns) => table
            .set_width(columns)
            .set_content_arrangement(ContentArrangement::Dynamic),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let path_columns = path_columns(&columns, &rows);
    table.set_header(columns.map(|column| match column {
        Column::Text(name) | Column::Id(name) | Column::Path(name) => Cell::new(name),
        Column::Number(name) => Cell::new(name).set_alignment(CellAlignment::Right),
    }));
    for row in rows {
        let cells = row
            .into_iter()
            .zip(&columns)
            .map(|(text, column)| match column {
                Column::Path(_) => text.replace('.', &format!(".{PATH_BREAK}")),
                Column::Text(_) | Column::Id(_) | Column::Number(_) => text,
            });
        table.add_row(cells);
    }
    for (index, column) in columns.iter().enumerate() {
        let Some(styled) = table.column_mut(index) else {
            continue;
        };
        // Two spaces are between columns, and none before the first.
        styled.set_padding((0, 2));
        match column {
            Column::Text(_) => {}
            Column::Path(_) => {
                styled.set_delimiter(PATH_BREAK);
                let widest_part = Width::Fixed(path_columns);
                styled.set_constraint(ColumnConstraint::LowerBoundary(widest_part));
            }
            Column::Id(_) => {
                styled.set_constraint(ColumnConstraint::ContentWidth);
            }
            Column::Number(_) => {
                styled.set_constraint(ColumnConstraint::ContentWidth);
                styled.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let lines = table.lines();
    let lines = lines.map(|line| line.replace(PATH_BREAK, "").trim_end().to_owned() + "\n");
    lines.collect()
}

/// The columns that the longest part of a path takes, so that no part is broken.
fn path_columns<const N: usize>(columns: &[Column; N], rows: &[[String; N]]) -> u16 {
    let cells = rows.iter().flat_map(|row| row.iter().zip(columns));
    let parts = cells.flat_map(|(text, column)| match column {
        Column::Path(_) => text.split('.').collect(),
        Column::Text(_) | Column::Id(_) | Column::Number(_) => Vec::new(),
    });
    let widest = parts.map(console::measure_text_width).max().unwrap_or(0);
    let with_dot = widest + ".".len() + PADDING_COLUMNS;
    u16::try_from(with_dot).unwrap_or(u16::MAX)
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
