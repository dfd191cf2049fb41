//! The `ignored_paths` of a write.

use std::collections::BTreeSet;

/// Fields of a resource that were sent or named in the mask and not honored.
#[derive(Debug, Default)]
pub struct Ignored(BTreeSet<&'static str>);

impl Ignored {
    pub fn add(&mut self, fields: impl IntoIterator<Item = &'static str>) {
        self.0.extend(fields);
    }

    /// Adds the fields that were sent.
    pub fn add_sent<const N: usize>(&mut self, fields: [(&'static str, bool); N]) {
        let sent = fields.into_iter().filter(|(_, sent)| *sent);
        self.add(sent.map(|(field, _)| field));
    }

    pub fn into_fields(self) -> impl Iterator<Item = &'static str> {
        self.0.into_iter()
    }

    /// The fields as paths below `resource`, sorted.
    pub fn into_paths(self, resource: &str) -> Vec<String> {
        let fields = self.into_fields();
        fields.map(|field| format!("{resource}.{field}")).collect()
    }
}
