//! Roles of an account.

use super::{ids::RoleId, text::Name};

/// A named role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Unique in the account and never reused.
    pub id: RoleId,
    /// Need not be unique.
    pub name: Name,
}
