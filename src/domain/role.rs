//! Roles of an account.

use super::{ids::RoleId, text::Name};

/// A named role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The id, unique in the account and never reused.
    pub id: RoleId,
    /// The name, which need not be unique.
    pub name: Name,
}
