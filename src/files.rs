//! Reads and writes regular files. Reads never block on a FIFO without a writer. Writes never
//! follow a link.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::{fs::OFlags, process::geteuid};
use tempfile::NamedTempFile;

const NO_REGULAR_FILE: &str = "it is not a regular file, but a FIFO, a socket or a device";
/// The permissions of a new file, less the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Opens a regular file for reading. Links are followed.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // This also opens a FIFO that has no writer, so that it can be rejected.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if kind.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(NO_REGULAR_FILE))
    }
}

/// Fails if other users may access the file. A group may read a file that root owns, because
/// systemd and Kubernetes provide files to unprivileged processes that way. systemd uses an ACL,
/// whose mask appears as the permissions of the group.
pub(crate) fn check_private(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if is_private(metadata.mode(), metadata.uid(), geteuid().as_raw()) {
        Ok(())
    } else {
        Err(io::Error::other(
            "other users may access it: set its mode to 600, or to 640 if root owns it and the \
             service runs as a member of its group and not as root",
        ))
    }
}

fn is_private(mode: u32, owner: u32, user: u32) -> bool {
    let forbidden = if owner == 0 && user != 0 {
        0o037
    } else {
        0o077
    };
    mode & forbidden == 0
}

/// Reads a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file atomically. Fails for a link, which may lead anywhere.
pub(crate) fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = replacement(path)?;
    let written = file.as_file_mut();
    written.write_all(content.as_ref())?;
    written.sync_all()?;
    // A link that was created in the meantime is replaced, not followed.
    file.persist(path)?;
    Ok(())
}

/// Fails if [`replace`] cannot begin to write a file.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    replacement(path).map(drop)
}

/// An empty file next to a file that it can replace, with the same permissions.
fn replacement(path: &Path) -> io::Result<NamedTempFile> {
    let existing = match fs::symlink_metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match &existing {
        Some(existing) if existing.is_symlink() => {
            return Err(io::Error::other(
                "it is a symbolic link, which is not followed: name its target",
            ));
        }
        Some(existing) if existing.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Some(existing) if !existing.is_file() => return Err(io::Error::other(NO_REGULAR_FILE)),
        Some(_) | None => {}
    }
    let directory = path.parent().filter(|it| *it != Path::new(""));
    // Unlike errors of `tempfile_in`, those of `create_new` do not name the temporary file.
    let file = tempfile::Builder::new()
        .prefix(".expertise-")
        .make_in(directory.unwrap_or(Path::new(".")), create_new)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    Ok(file)
}

/// Writes a new file. Fails if anything with this name exists, even a dangling link.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true);
    options.mode(NEW_FILE_MODE).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_the_users_alone_or_one_of_root_for_a_group() {
        for (mode, owner, user, private) in [
            (0o600, 7, 7, true),
            (0o400, 0, 7, true),
            (0o440, 0, 7, true),
            (0o100440, 0, 7, true),
            (0o440, 7, 7, false),
            (0o440, 0, 0, false),
            (0o460, 0, 7, false),
            (0o444, 0, 7, false),
            (0o604, 7, 7, false),
        ] {
            let found = is_private(mode, owner, user);
            assert_eq!(found, private, "{mode:o} of {owner} for {user}");
        }
    }
}
