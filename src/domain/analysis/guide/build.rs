//! Builds a guide: finds its tasks, names its variables and compiles its conditions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::domain::{dependency::Group, ids::TaskId};

use super::{
    Guide, GuideLimit, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, SourceStep, SourceTask,
    SourceTasks, StepPosition,
    size::{GuideSize, groups, weight_of_task},
};
use crate::domain::analysis::{
    budget::StopSignal,
    condition::compile,
    names::{KnownVariables, account_name, parse_account_name},
    variable::{Outside, OutsideSetter, PossibleValues, Variable, VariableId},
};

/// Most keys of all variables. Those of an observation count once for each variable that it
/// sets.
pub const MAX_VARIABLE_KEYS: usize = 1_000_000;
/// Most observations that set names which are also a task's own.
const MAX_SHADOWED_SETTERS: usize = 20_000;

/// A guide before the observations outside of it that set its variables are known.
#[derive(Debug)]
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
        let (task, steps) = sources.remove(&root)?;
        let mut draft = Self {
            guide: Guide {
                tasks: Vec::new(),
                variables: Vec::new(),
                limit: None,
                route: Vec::new(),
                indexes: HashMap::new(),
            },
            size: GuideSize::default(),
            weight: 0,
            ids: HashMap::new(),
        };
        draft.add_task(task, steps, 0);
        let mut next = 0;
        while let Some(depth) = draft.guide.tasks.get(next).map(|task| task.depth) {
            for step in 0..draft.guide.steps(next).len() {
                let position = StepPosition { task: next, step };
                let source = &draft.guide[position].source.step;
                let Some(subtask) = source.kind.subtask() else {
                    continue;
                };
                let known = draft.guide.indexes.get(&subtask.task).copied();
                let index = known.or_else(|| {
                    let (task, steps) = sources.remove(&subtask.task)?;
                    Some(draft.add_task(task, steps, depth + 1))
                });
                // Only a guide with too many steps has subtasks that were not read.
                if index.is_none() {
                    draft.guide.limit.get_or_insert(GuideLimit::Steps);
                }
                if let Some(step) = draft.step_mut(position) {
                    step.subtask = index;
                }
            }
            next += 1;
        }
        draft.name_variables();
        draft.compile_conditions();
        let looping = draft
            .steps()
            .filter_map(|it| it.step.content.looping.as_ref());
        let loops = KnownVariables::for_loops(looping.map(|it| it.alias.as_str()));
        for variable in &mut draft.guide.variables {
            variable.is_loop = loops.contains(&variable.name);
            variable.is_declared = known.contains(&variable.name);
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
        let outside: HashMap<String, Arc<Outside<OutsideSetter>>> = outside
            .into_iter()
            .map(|(name, setters)| (name, Arc::new(setters)))
            .collect();
        let mut keys_left = MAX_VARIABLE_KEYS;
        for variable in &mut guide.variables {
            if stop() {
                return None;
            }
            if let Some(setters) = outside.get(&variable.name) {
                variable.outside = Arc::clone(setters);
            }
            match keys_left.checked_sub(variable.keys(&guide.tasks).count()) {
                Some(left) => {
                    keys_left = left;
                    variable.possible = variable.possible_values(&guide.tasks);
                }
                None => {
                    guide.limit.get_or_insert(GuideLimit::Keys);
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
                    condition.know_possible_values(&guide.variables);
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
                let limit = exceeded.err().unwrap_or(GuideLimit::Steps);
                self.guide.limit.get_or_insert(limit);
                steps = None;
            }
        }
        // What is beyond a limit is not looked at.
        if self.guide.limit.is_some() && steps.is_none() {
            source.task.content.dependencies = None;
        }
        self.weight += weight_of_task(&source, steps.as_deref().unwrap_or_default());
        let steps = steps.map(|steps| {
            let steps = steps.into_iter().map(|source| GuideStep {
                source,
                conditions: Vec::new(),
                sets: Vec::new(),
                subtask: None,
            });
            steps.collect()
        });
        let index = self.guide.tasks.len();
        self.guide.indexes.insert(source.task.guid, index);
        self.guide.tasks.push(GuideTask {
            source,
            depth,
            conditions: Vec::new(),
            steps,
        });
        index
    }

    /// Adds the variables that observations set: for each, the account-wide one and its own.
    fn name_variables(&mut self) {
        let guide = &mut self.guide;
        for (task, guide_task) in guide.tasks.iter_mut().enumerate() {
            for (step, guide_step) in guide_task.steps.iter_mut().flatten().enumerate() {
                let source = &guide_step.source.step;
                let Some(feedback) = source.kind.observation_feedback() else {
                    continue;
                };
                let own = feedback.name.as_str();
                let wide = account_name(source.product, own);
                for key in [(None, wide), (Some(task), own.to_owned())] {
                    let id = find_or_add(&mut self.ids, &mut guide.variables, key);
                    guide_step.sets.push(id);
                    if let Some(variable) = guide.variables.get_mut(id.0) {
                        variable.setters.push(StepPosition { task, step });
                    }
                }
            }
        }
        self.add_shadowed_setters();
    }

    /// An observation's own name may equal the account-wide name of other observations.
    /// Within its task, all of them then set the name.
    fn add_shadowed_setters(&mut self) {
        let of_tasks = self.ids.iter().filter(|((task, _), _)| task.is_some());
        let shadowing: Vec<(VariableId, VariableId)> = of_tasks
            .filter_map(|((_, name), own)| Some((*own, *self.ids.get(&(None, name.clone()))?)))
            .collect();
        let mut setters_left = MAX_SHADOWED_SETTERS;
        for (own, account_wide) in shadowing {
            let setters = self.guide[account_wide].setters.clone();
            let Some(left) = setters_left.checked_sub(setters.len()) else {
                self.guide.limit.get_or_insert(GuideLimit::Keys);
                return;
            };
            setters_left = left;
            for position in &setters {
                let step = self.step_mut(*position);
                if let Some(step) = step.filter(|step| !step.sets.contains(&own)) {
                    step.sets.push(own);
                }
            }
            if let Some(own) = self.guide.variables.get_mut(own.0) {
                own.setters.extend(setters);
                own.setters.sort_unstable();
                own.setters.dedup();
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
            let mut compile = |group: &Option<Group>| {
                let group = group.as_ref();
                group.map_or_else(Vec::new, |group| compile(group, &mut read))
            };
            task.conditions = compile(&task.source.task.content.dependencies);
            for step in task.steps.iter_mut().flatten() {
                step.conditions = compile(&step.source.step.content.dependencies);
            }
        }
    }

    fn step_mut(&mut self, position: StepPosition) -> Option<&mut GuideStep> {
        let task = self.guide.tasks.get_mut(position.task)?;
        task.steps.as_mut()?.get_mut(position.step)
    }
}

fn find_or_add(
    ids: &mut HashMap<(Option<usize>, String), VariableId>,
    variables: &mut Vec<Variable>,
    key: (Option<usize>, String),
) -> VariableId {
    *ids.entry(key).or_insert_with_key(|(task, name)| {
        variables.push(Variable {
            name: name.clone(),
            task: *task,
            setters: Vec::new(),
            outside: Arc::default(),
            is_loop: false,
            is_declared: false,
            is_read: false,
            possible: PossibleValues::Anything,
        });
        VariableId(variables.len() - 1)
    })
}
