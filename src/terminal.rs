//! Texts for a terminal.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::ProgressBar;

const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// A line on standard error that shows that work is in progress, if standard error is a terminal.
pub(crate) fn spinner() -> Option<ProgressBar> {
    let spinner = io::stderr().is_terminal().then(ProgressBar::new_spinner)?;
    spinner.enable_steady_tick(TICK_INTERVAL);
    Some(spinner)
}

/// Shows on a terminal that work is in progress, until it is done.
pub async fn with_spinner<T>(message: &'static str, work: impl Future<Output = T>) -> T {
    let spinner = spinner();
    spinner.iter().for_each(|it| it.set_message(message));
    let done = work.await;
    spinner.iter().for_each(ProgressBar::finish_and_clear);
    done
}

/// Prints a line to standard error. Errors are ignored, because there is no other place to report
/// them.
pub fn print_error(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints an error or a warning of this program to standard error. Its lines are sanitized, because
/// it may name files.
pub fn print_message(message: impl fmt::Display) {
    let message = message.to_string();
    let lines: Vec<String> = message.lines().map(sanitize).collect();
    print_error(&format!("expertise: {}", lines.join("\n")));
}

/// Replaces control characters, line separators and bidirectional formatting by spaces.
pub(crate) fn sanitize(text: &str) -> String {
    text.replace(|c: char| c.is_control() || is_formatting(c), " ")
}

/// Escapes DEL, the C1 control characters, line separators and bidirectional formatting. In JSON
/// they can only be in strings, so the value stays the same.
pub(crate) fn escape_formatting(json: &str) -> String {
    let mut sanitized = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}') || is_formatting(c) {
            sanitized.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            sanitized.push(c);
        }
    }
    sanitized
}

/// A word of a shell command, in single quotes unless none of its characters is special.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Line separators and bidirectional formatting, which show a text in another order.
fn is_formatting(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidirectional_characters_become_spaces() {
        let text = "a\u{1b}[2J\nb\u{202e}c\u{2066}d\u{2028}e\u{9b}f";
        assert_eq!(sanitize(text), "a [2J b c d e f");
        let joined = "👩\u{200d}🔧 می\u{200c}خواهم";
        assert_eq!(sanitize(joined), joined);
    }

    #[test]
    fn sanitized_json_is_the_same_value() {
        let value = serde_json::json!({"a\u{9b}": "\u{7f} \u{9d}x é \u{202e}\u{2067}\u{2028}"});
        let shown = escape_formatting(&value.to_string());
        assert!(
            shown
                .chars()
                .all(|c| c.is_ascii() && !c.is_control() || c == 'é'),
            "{shown}"
        );
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap_or_default();
        assert_eq!(read, value);
    }
}
