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
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::{
    child::{EndSignal, SupervisedChild},
    databases::runtime,
    deadline::WAIT_TIMEOUT,
    missing::cannot_run_without,
    scratch::Scratch,
};

/// Where a PostgreSQL database for this run is: in the server that
/// `EXPERTISE_TEST_POSTGRES_URL` names, or in a private cluster with these settings,
/// whose log is returned too.
pub fn database_and_log(settings: &[&str]) -> (String, Option<PathBuf>) {
    if let Ok(url) = env::var("EXPERTISE_TEST_POSTGRES_URL") {
        return (in_a_runtime(own_database(&url)), None);
    }
    // The cluster does not outlive the run, so it need not survive a crash.
    let durability = ["fsync=off", "full_page_writes=off", "max_connections=300"];
    let settings = [&durability[..], settings].concat();
    let cluster = Cluster::start("postgres", &settings);
    let served = (cluster.url(), Some(cluster.log_path()));
    // The watchdog ends it with the run.
    std::mem::forget(cluster);
    served
}

/// A private cluster for all tests that neither stop it nor change its settings.
pub fn shared_cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let settings = ["fsync=off", "max_connections=300"];
    CLUSTER.get_or_init(|| Cluster::start("shared.cluster", &settings))
}

/// A private cluster on its own port. It is stopped when this is dropped. Its directory is removed
/// with the directory of the run.
pub struct Cluster {
    binaries: PathBuf,
    owner: Owner,
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
        Self::start_if_installed(name, settings).unwrap_or_else(|| cannot_run_without("PostgreSQL"))
    }

    /// The same; `None` if PostgreSQL is not installed.
    pub fn start_if_installed(name: &str, settings: &[&str]) -> Option<Self> {
        let (binaries, owner) = (binaries()?, Owner::for_a_cluster()?);
        let home = Scratch::of_this_run().path(name);
        owner.make_directory(&home);
        let mut cluster = Self {
            binaries,
            owner,
            home,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
            port: 0,
            server: None,
        };
        // A collation that does not order like bytes finds queries that rely on such an order.
        let linguistic = ["--locale-provider=icu", "--icu-locale=en-US"];
        if !cluster.initialise(&linguistic) {
            let _ = fs::remove_dir_all(cluster.data());
            assert!(cluster.initialise(&[]), "initdb failed: {}", cluster.log());
        }
        cluster.serve_on_a_free_port();
        Some(cluster)
    }

    /// Makes a standby of this cluster in the directory `name` of this run and starts it.
    /// Until it is promoted, it follows this cluster and only takes reads.
    pub fn standby(&self, name: &str) -> Self {
        let home = Scratch::of_this_run().path(name);
        self.owner.make_directory(&home);
        let mut standby = Self {
            binaries: self.binaries.clone(),
            owner: self.owner,
            home,
            settings: self.settings.clone(),
            port: 0,
            server: None,
        };
        let mut command = self.command(&self.binaries.join("pg_basebackup"));
        command.arg("-D").arg(standby.data());
        command.args(["-d", &self.url(), "-R", "--checkpoint=fast", "--no-sync"]);
        assert!(standby.run(command), "no backup: {}", standby.log());
        standby.serve_on_a_free_port();
        standby
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

    fn initialise(&self, more: &[&str]) -> bool {
        let mut command = self.command(&self.binaries.join("initdb"));
        command.arg("-D").arg(self.data());
        command.args(["-U", "postgres", "--auth=trust", "--no-sync"]);
        command.args(["--encoding=UTF8", "--locale=C"]).args(more);
        self.run(command)
    }

    /// Runs a command to its end. Whether it succeeded.
    fn run(&self, mut command: Command) -> bool {
        command.stdout(self.log_file()).stderr(self.log_file());
        let mut child = SupervisedChild::spawn(&mut command, EndSignal::Kill);
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
        let mut command = self.command(&self.binaries.join("postgres"));
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .args(settings)
            .stdout(self.log_file())
            .stderr(self.log_file());
        let mut server = SupervisedChild::spawn(&mut command, EndSignal::Quit);
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

/// The user that a cluster runs as: PostgreSQL refuses to run as root.
#[derive(Clone, Copy)]
pub enum Owner {
    Ourselves,
    Other { uid: u32, gid: u32 },
}

impl Owner {
    /// The current user, or `postgres` if that is root; `None` if there is no such user.
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
        // In its own process group, it gets no interrupts from the terminal.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .current_dir("/");
        command
    }

    /// Makes a directory that this user owns.
    pub fn make_directory(&self, path: &Path) {
        fs::create_dir(path).expect("a directory for the cluster");
        if let Self::Other { uid, gid } = self {
            chown(path, Some(*uid), Some(*gid)).expect("the owner of the cluster's directory");
        }
    }
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

/// Makes a database of this run in a server that others use too. Those of earlier
/// runs are dropped, unless they are still in use.
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

    with_database(url, &name)
}

/// Makes an empty database in the server of this URL; its URL.
pub fn make_database_in(url: &str, name: &str) -> String {
    in_a_runtime(make_database(url, name));
    with_database(url, name)
}

/// Copies a database without connections within its server. Returns the URL of the copy.
pub fn copy_database(url: &str, name: &str) -> String {
    let source = url.parse::<http::Uri>().expect("the URL of a database");
    let source = source.path().trim_start_matches('/');
    let server = with_database(url, "postgres");
    in_a_runtime(make_database(
        &server,
        &format!(r#"{name}" TEMPLATE "{source}"#),
    ));
    with_database(url, name)
}

/// The URL of another database in the same server.
fn with_database(url: &str, name: &str) -> String {
    let url: http::Uri = url.parse().expect("the URL of a database");
    let query = url.query().map(|q| format!("?{q}")).unwrap_or_default();
    let mut parts = url.into_parts();
    parts.path_and_query = format!("/{name}{query}").parse().ok();
    http::Uri::from_parts(parts)
        .expect("the URL of our own database")
        .to_string()
}

async fn make_database(url: &str, name: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let create = format!(r#"CREATE DATABASE "{name}""#);
    // Citus needs the database on its workers, too.
    let citus = sqlx::query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
        .fetch_optional(&mut connection)
        .await;
    if citus.expect("the extensions").is_some() {
        let create = format!("SELECT run_command_on_workers($${create}$$)");
        sqlx::query(AssertSqlSafe(create))
            .execute(&mut connection)
            .await
            .expect("a database on each worker");
    }
    sqlx::query(AssertSqlSafe(create))
        .execute(&mut connection)
        .await
        .expect("a database of our own");
}

/// Runs a future on its own thread, because the caller may be in a runtime.
pub fn in_a_runtime<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| runtime().block_on(future))
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
