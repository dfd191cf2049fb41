//! Rules about walkthroughs: steps that none sees, dependencies that always hold,
//! observations of one name, and walkthroughs without an outcome.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{Guide, GuideStep, StepPosition},
    step::StepType,
    task::AccessLevel,
};

use super::{
    conflict::{Conflict, ConflictSearch},
    finding::Finding,
    formula::{Formula, Literal},
    observations::{DuplicateName, duplicate_names, report_duplicate, report_duplicates},
    report::{OwnStep, OwnTask, Report},
    rules::Rule,
    search::{Assignment, Possibility, Search},
    subtasks::level_name,
    walkthrough::{Visit, Walkthroughs, step_type},
};

/// What is asked about a step.
struct StepQuestions<'a> {
    own: OwnStep<'a>,
    /// A walkthrough sees it.
    sees: Literal,
    /// What is asked about its dependencies, if it has any.
    dependencies: Option<DependencyQuestions>,
}

/// What is asked about the dependencies of a task or step.
#[derive(Clone, Copy)]
struct DependencyQuestions {
    /// A walkthrough comes to it.
    comes: Literal,
    /// A walkthrough comes to it and they do not hold.
    fails: Literal,
}

/// Checks a guide that is within its limits.
pub fn check(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let unpublished = report.subject.options.unpublished;
    let duplicates = duplicate_names(report);
    let stop = report.subject.stop;
    let Some(mut walkthroughs) = Walkthroughs::new(guide, unpublished, stop) else {
        report_undecided(report, &duplicates);
        return;
    };
    let Walkthroughs {
        formula,
        visits,
        begins,
        ..
    } = &mut walkthroughs;
    let by_step = visits_by_step(visits);
    let steps = step_questions(report, formula, &by_step);
    let tasks = task_questions(report, formula, visits, *begins);
    let seen_together = seen_together(&duplicates, formula, &by_step);
    let without_outcome = without_outcome(guide, &mut walkthroughs);

    let mut search = Search::new(&walkthroughs.formula, stop);
    let mut conflicts = ConflictSearch::new(guide, &walkthroughs);
    let ends = first_ends(report);
    check_tasks(report, &mut search, &tasks);
    for (duplicate, literal) in duplicates.iter().zip(seen_together) {
        let together = match search.decide(literal) {
            Possibility::Possible => Some(true),
            Possibility::Impossible => Some(false),
            Possibility::Undecided => None,
        };
        report.counts.undecided += usize::from(together.is_none());
        report_duplicate(report, duplicate, together);
    }
    if search.decide(walkthroughs.begins) == Possibility::Impossible {
        report_never_visible(report);
        return;
    }
    // From the last step: a walkthrough that sees it sees many earlier ones, so that they
    // are decided, too.
    for step in steps.iter().rev() {
        check_step(report, &mut conflicts, &ends, &mut search, step);
    }
    check_outcomes(report, &walkthroughs, &mut search, &without_outcome);
}

/// Counts all questions as undecided, for a guide whose formula would be too large.
fn report_undecided(report: &mut Report<'_>, duplicates: &[DuplicateName<'_>]) {
    let unpublished = report.subject.options.unpublished;
    let steps = report.own_steps();
    let shown = steps.iter().filter(|own| unpublished.shows_step(own.step));
    // The task itself and its outcomes are two more questions.
    report.counts.undecided += shown.count() + duplicates.len() + 2;
    report_duplicates(report);
}

/// The visits of each step.
type VisitsByStep<'w> = HashMap<StepPosition, Vec<&'w Visit>>;

fn visits_by_step(visits: &[Visit]) -> VisitsByStep<'_> {
    let mut by_step = VisitsByStep::new();
    for visit in visits {
        by_step.entry(visit.position).or_default().push(visit);
    }
    by_step
}

/// The questions about dependencies. `visits` has, for each visit, whether a walkthrough comes
/// to it and whether the dependencies hold there.
fn dependency_questions(
    formula: &mut Formula,
    visits: impl Iterator<Item = (Literal, Literal)> + Clone,
) -> DependencyQuestions {
    let fails = visits.clone();
    let fails: Vec<Literal> = fails
        .map(|(comes, holds)| formula.and([comes, !holds]))
        .collect();
    DependencyQuestions {
        comes: formula.or(visits.map(|(comes, _)| comes)),
        fails: formula.or(fails),
    }
}

