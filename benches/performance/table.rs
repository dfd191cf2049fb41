//! Tables in Markdown.

use super::{
    compare::{Rounds, median},
    load::Measured,
    testbed::Kind,
};

/// The result of a comparison, a line of its table.
pub struct Line {
    what: String,
    kind: Kind,
    target: f64,
    rounds: Rounds,
}

/// A single figure.
pub struct Figure {
    what: String,
    kind: Kind,
    target: String,
    measured: String,
    reached: bool,
}

impl Line {
    /// The results of a comparison, with the target of its ratio. Prints the ratio to
    /// standard error as progress.
    pub fn new(what: impl Into<String>, kind: Kind, target: f64, rounds: Rounds) -> Self {
        let (what, ratio) = (what.into(), rounds.ratio());
        eprintln!("{}: {what}: {ratio:.2} (target {target:.2})", kind.name());
        Self {
            what,
            kind,
            target,
            rounds,
        }
    }

    fn cells(&self) -> [String; 11] {
        let Self {
            what,
            kind,
            target,
            rounds,
        } = self;
        let ratios = rounds.ratios();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let [a, b] = [&rounds.a, &rounds.b].map(|side| Side::of(side));
        [
            what.clone(),
            kind.name().to_owned(),
            format!("{target:.2}"),
            bold_if(format!("{:.2}", rounds.ratio()), rounds.ratio() >= *target),
            format!("{low:.2}–{high:.2}"),
            a.rate,
            a.latency,
            a.cpu,
            b.rate,
            b.latency,
            b.cpu,
        ]
    }
}

impl Figure {
    /// A measured value, and whether it reaches the target, which is a maximum unless its text
    /// says otherwise. Prints the value to standard error as progress.
    pub fn new(
        what: impl Into<String>,
        kind: Kind,
        target: String,
        measured: String,
        reached: bool,
    ) -> Self {
        let what = what.into();
        eprintln!("{}: {what}: {measured} (target {target})", kind.name());
        Self {
            what,
            kind,
            target,
            measured,
            reached,
        }
    }
}

/// The text, in bold if the target is reached.
fn bold_if(text: String, reached: bool) -> String {
    if reached { format!("**{text}**") } else { text }
}

/// The cells of one contender.
struct Side {
    rate: String,
    latency: String,
    cpu: String,
}

impl Side {
    fn of(side: &[Measured]) -> Self {
        let median_of = |of: &dyn Fn(&Measured) -> f64| median(side.iter().map(of).collect());
        let rate = median_of(&Measured::rate);
        let p50 = median_of(&|measured| measured.percentile(0.50));
        let p99 = median_of(&|measured| measured.percentile(0.99));
        let server = median_of(&|measured| measured.per_call(measured.cpu.server));
        let database = median_of(&|measured| measured.per_call(measured.cpu.database));
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
pub fn comparison_table(a: &str, b: &str, lines: &[Line]) -> String {
    let column = |what: &str, who: &str| format!("{who}: {what}");
    let [rate, latency, cpu] = ["calls/s", "p50 / p99 ms", "CPU µs/call"];
    let head = [
        "Call".to_owned(),
        "Database".to_owned(),
        "Target".to_owned(),
        "Ratio".to_owned(),
        "Spread".to_owned(),
        column(rate, a),
        column(latency, a),
        column(cpu, a),
        column(rate, b),
        column(latency, b),
        column(cpu, b),
    ];
    let rows: Vec<_> = lines.iter().map(Line::cells).collect();
    markdown(&head, &rows)
}

/// Single figures.
pub fn figure_table(figures: &[Figure]) -> String {
    let head = ["Figure", "Database", "Target", "Measured"].map(str::to_owned);
    let row = |figure: &Figure| {
        [
            figure.what.clone(),
            figure.kind.name().to_owned(),
            figure.target.clone(),
            bold_if(figure.measured.clone(), figure.reached),
        ]
    };
    let rows: Vec<_> = figures.iter().map(row).collect();
    markdown(&head, &rows)
}

/// A table.
fn markdown<const N: usize>(head: &[String; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String; N]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(N));
    let rows: String = rows.iter().map(line).collect();
    format!("{}{rule}{rows}", line(head))
}
