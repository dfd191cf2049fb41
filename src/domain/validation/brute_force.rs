//! Compares validations and previews of random guides with an enumeration of all walkthroughs.

mod random_guides;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    slice,
};

use super::*;
use crate::domain::{
    analysis::{
        CompiledCondition, Dependencies, Guide, NEVER, StepPosition, StopSignal, Truth,
        Unpublished, VariableId, VariableValue,
        preview::{Answers, Preview, PreviewOptions},
    },
    dependency::{Group, LogicalOperator, Node},
    step::StepType,
    task::AccessLevel,
    violation::Path,
};

use random_guides::Random;

/// How many guides are compared. A guide with more than `MAX_WALKTHROUGHS` is skipped.
const GUIDES: usize = 500;
const MAX_WALKTHROUGHS: usize = 1_000;

/// The values of a variable that conditions here can tell apart, beginning with the unanswered one.
fn values(guide: &Guide, id: usize) -> Vec<VariableValue> {
    use VariableValue::{Number, Text, Unanswered};
    let text = |text: &str| Text(text.to_owned());
    let mut values = vec![Unanswered];
    match &guide.variables[id].keys {
        Some(keys) => values.extend(keys.iter().map(text)),
        None => {
            values.extend(["a", "b", "1", "2", "true", "1.0", "1.5", "2.0"].map(text));
            values.extend([0.0, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0].map(Number));
        }
    }
    values
}

/// Goes through a guide in every way, or once with given values.
struct Walker<'a> {
    guide: &'a Guide,
    /// The values that each variable may have at the start.
    starts: Vec<Vec<VariableValue>>,
    level: AccessLevel,
    /// A preview has one state: observations set nothing, and what leads back is hidden.
    is_preview: bool,
    /// For each choice of a walkthrough, what was chosen, and of how many.
    choices: Vec<(usize, usize)>,
    made: usize,
    /// `None` if nothing has read or set the variable yet.
    values: Vec<Option<VariableValue>>,
    begins_unanswered: bool,
    has_outcome: bool,
    begins: bool,
    root_fails: bool,
    comes: BTreeSet<StepPosition>,
    fails: BTreeSet<StepPosition>,
    /// Steps, each behind the subtask steps that lead to it.
    sees: BTreeSet<Vec<StepPosition>>,
    levels_without_outcome: BTreeSet<i32>,
}

impl<'a> Walker<'a> {
    fn new(guide: &'a Guide, is_preview: bool) -> Self {
        let (mut set, mut read_first) = (BTreeSet::new(), BTreeSet::new());
        let mut read = |conditions: &[CompiledCondition], set: &BTreeSet<VariableId>| {
            let variables = conditions.iter().map(|it| it.variable);
            read_first.extend(variables.filter(|id| !set.contains(id)));
        };
        read(&guide.root().conditions, &set);
        for (_, step) in guide.shown_stops(Unpublished::Excluded) {
            let subtask = guide.subtask(step);
            read(subtask.map_or(&[], |task| &task.conditions), &set);
            read(&step.conditions, &set);
            set.extend(&step.sets);
        }
        let starts = guide.variables.iter().enumerate().map(|(id, variable)| {
            let is_empty = variable.is_set_in_guide_only() && !read_first.contains(&VariableId(id));
            let values = values(guide, id).into_iter();
            values.take(if is_empty { 1 } else { usize::MAX }).collect()
        });
        Self {
            guide,
            starts: starts.collect(),
            level: AccessLevel::User,
            is_preview,
            choices: Vec::new(),
            made: 0,
            values: Vec::new(),
            begins_unanswered: true,
            has_outcome: false,
            begins: false,
            root_fails: false,
            comes: BTreeSet::new(),
            fails: BTreeSet::new(),
            sees: BTreeSet::new(),
            levels_without_outcome: BTreeSet::new(),
        }
    }

    /// Whether all walkthroughs were tried.
    fn go_through(&mut self) -> bool {
        for level in &self.guide.root().source.task.content.roles {
            self.level = *level;
            for tried in 0.. {
                if tried == MAX_WALKTHROUGHS {
                    return false;
                }
                self.walk(vec![None; self.starts.len()]);
                let is_last = |(chosen, count): &mut (usize, usize)| *chosen + 1 == *count;
                while self.choices.pop_if(is_last).is_some() {}
                match self.choices.last_mut() {
                    Some((chosen, _)) => *chosen += 1,
                    None => break,
                }
            }
        }
        true
    }

