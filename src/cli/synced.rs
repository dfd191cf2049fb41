//! The state of a guide that a file on this computer was last applied from or exported to. It is the
//! common ancestor of later changes in the file and of changes that others have made to the guide.
//!
//! Each file has a small record in the state directory of the user. Without a record, for example in a
//! new clone of a repository, the last applied state is the common ancestor.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::{client::Client, domain::sha256::Sha256, files};

/// The `guide_etag` of the state that a file was last applied from or exported to; `None` if there is no
/// record.
pub(super) fn find(client: &Client, guid: &str, file: &Path) -> Option<String> {
    let record = record(client, guid, file).ok()??;
    let etag = files::read(&record).ok()?;
    String::from_utf8(etag).ok()
}

/// Records that a file has the state of the guide with this `guide_etag`.
pub(super) fn record_state(
    client: &Client,
    guid: &str,
    file: &Path,
    guide_etag: &str,
) -> io::Result<()> {
    let Some(record) = record(client, guid, file)? else {
        return Ok(());
    };
    if let Some(directory) = record.parent() {
        fs::create_dir_all(directory)?;
    }
    files::replace(&record, guide_etag)
}

/// The path of the record of a file; `None` if the user has no state directory.
fn record(client: &Client, guid: &str, file: &Path) -> io::Result<Option<PathBuf>> {
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let directory = |name| env::var_os(name).map(PathBuf::from).filter(is_absolute);
    let states = directory("XDG_STATE_HOME");
    let states = states.or_else(|| Some(directory("HOME")?.join(".local/state")));
    let Some(states) = states else {
        return Ok(None);
    };
    let file = fs::canonicalize(file)?;
    let key = Sha256::default()
        .with(client.server())
        .with([0])
        .with(guid)
        .with([0])
        .with(file.as_os_str().as_encoded_bytes());
    let name = Uuid::from_bytes(key.finish()).simple().to_string();
    Ok(Some(states.join("expertise/files").join(name)))
}
