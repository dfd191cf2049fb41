//! The table that is printed, in Markdown.

use std::{fs, time::Duration};

use super::{Database, load::Measured};

/// The measured turns of a call on one database.
pub struct Row {
    call: &'static str,
    database: Database,
    /// The turns of this build and, if there is one, of the other build.
    builds: Vec<Vec<Measured>>,
}

impl Row {
    pub fn new(call: &'static str, database: Database, builds: Vec<Vec<Measured>>) -> Self {
        Self {
            call,
            database,
            builds,
        }
    }

    /// A line that shows progress until the table is complete.
    pub fn progress(&self) -> String {
        let rates = self.builds.iter().map(|turns| calls_per_second(turns));
        let rates = rates.collect::<Vec<_>>().join(" against ");
        format!("{}: {}: {rates} calls/s", self.database.name(), self.call)
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.call.to_owned(), self.database.name().to_owned()];
        if let [this, other] = self.builds.as_slice() {
            let pairs = this.iter().zip(other);
            let ratio = |(this, other): (&Measured, &Measured)| {
                this.calls_per_second / other.calls_per_second
            };
            let mut ratios: Vec<f64> = pairs.map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
            cells.extend([
                format!("{:.2}", median(ratios)),
                format!("{low:.2}–{high:.2}"),
            ]);
        }
        for turns in &self.builds {
            let of = |value: fn(&Measured) -> Duration| {
                median(turns.iter().map(|turn| value(turn).as_secs_f64()).collect())
            };
            let database = turns.iter().all(|turn| turn.database_cpu.is_some());
            let database = database.then(|| of(|turn| turn.database_cpu.unwrap_or_default()));
            let database = database.map_or_else(String::new, |cpu| format!(" + {:.0}", cpu * 1e6));
            cells.extend([
                calls_per_second(turns),
                format!(
                    "{:.2} / {:.2}",
                    of(|turn| turn.p50) * 1e3,
                    of(|turn| turn.p99) * 1e3
                ),
                format!("{:.0}{database}", of(|turn| turn.server_cpu) * 1e6),
            ]);
        }
        cells
    }
}

fn calls_per_second(turns: &[Measured]) -> String {
    let median = median(turns.iter().map(|turn| turn.calls_per_second).collect());
    format!("{median:.0}")
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len() - 1;
    f64::midpoint(numbers[last / 2], numbers[last.div_ceil(2)])
}

/// All rows, which have the same number of builds.
pub fn table(rows: &[Row]) -> String {
    let builds = rows.first().map_or(0, |row| row.builds.len());
    let mut head = vec!["Call".to_owned(), "Database".to_owned()];
    if builds == 2 {
        head.extend(["Ratio".to_owned(), "Spread".to_owned()]);
    }
    for build in ["", "other: "].into_iter().take(builds) {
        let columns = ["calls/s", "p50 / p99 ms", "CPU µs/call"];
        head.extend(columns.map(|column| format!("{build}{column}")));
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let rows = rows.iter().map(|row| line(&row.cells()));
    line(&head) + &rule + &rows.collect::<String>()
}

/// The processor of this machine.
pub fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .unwrap_or_default()
        .trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {cores} cores, which the server, the load and the database share.\n")
}
