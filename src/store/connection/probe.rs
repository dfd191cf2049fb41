//! Whether the database answers.

use std::time::Duration;

use sea_orm::EntityTrait;
use sqlx::{
    Connection, Executor, PgConnection,
    postgres::{PgConnectOptions, PgDatabaseError},
};
use tokio::{sync::Mutex, time::timeout};

use super::{PAGE_KEY, database::Database};
use crate::store::schema::entity::server_key;

/// How long the database may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// SQLSTATE too_many_connections.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// Asks the database over a connection of its own: that calls hold all others is
/// no sign of trouble.
pub enum HealthProbe {
    /// A connection to PostgreSQL, while there is one. One that does not answer in
    /// time is dropped, never waited for.
    Postgres {
        options: Box<PgConnectOptions>,
        connection: Mutex<Option<PgConnection>>,
        /// Asked in its place when there is no room for one more connection.
        pool: Database,
    },
    /// A pool that is for this alone.
    Sqlite(Database),
}

impl HealthProbe {
    pub fn of_postgres(options: PgConnectOptions, pool: Database) -> Self {
        Self::Postgres {
            options: Box::new(options),
            connection: Mutex::new(None),
            pool,
        }
    }

    /// Whether the database answers.
    pub async fn answers(&self) -> bool {
        let asked = async {
            match self {
                Self::Postgres {
                    options,
                    connection,
                    pool,
                } => match ask(options, connection).await {
                    Ok(()) => true,
                    Err(err) if is_too_many(&err) => reads(pool).await,
                    Err(_) => false,
                },
                Self::Sqlite(pool) => reads(pool).await,
            }
        };
        timeout(ANSWER_TIMEOUT, asked).await.unwrap_or(false)
    }

    pub async fn close(&self) {
        match self {
            Self::Postgres { connection, .. } => {
                if let Some(connection) = connection.lock().await.take() {
                    let _ = connection.close().await;
                }
            }
            Self::Sqlite(pool) => pool.close().await,
        }
    }
}

/// Over the open connection, or over a new one when that has ended.
async fn ask(
    options: &PgConnectOptions,
    kept: &Mutex<Option<PgConnection>>,
) -> Result<(), sqlx::Error> {
    let mut kept = kept.lock().await;
    // Taken, so that it is gone when this is cancelled.
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

fn is_too_many(err: &sqlx::Error) -> bool {
    let err = err.as_database_error();
    err.and_then(|err| err.try_downcast_ref::<PgDatabaseError>())
        .is_some_and(|err| err.code() == TOO_MANY_CONNECTIONS)
}

async fn reads(db: &Database) -> bool {
    let key = server_key::Entity::find_by_id(PAGE_KEY).one(db).await;
    matches!(key, Ok(Some(_)))
}
