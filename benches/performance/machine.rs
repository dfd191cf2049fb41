//! Describes the machine.

use std::{fs, process::Command};

use super::scratch::Scratch;

/// Processor, memory, kernel, disk and compiler.
pub fn describe() -> String {
    let processor = value_in("/proc/cpuinfo", "model name");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = value_in("/proc/meminfo", "MemTotal");
    let memory = memory.strip_suffix(" kB").and_then(|kb| kb.parse().ok());
    let memory = memory.map_or(0, |kb: u64| kb / 1024 / 1024);
    let kernel = output_of(Command::new("uname").arg("-sr"));
    let scratch = Scratch::of_this_run().path("");
    let disk = output_of(
        Command::new("df")
            .args(["--output=fstype,source"])
            .arg(&scratch),
    );
    let disk = disk.lines().last().unwrap_or_default().to_owned();
    let compiler = output_of(Command::new("rustc").arg("--version"));
    format!(
        "Machine: {processor}, {cores} cores, which server, load and database share; {memory} GiB \
         of memory; {kernel}; files on {disk}; {compiler}.\n"
    )
}

fn value_in(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn output_of(command: &mut Command) -> String {
    let out = command.output().map(|out| out.stdout).unwrap_or_default();
    String::from_utf8_lossy(&out).trim().to_owned()
}
