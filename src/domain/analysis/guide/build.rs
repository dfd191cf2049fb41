//! Builds a guide: finds its tasks, names its variables and compiles its conditions.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use crate::domain::ids::TaskId;

use super::{
    Guide, GuideLimit, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, SourceStep, SourceTask,
    SourceTasks, StepPosition,
    size::{GuideSize, weight_of_task},
};
use crate::domain::analysis::{
    StopSignal,
    condition::CompiledGroup,
    names::{KnownVariables, account_name, parse_account_name},
    variable::{OutsideSetters, PossibleValues, Variable, VariableId},
};

/// Most keys of all variables. Those of an observation count once for each variable that it
/// sets.
pub const MAX_VARIABLE_KEYS: usize = 1_000_000;
/// Most observations that set names which are also a task's own.
const MAX_SHADOWED_SETTERS: usize = 20_000;

/// A guide before the observations outside of it that set its variables are known.
#[derive(Debug)]
pub struct GuideDraft {
    tasks: Vec<GuideTask>,
    variables: VariableTable,
    limit: Option<GuideLimit>,
    indexes: HashMap<TaskId, usize>,
}

/// The variables by name.
#[derive(Debug, Default)]
struct VariableTable {
    variables: Vec<Variable>,
    account_wide: HashMap<String, VariableId>,
    /// Own names of observations, by the task within which they are valid.
    of_task: HashMap<(usize, String), VariableId>,
}

impl GuideDraft {
    /// The guide of the task `root`. `sources` has the tasks of the guide and may have others.
    /// `None` if the root is not among them.
    pub fn new(root: TaskId, mut sources: SourceTasks, known: &KnownVariables) -> Option<Self> {
        let (task, steps) = sources.remove(&root)?;
        let mut draft = Self {
            tasks: Vec::new(),
            variables: VariableTable::default(),
            limit: None,
            indexes: HashMap::new(),
        };
        let mut size = GuideSize::default();
        draft.add(task, steps, 0, &mut size);
        let mut next = 0;
        while let Some((depth, subtasks)) = draft.subtasks(next) {
            for (step, subtask) in subtasks {
                let index = draft.indexes.get(&subtask).copied().or_else(|| {
                    let (task, steps) = sources.remove(&subtask)?;
                    Some(draft.add(task, steps, depth + 1, &mut size))
                });
                // Only a guide with too many steps has subtasks that were not read.
                if index.is_none() {
                    draft.limit = draft.limit.or(Some(GuideLimit::Steps));
                }
                draft.set_subtask(StepPosition { task: next, step }, index);
            }
            next += 1;
        }
        draft.resolve_variables(known);
        Some(draft)
    }

    /// How much work its analysis is: its steps, conditions, targets and keys.
    pub fn weight(&self) -> usize {
        let tasks = self.tasks.iter();
        let weights = tasks.map(|task| {
            let steps = task.steps.iter().flatten().map(|step| &step.source);
            weight_of_task(&task.source, steps)
        });
        weights.sum()
    }

    /// The variables with account-wide names.
    pub fn account_variables(&self) -> impl Iterator<Item = &Variable> {
        let variables = self.variables.variables.iter();
        variables.filter(|variable| parse_account_name(&variable.name).is_some())
    }

    /// The tasks of the guide.
    pub fn tasks(&self) -> impl Iterator<Item = &SourceTask> {
        self.tasks.iter().map(|task| &task.source)
    }

    /// The steps of the guide.
    pub fn steps(&self) -> impl Iterator<Item = &SourceStep> {
        let steps = self.tasks.iter().filter_map(|task| task.steps.as_ref());
        steps.flatten().map(|step| &step.source)
    }

