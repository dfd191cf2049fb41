//! The visibility of a guide's steps in one state.

use crate::domain::{
    analysis::{
        CompiledGroup, Guide, GuideStep, GuideTask, MAX_SUBTASK_LEVELS, StepPosition, StopSignal,
        SubtaskEntry, Truth,
    },
    step::StepType,
    task::Published,
};

use super::{
    GuideState, PreviewOptions,
    unanswered::{Reader, hide_unanswered},
};

/// Why a task or step is not visible, in the order of the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibilityReason {
    /// It is not published.
    NotPublished,
    /// The roles of the task lack the level.
    Level,
    /// Its dependencies do not hold.
    Condition,
    /// A visible END comes before it.
    AfterEnd,
    /// The task that the step refers to is not visible.
    SubtaskHidden,
    /// The step leads back to a task that the walk is inside of.
    SubtaskCycle,
    /// Its task, or the subtask step that it is reached by, is not visible.
    TaskHidden,
    /// It may depend on a value that is not known.
    UnknownValue,
}

/// A step of a preview.
#[derive(Clone, Debug)]
pub struct ListedStep {
    /// The step.
    pub position: StepPosition,
    /// The index of the subtask step that it is reached by, in the list.
    pub parent: Option<usize>,
    /// Whether it is visible.
    pub visible: Truth,
    /// Why it is not visible.
    pub reasons: Vec<VisibilityReason>,
}

/// The visibility of a guide.
pub struct Evaluated {
    pub visible: Truth,
    pub reasons: Vec<VisibilityReason>,
    pub steps: Vec<ListedStep>,
    pub next_observation: Vec<StepPosition>,
}

/// What decides whether a task is visible: all parts must be TRUE.
struct TaskParts {
    published: Truth,
    level: Truth,
    dependencies: Truth,
}

/// What decides whether a step is visible, however it is reached: all parts must be TRUE.
struct StepParts {
    published: Truth,
    dependencies: Truth,
    /// Whether no visible END comes before it.
    before_end: Truth,
    /// Whether the task that it refers to is visible; TRUE for other steps.
    subtask: Truth,
}

/// Evaluates a guide, and adds to the state that the variables of hidden observations are not
/// answered. `None` if nobody waits for it any more.
pub fn evaluate(
    guide: &Guide,
    state: &mut GuideState,
    options: &PreviewOptions,
    stop: StopSignal<'_>,
) -> Option<Evaluated> {
    let mut parts = GuideParts::of(guide, state, options);
    hide_unanswered(guide, state, &mut parts, stop)?;
    let visible = parts.task_visible(0);
    let reasons = parts.tasks.first().map_or(Vec::new(), TaskParts::reasons);
    let mut walk = PreviewWalk {
        guide,
        state,
        stop,
        depth: options.subtask_depth,
        parts: parts.steps,
        entered: vec![0],
        via: Vec::new(),
        listed: Vec::new(),
        next_observation: None,
    };
    walk.go_through(visible, None);
    (!stop.is_given()).then_some(Evaluated {
        visible,
        reasons,
        steps: walk.listed,
        next_observation: walk.next_observation.unwrap_or_default(),
    })
}

fn is_published(published: Published, options: &PreviewOptions) -> Truth {
    Truth::from(options.include_unpublished || published == Published::default())
}

fn holds(dependencies: Option<&CompiledGroup>, state: &GuideState) -> Truth {
    dependencies.map_or(Truth::True, |group| state.truth(group))
}

impl TaskParts {
    fn of(task: &GuideTask, state: &GuideState, options: &PreviewOptions) -> Self {
        let roles = &task.source.task.content.roles;
        let level = options.level.is_none_or(|level| roles.contains(&level));
        Self {
            published: is_published(task.source.task.content.published, options),
            level: level.into(),
            dependencies: holds(task.dependencies.as_ref(), state),
        }
    }

    fn visible(&self) -> Truth {
        Truth::all([self.published, self.level, self.dependencies])
    }

    fn reasons(&self) -> Vec<VisibilityReason> {
        let reasons = [
            (
                self.published == Truth::False,
                VisibilityReason::NotPublished,
            ),
            (self.level == Truth::False, VisibilityReason::Level),
            (
                self.dependencies == Truth::False,
                VisibilityReason::Condition,
            ),
            (
                self.dependencies == Truth::Unknown,
                VisibilityReason::UnknownValue,
            ),
        ];
        applying(reasons)
    }
}

