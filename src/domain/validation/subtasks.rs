//! Rules about subtask steps. Unpublished ones are checked only if the options include them.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Value, json};

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, StepPosition, SubtaskEntry},
    task::AccessLevel,
};

use super::{
    finding::FindingPlace,
    report::{OwnStep, Report},
    rules::{Rule, Severity},
    walk::walk,
    walkthrough::Unpublished,
};

/// The path of the field of a step that refers to the subtask.
const SUBTASK: &str = "subtask_id";

/// Checks the subtask steps of the own tasks.
pub fn check(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let unpublished = report.subject.options.unpublished;
    for own in report.own_steps() {
        let subtask = own.step.subtask.and_then(|index| guide.tasks.get(index));
        if let Some(subtask) = subtask
            && unpublished.shows_step(own.step)
        {
            check_published(report, own, subtask);
            check_levels(report, own, subtask);
        }
    }
    check_cycles(report);
}

fn check_published(report: &mut Report<'_>, own: OwnStep<'_>, subtask: &GuideTask) {
    let unpublished = report.subject.options.unpublished;
    let published = subtask.source.task.content.published;
    // The root counts as published.
    if own.step.subtask == Some(0) || unpublished.shows(published) {
        return;
    }
    let name = subtask.source.task.name.as_str();
    report.add(own.finding(
        Rule::SubtaskUnpublished,
        SUBTASK,
        [
            ("subtask", json!(name)),
            ("published", json!(published.get())),
        ],
        format!(
            "`published` of the subtask \"{name}\" is {}.",
            published.get()
        ),
    ));
}

fn check_levels(report: &mut Report<'_>, own: OwnStep<'_>, subtask: &GuideTask) {
    let roles = &own.own_task.task.source.task.content.roles;
    let theirs = &subtask.source.task.content.roles;
    let without = roles.iter().filter(|level| !theirs.contains(level));
    let without: Vec<AccessLevel> = without.copied().collect();
    if without.is_empty() {
        return;
    }
    let names: Vec<&str> = without.iter().map(|level| level_name(*level)).collect();
    let name = subtask.source.task.name.as_str();
    let mut finding = own.finding(
        Rule::SubtaskLevels,
        SUBTASK,
        [("subtask", json!(name)), ("levels", json!(names))],
        format!(
            "Levels that may see the task may not see the subtask \"{name}\": {}.",
            names.join(", ")
        ),
    );
    if without.len() == roles.len() {
        finding.severity = Severity::Error;
    }
    finding.levels = without;
    report.add(finding);
}

/// The name of a level in facts and messages.
pub fn level_name(level: AccessLevel) -> &'static str {
    match level {
        AccessLevel::User => "USER",
        AccessLevel::Tech => "TECH",
        AccessLevel::Tech2 => "TECH2",
        AccessLevel::Tech3 => "TECH3",
        AccessLevel::Expert => "EXPERT",
        AccessLevel::User2 => "USER2",
        AccessLevel::User3 => "USER3",
    }
}

/// Reports the steps of the own tasks below which the subtasks are too deep. Returns
/// whether there are any.
pub fn check_depth(report: &mut Report<'_>) -> bool {
    let guide = report.subject.guide;
    let unpublished = report.subject.options.unpublished;
    let own: HashMap<StepPosition, OwnStep<'_>> = report
        .own_steps()
        .into_iter()
        .map(|own| (own.position, own))
        .collect();
    let shows = |step: &GuideStep| unpublished.shows_step(step);
    // The steps that lead to the current one, and it.
    let mut chain: Vec<StepPosition> = Vec::new();
    let mut too_deep: BTreeSet<(usize, StepPosition)> = BTreeSet::new();
    walk(guide, &shows, &mut |position, step, entered| {
        chain.truncate(entered.len().saturating_sub(1));
        chain.push(position);
        if let SubtaskEntry::TooDeep(_) = guide.subtask_entry(step, entered) {
            let nearest = chain.iter().rev().find_map(|step| own.get(step));
            let nearest = nearest.map(|own| (own.own_task.order, own.position));
            too_deep.extend(nearest);
        }
    });
    for (_, position) in &too_deep {
        if let Some(own) = own.get(position) {
            let message = format!("More than {MAX_SUBTASK_LEVELS} levels of subtasks.");
            let facts = [("levels", json!(MAX_SUBTASK_LEVELS))];
            report.add(own.finding(Rule::TooDeep, SUBTASK, facts, message));
        }
    }
    !too_deep.is_empty()
}

/// For each task, the subtask steps that can be part of a cycle: the index of the step,
/// and that of the task that it refers to.
struct SubtaskGraph(Vec<Vec<(usize, usize)>>);

