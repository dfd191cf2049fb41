//! Rules about walkthroughs: steps that no walkthrough sees, dependencies that always hold,
//! observations of the same name, and walkthroughs without an outcome.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{GuideStep, StepPosition},
    step::StepType,
    task::AccessLevel,
};

use super::{
    conflict::ConflictSearch,
    finding::Finding,
    formula::Literal,
    observations::{DuplicateName, duplicate_names, report_duplicate},
    report::{Own, Report},
    rules::Rule,
    search::{Assignment, Search},
    walkthrough::{Visit, Walkthroughs},
};

/// If the guide is too large, checks only the names of observations.
pub fn check(report: &mut Report<'_>, is_too_large: bool) {
    let guide = report.subject.guide;
    let duplicates = duplicate_names(report);
    let unpublished = report.subject.options.unpublished;
    let walkthroughs = || Walkthroughs::new(guide, unpublished, report.budget);
    let Some(mut walkthroughs) = (!is_too_large).then(walkthroughs).flatten() else {
        if !is_too_large {
            // The task itself and its outcomes are two more questions.
            report.counts.undecided += report.shown_steps().len() + duplicates.len() + 2;
        }
        for duplicate in &duplicates {
            report_duplicate(report, duplicate, None);
        }
        return;
    };
    let mut search = Search::new(std::mem::take(&mut walkthroughs.formula), report.budget);
    for own in report.own.clone() {
        let visits = walkthroughs.visits.iter().filter_map(|visit| visit.subtask);
        let visits = visits.filter(|visit| visit.task == own.index);
        let visits = visits.map(|visit| (visit.reached, visit.condition));
        // Every walkthrough visits the root. Further visits of the root come from subtasks that
        // lead back to it.
        let root_visit = (own.index == 0).then_some((Literal::TRUE, walkthroughs.begins));
        if !own.task.conditions.is_empty() {
            let visits = visits.chain(root_visit).collect();
            check_always_holds(report, &mut search, own, visits, "every walkthrough");
        }
    }
    let mut visits: HashMap<StepPosition, Vec<&Visit>> = HashMap::new();
    for visit in &walkthroughs.visits {
        visits.entry(visit.position).or_default().push(visit);
    }
    let visits_of = |step: StepPosition| visits.get(&step).map_or(&[][..], Vec::as_slice);
    let sees = |step: StepPosition, search: &mut Search<'_>| {
        search
            .formula
            .or(visits_of(step).iter().map(|it| it.visible))
    };
    check_duplicates(report, &mut search, &duplicates, sees);
    if search.is_possible(walkthroughs.begins) == Some(false) {
        let message = "The dependencies of the task can never hold.";
        let root = report.root();
        report.add(root.finding(Rule::NeverVisible, "dependencies", json!({}), message));
        return;
    }
    let conflicts = ConflictSearch::new(&walkthroughs);
    // For each own task, its first END without dependencies. Each walkthrough that reaches it ends
    // the task there.
    let mut ends: HashMap<usize, (usize, &GuideStep)> = HashMap::new();
    for (_, position, step) in report.shown_steps() {
        if step.step_type() == StepType::End && step.conditions.is_empty() {
            ends.entry(position.task).or_insert((position.step, step));
        }
    }
    // Starts at the last step: a walkthrough that sees it also sees many earlier steps, and so
    // decides them.
    for (own, position, step) in report.shown_steps().into_iter().rev() {
        let is_seen = sees(position, &mut search);
        if decide(report, &mut search, is_seen) == Some(false) {
            let message = "No walkthrough reaches the step.";
            let mut finding = own.finding(Rule::Unreachable, "", json!({}), message);
            let end = ends.get(&position.task);
            if let Some((_, end)) = end.filter(|(end, _)| *end < position.step) {
                finding.hint = format!(
                    "Every walkthrough ends at the END \"{}\" before it. Move that END after the \
                     step, give it conditions, or delete the step.",
                    end.step.title
                );
            }
            finding.related = conflicts.find(visits_of(position));
            report.add(finding);
        }
        if !step.conditions.is_empty() {
            let visits = visits_of(position).iter();
            let visits = visits.map(|it| (it.reached, it.condition));
            let walkthroughs = "every walkthrough that reaches the step";
            check_always_holds(report, &mut search, own, visits.collect(), walkthroughs);
        }
    }
    check_outcomes(report, &walkthroughs, &mut search);
}

