//! Names of settings in the environment, and misspelt ones.

use std::{collections::BTreeMap, ffi::OsString};

use clap::Arg;

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
/// The beginning of the name of every variable of tests.
const TEST_PREFIX: &str = "EXPERTISE_TEST_";

/// The commit of a build, and whether tests need PostgreSQL, which are no settings.
const NO_SETTINGS: [&str; 2] = ["EXPERTISE_COMMIT", "EXPERTISE_REQUIRE_POSTGRES"];

/// Variables of other programs that commands read: the editor of the user.
pub(super) const EDITORS: [&str; 2] = ["VISUAL", "EDITOR"];

/// The variables of the environment that may be settings, [`EDITORS`], and those of
/// connections to PostgreSQL.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, OsString>);

impl Variables {
    /// Those of an environment.
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
        let settings = all_settings();
        let names = settings
            .iter()
            .map(|setting| environment_name(key(setting)));
        let known: Vec<String> = names.chain(NO_SETTINGS.map(str::to_owned)).collect();
        let unknown = self.0.iter().filter(|(name, value)| {
            name.starts_with(PREFIX)
                && !known.contains(*name)
                && !name.starts_with(TEST_PREFIX)
                && !is_of_kubernetes(name, &value.to_string_lossy())
        });
        let with_closest = unknown.map(|(name, _)| {
            // A setting without its `_FILE`, such as that of a certificate.
            let of_file = format!("{name}_FILE");
            if known.contains(&of_file) {
                return (name.as_str(), Some(of_file));
            }
            let candidates = known.iter().map(String::as_str);
            let alike: Vec<&str> = candidates.filter(|it| is_misspelling(name, it)).collect();
            let closest = closest(name, alike);
            (name.as_str(), closest.map(str::to_owned))
        });
        with_closest.collect()
    }
}

/// The settings of every command.
pub(super) fn all_settings() -> Vec<Arg> {
    let server = settings::<ServerSettings>();
    let commands = [
        settings::<TranslateSettings>(),
        settings::<HealthSettings>(),
    ];
    server
        .into_iter()
        .chain(commands.into_iter().flatten())
        .collect()
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

/// The key of these settings that this one may be a misspelling of.
pub(super) fn closest_key(name: &str, settings: &[Arg]) -> Option<String> {
    closest(name, settings.iter().map(key)).map(str::to_owned)
}

/// Whether the names differ in fewer than half of the letters behind [`PREFIX`]. In a short
/// name, two other letters make another word. Two letters that are swapped count as one.
fn is_misspelling(name: &str, known: &str) -> bool {
    let letters = known.len().saturating_sub(PREFIX.len());
    2 * strsim::osa_distance(name, known) < letters
}
