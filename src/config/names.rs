//! Names of settings in the environment, and misspelt ones.

use std::{collections::BTreeMap, ffi::OsString};

use clap::{Arg, Args};

use super::{
    ServerSettings,
    health::HealthSettings,
    postgres_parameters,
    settings::{environment_name, key, settings},
    translate::TranslateSettings,
};
use crate::domain::misspelling::closest;

/// The beginning of the name of every setting in the environment.
pub(super) const PREFIX: &str = "EXPERTISE_";
const TEST_PREFIX: &str = "EXPERTISE_TEST_";

/// Variables that are no settings: of builds, and of tests. Those of tests that begin with
/// [`TEST_PREFIX`] are not listed.
const OTHER_VARIABLES: [&str; 15] = [
    "EXPERTISE_ADDRESS",
    "EXPERTISE_CANCELLED_CALLS",
    "EXPERTISE_COMMIT",
    "EXPERTISE_CRASH_CYCLES",
    "EXPERTISE_FAULTS_SEED",
    "EXPERTISE_FLEET_ROUNDS",
    "EXPERTISE_FUZZ_EXECUTIONS",
    "EXPERTISE_FUZZ_SEED",
    "EXPERTISE_LOAD",
    "EXPERTISE_LOAD_BINARY",
    "EXPERTISE_METRICS_ADDRESS",
    "EXPERTISE_OUTAGE_ROUNDS",
    "EXPERTISE_PACKAGING_PROFILE",
    "EXPERTISE_REQUIRE_POSTGRES",
    "EXPERTISE_SHUTDOWN_CYCLES",
];

/// Variables of other programs that commands read: the editor of the user.
pub(super) const EDITORS: [&str; 2] = ["VISUAL", "EDITOR"];

/// The variables of the environment that may be settings, [`EDITORS`], and those of
/// connections to PostgreSQL.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, OsString>);

impl Variables {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self::new(std::env::vars_os())
    }

    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let named = variables.into_iter().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let is_read = name.starts_with(PREFIX)
                || EDITORS.contains(&name.as_str())
                || postgres_parameters::VARIABLES.contains(&name.as_str());
            is_read.then_some((name, value))
        });
        Self(named.collect())
    }

    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.0.get(name)
    }

    /// The variables that nothing reads, each with the known name that it is a misspelling
    /// of, if any. Those that Kubernetes makes for Services are left out.
    pub fn unknown(&self) -> Vec<(&str, Option<String>)> {
        let known = known_names();
        let unknown = self.0.iter().filter(|(name, value)| {
            name.starts_with(PREFIX)
                && !known.contains(*name)
                && !name.starts_with(TEST_PREFIX)
                && !is_of_kubernetes(name, &value.to_string_lossy())
        });
        let with_closest = unknown.map(|(name, _)| {
            let candidates = known.iter().map(String::as_str);
            let alike: Vec<&str> = candidates.filter(|it| is_misspelling(name, it)).collect();
            let closest = closest(name, alike);
            (name.as_str(), closest.map(str::to_owned))
        });
        with_closest.collect()
    }
}

/// Every name in the environment that has a meaning.
fn known_names() -> Vec<String> {
    let names_of = |settings: Vec<Arg>| {
        let names = settings
            .iter()
            .map(|setting| environment_name(key(setting)));
        names.collect::<Vec<_>>()
    };
    let mut names = names_of(settings::<ServerSettings>());
    names.extend(names_of(settings::<TranslateSettings>()));
    names.extend(names_of(settings::<HealthSettings>()));
    names.extend(OTHER_VARIABLES.map(str::to_owned));
    names
}

/// Whether Kubernetes makes the variable for a Service called `expertise`, or for one
/// whose name begins like that.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    name.starts_with("EXPERTISE_PORT")
        || name.starts_with("EXPERTISE_SERVICE_")
        || name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT") && is_address
        || ["_TCP", "_UDP", "_SCTP"]
            .iter()
            .any(|protocol| name.contains(&format!("{protocol}_")) || name.ends_with(protocol))
            && name.contains("_PORT_")
}

/// The key of `A` that this one may be a misspelling of.
pub(super) fn closest_key<A: Args>(name: &str) -> Option<String> {
    let settings = settings::<A>();
    let keys: Vec<&str> = settings.iter().map(key).collect();
    closest(name, keys).map(str::to_owned)
}

/// Whether the names differ in fewer than half of the letters behind [`PREFIX`]. In a short
/// name, two other letters make another word. Two letters that are swapped count as one.
fn is_misspelling(name: &str, known: &str) -> bool {
    let letters = known.len().saturating_sub(PREFIX.len());
    2 * strsim::osa_distance(name, known) < letters
}
