//! Callers: their account, subject and scopes.

use std::fmt;

use strum_macros::IntoStaticStr;

use super::ids::AccountId;

/// Who makes a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The account whose data the call works on.
    pub account: AccountId,
    /// The person or process that makes the call, for the log; may be empty.
    pub subject: String,
    /// What the caller may do.
    pub scopes: Vec<Scope>,
}

/// A permission of a caller. Each rpc needs exactly one; none implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    Read,
    Write,
    Translate,
    Admin,
    Index,
}

impl Scope {
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Translate,
        Self::Admin,
        Self::Index,
    ];

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The scopes in a list that is separated by spaces only (RFC 6749, section 3.3). Unknown names
    /// are skipped, because credentials may also list scopes of other services.
    pub fn parse_list(list: &str) -> Vec<Self> {
        let named = |scope: &Self| list.split(' ').any(|name| name == scope.name());
        Self::ALL.into_iter().filter(named).collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The person or process that makes a call, for log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject(String);

impl Subject {
    /// The maximum length of a subject, in bytes. It is limited because every log line has the
    /// subject.
    pub const MAX_BYTES: usize = 256;

    /// Accepts 1 to [`Self::MAX_BYTES`] bytes without control characters.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=Self::MAX_BYTES).contains(&text.len()) && !text.contains(char::is_control);
        valid.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
