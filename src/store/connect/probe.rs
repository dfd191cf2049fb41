//! The health check of the database.

use std::{
    borrow::Cow,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use sea_orm::DatabaseConnection;
use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use super::{
    connect_failure::{NO_ANSWER, connect_failure},
    page_key, postgres,
};
use crate::config::PostgresUrl;

/// How long the database may take to answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

const REPLACED_FILE: &str = "its file was removed, moved or replaced, and the server still writes to it: \
    stop the server before a file is moved or restored";

/// Checks whether the database answers. A database whose connections are all in use does not count
/// as down.
pub enum HealthProbe {
    Postgres {
        pool: DatabaseConnection,
        /// For a new connection, when the pool does not answer.
        url: PostgresUrl,
    },
    /// A pool only for checks and the file, or the only connection of an in-memory database.
    Sqlite {
        pool: DatabaseConnection,
        file: Option<OpenedFile>,
    },
}

impl HealthProbe {
    /// Checks whether the database answers; the error says why it does not.
    pub async fn check(&self) -> Result<(), Cow<'static, str>> {
        let check = async {
            match self {
                Self::Postgres { pool, url } => check_postgres(pool, url).await,
                Self::Sqlite { pool, file } => {
                    if let Some(file) = file
                        && file.is_replaced().await
                    {
                        return Err(REPLACED_FILE.into());
                    }
                    let read = page_key(pool).await.map(drop);
                    read.map_err(|_| "its file cannot be read: check the file and its disk".into())
                }
            }
        };
        timeout(CHECK_TIMEOUT, check)
            .await
            .unwrap_or(Err(NO_ANSWER.into()))
    }
}

/// If the pool does not respond, opens a new connection to find out why: either calls use all
/// connections of the pool, or the database accepts no connections. The new connection reads the
/// password file again, and the pool then uses that password.
async fn check_postgres(
    pool: &DatabaseConnection,
    url: &PostgresUrl,
) -> Result<(), Cow<'static, str>> {
    if let Ok(Ok(_)) = timeout(CHECK_TIMEOUT / 2, page_key(pool)).await {
        return Ok(());
    }
    let options = postgres::options(url);
    let connect = async {
        let mut connection = PgConnection::connect_with(&options).await?;
        connection.ping().await?;
        connection.close().await
    };
    match connect.await {
        Ok(()) => {
            pool.get_postgres_connection_pool()
                .set_connect_options(options);
            Ok(())
        }
        Err(err) => Err(connect_failure(&options, &err).why),
    }
}

pub struct OpenedFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl OpenedFile {
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            identity: identity(&fs::metadata(path)?),
            path: path.to_owned(),
        })
    }

    /// Whether the file was replaced or removed; false if that cannot be determined.
    async fn is_replaced(&self) -> bool {
        match tokio::fs::metadata(&self.path).await {
            Ok(found) => identity(&found) != self.identity,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}
