//! Rules about subtask steps. Unpublished ones are checked only if the options include them.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::json;

use crate::domain::{
    analysis::{
        Guide, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, StepPosition, SubtaskEntry, Unpublished,
    },
    task::AccessLevel,
};

use super::{
    finding::{Finding, FindingPlace},
    report::{Own, Report},
    rules::{Rule, Severity},
};

const SUBTASK: &str = "subtask_id";

pub fn check(report: &mut Report<'_>) {
    for (own, _, step) in report.shown_steps() {
        if let Some(subtask) = report.subject.guide.subtask(step) {
            check_published(report, own, step, subtask);
            check_levels(report, own, subtask);
        }
    }
    check_cycles(report);
}

fn check_published(report: &mut Report<'_>, own: Own<'_>, step: &GuideStep, subtask: &GuideTask) {
    let unpublished = report.subject.options.unpublished;
    let content = &subtask.source.task.content;
    // The root counts as published.
    if step.subtask == Some(0) || unpublished.shows(content.published) {
        return;
    }
    let name = subtask.source.task.name.as_str();
    let published = content.published.get();
    let facts = json!({ "subtask": name, "published": published });
    let message = format!("`published` of the subtask \"{name}\" is {published}.");
    report.add(own.finding(Rule::SubtaskUnpublished, SUBTASK, facts, message));
}

fn check_levels(report: &mut Report<'_>, own: Own<'_>, subtask: &GuideTask) {
    let roles = &own.task.source.task.content.roles;
    let theirs = &subtask.source.task.content.roles;
    let without = roles.iter().filter(|level| !theirs.contains(level));
    let without: Vec<AccessLevel> = without.copied().collect();
    if without.is_empty() {
        return;
    }
    let names: Vec<&str> = without.iter().map(AsRef::as_ref).collect();
    let name = subtask.source.task.name.as_str();
    let facts = json!({ "subtask": name, "levels": names });
    let names = names.join(", ");
    let message =
        format!("Levels that may see the task may not see the subtask \"{name}\": {names}.");
    let mut finding = own.finding(Rule::SubtaskLevels, SUBTASK, facts, message);
    if without.len() == roles.len() {
        finding.severity = Severity::Error;
    }
    finding.levels = without;
    report.add(finding);
}

/// Reports the steps of the own tasks below which the subtasks are too deep. Returns
/// whether there are any.
pub fn check_depth(report: &mut Report<'_>) -> bool {
    let guide = report.subject.guide;
    let mut too_deep = BTreeSet::new();
    for (index, _) in guide.shown_stops(report.subject.options.unpublished) {
        if guide.stop(index).entry == SubtaskEntry::TooDeep {
            let mut above = guide.stops_up_from(index).map(|stop| stop.position);
            too_deep.extend(above.find(|position| report.is_own(position.task)));
        }
    }
    for (own, position, _) in report.own_steps() {
        if too_deep.contains(&position) {
            let message = format!("More than {MAX_SUBTASK_LEVELS} levels of subtasks.");
            let facts = json!({ "levels": MAX_SUBTASK_LEVELS });
            report.add(own.finding(Rule::TooDeep, SUBTASK, facts, message));
        }
    }
    !too_deep.is_empty()
}

const MAX_CYCLES: usize = 1_000;

/// For each task, the subtask steps that lead to it.
type EnteringSteps = HashMap<usize, Vec<StepPosition>>;

/// The steps that can be part of a cycle. Those that refer to a task without such steps are removed
/// until none is left.
fn entering_steps(guide: &Guide, unpublished: Unpublished) -> EnteringSteps {
    let mut steps: Vec<(StepPosition, usize)> = Vec::new();
    for task in 0..guide.tasks.len() {
        for (step, guide_step) in guide.steps(task).iter().enumerate() {
            let subtask = guide_step
                .subtask
                .filter(|_| unpublished.shows_step(guide_step));
            steps.extend(subtask.map(|subtask| (StepPosition { task, step }, subtask)));
        }
    }
    loop {
        let leading_on: BTreeSet<usize> = steps.iter().map(|(step, _)| step.task).collect();
        let before = steps.len();
        steps.retain(|(_, subtask)| leading_on.contains(subtask));
        if steps.len() == before {
            break;
        }
    }
    let mut entering = EnteringSteps::new();
    for (step, subtask) in steps {
        entering.entry(subtask).or_default().push(step);
    }
    entering
}

/// For each task that leads to one, the first step of a shortest path to it.
fn ways_to(to: usize, entering: &EnteringSteps) -> HashMap<usize, StepPosition> {
    let mut ways = HashMap::new();
    let mut open = VecDeque::from([to]);
    while let Some(reached) = open.pop_front() {
        for step in entering.get(&reached).into_iter().flatten() {
            if step.task != to && !ways.contains_key(&step.task) {
                ways.insert(step.task, *step);
                open.push_back(step.task);
            }
        }
    }
    ways
}

/// Reports each cycle once, at the first own step that is part of it.
fn check_cycles(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let entering = entering_steps(guide, report.subject.options.unpublished);
    let on_cycles: BTreeSet<StepPosition> = entering.values().flatten().copied().collect();
    let mut known: BTreeSet<Vec<usize>> = BTreeSet::new();
    let mut ways = (usize::MAX, HashMap::new());
    for (own, position, step) in report.own_steps() {
        if report.is_stopped() || known.len() >= MAX_CYCLES {
            return;
        }
        let Some(mut task) = step.subtask.filter(|_| on_cycles.contains(&position)) else {
            continue;
        };
        if ways.0 != own.index {
            ways = (own.index, ways_to(own.index, &entering));
        }
        let mut cycle = vec![position];
        while let Some(step) = ways.1.get(&task).filter(|_| task != own.index) {
            cycle.push(*step);
            task = guide[*step].subtask.unwrap_or(own.index);
        }
        // Rotated so that its least task is first, to recognize it wherever it starts.
        let mut tasks: Vec<usize> = cycle.iter().map(|step| step.task).collect();
        let least = (0..tasks.len()).min_by_key(|index| tasks.get(*index));
        tasks.rotate_left(least.unwrap_or_default());
        if task == own.index && known.insert(tasks) {
            report.add(cycle_finding(guide, own, &cycle));
        }
    }
}

fn cycle_finding(guide: &Guide, own: Own<'_>, cycle: &[StepPosition]) -> Finding {
    let tasks = cycle.iter().map(|step| guide.task(step.task));
    let names: Vec<&str> = tasks.map(|task| task.source.task.name.as_str()).collect();
    let message = match cycle.len() {
        1 => "Following the subtask step leads back to the task.".to_owned(),
        steps => format!("Following {steps} subtask steps leads back to the task."),
    };
    let facts = json!({ "tasks": names, "steps": cycle.len() });
    let places = cycle.iter();
    let places = places.map(|step| FindingPlace::at(guide, *step, SUBTASK));
    let finding = own.finding(Rule::Cycle, SUBTASK, facts, message);
    finding.with_related(places)
}
