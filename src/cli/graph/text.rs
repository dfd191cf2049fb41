//! How wide texts are drawn, in the size of their font. Fonts differ, so a text is taken to be as
//! wide as in a wide one.

/// The width of a text in an ordinary column, about that of a small letter.
pub(super) fn width(text: &str) -> f32 {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> f32 {
    let columns = console::measure_text_width(c.encode_utf8(&mut [0; 4]));
    match c {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' | 'I' => 0.6,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '—' | '…' => 1.6,
        _ if columns == 0 => 0.0,
        _ if columns > 1 => 1.9,
        _ if c.is_uppercase() => 1.25,
        _ => 1.0,
    }
}

/// The lines of a text, each of this width at most. Words that are longer are broken.
pub(super) fn wrapped(text: &str, most: f32) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut add = |word: &str| {
        let line = lines.last_mut();
        match line.filter(|line| width(line) + width(word.trim_end()) <= most) {
            Some(line) => line.push_str(word),
            None => lines.push(word.to_owned()),
        }
    };
    for word in text.split_inclusive(' ') {
        match width(word) <= most {
            true => add(word),
            false => word.chars().for_each(|c| add(c.encode_utf8(&mut [0; 4]))),
        }
    }
    let lines = lines.into_iter().map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// The text, or as much of its beginning as has room.
pub(super) fn shortened(text: &str, most: f32) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut room = most - char_width('…');
    let fitting = text.chars().take_while(|c| {
        room -= char_width(*c);
        room >= 0.0
    });
    fitting.chain(['…']).collect()
}
