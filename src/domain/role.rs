//! Roles that an account has named.

use super::{ids::RoleId, text::Name};

/// A named role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Never used twice in an account.
    pub id: RoleId,
    /// Need not be unique.
    pub name: Name,
}
