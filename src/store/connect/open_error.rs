//! Why a database cannot be opened.

use std::{borrow::Cow, fmt::Display};

use sea_orm::DbErr;

use crate::store::error::{database_error, describe, is_connection_lost};

/// Why the database cannot be used: one line that says what is wrong and what to do, without the
/// driver's own text, which may quote names and values.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be opened until a setting is changed.
    #[error("{0}")]
    WrongSetting(Cow<'static, str>),
    /// It cannot be reached at present.
    #[error("{0}")]
    Unreachable(Cow<'static, str>),
    /// Something else is wrong with it.
    #[error("{0}")]
    Unusable(Cow<'static, str>),
}

impl OpenError {
    pub fn is_wrong_setting(&self) -> bool {
        matches!(self, Self::WrongSetting(_))
    }

    pub(super) fn unusable(why: impl Into<Cow<'static, str>>) -> Self {
        Self::Unusable(why.into())
    }

    /// The schema cannot be created, changed or read.
    pub(super) fn schema(why: impl Display) -> Self {
        Self::unusable(format!(
            "the database schema cannot be read or brought up to date: {why}"
        ))
    }
}

/// The problem if only part of a dump was restored.
pub(super) const INCOMPLETE: &str = "a table or its rows are missing, perhaps because only part of \
    a dump was restored: restore a full dump, or use an empty database";

impl From<DbErr> for OpenError {
    /// The error of reading or changing the schema.
    fn from(err: DbErr) -> Self {
        if is_connection_lost(&err) {
            return Self::Unreachable(
                "the connection to the database was lost: check that it runs and can be reached"
                    .into(),
            );
        }
        let (code, message) = database_error(&err)
            .map(|err| (err.code().unwrap_or_default(), err.message()))
            .unwrap_or_default();
        // SQLite reports all of these as code 1 (SQLITE_ERROR).
        let says = |part| code == "1" && message.contains(part);
        match &*code {
            // insufficient_privilege
            "42501" => Self::schema(
                "this user may not create tables: grant CREATE on the schema to the user, or make \
                 it the owner of the database",
            ),
            // undefined_table
            state if state == "42P01" || says("no such table") => Self::schema(INCOMPLETE),
            // duplicate_table
            state if state == "42P07" || says("already exists") => Self::schema(
                "the database has tables of another application: use a separate database",
            ),
            _ => Self::schema(describe(&err)),
        }
    }
}
