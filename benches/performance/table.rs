//! Tables in Markdown.

use super::{compare::Rounds, ground::Kind, load::Measured, watch::median};

/// A comparison.
pub struct Line {
    /// Of what.
    pub what: String,
    /// On which kind of database.
    pub kind: Kind,
    /// The ratio to be reached.
    pub bar: f64,
    /// What came of it.
    pub rounds: Rounds,
}

/// A single figure.
pub struct Figure {
    /// Of what.
    pub what: String,
    /// On which kind of database.
    pub kind: Kind,
    /// What may not be passed.
    pub bar: String,
    /// What it is.
    pub found: String,
    /// Whether that is enough.
    pub reached: bool,
}

impl Line {
    /// Says it on standard error, where the run can be watched.
    pub fn tell(&self) {
        let (ratio, bar) = (self.rounds.ratio(), self.bar);
        let (kind, what) = (self.kind.name(), &self.what);
        eprintln!("{kind}: {what}: {ratio:.2} (bar {bar:.2})");
    }

    fn cells(&self) -> [String; 12] {
        let Self {
            what,
            kind,
            bar,
            rounds,
        } = self;
        let ratios = rounds.ratios();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let [a, b] = [&rounds.a, &rounds.b].map(|side| Side::of(side));
        let pgbench = match rounds.c.as_slice() {
            [] => String::new(),
            rates => format!("{:.0}", median(rates.to_vec())),
        };
        [
            what.clone(),
            kind.name().to_owned(),
            format!("{bar:.2}"),
            marked(format!("{:.2}", rounds.ratio()), rounds.ratio() >= *bar),
            format!("{low:.2}–{high:.2}"),
            a.rate,
            a.latency,
            a.cpu,
            b.rate,
            b.latency,
            b.cpu,
            pgbench,
        ]
    }
}

impl Figure {
    /// Says it on standard error, where the run can be watched.
    pub fn tell(&self) {
        let Self {
            what,
            kind,
            bar,
            found,
            ..
        } = self;
        eprintln!("{}: {what}: {found} (bar {bar})", kind.name());
    }
}

/// What is reached is bold.
fn marked(text: String, reached: bool) -> String {
    if reached { format!("**{text}**") } else { text }
}

struct Side {
    rate: String,
    latency: String,
    cpu: String,
}

impl Side {
    fn of(side: &[Measured]) -> Self {
        let middle = |of: &dyn Fn(&Measured) -> f64| median(side.iter().map(of).collect());
        let rate = middle(&Measured::rate);
        let p50 = middle(&|measured| measured.percentile(0.50));
        let p99 = middle(&|measured| measured.percentile(0.99));
        let server = middle(&|measured| measured.per_call(measured.cpu.server));
        let database = middle(&|measured| measured.per_call(measured.cpu.database));
        let database = match database {
            0.0 => String::new(),
            some => format!(" + {some:.0}"),
        };
        Self {
            rate: format!("{rate:.0}"),
            latency: format!("{p50:.2} / {p99:.2}"),
            cpu: format!("{server:.0}{database}"),
        }
    }
}

/// Comparisons of `a` with `b`.
pub fn of_lines(a: &str, b: &str, lines: &[Line]) -> String {
    let of = |what: &str, who: &str| format!("{who}: {what}");
    let [rate, latency, cpu] = ["calls/s", "p50 / p99 ms", "CPU µs/call"];
    let head = [
        "Call".to_owned(),
        "Database".to_owned(),
        "Bar".to_owned(),
        "Ratio".to_owned(),
        "Spread".to_owned(),
        of(rate, a),
        of(latency, a),
        of(cpu, a),
        of(rate, b),
        of(latency, b),
        of(cpu, b),
        "pgbench /s".to_owned(),
    ];
    let rows: Vec<_> = lines.iter().map(Line::cells).collect();
    markdown(&head, &rows)
}

/// Single figures.
pub fn of_figures(figures: &[Figure]) -> String {
    let head = ["Figure", "Database", "Bar", "Found"].map(str::to_owned);
    let row = |figure: &Figure| {
        [
            figure.what.clone(),
            figure.kind.name().to_owned(),
            figure.bar.clone(),
            marked(figure.found.clone(), figure.reached),
        ]
    };
    let rows: Vec<_> = figures.iter().map(row).collect();
    markdown(&head, &rows)
}

/// A table, without the columns in which nothing stands.
fn markdown<const N: usize>(head: &[String; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let used: Vec<usize> = (0..N)
        .filter(|&column| rows.iter().any(|row| !row[column].is_empty()))
        .collect();
    let line = |cells: &[String; N]| {
        let cells: Vec<&str> = used.iter().map(|&column| cells[column].as_str()).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(used.len()));
    let rows: String = rows.iter().map(line).collect();
    format!("{}{rule}{rows}", line(head))
}
