//! The binary, and child processes that never outlive the test that started them.

use std::{
    env,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    deadline::poll_for,
    scratch::{Scratch, WatchdogEntry},
};

/// The binary that the tests run: `EXPERTISE_TEST_BINARY`, or the binary of this build.
pub fn binary() -> PathBuf {
    let named = env::var_os("EXPERTISE_TEST_BINARY");
    named.map_or_else(|| env!("CARGO_BIN_EXE_expertise").into(), PathBuf::from)
}

/// Fails a test that needs a program or right which this machine lacks. `build.rs` looks for the
/// same things, and the tests that need what it does not find are ignored.
pub fn cannot_run_without(what: &str) -> ! {
    panic!("there is no {what} on this machine, so this test cannot run")
}

/// Removes the settings and the state of this process's user from the environment of the command.
pub fn remove_settings(command: &mut Command) {
    command.env("XDG_STATE_HOME", Scratch::of_this_run().path("state"));
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with("EXPERTISE_") {
            command.env_remove(variable);
        }
    }
}

/// A child process. It is killed when this is dropped, and by the watchdog when
/// this process dies.
pub struct SupervisedChild {
    pub child: Child,
    /// The first signal to end it. SIGKILL follows if it runs on.
    end: Signal,
    _entry: WatchdogEntry,
}

/// How long a child may take to follow its first signal.
const END_TIMEOUT: Duration = Duration::from_secs(10);

impl SupervisedChild {
    pub fn spawn(command: &mut Command, end: Signal) -> Self {
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            _entry: Scratch::of_this_run().end_with_the_run(end, child.id()),
            child,
            end,
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("{signal:?}: {error}"));
    }

    /// How it ended; `None` while it runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of a child")
    }

    /// Waits for its end; `None` when it runs on after the time-out.
    pub fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        poll_for(timeout, || self.exit_status())
    }
}

impl Drop for SupervisedChild {
    fn drop(&mut self) {
        if self.end != Signal::KILL && self.exit_status().is_none() {
            self.signal(self.end);
            self.wait(END_TIMEOUT);
        }
        // Neither does anything to a child that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of an output with their ends. They are read as they come, to the end, because writes of the
/// command fail without a reader.
pub fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            let read = output.read_until(b'\n', &mut line).unwrap_or(0);
            let line = String::from_utf8_lossy(&line).into_owned();
            if read == 0 {
                break;
            }
            let _ = sender.send(line);
        }
    });
    lines
}
