//! Rules of tests/calls.json for the values of fields.

use serde_json::Value;

use crate::kit::catalogue::{Entry, Values, catalogue};

/// Values that a field accepts, and values that it refuses.
#[derive(Debug)]
pub struct FieldRule {
    /// A path such as `step.tags[0]`.
    pub path: String,
    pub accepted: Vec<Value>,
    pub refused: Vec<Value>,
    pub reason: String,
    /// The violation; `*` at its end: at the place or below it.
    pub place: String,
}

impl Entry {
    /// The rules for the fields of a request.
    pub fn rules(&self, name: &str, values: &Values) -> Vec<FieldRule> {
        let rules = catalogue().expand_list(&self.fields[name], values);
        rules.into_iter().map(FieldRule::from).collect()
    }
}

impl From<Value> for FieldRule {
    fn from(rule: Value) -> Self {
        let text = |index: usize| rule[index].as_str().map(str::to_owned);
        let list = |index: usize| rule[index].as_array().expect("a list of values").clone();
        let path = text(0).expect("a path");
        Self {
            accepted: list(1),
            refused: list(2),
            reason: text(3).expect("a reason"),
            place: text(4).unwrap_or_else(|| path.clone()),
            path,
        }
    }
}
