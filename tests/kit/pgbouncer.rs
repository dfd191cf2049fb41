//! PgBouncer in transaction mode between a server and its PostgreSQL.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    child::{EndSignal, SupervisedChild},
    deadline::{WAIT_TIMEOUT, poll_for},
    missing::cannot_run_without,
    postgres::{Owner, free_port},
    scratch::Scratch,
};

/// Connections to PostgreSQL: fewer than a server has to PgBouncer, so that
/// transactions share them.
const POOL_SIZE: u32 = 4;
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// A PgBouncer of a test's own. It ends when this is dropped.
pub struct PgBouncer {
    url: String,
    child: SupervisedChild,
}

impl PgBouncer {
    /// Starts one before this database. `more` are settings beside those of
    /// `settings_for`, each on a line of its own.
    pub fn start(database: &str, more: &str) -> Self {
        let (Some(program), Some(owner)) = (program(), Owner::for_a_cluster()) else {
            cannot_run_without("PgBouncer");
        };
        let database: http::Uri = database.parse().expect("the URL of a database");
        let mut log = PathBuf::new();
        for _ in 0..5 {
            let port = free_port();
            // The same port may be found twice, so the directory is not named after it.
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let home = Scratch::of_this_run().path(&format!("pgbouncer-{number}"));
            owner.make_directory(&home);
            log = home.join("log");
            let settings = home.join("pgbouncer.ini");
            let text = settings_for(&database, port, more);
            fs::write(&settings, text).expect("the settings of PgBouncer");
            let mut command = owner.command(&program);
            command
                .arg(&settings)
                .stdout(Stdio::null())
                .stderr(fs::File::create(&log).expect("the log of PgBouncer"));
            let mut child = SupervisedChild::spawn(&mut command, EndSignal::Kill);
            if wait_until_serving(&log, &mut child) {
                let name = database.path();
                let url = format!("postgres://postgres@127.0.0.1:{port}{name}?pgbouncer=true");
                return Self { url, child };
            }
        }
        let log = fs::read_to_string(log).unwrap_or_default();
        panic!("pgbouncer did not start: {log}");
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The address of the database through it.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn settings_for(url: &http::Uri, port: u16, more: &str) -> String {
    let authority = url.authority().expect("a host").as_str();
    let (user, _) = authority.rsplit_once('@').unwrap_or(("postgres", ""));
    let (user, password) = match user.split_once(':') {
        Some((user, password)) => (user, format!(" password='{password}'")),
        None => (user, String::new()),
    };
    let host = url.host().expect("a host");
    let server_port = url.port_u16().unwrap_or(5432);
    let database = url.path().trim_start_matches('/');
    format!(
        "[databases]\n\
         {database} = host={host} port={server_port} user={user}{password}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         default_pool_size = {POOL_SIZE}\n\
         {more}\n"
    )
}

/// Whether it can be started.
pub fn is_installed() -> bool {
    program().is_some()
}

/// `pgbouncer`, in PATH or where Debian puts it.
fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
}

/// Waits until it takes connections; false when it has ended instead. This is read from its
/// log, because another process may have taken the port.
fn wait_until_serving(log: &Path, child: &mut SupervisedChild) -> bool {
    let serving = poll_for(WAIT_TIMEOUT, || {
        let is_up = fs::read_to_string(log).is_ok_and(|log| log.contains("process up"));
        (is_up || child.exit_status().is_some()).then_some(is_up)
    });
    serving.expect("PgBouncer does not take connections")
}
