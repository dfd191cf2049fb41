//! The receipt of a write: what the caller sent that was not honored.

use std::collections::BTreeSet;

/// Fields of a resource that were sent or named in a mask and not honored.
#[derive(Debug)]
pub struct Ignored {
    resource: &'static str,
    fields: BTreeSet<&'static str>,
}

impl Ignored {
    /// Nothing ignored yet of a resource, named as the request names it.
    pub fn of(resource: &'static str) -> Self {
        Self {
            resource,
            fields: BTreeSet::new(),
        }
    }

    /// Lists a field.
    pub fn add(&mut self, field: &'static str) {
        self.fields.insert(field);
    }

    /// Lists the fields that were sent.
    pub fn note<const N: usize>(&mut self, fields: [(&'static str, bool); N]) {
        let sent = fields.into_iter().filter(|(_, sent)| *sent);
        self.fields.extend(sent.map(|(field, _)| field));
    }

    /// The fields, without the resource.
    pub fn into_fields(self) -> BTreeSet<&'static str> {
        self.fields
    }

    /// The `ignored_paths` of a response: sorted, each once.
    pub fn into_paths(self) -> Vec<String> {
        let Self { resource, fields } = self;
        let path = |field| format!("{resource}.{field}");
        fields.into_iter().map(path).collect()
    }
}
