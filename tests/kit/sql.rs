//! Statements that go to a database directly, past the service.

use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection,
    sqlite::SqliteConnectOptions,
};

/// A connection of a test's own, which checks no foreign keys.
pub enum SqlConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl SqlConnection {
    /// Connects to the database at this URL.
    pub async fn open(url: &str) -> Self {
        match url.strip_prefix("sqlite:") {
            Some(file) => {
                let options = SqliteConnectOptions::new().filename(file);
                let options = options.foreign_keys(false);
                let connection = SqliteConnection::connect_with(&options).await;
                Self::Sqlite(connection.expect("the file"))
            }
            None => {
                let connection = PgConnection::connect(url).await;
                let mut connection = connection.expect("a connection");
                let unchecked = connection.execute("SET session_replication_role = replica");
                unchecked.await.expect("the right of a superuser");
                Self::Postgres(connection)
            }
        }
    }

    /// Executes statements.
    pub async fn execute(&mut self, sql: &str) {
        let statements = sqlx::raw_sql(AssertSqlSafe(sql));
        let done = match self {
            Self::Sqlite(connection) => statements.execute(connection).await.map(drop),
            Self::Postgres(connection) => statements.execute(connection).await.map(drop),
        };
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The number that a query returns.
    pub async fn number(&mut self, sql: &str) -> i64 {
        let query = AssertSqlSafe(sql.to_owned());
        let number = match self {
            Self::Sqlite(connection) => sqlx::query_scalar(query).fetch_one(connection).await,
            Self::Postgres(connection) => sqlx::query_scalar(query).fetch_one(connection).await,
        };
        number.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
