//! Keys in a file, read again when it changes.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tracing::{info, warn};

use super::{KeySet, parse::Malformed};

/// The largest file, in bytes.
pub(super) const MAX: u64 = 1024 * 1024;

/// The age from which a file's time of change can be trusted to tell it from
/// the next version: file systems count time in steps.
const SETTLED: Duration = Duration::from_secs(2);

/// Reads keys from what a file holds.
pub(super) type Parse = fn(&[u8]) -> Result<KeySet, Malformed>;

/// Keys in a file. Each look compares the file's stamp, so that a change holds
/// from the next call on; a file that became unreadable changes nothing.
pub(super) struct KeyFile {
    path: PathBuf,
    parse: Parse,
    state: Mutex<State>,
}

struct State {
    /// The version that was read, once it can be told from the next one.
    stamp: Option<Stamp>,
    /// What was read last, good or bad; `None` when that failed.
    text: Option<Vec<u8>>,
    keys: Arc<KeySet>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
    device: u64,
    inode: u64,
}

/// Why a file has no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is larger than {MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("it has no key of these types")]
    Empty,
}

impl KeyFile {
    /// Reads a file that must hold a key.
    pub fn open(path: PathBuf, parse: Parse) -> Result<Self, Unreadable> {
        let (stamp, text) = read(&path)?;
        let keys = parse(&text)?;
        if keys.len() == 0 {
            return Err(Unreadable::Empty);
        }
        let state = Mutex::new(State {
            stamp: stamp.settled(),
            text: Some(text),
            keys: Arc::new(keys),
        });
        Ok(Self { path, parse, state })
    }

    /// The keys that the file holds now.
    pub fn current(&self) -> Arc<KeySet> {
        let found = fs::metadata(&self.path).and_then(|found| Stamp::of(&found));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = state.stamp.is_some() && state.stamp == found.ok();
        if !unchanged {
            self.read_again(&mut state);
        }
        Arc::clone(&state.keys)
    }

    fn read_again(&self, state: &mut State) {
        let path = self.path.display();
        match read(&self.path) {
            Ok((stamp, text)) => {
                state.stamp = stamp.settled();
                if state.text.as_ref() == Some(&text) {
                    return;
                }
                match (self.parse)(&text) {
                    Ok(keys) => {
                        info!(%path, keys = keys.len(), "the keys have changed");
                        state.keys = Arc::new(keys);
                    }
                    Err(error) => {
                        warn!(%path, %error, "the keys stay: the file is not one of keys")
                    }
                }
                state.text = Some(text);
            }
            Err(error) => {
                state.stamp = None;
                if state.text.take().is_some() {
                    warn!(%path, %error, "the keys stay: the file cannot be read");
                }
            }
        }
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyFile").field(&self.path).finish()
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> io::Result<Self> {
        Ok(Self {
            modified: metadata.modified()?,
            length: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// The stamp, if it is old enough to be of use.
    fn settled(self) -> Option<Self> {
        let age = self.modified.elapsed().ok()?;
        (age > SETTLED).then_some(self)
    }
}

fn read(path: &Path) -> Result<(Stamp, Vec<u8>), Unreadable> {
    let file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?)?;
    let mut text = Vec::new();
    file.take(MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX {
        return Err(Unreadable::TooLarge);
    }
    Ok((stamp, text))
}
