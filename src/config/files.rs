//! Files and directories that a server needs, checked before it starts, so that all that is wrong
//! is reported at once. The contents of key files for tokens are checked when they are read.

use std::{fs, path::Path};

use super::{
    Config, DatabaseUrl, names::Variables, postgres_parameters::ReadPem, settings::SettingValues,
};
use crate::pem::{self, PemError};

/// The settings that name a file which is read at the start, with the check of PEM files.
const READ_AT_START: [(&str, Option<ReadPem>); 5] = [
    ("jwt_public_key_file", None),
    ("jwt_jwks_file", None),
    ("tls_cert_file", Some(pem::chain)),
    ("tls_key_file", Some(pem::key)),
    ("tls_client_ca_file", Some(pem::authorities)),
];

/// Refuses paths that are no file, files that are not valid PEM, and what [`check_database`]
/// refuses.
pub(super) fn check_for_serving(
    config: &Config,
    environment: &Variables,
    values: &mut SettingValues,
) {
    check_database(config, environment, values);
    for (key, read) in READ_AT_START {
        let Some(path) = values.text(key).filter(|path| !path.is_empty()) else {
            continue;
        };
        let wrong = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => "it is a directory".to_owned(),
            Ok(_) => {
                let read = read.map(|read| read(Path::new(path), key));
                if let Some(Err(PemError {
                    expected, reason, ..
                })) = read
                {
                    values.refuse(key, format!("{expected}: {reason}"));
                }
                continue;
            }
            Err(error) => error.to_string(),
        };
        values.refuse(key, format!("the path of a file: {wrong}"));
    }
}

/// Refuses an SQLite path that cannot be a file, and wrong files of TLS to PostgreSQL.
pub(super) fn check_database(config: &Config, environment: &Variables, values: &mut SettingValues) {
    for postgres in config.postgres_parameters(environment) {
        postgres.check_files(values);
    }
    if let DatabaseUrl::SqliteFile(path) = &config.database {
        check_sqlite_file(path, values);
    }
}

fn check_sqlite_file(path: &Path, values: &mut SettingValues) {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = parent.unwrap_or(Path::new("."));
    let shown = directory.display();
    let wrong = if path.is_dir() {
        "it is a directory: use the path of a file in it".to_owned()
    } else if directory.is_dir() {
        return;
    } else if directory.exists() {
        format!("{shown} is not a directory: use another path")
    } else {
        format!("the directory {shown} does not exist: create it, or use another path")
    };
    values.refuse(
        "database_url",
        format!("sqlite:PATH with a file's path, but {wrong}"),
    );
}
