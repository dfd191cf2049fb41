//! WriteTranslations of steps. Locked translations stay, and the steps get a new etag. The
//! floor does not compare digests of sources.

use std::sync::OnceLock;

use expertise::proto::v1::{
    AutomaticTranslation, TranslationResult, WriteTranslationsRequest, WriteTranslationsResponse,
};
use sqlx::{AssertSqlSafe, PgPool, SqlSafeStr, SqlStr, SqlitePool};
use uuid::Uuid;

use super::{
    Floor,
    schema::Database,
    sql,
    values::{ACCOUNT, etag, now, parse_id},
};

/// Translations of the measured call.
const ITEMS: usize = 100;

impl Floor {
    pub(super) async fn translate(
        &self,
        request: WriteTranslationsRequest,
    ) -> WriteTranslationsResponse {
        let items = request.translations;
        let steps: Vec<Uuid> = items.iter().map(|item| parse_id(&item.guid)).collect();
        match &self.database {
            Database::Sqlite { writer, .. } => write_to_sqlite(writer, &items, &steps).await,
            Database::Postgres(pool) => write_to_postgres(pool, &items, &steps).await,
        }
        .expect("the database answers");
        WriteTranslationsResponse {
            results: vec![TranslationResult::Written.into(); items.len()],
            ignored_paths: Vec::new(),
        }
    }
}

async fn write_to_sqlite(
    pool: &SqlitePool,
    items: &[AutomaticTranslation],
    steps: &[Uuid],
) -> Result<(), sqlx::Error> {
    static MEASURED_SQL: OnceLock<SqlStr> = OnceLock::new();
    let make_sql = |count| AssertSqlSafe(sql::write_translations_sqlite(count)).into_sql_str();
    let sql = match items.len() {
        ITEMS => MEASURED_SQL.get_or_init(|| make_sql(ITEMS)).clone(),
        other => make_sql(other),
    };
    let mut query = sqlx::query(sql);
    for (item, step) in items.iter().zip(steps) {
        query = query
            .bind(ACCOUNT)
            .bind(step)
            .bind(&item.language)
            .bind(&item.title)
            .bind(&item.body)
            .bind(&item.source_digest);
    }
    query = query.bind(etag()).bind(now()).bind(ACCOUNT);
    query = steps.iter().fold(query, |query, step| query.bind(step));
    query = query.bind(Uuid::now_v7()).bind(ACCOUNT);
    query = steps.iter().fold(query, |query, step| query.bind(step));
    query.execute(pool).await.map(drop)
}

async fn write_to_postgres(
    pool: &PgPool,
    items: &[AutomaticTranslation],
    steps: &[Uuid],
) -> Result<(), sqlx::Error> {
    let each = items.iter();
    let languages: Vec<&str> = each.clone().map(|item| item.language.as_str()).collect();
    let titles: Vec<Option<&str>> = each.clone().map(|item| item.title.as_deref()).collect();
    let bodies: Vec<Option<&str>> = each.clone().map(|item| item.body.as_deref()).collect();
    let digests: Vec<&str> = each.map(|item| item.source_digest.as_str()).collect();
    sqlx::query(sql::WRITE_TRANSLATIONS_POSTGRES)
        .bind(ACCOUNT)
        .bind(etag())
        .bind(now())
        .bind(steps)
        .bind(languages)
        .bind(titles)
        .bind(bodies)
        .bind(digests)
        .bind(Uuid::now_v7())
        .execute(pool)
        .await
        .map(drop)
}
