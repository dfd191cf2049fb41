//! The parts of this program that the filter of the log can name.

const PROGRAM: &str = "expertise";

/// The modules of the library, which are the parts.
pub(super) const KNOWN: [&str; 17] = [
    "auth",
    "call_context",
    "cli",
    "client",
    "config",
    "domain",
    "files",
    "grpc",
    "messages",
    "pem",
    "proto",
    "server",
    "store",
    "telemetry",
    "terminal",
    "translate",
    "version",
];

/// The parts of this program that a filter names and that do not exist. Parts of libraries
/// are not checked.
pub(super) fn unknown(filter: &str) -> impl Iterator<Item = &str> {
    // A directive without a level is a target alone.
    let targets = filter.split(',').map(|directive| {
        let with_level = directive.split_once('=');
        with_level.map_or(directive, |(target, _)| target).trim()
    });
    targets.filter(|target| {
        let mut parts = target.split("::");
        let is_ours = parts.next() == Some(PROGRAM);
        is_ours && parts.next().is_some_and(|module| !KNOWN.contains(&module))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_modules_of_the_library() {
        let library = include_str!("../lib.rs");
        let modules = library.lines().filter_map(|line| {
            let module = line.trim_start_matches("pub ").strip_prefix("mod ")?;
            module.strip_suffix(';')
        });
        assert_eq!(modules.collect::<Vec<_>>(), KNOWN);
    }

    #[test]
    fn a_part_that_does_not_exist_is_found_with_and_without_a_level() {
        let filter = "info,expertise,expertise::store,expertise::stroe,expertise::clii=debug,h2::x";
        let found: Vec<&str> = unknown(filter).collect();
        assert_eq!(found, ["expertise::stroe", "expertise::clii"]);
    }
}
