//! Rules about subtask steps. Unpublished ones are checked only if the options include them.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::json;

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, StepPosition, SubtaskEntry},
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
    let content = &subtask.task.content;
    // The root counts as published.
    if step.subtask == Some(0) || unpublished.shows(content.published) {
        return;
    }
    let name = subtask.task.name.as_str();
    let published = content.published.get();
    let facts = json!({ "subtask": name, "published": published });
    let message = format!("`published` of the subtask \"{name}\" is {published}.");
    report.add(own.finding(Rule::SubtaskUnpublished, SUBTASK, facts, message));
}

fn check_levels(report: &mut Report<'_>, own: Own<'_>, subtask: &GuideTask) {
    let roles = &own.task.task.content.roles;
    let theirs = &subtask.task.content.roles;
    let without = roles.iter().filter(|level| !theirs.contains(level));
    let without: Vec<AccessLevel> = without.copied().collect();
    if without.is_empty() {
        return;
    }
    let names: Vec<&str> = without.iter().map(AsRef::as_ref).collect();
    let name = subtask.task.name.as_str();
    let facts = json!({ "subtask": name, "levels": names });
    let names = names.join(", ");
    let message = format!("Some levels may see the task but not the subtask \"{name}\": {names}.");
    let mut finding = own.finding(Rule::SubtaskLevels, SUBTASK, facts, message);
    if without.len() == roles.len() {
        finding.severity = Severity::Error;
    }
    finding.levels = without;
    report.add(finding);
}

/// Reports the steps of own tasks that lead to subtasks that are too deep. Returns whether there
/// are any.
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

/// For each task that leads to task `to`, the first step of a shortest path to it. `entering` has
/// the subtask steps that lead to each task.
fn ways_to(
    to: usize,
    entering: &HashMap<usize, Vec<StepPosition>>,
) -> HashMap<usize, StepPosition> {
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
    let unpublished = report.subject.options.unpublished;
    let mut entering: HashMap<usize, Vec<StepPosition>> = HashMap::new();
    for task in 0..guide.tasks.len() {
        for (step, guide_step) in guide.steps(task).iter().enumerate() {
            let subtask = guide_step.subtask;
            if let Some(subtask) = subtask.filter(|_| unpublished.shows_step(guide_step)) {
                let entering = entering.entry(subtask).or_default();
                entering.push(StepPosition { task, step });
            }
        }
    }
    let mut known: BTreeSet<Vec<usize>> = BTreeSet::new();
    let mut ways = (usize::MAX, HashMap::new());
    for (own, position, step) in report.shown_steps() {
        if report.budget.is_stopped() || known.len() >= MAX_CYCLES {
            return;
        }
        let Some(mut task) = step.subtask else {
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
        // Rotates the cycle so that its smallest task comes first, to recognize it wherever it was
        // entered.
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
    let names: Vec<&str> = tasks.map(|task| task.task.name.as_str()).collect();
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