impl SubtaskGraph {
    fn of(guide: &Guide, unpublished: Unpublished) -> Self {
        let tasks = guide.tasks.iter().map(|task| {
            let steps = task.steps.iter().flatten().enumerate();
            let shown = steps.filter(|(_, step)| unpublished.shows_step(step));
            shown
                .filter_map(|(index, step)| Some((index, step.subtask?)))
                .collect()
        });
        let mut graph = Self(tasks.collect());
        graph.remove_dead_ends();
        graph
    }

    /// Removes steps that refer to a task without subtask steps, until none is left. They
    /// are part of no cycle.
    fn remove_dead_ends(&mut self) {
        loop {
            let dead: Vec<bool> = self.0.iter().map(Vec::is_empty).collect();
            let leads_on = |task: &usize| dead.get(*task).is_some_and(|dead| !dead);
            let mut removed = false;
            for steps in &mut self.0 {
                let before = steps.len();
                steps.retain(|(_, subtask)| leads_on(subtask));
                removed |= steps.len() < before;
            }
            if !removed {
                return;
            }
        }
    }

    /// For each task, the first step of a shortest path of subtask steps to one task.
    fn ways_to(&self, to: usize) -> Vec<Option<StepPosition>> {
        let mut entered_by: Vec<Vec<StepPosition>> = vec![Vec::new(); self.0.len()];
        for (task, steps) in self.0.iter().enumerate() {
            for (step, subtask) in steps {
                if let Some(entered_by) = entered_by.get_mut(*subtask) {
                    entered_by.push(StepPosition { task, step: *step });
                }
            }
        }
        let mut ways = vec![None; self.0.len()];
        let mut open = VecDeque::from([to]);
        while let Some(reached) = open.pop_front() {
            for step in entered_by.get(reached).into_iter().flatten() {
                if let Some(way) = ways.get_mut(step.task)
                    && way.is_none()
                    && step.task != to
                {
                    *way = Some(*step);
                    open.push_back(step.task);
                }
            }
        }
        ways
    }

    /// The steps of a path from one task to another, by [`Self::ways_to`] the latter.
    fn path(
        &self,
        from: usize,
        to: usize,
        ways: &[Option<StepPosition>],
    ) -> Option<Vec<StepPosition>> {
        let mut path = Vec::new();
        let mut task = from;
        while task != to {
            let step = ways.get(task).copied().flatten()?;
            path.push(step);
            let steps = self.0.get(task)?;
            let (_, subtask) = steps.iter().find(|(index, _)| *index == step.step)?;
            task = *subtask;
        }
        Some(path)
    }
}

/// Most cycles that are reported.
const MAX_CYCLES: usize = 1_000;

/// Reports each cycle once, at the first own step that is part of it.
fn check_cycles(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let graph = SubtaskGraph::of(guide, report.subject.options.unpublished);
    let mut known: BTreeSet<Vec<usize>> = BTreeSet::new();
    let mut ways: Option<(usize, Vec<Option<StepPosition>>)> = None;
    for own in report.own_steps() {
        if report.is_stopped() || known.len() >= MAX_CYCLES {
            return;
        }
        let task = own.position.task;
        let may_be_on_cycle = graph
            .0
            .get(task)
            .is_some_and(|steps| steps.iter().any(|(step, _)| *step == own.position.step));
        let Some(subtask) = own.step.subtask.filter(|_| may_be_on_cycle) else {
            continue;
        };
        let ways = match &mut ways {
            Some((to, ways)) if *to == task => &*ways,
            other => &other.insert((task, graph.ways_to(task))).1,
        };
        let Some(path) = graph.path(subtask, task, ways) else {
            continue;
        };
        let cycle: Vec<StepPosition> = [own.position].into_iter().chain(path).collect();
        if !known.insert(rotate_to_least(
            cycle.iter().map(|step| step.task).collect(),
        )) {
            continue;
        }
        let names: Vec<Value> = cycle
            .iter()
            .filter_map(|step| guide.tasks.get(step.task))
            .map(|task| json!(task.source.task.name.as_str()))
            .collect();
        let message = match cycle.len() {
            1 => "Following the subtask step leads back to the task.".to_owned(),
            steps => format!("Following {steps} subtask steps leads back to the task."),
        };
        let facts = [
            ("tasks", Value::Array(names)),
            ("steps", json!(cycle.len())),
        ];
        let mut finding = own.finding(Rule::Cycle, SUBTASK, facts, message);
        let places = cycle
            .iter()
            .filter_map(|step| FindingPlace::at(guide, *step, SUBTASK));
        finding.related = places.collect();
        report.add(finding);
    }
}

/// Rotates a cycle so that its least task is first, to recognise it wherever it starts.
fn rotate_to_least(mut cycle: Vec<usize>) -> Vec<usize> {
    let least = cycle.iter().enumerate().min_by_key(|(_, task)| **task);
    let start = least.map_or(0, |(index, _)| index);
    cycle.rotate_left(start);
    cycle
}