    /// The guide, given the observations outside that set its account-wide names. `None` if nobody
    /// waits for it any more.
    pub fn finish(
        self,
        outside: BTreeMap<String, OutsideSetters>,
        stop: StopSignal<'_>,
    ) -> Option<Guide> {
        let Self {
            mut tasks,
            variables,
            limit,
            indexes,
        } = self;
        let VariableTable {
            mut variables,
            account_wide: _,
            of_task: _,
        } = variables;
        let outside = outside.into_iter();
        let outside = outside.map(|(name, setters)| (name, Arc::new(setters)));
        let outside: HashMap<String, Arc<OutsideSetters>> = outside.collect();
        let mut limit = limit;
        let mut keys_left = MAX_VARIABLE_KEYS;
        for variable in &mut variables {
            if stop.is_given() {
                return None;
            }
            if let Some(setters) = outside.get(&variable.name) {
                variable.outside = Arc::clone(setters);
            }
            match keys_left.checked_sub(variable.key_count(&tasks)) {
                Some(left) => {
                    keys_left = left;
                    variable.possible = variable.possible_values(&tasks);
                }
                None => limit = limit.or(Some(GuideLimit::Keys)),
            }
        }
        for task in &mut tasks {
            if let Some(group) = &mut task.dependencies {
                group.compute_truth_of_unknown_values(&variables);
            }
            for step in task.steps.iter_mut().flatten() {
                if stop.is_given() {
                    return None;
                }
                if let Some(group) = &mut step.dependencies {
                    group.compute_truth_of_unknown_values(&variables);
                }
            }
        }
        let guide = Guide {
            tasks,
            variables,
            limit,
            indexes,
        };
        Some(Guide {
            limit: limit.or_else(|| guide.exceeded_limit()),
            ..guide
        })
    }

    /// Adds a task, and its steps unless they are too deep or too many. Returns its index.
    fn add(
        &mut self,
        mut source: SourceTask,
        steps: Option<Vec<SourceStep>>,
        depth: usize,
        size: &mut GuideSize,
    ) -> usize {
        let mut kept = None;
        let is_too_deep = depth > MAX_SUBTASK_LEVELS;
        let steps = steps.filter(|_| !is_too_deep);
        let with_task = size.with(&source, steps.as_deref().unwrap_or_default());
        let not_read = (steps.is_none() && !is_too_deep).then_some(GuideLimit::Steps);
        match with_task.exceeded().or(not_read) {
            None => {
                *size = with_task;
                kept = steps;
            }
            Some(limit) => self.limit = self.limit.or(Some(limit)),
        }
        // What is beyond a limit is not looked at.
        if self.limit.is_some() && kept.is_none() {
            source.task.content.dependencies = None;
        }
        let steps = kept.map(|steps| {
            let steps = steps.into_iter().map(|source| GuideStep {
                source,
                dependencies: None,
                sets: Vec::new(),
                subtask: None,
            });
            steps.collect()
        });
        let index = self.tasks.len();
        self.indexes.insert(source.task.guid, index);
        self.tasks.push(GuideTask {
            source,
            depth,
            dependencies: None,
            steps,
        });
        index
    }

    /// The depth of a task, and its subtask steps: the index of each, and the task that it
    /// refers to.
    fn subtasks(&self, task: usize) -> Option<(usize, Vec<(usize, TaskId)>)> {
        let task = self.tasks.get(task)?;
        let steps = task.steps.iter().flatten().enumerate();
        let subtasks = steps.filter_map(|(index, step)| {
            let subtask = step.source.step.kind.subtask()?;
            Some((index, subtask.task))
        });
        Some((task.depth, subtasks.collect()))
    }

    fn set_subtask(&mut self, position: StepPosition, subtask: Option<usize>) {
        let task = self.tasks.get_mut(position.task);
        let steps = task.and_then(|task| task.steps.as_mut());
        if let Some(step) = steps.and_then(|steps| steps.get_mut(position.step)) {
            step.subtask = subtask;
        }
    }

