//! A server: the built binary as a child process, its settings, log and metrics.

use std::{
    ffi::OsStr,
    fmt::{self, Display},
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{JoinHandle, spawn_blocking},
};

use super::{
    child::{SupervisedChild, binary, lines_of, remove_settings},
    client::Client,
    deadline::{WAIT_TIMEOUT, in_time},
    scratch::Scratch,
};

/// The settings of a server, as environment variables. It gets no other settings.
#[derive(Clone, Debug)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// The defaults, with this database and a free loopback port.
    pub fn new(database_url: &str) -> Self {
        Self(Vec::new())
            .set("EXPERTISE_LISTEN", "127.0.0.1:0")
            .set("EXPERTISE_DATABASE_URL", database_url)
    }

    /// Sets a variable, even if it was already set.
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// The value of a variable, if it is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut set = self.0.iter().filter(|(known, _)| known == name);
        set.next().map(|(_, value)| value.as_str())
    }

    /// Sets several variables.
    pub fn set_all(self, variables: &[Setting]) -> Self {
        let variables = variables.iter();
        variables.fold(self, |settings, (name, value)| settings.set(name, value))
    }
}

/// An environment variable of the server, and its value.
pub type Setting<'a> = (&'a str, &'a str);

/// How long a server keeps changes by default.
pub const CHANGES_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Settings for a database in memory.
pub fn in_memory() -> Settings {
    Settings::new("sqlite::memory:")
}

/// Settings with metrics on a free port.
pub fn with_metrics(database_url: &str) -> Settings {
    Settings::new(database_url).set("EXPERTISE_METRICS_LISTEN", "127.0.0.1:0")
}

/// A running server. It is killed when this is dropped.
pub struct TestServer {
    child: SupervisedChild,
    log: PathBuf,
    address: SocketAddr,
    start_line: String,
}

impl TestServer {
    /// Starts a server and waits until it serves.
    ///
    /// # Panics
    /// When the server ends instead, with its log.
    pub async fn start(settings: Settings) -> Self {
        spawn_blocking(move || Self::start_blocking(&settings))
            .await
            .expect("the server starts")
    }

    /// Like [`start`](Self::start), but returns what the server says when it ends instead.
    pub async fn try_start(settings: Settings) -> Result<Self, String> {
        spawn_blocking(move || Self::start_by(&[], &settings))
            .await
            .expect("no panic")
    }

    /// Like [`start`](Self::start), for tests without a runtime.
    pub fn start_blocking(settings: &Settings) -> Self {
        Self::start_by(&[], settings)
            .unwrap_or_else(|log| panic!("the server does not start: {log}"))
    }

    /// Starts the server through a command, such as `prlimit`, whose last argument is the binary.
    pub fn start_by(command: &[&str], settings: &Settings) -> Result<Self, String> {
        let binary = binary();
        let mut words = command.iter().map(OsStr::new).chain([binary.as_os_str()]);
        let mut program = Command::new(words.next().expect("the binary"));
        program.args(words);
        Self::start_program(program, settings)
    }

    /// Starts another program that takes the same settings and prints a start line of the same
    /// form.
    pub fn start_program(mut program: Command, settings: &Settings) -> Result<Self, String> {
        static STARTED: AtomicUsize = AtomicUsize::new(1);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = Scratch::of_this_run().path(&format!("server-{number}.log"));
        remove_settings(&mut program);
        program
            .envs(settings.0.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a log file"));
        let mut child = SupervisedChild::spawn(&mut program, Signal::KILL);
        let lines = lines_of(child.child.stdout.take().expect("it is piped"));
        let Ok(start_line) = lines.recv_timeout(WAIT_TIMEOUT) else {
            let ended = child.wait(WAIT_TIMEOUT).is_some();
            assert!(ended, "no start line: {}", read(&log));
            return Err(read(&log));
        };
        let start_line = start_line.trim_end().to_owned();
        let address = start_line.split_whitespace().nth(4).map(str::parse);
        let Some(Ok(address)) = address else {
            panic!("not a start line: {start_line}");
        };
        Ok(Self {
            child,
            log,
            address,
            start_line,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, for commands.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client of the account `demo`.
    pub fn client(&self) -> Client {
        Client::at(self.address).with_account("demo")
    }

    /// Where metrics are, if they are served.
    pub fn find_metrics_address(&self) -> Option<SocketAddr> {
        let (_, address) = self.start_line.rsplit_once("metrics on ")?;
        let address = address.trim_end_matches(')').parse();
        Some(address.expect("an address"))
    }

    /// Where metrics are.
    pub fn metrics_address(&self) -> SocketAddr {
        self.find_metrics_address().expect("a server with metrics")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// The file of its log.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// After [`WAIT_TIMEOUT`].
    pub fn wait(mut self) -> ExitStatus {
        let status = self.child.wait(WAIT_TIMEOUT);
        status.unwrap_or_else(|| panic!("it does not end: {}", self.log()))
    }

    /// Sends SIGTERM and waits for its end.
    pub fn terminate(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Sends SIGKILL, as in a crash, and waits for its end.
    pub fn kill(mut self) {
        let ended = self.child.exit_status();
        assert_eq!(ended, None, "it has ended: {}", self.log());
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Sends SIGTERM. The handle waits for the end of the process, and returns its log if that is
    /// not a success.
    pub fn begin_shutdown(self) -> JoinHandle<Result<(), String>> {
        self.signal(Signal::TERM);
        spawn_blocking(move || {
            let log = self.log.clone();
            match self.wait().success() {
                true => Ok(()),
                false => Err(read(&log)),
            }
        })
    }

    /// Shuts it down.
    pub async fn shut_down(self) {
        let ended = in_time("shutdown", self.begin_shutdown()).await;
        ended.expect("no panic").expect("it ends with success");
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestServer").field(&self.address).finish()
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The code and the body of an answer over plain HTTP.
pub async fn http_get(address: SocketAddr, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
    let (head, body) = http_answer(address, &request).await;
    let code = head.split(' ').nth(1).expect("a code");
    (code.parse().expect("a code"), body)
}

/// The head and the body of the answer to these bytes.
pub async fn http_answer(address: SocketAddr, request: &str) -> (String, String) {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = in_time("an answer", answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}
