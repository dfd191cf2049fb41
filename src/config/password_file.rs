//! The file with passwords of PostgreSQL, which the driver reads as psql does.

use std::{env, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use super::PostgresUrl;

impl PostgresUrl {
    /// A password file that the driver ignores, as users other than its owner have
    /// permissions on it. `None` where the URL or `PGPASSWORD` has the password.
    pub fn ignored_password_file(&self) -> Option<PathBuf> {
        if self.has_password() || env::var_os("PGPASSWORD").is_some() {
            return None;
        }
        let named = env::var_os("PGPASSFILE").map(PathBuf::from);
        let of_home = env::home_dir().map(|home| home.join(".pgpass"));
        let mut files = named.into_iter().chain(of_home);
        files.find(|file| {
            let metadata = fs::metadata(file);
            metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
        })
    }
}
