//! Collects the findings of a guide that pass the caller's options.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::domain::analysis::{
    Budget, Criterion, Guide, GuideStep, GuideTask, Outside, StepPosition, StopSignal,
};

use super::{
    finding::{Finding, FindingPlace},
    options::ValidationOptions,
    rules::{Rule, Severity},
};

/// The maximum number of findings, including suppressed ones. Further findings are only counted.
const MAX_FINDINGS: usize = 300_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindingCounts {
    pub errors: usize,
    pub warnings: usize,
    pub infos: usize,
    pub suppressed: usize,
    /// The number of questions that the search could not decide.
    pub undecided: usize,
}

#[derive(Clone, Copy)]
pub struct ValidationSubject<'a> {
    pub guide: &'a Guide,
    /// The criteria of conditions in other guides that read its variables, by name.
    pub readers: &'a BTreeMap<String, Outside<Criterion>>,
    pub options: &'a ValidationOptions,
    /// Whether its variables were looked up in the other guides of the account.
    pub other_guides: OtherGuides,
    pub stop: StopSignal<'a>,
}

/// Whether it is known what other guides of the account set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherGuides {
    Read,
    /// A document is validated without its account.
    Unknown,
}

/// A task that findings are about, or one of its steps. These tasks are the root and the tasks that
/// it manages.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// The index of the task among the own tasks.
    pub order: usize,
    /// The index of the task in [`Guide::tasks`].
    pub index: usize,
    pub task: &'a GuideTask,
    /// The index of the step, and the step.
    step: Option<(usize, &'a GuideStep)>,
}

pub type OwnStep<'a> = (Own<'a>, StepPosition, &'a GuideStep);

pub struct Report<'a> {
    pub subject: ValidationSubject<'a>,
    pub budget: &'a Budget<'a>,
    /// The task and the tasks that it manages, in the order of the guide.
    pub own: Vec<Own<'a>>,
    own_indexes: BTreeSet<usize>,
    /// The first findings that the options do not leave out, up to the limits.
    pub findings: Vec<Finding>,
    /// The counts of all findings, including those that are not kept.
    pub counts: FindingCounts,
}

impl<'a> Report<'a> {
    pub fn new(subject: ValidationSubject<'a>, budget: &'a Budget<'a>) -> Self {
        let mut report = Self {
            subject,
            budget,
            own: Vec::new(),
            own_indexes: BTreeSet::new(),
            findings: Vec::new(),
            counts: FindingCounts::default(),
        };
        report.add_own_tasks(0);
        report
    }

    /// Adds a task and the tasks that it manages, in the order of the guide.
    fn add_own_tasks(&mut self, index: usize) {
        if !self.own_indexes.insert(index) {
            return;
        }
        let guide = self.subject.guide;
        let task = guide.task(index);
        self.own.push(Own {
            order: self.own.len(),
            index,
            task,
            step: None,
        });
        for subtask in guide.steps(index).iter().filter_map(|step| step.subtask) {
            let managed = guide.task(subtask).task.managed;
            if managed.is_some_and(|managed| managed.parent == task.task.guid) {
                self.add_own_tasks(subtask);
            }
        }
    }

    /// Whether a task is the root or managed by it.
    pub fn is_own(&self, task: usize) -> bool {
        self.own_indexes.contains(&task)
    }

    pub fn root(&self) -> Own<'a> {
        Own {
            order: 0,
            index: 0,
            task: self.subject.guide.root(),
            step: None,
        }
    }

    pub fn own_steps(&self) -> Vec<OwnStep<'a>> {
        let guide = self.subject.guide;
        let steps = self.own.iter().flat_map(|own| {
            let (task, steps) = (own.index, guide.steps(own.index).iter().enumerate());
            steps.map(move |(step, guide_step)| {
                let step_of_own = Own {
                    step: Some((step, guide_step)),
                    ..*own
                };
                (step_of_own, StepPosition { task, step }, guide_step)
            })
        });
        steps.collect()
    }

    /// The steps of the own tasks that are not hidden by `published`.
    pub fn shown_steps(&self) -> Vec<OwnStep<'a>> {
        let mut steps = self.own_steps();
        steps.retain(|(_, _, step)| self.subject.options.unpublished.shows_step(step));
        steps
    }

    /// Adds a finding unless the options leave it out. Beyond the limits it is only counted.
    pub fn add(&mut self, mut finding: Finding) {
        let options = self.subject.options;
        let Some(severity) = options.severity(finding.rule, finding.severity) else {
            return;
        };
        finding.severity = severity;
        if options.suppresses(&finding) {
            self.counts.suppressed += 1;
            return;
        }
        *self.counts.count_mut(severity) += 1;
        finding.shorten();
        if self.budget.bytes.spend(finding.bytes()) {
            self.findings.push(finding);
        }
    }

    /// Whether to skip creating a finding of the rule, because the rule is off or a limit is
    /// reached, in which case the finding is counted. For findings that a guide may have millions
    /// of.
    pub fn skips(&mut self, rule: Rule) -> bool {
        let options = self.subject.options;
        let Some(severity) = options.severity(rule, rule.text().severity) else {
            return true;
        };
        let is_full = self.budget.bytes.left() == 0 && options.suppress.is_empty();
        let count = self.counts.errors + self.counts.warnings + self.counts.infos;
        let has_no_room = is_full || count + self.counts.suppressed >= MAX_FINDINGS;
        if has_no_room {
            *self.counts.count_mut(severity) += 1;
        }
        has_no_room
    }
}

impl FindingCounts {
    pub fn count_mut(&mut self, severity: Severity) -> &mut usize {
        match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Info => &mut self.infos,
        }
    }
}

impl Own<'_> {
    /// `facts` is an object.
    pub fn finding(
        &self,
        rule: Rule,
        path: &str,
        facts: Value,
        message: impl Into<String>,
    ) -> Finding {
        let place = FindingPlace::new(self.task, self.step.map(|(_, step)| step), path);
        Finding::new(rule, place, (self.order, self.step_index()), facts, message)
    }

    pub fn step_index(&self) -> Option<usize> {
        self.step.map(|(index, _)| index)
    }
}
