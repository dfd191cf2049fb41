//! Rows of the service that tests count or change, past the service.

use std::time::Duration;

use crate::kit::sql::SqlConnection;

impl SqlConnection {
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