/// The reasons that apply, in their order.
fn applying<const N: usize>(reasons: [(bool, VisibilityReason); N]) -> Vec<VisibilityReason> {
    let applying = reasons.into_iter().filter(|(applies, _)| *applies);
    applying.map(|(_, reason)| reason).collect()
}

/// The parts of all tasks and steps of a guide.
pub(super) struct GuideParts {
    tasks: Vec<TaskParts>,
    /// By task, then by step.
    steps: Vec<Vec<StepParts>>,
}

impl GuideParts {
    fn of(guide: &Guide, state: &GuideState, options: &PreviewOptions) -> Self {
        let tasks = guide.tasks.iter();
        let steps = tasks.clone().map(|task| {
            let steps = task.steps.iter().flatten();
            let parts = steps.map(|step| StepParts {
                published: is_published(step.source.step.content.published, options),
                dependencies: holds(step.dependencies.as_ref(), state),
                before_end: Truth::True,
                subtask: Truth::True,
            });
            parts.collect()
        });
        let mut parts = Self {
            steps: steps.collect(),
            tasks: tasks
                .map(|task| TaskParts::of(task, state, options))
                .collect(),
        };
        parts.relate(guide);
        parts
    }

    /// Evaluates the dependencies of some tasks and steps again, and what follows from them.
    pub(super) fn update(
        &mut self,
        guide: &Guide,
        state: &GuideState,
        readers: impl IntoIterator<Item = Reader>,
    ) {
        for Reader { task, step } in readers {
            let Some(read) = guide.tasks.get(task) else {
                continue;
            };
            let Some(step) = step else {
                if let Some(parts) = self.tasks.get_mut(task) {
                    parts.dependencies = holds(read.dependencies.as_ref(), state);
                }
                continue;
            };
            let parts = self
                .steps
                .get_mut(task)
                .and_then(|parts| parts.get_mut(step));
            if let (Some(parts), Some(step)) = (parts, guide.steps(task).get(step)) {
                parts.dependencies = holds(step.dependencies.as_ref(), state);
            }
        }
        self.relate(guide);
    }

    /// Evaluates what a step takes from its subtask and from ENDs before it.
    fn relate(&mut self, guide: &Guide) {
        for (task, parts) in self.steps.iter_mut().enumerate() {
            let mut before_end = Truth::True;
            for (parts, step) in parts.iter_mut().zip(guide.steps(task)) {
                let subtask = step.subtask.and_then(|task| self.tasks.get(task));
                parts.subtask = subtask.map_or(Truth::True, TaskParts::visible);
                parts.before_end = before_end;
                if step.source.step.kind.step_type() == StepType::End {
                    before_end = Truth::all([before_end, parts.visible().negated()]);
                }
            }
        }
    }

    fn task_visible(&self, task: usize) -> Truth {
        self.tasks.get(task).map_or(Truth::True, TaskParts::visible)
    }

    /// Whether a step is visible in some walk that comes to it.
    pub(super) fn step_visible(&self, reached: &[Truth], position: StepPosition) -> Truth {
        let StepPosition { task, step } = position;
        let parts = self.steps.get(task).and_then(|parts| parts.get(step));
        let reached = reached.get(task).copied().unwrap_or(Truth::False);
        Truth::all([reached, parts.map_or(Truth::Unknown, StepParts::visible)])
    }

    /// For each task, whether visible subtask steps lead to it. A step that leads back to a task
    /// adds nothing to the way on which that task was entered.
    pub(super) fn reached(&self, guide: &Guide) -> Vec<Truth> {
        let mut reached = vec![Truth::False; guide.tasks.len()];
        if let Some(root) = reached.first_mut() {
            *root = self.task_visible(0);
        }
        for _ in 0..MAX_SUBTASK_LEVELS {
            let mut next = reached.clone();
            for (task, steps) in guide.tasks.iter().enumerate() {
                for (index, step) in steps.steps.iter().flatten().enumerate() {
                    let position = StepPosition { task, step: index };
                    if let Some(next) = step.subtask.and_then(|task| next.get_mut(task)) {
                        *next = Truth::any([*next, self.step_visible(&reached, position)]);
                    }
                }
            }
            if next == reached {
                break;
            }
            reached = next;
        }
        reached
    }
}

impl StepParts {
    fn visible(&self) -> Truth {
        Truth::all(self.parts())
    }

