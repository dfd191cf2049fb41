//! Fields of requests that name something.

use serde_json::Value;

use crate::kit::catalogue::{Entry, Values, catalogue};

/// A field that names something in the account, and the outcomes when it is not there.
#[derive(Debug)]
pub struct NamingField {
    /// Its path; `.*` at its end: every such field below.
    path: String,
    pub kinds: Vec<String>,
    pub request: String,
    /// The outcome for a foreign or absent id: a reason, or `OK`.
    pub absent: String,
    pub malformed: String,
    /// The outcome for an empty text.
    pub empty: Option<String>,
}

impl NamingField {
    fn parse(text: &str) -> Self {
        let (field, outcomes) = text.split_once(" -> ").expect(text);
        let mut words = field.split(' ');
        let mut outcomes = outcomes.split(", ").map(str::to_owned);
        Self {
            path: words.next().expect(text).to_owned(),
            kinds: words
                .next()
                .expect(text)
                .split(',')
                .map(str::to_owned)
                .collect(),
            request: words
                .next()
                .map_or_else(|| "example".to_owned(), |name| name.replace('@', "")),
            absent: outcomes.next().expect(text),
            malformed: outcomes.next().expect(text),
            empty: outcomes.next(),
        }
    }

    pub fn covers(&self, path: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.path,
        }
    }
}

impl Entry {
    /// The fields that name something in the account.
    pub fn names(&self) -> Vec<NamingField> {
        let names = catalogue().expand_list(&self.names, &Values::new());
        let names = names.iter().filter_map(Value::as_str);
        names.map(NamingField::parse).collect()
    }
}