    fn walk(&mut self, values: Vec<Option<VariableValue>>) {
        (self.made, self.begins_unanswered, self.has_outcome) = (0, true, false);
        self.values = values;
        if !self.hold(self.guide.root().dependencies()) {
            self.root_fails = true;
            return;
        }
        self.begins = true;
        self.enter(0, &[]);
        if self.begins_unanswered && !self.has_outcome {
            self.levels_without_outcome.insert(self.level.number());
        }
    }

    fn choose(&mut self, count: usize) -> usize {
        if self.made == self.choices.len() {
            self.choices.push((0, count));
        }
        self.made += 1;
        self.choices[self.made - 1].0
    }

    fn hold(&mut self, dependencies: Option<Dependencies<'_>>) -> bool {
        dependencies.is_none_or(|it| self.group_holds(it.group, &mut it.conditions.iter()))
    }

    fn group_holds(
        &mut self,
        group: &Group,
        conditions: &mut slice::Iter<'_, CompiledCondition>,
    ) -> bool {
        let nodes = group.nodes.iter().map(|node| match node {
            Node::Group(group) => self.group_holds(group, conditions),
            Node::Condition(_) => self.condition_holds(conditions.next().expect("a condition")),
        });
        let nodes: Vec<bool> = nodes.collect();
        match group.operator {
            LogicalOperator::And => !nodes.contains(&false),
            LogicalOperator::Or => nodes.contains(&true),
        }
    }

    fn condition_holds(&mut self, condition: &CompiledCondition) -> bool {
        let id = condition.variable.0;
        if self.values[id].is_none() {
            let start = self.choose(self.starts[id].len());
            self.begins_unanswered &= start == 0;
            self.values[id] = Some(self.starts[id][start].clone());
        }
        let value = self.values[id].as_ref();
        value.is_some_and(|value| condition.criterion.holds(value))
    }

    fn enter(&mut self, task: usize, via: &[StepPosition]) {
        let guide = self.guide;
        for (step, guide_step) in guide.steps(task).iter().enumerate() {
            let at = StepPosition { task, step };
            if !Unpublished::Excluded.shows_step(guide_step) {
                continue;
            }
            self.comes.insert(at);
            if !self.hold(guide_step.dependencies()) {
                self.fails.insert(at);
                continue;
            }
            let path = [via, &[at]].concat();
            if let Some((subtask, index)) = guide.subtask(guide_step).zip(guide_step.subtask) {
                if index != 0 && !subtask.source.task.content.roles.contains(&self.level) {
                    continue;
                }
                if !self.hold(subtask.dependencies()) {
                    self.root_fails |= index == 0;
                    continue;
                }
                let leads_here = |at: &StepPosition| guide[*at].subtask == Some(index);
                match index == 0 || via.iter().any(leads_here) {
                    true if self.is_preview => continue,
                    true => {}
                    false => self.enter(index, &path),
                }
            }
            self.sees.insert(path);
            if !guide_step.sets.is_empty() && !self.is_preview {
                let chosen = self.choose(guide_step.answer_keys().len());
                let key = guide_step.answer_keys().nth(chosen).expect("a key");
                for id in &guide_step.sets {
                    self.values[id.0] = Some(VariableValue::Text(key.to_owned()));
                }
            }
            let step_type = guide_step.step_type();
            self.has_outcome |= matches!(
                step_type,
                StepType::Solution | StepType::Idp | StepType::End
            );
            if step_type == StepType::End {
                return;
            }
        }
    }
}

