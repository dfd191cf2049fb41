//! PostgreSQL clusters: one that all tests of a run share, and private ones that a test stops and
//! starts.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use sqlx::{Connection, PgConnection};

use super::{
    child::{SupervisedChild, cannot_run_without},
    deadline::WAIT_TIMEOUT,
    runtime::in_a_runtime,
    scratch::Scratch,
    sql::SqlConnection,
};

/// The settings of [`shared_cluster`]. It does not outlive the run, so it need not survive a crash. Each line
/// of its log names the sender and the database.
const SHARED: [&str; 6] = [
    "fsync=off",
    "full_page_writes=off",
    "max_connections=300",
    "log_line_prefix=%a|%d|",
    "log_error_verbosity=terse",
    // Two renames can deadlock. By default, that takes a second each time.
    "deadlock_timeout=50ms",
];

/// A private cluster for all tests that neither stop it nor change its settings.
pub fn shared_cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start("shared.cluster", &SHARED))
}

/// A private cluster on its own port. It is stopped when this is dropped. Its directory is removed
/// with the directory of the run.
pub struct Cluster {
    binaries: PathBuf,
    home: PathBuf,
    settings: Vec<String>,
    port: u16,
    server: Option<SupervisedChild>,
}

/// How a cluster is stopped: the modes of `pg_ctl stop`.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Connections are cut, and everything is written.
    Fast,
    /// As in a crash: committed transactions are recovered from the log.
    Immediate,
}

impl Cluster {
    /// Makes a cluster in the directory `name` of this run and starts it with
    /// these settings (`name=value`, as in postgresql.conf).
    pub fn start(name: &str, settings: &[&str]) -> Self {
        let mut cluster = Self::new(name, settings.iter().map(|&it| it.to_owned()).collect());
        // `initdb` takes ten times as long as a copy.
        static EMPTY: OnceLock<PathBuf> = OnceLock::new();
        let empty = EMPTY.get_or_init(|| Self::new("empty.cluster", Vec::new()).initialise());
        let mut copy = cluster.owned(Command::new("cp"));
        copy.arg("-a").arg(empty).arg(cluster.data());
        assert!(cluster.run(copy), "no copy: {}", cluster.log());
        cluster.serve_on_a_free_port();
        cluster
    }

    /// Makes a standby of this cluster in the directory `name` of this run and starts it.
    /// Until it is promoted, it follows this cluster and only takes reads.
    pub fn standby(&self, name: &str) -> Self {
        let mut standby = Self::new(name, self.settings.clone());
        let mut command = self.command("pg_basebackup");
        command.arg("-D").arg(standby.data());
        command.args(["-d", &self.url(), "-R", "--checkpoint=fast", "--no-sync"]);
        assert!(standby.run(command), "no backup: {}", standby.log());
        standby.serve_on_a_free_port();
        standby
    }

    fn new(name: &str, settings: Vec<String>) -> Self {
        let home = Scratch::of_this_run().path(name);
        fs::create_dir(&home).expect("a directory for the cluster");
        if let Some((user, group)) = owner() {
            chown(&home, Some(user), Some(group)).expect("the owner of the cluster's directory");
        }
        Self {
            binaries: binaries().unwrap_or_else(|| cannot_run_without("PostgreSQL")),
            home,
            settings,
            port: 0,
            server: None,
        }
    }

    /// The URL of the database `postgres` for its superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The address of a database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database; its address.
    pub fn make_database(&self, name: &str) -> String {
        make_database(&self.url(), name)
    }

    /// The port it serves on, at each start the same.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// A program of PostgreSQL, such as `pg_dump`, which runs as the cluster's owner.
    pub fn command(&self, program: &str) -> Command {
        self.owned(Command::new(self.binaries.join(program)))
    }

    fn owned(&self, mut command: Command) -> Command {
        if let Some((user, group)) = owner() {
            command.uid(user).gid(group);
        }
        // In its own process group, it gets no interrupts from the terminal.
        command.process_group(0);
        command.stdin(Stdio::null()).current_dir("/");
        command
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The file of its log.
    pub fn log_path(&self) -> PathBuf {
        self.home.join("log")
    }

    /// Stops it and waits for its end.
    pub fn stop(&mut self, how: Stop) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        server.signal(match how {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        });
        let status = server.wait(WAIT_TIMEOUT);
        assert!(status.is_some(), "it does not stop: {}", self.log());
    }

    /// Starts it again after a stop, on the same port and data, and waits until
    /// it takes connections.
    pub fn start_again(&mut self) {
        assert!(self.server.is_none(), "it runs");
        assert!(self.serve(), "postgres did not start: {}", self.log());
    }

    /// Makes the data directory.
    fn initialise(&self) -> PathBuf {
        // A collation that does not order like bytes finds queries that rely on such an order.
        let linguistic = ["--locale-provider=icu", "--icu-locale=en-US"];
        if !self.initialise_with(&linguistic) {
            let _ = fs::remove_dir_all(self.data());
            assert!(self.initialise_with(&[]), "initdb failed: {}", self.log());
        }
        self.data()
    }

