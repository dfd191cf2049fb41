//! Why a database cannot be opened.

/// Why the database cannot be used: one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not valid.
    #[error(
        "EXPERTISE_DATABASE_URL is not a valid PostgreSQL URL: check its port and its parameters, such as sslmode=require"
    )]
    InvalidUrl,
    /// The path cannot be that of an SQLite file.
    #[error("EXPERTISE_DATABASE_URL names the file {path}, which cannot be used: {why}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The SQLite file cannot be opened or created.
    #[error("EXPERTISE_DATABASE_URL names the file {path}, which cannot be used: {why}")]
    File {
        /// The path of the file.
        path: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// PostgreSQL refuses the connection, and waiting does not change that.
    #[error("EXPERTISE_DATABASE_URL names {address}, which cannot be used: {why}")]
    Connect {
        /// Host, port and database, without user and password.
        address: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// PostgreSQL cannot be reached at present.
    #[error("EXPERTISE_DATABASE_URL names {address}, which cannot be reached: {why}")]
    Unreachable {
        /// Host, port and database, without user and password.
        address: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The server is older than what the service works with.
    #[error("PostgreSQL {found} is too old: use version 12 or later")]
    OldServer {
        /// Its version.
        found: String,
    },
    /// The database has another encoding than UTF-8.
    #[error(
        "the database has the encoding {found}, which cannot store every text: create one with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`, and set EXPERTISE_DATABASE_URL to it"
    )]
    Encoding {
        /// Its encoding.
        found: String,
    },
    /// The connection was lost before the schema had been read.
    #[error("the connection to the database was lost: check that it runs and can be reached")]
    Lost,
    /// The schema has unknown migrations.
    #[error(
        "the database has a schema that this version does not know: run the version that created it, or set EXPERTISE_DATABASE_URL to another database"
    )]
    UnknownSchema,
    /// A copy into the database did not finish.
    #[error(
        "EXPERTISE_DATABASE_URL names a database with an unfinished copy, so it has only a part of the data: copy into a new database"
    )]
    UnfinishedCopy,
    /// The SQLite file does not exist, and migrating is switched off.
    #[error(
        "the file {path} does not exist: check the path, or run `expertise migrate` to create it"
    )]
    NoFile {
        /// Its path.
        path: String,
    },
    /// The database has no schema, and migrating is switched off.
    #[error("the database is empty: run `expertise migrate`, or set EXPERTISE_MIGRATE=true")]
    NoSchema,
    /// The schema is older than this version, and migrating is switched off.
    #[error(
        "the database schema is older than this version (missing migrations: {pending}): run `expertise migrate`, or set EXPERTISE_MIGRATE=true"
    )]
    OldSchema {
        /// How many migrations are missing.
        pending: usize,
    },
    /// The user of PostgreSQL lacks permissions that a server needs.
    #[error("the user of EXPERTISE_DATABASE_URL lacks permissions: grant it {missing}")]
    Permissions {
        /// What is missing on which tables, as GRANT has it.
        missing: String,
    },
    /// SQLite has no Citus.
    #[error(
        "--distribute is for PostgreSQL: set EXPERTISE_DATABASE_URL to a PostgreSQL database, or leave out --distribute"
    )]
    DistributedSqlite,
    /// The database has tables that are not distributed.
    #[error(
        "--distribute is for an empty database, and this one has tables that were created without it: use an empty database, or leave out --distribute"
    )]
    NotDistributed,
    /// Citus is not installed.
    #[error(
        "--distribute needs Citus in this database: run CREATE EXTENSION citus there, or leave out --distribute"
    )]
    NoCitus,
    /// The schema cannot be created, changed or read.
    #[error("the database schema cannot be read or brought up to date: {0}")]
    Schema(String),
}

impl OpenError {
    /// Whether the database cannot be opened until a setting is changed.
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::InvalidUrl | Self::Path { .. } | Self::DistributedSqlite => true,
            Self::File { .. }
            | Self::NoFile { .. }
            | Self::Connect { .. }
            | Self::Unreachable { .. }
            | Self::OldServer { .. }
            | Self::Encoding { .. }
            | Self::Lost
            | Self::UnknownSchema
            | Self::UnfinishedCopy
            | Self::NoSchema
            | Self::OldSchema { .. }
            | Self::Permissions { .. }
            | Self::NotDistributed
            | Self::NoCitus
            | Self::Schema(_) => false,
        }
    }
}
