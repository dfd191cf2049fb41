//! What validation and preview say of random guides is what trying every possibility shows.

mod random_guides;

use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
};

use super::*;
use crate::domain::{
    analysis::{
        CompiledCondition, Dependencies, Guide, GuideStep, KnownVariables, NEVER, PossibleValues,
        StepPosition, SubtaskEntry, Truth, VariableId, VariableValue,
        preview::{GuideState, Preview, PreviewOptions, TextLanguages},
    },
    dependency::{Group, LogicalOperator, Node},
    step::StepType,
    task::{AccessLevel, Published},
    violation::Path,
};

use random_guides::Random;

/// How many guides are compared. A guide with more than `MAX_WALKTHROUGHS` is skipped.
const GUIDES: usize = 500;
const MAX_WALKTHROUGHS: usize = 1_000;

fn is_published(step: &GuideStep) -> bool {
    step.source.step.content.published == Published::default()
}

/// The values of a variable that conditions here can tell apart, beginning with the unanswered one.
fn values(guide: &Guide, id: usize) -> Vec<VariableValue> {
    use VariableValue::{Number, Text, Unanswered};
    let text = |text: &str| Text(text.to_owned());
    let mut values = vec![Unanswered];
    match &guide.variables[id].possible {
        PossibleValues::Keys(keys) => values.extend(keys.keys().map(text)),
        PossibleValues::Anything => {
            values.extend(["a", "b", "1", "2", "true", "1.0", "1.5", "2.0"].map(text));
            values.extend([0.0, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0].map(Number));
        }
    }
    values
}

/// Whether dependencies hold, given which conditions do.
fn hold(
    dependencies: Option<Dependencies<'_>>,
    condition: &mut dyn FnMut(&CompiledCondition) -> bool,
) -> bool {
    fn group_holds(
        group: &Group,
        conditions: &mut slice::Iter<'_, CompiledCondition>,
        holds: &mut dyn FnMut(&CompiledCondition) -> bool,
    ) -> bool {
        let nodes = group.nodes.iter().map(|node| match node {
            Node::Group(group) => group_holds(group, conditions, holds),
            Node::Condition(_) => holds(conditions.next().expect("a condition")),
        });
        let nodes: Vec<bool> = nodes.collect();
        match group.operator {
            LogicalOperator::And => !nodes.contains(&false),
            LogicalOperator::Or => nodes.contains(&true),
        }
    }
    dependencies.is_none_or(|it| group_holds(it.group, &mut it.conditions.iter(), condition))
}

/// Goes through a guide in every way.
struct Walker<'a> {
    guide: &'a Guide,
    /// The values that each variable may have at the start.
    starts: Vec<Vec<VariableValue>>,
    level: AccessLevel,
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
    sees: BTreeSet<StepPosition>,
    levels_without_outcome: BTreeSet<i32>,
}

