//! The output of commands: lines and trees for people, JSON for scripts.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};
use console::Term;
use prost::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    CliError, document,
    layout::{fitted, table},
};
use crate::client::CallError;
pub(super) use crate::terminal::{escape_formatting, print_error, print_message, sanitize};

/// How often [`reader_gone`] looks for the reader.
const READER_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For scripts
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct OutputFormat {
    /// The format of the output: text for people, json for scripts; documents are always JSON
    #[arg(long, default_value = "text")]
    pub format: Format,
}

/// Prints to standard output. Fails if the text cannot be written, for example to a full disk. It
/// is not a failure if the reader has closed its end.
pub fn print(text: &str) -> Result<(), CliError> {
    print_to_reader(text).map(|_| ())
}

/// Prints to standard output. Returns false if the reader has closed its end.
pub(super) fn print_to_reader(text: &str) -> Result<bool, CliError> {
    let mut out = io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(true),
        Err(reason) if reason.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(reason) => Err(CliError::cannot_write("to standard output", reason)),
    }
}

/// Waits until the reader of standard output has closed its end.
pub(super) async fn reader_gone() {
    let out = io::stdout();
    loop {
        let mut polled = [PollFd::new(&out, PollFlags::empty())];
        let now = Timespec::default();
        let is_polled = poll(&mut polled, Some(&now)).is_ok();
        let ended = PollFlags::HUP | PollFlags::ERR;
        if is_polled && polled.iter().any(|it| it.revents().intersects(ended)) {
            return;
        }
        sleep(READER_INTERVAL).await;
    }
}

/// Prints to standard output, with lines that fit a terminal.
pub(super) fn print_text(text: &str) -> Result<(), CliError> {
    print(&fitted(text, &Term::stdout()))
}

/// Prints to standard error, with lines that fit a terminal.
pub(super) fn print_note(text: &str) {
    if !text.is_empty() {
        print_error(fitted(text, &Term::stderr()).trim_end());
    }
}

/// Prints messages of the API as a JSON array, or as a table if there are any.
pub(super) fn print_list<M: Message, const N: usize>(
    format: Format,
    name: &str,
    messages: &[M],
    columns: [&str; N],
    row: impl Fn(&M) -> [String; N],
) -> Result<(), CliError> {
    match format {
        Format::Json => print_array(document::json_list(name, messages)),
        Format::Text if messages.is_empty() => Ok(()),
        Format::Text => {
            let rows: Vec<[String; N]> = messages.iter().map(row).collect();
            print_text(&table(columns, &rows))
        }
    }
}

/// Prints a text, or JSON instead.
pub(super) fn print_either(format: Format, text: &str, json: &Value) -> Result<(), CliError> {
    match format {
        Format::Text => print_text(text),
        Format::Json => print_json(json),
    }
}

pub(super) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let json = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::cannot_write("JSON", error.into()))?;
    print(&escape_formatting(&(json + "\n")))
}

/// The results of a command: a text for each, or one JSON array with a line for each.
pub(super) struct Results {
    format: Format,
    count: usize,
    /// The first line of each failure.
    failures: Vec<String>,
}

impl Results {
    pub fn new(format: Format) -> Self {
        Self {
            format,
            count: 0,
            failures: Vec::new(),
        }
    }

    pub fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    pub fn failed(&self) -> usize {
        self.failures.len()
    }

    pub fn add(&mut self, text: &str, json: &Value) -> Result<(), CliError> {
        self.count += 1;
        if self.format == Format::Text {
            return print_text(text);
        }
        let lead = if self.count == 1 { "[\n" } else { ",\n" };
        print(&format!("{lead}{}", escape_formatting(&json.to_string())))
    }

    /// Prints a failure. Its text goes to standard error.
    pub fn add_failure(&mut self, text: &str, json: &Value) -> Result<(), CliError> {
        let first = text.lines().next().unwrap_or_default();
        self.failures.push(first.trim_end_matches(':').to_owned());
        match self.format {
            Format::Text => {
                self.count += 1;
                print_note(text);
                Ok(())
            }
            Format::Json => self.add("", json),
        }
    }

    /// Ends the list, and returns the exit code. After a summary on standard error, repeats the
    /// failures if other lines were printed.
    pub fn end(self, summary: Option<&str>) -> Result<ExitCode, CliError> {
        match (self.format, self.count) {
            (Format::Text, count) => {
                let is_repeated = summary.is_some() && count > 1;
                let failures = self.failures.iter().filter(|_| is_repeated);
                let lines = summary.into_iter().chain(failures.map(String::as_str));
                lines.for_each(print_error);
            }
            (Format::Json, 0) => print("[]\n")?,
            (Format::Json, _) => print("\n]\n")?,
        }
        Ok(match self.failures.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

pub(super) fn print_array(messages: impl IntoIterator<Item = Value>) -> Result<(), CliError> {
    let mut results = Results::new(Format::Json);
    for message in messages {
        results.add("", &message)?;
    }
    results.end(None).map(|_| ())
}

/// The message of a response with additional members.
pub(super) fn with_members(mut message: Value, members: Value) -> Value {
    if let (Value::Object(message), Value::Object(members)) = (&mut message, members) {
        message.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
    }
    message
}

/// An error as JSON: that of a call with its code and details.
pub(super) fn error_json(error: &CliError) -> Value {
    match error {
        CliError::Refused(error) => call_error_json(error),
        error => json!({"message": error.to_string()}),
    }
}

pub(super) fn call_error_json(error: &CallError) -> Value {
    serde_json::to_value(error).unwrap_or_default()
}

pub(super) fn step_count(count: usize) -> String {
    match count {
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    }
}
