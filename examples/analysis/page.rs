//! The page of the rules of validation.

use std::fmt::Write;

use expertise::domain::validation::{Rule, RuleText, Severity};

const HEAD: &str = "\
<!-- Written by `cargo run --example analysis > docs/analysis.md` from the table of rules in src/domain/validation/rules.rs. -->

# Analysis of guides

[ValidateTask](reference.md#validatetask) checks one guide against the rules of this page, [ListFindings](reference.md#listfindings) all guides of an account. [AnalysisService](reference.md#analysisservice) says what conditions and walkthroughs mean.

- A request can turn a rule off or give it another severity (`options.rules`), and leave out single findings (`options.suppress`).
- Rules about walkthroughs are decided exactly. What the bounded search cannot decide is no finding and counts in `counts.undecided`.
- `expertise lint` prints the findings of stored guides and of documents in files. It checks a file without a server, by all rules but those about other guides of the account: {of_account}, and `condition/unknown-variable` for names that other guides can set (`components.P.N`). With `--closed` the files are all guides that there are, so that such a variable is found, too. A file does not say which translations are outdated, so `translation/outdated` and `translation/locked-outdated` are found in stored guides only.
- A task or step is shown if its `published` is 1; with any other number it is hidden. `step/unknown-published` names such numbers of steps; no rule names those of tasks.
- The title of a subtask step in a language is its own translation, else the name of its task in that language. The rules `translation/…` report a title as missing if there is neither. If the task is validated with the guide, its own finding says so; without the account, other tasks are not known.
- In a preview, a variable that only observations of the guide set and that has no answer is not answered once all these observations are hidden. That can hide further observations, and so on until nothing changes. Once no observation is left that could be asked (`next_observation` is empty), all remaining variables of the guide count as unanswered, and only unknown outside variables leave steps undetermined. `hidden_answers` names answers to questions that nobody was asked; they still count.
- Ids of rules and names of facts never change their meaning.
";

/// The page in GitHub's Markdown.
pub fn write() -> String {
    let of_account = Rule::ALL.iter().filter(|rule| rule.needs_account());
    let of_account: Vec<String> = of_account
        .map(|rule| format!("`{}`", rule.text().id))
        .collect();
    let mut page = HEAD.replace("{of_account}", &of_account.join(", "));
    page.push_str("\n| Rule | Severity |\n|---|---|\n");
    for rule in Rule::ALL {
        let RuleText { id, severity, .. } = rule.text();
        let anchor = id.replace('/', "");
        // Writing to a string does not fail.
        let _ = writeln!(page, "| [`{id}`](#{anchor}) | {} |", name(severity));
    }
    for rule in Rule::ALL {
        let RuleText {
            id,
            severity,
            description,
            example,
            hint,
        } = rule.text();
        let severity = name(severity);
        let _ = write!(
            page,
            "\n## {id}\n\n{severity}. {description}\n\n- *Example:* {example}\n- *To do:* {hint}\n"
        );
    }
    page
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "INFO",
        Severity::Warning => "WARNING",
        Severity::Error => "ERROR",
    }
}
