//! Reloads values at intervals, such as keys and certificates. If a value cannot be read, the old
//! one stays in use.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak},
    time::{Duration, SystemTime},
};

use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};
use tracing::{info, warn};

/// How often files are reloaded.
pub(crate) const FILE_INTERVAL: Duration = Duration::from_secs(2);

/// The source of a value.
pub(crate) trait Source: Send + Sync + 'static {
    type Value: Send + Sync;
    type Error: fmt::Display + Send;
    /// What it has, in the plural, as the log names it.
    const WHAT: &'static str;

    /// Reads the value, and returns it with the bytes that it was made from.
    fn read(&self) -> impl Future<Output = Result<(Self::Value, Vec<u8>), Self::Error>> + Send;

    /// Logs what is wrong with a value although it is used.
    fn warn(&self, _value: &Self::Value) {}
}

/// The last value that was read from a source.
pub(crate) struct Reloaded<S: Source> {
    source: S,
    current: RwLock<Current<S::Value>>,
    /// When the last read began; locked during a read.
    last_reading: Mutex<Option<Instant>>,
}

pub(crate) struct Current<V> {
    value: Arc<V>,
    /// What the value was made from.
    bytes: Vec<u8>,
    pub read_at: SystemTime,
    /// When a read last found a changed value.
    pub changed_at: SystemTime,
    /// Why the last reload failed.
    problem: Option<String>,
}

impl<S: Source> Reloaded<S> {
    /// Reads the value, and reloads it at the interval until this is dropped.
    pub async fn open(source: S, interval: Option<Duration>) -> Result<Arc<Self>, S::Error> {
        let (value, bytes) = source.read().await?;
        source.warn(&value);
        let now = SystemTime::now();
        let opened = Arc::new(Self {
            source,
            current: RwLock::new(Current {
                value: Arc::new(value),
                bytes,
                read_at: now,
                changed_at: now,
                problem: None,
            }),
            last_reading: Mutex::new(None),
        });
        if let Some(interval) = interval {
            tokio::spawn(Self::read_at_intervals(Arc::downgrade(&opened), interval));
        }
        Ok(opened)
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    pub fn value(&self) -> Arc<S::Value> {
        Arc::clone(&self.current().value)
    }

    pub fn current(&self) -> RwLockReadGuard<'_, Current<S::Value>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads the value, unless a read began within this time.
    pub async fn read_if_due(self: Arc<Self>, min_interval: Duration) {
        let mut last = self.last_reading.lock().await;
        if last.is_none_or(|last| last.elapsed() >= min_interval) {
            *last = Some(Instant::now());
            self.read().await;
        }
    }

    async fn read_at_intervals(reloaded: Weak<Self>, interval: Duration) {
        loop {
            sleep(interval).await;
            let Some(reloaded) = reloaded.upgrade() else {
                return;
            };
            reloaded.read_if_due(Duration::ZERO).await;
        }
    }

    async fn read(&self) {
        let read = self.source.read().await;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok((value, bytes)) => {
                current.read_at = SystemTime::now();
                current.problem = None;
                if bytes != current.bytes {
                    info!("{} have changed", S::WHAT);
                    self.source.warn(&value);
                    current.changed_at = current.read_at;
                    (current.value, current.bytes) = (Arc::new(value), bytes);
                }
            }
            Err(error) => {
                let problem = Some(error.to_string());
                if current.problem != problem {
                    warn!(%error, "{} cannot be read: the old ones stay in use", S::WHAT);
                    current.problem = problem;
                }
            }
        }
    }
}
