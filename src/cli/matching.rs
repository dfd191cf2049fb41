//! Which task or step of an account each part of a document is.
//!
//! Ids belong to an account. A document of another account is matched by external ids, and then
//! by content: tasks that observations manage by their keys, steps by type and title, and what is
//! left by type and order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::proto::v1::{FeedbackConfig, Step, StepType, TaskDocument};

/// How steps of a document are found among the stored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matching {
    /// As an import finds them: by their ids. A step without an id is new.
    ById,
    /// By their ids, or else by their external ids, or else by content.
    ByContent,
}

/// The account's ids of tasks, by the ids that documents use.
pub(super) type TaskIds = HashMap<String, String>;

/// Gives the parts of a document the ids of the stored guide, and adds those of its tasks to
/// `ids`.
pub(super) fn match_to_stored(
    document: &mut TaskDocument,
    stored: &TaskDocument,
    matching: Matching,
    ids: &mut TaskIds,
) {
    let (Some(task), Some(stored_task)) = (&mut document.task, &stored.task) else {
        return;
    };
    add_id(ids, &task.guid, &stored_task.guid);
    task.guid.clone_from(&stored_task.guid);
    let mut matcher = StepMatcher {
        sent: &mut document.steps,
        free: stored.steps.iter().map(Some).collect(),
        matched: Vec::new(),
        matching,
        ids,
    };
    matcher.matched.resize(matcher.sent.len(), false);
    matcher.match_all();
    for step in &mut document.steps {
        step.task.clone_from(&stored_task.guid);
    }
}

fn add_id(ids: &mut TaskIds, sent: &str, stored: &str) {
    if !sent.is_empty() && !stored.is_empty() {
        ids.insert(sent.to_ascii_lowercase(), stored.to_owned());
    }
}

struct StepMatcher<'a, 'b> {
    sent: &'b mut [Step],
    /// The stored steps that are not matched yet.
    free: Vec<Option<&'a Step>>,
    /// Which sent steps are matched.
    matched: Vec<bool>,
    matching: Matching,
    ids: &'b mut TaskIds,
}

/// Type, product and title of a step; the title is empty where it does not count. Steps with
/// equal keys are paired.
type StepKey = (i32, Option<i64>, String);

impl StepMatcher<'_, '_> {
    fn match_all(&mut self) {
        self.match_ids();
        let by_content = self.matching == Matching::ByContent;
        let is_subtask = |step: &Step| step.r#type() == StepType::Subtask;
        let type_and_title = |step: &Step| (step.r#type, step.product_id, step.title.clone());
        let type_only = |step: &Step| (step.r#type, step.product_id, String::new());
        if by_content {
            let external_id = |step: &Step| Some((0, None, step.external_id.clone()?));
            self.match_by(&external_id);
            self.match_by(&|step| (!is_subtask(step)).then(|| type_and_title(step)));
            self.match_by(&|step| (!is_subtask(step)).then(|| type_only(step)));
        }
        // The questions are matched, so the ids of managed tasks are known.
        self.match_wiring_steps();
        if by_content {
            let is_unlinked = |step: &Step| is_subtask(step) && step.link.is_empty();
            self.match_by(&|step| is_unlinked(step).then(|| type_and_title(step)));
            self.match_by(&|step| is_unlinked(step).then(|| type_only(step)));
            for (step, matched) in self.sent.iter_mut().zip(&self.matched) {
                if !matched {
                    step.guid.clear();
                }
            }
        }
    }

    fn match_ids(&mut self) {
        let stored: HashMap<String, usize> = self
            .free
            .iter()
            .enumerate()
            .filter_map(|(index, step)| Some(((*step)?.guid.clone(), index)))
            .collect();
        for sent in 0..self.sent.len() {
            let guid = self
                .sent
                .get(sent)
                .map(|step| step.guid.to_ascii_lowercase());
            if let Some(index) = guid.and_then(|guid| stored.get(&guid)) {
                self.pair(sent, *index);
            }
        }
    }

    /// Pairs steps with equal keys, in their order.
    fn match_by(&mut self, key: &dyn Fn(&Step) -> Option<StepKey>) {
        let mut stored: BTreeMap<StepKey, VecDeque<usize>> = BTreeMap::new();
        for (index, step) in self.free.iter().enumerate() {
            if let Some(key) = step.and_then(key) {
                stored.entry(key).or_default().push_back(index);
            }
        }
        for sent in 0..self.sent.len() {
            if self.matched.get(sent) == Some(&false)
                && let Some(key) = self.sent.get(sent).and_then(key)
                && let Some(index) = stored.get_mut(&key).and_then(VecDeque::pop_front)
            {
                self.pair(sent, index);
            }
        }
    }

    /// Pairs steps that lead to the same managed task of this guide.
    fn match_wiring_steps(&mut self) {
        let stored: HashMap<&str, usize> = self
            .free
            .iter()
            .enumerate()
            .filter_map(|(index, step)| Some(((*step)?.link.as_str(), index)))
            .filter(|(link, _)| !link.is_empty())
            .collect();
        for sent in 0..self.sent.len() {
            let Some(step) = self.sent.get(sent) else {
                continue;
            };
            let target = match step.link.as_str() {
                "" => &step.subtask_id,
                link => link,
            };
            let task = self.ids.get(&target.to_ascii_lowercase());
            let index = task.and_then(|task| stored.get(task.as_str()));
            if self.matched.get(sent) == Some(&false)
                && step.r#type() == StepType::Subtask
                && let Some(index) = index
            {
                self.pair(sent, *index);
            }
        }
    }

    fn pair(&mut self, sent: usize, index: usize) {
        let (Some(step), Some(free), Some(matched)) = (
            self.sent.get_mut(sent),
            self.free.get_mut(index),
            self.matched.get_mut(sent),
        ) else {
            return;
        };
        let Some(stored) = free.take() else {
            return;
        };
        *matched = true;
        step.guid.clone_from(&stored.guid);
        step.link.clone_from(&stored.link);
        if !stored.link.is_empty() {
            step.subtask_id.clone_from(&stored.subtask_id);
        }
        self.match_values(sent, &stored.feedback_config);
    }

    /// Matches the answers of a question by their keys, with the tasks that they manage.
    fn match_values(&mut self, sent: usize, stored: &[FeedbackConfig]) {
        let Some(step) = self.sent.get_mut(sent) else {
            return;
        };
        let stored = stored.iter().flat_map(|config| &config.values);
        let stored: HashMap<&str, _> = stored.map(|value| (value.key.as_str(), value)).collect();
        let configs = step.feedback_config.iter_mut();
        for value in configs.flat_map(|config| &mut config.values) {
            let Some(stored) = stored.get(value.key.as_str()) else {
                continue;
            };
            add_id(self.ids, &value.link, &stored.link);
            value.link.clone_from(&stored.link);
            if let (Some(document), Some(managed)) = (&mut value.task_json, &stored.task_json) {
                match_to_stored(document, managed, self.matching, self.ids);
            }
        }
    }
}
