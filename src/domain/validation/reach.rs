//! Rules about walkthroughs: steps that none sees, dependencies that always hold,
//! observations of one name, and walkthroughs without an outcome.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{GuideStep, StepPosition},
    step::StepType,
    task::AccessLevel,
};

use super::{
    budget::Budget,
    conflict::ConflictSearch,
    finding::Finding,
    formula::{Formula, Literal},
    observations::{DuplicateName, duplicate_names, report_duplicate},
    report::{Own, Report},
    rules::Rule,
    search::{Assignment, Possibility, Search},
    subtasks::level_name,
    walkthrough::{Visit, Walkthroughs},
};

/// What is asked about a step.
struct StepQuestions<'a> {
    own: Own<'a>,
    position: StepPosition,
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
pub fn check(report: &mut Report<'_>, budget: &Budget<'_>) {
    let guide = report.subject.guide;
    let duplicates = duplicate_names(report);
    let Some(mut walkthroughs) =
        Walkthroughs::new(guide, report.subject.options.unpublished, budget)
    else {
        // The task itself and its outcomes are two more questions.
        report.counts.undecided += report.shown_steps().len() + duplicates.len() + 2;
        report_duplicates(report);
        return;
    };
    let by_step = VisitsByStep::new(&walkthroughs.visits);
    let formula = &mut walkthroughs.formula;
    let tasks = task_questions(report, formula, &walkthroughs.visits, walkthroughs.begins);
    let steps = step_questions(report, formula, &by_step);
    let together = seen_together(&duplicates, formula, &by_step);
    let without_outcome = walkthroughs.without_outcome(guide);
    let levels = walkthroughs.levels.iter().map(|(level, _)| *level);
    let formula = &mut walkthroughs.formula;
    let without_outcome: Vec<Literal> = levels
        .map(|level| formula.and([level, without_outcome]))
        .collect();

    let mut search = Search::new(&walkthroughs.formula, budget);
    for (own, questions) in tasks {
        check_always_holds(report, &mut search, questions, own, "every walkthrough");
    }
    for (duplicate, literal) in duplicates.iter().zip(together) {
        let possibility = search.decide(literal);
        let together = match possibility {
            Possibility::Possible => Some(true),
            Possibility::Impossible => Some(false),
            Possibility::Undecided => None,
        };
        report.counts.undecided += usize::from(together.is_none());
        report_duplicate(report, duplicate, together);
    }
    if search.decide(walkthroughs.begins) == Possibility::Impossible {
        if let Some(root) = report.root() {
            let message = "The task's own dependencies cannot hold.".to_owned();
            report.add(root.finding(Rule::NeverVisible, "dependencies", [], message));
        }
        return;
    }
    let conflicts = ConflictSearch::new(guide, &walkthroughs, budget);
    let ends = first_ends(report);
    // From the last step: a walkthrough that sees it sees many earlier ones, so that they
    // are decided, too.
    for step in steps.iter().rev() {
        check_step(report, &conflicts, &ends, &mut search, step);
    }
    check_outcomes(report, &walkthroughs, &mut search, &without_outcome);
}

/// Reports the observations whose names are not unique, without saying whether one
/// walkthrough sees both.
pub fn report_duplicates(report: &mut Report<'_>) {
    for duplicate in duplicate_names(report) {
        report_duplicate(report, &duplicate, None);
    }
}

struct VisitsByStep(HashMap<StepPosition, Vec<Visit>>);

impl VisitsByStep {
    fn new(visits: &[Visit]) -> Self {
        let mut by_step: HashMap<StepPosition, Vec<Visit>> = HashMap::new();
        for visit in visits {
            by_step
                .entry(visit.position)
                .or_default()
                .push(visit.clone());
        }
        Self(by_step)
    }

    fn visits(&self, step: StepPosition) -> &[Visit] {
        self.0.get(&step).map_or(&[], Vec::as_slice)
    }

    /// Whether a walkthrough sees a step.
    fn sees(&self, formula: &mut Formula, step: StepPosition) -> Literal {
        formula.or(self.visits(step).iter().map(|visit| visit.visible))
    }
}

impl DependencyQuestions {
    /// `visits` has, for each visit, whether a walkthrough comes to it and whether the dependencies
    /// hold there.
    fn new(
        formula: &mut Formula,
        visits: impl Iterator<Item = (Literal, Literal)> + Clone,
    ) -> Self {
        let fails = visits.clone();
        let fails: Vec<Literal> = fails
            .map(|(comes, holds)| formula.and([comes, !holds]))
            .collect();
        Self {
            comes: formula.or(visits.map(|(comes, _)| comes)),
            fails: formula.or(fails),
        }
    }
}

fn step_questions<'a>(
    report: &Report<'a>,
    formula: &mut Formula,
    by_step: &VisitsByStep,
) -> Vec<StepQuestions<'a>> {
    let shown = report.shown_steps().into_iter();
    let questions = shown.filter_map(|(own, step)| {
        let position = own.position()?;
        let visits = by_step.visits(position).iter();
        let outcomes = visits.map(|visit| (visit.reached, visit.condition));
        let dependencies = step.dependencies.as_ref();
        Some(StepQuestions {
            own,
            position,
            sees: by_step.sees(formula, position),
            dependencies: dependencies.map(|_| DependencyQuestions::new(formula, outcomes)),
        })
    });
    questions.collect()
}

