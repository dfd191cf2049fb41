//! Requests by the descriptors of the contract: those of the catalogue, mutated field by field.

use std::collections::HashMap;

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value,
};

use super::mutations::mutate_text;
use crate::kit::{
    calls::Mark,
    catalogue::{Values, catalogue},
    rng::Rng,
};

/// Texts with a meaning in some field.
const WORDS: [&str; 40] = [
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
    "components.7.lamp = off",
    "components.7",
    "<p>Text</p>",
    "on",
    "off",
    "lamp",
    "/issuer",
    "\0",
    "00000000-0000-0000-0000-000000000000",
    "not-a-uuid",
    "ÄÖÜ",
    "é",
    "🔧",
];
const WHOLE: [i64; 14] = [
    0,
    1,
    -1,
    2,
    3,
    6,
    7,
    8,
    500,
    501,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
];
const NUMBERS: [f64; 9] = [
    0.0,
    -0.0,
    0.1,
    1e308,
    f64::NAN,
    f64::INFINITY,
    9_007_199_254_740_993.0,
    -1.0,
    5e-324,
];
/// Lengths around the limits of texts and lists.
const LENGTHS: [usize; 8] = [17, 33, 101, 200, 201, 401, 1_000, 1_001];

/// Every request of the catalogue with the call that it is for.
pub fn requests(values: &Values) -> Vec<(String, DynamicMessage)> {
    let entries = catalogue().calls.iter();
    let requests = entries.flat_map(|(call, entry)| {
        entry.requests.values().map(|request| {
            let request = catalogue().expand(request, values);
            (call.clone(), Mark::NONE.message(call, request))
        })
    });
    requests.collect()
}

/// Mutates messages.
pub struct Mutator<'a> {
    pub rng: &'a mut Rng,
    /// Ids and the like of what is stored.
    pub words: &'a [String],
    /// Messages whose parts are put into others.
    pub donors: &'a [(String, DynamicMessage)],
}

