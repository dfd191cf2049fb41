//! The page of the validation rules.

use std::fmt::Write;

use expertise::domain::validation::{Rule, RuleText, Severity};

const HEAD: &str = "\
<!-- Written by `cargo run --example analysis > docs/analysis.md` from the table of rules in src/domain/validation/rules.rs. -->

# Analysis of guides

The service finds mistakes in guides. [ValidateTask](reference.md#validatetask) checks one guide against the rules on this page, and [ListFindings](reference.md#listfindings) checks all guides of an account. [AnalysisService](reference.md#analysisservice) explains conditions and walkthroughs.

- **Options.** A request can disable a rule or change its severity (`options.rules`), and suppress single findings (`options.suppress`).
- **Exactness.** Rules about walkthroughs are decided exactly. If the bounded search cannot decide a question, there is no finding, and the question counts in `counts.undecided`.
- **Files.** `expertise lint` checks stored guides and files. It checks files without a server, so it skips the rules about other guides of the account: {account_rules}, and `condition/unknown-variable` for names that other guides can set (`components.P.N`). With `--closed`, the files are all guides, so it finds such variables, too. `translation/outdated` and `translation/locked-outdated` are found only in stored guides, because files do not record which translations are outdated.
- **Published.** A task or step is shown if its `published` is 1, and hidden with any other number. `step/unknown-published` reports other numbers of steps, but not of tasks.
- **Titles of subtask steps.** The title in a language is the translation of the step or, without one, the name of its task in that language. If both are missing, the rules `translation/…` report the title. If the task is validated together with the guide, the finding is reported for the task instead. Without the account, other tasks are unknown and not reported.
- **Unanswered variables in previews.** If a variable has no answer and only observations of the guide set it, it counts as unanswered once all these observations are hidden. That can hide more observations, and so on until nothing changes. If no observation is left to ask (`next_observation` is empty), all remaining variables that only observations of the guide set count as unanswered, and only variables that may also be set elsewhere leave steps undetermined. `hidden_answers` names answers to hidden questions; they still count.
- **Stability.** IDs of rules and names of facts never change their meaning.
";

/// The page in GitHub's Markdown.
pub fn write() -> String {
    let account_rules = Rule::ALL.iter().filter(|rule| rule.needs_account());
    let account_rules: Vec<String> = account_rules
        .map(|rule| format!("`{}`", rule.text().id))
        .collect();
    let mut page = HEAD.replace("{account_rules}", &account_rules.join(", "));
    page.push_str("\n| Severity | Rules |\n|---|---|\n");
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let texts = Rule::ALL.iter().map(|rule| rule.text());
        let links: Vec<String> = texts
            .filter(|text| text.severity == severity)
            .map(|text| format!("[`{}`](#{})", text.id, text.id.replace('/', "")))
            .collect();
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {} | {} |", name(severity), links.join(", "));
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
            "\n## {id}\n\n- **{severity}.** {description}\n- *Example:* {example}\n- *To do:* {hint}\n"
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
