//! Every wrong setting and argument with the line that refuses it, in one snapshot.

use std::fs;

use super::refusal;

/// Has what is given, each with the line that refuses it below, which is indented: variables,
/// without `EXPERTISE_` in front, and arguments. Quotes are those of a shell.
const SNAPSHOT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/ops/settings/refused/snapshots/refused_settings.snap"
);

/// How many inputs the snapshot has: it is also what the inputs are read from.
const INPUTS: usize = 156;

#[test]
fn each_wrong_setting_is_refused_in_one_line_without_secrets() {
    let snapshot = fs::read_to_string(SNAPSHOT).expect("the snapshot");
    let (_, lines) = snapshot.rsplit_once("\n---\n").expect("its head");
    let (mut shown, mut tried) = (String::new(), 0);
    for given in lines.lines().filter(|line| !line.starts_with("    ")) {
        shown.push_str(given);
        shown.push('\n');
        if given.is_empty() {
            continue;
        }
        let words = words(given);
        let (environment, args): (Vec<_>, Vec<_>) =
            words.iter().partition(|word| is_variable(word));
        let environment: Vec<(String, &str)> = environment
            .into_iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (full_name(name), value))
            .collect();
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        let args: Vec<&str> = args.into_iter().map(String::as_str).collect();
        let line = refusal(&args, &environment);
        let hidden = ["hush-", "hu#sh", "hu sh", ":hush", "to.ken"];
        let hidden = hidden.iter().all(|secret| !line.contains(secret));
        assert!(hidden && !line.contains('\n'), "{given}: {line}");
        shown.push_str(&format!("    {line}\n"));
        tried += 1;
    }
    assert_eq!(tried, INPUTS);
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("refused_settings", shown));
}

/// The words of a line. Quotes hold spaces, and `\n` is a new line.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.replace("\\n", "\n")),
        }
    }
    words
}

fn is_variable(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}

fn full_name(name: &str) -> String {
    match name.starts_with("PG") {
        true => name.to_owned(),
        false => format!("EXPERTISE_{name}"),
    }
}
