//! `tests/calls.json`: every call of the API with its scope, requests, and what they name. The
//! examples of docs/reference.md read it, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls.json");
    let text = std::fs::read_to_string(file).expect(file);
    let catalogue = serde_json::from_str(&text);
    catalogue.unwrap_or_else(|error| panic!("tests/calls.json: {error}"))
});

/// What placeholders such as `$task` stand for.
pub type Values = BTreeMap<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[serde(rename = "about")]
    _about: Vec<String>,
    parts: Map<String, Value>,
    /// The calls that make the resources of an account, in order.
    pub setup: Vec<Setup>,
    /// Fields such as `Task.name` that name nothing in the account, by the kind of their content.
    pub fields: BTreeMap<String, Vec<String>>,
    /// For each field of a request with pages, a request for another listing.
    pub other_listing: BTreeMap<String, Value>,
    pub reasons_of_every_call: Vec<String>,
    /// By names such as `TaskService/GetTask`.
    pub calls: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    pub call: String,
    pub request: Value,
    /// For each placeholder, the JSON pointer to its value in the response, or another placeholder.
    keep: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub scope: String,
    #[serde(default)]
    pub writes: bool,
    /// The reasons with which it can fail, in addition to the common ones.
    pub reasons: Vec<String>,
    /// Requests that are accepted. `example` is shown in docs/reference.md.
    pub requests: BTreeMap<String, Value>,
    /// More requests to which `fields` and `refused` refer.
    #[serde(default)]
    bases: BTreeMap<String, Value>,
    #[serde(default)]
    pub names: Vec<Value>,
    #[serde(default)]
    pub fields: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    pub refused: Vec<Refusal>,
    /// How a repeated request id and a dry run are tested.
    #[serde(default)]
    pub repeat: Vec<Repeat>,
    pub pages: Option<Pages>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    #[serde(rename = "in", default = "example")]
    pub request: String,
    /// A JSON merge patch of the request.
    pub change: Value,
    /// A reason, or violations such as `task.name FIELD_REQUIRED`.
    pub fails: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    pub request: String,
    /// Merge patches that make other payloads, one for each field. The first is accepted.
    pub other: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// The field of the response with the items.
    pub items: String,
    /// Requests for a first page.
    pub of: Vec<Value>,
}

fn example() -> String {
    "example".to_owned()
}

impl Entry {
    /// A request, or a base of rules.
    pub fn base(&self, name: &str) -> &Value {
        let found = self.requests.get(name).or_else(|| self.bases.get(name));
        found.unwrap_or_else(|| panic!("no request {name}"))
    }
}

impl Setup {
    /// Keeps values of the response, whose fields have their names in the proto files.
    pub fn keep(&self, response: &Value, values: &mut Values) {
        for (name, from) in &self.keep {
            let found = match from.strip_prefix('$') {
                Some(other) => values.get(other),
                None => response.pointer(from),
            };
            let found = found.unwrap_or_else(|| panic!("{} returns no {name}", self.call));
            values.insert(name.clone(), found.clone());
        }
    }
}

pub fn catalogue() -> &'static Catalogue {
    &CATALOGUE
}

/// The entry of a call.
pub fn entry(call: &str) -> &'static Entry {
    let entry = catalogue().calls.get(call);
    entry.unwrap_or_else(|| panic!("{call} is not in tests/calls.json"))
}

impl Catalogue {
    /// The kind of a field such as `Task.name` or `Task.translations[key]`.
    pub fn kind_of(&self, field: &str) -> Option<&str> {
        let mut kinds = self.fields.iter();
        let found = kinds.find(|(_, fields)| fields.iter().any(|known| known == field));
        found.map(|(kind, _)| kind.as_str())
    }

    /// The calls that make what stands for the placeholders of a request, in order.
    pub fn setup_of(&self, request: &Value) -> Vec<&Setup> {
        let mut needed = BTreeSet::new();
        self.placeholders(request, &mut needed);
        let mut calls: Vec<&Setup> = Vec::new();
        for setup in self.setup.iter().rev() {
            if setup.keep.keys().any(|name| needed.contains(name)) {
                self.placeholders(&setup.request, &mut needed);
                let copied = setup
                    .keep
                    .values()
                    .filter_map(|from| from.strip_prefix('$'));
                needed.extend(copied.map(str::to_owned));
                calls.insert(0, setup);
            }
        }
        calls
    }

    fn placeholders(&self, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                if let Some(name) = text.strip_prefix('$') {
                    match self.parts.get(name) {
                        Some(part) => self.placeholders(part, found),
                        None => drop(found.insert(name.trim_start_matches("their_").to_owned())),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.placeholders(item, found)),
            Value::Object(members) => {
                if let Some(part) = members.get("$part").and_then(Value::as_str) {
                    self.placeholders(&self.parts[part], found);
                }
                members
                    .values()
                    .for_each(|value| self.placeholders(value, found));
            }
            _ => {}
        }
    }

