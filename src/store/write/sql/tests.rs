use sea_orm::ActiveValue::Set;
use uuid::Uuid;

use super::*;
use crate::store::schema::entity::name_use;

#[test]
fn batches_of_a_thousand_have_all_rows_in_order_and_take_no_more_memory_than_they_need() {
    for (count, expected) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (5_007, 6)] {
        let ids = || (0..count).map(|number| Uuid::from_u128(number as u128));
        let row = |step| name_use::ActiveModel {
            account_id: Set("42".to_owned()),
            name_digest: Set(Uuid::nil()),
            in_step: Set(1),
            guid: Set(step),
        };
        let rows = Upsert::new(ids().map(row).collect());
        let batches = rows.batches();
        assert_eq!(batches.len(), expected, "{count}");
        let mut steps = Vec::new();
        for batch in batches {
            for column in &batch.columns {
                let (cells, capacity) = (column.cells.len(), column.cells.capacity());
                assert!(capacity <= cells.max(4), "{capacity} for {cells}");
            }
            let cells = batch
                .columns
                .into_iter()
                .filter(|column| column.name == "guid");
            steps.extend(cells.flat_map(|column| column.cells));
        }
        assert!(steps.into_iter().eq(ids().map(Value::from)), "{count}");
    }
}