    fn initialise_with(&self, more: &[&str]) -> bool {
        let mut command = self.command("initdb");
        command.arg("-D").arg(self.data());
        command.args(["-U", "postgres", "--auth=trust", "--no-sync"]);
        command.args(["--encoding=UTF8", "--locale=C"]).args(more);
        self.run(command)
    }

    /// Runs a command to its end. Whether it succeeded.
    fn run(&self, mut command: Command) -> bool {
        command.stdout(self.log_file()).stderr(self.log_file());
        let mut child = SupervisedChild::spawn(&mut command, Signal::KILL);
        let status = child.wait(WAIT_TIMEOUT);
        status.expect("the command ends").success()
    }

    fn serve_on_a_free_port(&mut self) {
        for _ in 0..5 {
            self.port = free_port();
            if self.serve() {
                return;
            }
        }
        panic!("postgres did not start: {}", self.log());
    }

    /// Starts the server. Whether it serves; false when it has ended instead.
    fn serve(&mut self) -> bool {
        let settings = self.settings.iter().flat_map(|setting| ["-c", setting]);
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .args(settings)
            .stdout(self.log_file())
            .stderr(self.log_file());
        let mut server = SupervisedChild::spawn(&mut command, Signal::QUIT);
        let is_serving = in_a_runtime(wait_until_serving(&self.url(), &self.data(), &mut server));
        self.server = is_serving.then_some(server);
        is_serving
    }

    fn log_file(&self) -> Stdio {
        fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .map_or_else(|_| Stdio::null(), Stdio::from)
    }
}

/// Whether a private cluster can be started.
pub fn is_installed() -> bool {
    binaries().is_some()
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
    // `initdb` may be a link. The other programs are next to its target.
    let initdb = found.join("initdb").canonicalize().ok()?;
    initdb.parent().map(Path::to_path_buf)
}

/// The user and group that a cluster runs as, if the tests run as root, which PostgreSQL refuses.
fn owner() -> Option<(u32, u32)> {
    let id = |kind: &str| {
        let output = Command::new("id").args([kind, "postgres"]).output();
        let output = String::from_utf8(output.expect("the program id").stdout);
        let id = output.expect("a number").trim().parse();
        id.unwrap_or_else(|_| cannot_run_without("user postgres"))
    };
    rustix::process::getuid()
        .is_root()
        .then(|| (id("-u"), id("-g")))
}

/// A port that nobody listened on a moment ago.
pub fn free_port() -> u16 {
    // Linux assigns ports from 32768 to clients and to servers that request any port. So nothing
    // else uses a lower port.
    let candidate = || 10_000 + (uuid::Uuid::new_v4().as_u128() % 22_000) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let free = std::iter::repeat_with(candidate).find(is_free);
    free.expect("a free port")
}

/// Waits until the server takes connections. False when it has ended, or another process has
/// taken the port, which may be another PostgreSQL.
async fn wait_until_serving(url: &str, data: &Path, server: &mut SupervisedChild) -> bool {
    let started = Instant::now();
    loop {
        if let Ok(mut connection) = PgConnection::connect(url).await {
            let directory = sqlx::query_scalar("SHOW data_directory").fetch_one(&mut connection);
            let directory: Option<String> = directory.await.ok();
            let _ = connection.close().await;
            if let Some(directory) = directory {
                return Path::new(&directory) == data;
            }
        }
        if server.exit_status().is_some() {
            return false;
        }
        let waited = started.elapsed();
        assert!(waited < WAIT_TIMEOUT, "PostgreSQL takes no connections");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes an empty database in the server of this URL; its URL.
pub fn make_database(url: &str, name: &str) -> String {
    let mut create = vec![format!(r#"CREATE DATABASE "{name}""#)];
    // Citus needs the database on its workers, too.
    let citus = "SELECT count(*) FROM pg_extension WHERE extname = 'citus'";
    in_a_runtime(async {
        let mut server = SqlConnection::open(url).await;
        if server.number(citus).await > 0 {
            let on_workers = format!("SELECT run_command_on_workers($${}$$)", create[0]);
            create.insert(0, on_workers);
        }
        for sql in create {
            server.execute(&sql).await;
        }
    });
    with_database(url, name)
}

/// Copies a database without connections within its server. Returns the URL of the copy.
pub fn copy_database(url: &str, name: &str) -> String {
    let source = url::Url::parse(url).expect("the URL of a database");
    let source = source.path().trim_start_matches('/');
    let create = format!(r#"CREATE DATABASE "{name}" TEMPLATE "{source}""#);
    execute(&with_database(url, "postgres"), &create);
    with_database(url, name)
}

/// The URL of another database in the same server.
fn with_database(url: &str, name: &str) -> String {
    let mut url = url::Url::parse(url).expect("the URL of a database");
    url.set_path(name);
    url.into()
}

/// Executes statements in the database of this URL.
pub fn execute(url: &str, sql: &str) {
    in_a_runtime(async { SqlConnection::open(url).await.execute(sql).await });
}
