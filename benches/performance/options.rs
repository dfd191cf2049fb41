//! The arguments: `--seconds N` of a turn, `--rounds N`, `--connections N`, `--database
//! sqlite` or `postgres` for only one, and parts of the names of rows and figures.

use std::time::Duration;

use super::{
    compare::Timing,
    figures::{flat, memory, million, start, writers},
    rows::{CONNECTIONS, ROWS},
    testbed::Kind,
};

/// The names of figures.
const FIGURES: [&str; 5] = [
    writers::NAME,
    flat::NAME,
    million::NAME,
    memory::NAME,
    start::NAME,
];

/// The parsed arguments.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number and the duration of turns, and the number of connections.
    pub timing: Timing,
    /// The kinds of database.
    pub kinds: Vec<Kind>,
    names: Vec<String>,
}

impl Options {
    /// Parses the arguments; `cargo bench` adds `--bench`.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            timing: Timing {
                rounds: 4,
                turn: Duration::from_millis(2_500),
                connections: CONNECTIONS,
            },
            kinds: vec![Kind::Sqlite, Kind::Postgres],
            names: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().map_or("", String::as_str);
            let mut number = || {
                let number = value().parse().ok().filter(|number: &f64| *number > 0.0);
                number.ok_or_else(|| format!("{argument} must be followed by a number above 0"))
            };
            match argument.as_str() {
                "--bench" => {}
                "--seconds" => options.timing.turn = Duration::from_secs_f64(number()?),
                "--rounds" => options.timing.rounds = number()?.ceil() as usize,
                "--database" => options.kinds = vec![kind(value())?],
                "--connections" => options.timing.connections = number()?.ceil() as usize,
                name if name.starts_with('-') => {
                    return Err(format!(
                        "{name} is unknown: use --seconds N, --rounds N, --connections N, --database KIND, or names"
                    ));
                }
                name => options.names.push(name.to_owned()),
            }
        }
        let known: Vec<&str> = ROWS.iter().map(|row| row.name).chain(FIGURES).collect();
        let is_known = |name: &String| known.iter().any(|known| known.contains(name.as_str()));
        match options.names.iter().find(|name| !is_known(name)) {
            None => Ok(options),
            Some(name) => Err(format!(
                "{name} is not a part of a known name: use one of {}",
                known.join(", ")
            )),
        }
    }

    /// Whether the row or figure of this name is measured.
    pub fn selects(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| name.contains(part.as_str()))
    }
}

fn kind(name: &str) -> Result<Kind, String> {
    match name {
        "sqlite" => Ok(Kind::Sqlite),
        "postgres" => Ok(Kind::Postgres),
        other => Err(format!(
            "--database is {other:?}: it must be sqlite or postgres"
        )),
    }
}
