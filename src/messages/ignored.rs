//! The `ignored_paths` of a write.

use std::collections::BTreeSet;

/// Fields of a resource that were sent or named in the mask and not honored.
#[derive(Clone, Debug, Default)]
pub struct Ignored(BTreeSet<&'static str>);

impl Ignored {
    pub fn add(&mut self, fields: impl IntoIterator<Item = &'static str>) {
        self.0.extend(fields);
    }

    pub fn into_fields(self) -> impl Iterator<Item = &'static str> {
        self.0.into_iter()
    }

    /// The fields as paths below `resource`, sorted.
    pub fn into_paths(self, resource: &str) -> Vec<String> {
        let fields = self.0.into_iter();
        fields.map(|field| format!("{resource}.{field}")).collect()
    }
}
