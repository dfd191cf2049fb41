//! Random edits of requests as JSON, and of bytes.

use serde_json::{Value, json};

use crate::kit::{catalogue::Values, rng::Rng};

/// Texts and characters with a meaning in some field, in a syntax, a database or a terminal.
const WORDS: [&str; 49] = [
    "",
    " ",
    "-",
    "a",
    "de",
    "DE",
    "pt-br",
    "zh-Hant-TW",
    "x-private",
    "de-",
    "german",
    "enum",
    "=",
    "!=",
    ">",
    "<",
    "body",
    "name",
    "title",
    "*",
    "translations.de",
    "translations.`pt-BR`.title",
    "translations",
    "task.name",
    "feedback_config",
    "components.7.a = b",
    "components.7.a > 1, 2",
    "components.7",
    "<p>Text</p>",
    "on",
    "off",
    "lamp",
    "/issuer",
    "\0",
    "\u{1}",
    "\t",
    "\n",
    "\u{a0}",
    "\u{200b}",
    "\"",
    "'",
    "\\",
    ",",
    "00000000-0000-0000-0000-000000000000",
    "not-a-uuid",
    "ı",
    "é",
    "\u{301}",
    "🔧",
];
/// Lengths around the limits of texts and lists.
const LENGTHS: [usize; 8] = [17, 33, 101, 200, 201, 401, 1_000, 1_001];
/// Longer items are not repeated.
const MAX_REPEATED_BYTES: usize = 200;

/// Mutates requests.
pub struct Mutator<'a> {
    rng: &'a mut Rng,
    /// Requests whose parts are put into others.
    donors: &'a [(String, Value)],
    /// Ids and the like of what is stored.
    stored: Vec<&'a str>,
}

impl<'a> Mutator<'a> {
    pub fn new(rng: &'a mut Rng, donors: &'a [(String, Value)], values: &'a Values) -> Self {
        let stored = values.values().filter_map(Value::as_str).collect();
        Self {
            rng,
            donors,
            stored,
        }
    }

    /// Changes a request in a few places.
    pub fn mutate(&mut self, request: &mut Value) {
        for _ in 0..=self.rng.below(4) {
            self.change(request, "");
        }
    }

    /// Changes the value of a member with this name, or one within it.
    fn change(&mut self, value: &mut Value, name: &str) {
        if !self.rng.one_in(4) {
            let mut parts: Vec<(&str, &mut Value)> = match value {
                Value::Object(members) => members.iter_mut().map(|(k, v)| (&**k, v)).collect(),
                Value::Array(items) => items.iter_mut().map(|item| (name, item)).collect(),
                _ => Vec::new(),
            };
            if !parts.is_empty() {
                let (name, part) = parts.swap_remove(self.rng.below(parts.len()));
                return self.change(part, name);
            }
        }
        match value {
            Value::Object(members) if self.rng.one_in(3) => {
                let names: Vec<String> = members.keys().cloned().collect();
                if let Some(member) = self.rng.try_pick(&names).and_then(|it| members.remove(it))
                    && self.rng.one_in(2)
                {
                    members.insert(self.word(), member);
                }
            }
            Value::Object(members) => {
                if let Some(Value::Object(other)) = self.donor(name) {
                    let other: Vec<_> = other.into_iter().collect();
                    members.extend(self.rng.try_pick(&other).cloned());
                }
            }
            Value::Array(items) => {
                let new = self.donor(name);
                let new = new.map_or(Vec::new(), |it| match it {
                    Value::Array(items) => items,
                    item => vec![item],
                });
                edit(self.rng, items, new);
            }
            Value::String(text) if !self.rng.one_in(3) => {
                let mut letters: Vec<char> = text.chars().collect();
                let word = self.word().chars().collect();
                edit(self.rng, &mut letters, word);
                *text = letters.into_iter().collect();
            }
            _ => *value = self.donor(name).unwrap_or_else(|| self.scalar()),
        }
    }

    /// A value of a member with this name in another request, or of any kind.
    fn donor(&mut self, name: &str) -> Option<Value> {
        if self.rng.one_in(4) {
            return Some(self.scalar());
        }
        let mut found = Vec::new();
        for (_, donor) in self.donors {
            find(donor, "", name, &mut found);
        }
        self.rng.try_pick(&found).map(|found| (*found).clone())
    }

    fn scalar(&mut self) -> Value {
        let numbers = [
            json!(0),
            json!(1),
            json!(-1),
            json!(7),
            json!(500),
            json!(501),
            json!(i32::MAX),
            json!(i32::MIN),
            json!(i64::MAX.to_string()),
            json!(i64::MIN.to_string()),
            json!(-0.0),
            json!(0.1),
            json!(1e308),
            json!(5e-324),
            json!("NaN"),
            json!("Infinity"),
            json!(true),
            json!(null),
            json!([]),
            json!({}),
        ];
        match self.rng.one_in(2) {
            true => self.rng.pick(&numbers).clone(),
            false => self.word().into(),
        }
    }

    fn word(&mut self) -> String {
        match self.rng.below(10) {
            0 => "x".repeat(*self.rng.pick(&LENGTHS)),
            1 => "ü".repeat(*self.rng.pick(&LENGTHS)),
            2..6 => (*self.rng.pick(&WORDS)).to_owned(),
            _ => (*self.rng.pick(&self.stored)).to_owned(),
        }
    }
}

/// The values of members with a name.
fn find<'a>(value: &'a Value, name: &str, wanted: &str, found: &mut Vec<&'a Value>) {
    if name == wanted {
        found.push(value);
    }
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| find(value, name, wanted, found)),
        Value::Array(items) => items
            .iter()
            .for_each(|item| find(item, name, wanted, found)),
        _ => {}
    }
}

/// Edits bytes in a few places.
pub fn mutate_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(4) {
        let byte = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff, rng.clone().next() as u8]);
        edit(rng, bytes, vec![byte]);
        let at = rng.below(bytes.len().max(1));
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
    }
}

/// Removes, cuts, repeats or moves items of a sequence, or inserts others.
fn edit<T: Clone>(rng: &mut Rng, items: &mut Vec<T>, new: Vec<T>) {
    let at = rng.below(items.len() + 1);
    let end = (at + rng.below(8)).min(items.len());
    let piece = items[at..end].to_vec();
    match rng.below(8) {
        0 => drop(items.drain(at..end)),
        1 => items.truncate(at),
        2 => drop(items.splice(at..at, piece)),
        3 if rng.one_in(8) && size_of_val(&*piece) < MAX_REPEATED_BYTES => {
            let times = *rng.pick(&LENGTHS);
            drop(items.splice(at..at, std::iter::repeat_n(piece, times).flatten()));
        }
        4 => items.rotate_left(at),
        5 => drop(items.splice(at..end, new)),
        _ => drop(items.splice(at..at, new)),
    }
}