fn step_questions<'a>(
    report: &Report<'a>,
    formula: &mut Formula,
    by_step: &VisitsByStep<'_>,
) -> Vec<StepQuestions<'a>> {
    let unpublished = report.subject.options.unpublished;
    let shown = report
        .own_steps()
        .into_iter()
        .filter(|own| unpublished.shows_step(own.step));
    let questions = shown.map(|own| {
        let visits = by_step.get(&own.position).into_iter().flatten();
        let outcomes = visits.clone().map(|visit| (visit.comes, visit.holds));
        let has_dependencies = own.step.dependencies.is_some();
        StepQuestions {
            own,
            sees: formula.or(visits.map(|visit| visit.sees)),
            dependencies: has_dependencies.then(|| dependency_questions(formula, outcomes)),
        }
    });
    questions.collect()
}

/// The questions about the dependencies of the own tasks.
fn task_questions<'a>(
    report: &Report<'a>,
    formula: &mut Formula,
    visits: &[Visit],
    begins: Literal,
) -> Vec<(OwnTask<'a>, DependencyQuestions)> {
    let own = report.own_tasks().into_iter();
    let own = own.filter(|own| own.task.dependencies.is_some());
    let questions = own.map(|own| {
        let visits = visits.iter().filter_map(|visit| visit.subtask);
        let visits = visits.filter(|visit| visit.task == own.index);
        let visits = visits.map(|visit| (visit.comes, visit.holds));
        // Every walkthrough comes to the root. The other visits of it are of subtasks that
        // lead back.
        let of_root = (own.index == 0).then_some((Literal::TRUE, begins));
        (own, dependency_questions(formula, visits.chain(of_root)))
    });
    questions.collect()
}