impl Mutator<'_> {
    /// Changes a message in a few places.
    pub fn mutate(&mut self, message: &mut DynamicMessage) {
        for _ in 0..=self.rng.below(4) {
            self.change(message, 0);
        }
    }

    /// Changes a message or one within it.
    fn change(&mut self, message: &mut DynamicMessage, depth: usize) {
        let present: Vec<FieldDescriptor> = message.fields().map(|(field, _)| field).collect();
        if !present.is_empty() && !self.rng.one_in(3) {
            let field = self.rng.pick(&present).clone();
            self.change_value(message.get_field_mut(&field), &field, depth);
            return;
        }
        let fields: Vec<FieldDescriptor> = message.descriptor().fields().collect();
        if fields.is_empty() {
            return;
        }
        let field = self.rng.pick(&fields).clone();
        if self.rng.one_in(4) {
            message.clear_field(&field);
        } else {
            let value = self.field_value(&field, depth);
            message.set_field(&field, value);
        }
    }

    fn change_value(&mut self, value: &mut Value, field: &FieldDescriptor, depth: usize) {
        match value {
            Value::Message(message) => self.change(message, depth + 1),
            Value::List(list) => self.change_list(list, field, depth),
            Value::Map(map) => self.change_map(map, field, depth),
            Value::String(text) if !self.rng.one_in(3) => {
                *text = mutate_text(self.rng, text, &WORDS);
            }
            _ => *value = self.value(&field.kind(), depth),
        }
    }

    fn change_list(&mut self, list: &mut Vec<Value>, field: &FieldDescriptor, depth: usize) {
        let at = self.rng.below(list.len() + 1);
        if at == list.len() {
            return list.push(self.value(&field.kind(), depth));
        }
        match self.rng.below(12) {
            0 => drop(list.remove(at)),
            1 => list.insert(at, list[at].clone()),
            2 => {
                let other = self.rng.below(list.len());
                list.swap(at, other);
            }
            3 => list.clear(),
            4 if self.rng.one_in(8) && size(&list[at]) < 200 => {
                let times = *self.rng.pick(&LENGTHS);
                list.resize(times, list[at].clone());
            }
            _ => match &mut list[at] {
                Value::Message(message) => self.change(message, depth + 1),
                Value::String(text) => *text = mutate_text(self.rng, text, &WORDS),
                other => *other = self.value(&field.kind(), depth),
            },
        }
    }

    fn change_map(
        &mut self,
        map: &mut HashMap<MapKey, Value>,
        field: &FieldDescriptor,
        depth: usize,
    ) {
        // A hash map has another order in each run.
        let mut keys: Vec<MapKey> = map.keys().cloned().collect();
        keys.sort();
        let Some(entry) = (!keys.is_empty()).then(|| self.rng.pick(&keys).clone()) else {
            *map = self.map(field, depth);
            return;
        };
        match self.rng.below(5) {
            0 => drop(map.remove(&entry)),
            1 => map.extend(self.map(field, depth)),
            2 => {
                let value = map.remove(&entry).expect("an entry");
                map.insert(MapKey::String(self.word()), value);
            }
            _ => {
                if let Some(Value::Message(message)) = map.get_mut(&entry) {
                    self.change(message, depth + 1);
                }
            }
        }
    }

    fn field_value(&mut self, field: &FieldDescriptor, depth: usize) -> Value {
        if field.is_map() {
            return Value::Map(self.map(field, depth));
        }
        if field.is_list() {
            let count = 1 + self.rng.below(3);
            let values = (0..count).map(|_| self.value(&field.kind(), depth));
            return Value::List(values.collect());
        }
        self.value(&field.kind(), depth)
    }

    fn map(&mut self, field: &FieldDescriptor, depth: usize) -> HashMap<MapKey, Value> {
        let Kind::Message(entry) = field.kind() else {
            return HashMap::new();
        };
        let kind = entry.map_entry_value_field().kind();
        let count = 1 + self.rng.below(2);
        (0..count)
            .map(|_| (MapKey::String(self.word()), self.value(&kind, depth)))
            .collect()
    }

    fn value(&mut self, kind: &Kind, depth: usize) -> Value {
        let whole = *self.rng.pick(&WHOLE);
        match kind {
            Kind::Bool => Value::Bool(self.rng.one_in(2)),
            Kind::String => Value::String(self.word()),
            Kind::Bytes => Value::Bytes(self.word().into_bytes().into()),
            Kind::Double => Value::F64(*self.rng.pick(&NUMBERS)),
            Kind::Float => Value::F32(0.5),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(whole),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(self.rng.next()),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(saturate(whole)),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(7),
            Kind::Enum(_) => Value::EnumNumber(saturate(whole)),
            Kind::Message(message) => Value::Message(self.message(message, depth)),
        }
    }

    /// A message of a type: a part of another request, or a new one.
    fn message(&mut self, descriptor: &MessageDescriptor, depth: usize) -> DynamicMessage {
        if !self.rng.one_in(3) {
            let (_, donor) = self.rng.pick(self.donors);
            let mut parts = Vec::new();
            gather(donor, descriptor, &mut parts);
            if !parts.is_empty() {
                return (*self.rng.pick(&parts)).clone();
            }
        }
        let mut message = DynamicMessage::new(descriptor.clone());
        // Groups contain groups, and documents documents.
        if depth < 40 {
            self.change(&mut message, depth + 1);
        }
        message
    }

    fn word(&mut self) -> String {
        match self.rng.below(10) {
            0 => "x".repeat(*self.rng.pick(&LENGTHS)),
            1 => "ü".repeat(*self.rng.pick(&LENGTHS)),
            2..5 => (*self.rng.pick(&WORDS)).to_owned(),
            5 => {
                let word = self.rng.pick(self.words);
                mutate_text(self.rng, word, &WORDS)
            }
            _ => self.rng.pick(self.words).clone(),
        }
    }
}

fn saturate(whole: i64) -> i32 {
    i32::try_from(whole).unwrap_or(if whole < 0 { i32::MIN } else { i32::MAX })
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::Message(message) => prost::Message::encoded_len(message),
        Value::String(text) => text.len(),
        _ => 8,
    }
}

/// The messages of a type within a message.
fn gather<'a>(
    message: &'a DynamicMessage,
    of: &MessageDescriptor,
    found: &mut Vec<&'a DynamicMessage>,
) {
    for value in messages_in(message) {
        if value.descriptor() == *of {
            found.push(value);
        }
        gather(value, of, found);
    }
}

/// The messages that are the values of a message's fields.
pub fn messages_in(message: &DynamicMessage) -> Vec<&DynamicMessage> {
    let mut found = Vec::new();
    for (_, value) in message.fields() {
        match value {
            Value::Message(inner) => found.push(inner),
            Value::List(list) => found.extend(list.iter().filter_map(Value::as_message)),
            Value::Map(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                found.extend(entries.into_iter().filter_map(|(_, v)| v.as_message()));
            }
            _ => {}
        }
    }
    found
}
