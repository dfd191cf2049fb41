//! A load of writes, and a fault in the middle of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use super::{service::Service, writer::Writer};

/// Has the writers write, and the fault happen at this moment of it.
pub async fn load<T>(
    service: &mut Service,
    writers: Vec<Writer>,
    moment: Duration,
    fault: impl FnOnce(&mut Service) -> T,
) -> (Vec<Writer>, T) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writing = JoinSet::new();
    for mut writer in writers {
        let (caller, stop) = (service.caller(), Arc::clone(&stop));
        writing.spawn(async move {
            writer.write(&caller, &stop).await;
            writer
        });
    }
    tokio::time::sleep(moment).await;
    let outcome = tokio::task::block_in_place(|| fault(service));
    stop.store(true, Ordering::Relaxed);
    (writing.join_all().await, outcome)
}
