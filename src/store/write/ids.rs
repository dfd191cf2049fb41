//! Ids of new tasks and steps: UUIDs of version 7, so tasks are listed in the order of their creation.

use std::sync::Mutex;

use sea_orm::{QueryOrder, QuerySelect};
use uuid::{ContextV7, Timestamp, Uuid};

use super::tx::{Tx, now};
use crate::store::{
    entity::task::{Column, Entity},
    error::StoreError,
};

/// Its ids increase within this process, even if the clock is set back.
static SEQUENCE: Mutex<ContextV7> = Mutex::new(ContextV7::new());

pub fn new_id() -> Uuid {
    let micros = now().0.unsigned_abs();
    let nanos = micros % 1_000_000 * 1_000;
    let nanos = u32::try_from(nanos).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(&SEQUENCE, micros / 1_000_000, nanos))
}

impl Tx<'_> {
    /// Makes the ids of new tasks greater than all ids of the account. Without this, they could be
    /// smaller if the clock was set back since the server was last started, or if another server's
    /// clock is ahead.
    pub async fn begin_ids_after_newest_task(&self) -> Result<(), StoreError> {
        let newest = self.find::<Entity>().order_by_desc(Column::Guid).limit(1);
        let newest: Option<Uuid> = self.read_column(newest, Column::Guid).await?.pop();
        newest.into_iter().for_each(begin_after);
        Ok(())
    }
}

fn begin_after(id: Uuid) {
    if let Some(time) = id.get_timestamp()
        && id > new_id()
    {
        // The sequence never goes back before a time that it has seen.
        let (seconds, _) = time.to_unix();
        let _ = Timestamp::from_unix(&SEQUENCE, seconds + 1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_those_of_a_clock_that_was_ahead() {
        let hour = 3_600;
        let (seconds, _) = new_id().get_timestamp().expect("a time").to_unix();
        let ahead = Uuid::new_v7(Timestamp::from_unix(ContextV7::new(), seconds + hour, 0));
        begin_after(ahead);
        let ids = [ahead, new_id(), new_id()];
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    }
}
