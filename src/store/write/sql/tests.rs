use sea_orm::ActiveValue::Set;
use uuid::Uuid;

use super::*;
use crate::store::schema::entity::step_symbol;

#[test]
fn batches_have_all_rows_in_order_and_take_no_more_memory_than_they_need() {
    for count in [0, 1, MAX_ROWS, MAX_ROWS + 1, 5 * MAX_ROWS + 7] {
        let row = |role: usize| step_symbol::ActiveModel {
            account_id: Set("42".to_owned()),
            symbol: Set(Vec::new()),
            role: Set(i32::try_from(role).unwrap_or_default()),
            step: Set(Uuid::nil()),
        };
        let rows = Upsert::new((0..count).map(row).collect());
        let batches = rows.batches();
        assert_eq!(batches.len(), count.div_ceil(MAX_ROWS));
        let mut roles = Vec::new();
        for batch in batches {
            for column in &batch.columns {
                let (cells, capacity) = (column.cells.len(), column.cells.capacity());
                assert!(capacity <= cells.max(4), "{capacity} for {cells}");
            }
            let cells = batch
                .columns
                .into_iter()
                .filter(|column| column.name == "role");
            roles.extend(cells.flat_map(|column| column.cells));
        }
        let expected = (0..count).map(|role| Value::from(i32::try_from(role).unwrap_or_default()));
        assert!(roles.into_iter().eq(expected), "{count}");
    }
}
