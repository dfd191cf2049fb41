//! Records of the state that each file on this computer was last applied from or exported to. That
//! state is the common ancestor of later changes in the file and of changes by others.
//!
//! A record is a file in the user's state directory. Without one, as in a new clone of a repository,
//! the last applied state is the common ancestor.

use std::{
    env,
    fs::{self, DirBuilder},
    io,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use prost::Message;

use super::{CliError, guides::StoredGuide, out::print_error};
use crate::{client::Client, domain::sha256::Sha256, files, proto::v1::ExportTaskResponse};

/// The recorded state; `None` if there is no record.
pub(super) fn find(
    client: &Client,
    guid: &str,
    file: &Path,
) -> Result<Option<StoredGuide>, CliError> {
    let Some(record) = record_path(client, guid, file) else {
        return Ok(None);
    };
    let bytes = match files::read(&record) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let record = record.display();
            return Err(CliError::Failed(format!("cannot read {record}: {error}")));
        }
    };
    let state = ExportTaskResponse::decode(&*bytes).unwrap_or_default();
    let Some(document) = state.document else {
        return Err(CliError::Failed(format!(
            "the record {} is damaged, so changes by others would not be noticed: compare the file \
             with the guide, and delete the record",
            record.display()
        )));
    };
    Ok(Some(StoredGuide {
        document,
        guide_etag: state.guide_etag,
    }))
}

/// Records the states of files. Warns of the first record that cannot be written.
#[derive(Default)]
pub(super) struct FileRecorder {
    has_warned: bool,
}

impl FileRecorder {
    /// Records that a file has this state of a guide.
    pub fn record(&mut self, client: &Client, guid: &str, file: &Path, state: &StoredGuide) {
        let Some(record) = record_path(client, guid, file) else {
            return;
        };
        let message = ExportTaskResponse {
            document: Some(state.document.clone()),
            guide_etag: state.guide_etag.clone(),
        };
        let Err(error) = write(&record, &message.encode_to_vec()) else {
            return;
        };
        // An earlier state must not remain.
        let _ = fs::remove_file(&record);
        if !std::mem::replace(&mut self.has_warned, true) {
            print_error(&format!(
                "warning: cannot write {}: {error}: without this record, `apply` may later miss \
                 changes by others, or list too many",
                record.display()
            ));
        }
    }
}

fn write(record: &Path, state: &[u8]) -> io::Result<()> {
    if files::read(record).is_ok_and(|recorded| recorded == state) {
        return Ok(());
    }
    if let Some(directory) = record.parent() {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700).create(directory)?;
    }
    files::replace(record, state)
}

/// The record of a file; `None` if there is no such file, or the user has no state directory.
fn record_path(client: &Client, guid: &str, file: &Path) -> Option<PathBuf> {
    let directory = |name| Some(PathBuf::from(env::var_os(name)?)).filter(|it| it.is_absolute());
    let states = directory("XDG_STATE_HOME");
    let states = states.or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    let file = fs::canonicalize(file).ok()?;
    let key = Sha256::default()
        .with(client.server())
        .with([0])
        .with(guid)
        .with([0])
        .with(file.as_os_str().as_bytes());
    let name = URL_SAFE_NO_PAD.encode(key.finish::<16>());
    Some(states.join("expertise/files").join(name))
}
