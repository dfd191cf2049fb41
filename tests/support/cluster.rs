//! The PostgreSQL of a run: a private cluster, or a database of its own in the
//! server that `EXPERTISE_TEST_POSTGRES_URL` names; and clusters that a test stops
//! and starts.

// Not every test that shares this file stops clusters.
#![allow(dead_code)]

use std::{
    env, fs,
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::scratch::Scratch;

/// Where a PostgreSQL database for this run is; `None` when there is no
/// PostgreSQL here. One that is there and does not work is a panic.
pub fn database_url() -> Option<String> {
    database_and_log(&[]).map(|(url, _)| url)
}

/// The same with these settings where the cluster is private, and with the file of
/// its log there.
pub fn database_and_log(settings: &[&str]) -> Option<(String, Option<PathBuf>)> {
    if let Ok(url) = env::var("EXPERTISE_TEST_POSTGRES_URL") {
        return Some((in_a_runtime(own_database(&url)), None));
    }
    // The cluster does not outlive the run, so it need not survive a crash.
    let settings = [&["fsync=off", "full_page_writes=off"], settings].concat();
    let cluster = Cluster::start("postgres", &settings)?;
    let served = (cluster.url(), Some(cluster.log_path()));
    // It serves until the run ends.
    std::mem::forget(cluster);
    Some(served)
}

/// A private cluster on a port of its own, for this run alone. Dropped, it is
/// stopped; its directory goes with the run's.
pub struct Cluster {
    binaries: PathBuf,
    owner: Owner,
    home: PathBuf,
    settings: Vec<String>,
    port: u16,
    process: Option<Child>,
}

/// How a cluster is stopped: the modes of `pg_ctl stop`.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Connections are cut, and everything is written.
    Fast,
    /// As in a crash: what was committed is recovered from the log.
    Immediate,
}

impl Cluster {
    /// Makes a cluster in the directory `name` of this run and starts it with
    /// these settings (`name=value`, as in postgresql.conf). `None` when there is
    /// no PostgreSQL here.
    pub fn start(name: &str, settings: &[&str]) -> Option<Self> {
        let binaries = binaries()?;
        let owner = Owner::for_a_cluster()?;
        let home = Scratch::of_this_run().path(name);
        owner.make_directory(&home);
        let mut cluster = Self {
            binaries,
            owner,
            home,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
            port: 0,
            process: None,
        };
        // A collation that does not order like bytes finds what relies on bytes.
        let linguistic = ["--locale-provider=icu", "--icu-locale=en-US"];
        if !cluster.initialise(&linguistic) {
            let _ = fs::remove_dir_all(cluster.data());
            assert!(cluster.initialise(&[]), "initdb failed: {}", cluster.log());
        }
        cluster.serve_somewhere();
        Some(cluster)
    }

    /// Makes a standby of it in the directory `name` of this run and starts it: it
    /// follows, and takes reads alone until it is promoted.
    pub fn standby(&self, name: &str) -> Self {
        let home = Scratch::of_this_run().path(name);
        self.owner.make_directory(&home);
        let mut standby = Self {
            binaries: self.binaries.clone(),
            owner: self.owner,
            home,
            settings: self.settings.clone(),
            port: 0,
            process: None,
        };
        let mut command = self.command(&self.binaries.join("pg_basebackup"));
        command.arg("-D").arg(standby.data());
        command.args(["-d", &self.url(), "-R", "--checkpoint=fast", "--no-sync"]);
        assert!(standby.make(command), "no backup: {}", standby.log());
        standby.serve_somewhere();
        standby
    }

    /// The address of the database `postgres`, as its superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The address of a database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database; its address.
    pub fn make_database(&self, name: &str) -> String {
        in_a_runtime(make_database(&self.url(), name));
        self.url_of(name)
    }

    /// The port it serves on, at each start the same.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where `initdb`, `pg_ctl` and their like are.
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// A command that runs as the cluster's owner.
    pub fn command(&self, program: &Path) -> Command {
        self.owner.command(program)
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The file of its log.
    pub fn log_path(&self) -> PathBuf {
        self.home.join("log")
    }

    /// Stops it and waits for its end.
    pub fn stop(&mut self, how: Stop) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let signal = match how {
            Stop::Fast => "INT",
            Stop::Immediate => "QUIT",
        };
        let pid = process.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.expect("kill").success(), "the cluster had ended");
        process.wait().expect("the cluster's end");
        Scratch::of_this_run().has_ended(&process);
    }

    /// Starts it again after a stop, on the same port and data, and waits until
    /// it takes connections.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs");
        assert!(self.serve(), "postgres did not start: {}", self.log());
    }

    fn initialise(&self, more: &[&str]) -> bool {
        let mut command = self.command(&self.binaries.join("initdb"));
        command.arg("-D").arg(self.data());
        command.args(["-U", "postgres", "--auth=trust", "--no-sync"]);
        command.args(["--encoding=UTF8", "--locale=C"]).args(more);
        self.make(command)
    }

    /// Whether a command that makes the data directory went well.
    fn make(&self, mut command: Command) -> bool {
        command.stdout(self.log_file()).stderr(self.log_file());
        let mut process = command.spawn().expect("the command runs");
        Scratch::of_this_run().stop_at_the_end(&process);
        let success = process.wait().expect("its end").success();
        Scratch::of_this_run().has_ended(&process);
        success
    }

    /// Serves on a port that nobody else has.
    fn serve_somewhere(&mut self) {
        for _ in 0..5 {
            self.port = free_port();
            if self.serve() {
                return;
            }
        }
        panic!("postgres did not start: {}", self.log());
    }

    /// Whether it serves; no when it has ended instead.
    fn serve(&mut self) -> bool {
        let settings = self.settings.iter().flat_map(|setting| ["-c", setting]);
        let mut process = self
            .owner
            .command(&self.binaries.join("postgres"))
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .args(settings)
            .stdout(self.log_file())
            .stderr(self.log_file())
            .spawn()
            .expect("postgres");
        Scratch::of_this_run().stop_at_the_end(&process);
        let serves = in_a_runtime(answers(&self.url(), &mut process));
        if serves {
            self.process = Some(process);
        } else {
            Scratch::of_this_run().has_ended(&process);
        }
        serves
    }

    fn log_file(&self) -> Stdio {
        fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .map_or_else(|_| Stdio::null(), Stdio::from)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It is for this run alone, so a crash is as good an end.
            let pid = process.id().to_string();
            let _ = Command::new("kill").args(["-s", "QUIT", &pid]).status();
            let _ = process.wait();
            Scratch::of_this_run().has_ended(process);
        }
    }
}