    /// The value with what its placeholders stand for.
    pub fn expand(&self, value: &Value, values: &Values) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self.named(name, values),
                None => value.clone(),
            },
            Value::Array(items) => Value::Array(self.expand_list(items, values)),
            Value::Object(members) => self.expand_object(members, values),
            other => other.clone(),
        }
    }

    /// The expanded items. A text that stands for a list is replaced by its items.
    pub fn expand_list(&self, items: &[Value], values: &Values) -> Vec<Value> {
        let items = items
            .iter()
            .flat_map(|item| match self.expand(item, values) {
                Value::Array(items) if item.is_string() => items,
                other => vec![other],
            });
        items.collect()
    }

    fn named(&self, name: &str, values: &Values) -> Value {
        if let Some(value) = values.get(name) {
            value.clone()
        } else if let Some(part) = self.parts.get(name) {
            self.expand(part, values)
        } else if let Some(own) = name.strip_prefix("their_") {
            self.named(own, values)
        } else if name == "new" {
            json!(uuid::Uuid::now_v7().to_string())
        } else {
            panic!("nothing stands for ${name}")
        }
    }

    fn expand_object(&self, members: &Map<String, Value>, values: &Values) -> Value {
        if let Some(part) = members.get("$part").and_then(Value::as_str) {
            let (mut inner, mut change) = (values.clone(), Map::new());
            for (name, value) in members {
                let value = self.expand(value, values);
                match name.strip_prefix('$') {
                    Some(name) => drop(inner.insert(name.to_owned(), value)),
                    None => drop(change.insert(name.clone(), value)),
                }
            }
            let part = self.expand(&self.parts[part], &inner);
            return changed(part, &Value::Object(change));
        }
        if let Some((name, of)) = members.iter().next()
            && let Some(form) = name.strip_prefix('$')
            && members.len() == 1
            && !values.contains_key(form)
        {
            return self.generated(form, of, values);
        }
        let members = members.iter().map(|(name, value)| {
            let name = name.strip_prefix('$').map_or(name.as_str(), |name| {
                values[name].as_str().expect("the name of a member")
            });
            (name.to_owned(), self.expand(value, values))
        });
        Value::Object(members.collect())
    }

    /// `{"$200": "x"}` is a long text, `{"$200": [E]}` a list of so many E, and `{"$200": {"$n": E}}`
    /// an object of so many. `$n` is the index, and `$tag` a language. `{"$lists": 32}` and
    /// `{"$objects": 32}` are nested so deep. `$concat` joins texts.
    fn generated(&self, form: &str, of: &Value, values: &Values) -> Value {
        let nested = |wrap: fn(Value) -> Value| {
            let depth = of.as_u64().expect("a depth");
            (1..depth).fold(wrap(json!("end")), |inner, _| wrap(inner))
        };
        match form {
            "lists" => return nested(|inner| json!([inner])),
            "objects" => return nested(|inner| json!({ "a": inner })),
            "concat" => {
                let parts = self.expand(of, values);
                let parts = parts.as_array().expect("texts").iter();
                return parts.filter_map(Value::as_str).collect::<String>().into();
            }
            _ => {}
        }
        let count: usize = form.parse().unwrap_or_else(|_| panic!("what is ${form}?"));
        let item = |index: usize| {
            let mut values = values.clone();
            values.insert("n".to_owned(), json!(index.to_string()));
            values.insert("tag".to_owned(), json!(language(index)));
            values
        };
        match of {
            Value::String(text) => {
                let texts = (0..count).map(|index| text.replace("$n", &index.to_string()));
                texts.collect::<String>().into()
            }
            Value::Array(items) => {
                let items = (0..count).map(|index| self.expand(&items[0], &item(index)));
                items.collect()
            }
            of => {
                let objects = (0..count).map(|index| self.expand(of, &item(index)));
                let members = objects.filter_map(|object| object.as_object().cloned());
                Value::Object(members.flatten().collect())
            }
        }
    }
}

/// A well-formed language tag for each of the first 676 indices.
fn language(index: usize) -> String {
    let letter = |index: usize| char::from(b'a' + (index % 26) as u8);
    format!("q{}{}", letter(index / 26), letter(index))
}

/// The value after a JSON merge patch (RFC 7396).
pub fn changed(value: Value, change: &Value) -> Value {
    let Value::Object(changes) = change else {
        return change.clone();
    };
    let mut members = match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, change) in changes {
        let before = members.remove(name).unwrap_or_default();
        if !change.is_null() {
            members.insert(name.clone(), changed(before, change));
        }
    }
    Value::Object(members)
}
