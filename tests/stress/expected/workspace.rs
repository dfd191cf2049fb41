//! The state that the acknowledged writes of a writer make.

use std::collections::BTreeMap;

use expertise::proto::v1::*;

use super::write::Write;

/// Tasks, steps and roles that one writer alone works on. All their names begin with
/// the workspace's prefix, so that whatever is found belongs to one workspace.
///
/// Ids that the service has made and the writer was not told are placeholders: `?1`
/// and so on.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    pub prefix: String,
    pub tasks: Vec<ExpectedTask>,
    pub roles: Vec<Role>,
    /// The ids of tasks that were deleted.
    pub deleted: Vec<String>,
    /// A write that was sent and not answered: all of it is there, or nothing.
    pub unanswered: Option<Write>,
    /// The ids that placeholders turned out to be.
    pub ids: BTreeMap<String, String>,
    /// How many names and placeholders were given out.
    counter: u32,
}

/// A task and its steps.
#[derive(Clone, Debug)]
pub struct ExpectedTask {
    /// Without the fields that the system sets, and without its steps.
    pub task: Task,
    pub etag: ExpectedEtag,
    /// In their order.
    pub steps: Vec<ExpectedStep>,
    /// Other workspaces have steps in it too, and none of them owns the task. The
    /// steps here are those of this workspace, in their order.
    pub shared: bool,
}

#[derive(Clone, Debug)]
pub struct ExpectedStep {
    /// Without the fields that the system sets.
    pub step: Step,
    pub etag: ExpectedEtag,
}

/// What is known of a resource's etag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedEtag {
    Any,
    Equals(String),
    /// The resource has changed since it had this one.
    DiffersFrom(String),
}

impl ExpectedEtag {
    pub fn allows(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Equals(known) => known == etag,
            Self::DiffersFrom(old) => old != etag,
        }
    }

    /// The etag to send, or an empty one where it is not known.
    pub fn to_send(&self) -> String {
        match self {
            Self::Equals(known) => known.clone(),
            Self::Any | Self::DiffersFrom(_) => String::new(),
        }
    }

    fn note_change(&mut self) {
        if let Self::Equals(known) = self {
            *self = Self::DiffersFrom(std::mem::take(known));
        }
    }
}

impl ExpectedTask {
    /// Whether a question of another task manages it.
    pub fn is_managed(&self) -> bool {
        self.task.r#type() == TaskType::Linked
    }

    /// Whether the writer was not told its id or that of a step.
    pub fn has_placeholder(&self) -> bool {
        let ids = self.step_ids().into_iter().chain([self.task.guid.as_str()]);
        ids.into_iter().any(is_placeholder)
    }

    fn step_ids(&self) -> Vec<&str> {
        let steps = self.steps.iter();
        steps.map(|expected| expected.step.guid.as_str()).collect()
    }
}

/// Whether an id is a placeholder.
pub fn is_placeholder(id: &str) -> bool {
    id.starts_with('?')
}

/// The values of a step's linked question, each with its index.
pub fn linked_values(step: &Step) -> impl Iterator<Item = (usize, &FeedbackValue)> {
    let configs = step.feedback_config.iter();
    let linked = configs.filter(|config| config.linked == Some(true));
    linked.flat_map(|config| config.values.iter().enumerate())
}

impl Workspace {
    /// An empty one.
    pub fn new(prefix: String) -> Self {
        Self {
            prefix,
            ..Self::default()
        }
    }

    /// One that has steps in a task that other workspaces share.
    pub fn in_shared_task(prefix: String, task: &Task) -> Self {
        let shared = ExpectedTask {
            task: task.clone(),
            etag: ExpectedEtag::Any,
            steps: Vec::new(),
            shared: true,
        };
        Self {
            tasks: vec![shared],
            ..Self::new(prefix)
        }
    }

    /// A name that nothing else has.
    pub fn new_name(&mut self) -> String {
        self.counter += 1;
        format!("{} {}", self.prefix, self.counter)
    }

