//! Statements that go to a database directly, past the service.

use std::time::Duration;

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

    /// Makes every entry of the change feed older.
    pub async fn age_changes(&mut self, by: Duration) {
        let micros = by.as_micros();
        let age = format!("UPDATE changes SET changed_ts = changed_ts - {micros}");
        // A server that sequences or deletes changes locks the feed first.
        let lock = match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            // Citus locks rows of several accounts only by changing them.
            Self::Postgres(_) => "BEGIN; UPDATE change_feeds SET head = head",
        };
        self.execute(&format!("{lock}; {age}; COMMIT")).await;
    }

    /// The tables that have rows of an account.
    pub async fn tables_with(&mut self, account: &str) -> Vec<String> {
        let mut tables = Vec::new();
        for table in self.tenant_tables().await {
            let count = format!("SELECT count(*) FROM {table} WHERE account_id = '{account}'");
            if self.number(&count).await > 0 {
                tables.push(table);
            }
        }
        tables
    }

    /// The tables whose rows belong to an account, in their order.
    pub async fn tenant_tables(&mut self) -> Vec<String> {
        let mut columns = self.tenant_columns().await;
        columns.retain(|(_, name, _)| name == "account_id");
        let mut tables: Vec<String> = columns.into_iter().map(|(table, ..)| table).collect();
        tables.sort();
        tables
    }

    /// The columns of all tables whose rows belong to an account: each a table, a name,
    /// and whether it is a text.
    pub async fn tenant_columns(&mut self) -> Vec<(String, String, bool)> {
        let columns = match self {
            Self::Sqlite(connection) => {
                sqlx::query_as(
                    "SELECT t.name, c.name, lower(c.type) LIKE 'text%' \
                     FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'",
                )
                .fetch_all(connection)
                .await
            }
            Self::Postgres(connection) => {
                sqlx::query_as(
                    "SELECT table_name::text, column_name::text, data_type = 'text' \
                     FROM information_schema.columns WHERE table_schema = 'public'",
                )
                .fetch_all(connection)
                .await
            }
        };
        let mut columns: Vec<(String, String, bool)> = columns.expect("the columns");
        let tenants = columns.iter().filter(|(_, name, _)| name == "account_id");
        let tenants: Vec<String> = tenants.map(|(table, _, _)| table.clone()).collect();
        columns.retain(|(table, _, _)| tenants.contains(table));
        columns
    }
}
