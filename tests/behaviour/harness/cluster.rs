//! The PostgreSQL of a run: a private cluster, or a database of its own in the
//! server that `EXPERTISE_TEST_POSTGRES_URL` names.

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
    if let Ok(url) = env::var("EXPERTISE_TEST_POSTGRES_URL") {
        return Some(in_a_runtime(own_database(&url)));
    }
    let binaries = binaries()?;
    let owner = Owner::for_a_cluster()?;
    Some(private_cluster(&binaries, &owner))
}

/// The directory of `initdb` and `postgres`: in PATH, or the newest of Debian's.
fn binaries() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|v| v.path().join("bin")).collect())
        .unwrap_or_default();
    packaged.sort();
    env::split_paths(&path)
        .chain(packaged.into_iter().rev())
        .find(|directory| {
            directory.join("initdb").is_file() && directory.join("postgres").is_file()
        })
}

/// Whom the cluster runs as: PostgreSQL refuses to run as root.
enum Owner {
    Ourselves,
    Other { uid: u32, gid: u32 },
}

impl Owner {
    fn for_a_cluster() -> Option<Self> {
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

    fn command(&self, program: &Path) -> Command {
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

    fn make_directory(&self, path: &Path) {
        fs::create_dir(path).expect("a directory for the cluster");
        if let Self::Other { uid, gid } = self {
            chown(path, Some(*uid), Some(*gid)).expect("the owner of the cluster's directory");
        }
    }
}

fn private_cluster(binaries: &Path, owner: &Owner) -> String {
    let scratch = Scratch::of_this_run();
    let home = scratch.path("postgres");
    owner.make_directory(&home);
    let data = home.join("data");
    let log = home.join("log");

    // A collation that does not order like bytes finds what relies on bytes.
    let linguistic = ["--locale-provider=icu", "--icu-locale=en-US"];
    if !initialise(binaries, owner, &data, &log, &linguistic) {
        let _ = fs::remove_dir_all(&data);
        assert!(
            initialise(binaries, owner, &data, &log, &[]),
            "initdb failed: {}",
            fs::read_to_string(&log).unwrap_or_default()
        );
    }

    for _ in 0..5 {
        let port = free_port();
        let mut process = serve(binaries, owner, &data, &log, port);
        scratch.stop_at_the_end(&process);
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        if in_a_runtime(answers(&url, &mut process)) {
            return url;
        }
    }
    panic!(
        "postgres did not start: {}",
        fs::read_to_string(&log).unwrap_or_default()
    );
}

fn initialise(binaries: &Path, owner: &Owner, data: &Path, log: &Path, more: &[&str]) -> bool {
    let mut process = owner
        .command(&binaries.join("initdb"))
        .arg("-D")
        .arg(data)
        .args(["-U", "postgres", "--auth=trust", "--no-sync"])
        .args(["--encoding=UTF8", "--locale=C"])
        .args(more)
        .stdout(log_file(log))
        .stderr(log_file(log))
        .spawn()
        .expect("initdb");
    Scratch::of_this_run().stop_at_the_end(&process);
    process.wait().expect("initdb").success()
}

fn serve(binaries: &Path, owner: &Owner, data: &Path, log: &Path, port: u16) -> Child {
    owner
        .command(&binaries.join("postgres"))
        .arg("-D")
        .arg(data)
        .args(["-p", &port.to_string()])
        .args(["-c", "listen_addresses=127.0.0.1"])
        .args(["-c", "unix_socket_directories="])
        // The cluster does not outlive the run, so it need not survive a crash.
        .args(["-c", "fsync=off", "-c", "full_page_writes=off"])
        .stdout(log_file(log))
        .stderr(log_file(log))
        .spawn()
        .expect("postgres")
}

fn log_file(path: &Path) -> Stdio {
    fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_or_else(|_| Stdio::null(), Stdio::from)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

/// Whether the server takes connections; no when it has ended instead, as it
/// does when somebody else has taken the port.
async fn answers(url: &str, process: &mut Child) -> bool {
    loop {
        if let Ok(connection) = PgConnection::connect(url).await {
            let _ = connection.close().await;
            return true;
        }
        if process.try_wait().is_ok_and(|end| end.is_some()) {
            return false;
        }
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
    sqlx::query(AssertSqlSafe(format!(r#"CREATE DATABASE "{name}""#)))
        .execute(&mut connection)
        .await
        .expect("a database of our own");

    let mut parts: http::Uri = url.parse().expect("EXPERTISE_TEST_POSTGRES_URL is a URL");
    let query = parts.query().map(|q| format!("?{q}")).unwrap_or_default();
    let mut pieces = std::mem::take(&mut parts).into_parts();
    pieces.path_and_query = format!("/{name}{query}").parse().ok();
    http::Uri::from_parts(pieces)
        .expect("the URL of our own database")
        .to_string()
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
