//! Reads rows of steps by the position of their columns. SeaORM reads columns by name, which takes a tenth
//! of the time of a call that reads a hundred steps.

use sea_orm::{
    ColumnTrait, DbErr, FromQueryResult, QueryResult, QuerySelect, Select, sea_query::Expr,
};

use super::steps::Bodies;
use crate::store::entity::step::{self, Column, Entity};

/// The row of a step, without columns that these reads do not use.
pub struct StepRow(pub step::Model);

/// Defines the columns that are read before `content` and `body`.
macro_rules! read_by_position {
    ($($column:ident => $field:ident),* $(,)?) => {
        impl StepRow {
            const COLUMNS: &[Column] = &[$(Column::$column),*];
        }

        impl FromQueryResult for StepRow {
            fn from_query_result(row: &QueryResult, _prefix: &str) -> Result<Self, DbErr> {
                let mut positions = 0..;
                let mut next = || positions.next().unwrap_or_default();
                Ok(Self(step::Model {
                    $($field: row.try_get_by_index(next())?,)*
                    content: row.try_get_by_index(next())?,
                    body: row.try_get_by_index(next())?,
                    ..step::Model::default()
                }))
            }
        }
    };
}

read_by_position! {
    Guid => guid,
    Task => task,
    Position => position,
    Kind => kind,
    ProductId => product_id,
    Title => title,
    ExternalId => external_id,
    Published => published,
    SubtaskId => subtask_id,
    SubtaskPid => subtask_pid,
    SubtaskExternalId => subtask_external_id,
    IsLink => is_link,
    Size => size,
    BodySize => body_size,
    RestDigest => rest_digest,
    LanguageCount => language_count,
    Version => version,
    DirtyRecord => dirty_record,
    CreatedTs => created_ts,
    ModifiedTs => modified_ts,
}

impl StepRow {
    /// How many columns are read.
    pub const COUNT: usize = Self::COLUMNS.len() + 2;

    /// Selects what is read of steps.
    pub fn select(steps: Select<Entity>, bodies: Bodies) -> Select<Entity> {
        Self::select_as(
            steps,
            Column::Content.into_expr(),
            bodies.body(Column::Body),
        )
    }

    /// The same with other expressions for the content and the body.
    pub fn select_as(steps: Select<Entity>, content: Expr, body: Expr) -> Select<Entity> {
        let columns = Self::COLUMNS.iter().copied();
        steps
            .select_only()
            .columns(columns)
            .expr(content)
            .expr(body)
    }
}