/// The directory of `initdb` and `postgres`: in PATH, or the newest of Debian's.
fn binaries() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|v| v.path().join("bin")).collect())
        .unwrap_or_default();
    packaged.sort();
    let found = env::split_paths(&path)
        .chain(packaged.into_iter().rev())
        .find(|directory| {
            directory.join("initdb").is_file() && directory.join("postgres").is_file()
        })?;
    // Where a link leads, the others are too.
    let initdb = found.join("initdb").canonicalize().ok()?;
    initdb.parent().map(Path::to_path_buf)
}

/// Whom the cluster runs as: PostgreSQL refuses to run as root, and so does what
/// stands before it.
#[derive(Clone, Copy)]
pub enum Owner {
    Ourselves,
    Other { uid: u32, gid: u32 },
}

impl Owner {
    /// Ourselves, or `postgres` when we are root; `None` where there is no such user.
    pub fn for_a_cluster() -> Option<Self> {
        let id = |arguments: &[&str]| -> Option<u32> {
            let output = Command::new("id").args(arguments).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        if id(&["-u"])? != 0 {
            return Some(Self::Ourselves);
        }
        Some(Self::Other {
            uid: id(&["-u", "postgres"])?,
            gid: id(&["-g", "postgres"])?,
        })
    }

    /// A command that runs as this user.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Self::Other { uid, gid } = self {
            command.uid(*uid).gid(*gid);
        }
        // Of its own group, an interrupt from the terminal passes it by.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .current_dir("/");
        command
    }

    /// Makes a directory that is this user's.
    pub fn make_directory(&self, path: &Path) {
        fs::create_dir(path).expect("a directory for the cluster");
        if let Self::Other { uid, gid } = self {
            chown(path, Some(*uid), Some(*gid)).expect("the owner of the cluster's directory");
        }
    }
}

/// A port that nobody listened on a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

/// Whether the server takes connections; no when it has ended instead, as it
/// does when somebody else has taken the port.
///
/// # Panics
/// When it does neither for minutes.
async fn answers(url: &str, process: &mut Child) -> bool {
    let begun = std::time::Instant::now();
    loop {
        if let Ok(connection) = PgConnection::connect(url).await {
            let _ = connection.close().await;
            return true;
        }
        if process.try_wait().is_ok_and(|end| end.is_some()) {
            return false;
        }
        let minutes = begun.elapsed().as_secs() / 60;
        assert!(minutes < 3, "PostgreSQL does not take connections");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A database of this run in a server that others use too. Those of earlier runs
/// are dropped; one that is still in use refuses that.
async fn own_database(url: &str) -> String {
    let mut connection = PgConnection::connect(url)
        .await
        .unwrap_or_else(|error| panic!("EXPERTISE_TEST_POSTGRES_URL: {error}"));
    let old = sqlx::query("SELECT datname FROM pg_database WHERE datname LIKE 'expertise_test_%'")
        .fetch_all(&mut connection)
        .await
        .expect("the names of the databases");
    for row in old {
        let name: String = row.get(0);
        let drop = format!(r#"DROP DATABASE "{name}""#);
        let _ = sqlx::query(AssertSqlSafe(drop))
            .execute(&mut connection)
            .await;
    }
    let name = format!("expertise_test_{}", uuid::Uuid::now_v7().simple());
    make_database(url, &name).await;

    let mut parts: http::Uri = url.parse().expect("EXPERTISE_TEST_POSTGRES_URL is a URL");
    let query = parts.query().map(|q| format!("?{q}")).unwrap_or_default();
    let mut pieces = std::mem::take(&mut parts).into_parts();
    pieces.path_and_query = format!("/{name}{query}").parse().ok();
    http::Uri::from_parts(pieces)
        .expect("the URL of our own database")
        .to_string()
}

async fn make_database(url: &str, name: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::query(AssertSqlSafe(format!(r#"CREATE DATABASE "{name}""#)))
        .execute(&mut connection)
        .await
        .expect("a database of our own");
}

/// Runs a future on a thread of its own, as the caller may be in a runtime.
fn in_a_runtime<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime")
                    .block_on(future)
            })
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
