//! Builds a guide: finds its tasks, names its variables and compiles its conditions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::domain::{dependency::Group, ids::TaskId};

use super::{
    Guide, GuideLimit, GuideSize, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, SourceTasks,
    StepPosition, VariableIds,
};
use crate::domain::analysis::{
    budget::StopSignal,
    condition::{CompiledCondition, compile},
    names::{KnownVariables, account_name, parse_account_name},
    value::KeySet,
    variable::{Outside, OutsideSetter, Variable, VariableId},
};

/// The maximum number of observations that set names which are also own names of a task.
const MAX_SHADOWED_SETTERS: usize = 20_000;

/// A guide whose setters in other guides are not known yet.
#[derive(Debug, Default)]
pub struct GuideDraft {
    guide: Guide,
    size: GuideSize,
}

impl GuideDraft {
    /// The guide of the task `root`. `sources` has the tasks of the guide and may have others.
    /// `None` if the root is not among them.
    pub fn new(root: TaskId, mut sources: SourceTasks, known: &KnownVariables) -> Option<Self> {
        let mut draft = Self::default();
        draft.add_task(sources.remove(&root)?, 0);
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

    pub fn account_variables(&self) -> impl Iterator<Item = &Variable> {
        let variables = self.guide.variables.iter();
        variables.filter(|variable| parse_account_name(&variable.name).is_some())
    }

    pub fn tasks(&self) -> &[GuideTask] {
        &self.guide.tasks
    }

    pub fn steps(&self) -> impl Iterator<Item = &GuideStep> {
        self.tasks().iter().flat_map(|task| &task.steps).flatten()
    }

    /// The guide, given the observations in other guides that set its account-wide names. `None` if
    /// the call is over.
    pub fn finish(
        self,
        outside: BTreeMap<String, Outside<OutsideSetter>>,
        stop: StopSignal<'_>,
    ) -> Option<Guide> {
        let mut guide = self.guide;
        let outside = outside.into_iter();
        let outside: HashMap<_, _> = outside.map(|(name, it)| (name, Arc::new(it))).collect();
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
    fn add_task(&mut self, mut task: GuideTask, depth: usize) -> usize {
        let is_too_deep = depth > MAX_SUBTASK_LEVELS;
        let is_read = task.steps.is_some() || is_too_deep;
        task.depth = depth;
        task.steps.take_if(|_| is_too_deep);
        let steps = task.steps.as_ref().map_or(0, Vec::len);
        let conditions = task.groups().map(Group::conditions).sum();
        match self.size.plus(steps, conditions) {
            Ok(with_task) if is_read => self.size = with_task,
            exceeded => {
                let limit = exceeded.err().unwrap_or(GuideLimit::STEPS);
                self.guide.limit.get_or_insert(limit);
                task.steps = None;
            }
        }
        // Nothing beyond a limit is analyzed.
        if self.guide.limit.is_some() && task.steps.is_none() {
            task.task.content.dependencies = None;
        }
        let index = self.guide.tasks.len();
        self.guide.indexes.insert(task.task.guid, index);
        self.guide.tasks.push(task);
        index
    }

    /// Adds the tasks that subtask steps refer to, level by level.
    fn add_subtasks(&mut self, sources: &mut SourceTasks) {
        let mut task = 0;
        while let Some(depth) = self.guide.tasks.get(task).map(|task| task.depth) {
            for step in 0..self.guide.steps(task).len() {
                let position = StepPosition { task, step };
                let Some(subtask) = self.guide[position].step.kind.subtask() else {
                    continue;
                };
                let known = self.guide.indexes.get(&subtask.task).copied();
                let index = known.or_else(|| {
                    let task = sources.remove(&subtask.task)?;
                    Some(self.add_task(task, depth + 1))
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

    /// Adds the variables that observations set: for each observation, the account-wide variable
    /// and its own.
    ///
    /// An own name may equal the account-wide name of other observations. Within its task, they set
    /// that variable, too.
    fn name_variables(&mut self) {
        let Guide {
            tasks,
            variables,
            ids,
            limit,
            ..
        } = &mut self.guide;
        for (index, task) in tasks.iter_mut().enumerate() {
            for GuideStep { step, sets, .. } in task.steps.iter_mut().flatten() {
                if let Some(feedback) = step.kind.observation_feedback() {
                    let own = feedback.name.as_str();
                    let account_wide = account_name(step.product, own);
                    for (task, name) in [(None, account_wide.as_str()), (Some(index), own)] {
                        sets.push(find_or_add(ids, variables, task, name));
                    }
                }
            }
        }
        let mut setters_left = MAX_SHADOWED_SETTERS;
        for (task, guide_task) in tasks.iter_mut().enumerate() {
            let steps = guide_task.steps.iter_mut().flatten().enumerate();
            for (step, GuideStep { sets, .. }) in steps {
                let account_wide = sets.first().and_then(|id| variables.get(id.0));
                let same_name = account_wide.and_then(|it| ids.get(&it.name));
                // The first one is the account-wide variable itself.
                let others = same_name.into_iter().flatten().skip(1);
                match setters_left.checked_sub(others.clone().count()) {
                    Some(left) => {
                        setters_left = left;
                        sets.extend(others.map(|(_, id)| *id));
                    }
                    None => {
                        limit.get_or_insert(GuideLimit::KEYS);
                    }
                }
                for id in sets {
                    if let Some(variable) = variables.get_mut(id.0) {
                        variable.setters.push(StepPosition { task, step });
                    }
                }
            }
        }
    }

    /// Compiles the conditions, and adds the variables that only they name.
    fn compile_conditions(&mut self) {
        let Guide {
            tasks,
            variables,
            ids,
            ..
        } = &mut self.guide;
        for (index, task) in tasks.iter_mut().enumerate() {
            let mut read = |name: &str| {
                let own = ids.get(name).and_then(|ids| ids.get(&Some(index)));
                let id = match own {
                    Some(id) => *id,
                    None => find_or_add(ids, variables, None, name),
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
            task.conditions = compile(&task.task.content.dependencies);
            for step in task.steps.iter_mut().flatten() {
                step.conditions = compile(&step.step.content.dependencies);
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
    ids: &mut VariableIds,
    variables: &mut Vec<Variable>,
    task: Option<usize>,
    name: &str,
) -> VariableId {
    let mut add = || {
        variables.push(Variable {
            name: name.to_owned(),
            task,
            ..Variable::default()
        });
        VariableId(variables.len() - 1)
    };
    match ids.get_mut(name) {
        Some(of_name) => *of_name.entry(task).or_insert_with(add),
        None => {
            let id = add();
            ids.insert(name.to_owned(), BTreeMap::from([(task, id)]));
            id
        }
    }
}

impl GuideTask {
    fn groups(&self) -> impl Iterator<Item = &Group> {
        let steps = self.steps.iter().flatten();
        let step_groups = steps.filter_map(|it| it.step.content.dependencies.as_ref());
        step_groups.chain(&self.task.content.dependencies)
    }
}

/// The work to compile a guide: the number of its steps, conditions, targets and keys.
pub fn guide_weight(tasks: &SourceTasks) -> usize {
    let step_weight = |step: &GuideStep| {
        let feedback = step.step.kind.feedback();
        let keys = feedback.map_or(0, |feedback| feedback.values.len());
        let languages = step.translations.len();
        1 + keys * (1 + languages) + languages
    };
    let task_weights = tasks.values().map(|task| {
        let steps: usize = task.steps.iter().flatten().map(step_weight).sum();
        1 + steps + task.groups().map(Group::weight).sum::<usize>()
    });
    task_weights.sum()
}