/// The questions about the dependencies of the own tasks.
fn task_questions<'a>(
    report: &Report<'a>,
    formula: &mut Formula,
    visits: &[Visit],
    begins: Literal,
) -> Vec<(Own<'a>, DependencyQuestions)> {
    let own = report.own_tasks().into_iter();
    let own = own.filter(|own| own.task.dependencies.is_some());
    let questions = own.map(|own| {
        let visits = visits.iter().filter_map(|visit| visit.subtask);
        let visits = visits.filter(|visit| visit.task == own.index);
        let visits = visits.map(|visit| (visit.reached, visit.condition));
        // Every walkthrough comes to the root. The other visits of it are of subtasks that
        // lead back.
        let of_root = (own.index == 0).then_some((Literal::TRUE, begins));
        (
            own,
            DependencyQuestions::new(formula, visits.chain(of_root)),
        )
    });
    questions.collect()
}

/// Reports dependencies to which some walkthrough comes, and which hold in all that do.
fn check_always_holds(
    report: &mut Report<'_>,
    search: &mut Search<'_>,
    questions: DependencyQuestions,
    own: Own<'_>,
    walkthroughs: &str,
) {
    let always_holds = match search.decide(questions.fails) {
        Possibility::Possible => Possibility::Impossible,
        Possibility::Impossible => search.decide(questions.comes),
        Possibility::Undecided => Possibility::Undecided,
    };
    match always_holds {
        Possibility::Possible => {
            let message = format!("The dependencies hold in {walkthroughs}.");
            report.add(own.finding(Rule::AlwaysHolds, "dependencies", [], message));
        }
        Possibility::Impossible => {}
        Possibility::Undecided => report.counts.undecided += 1,
    }
}

fn check_step(
    report: &mut Report<'_>,
    conflicts: &ConflictSearch<'_>,
    ends: &HashMap<usize, (usize, &GuideStep)>,
    search: &mut Search<'_>,
    step: &StepQuestions<'_>,
) {
    match search.decide(step.sees) {
        Possibility::Possible => {}
        Possibility::Impossible => {
            let message = "No walkthrough sees the step.".to_owned();
            let mut finding = step.own.finding(Rule::Unreachable, "", [], message);
            finding.related = conflicts.find(step.position);
            let end = ends.get(&step.position.task);
            if let Some((_, end)) = end.filter(|(end, _)| *end < step.position.step) {
                finding.hint = format!(
                    "Every walkthrough ends at the END \"{}\" before it. Move that END behind the \
                     step, give it conditions, or delete the step.",
                    end.source.step.title
                );
            }
            report.add(finding);
        }
        Possibility::Undecided => report.counts.undecided += 1,
    }
    if let Some(questions) = step.dependencies {
        let walkthroughs = "every walkthrough that comes to the step";
        check_always_holds(report, search, questions, step.own, walkthroughs);
    }
}

/// For each own task, its first END without dependencies. Each walkthrough that comes to it
/// ends the task there.
fn first_ends<'a>(report: &Report<'a>) -> HashMap<usize, (usize, &'a GuideStep)> {
    let mut ends = HashMap::new();
    for (own, step) in report.shown_steps() {
        if step.step_type() == StepType::End
            && step.dependencies.is_none()
            && let Some(position) = own.position()
        {
            ends.entry(position.task).or_insert((position.step, step));
        }
    }
    ends
}

/// For each duplicate, whether a walkthrough sees both it and an earlier observation of
/// the name.
fn seen_together(
    duplicates: &[DuplicateName<'_>],
    formula: &mut Formula,
    by_step: &VisitsByStep,
) -> Vec<Literal> {
    // Whether one of the earlier observations is seen, by task and name.
    let mut seen: HashMap<(usize, &str), Literal> = HashMap::new();
    let pairs = duplicates.iter().map(|duplicate| {
        let here = by_step.sees(formula, duplicate.position);
        let key = (duplicate.position.task, duplicate.name);
        let earlier = match (seen.get(&key), duplicate.earlier.first()) {
            (Some(earlier), _) => *earlier,
            (None, Some(first)) => by_step.sees(formula, *first),
            (None, None) => Literal::FALSE,
        };
        seen.insert(key, formula.or([earlier, here]));
        formula.and([earlier, here])
    });
    pairs.collect()
}

/// Reports examples of walkthroughs without an outcome. Levels for which the same answers
/// lead there share one. `without_outcome` has a question for each class of levels.
fn check_outcomes(
    report: &mut Report<'_>,
    walkthroughs: &Walkthroughs,
    search: &mut Search<'_>,
    without_outcome: &[Literal],
) {
    let guide = report.subject.guide;
    let formula = &walkthroughs.formula;
    let answers = |example: &Assignment| walkthroughs.answers(guide, &example.values(formula));
    let mut examples: Vec<(Assignment, Vec<AccessLevel>)> = Vec::new();
    for (question, (level, levels)) in without_outcome.iter().zip(&walkthroughs.levels) {
        let also = examples.iter_mut().find(|(example, _)| {
            let here = example.with(formula, *level);
            here.values(formula).of(*question) & 1 == 1 && answers(example) == answers(&here)
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
        if let Some(root) = report.root() {
            let finding = no_outcome(root, levels);
            report.add(Finding {
                example: answers(&example),
                ..finding
            });
        }
    }
}

fn no_outcome(root: Own<'_>, mut levels: Vec<AccessLevel>) -> Finding {
    levels.sort_by_key(|level| level.number());
    let names: Vec<&str> = levels.iter().map(|level| level_name(*level)).collect();
    let whom = match names.len() == AccessLevel::ALL.len() {
        true => "everybody".to_owned(),
        false => names.join(", "),
    };
    let message = format!("For {whom}, a walkthrough can end without an outcome.");
    Finding {
        levels,
        ..root.finding(Rule::NoOutcome, "", [("levels", json!(names))], message)
    }
}
