//! The machine that all tests share.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::runtime::{Builder, Runtime};

/// Tests that measure throughput, times or memory hold it exclusively, because concurrent work
/// would distort them. All other tests share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// The right to use the machine until this is dropped.
pub enum MachineLock {
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
    },
    Exclusive {
        _guard: RwLockWriteGuard<'static, ()>,
    },
}

/// For a test that runs concurrently with others.
pub fn shared() -> MachineLock {
    let guard = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    MachineLock::Shared { _guard: guard }
}

/// For a test that measures.
pub fn exclusive() -> MachineLock {
    let guard = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    MachineLock::Exclusive { _guard: guard }
}

/// A runtime for one test.
pub fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
}

/// A thousand connections take more descriptors than many shells allow.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}
