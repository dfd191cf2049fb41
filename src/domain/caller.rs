//! What is known of a caller: its subject and what it may do.

use std::fmt;

/// What a caller may do. Each rpc needs exactly one; none implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Get, list and export.
    Read,
    /// Create, update, delete and import.
    Write,
    /// The automatic translation process.
    Translate,
    /// Roles.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Translate, Self::Admin];

    /// The name as credentials spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Translate => "translate",
            Self::Admin => "admin",
        }
    }

    /// The scopes that a space-separated list names. Names of no scope of ours
    /// are left out: credentials may speak of other services too.
    pub fn parse_list(list: &str) -> Vec<Self> {
        let named = |scope: &Self| list.split_ascii_whitespace().any(|n| n == scope.name());
        Self::ALL.into_iter().filter(named).collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The person or process behind a call, as a log line may name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject(String);

impl Subject {
    /// The longest subject, in bytes: it stands in every log line.
    pub const MAX: usize = 256;

    /// Accepts a text without control characters that is neither empty nor too
    /// long.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=Self::MAX).contains(&text.len()) && !text.contains(char::is_control);
        valid.then(|| Self(text.to_owned()))
    }

    /// The subject as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