fn check_tasks(
    report: &mut Report<'_>,
    search: &mut Search<'_>,
    tasks: &[(OwnTask<'_>, DependencyQuestions)],
) {
    for (own, questions) in tasks {
        check_always_holds(report, search, *questions, || {
            let message = "The dependencies hold in every walkthrough.".to_owned();
            own.finding(Rule::AlwaysHolds, "dependencies", [], message)
        });
    }
}

/// Reports dependencies to which some walkthrough comes, and which hold in all that do.
fn check_always_holds(
    report: &mut Report<'_>,
    search: &mut Search<'_>,
    questions: DependencyQuestions,
    finding: impl FnOnce() -> Finding,
) {
    let always_holds = match search.decide(questions.fails) {
        Possibility::Possible => return,
        Possibility::Impossible => search.decide(questions.comes),
        Possibility::Undecided => Possibility::Undecided,
    };
    match always_holds {
        Possibility::Possible => report.add(finding()),
        Possibility::Impossible => {}
        Possibility::Undecided => report.counts.undecided += 1,
    }
}

fn check_step(
    report: &mut Report<'_>,
    conflicts: &mut ConflictSearch<'_>,
    ends: &HashMap<usize, (usize, &GuideStep)>,
    search: &mut Search<'_>,
    step: &StepQuestions<'_>,
) {
    match search.decide(step.sees) {
        Possibility::Possible => {}
        Possibility::Impossible => {
            let message = "No walkthrough sees the step.".to_owned();
            let mut finding = step.own.finding(Rule::Unreachable, "", [], message);
            let Conflict {
                places,
                is_reducible,
            } = conflicts.find(step.own.position);
            if is_reducible {
                finding.hint = format!("{HINT_AT_REDUCIBLE} {}", finding.hint);
            }
            finding.related = places;
            let StepPosition { task, step: index } = step.own.position;
            if let Some((end, shown)) = ends.get(&task)
                && *end < index
            {
                finding.hint = hint_after_end(shown);
            }
            report.add(finding);
        }
        Possibility::Undecided => report.counts.undecided += 1,
    }
    if let Some(questions) = step.dependencies {
        check_always_holds(report, search, questions, || {
            let message = "The dependencies hold in every walkthrough that comes to the step.";
            let message = message.to_owned();
            step.own
                .finding(Rule::AlwaysHolds, "dependencies", [], message)
        });
    }
}

/// For each own task, its first END without dependencies. Each walkthrough that comes to it
/// ends the task there.
fn first_ends<'a>(report: &Report<'a>) -> HashMap<usize, (usize, &'a GuideStep)> {
    let unpublished = report.subject.options.unpublished;
    let mut ends = HashMap::new();
    for own in report.own_steps() {
        let StepPosition { task, step } = own.position;
        if step_type(own.step) == StepType::End
            && own.step.dependencies.is_none()
            && unpublished.shows_step(own.step)
        {
            ends.entry(task).or_insert((step, own.step));
        }
    }
    ends
}

const HINT_AT_REDUCIBLE: &str = "Listed is a set of conditions that cannot hold together. Perhaps \
    fewer of them cannot either: to find the fewest would take too long.";

fn hint_after_end(end: &GuideStep) -> String {
    format!(
        "Every walkthrough ends at the END \"{}\" before it. Move that END behind the step, give it \
         conditions, or delete the step.",
        end.source.step.title
    )
}

fn report_never_visible(report: &mut Report<'_>) {
    if let Some(root) = report.root() {
        let message = "The task's own dependencies cannot hold.".to_owned();
        report.add(root.finding(Rule::NeverVisible, "dependencies", [], message));
    }
}

/// For each duplicate, whether a walkthrough sees both it and an earlier observation of
/// the name.
fn seen_together(
    duplicates: &[DuplicateName<'_>],
    formula: &mut Formula,
    by_step: &VisitsByStep<'_>,
) -> Vec<Literal> {
    // Whether one of the earlier observations is seen, by task and name.
    let mut seen: HashMap<(usize, &str), Literal> = HashMap::new();
    let sees = |formula: &mut Formula, step| {
        let visits = by_step.get(&step).into_iter().flatten();
        formula.or(visits.map(|visit| visit.sees))
    };
    let pairs = duplicates.iter().map(|duplicate| {
        let here = sees(formula, duplicate.own.position);
        let key = (duplicate.own.position.task, duplicate.name);
        let earlier = match (seen.get(&key), duplicate.earlier.first()) {
            (Some(earlier), _) => *earlier,
            (None, Some(first)) => sees(formula, *first),
            (None, None) => Literal::FALSE,
        };
        seen.insert(key, formula.or([earlier, here]));
        formula.and([earlier, here])
    });
    pairs.collect()
}

/// For each class of levels, whether a walkthrough ends without an outcome.
fn without_outcome(guide: &Guide, walkthroughs: &mut Walkthroughs) -> Vec<Literal> {
    let without = walkthroughs.without_outcome(guide);
    let Walkthroughs {
        formula, levels, ..
    } = walkthroughs;
    let levels = levels.iter().map(|(level, _)| *level);
    levels.map(|level| formula.and([level, without])).collect()
}

/// Reports examples of walkthroughs without an outcome. Levels for which the same answers
/// lead there share one.
fn check_outcomes(
    report: &mut Report<'_>,
    walkthroughs: &Walkthroughs,
    search: &mut Search<'_>,
    without_outcome: &[Literal],
) {
    let mut examples: Vec<(Assignment, Vec<AccessLevel>)> = Vec::new();
    for (question, (level, levels)) in without_outcome.iter().zip(&walkthroughs.levels) {
        let also = examples.iter_mut().find(|(example, _)| {
            let here = example.with(&walkthroughs.formula, *level);
            here.values(&walkthroughs.formula).of(*question) & 1 == 1
                && same_answers(report.subject.guide, walkthroughs, example, &here)
        });
        if let Some((_, covered)) = also {
            covered.extend(levels);
            continue;
        }
        match search.example(*question) {
            (Possibility::Possible, Some(example)) => examples.push((example, levels.clone())),
            (Possibility::Possible | Possibility::Undecided, _) => report.counts.undecided += 1,
            (Possibility::Impossible, _) => {}
        }
    }
    for (example, levels) in examples {
        report_no_outcome(report, walkthroughs, &example, levels);
    }
}

fn same_answers(
    guide: &Guide,
    walkthroughs: &Walkthroughs,
    one: &Assignment,
    other: &Assignment,
) -> bool {
    let answers = |assignment: &Assignment| {
        let values = assignment.values(&walkthroughs.formula);
        walkthroughs.answers(guide, &values)
    };
    answers(one) == answers(other)
}

fn report_no_outcome(
    report: &mut Report<'_>,
    walkthroughs: &Walkthroughs,
    example: &Assignment,
    mut levels: Vec<AccessLevel>,
) {
    let Some(root) = report.root() else {
        return;
    };
    levels.sort_by_key(|level| level.number());
    let names: Vec<&str> = levels.iter().map(|level| level_name(*level)).collect();
    let whom = match names.len() == AccessLevel::ALL.len() {
        true => "everybody".to_owned(),
        false => names.join(", "),
    };
    let mut finding = root.finding(
        Rule::NoOutcome,
        "",
        [("levels", json!(names))],
        format!("For {whom}, a walkthrough can end without an outcome."),
    );
    let values = example.values(&walkthroughs.formula);
    finding.example = walkthroughs.answers(report.subject.guide, &values);
    finding.levels = levels;
    report.add(finding);
}