impl<'a> Walker<'a> {
    fn new(guide: &'a Guide) -> Self {
        let (mut set, mut read_first) = (BTreeSet::new(), BTreeSet::new());
        let mut read = |conditions: &[CompiledCondition], set: &BTreeSet<VariableId>| {
            let variables = conditions.iter().map(|it| it.variable);
            read_first.extend(variables.filter(|id| !set.contains(id)));
        };
        read(&guide.root().conditions, &set);
        for (_, step) in guide.shown_stops(is_published) {
            read(
                guide.subtask(step).map_or(&[], |task| &task.conditions),
                &set,
            );
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
                self.walk();
                while self
                    .choices
                    .pop_if(|(chosen, count)| *chosen + 1 == *count)
                    .is_some()
                {}
                match self.choices.last_mut() {
                    Some((chosen, _)) => *chosen += 1,
                    None => break,
                }
            }
        }
        true
    }

    fn walk(&mut self) {
        (self.made, self.begins_unanswered, self.has_outcome) = (0, true, false);
        self.values = vec![None; self.starts.len()];
        if !self.hold(self.guide.root().dependencies()) {
            self.root_fails = true;
            return;
        }
        self.begins = true;
        self.enter(&mut vec![0]);
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
        hold(dependencies, &mut |condition| {
            let id = condition.variable.0;
            if self.values[id].is_none() {
                let start = self.choose(self.starts[id].len());
                self.begins_unanswered &= start == 0;
                self.values[id] = Some(self.starts[id][start].clone());
            }
            self.values[id]
                .as_ref()
                .is_some_and(|value| condition.holds(value))
        })
    }

    /// Goes through the innermost of the tasks that it is inside of.
    fn enter(&mut self, inside: &mut Vec<usize>) {
        let (guide, task) = (self.guide, inside[inside.len() - 1]);
        for (step, guide_step) in guide.steps(task).iter().enumerate() {
            let at = StepPosition { task, step };
            if !is_published(guide_step) {
                continue;
            }
            self.comes.insert(at);
            if !self.hold(guide_step.dependencies()) {
                self.fails.insert(at);
                continue;
            }
            if let Some((subtask, index)) = guide.subtask(guide_step).zip(guide_step.subtask) {
                if index != 0 && !subtask.source.task.content.roles.contains(&self.level) {
                    continue;
                }
                if !self.hold(subtask.dependencies()) {
                    self.root_fails |= index == 0;
                    continue;
                }
                if !inside.contains(&index) {
                    inside.push(index);
                    self.enter(inside);
                    inside.pop();
                }
            }
            self.sees.insert(at);
            if !guide_step.sets.is_empty() {
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
    let mut shown = Walker::new(guide);
    if !shown.go_through() {
        return false;
    }
    let options = ValidationOptions {
        rules: Default::default(),
        suppress: Vec::new(),
        known_variables: KnownVariables::default(),
        languages: Vec::new(),
        unpublished: Unpublished::Excluded,
        min_severity: Severity::Info,
    };
    let subject = ValidationSubject {
        guide,
        readers: &Default::default(),
        options: &options,
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
    let steps = guide
        .steps(0)
        .iter()
        .enumerate()
        .filter(|(_, step)| shown.begins && is_published(step));
    for (index, step) in steps {
        let at = StepPosition {
            task: 0,
            step: index,
        };
        let holds = shown.comes.contains(&at) && !shown.fails.contains(&at);
        unreachable.extend((!shown.sees.contains(&at)).then_some(Some(index)));
        always.extend((holds && !step.conditions.is_empty()).then_some(Some(index)));
    }
    let endings = findings
        .iter()
        .filter(|finding| finding.rule == Rule::NoOutcome);
    let levels = endings.flat_map(|finding| &finding.levels);
    let levels: BTreeSet<i32> = levels.map(|level| level.number()).collect();
    assert_eq!(counts.undecided, 0, "seed {seed}");
    assert_eq!(found(Rule::Unreachable), unreachable, "seed {seed}");
    assert_eq!(found(Rule::AlwaysHolds), always, "seed {seed}");
    assert_eq!(
        found(Rule::NeverVisible).is_empty(),
        shown.begins,
        "seed {seed}"
    );
    assert_eq!(levels, shown.levels_without_outcome, "seed {seed}");
    true
}

/// Which stops of the route are visible in a state, in their order. The task itself comes first.
fn visible_in(guide: &Guide, level: AccessLevel, state: &GuideState) -> Vec<bool> {
    let holds = |dependencies: Option<Dependencies<'_>>| {
        let value = |id| state.value(id).unwrap_or(&VariableValue::Unanswered);
        hold(dependencies, &mut |condition| {
            condition.holds(value(condition.variable))
        })
    };
    let task_is_visible = |index: usize| {
        let task = guide.task(index);
        task.source.task.content.roles.contains(&level) && holds(task.dependencies())
    };
    let mut visible = vec![task_is_visible(0)];
    // For each task that it is inside of, whether an END was visible.
    let mut ended = Vec::new();
    for stop in &guide.route {
        ended.truncate(stop.level + 1);
        ended.resize(stop.level + 1, false);
        let step = &guide[stop.position];
        let entered = visible[stop.parent.map_or(0, |parent| parent + 1)];
        let shows = is_published(step) && holds(step.dependencies());
        let subtask = step.subtask.is_none_or(task_is_visible) && stop.entry != SubtaskEntry::Cycle;
        visible.push(entered && !ended[stop.level] && shows && subtask);
        ended[stop.level] |= shows && step.step_type() == StepType::End;
    }
    visible
}

/// Compares a preview in which each name has a value, or none.
fn check_preview(guide: &Guide, random: &mut Random, seed: u64) {
    // Both names of an observation have one value.
    let mut chosen = BTreeMap::new();
    let answers = guide.variables.iter().enumerate().map(|(id, variable)| {
        let own = variable.name.trim_start_matches("components.7.");
        let value = || random.pick(&values(guide, id));
        (
            variable.name.clone(),
            chosen.entry(own).or_insert_with(value).clone(),
        )
    });
    let level = AccessLevel::User;
    let options = PreviewOptions {
        level: Some(level),
        texts: TextLanguages::default(),
        answers: answers.collect(),
        include_unpublished: false,
        subtask_depth: MAX_SUBTASK_LEVELS,
    };
    let preview = Preview::new(guide.clone(), options, &Path::root("guid"), NEVER);
    let preview = preview.expect("within the limits").expect("a preview");
    let mut variables = guide.variables.iter().enumerate();
    if variables.any(|(id, it)| it.is_read && preview.state.value(VariableId(id)).is_none()) {
        // An own name does not take a value that only observations of other tasks have.
        return;
    }
    let steps = preview.steps.iter().map(|step| step.visible);
    let said: Vec<Truth> = std::iter::once(preview.visible).chain(steps).collect();
    let visible = visible_in(guide, level, &preview.state).into_iter();
    assert_eq!(
        said,
        Vec::from_iter(visible.map(Truth::from)),
        "seed {seed}"
    );
}

#[test]
fn both_evaluators_agree_with_trying_everything() {
    let mut compared = 0;
    for seed in 1.. {
        let mut random = Random(seed);
        let guide = random.guide();
        check_preview(&guide, &mut random, seed);
        compared += usize::from(check_findings(&guide, seed));
        if compared == GUIDES {
            break;
        }
    }
}
