//! Builds a guide: finds its tasks, names its variables and compiles its conditions.

use std::{
    collections::{BTreeMap, HashMap},
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
        while let Some(depth) = draft.tasks.get(next).map(|task| task.depth) {
            for (step, subtask) in draft.subtasks(next) {
                let index = draft.indexes.get(&subtask).copied().or_else(|| {
                    let (task, steps) = sources.remove(&subtask)?;
                    Some(draft.add(task, steps, depth + 1, &mut size))
                });
                // Only a guide with too many steps has subtasks that were not read.
                if index.is_none() {
                    draft.limit = draft.limit.or(Some(GuideLimit::Steps));
                }
                if let Some(step) = step_mut(&mut draft.tasks, StepPosition { task: next, step }) {
                    step.subtask = index;
                }
            }
            next += 1;
        }
        draft.resolve_variables(known);
        Some(draft)
    }

    /// How much work its analysis is: its steps, conditions, targets and keys.
    pub fn weight(&self) -> usize {
        let weights = self.tasks.iter().map(|task| {
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

    pub fn tasks(&self) -> impl Iterator<Item = &SourceTask> {
        self.tasks.iter().map(|task| &task.source)
    }

    pub fn steps(&self) -> impl Iterator<Item = &SourceStep> {
        let steps = self
            .tasks
            .iter()
            .flat_map(|task| task.steps.iter().flatten());
        steps.map(|step| &step.source)
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
            variables: VariableTable { mut variables, .. },
            mut limit,
            indexes,
        } = self;
        let outside = outside.into_iter();
        let outside = outside.map(|(name, setters)| (name, Arc::new(setters)));
        let outside: HashMap<String, Arc<OutsideSetters>> = outside.collect();
        let mut keys_left = MAX_VARIABLE_KEYS;
        for variable in &mut variables {
            if stop.is_given() {
                return None;
            }
            if let Some(setters) = outside.get(&variable.name) {
                variable.outside = Arc::clone(setters);
            }
            match keys_left.checked_sub(variable.keys(&tasks).count()) {
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
        let mut guide = Guide {
            tasks,
            variables,
            limit,
            route: Vec::new(),
            indexes,
        };
        if limit.is_none() {
            match guide.find_route() {
                Ok(route) => guide.route = route,
                Err(limit) => guide.limit = Some(limit),
            }
        }
        Some(guide)
    }

    /// Adds a task, and its steps unless they are too deep or too many. Returns its index.
    fn add(
        &mut self,
        source: SourceTask,
        steps: Option<Vec<SourceStep>>,
        depth: usize,
        size: &mut GuideSize,
    ) -> usize {
        let is_too_deep = depth > MAX_SUBTASK_LEVELS;
        let is_read = steps.is_some() || is_too_deep;
        let steps = steps.filter(|_| !is_too_deep).map(|steps| {
            let steps = steps.into_iter().map(|source| GuideStep {
                source,
                dependencies: None,
                sets: Vec::new(),
                subtask: None,
            });
            Vec::from_iter(steps)
        });
        let mut task = GuideTask {
            source,
            depth,
            dependencies: None,
            steps,
        };
        let count = task.steps.as_ref().map_or(0, Vec::len);
        match size.plus(count, task.conditions()) {
            Ok(with_task) if is_read => *size = with_task,
            exceeded => {
                let limit = exceeded.err().unwrap_or(GuideLimit::Steps);
                self.limit = self.limit.or(Some(limit));
                task.steps = None;
            }
        }
        // What is beyond a limit is not looked at.
        if self.limit.is_some() && task.steps.is_none() {
            task.source.task.content.dependencies = None;
        }
        let index = self.tasks.len();
        self.indexes.insert(task.source.task.guid, index);
        self.tasks.push(task);
        index
    }

    /// The subtask steps of a task: the index of each, and the task that it refers to.
    fn subtasks(&self, task: usize) -> Vec<(usize, TaskId)> {
        let steps = self.tasks.get(task).and_then(|task| task.steps.as_ref());
        let subtasks = steps.into_iter().flatten().enumerate();
        subtasks
            .filter_map(|(index, step)| Some((index, step.source.step.kind.subtask()?.task)))
            .collect()
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
                let source = &guide_step.source.step;
                if let Some(feedback) = source.kind.observation_feedback() {
                    let own = feedback.name.as_str();
                    let full = account_name(source.product, own);
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
        let mut setters_left = MAX_SHADOWED_SETTERS;
        for (own, account_wide) in self.variables.shadowing() {
            let setters = self.variables.get_mut(account_wide).setters.clone();
            let Some(left) = setters_left.checked_sub(setters.len()) else {
                self.limit = self.limit.or(Some(GuideLimit::Keys));
                return;
            };
            setters_left = left;
            for position in &setters {
                let step = step_mut(&mut self.tasks, *position);
                if let Some(step) = step.filter(|step| !step.sets.contains(&own)) {
                    step.sets.push(own);
                }
            }
            let own = self.variables.get_mut(own);
            own.setters.extend(setters);
            own.setters.sort_unstable();
            own.setters.dedup();
        }
    }
}

fn step_mut(tasks: &mut [GuideTask], position: StepPosition) -> Option<&mut GuideStep> {
    let steps = tasks.get_mut(position.task)?.steps.as_mut()?;
    steps.get_mut(position.step)
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
            self.get_mut(id).setters.push(position);
        }
        vec![wide, own]
    }

    /// Notes that a condition of a task reads a name. Returns the variable that the name stands
    /// for there.
    fn mark_read(&mut self, task: usize, name: String) -> VariableId {
        let key = (task, name);
        let own = self.of_task.get(&key).copied();
        let id = own.unwrap_or_else(|| self.find_or_add_account_wide(&key.1));
        self.get_mut(id).is_read = true;
        id
    }

    /// Pairs of variables with the same name: a task's own, and the account-wide one.
    fn shadowing(&self) -> Vec<(VariableId, VariableId)> {
        let own = self.of_task.iter();
        own.filter_map(|((_, name), own)| Some((*own, *self.account_wide.get(name)?)))
            .collect()
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

    #[expect(clippy::indexing_slicing, reason = "ids are those of this table")]
    fn get_mut(&mut self, id: VariableId) -> &mut Variable {
        &mut self.variables[id.0]
    }
}
