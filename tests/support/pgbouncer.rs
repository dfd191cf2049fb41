//! PgBouncer in transaction mode before a PostgreSQL of this run.

// Not every test that shares this file does all of it.
#![allow(dead_code)]

use std::{
    env, fs,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use super::{
    cluster::{Owner, free_port},
    scratch::Scratch,
};

/// Connections to PostgreSQL: fewer than a server has to PgBouncer, so that
/// transactions do take turns on them.
const POOL_SIZE: u32 = 4;

/// The address of the same database through a PgBouncer of its own, which serves
/// until the run ends; `None` when there is no PgBouncer here. Its settings are
/// its defaults, but for what is named below and `more`, one a line.
pub fn before(url: &str, more: &str) -> Option<String> {
    let program = program()?;
    let owner = Owner::for_a_cluster()?;
    let url: http::Uri = url.parse().expect("the URL of a database");
    let mut log = PathBuf::new();
    for _ in 0..5 {
        let port = free_port();
        let home = Scratch::of_this_run().path(&format!("pgbouncer-{port}"));
        owner.make_directory(&home);
        log = home.join("log");
        let settings = home.join("pgbouncer.ini");
        fs::write(&settings, settings_for(&url, port, more)).expect("the settings of PgBouncer");
        let mut process = owner
            .command(&program)
            .arg(&settings)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("the log of PgBouncer"))
            .spawn()
            .expect("pgbouncer");
        Scratch::of_this_run().stop_at_the_end(&process);
        if serves(port, &mut process) {
            let database = url.path();
            return Some(format!(
                "postgres://postgres@127.0.0.1:{port}{database}?pgbouncer=true"
            ));
        }
        Scratch::of_this_run().has_ended(&process);
    }
    let log = fs::read_to_string(log).unwrap_or_default();
    panic!("pgbouncer did not start: {log}");
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

/// `pgbouncer`, in PATH or where Debian puts it.
fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
}

/// Whether it takes connections; no when it has ended instead.
fn serves(port: u16, process: &mut Child) -> bool {
    loop {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return true;
        }
        if process.try_wait().is_ok_and(|end| end.is_some()) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
