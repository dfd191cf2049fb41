//! Texts on a terminal.

use std::io::{self, Write};

/// Writes a line to standard error. Where that cannot be written to, nobody can be told.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A text on one line, which can do no more to a terminal than be read: without what
/// moves the cursor, and without what turns the order of what follows round.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| if is_unseemly(c) { ' ' } else { c };
    text.chars().map(shown).collect()
}

fn is_unseemly(c: char) -> bool {
    // Line and paragraph separators, and what sets, opens and closes directions.
    let moves = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || moves
}

/// JSON in which characters that some terminals act on stand by their numbers. They can
/// be in strings only.
pub(crate) fn plain_json(json: String) -> String {
    let acts = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    if !json.contains(acts) {
        return json;
    }
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match acts(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_turns_or_moves_what_follows() {
        let text = "a\u{1b}[2J\nb\u{202e}c\u{2066}d\u{2028}e\u{9b}f";
        assert_eq!(plain(text), "a [2J b c d e f");
        let joined = "👩\u{200d}🔧 می\u{200c}خواهم";
        assert_eq!(plain(joined), joined);
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({"a\u{9b}": "\u{7f} \u{9d}x é"});
        let shown = plain_json(value.to_string());
        assert!(
            !shown.contains(|c| matches!(c, '\u{7f}'..='\u{9f}')),
            "{shown}"
        );
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap_or_default();
        assert_eq!(read, value);
    }
}
