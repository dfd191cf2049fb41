//! Plans of PostgreSQL for all values of a statement's parameters, and whether they stay within an
//! account: on tables in partitions by account, such a plan scans one partition.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    str::FromStr,
};

use expertise::{config::DatabaseUrl, store::migrate};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};

/// Copies each table with an account, without its rows and foreign keys, in 16 partitions, and has
/// new connections find the copies.
const PARTITION: &str = "
    CREATE SCHEMA partitioned;
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT table_name FROM information_schema.columns
            WHERE table_schema = 'public' AND column_name = 'account_id'
        LOOP
            EXECUTE format('CREATE TABLE partitioned.%1$I (LIKE public.%1$I INCLUDING ALL)
                PARTITION BY HASH (account_id)', name);
            FOR number IN 0..15 LOOP
                EXECUTE format('CREATE TABLE partitioned.%I PARTITION OF partitioned.%I
                    FOR VALUES WITH (MODULUS 16, REMAINDER %s)', name || '_p' || number, name, number);
            END LOOP;
        END LOOP;
        EXECUTE format('ALTER DATABASE %I SET search_path = partitioned, public', current_database());
    END $$";

/// Creates the schema in an empty database, with tables in partitions by account.
pub async fn create_partitioned_tables(url: &str) {
    let database = DatabaseUrl::parse(url).expect("the URL of a database");
    migrate(&database).await.expect("the schema");
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    connection.execute(PARTITION).await.expect("partitions");
}

/// The numbers of the partitions that the [generic plan](generic_plan) of a statement scans. A
/// partition that is pruned when the plan starts is not scanned. Statements of referential
/// triggers are not covered.
pub async fn scanned(
    connection: &mut PgConnection,
    sql: &str,
) -> Result<BTreeSet<u32>, sqlx::Error> {
    let plan = generic_plan(connection, sql).await?;
    let scans = plan.lines().filter(|line| line.contains(" Scan"));
    Ok(scans.flat_map(partitions_in).collect())
}

/// The plan of a statement that PostgreSQL makes without the values of its parameters. Every
/// text parameter, so the account too, is then set to one value.
pub async fn generic_plan(connection: &mut PgConnection, sql: &str) -> Result<String, sqlx::Error> {
    const COLUMNS: &str = "SELECT column_name::text, data_type::text \
         FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name <> 'seaql_migrations'";
    const TYPES: &str =
        "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'planned'";
    let columns = sqlx::raw_sql(COLUMNS).fetch_all(&mut *connection).await?;
    let columns = columns.iter().map(|row| (row.get(0), row.get(1)));
    let prepare = format!(
        "SET plan_cache_mode = force_generic_plan; DEALLOCATE ALL; PREPARE planned{} AS {}",
        parameter_types(sql),
        with_types(sql, &columns.collect())
    );
    connection.execute(AssertSqlSafe(prepare)).await?;
    let types = sqlx::raw_sql(TYPES).fetch_one(&mut *connection).await?;
    let types: String = types.try_get_unchecked(0)?;
    let types = types.trim_matches(['{', '}']).split(',');
    let values = types
        .filter(|name| !name.is_empty())
        .map(|name| match name {
            array if array.trim_matches('"').ends_with("[]") => "'{}'",
            "text" => "'account'",
            "uuid" | "\"uuid\"" => "'00000000-0000-0000-0000-000000000000'",
            "boolean" => "true",
            "bytea" => "'\\x'",
            _ => "0",
        });
    let values: Vec<&str> = values.collect();
    let values = match values.is_empty() {
        true => String::new(),
        false => format!("({})", values.join(", ")),
    };
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE planned{values}");
    let plan = sqlx::raw_sql(AssertSqlSafe(explain));
    let plan = plan.fetch_all(&mut *connection).await?;
    let lines = plan.iter().map(|row| row.get::<String, _>(0));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The numbers of the partitions that a line of a plan names, such as `steps_p3`.
fn partitions_in(line: &str) -> Vec<u32> {
    numbers_after("_p", line).collect()
}

/// The numbers that follow a mark in a text.
fn numbers_after<N: FromStr>(mark: &str, text: &str) -> impl Iterator<Item = N> {
    let after = text.split(mark).skip(1);
    let digits = after.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.filter_map(|digits| digits?.parse().ok())
}

/// The declaration of the parameters: PostgreSQL finds out the types of those that are
/// used, and the others are texts.
fn parameter_types(sql: &str) -> String {
    let used: BTreeSet<usize> = numbers_after("$", sql).collect();
    let types = (1..=used.last().copied().unwrap_or_default()).map(|number| {
        let is_used = used.contains(&number);
        if is_used { "unknown" } else { "text" }
    });
    let types: Vec<&str> = types.collect();
    match types.is_empty() {
        true => String::new(),
        false => format!(" ({})", types.join(", ")),
    }
}

/// The statement with a cast of each parameter in a list of values and in a row of an
/// `INSERT … SELECT`. The driver tells PostgreSQL the types of parameters, which it cannot
/// find out from these places.
fn with_types(sql: &str, types: &BTreeMap<String, String>) -> String {
    let mut typed = String::new();
    let mut done = 0;
    while let Some((names, cells)) = next_cells(sql, done) {
        typed.push_str(&sql[done..cells.start]);
        done = cells.end;
        let cells: Vec<&str> = sql[cells].split(", ").collect();
        let names: Vec<&str> = names.split(", ").collect();
        // A row may lack the first columns, which are the same in all rows.
        let names = &names[names.len().saturating_sub(cells.len())..];
        let cells = cells.iter().zip(names);
        let cells = cells.map(|(cell, name)| match types.get(*name) {
            Some(kind) if cell.starts_with('$') => format!("{cell}::{kind}"),
            // The columns of a list of values that no table has are numbers.
            None if cell.starts_with('$') => format!("{cell}::bigint"),
            Some(_) | None => (*cell).to_owned(),
        });
        typed.push_str(&cells.collect::<Vec<_>>().join(", "));
    }
    typed + &sql[done..]
}

/// The next row of values from `done` on: the names of its columns, and where it is.
fn next_cells(sql: &str, done: usize) -> Option<(&str, Range<usize>)> {
    let values = sql[done..].find("(VALUES (");
    let values = values.map(|at| done + at + "(VALUES (".len());
    let select = sql.match_indices("INSERT INTO ").find_map(|(at, _)| {
        let select = at + sql[at..].find(')')? + ") SELECT ".len();
        (select >= done && sql[..select].ends_with(") SELECT ")).then_some(select)
    });
    let start = values.into_iter().chain(select).min()?;
    let ends = [")", " FROM ", " WHERE "].map(|end| sql[start..].find(end));
    let length = ends.into_iter().flatten().min()?;
    // The names are the last list before the row: of an INSERT, a CTE or a comparison.
    let names = sql[..start].rfind(") ").unwrap_or(start);
    let first = sql[..names].rfind('(').map_or(names, |open| open + 1);
    Some((&sql[first..names], start..start + length))
}
