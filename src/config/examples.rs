//! Examples in the help of each command.

use clap::Command;

/// What each command's help ends with: lines that work as they stand, given a GUID of
/// the account.
const EXAMPLES: [(&str, &[&str]); 28] = [
    (
        "serve",
        &[
            "expertise serve --listen 127.0.0.1:50051 --database-url sqlite:guides.db",
            "expertise serve --config /etc/expertise.toml",
        ],
    ),
    (
        "migrate",
        &[
            "expertise migrate --database-url sqlite:guides.db",
            "expertise migrate --config /etc/expertise.toml --partitions 16",
        ],
    ),
    (
        "accounts",
        &[
            "expertise accounts --database-url sqlite:guides.db",
            "expertise accounts delete demo --config /etc/expertise.toml",
        ],
    ),
    (
        "copy",
        &["expertise copy --from sqlite:guides.db --config /etc/expertise.toml"],
    ),
    (
        "config",
        &[
            "expertise config --config /etc/expertise.toml --log debug",
            "expertise config --check --config /etc/expertise.toml",
        ],
    ),
    (
        "token",
        &[
            "expertise token -a demo --scope \"read write\" --expires 30days",
            "expertise token -a demo --scope read --private-key-file private.pem",
        ],
    ),
    (
        "translate",
        &[
            "expertise translate -a demo --languages de,es",
            "expertise translate -a demo --languages de --task GUID --engine apertium",
            "expertise translate -a demo --languages de,es --list",
        ],
    ),
    (
        "import",
        &[
            "expertise import -a demo guides/laptop.json guides/router.json",
            "expertise import -a demo --dry-run laptop.json",
            "expertise import -a demo --absent-steps delete laptop.json",
        ],
    ),
    (
        "export",
        &[
            "expertise export -a demo GUID -o laptop.json",
            "expertise export -a demo --all -o guides",
            "expertise export -a demo -s https://guides.example.org GUID",
        ],
    ),
    (
        "show",
        &[
            "expertise show -a demo GUID",
            "expertise show -a demo GUID --full --language de",
        ],
    ),
    (
        "list",
        &[
            "expertise list -a demo --product-id 1204 --role tech",
            "expertise list -a demo --format json",
        ],
    ),
    (
        "edit",
        &[
            "expertise edit -a demo GUID",
            "expertise edit -a demo GUID --editor nano",
        ],
    ),
    (
        "diff",
        &[
            "expertise diff -a demo laptop.json",
            "expertise diff -a demo GUID@3",
            "expertise diff -a demo GUID@3 GUID@live",
        ],
    ),
    (
        "apply",
        &[
            "expertise apply -a demo guides --dry-run",
            "expertise apply -a demo guides --prune",
        ],
    ),
    ("delete", &["expertise delete -a demo GUID"]),
    (
        "history",
        &[
            "expertise history -a demo GUID",
            "expertise history -a demo --deleted",
        ],
    ),
    (
        "keep",
        &["expertise keep -a demo GUID --note \"reviewed by Ana\" --alias live"],
    ),
    (
        "restore",
        &[
            "expertise restore -a demo GUID@3 --dry-run",
            "expertise restore -a demo GUID@live",
        ],
    ),
    (
        "alias",
        &[
            "expertise alias -a demo GUID live 3",
            "expertise alias -a demo GUID live",
        ],
    ),
    (
        "changes",
        &[
            "expertise changes -a demo GUID",
            "expertise changes -a demo --follow --since CURSOR",
        ],
    ),
    (
        "lint",
        &[
            "expertise lint guides/laptop.json guides/router.json",
            "expertise lint laptop.json --min-severity warning --rule translation/missing=off",
            "expertise lint guides --closed --fail-on warning",
            "expertise lint -a demo GUID --format json",
        ],
    ),
    (
        "preview",
        &[
            "expertise preview -a demo GUID --level tech --language de",
            "expertise preview -a demo GUID --answer charge_light=off --explain",
            "expertise preview -a demo laptop.json --format json",
        ],
    ),
    (
        "references",
        &[
            "expertise references -a demo --task GUID",
            "expertise references -a demo --variable components.1204.charge_light",
            "expertise references -a demo --variable components.1204.beeps --answer 3",
        ],
    ),
    (
        "graph",
        &[
            "expertise graph laptop.json --format svg -o laptop.svg",
            "expertise graph -a demo GUID@live",
        ],
    ),
    ("new", &["expertise new --product-id 1204 -o laptop.json"]),
    (
        "health",
        &[
            "expertise health",
            "expertise health -s https://guides.example.org",
        ],
    ),
    ("completions", &["expertise completions bash"]),
    ("man", &["expertise man", "expertise man import"]),
];

/// Adds the examples to the help of each command.
pub(super) fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (name, lines)| {
        let help = format!("Examples:\n  {}", lines.join("\n  "));
        command.mut_subcommand(name, |subcommand| subcommand.after_help(help))
    })
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{super::command_line, *};

    #[test]
    fn every_command_has_examples_and_each_is_a_command_line() {
        let program = command_line(String::new());
        for subcommand in program.get_subcommands() {
            let examples = EXAMPLES
                .iter()
                .find(|(name, _)| *name == subcommand.get_name());
            let (_, lines) = examples.unwrap_or_else(|| panic!("{}", subcommand.get_name()));
            for line in *lines {
                // A quoted argument has spaces.
                let parts = line.split('"').enumerate();
                let words = parts.flat_map(|(index, part)| match index % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
                let guid = "01a20006-4f3b-7d2f-8a4c-b9bf03c0c9d8";
                let words = words.map(|word| word.replace("GUID", guid));
                let read = program.clone().try_get_matches_from(words);
                assert!(read.is_ok(), "{line}: {}", read.expect_err("an error"));
            }
        }
    }
}
