//! Marks in the texts of requests.

use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value as Field};
use serde_json::Value;

use crate::kit::{catalogue::catalogue, contract};

/// The prefix of every free text of a request.
#[derive(Clone, Copy)]
pub struct Mark {
    pub text: &'static str,
    /// The mark of keys in JSON and of languages.
    pub key: &'static str,
    /// Whether bodies take more than one HTTP/2 frame.
    pub long_bodies: bool,
}

impl Mark {
    pub const NONE: Self = Self {
        text: "",
        key: "",
        long_bodies: false,
    };

    /// The request of a call with marks.
    pub fn message(&self, call: &str, request: Value) -> DynamicMessage {
        let mut request = contract::message(call, request);
        if !self.text.is_empty() {
            self.mark(&mut request, "");
        }
        request
    }

    /// Marks a message, or JSON within one.
    fn mark(&self, message: &mut DynamicMessage, of: &str) {
        let name = message.descriptor().name().to_owned();
        let is_json = message.descriptor().package_name() == "google.protobuf";
        let fields: Vec<_> = message.fields().map(|(field, _)| field).collect();
        for field in fields {
            let path = format!("{name}.{}", field.name());
            let kind_of = |path: &str| catalogue().kind_of(path).unwrap_or_default();
            let (kind, key_kind) = match is_json {
                true => (of, of),
                false => (kind_of(&path), kind_of(&format!("{path}[key]"))),
            };
            // Timestamps, masks and the like hold no free text.
            if is_json && of != "json" {
                continue;
            }
            match message.get_field_mut(&field) {
                Field::Map(entries) => {
                    let marked = entries.drain().map(|(key, mut value)| {
                        self.mark_value(&mut value, kind, &path);
                        (self.marked_key(key, key_kind), value)
                    });
                    let marked: Vec<_> = marked.collect();
                    entries.extend(marked);
                }
                Field::List(items) => {
                    items
                        .iter_mut()
                        .for_each(|item| self.mark_value(item, kind, &path));
                }
                value => self.mark_value(value, kind, &path),
            }
        }
    }

    fn mark_value(&self, value: &mut Field, kind: &str, path: &str) {
        match value {
            Field::Message(inner) => self.mark(inner, kind),
            Field::String(text) if kind == "language" => *text = self.language(text),
            Field::String(text) if matches!(kind, "text" | "json") => {
                text.insert_str(0, self.text);
                if self.long_bodies && path == "Step.body" {
                    *text = text.repeat(1_200);
                }
            }
            _ => {}
        }
    }

    fn marked_key(&self, key: MapKey, kind: &str) -> MapKey {
        match key {
            MapKey::String(key) if kind == "language" => MapKey::String(self.language(&key)),
            MapKey::String(key) if !kind.is_empty() => MapKey::String(format!("{}{key}", self.key)),
            other => other,
        }
    }

    fn language(&self, tag: &str) -> String {
        match self.key {
            "" => tag.to_owned(),
            key => format!("{tag}-x-{key}"),
        }
    }
}
