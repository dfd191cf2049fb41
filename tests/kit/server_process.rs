//! The built binary as a process of its own.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::Signal;

use super::{
    child::{EndSignal, SupervisedChild},
    deadline::WAIT_TIMEOUT,
    scratch::Scratch,
};

/// A setting: an environment variable of the binary, and its value.
pub type Setting<'a> = (&'a str, &'a str);

/// A server that runs in a process of its own. It ends when this is dropped.
pub struct ServerProcess {
    child: SupervisedChild,
    log: PathBuf,
    address: SocketAddr,
    start_line: String,
}

impl ServerProcess {
    /// Starts `expertise serve` with these settings alone, on a free port unless
    /// `EXPERTISE_LISTEN` is among them, and waits for the start line. The file
    /// `name`.log of this run gets its log.
    ///
    /// # Panics
    /// When the server ends instead, with its log.
    pub fn start(name: &str, settings: &[Setting]) -> Self {
        Self::try_start(name, settings).unwrap_or_else(|log| panic!("{name} did not start: {log}"))
    }

    /// Like `start`, but returns the log when the server ends instead.
    pub fn try_start(name: &str, settings: &[Setting]) -> Result<Self, String> {
        Self::start_by(&[], name, settings)
    }

    /// Like `try_start`, through a command that executes the binary, whose path is its last
    /// argument.
    pub fn start_by(command: &[&str], name: &str, settings: &[Setting]) -> Result<Self, String> {
        let binary = binary();
        let mut words = command.iter().map(OsStr::new).chain([binary.as_os_str()]);
        let mut program = Command::new(words.next().expect("the binary"));
        program.args(words);
        Self::start_program(program, name, settings)
    }

    /// Starts another program that takes the same settings and prints a start line of
    /// the same form.
    pub fn start_program(
        mut program: Command,
        name: &str,
        settings: &[Setting],
    ) -> Result<Self, String> {
        let log = Scratch::of_this_run().path(&format!("{name}.log"));
        let log_file = File::options().create(true).append(true).open(&log);
        remove_settings(&mut program);
        program
            .env("EXPERTISE_LISTEN", "127.0.0.1:0")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file.expect("a log file"));
        let mut child = SupervisedChild::spawn(&mut program, EndSignal::Kill);
        let stdout = BufReader::new(child.take_stdout().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        // Reads to the end, as the server fails to write where nobody reads.
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let Ok(start_line) = lines.recv_timeout(WAIT_TIMEOUT) else {
            return Err(read(&log));
        };
        let address = start_line.split_whitespace().nth(4).map(str::parse);
        let Some(Ok(address)) = address else {
            panic!("no start line: {start_line}");
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

    /// Where it shows its metrics, by the start line.
    pub fn metrics_address(&self) -> SocketAddr {
        let (_, address) = self
            .start_line
            .rsplit_once("metrics on ")
            .expect("a server with metrics");
        address.trim_end_matches(')').parse().expect("an address")
    }

    pub fn start_line(&self) -> &str {
        &self.start_line
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

    /// Resident memory now, in bytes.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory so far, in bytes.
    pub fn resident_peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The most address space so far, in bytes.
    pub fn virtual_peak(&self) -> u64 {
        self.memory("VmPeak:")
    }

    /// The processor time that it has used.
    pub fn processor_time(&self) -> Duration {
        let stat = read(Path::new(&format!("/proc/{}/stat", self.id())));
        // The name of the program, in parentheses, may hold spaces.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields = after_name.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(10 * ticks)
    }

    fn memory(&self, kind: &str) -> u64 {
        let status = read(Path::new(&format!("/proc/{}/status", self.id())));
        let line = status.lines().find_map(|line| line.strip_prefix(kind));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
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
        assert_eq!(
            self.child.exit_status(),
            None,
            "it has ended: {}",
            self.log()
        );
        self.signal(Signal::KILL);
        self.wait();
    }
}

/// The binary of this build, or the one that the environment names.
pub fn binary() -> PathBuf {
    let named = env::var_os("EXPERTISE_TEST_LOAD_BINARY");
    named.map_or_else(|| env!("CARGO_BIN_EXE_expertise").into(), PathBuf::from)
}

/// Removes the settings of this process from the environment of the command.
pub fn remove_settings(command: &mut Command) {
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with("EXPERTISE_") {
            command.env_remove(variable);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
