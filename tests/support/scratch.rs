//! The directory that holds what a run leaves on disk, and the watchdog that
//! clears it away however the run ends.

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, OnceLock},
};

/// Reads process ids until the pipe closes, which it does when the test process
/// ends, by a panic or a kill as well; stops the processes named and removes the
/// directory. `-PID` takes a process out again. A zombie that nobody reaps looks
/// alive, so the wait is bounded.
const WATCHDOG: &str = r#"
pids=' '
while read -r line; do
    case $line in
    -*) gone=${line#-}; pids="${pids%% "$gone" *} ${pids#* "$gone" }" ;;
    *) pids="$pids$line " ;;
    esac
done
kill -QUIT $pids 2>/dev/null
tries=0
while kill -0 $pids 2>/dev/null && [ "$tries" -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
rm -rf "$1"
"#;

/// A directory of this run alone.
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

    // The watchdog outlives this process, so nobody here can wait for it.
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
            // Of its own group, an interrupt from the terminal passes it by.
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

    /// Makes the watchdog stop this process at the end.
    pub fn stop_at_the_end(&self, process: &Child) {
        self.tell(&process.id().to_string());
    }

    /// Makes the watchdog forget a process that was reaped: its id may be given
    /// to another.
    pub fn has_ended(&self, process: &Child) {
        self.tell(&format!("-{}", process.id()));
    }

    fn tell(&self, line: &str) {
        let mut pipe = self.watchdog.lock().expect("the watchdog's pipe");
        writeln!(pipe, "{line}").expect("the watchdog listens");
    }
}
