//! Builds a guide: finds its tasks, names its variables and compiles its conditions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::domain::{dependency::Group, ids::TaskId};

use super::{
    Guide, GuideLimit, GuideSize, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, SourceStep, SourceTask,
    SourceTasks, StepPosition,
};
use crate::domain::analysis::{
    budget::StopSignal,
    condition::{CompiledCondition, compile},
    names::{KnownVariables, account_name, parse_account_name},
    value::KeySet,
    variable::{Outside, OutsideSetter, Variable, VariableId},
};

/// Most observations that set names which are also a task's own.
const MAX_SHADOWED_SETTERS: usize = 20_000;

/// A guide before the observations outside of it that set its variables are known.
#[derive(Debug, Default)]
pub struct GuideDraft {
    guide: Guide,
    size: GuideSize,
    weight: usize,
    /// The variables by their names, and the task if a name is valid only within one.
    ids: HashMap<(Option<usize>, String), VariableId>,
}

impl GuideDraft {
    /// The guide of the task `root`. `sources` has the tasks of the guide and may have others.
    /// `None` if the root is not among them.
    pub fn new(root: TaskId, mut sources: SourceTasks, known: &KnownVariables) -> Option<Self> {
        let mut draft = Self {
            weight: guide_weight(&sources),
            ..Self::default()
        };
        let (task, steps) = sources.remove(&root)?;
        draft.add_task(task, steps, 0);
        draft.add_subtasks(&mut sources);
        draft.name_variables();
        draft.compile_conditions();
        let looping = draft
            .steps()
            .filter_map(|it| it.step.content.looping.as_ref());
        let loops = KnownVariables::for_loops(looping.map(|it| it.alias.as_str()));
        for variable in &mut draft.guide.variables {
            let name = &variable.name;
            variable.is_declared = loops.contains(name) || known.contains(name);
        }
        Some(draft)
    }

    /// The number of its steps, conditions, targets and keys.
    pub fn weight(&self) -> usize {
        self.weight
    }

    pub fn account_variables(&self) -> impl Iterator<Item = &Variable> {
        let variables = self.guide.variables.iter();
        variables.filter(|variable| parse_account_name(&variable.name).is_some())
    }

    pub fn tasks(&self) -> impl Iterator<Item = &SourceTask> {
        self.guide.tasks.iter().map(|task| &task.source)
    }

    pub fn steps(&self) -> impl Iterator<Item = &SourceStep> {
        let steps = self.guide.tasks.iter().flat_map(|task| &task.steps);
        steps.flatten().map(|step| &step.source)
    }

    /// The guide, given the observations outside that set its account-wide names. `None` if nobody
    /// waits for it any more.
    pub fn finish(
        self,
        outside: BTreeMap<String, Outside<OutsideSetter>>,
        stop: StopSignal<'_>,
    ) -> Option<Guide> {
        let mut guide = self.guide;
        let outside = outside.into_iter();
        let outside: HashMap<String, Arc<Outside<OutsideSetter>>> = outside
            .map(|(name, setters)| (name, Arc::new(setters)))
            .collect();
        let mut keys_left = GuideLimit::KEYS.1;
        for variable in &mut guide.variables {
            if stop() {
                return None;
            }
            if let Some(setters) = outside.get(&variable.name) {
                variable.outside = Arc::clone(setters);
            }
            let setter_keys = || variable.setter_keys(&guide.tasks);
            match keys_left.checked_sub(setter_keys().count()) {
                Some(left) => {
                    keys_left = left;
                    let keys = || KeySet::new(setter_keys());
                    variable.keys = (!variable.may_be_anything()).then(keys);
                }
                None => {
                    guide.limit.get_or_insert(GuideLimit::KEYS);
                }
            }
        }
        for task in &mut guide.tasks {
            let steps = task.steps.iter_mut().flatten();
            let conditions = steps.map(|step| &mut step.conditions);
            for conditions in conditions.chain([&mut task.conditions]) {
                if stop() {
                    return None;
                }
                for condition in conditions {
                    condition.set_truth_if_unknown(&guide.variables);
                }
            }
        }
        if guide.limit.is_none() {
            match guide.find_route() {
                Ok(route) => guide.route = route,
                Err(limit) => guide.limit = Some(limit),
            }
        }
        Some(guide)
    }

    /// Adds a task, and its steps unless they are too deep or too many. Returns its index.
    fn add_task(
        &mut self,
        mut source: SourceTask,
        steps: Option<Vec<SourceStep>>,
        depth: usize,
    ) -> usize {
        let is_too_deep = depth > MAX_SUBTASK_LEVELS;
        let is_read = steps.is_some() || is_too_deep;
        let mut steps = steps.filter(|_| !is_too_deep);
        let listed = steps.as_deref().unwrap_or_default();
        let conditions = groups(&source, listed).map(Group::conditions).sum();
        match self.size.plus(listed.len(), conditions) {
            Ok(with_task) if is_read => self.size = with_task,
            exceeded => {
                let limit = exceeded.err().unwrap_or(GuideLimit::STEPS);
                self.guide.limit.get_or_insert(limit);
                steps = None;
            }
        }
        // What is beyond a limit is not looked at.
        if self.guide.limit.is_some() && steps.is_none() {
            source.task.content.dependencies = None;
        }
        let index = self.guide.tasks.len();
        self.guide.indexes.insert(source.task.guid, index);
        self.guide.tasks.push(GuideTask {
            source,
            depth,
            conditions: Vec::new(),
            steps: steps.map(|steps| steps.into_iter().map(GuideStep::new).collect()),
        });
        index
    }

