//! Examples in the help of each command.

use clap::Command;

/// The end of the help of commands. The lines work literally, except for GUID, which is a guide of
/// the account.
const EXAMPLES: &str = r#"
expertise serve --listen 127.0.0.1:50051 --database-url sqlite:guides.db
expertise serve --config /etc/expertise.toml
expertise migrate --database-url sqlite:guides.db
expertise migrate --config /etc/expertise.toml --distribute
expertise accounts --database-url sqlite:guides.db
expertise accounts delete demo --config /etc/expertise.toml
expertise copy --from sqlite:guides.db --config /etc/expertise.toml
expertise config --config /etc/expertise.toml --log debug
expertise config --check --config /etc/expertise.toml
expertise token -a demo --scope "read write" --expires 30days
expertise token -a demo --scope read --private-key-file private.pem
expertise translate -a demo --languages de,es
expertise translate -a demo --languages de --task GUID --engine apertium
expertise translate -a demo --languages de,es --list
expertise import -a demo guides/laptop.json guides/router.json
expertise import -a demo --dry-run laptop.json
expertise import -a demo --absent-steps delete laptop.json
expertise export -a demo GUID -o laptop.json
expertise export -a demo --all -o guides
expertise export -a demo -s https://guides.example.org GUID
expertise show -a demo GUID
expertise show -a demo GUID --full --language de
expertise list -a demo --product-id 1204 --role tech
expertise list -a demo --format json
expertise edit -a demo GUID
expertise edit -a demo GUID --editor nano
expertise diff -a demo laptop.json
expertise diff -a demo GUID@3
expertise diff -a demo GUID@3 GUID@live
expertise apply -a demo guides --dry-run
expertise apply -a demo guides --prune
expertise delete -a demo GUID
expertise history -a demo GUID
expertise history -a demo --deleted
expertise keep -a demo GUID --note "reviewed by Ana" --alias live
expertise restore -a demo GUID@3 --dry-run
expertise restore -a demo GUID@live
expertise alias -a demo GUID live 3
expertise alias -a demo GUID live
expertise changes -a demo GUID
expertise changes -a demo --follow --since CURSOR
expertise lint guides/laptop.json guides/router.json
expertise lint laptop.json --min-severity warning --rule translation/missing=off
expertise lint guides --closed --fail-on warning
expertise lint -a demo GUID --format json
expertise preview -a demo GUID --level tech --language de
expertise preview -a demo GUID --answer charge_light=off --explain
expertise preview -a demo laptop.json --format json
expertise references -a demo --task GUID
expertise references -a demo --variable components.1204.charge_light
expertise references -a demo --variable components.1204.beeps --answer 3
expertise graph laptop.json --format svg -o laptop.svg
expertise graph -a demo GUID@live
expertise new --product-id 1204 -o laptop.json
expertise health
expertise health -s https://guides.example.org
expertise completions bash
expertise man
expertise man import
"#;

fn find_examples(command: &str) -> impl Iterator<Item = &'static str> {
    let lines = EXAMPLES.lines();
    lines.filter(move |line| line.split(' ').nth(1) == Some(command))
}

pub(super) fn with_examples(program: Command) -> Command {
    program.mut_subcommands(|command| {
        let lines: Vec<&str> = find_examples(command.get_name()).collect();
        command.after_help(format!("Examples:\n  {}", lines.join("\n  ")))
    })
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use crate::cli::command_line;

    #[test]
    fn every_command_has_examples_and_each_is_a_command_line() {
        let program = command_line(String::new());
        for subcommand in program.get_subcommands() {
            let name = subcommand.get_name();
            assert!(find_examples(name).next().is_some(), "{name}");
            for line in find_examples(name) {
                // A quoted argument may have spaces.
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