/// Compares the findings of a guide with all walkthroughs, unless there are too many.
fn check_findings(guide: &Guide, seed: u64) -> bool {
    let mut shown = Walker::new(guide, false);
    if !shown.go_through() {
        return false;
    }
    let subject = ValidationSubject {
        guide,
        readers: &Default::default(),
        options: &Default::default(),
        other_guides: OtherGuides::Read,
        stop: NEVER,
    };
    let (findings, counts) = validate(subject).expect("findings");
    let found = |rule: Rule| -> BTreeSet<Option<usize>> {
        let found = findings.iter().filter(|finding| finding.rule == rule);
        found.map(|finding| finding.order.1).collect()
    };
    let (mut unreachable, mut always) = (BTreeSet::new(), BTreeSet::new());
    always.extend((!shown.root_fails && !guide.root().conditions.is_empty()).then_some(None));
    let seen: BTreeSet<&StepPosition> = shown.sees.iter().filter_map(|path| path.last()).collect();
    for (step, guide_step) in guide.steps(0).iter().enumerate() {
        let at = StepPosition { task: 0, step };
        if shown.begins && Unpublished::Excluded.shows_step(guide_step) {
            let holds = shown.comes.contains(&at) && !shown.fails.contains(&at);
            unreachable.extend((!seen.contains(&at)).then_some(Some(step)));
            always.extend((holds && !guide_step.conditions.is_empty()).then_some(Some(step)));
        }
    }
    let endings = findings.iter().filter(|one| one.rule == Rule::NoOutcome);
    let levels = endings.flat_map(|finding| &finding.levels);
    let levels: BTreeSet<i32> = levels.map(|level| level.number()).collect();
    let never_visible = found(Rule::NeverVisible);
    assert_eq!(counts.undecided, 0, "seed {seed}");
    assert_eq!(found(Rule::Unreachable), unreachable, "seed {seed}");
    assert_eq!(found(Rule::AlwaysHolds), always, "seed {seed}");
    assert_eq!(never_visible.is_empty(), shown.begins, "seed {seed}");
    assert_eq!(levels, shown.levels_without_outcome, "seed {seed}");
    true
}

fn preview(guide: Guide, answers: Answers, stop: StopSignal<'_>) -> Option<Preview> {
    let options = PreviewOptions {
        level: Some(AccessLevel::User),
        answers,
        subtask_depth: MAX_SUBTASK_LEVELS,
        ..PreviewOptions::default()
    };
    let preview = Preview::new(guide, options, &Path::root("guid"), stop);
    preview.expect("within the limits")
}

/// Compares a preview in which each name has a value, or none.
fn check_preview(guide: &Guide, random: &mut Random, seed: u64) {
    // Both names of an observation have one value.
    let mut chosen = BTreeMap::new();
    let answers = guide.variables.iter().enumerate().map(|(id, variable)| {
        let own = variable.name.trim_start_matches("components.1.");
        let value = || random.pick(&values(guide, id));
        let value = chosen.entry(own).or_insert_with(value).clone();
        (variable.name.clone(), value)
    });
    let preview = preview(guide.clone(), answers.collect(), NEVER).expect("a preview");
    let known: Vec<Option<&VariableValue>> = (0..guide.variables.len())
        .map(|id| preview.state.value(VariableId(id)))
        .collect();
    let mut known_variables = guide.variables.iter().zip(&known);
    if known_variables.any(|(variable, value)| variable.is_read && value.is_none()) {
        // An own name does not take a value that only observations of other tasks have.
        return;
    }
    let known = known
        .into_iter()
        .map(|it| it.cloned().or(Some(VariableValue::Unanswered)));
    let mut walker = Walker::new(guide, true);
    walker.walk(known.collect());
    assert_eq!(preview.visible, Truth::from(walker.begins), "seed {seed}");
    for step in &preview.steps {
        let path = [&step.via[..], &[step.position]].concat();
        let is_seen = Truth::from(walker.sees.contains(&path));
        assert_eq!(step.visible, is_seen, "seed {seed}: {path:?}");
    }
}

#[test]
fn both_evaluators_agree_with_trying_everything() {
    let mut compared = 0;
    for seed in 1.. {
        let mut random = Random(seed);
        let guide = random.guide(NEVER).expect("a guide");
        check_preview(&guide, &mut random, seed);
        compared += usize::from(check_findings(&guide, seed));
        if compared == GUIDES {
            break;
        }
    }
}

#[test]
fn a_preview_that_nobody_waits_for_ends_where_it_is() {
    let asked = Cell::new(0);
    let stopping_at = |limit: usize| {
        asked.set(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() >= limit
        };
        let guide = Random(1).guide(&stop)?;
        preview(guide, Answers::new(), &stop)
    };
    let whole = stopping_at(usize::MAX).expect("a preview");
    let (all, steps) = (asked.get(), whole.guide.route.len());
    assert!(steps > 0 && all > whole.guide.variables.len() + steps);
    for limit in 1..=all {
        assert!(stopping_at(limit).is_none());
        assert_eq!(asked.get(), limit);
    }
}
