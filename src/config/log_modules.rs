//! The parts of this program that the filter of the log can name.

const PROGRAM: &str = "expertise";

/// The modules of the library, which are the parts.
pub(super) const KNOWN: [&str; 16] = [
    "auth",
    "call_context",
    "cli",
    "client",
    "config",
    "domain",
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

/// The parts in a filter that begin with the name of this program and do not exist. Those
/// of libraries are not known.
pub(super) fn unknown(filter: &str) -> impl Iterator<Item = &str> {
    let targets = filter
        .split(',')
        .filter_map(|directive| directive.split_once('='));
    targets.map(|(target, _)| target.trim()).filter(|target| {
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
}