    fn parts(&self) -> [Truth; 4] {
        [
            self.published,
            self.dependencies,
            self.before_end,
            self.subtask,
        ]
    }

    /// The reasons for a step in a task whose visibility is `reached`.
    fn reasons(&self, reached: Truth, cycle: Truth) -> Vec<VisibilityReason> {
        let unknown = self.parts().contains(&Truth::Unknown) || reached == Truth::Unknown;
        let reasons = [
            (
                self.published == Truth::False,
                VisibilityReason::NotPublished,
            ),
            (
                self.dependencies == Truth::False,
                VisibilityReason::Condition,
            ),
            (self.before_end == Truth::False, VisibilityReason::AfterEnd),
            (self.subtask != Truth::True, VisibilityReason::SubtaskHidden),
            (cycle == Truth::True, VisibilityReason::SubtaskCycle),
            (reached != Truth::True, VisibilityReason::TaskHidden),
            (unknown, VisibilityReason::UnknownValue),
        ];
        applying(reasons)
    }
}

/// Goes through the guide, lists the steps down to the depth of the preview, and looks for the
/// next observation below it.
struct PreviewWalk<'a> {
    guide: &'a Guide,
    state: &'a GuideState,
    stop: StopSignal<'a>,
    depth: usize,
    /// By task, then by step.
    parts: Vec<Vec<StepParts>>,
    /// The tasks that it is inside of; the root first.
    entered: Vec<usize>,
    /// The subtask steps through which it entered them.
    via: Vec<StepPosition>,
    listed: Vec<ListedStep>,
    next_observation: Option<Vec<StepPosition>>,
}

impl PreviewWalk<'_> {
    /// Goes through the task that was entered last. `reached` says whether that task and
    /// the step that led to it are visible; `parent` is that step, if it is listed.
    fn go_through(&mut self, reached: Truth, parent: Option<usize>) {
        let guide = self.guide;
        let Some(task) = self.entered.last().copied() else {
            return;
        };
        for (index, step) in guide.steps(task).iter().enumerate() {
            if self.stop.is_given() {
                return;
            }
            let position = StepPosition { task, step: index };
            let entry = guide.subtask_entry(step, &self.entered);
            let visible = self.list(position, entry, reached, parent);
            self.note_observation(position, step, visible);
            match entry {
                SubtaskEntry::Enter(subtask) => self.enter(subtask, position, visible),
                SubtaskEntry::NoTask | SubtaskEntry::Cycle(_) | SubtaskEntry::TooDeep(_) => {}
            }
        }
    }

    /// Lists a step if it is not below the depth of the preview. Returns whether it is visible.
    fn list(
        &mut self,
        position: StepPosition,
        entry: SubtaskEntry,
        reached: Truth,
        parent: Option<usize>,
    ) -> Truth {
        let cycle = match entry {
            SubtaskEntry::Cycle(_) => Truth::True,
            SubtaskEntry::NoTask | SubtaskEntry::Enter(_) | SubtaskEntry::TooDeep(_) => {
                Truth::False
            }
        };
        let parts = self.parts.get(position.task);
        let Some(parts) = parts.and_then(|parts| parts.get(position.step)) else {
            return Truth::Unknown;
        };
        let visible = Truth::all([reached, parts.visible(), cycle.negated()]);
        if self.via.len() <= self.depth {
            self.listed.push(ListedStep {
                position,
                parent,
                visible,
                reasons: parts.reasons(reached, cycle),
            });
        }
        visible
    }

    fn note_observation(&mut self, position: StepPosition, step: &GuideStep, visible: Truth) {
        let open = !step.sets.is_empty() && self.state.answer(step).is_none();
        if open && visible == Truth::True && self.next_observation.is_none() {
            let via = self.via.iter().copied();
            self.next_observation = Some(via.chain([position]).collect());
        }
    }

    /// Enters a subtask if its steps are listed, or may have the next observation.
    fn enter(&mut self, subtask: usize, by: StepPosition, visible: Truth) {
        let listed = self.via.len() < self.depth;
        let may_have_next = self.next_observation.is_none() && visible == Truth::True;
        if !listed && !may_have_next {
            return;
        }
        let parent = self.listed.len().checked_sub(1);
        self.entered.push(subtask);
        self.via.push(by);
        self.go_through(visible, parent);
        self.via.pop();
        self.entered.pop();
    }
}