    /// Adds the variables that observations set, then those that conditions read, and
    /// compiles the conditions.
    fn resolve_variables(&mut self, known: &KnownVariables) {
        let looping = self
            .steps()
            .filter_map(|it| it.step.content.looping.as_ref());
        let loops = KnownVariables::of_loops(looping.map(|it| it.alias.as_str()));
        for (index, task) in self.tasks.iter_mut().enumerate() {
            for (step, guide_step) in task.steps.iter_mut().flatten().enumerate() {
                if let Some(feedback) = guide_step.source.step.kind.observation_feedback() {
                    let product = guide_step.source.step.product;
                    let own = feedback.name.as_str();
                    let full = account_name(product, own);
                    let position = StepPosition { task: index, step };
                    guide_step.sets = self.variables.add_setter(position, &full, own);
                }
            }
        }
        self.add_shadowed_setters();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            let mut read = |name| self.variables.mark_read(index, name);
            let dependencies = task.source.task.content.dependencies.as_ref();
            task.dependencies = dependencies.map(|group| CompiledGroup::compile(group, &mut read));
            for step in task.steps.iter_mut().flatten() {
                let dependencies = step.source.step.content.dependencies.as_ref();
                step.dependencies =
                    dependencies.map(|group| CompiledGroup::compile(group, &mut read));
            }
        }
        for variable in &mut self.variables.variables {
            variable.is_loop = loops.contains(&variable.name);
            variable.is_declared = known.contains(&variable.name);
        }
    }

    /// An observation's own name may equal the account-wide name of other observations.
    /// Within its task, all of them then set the name.
    fn add_shadowed_setters(&mut self) {
        let shadowing: Vec<(VariableId, VariableId)> = self.variables.shadowing().collect();
        let mut setters_left = MAX_SHADOWED_SETTERS;
        for (own, account_wide) in shadowing {
            let wide = self.variables.variables.get(account_wide.0);
            let setters = wide.map_or(&[][..], |wide| &wide.setters);
            let Some(left) = setters_left.checked_sub(setters.len()) else {
                self.limit = self.limit.or(Some(GuideLimit::Keys));
                return;
            };
            setters_left = left;
            let setters = setters.to_vec();
            let known = self.variables.variables.get(own.0);
            let known = known.into_iter().flat_map(|variable| &variable.setters);
            let known: HashSet<StepPosition> = known.copied().collect();
            for position in setters.iter().filter(|position| !known.contains(position)) {
                let task = self.tasks.get_mut(position.task);
                let steps = task.and_then(|task| task.steps.as_mut());
                let step = steps.and_then(|steps| steps.get_mut(position.step));
                if let Some(step) = step {
                    step.sets.push(own);
                }
            }
            if let Some(variable) = self.variables.variables.get_mut(own.0) {
                variable.setters.extend(setters);
                variable.setters.sort_unstable();
                variable.setters.dedup();
            }
        }
    }
}

impl VariableTable {
    /// Adds an observation to the setters of its variables, and returns these: the
    /// account-wide one, and its own.
    fn add_setter(&mut self, position: StepPosition, full: &str, own: &str) -> Vec<VariableId> {
        let wide = self.find_or_add_account_wide(full);
        let key = (position.task, own.to_owned());
        let own = match self.of_task.get(&key) {
            Some(id) => *id,
            None => {
                let id = self.add(own, Some(position.task));
                self.of_task.insert(key, id);
                id
            }
        };
        for id in [wide, own] {
            if let Some(variable) = self.variables.get_mut(id.0) {
                variable.setters.push(position);
            }
        }
        vec![wide, own]
    }

    /// Notes that a condition of a task reads a name. Returns the variable that the name stands
    /// for there.
    fn mark_read(&mut self, task: usize, name: String) -> VariableId {
        let key = (task, name);
        let own = self.of_task.get(&key).copied();
        let id = own.unwrap_or_else(|| self.find_or_add_account_wide(&key.1));
        if let Some(variable) = self.variables.get_mut(id.0) {
            variable.is_read = true;
        }
        id
    }

    /// Pairs of variables with the same name: a task's own, and the account-wide one.
    fn shadowing(&self) -> impl Iterator<Item = (VariableId, VariableId)> {
        let own = self.of_task.iter();
        own.filter_map(|((_, name), own)| Some((*own, *self.account_wide.get(name)?)))
    }

    fn find_or_add_account_wide(&mut self, name: &str) -> VariableId {
        if let Some(id) = self.account_wide.get(name) {
            return *id;
        }
        let id = self.add(name, None);
        self.account_wide.insert(name.to_owned(), id);
        id
    }

    fn add(&mut self, name: &str, task: Option<usize>) -> VariableId {
        self.variables.push(Variable {
            name: name.to_owned(),
            task,
            setters: Vec::new(),
            outside: Arc::default(),
            is_loop: false,
            is_declared: false,
            is_read: false,
            possible: PossibleValues::Anything,
        });
        VariableId(self.variables.len() - 1)
    }
}