    /// Adds the tasks that subtask steps refer to, those of fewer levels first.
    fn add_subtasks(&mut self, sources: &mut SourceTasks) {
        let mut task = 0;
        while let Some(depth) = self.guide.tasks.get(task).map(|task| task.depth) {
            for step in 0..self.guide.steps(task).len() {
                let position = StepPosition { task, step };
                let Some(subtask) = self.guide[position].source.step.kind.subtask() else {
                    continue;
                };
                let known = self.guide.indexes.get(&subtask.task).copied();
                let index = known.or_else(|| {
                    let (task, steps) = sources.remove(&subtask.task)?;
                    Some(self.add_task(task, steps, depth + 1))
                });
                // Only a guide with too many steps has subtasks that were not read.
                if index.is_none() {
                    self.guide.limit.get_or_insert(GuideLimit::STEPS);
                }
                if let Some(step) = self.guide.step_mut(position) {
                    step.subtask = index;
                }
            }
            task += 1;
        }
    }

    /// Adds the variables that observations set: for each, the account-wide one and its own.
    ///
    /// An own name may equal the account-wide name of other observations. Within its task, they set
    /// it, too.
    fn name_variables(&mut self) {
        let mut observations: Vec<(StepPosition, [VariableId; 2])> = Vec::new();
        for (task, guide_task) in self.guide.tasks.iter().enumerate() {
            for (step, guide_step) in guide_task.steps.iter().flatten().enumerate() {
                let source = &guide_step.source.step;
                if let Some(feedback) = source.kind.observation_feedback() {
                    let own = feedback.name.as_str();
                    let names = [
                        (None, account_name(source.product, own)),
                        (Some(task), own.to_owned()),
                    ];
                    let ids = names
                        .map(|name| find_or_add(&mut self.ids, &mut self.guide.variables, name));
                    observations.push((StepPosition { task, step }, ids));
                }
            }
        }
        let mut shadowing: HashMap<VariableId, Vec<VariableId>> = HashMap::new();
        for (index, variable) in self.guide.variables.iter().enumerate() {
            if variable.task.is_some()
                && let Some(account_wide) = self.ids.get(&(None, variable.name.clone()))
            {
                let others = shadowing.entry(*account_wide).or_default();
                others.push(VariableId(index));
            }
        }
        let mut setters_left = MAX_SHADOWED_SETTERS;
        for (position, [account_wide, own]) in observations {
            let mut sets = vec![account_wide, own];
            let others = shadowing.get(&account_wide).map_or(&[][..], Vec::as_slice);
            match setters_left.checked_sub(others.len()) {
                Some(left) => {
                    setters_left = left;
                    sets.extend(others);
                }
                None => {
                    self.guide.limit.get_or_insert(GuideLimit::KEYS);
                }
            }
            for id in &sets {
                if let Some(variable) = self.guide.variables.get_mut(id.0) {
                    variable.setters.push(position);
                }
            }
            if let Some(step) = self.guide.step_mut(position) {
                step.sets = sets;
            }
        }
    }

    /// Compiles the conditions, and adds the variables that only they name.
    fn compile_conditions(&mut self) {
        let variables = &mut self.guide.variables;
        for (index, task) in self.guide.tasks.iter_mut().enumerate() {
            let mut read = |name: String| {
                let own = (Some(index), name);
                let id = match self.ids.get(&own) {
                    Some(id) => *id,
                    None => find_or_add(&mut self.ids, variables, (None, own.1)),
                };
                if let Some(variable) = variables.get_mut(id.0) {
                    variable.is_read = true;
                }
                id
            };
            let mut compile = |group: &Option<Group>| -> Vec<CompiledCondition> {
                let group = group.as_ref();
                group.map_or_else(Vec::new, |group| compile(group, &mut read))
            };
            task.conditions = compile(&task.source.task.content.dependencies);
            for step in task.steps.iter_mut().flatten() {
                step.conditions = compile(&step.source.step.content.dependencies);
            }
        }
    }
}

impl Guide {
    fn step_mut(&mut self, position: StepPosition) -> Option<&mut GuideStep> {
        let task = self.tasks.get_mut(position.task)?;
        task.steps.as_mut()?.get_mut(position.step)
    }
}

fn find_or_add(
    ids: &mut HashMap<(Option<usize>, String), VariableId>,
    variables: &mut Vec<Variable>,
    key: (Option<usize>, String),
) -> VariableId {
    *ids.entry(key).or_insert_with_key(|(task, name)| {
        variables.push(Variable::new(*task, name.clone()));
        VariableId(variables.len() - 1)
    })
}

fn groups<'a>(task: &'a SourceTask, steps: &'a [SourceStep]) -> impl Iterator<Item = &'a Group> {
    let of_steps = steps
        .iter()
        .filter_map(|step| step.step.content.dependencies.as_ref());
    of_steps.chain(&task.task.content.dependencies)
}

/// How much work it is to compile a guide: its steps, conditions, targets and keys.
pub fn guide_weight(tasks: &SourceTasks) -> usize {
    let of_step = |source: &SourceStep| {
        let feedback = source.step.kind.feedback();
        let keys = feedback.map_or(0, |feedback| feedback.values.len());
        let languages = source.translations.len();
        1 + keys * (1 + languages) + languages
    };
    let of_tasks = tasks.values().map(|(task, steps)| {
        let steps = steps.as_deref().unwrap_or_default();
        let of_groups: usize = groups(task, steps).map(Group::weight).sum();
        1 + steps.iter().map(of_step).sum::<usize>() + of_groups
    });
    of_tasks.sum()
}
