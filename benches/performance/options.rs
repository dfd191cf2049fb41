//! `--seconds N` for a turn, `--rounds N`, `--connections N`, `--database sqlite` or
//! `postgres` for one alone, and names of what is measured.

use std::time::Duration;

use super::{
    compare::Patience,
    figures::{flat, memory, million, start, writers},
    ground::Kind,
    rows::{CONNECTIONS, ROWS},
};

/// What there is beside the rows.
const FIGURES: [&str; 5] = [
    writers::KEY,
    flat::KEY,
    million::KEY,
    memory::KEY,
    start::KEY,
];

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long each comparison takes.
    pub patience: Patience,
    /// On which databases.
    pub kinds: Vec<Kind>,
    names: Vec<String>,
}

impl Options {
    /// Reads the command line; `cargo bench` adds `--bench`.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            patience: Patience {
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
                number.ok_or_else(|| format!("{argument} takes a number above 0"))
            };
            match argument.as_str() {
                "--bench" => {}
                "--seconds" => options.patience.turn = Duration::from_secs_f64(number()?),
                "--rounds" => options.patience.rounds = number()?.ceil() as usize,
                "--database" => options.kinds = vec![kind(value())?],
                "--connections" => options.patience.connections = number()?.ceil() as usize,
                name if name.starts_with('-') => {
                    return Err(format!(
                        "{name}: --seconds N, --rounds N, --connections N, --database KIND, or names"
                    ));
                }
                name => options.names.push(name.to_owned()),
            }
        }
        let keys: Vec<&str> = ROWS.iter().map(|row| row.key).chain(FIGURES).collect();
        let known = |name: &String| keys.iter().any(|key| key.contains(name.as_str()));
        match options.names.iter().find(|name| !known(name)) {
            None => Ok(options),
            Some(name) => Err(format!("{name}: none of {}", keys.join(", "))),
        }
    }

    /// Whether this is measured.
    pub fn picks(&self, key: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| key.contains(name.as_str()))
    }
}

fn kind(name: &str) -> Result<Kind, String> {
    match name {
        "sqlite" => Ok(Kind::Sqlite),
        "postgres" => Ok(Kind::Postgres),
        other => Err(format!("--database {other}: sqlite or postgres")),
    }
}
