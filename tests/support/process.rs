//! The built binary as a process of its own: started, watched, killed.

// Not every test that shares this file does all of it.
#![allow(dead_code)]

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use super::scratch::Scratch;

/// Far beyond what anything here takes: a wait that long has hung.
const BOUND: Duration = Duration::from_secs(120);

/// A server that runs in a process of its own; killed when it is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
    address: SocketAddr,
    line: String,
    lines: Receiver<String>,
}

impl Process {
    /// Starts `expertise serve` with these settings (`EXPERTISE_…`) and none of
    /// this process, on a free port unless `EXPERTISE_LISTEN` says otherwise, and
    /// waits for the start line. Its log goes to the file `name`.log of this run.
    ///
    /// # Panics
    /// When it ends instead, with what it logged.
    pub fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        match Self::try_start(name, settings) {
            Ok(process) => process,
            Err(log) => panic!("{name} did not start: {log}"),
        }
    }

    /// The same, or what it logged when it ended instead.
    pub fn try_start(name: &str, settings: &[(&str, &str)]) -> Result<Self, String> {
        Self::try_start_by(&[], name, settings)
    }

    /// The same by a command that is given the binary as its last argument, and
    /// becomes it.
    pub fn try_start_by(
        command: &[&str],
        name: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, String> {
        let binary = binary();
        let mut words = command.iter().map(OsStr::new).chain([binary.as_os_str()]);
        let mut program = Command::new(words.next().expect("the binary"));
        program.args(words);
        Self::of(program, name, settings)
    }

    /// The same of another program that takes these settings and says a start line
    /// of the same form.
    pub fn of(program: Command, name: &str, settings: &[(&str, &str)]) -> Result<Self, String> {
        let mut started = Starting::begin(program, name, settings);
        let line = match started.lines.recv_timeout(BOUND) {
            Ok(line) => line,
            Err(_) => {
                let _ = started.child.kill();
                let _ = started.child.wait();
                Scratch::of_this_run().has_ended(&started.child);
                return Err(read(&started.log));
            }
        };
        let address = line.split_whitespace().nth(4).map(str::parse);
        let Some(Ok(address)) = address else {
            panic!("no start line: {line}");
        };
        Ok(Self {
            child: started.child,
            log: started.log,
            address,
            line,
            lines: started.lines,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The start line.
    pub fn start_line(&self) -> &str {
        &self.line
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Bytes of memory it holds now.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most bytes of memory that it held so far.
    pub fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The most bytes of address space that it had so far.
    pub fn virtual_peak(&self) -> u64 {
        self.memory("VmPeak:")
    }

    fn memory(&self, kind: &str) -> u64 {
        let status = read(Path::new(&format!("/proc/{}/status", self.id())));
        let line = status.lines().find_map(|line| line.strip_prefix(kind));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let pid = self.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill").success(), "{name}");
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// When it runs on for minutes.
    pub fn end(mut self) -> ExitStatus {
        let patience = Instant::now() + BOUND;
        loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status;
            }
            assert!(Instant::now() < patience, "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it as a crash would, with no chance to tidy up, and waits for its end.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("its end");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        Scratch::of_this_run().has_ended(&self.child);
    }
}

struct Starting {
    child: Child,
    log: PathBuf,
    lines: Receiver<String>,
}

impl Starting {
    fn begin(mut command: Command, name: &str, settings: &[(&str, &str)]) -> Self {
        let log = Scratch::of_this_run().path(&format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log);
        for (variable, _) in env::vars_os() {
            if variable.to_string_lossy().starts_with("EXPERTISE_") {
                command.env_remove(variable);
            }
        }
        let mut child = command
            .env("EXPERTISE_LISTEN", "127.0.0.1:0")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file.expect("a log of our own"))
            .spawn()
            .expect("the binary runs");
        Scratch::of_this_run().stop_at_the_end(&child);
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, log, lines }
    }
}

/// The binary of this build, or the one that the environment names.
fn binary() -> PathBuf {
    let named = env::var_os("EXPERTISE_LOAD_BINARY");
    named.map_or_else(|| env!("CARGO_BIN_EXE_expertise").into(), PathBuf::from)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
