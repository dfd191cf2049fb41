//! Completions and manual pages.

use std::collections::BTreeSet;

use crate::kit::command::{Says, command};

const SUBCOMMANDS: [&str; 28] = [
    "serve",
    "migrate",
    "accounts",
    "copy",
    "config",
    "token",
    "translate",
    "import",
    "export",
    "show",
    "list",
    "edit",
    "diff",
    "apply",
    "delete",
    "history",
    "keep",
    "restore",
    "alias",
    "changes",
    "lint",
    "preview",
    "references",
    "graph",
    "new",
    "health",
    "completions",
    "man",
];

fn printed(args: &[&str]) -> String {
    command(args).run().succeeded().stdout
}

#[test]
fn the_help_lists_every_subcommand_and_no_other() {
    let help = printed(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").expect("commands");
    let (commands, _) = commands.split_once("\n\n").expect("options");
    let names = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected: Vec<&str> = SUBCOMMANDS.iter().copied().chain(["help"]).collect();
    assert_eq!(names, expected, "{help}");
    let described: BTreeSet<&str> = commands.lines().filter_map(|line| line.get(15..)).collect();
    assert_eq!(
        described.len(),
        commands.lines().count(),
        "two are described alike: {help}"
    );
}

#[test]
fn every_shell_completes_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for name in SUBCOMMANDS {
            assert!(script.contains(name), "{name} is not in that of {shell}");
        }
        assert!(script.contains("absent-steps"), "{shell}");
    }
    let output = command(&["completions", "csh"]).run();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("bash"), "{}", output.stderr);
}

#[test]
fn bash_reads_its_completions() {
    let script = printed(&["completions", "bash"]);
    let line = "COMP_WORDS=(expertise im) COMP_CWORD=1; _expertise expertise im expertise; \
                echo \"${COMPREPLY[@]}\"";
    let output = std::process::Command::new("bash")
        .args(["-c", &format!("{script}\n{line}")])
        .output()
        .expect("bash");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "import\n",
        "{output:?}"
    );
}

#[test]
fn bash_completes_the_values_of_flags() {
    for (words, values) in [
        ("list --format", "text json"),
        ("list --role", "user user2 user3 tech tech2 tech3 expert"),
        ("import --absent-steps", "keep delete"),
        ("translate --engine", "libretranslate apertium"),
        ("serve --auth", "header jwt"),
        ("graph --format", "mermaid dot svg"),
    ] {
        let script = printed(&["completions", "bash"]);
        let (_, flag) = words.split_once(' ').expect("a flag");
        let line = format!(
            "COMP_WORDS=(expertise {words} '') COMP_CWORD=3; _expertise expertise '' {flag}; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let output = std::process::Command::new("bash")
            .args(["-c", &format!("{script}\n{line}")])
            .output()
            .expect("bash");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(shown, format!("{values}\n"), "{words}: {output:?}");
    }
}

#[test]
fn the_help_of_translate_has_no_setting_of_the_server_but_the_log() {
    let help = printed(&["translate", "--help"]);
    help.says_none_of(&["--database-url", "--listen", "--config", "--jwt-secret"]);
    help.says(&["--log <", "--log-format <", "--engine <", "--account <"]);
}

#[test]
fn the_manual_names_every_subcommand_and_has_a_page_of_each() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH expertise 1"), "{page}");
    for name in SUBCOMMANDS {
        assert!(
            page.contains(&format!("expertise\\-{name}")),
            "{name}:\n{page}"
        );
        let own = printed(&["man", name]);
        assert!(own.contains(&format!(".TH expertise-{name} 1")), "{own}");
    }
    command(&["man", "improt"])
        .run()
        .fails_with(2, &["COMMAND is \"improt\": it must be a subcommand"]);
}
