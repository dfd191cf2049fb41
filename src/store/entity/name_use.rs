//! The index of the names of variables: which tasks and steps set and read them.

use super::prelude::*;

use crate::domain::{ids::TaskId, sha256::Sha256};

/// The maximum number of bytes of a name in the index. The databases limit the size of a key.
const MAX_NAME_BYTES: usize = 400;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "name_uses")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub account_id: String,
    /// An [`indexed_name`].
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name_use: NameUse,
    /// The task or step.
    #[sea_orm(primary_key, auto_increment = false)]
    pub guid: Uuid,
}

/// What a task or step does with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "i16", db_type = "SmallInteger")]
pub enum NameUse {
    /// It is an observation that sets the name.
    #[sea_orm(num_value = 1)]
    Sets,
    /// One of its conditions reads the name.
    #[sea_orm(num_value = 2)]
    Reads,
}

impl ActiveModelBehavior for ActiveModel {}

/// A full name in the form that the index stores. A long name is truncated and ends with its
/// digest.
pub fn indexed_name(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let digest = Sha256::default().with(name).finish();
    let start = &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
    format!("{start}{}", Uuid::from_bytes(digest).simple())
}

/// An observation's own name within its task, in the form that the index stores. It contains the
/// task, so that a search in one task skips all others.
pub fn indexed_own_name(task: TaskId, name: &str) -> String {
    indexed_name(&format!("{task}.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_still_differ() {
        let name = "🔧".repeat(1_000);
        let indexed = indexed_name(&name);
        assert!(indexed.len() <= MAX_NAME_BYTES + 32);
        assert_ne!(indexed, indexed_name(&format!("{name}x")));
    }
}