/// Whether a literal can be true. Counts the question as undecided if the search cannot decide it.
fn decide(report: &mut Report<'_>, search: &mut Search<'_>, literal: Literal) -> Option<bool> {
    let is_possible = search.is_possible(literal);
    report.counts.undecided += usize::from(is_possible.is_none());
    is_possible
}

/// Reports each duplicate, and whether a walkthrough sees both it and an earlier observation of the
/// name.
fn check_duplicates(
    report: &mut Report<'_>,
    search: &mut Search<'_>,
    duplicates: &[DuplicateName<'_>],
    sees: impl Fn(StepPosition, &mut Search<'_>) -> Literal,
) {
    // Whether one of the earlier observations is seen, by task and name.
    let mut seen: HashMap<(usize, &str), Literal> = HashMap::new();
    for duplicate in duplicates {
        let (observation, earlier) = duplicate;
        let here = sees(observation.position, search);
        let key = (observation.position.task, observation.name());
        // The first duplicate of a name has one earlier observation.
        let before = seen.get(&key).copied().unwrap_or_else(|| {
            let earlier: Vec<Literal> = earlier.iter().map(|it| sees(*it, search)).collect();
            search.formula.or(earlier)
        });
        seen.insert(key, search.formula.or([before, here]));
        let both = search.formula.and([before, here]);
        let together = decide(report, search, both);
        report_duplicate(report, duplicate, together);
    }
}

/// Reports dependencies that hold in every walkthrough that reaches them, if any does. `visits`
/// has, for each visit, whether a walkthrough reaches it and whether the dependencies hold there.
fn check_always_holds(
    report: &mut Report<'_>,
    search: &mut Search<'_>,
    own: Own<'_>,
    visits: Vec<(Literal, Literal)>,
    walkthroughs: &str,
) {
    let comes = search.formula.or(visits.iter().map(|(comes, _)| *comes));
    let mut fails = Vec::new();
    for (comes, holds) in visits {
        fails.push(search.formula.and([comes, !holds]));
    }
    let fails = search.formula.or(fails);
    if decide(report, search, fails) == Some(false) && decide(report, search, comes) == Some(true) {
        let message = format!("The dependencies hold in {walkthroughs}.");
        report.add(own.finding(Rule::AlwaysHolds, "dependencies", json!({}), message));
    }
}

/// Reports examples of walkthroughs without an outcome. Access levels for which the same answers
/// lead there share one example.
fn check_outcomes(
    report: &mut Report<'_>,
    walkthroughs: &Walkthroughs<'_>,
    search: &mut Search<'_>,
) {
    let without_outcome = walkthroughs.without_outcome(&mut search.formula);
    if decide(report, search, without_outcome) != Some(true) {
        return;
    }
    let mut examples: Vec<(Assignment, Vec<AccessLevel>)> = Vec::new();
    for (is_level, level) in &walkthroughs.levels {
        let question = search.formula.and([without_outcome, *is_level]);
        let also = examples.iter_mut().find(|(example, _)| {
            let here = example.with(&search.formula, *is_level);
            here.is_true(question) && walkthroughs.answers(example) == walkthroughs.answers(&here)
        });
        if let Some((_, levels)) = also {
            levels.push(*level);
            continue;
        }
        match search.example(question) {
            Some(Some(example)) => examples.push((example, vec![*level])),
            Some(None) => {}
            None => report.counts.undecided += 1,
        }
    }
    for (example, mut levels) in examples {
        levels.sort_by_key(|level| level.number());
        let names: Vec<&str> = levels.iter().map(AsRef::as_ref).collect();
        let whom = if names.len() == AccessLevel::ALL.len() {
            "everybody".to_owned()
        } else {
            names.join(", ")
        };
        let facts = json!({ "levels": names });
        let message = format!("For {whom}, a walkthrough can end without an outcome.");
        report.add(Finding {
            example: walkthroughs.answers(&example),
            levels,
            ..report.root().finding(Rule::NoOutcome, "", facts, message)
        });
    }
}
