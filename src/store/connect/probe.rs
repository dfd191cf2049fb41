//! The health check of the database.

use std::{
    borrow::Cow,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use sea_orm::DatabaseConnection;
use sqlx::{Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tokio::{sync::Mutex, time::timeout};

use super::{
    connect_failure::{NO_ANSWER, TOO_MANY_CONNECTIONS, connect_failure, state},
    page_key,
};

/// How long the database may take to answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

const UNREADABLE_FILE: &str = "its file cannot be read: check the file and its disk";
const REPLACED_FILE: &str = "its file was removed, moved or replaced, and the server still writes to it: \
    stop the server before a file is moved or restored";

/// Checks whether the database answers. The check has its own connection, so the database does not seem
/// down when calls use all others.
pub enum HealthProbe {
    /// A connection to PostgreSQL, opened when needed. One that does not answer in time
    /// is dropped.
    Postgres {
        options: Box<PgConnectOptions>,
        connection: Mutex<Option<PgConnection>>,
        /// Used when PostgreSQL has no connection left for the check.
        pool: DatabaseConnection,
    },
    /// A pool only for checks and the file, or the only connection of an in-memory database.
    Sqlite {
        pool: DatabaseConnection,
        file: Option<OpenedFile>,
    },
}

/// The file that was opened at a path.
pub struct OpenedFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl OpenedFile {
    /// The file that is at the path now.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            identity: identity(&fs::metadata(path)?),
            path: path.to_owned(),
        })
    }

    /// Whether it is still there; true if that cannot be determined.
    async fn is_there(&self) -> bool {
        match tokio::fs::metadata(&self.path).await {
            Ok(found) => identity(&found) == self.identity,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

impl HealthProbe {
    /// Checks whether the database answers; the error says why it does not.
    pub async fn check(&self) -> Result<(), Cow<'static, str>> {
        let check = async {
            match self {
                Self::Postgres {
                    options,
                    connection,
                    pool,
                } => match query(options, connection).await {
                    Err(err)
                        if state(&err).as_deref() == Some(TOO_MANY_CONNECTIONS)
                            && answers_in_time(pool).await =>
                    {
                        Ok(())
                    }
                    outcome => outcome.map_err(|err| connect_failure(options, &err).why),
                },
                Self::Sqlite {
                    file: Some(file), ..
                } if !file.is_there().await => Err(REPLACED_FILE.into()),
                Self::Sqlite { pool, .. } => match page_key(pool).await {
                    Ok(_) => Ok(()),
                    Err(_) => Err(UNREADABLE_FILE.into()),
                },
            }
        };
        timeout(CHECK_TIMEOUT, check)
            .await
            .unwrap_or(Err(NO_ANSWER.into()))
    }

    /// Closes the connection of the check.
    pub async fn close(&self) {
        match self {
            Self::Postgres { connection, .. } => {
                if let Some(connection) = connection.lock().await.take() {
                    let _ = connection.close().await;
                }
            }
            Self::Sqlite { pool, .. } => drop(pool.close_by_ref().await),
        }
    }
}

/// Queries over the open connection, or over a new one when that has failed.
async fn query(
    options: &PgConnectOptions,
    kept: &Mutex<Option<PgConnection>>,
) -> Result<(), sqlx::Error> {
    let mut kept = kept.lock().await;
    // Taken out, so that cancelling this drops the connection.
    if let Some(mut connection) = kept.take()
        && connection.execute("SELECT 1").await.is_ok()
    {
        *kept = Some(connection);
        return Ok(());
    }
    let mut connection = PgConnection::connect_with(options).await?;
    connection.execute("SELECT 1").await?;
    *kept = Some(connection);
    Ok(())
}

/// Whether a pool answers so soon that there is time left to say why not: the driver tries for long
/// to get a connection where the database has none left.
async fn answers_in_time(pool: &DatabaseConnection) -> bool {
    matches!(timeout(CHECK_TIMEOUT / 2, page_key(pool)).await, Ok(Ok(_)))
}
