//! The directory for the files of a run, and the watchdog that removes it and ends
//! all processes of the run.

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, OnceLock},
};

use rustix::process::Signal;

/// Reads entries `SIGNAL:PID` until the pipe closes, which it does however the test process ends.
/// `-SIGNAL:PID` removes an entry. Then it sends each process its signal, sends SIGKILL to
/// processes that are still running, and removes the directory.
const WATCHDOG: &str = r#"
entries=' '
while read -r line; do
    case $line in
    -*) entry=${line#-}; entries="${entries%% "$entry" *} ${entries#* "$entry" }" ;;
    *) entries="$entries$line " ;;
    esac
done
for entry in $entries; do
    kill -s "${entry%:*}" "${entry#*:}" 2>/dev/null
done
tries=0
for entry in $entries; do
    # A zombie that nobody reaps looks alive, so the wait is bounded.
    while kill -0 "${entry#*:}" 2>/dev/null && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    kill -s KILL "${entry#*:}" 2>/dev/null
done
rm -rf "$1"
"#;

/// The private directory of this run.
pub struct Scratch {
    directory: PathBuf,
    watchdog: Mutex<ChildStdin>,
}

impl Scratch {
    /// The directory of this process, made at the first call.
    pub fn of_this_run() -> &'static Self {
        static SCRATCH: OnceLock<Scratch> = OnceLock::new();
        SCRATCH.get_or_init(Self::new)
    }

    // The watchdog outlives this process, so nothing here can wait for it.
    #[allow(clippy::zombie_processes)]
    fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("expertise-tests-")
            .tempdir()
            .expect("a temporary directory")
            .keep();
        // PostgreSQL runs as another user when the tests run as root.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o711))
            .expect("the permissions of the temporary directory");
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(&directory)
            // In its own process group, it gets no interrupts from the terminal.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh for the watchdog");
        let stdin = watchdog.stdin.take().expect("the watchdog's pipe");
        Self {
            directory,
            watchdog: Mutex::new(stdin),
        }
    }

    /// A path inside the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The URL of the SQLite file `name`.db inside the directory.
    pub fn sqlite_url(&self, name: &str) -> String {
        format!("sqlite:{}", self.path(&format!("{name}.db")).display())
    }

    /// Has the watchdog end this process when the run ends, with this signal first.
    pub fn end_with_the_run(&self, signal: Signal, process: u32) -> WatchdogEntry {
        let entry = format!("{}:{process}", signal.as_raw());
        self.write_to_watchdog(&entry);
        WatchdogEntry(entry)
    }

    fn write_to_watchdog(&self, line: &str) {
        let mut pipe = self.watchdog.lock().expect("the watchdog's pipe");
        writeln!(pipe, "{line}").expect("the watchdog reads");
    }
}

/// A process that the watchdog ends. Drop it after the process was waited for: another
/// process may get its id.
pub struct WatchdogEntry(String);

impl Drop for WatchdogEntry {
    fn drop(&mut self) {
        Scratch::of_this_run().write_to_watchdog(&format!("-{}", self.0));
    }
}