    pub fn new_placeholder(&mut self) -> String {
        self.counter += 1;
        format!("?{}", self.counter)
    }

    /// Whether it holds ids that the writer was not told.
    pub fn has_placeholders(&self) -> bool {
        self.tasks.iter().any(ExpectedTask::has_placeholder)
    }

    /// The task of this id.
    pub fn task_mut(&mut self, guid: &str) -> &mut ExpectedTask {
        let mut tasks = self.tasks.iter_mut();
        let found = tasks.find(|expected| expected.task.guid == guid);
        found.expect("a task of the workspace")
    }

    /// The step of this id.
    pub fn step_mut(&mut self, guid: &str) -> &mut ExpectedStep {
        let mut steps = self.steps_mut();
        let found = steps.find(|expected| expected.step.guid == guid);
        found.expect("a step of the workspace")
    }

    fn steps_mut(&mut self) -> impl Iterator<Item = &mut ExpectedStep> {
        self.tasks
            .iter_mut()
            .flat_map(|expected| &mut expected.steps)
    }

    /// Puts the id in place of its placeholder everywhere.
    pub fn replace_placeholder(&mut self, placeholder: &str, id: &str) {
        if !is_placeholder(placeholder) || is_placeholder(id) {
            return;
        }
        let replace = |field: &mut String| {
            if field == placeholder {
                id.clone_into(field);
            }
        };
        for expected in &mut self.tasks {
            replace(&mut expected.task.guid);
            replace(&mut expected.task.parent_guid);
        }
        for ExpectedStep { step, .. } in self.steps_mut() {
            replace(&mut step.guid);
            replace(&mut step.task);
            replace(&mut step.subtask_id);
            replace(&mut step.link);
            let values = step.feedback_config.iter_mut();
            for value in values.flat_map(|config| &mut config.values) {
                replace(&mut value.link);
            }
        }
        self.ids.insert(placeholder.to_owned(), id.to_owned());
    }

    /// Derives the fields of managed tasks and the titles of all subtask steps. Clears the links
    /// of steps whose task is no longer managed.
    pub fn derive_fields(&mut self) {
        let mut managed = BTreeMap::new();
        for ExpectedTask { task, steps, .. } in &self.tasks {
            for expected in steps {
                for (idx, value) in linked_values(&expected.step) {
                    let parent = (task.guid.clone(), idx as i32, value.value.clone());
                    managed.insert(value.link.clone(), parent);
                }
            }
        }
        for ExpectedTask { task, shared, .. } in &mut self.tasks {
            if *shared {
                continue;
            }
            let parent = managed.get(&task.guid).cloned();
            task.set_type(match parent {
                None => TaskType::Standard,
                Some(_) => TaskType::Linked,
            });
            let (parent_guid, idx, name) = parent.unwrap_or_default();
            (task.parent_guid, task.idx) = (parent_guid, idx);
            if !name.is_empty() {
                task.name = name;
            }
        }
        let names: BTreeMap<String, String> = self
            .tasks
            .iter()
            .map(|ExpectedTask { task, .. }| (task.guid.clone(), task.name.clone()))
            .collect();
        for ExpectedStep { step, .. } in self.steps_mut() {
            if !managed.contains_key(&step.link) {
                step.link.clear();
            }
            if let Some(name) = names.get(&step.subtask_id) {
                step.title.clone_from(name);
            }
        }
    }

    /// Expects another etag of each task and step that differs from the state before.
    pub fn note_changes_since(&mut self, before: &Self) {
        for expected in &mut self.tasks {
            let mut old = before.tasks.iter();
            let Some(old) = old.find(|old| old.task.guid == expected.task.guid) else {
                continue;
            };
            if old.task != expected.task || old.step_ids() != expected.step_ids() {
                expected.etag.note_change();
            }
            for step in &mut expected.steps {
                let mut old = old.steps.iter();
                let old = old.find(|old| old.step.guid == step.step.guid);
                if old.is_some_and(|old| old.step != step.step) {
                    step.etag.note_change();
                }
            }
        }
    }
}
