//! Keys in a file, read again when the file changes.

use std::{
    fmt, fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tracing::{info, warn};

use super::{KeySet, parse::KeyFormatError};
use crate::files;

const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A younger file may change again without a new modification time, as file systems count
/// time in steps.
const MIN_STAMP_AGE: Duration = Duration::from_secs(2);

/// Reads keys from the content of a file.
pub(super) type Parse = fn(&[u8]) -> Result<KeySet, KeyFormatError>;

/// Keys in a file. Each use checks whether the file has changed, so that a change holds from
/// the next call on. When it cannot be read, is malformed or has no usable key, the old keys stay.
pub(super) struct KeyFile {
    path: PathBuf,
    parse: Parse,
    state: Mutex<FileState>,
}

struct FileState {
    /// The version that was read; `None` when it must be read again.
    stamp: Option<Stamp>,
    /// The content that was read last, valid or not; `None` when reading failed.
    text: Option<Vec<u8>>,
    keys: Arc<KeySet>,
    /// When the keys were read.
    read_at: SystemTime,
}

/// Tells one version of a file from another without reading it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
    device: u64,
    inode: u64,
}

/// Why the keys of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyFileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Content(KeyFormatError),
}

impl KeyFile {
    /// Reads a file that must hold a key.
    pub fn open(path: PathBuf, parse: Parse) -> Result<Self, KeyFileError> {
        let (stamp, text) = read(&path)?;
        let keys = parse(&text).map_err(KeyFileError::Content)?;
        let state = Mutex::new(FileState {
            stamp: stamp.if_settled(),
            text: Some(text),
            keys: Arc::new(keys),
            read_at: SystemTime::now(),
        });
        Ok(Self { path, parse, state })
    }

    /// The current keys.
    pub fn current(&self) -> Arc<KeySet> {
        let found = fs::metadata(&self.path).and_then(|metadata| Stamp::of(&metadata));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = state.stamp.is_some() && state.stamp == found.ok();
        if !unchanged {
            self.read_again(&mut state);
        }
        Arc::clone(&state.keys)
    }

    /// When the current keys were read.
    pub fn read_at(&self) -> SystemTime {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.read_at
    }

    fn read_again(&self, state: &mut FileState) {
        let path = self.path.display();
        match read(&self.path) {
            Ok((stamp, text)) => {
                state.stamp = stamp.if_settled();
                if state.text.as_ref() == Some(&text) {
                    return;
                }
                match (self.parse)(&text) {
                    Ok(keys) => {
                        info!(%path, keys = keys.len(), "the keys have changed");
                        state.keys = Arc::new(keys);
                        state.read_at = SystemTime::now();
                    }
                    Err(error) => {
                        warn!(%path, %error, "the file has no valid keys: the old ones stay")
                    }
                }
                state.text = Some(text);
            }
            Err(error) => {
                state.stamp = None;
                if state.text.take().is_some() {
                    warn!(%path, %error, "the file cannot be read: the old keys stay");
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

    /// `None` when the file changed less than [`MIN_STAMP_AGE`] ago.
    fn if_settled(self) -> Option<Self> {
        let age = self.modified.elapsed().ok()?;
        (age > MIN_STAMP_AGE).then_some(self)
    }
}

fn read(path: &Path) -> Result<(Stamp, Vec<u8>), KeyFileError> {
    let file = files::open(path)?;
    let stamp = Stamp::of(&file.metadata()?)?;
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(KeyFileError::TooLarge);
    }
    Ok((stamp, text))
}
