//! A task or step of a document laid over the stored one.

use std::collections::BTreeMap;

use super::{LeftOutFields, Plan, shorthand::conditions};
use crate::{
    domain::{task::AccessLevel, translation::Language},
    proto::v1::{
        FeedbackConfig, FeedbackValue, Step, StepTranslation, StepType, Task, TaskTranslation,
    },
};

/// The value of `published` unless another is sent.
const DEFAULT_PUBLISHED: i32 = 1;

impl Plan {
    fn field<T>(&self, sent: Option<T>, stored: Option<T>) -> Option<T> {
        match self.fields {
            LeftOutFields::Keep => sent.or(stored),
            LeftOutFields::Reset => sent,
        }
    }

    fn list<T>(&self, sent: Vec<T>, stored: Vec<T>) -> Vec<T> {
        match self.fields {
            LeftOutFields::Keep if sent.is_empty() => stored,
            LeftOutFields::Keep | LeftOutFields::Reset => sent,
        }
    }

    /// Texts in other languages. An import replaces those of a language as a whole.
    fn translations<T>(
        &self,
        sent: BTreeMap<String, T>,
        stored: BTreeMap<String, T>,
    ) -> BTreeMap<String, T> {
        let mut rows = match self.fields {
            LeftOutFields::Keep => stored,
            LeftOutFields::Reset => BTreeMap::new(),
        };
        let sent = sent.into_iter();
        rows.extend(sent.map(|(tag, row)| (canonical_tag(tag), row)));
        rows
    }

    /// Lays the task of the document over the stored one.
    pub(super) fn task(&self, sent: Task, stored: Task) -> Task {
        let Task {
            guid: _,
            name,
            product_id: _,
            dependencies,
            dependency_shorthand,
            published,
            mut roles,
            translations,
            r#type: _,
            steps: _,
            etag: _,
            account_id: _,
            parent_guid: _,
            idx: _,
            dirty_record: _,
            mvn_indexed: _,
            mvn_version: _,
            mvn_info: _,
            mvn_ts: _,
            created_ts: _,
            modified_ts: _,
        } = sent;
        let (dependencies, refused_shorthand) = conditions(dependencies, dependency_shorthand);
        let translations = translations.into_iter().map(|(tag, row)| {
            let locked = Some(row.locked.unwrap_or(true));
            (tag, TaskTranslation { locked, ..row })
        });
        if roles.is_empty() && self.fields == LeftOutFields::Reset {
            roles = AccessLevel::ALL.map(AccessLevel::number).to_vec();
        }
        Task {
            // A managed task is named by its value.
            name: match name.is_empty() || !stored.parent_guid.is_empty() {
                true => stored.name.clone(),
                false => name,
            },
            dependencies: self.field(dependencies, stored.dependencies.clone()),
            dependency_shorthand: refused_shorthand,
            published: self
                .field(published, stored.published)
                .or(Some(DEFAULT_PUBLISHED)),
            roles: without_duplicates(self.list(roles, stored.roles.clone())),
            translations: self.translations(translations.collect(), stored.translations.clone()),
            ..stored
        }
    }

    /// Lays a step of the document over the stored step with the same id.
    pub(super) fn step(&self, sent: Step, stored: &Step) -> Step {
        let Step {
            guid: _,
            task: _,
            product_id: _,
            r#type: _,
            title,
            body,
            cost,
            dependencies,
            dependency_shorthand,
            feedback_config,
            instructions,
            looping,
            parts,
            published,
            skills,
            tags,
            subtask_id,
            subtask_pid,
            translations,
            link: _,
            etag: _,
            account_id: _,
            r_data: _,
            dirty_record: _,
            created_ts: _,
            modified_ts: _,
        } = sent;
        let stored = stored.clone();
        let is_subtask = stored.r#type() == StepType::Subtask;
        let (dependencies, refused_shorthand) = conditions(dependencies, dependency_shorthand);
        // A wiring step refers to its managed task, whatever is sent.
        let keeps_subtask = subtask_id.is_empty() || !stored.link.is_empty();
        Step {
            title: match is_subtask || title.is_empty() {
                true => stored.title.clone(),
                false => title,
            },
            body: self.field(body, stored.body.clone()),
            cost: self.field(cost, stored.cost).or(Some(0)),
            dependencies: self.field(dependencies, stored.dependencies.clone()),
            dependency_shorthand: refused_shorthand,
            feedback_config: self.question(feedback_config, &stored),
            instructions: self.list(instructions, stored.instructions.clone()),
            looping: self.field(looping, stored.looping.clone()),
            parts: self.list(parts, stored.parts.clone()),
            published: self
                .field(published, stored.published)
                .or(Some(DEFAULT_PUBLISHED)),
            skills: self.list(skills, stored.skills.clone()),
            tags: self.list(tags, stored.tags.clone()),
            subtask_pid: match keeps_subtask {
                true => stored.subtask_pid,
                false => subtask_pid.or(stored.subtask_pid),
            },
            subtask_id: match keeps_subtask || !is_subtask {
                true => stored.subtask_id.clone(),
                false => subtask_id,
            },
            translations: self.translations(
                translations.into_iter().map(canonical_row).collect(),
                stored.translations.clone(),
            ),
            ..stored
        }
    }

    /// A question, which an observation keeps if none is sent. Values keep the tasks that
    /// they manage.
    fn question(&self, sent: Vec<FeedbackConfig>, stored: &Step) -> Vec<FeedbackConfig> {
        let is_observation = stored.r#type() == StepType::Observation;
        if sent.is_empty() && (is_observation || self.fields == LeftOutFields::Keep) {
            return stored.feedback_config.clone();
        }
        let stored: BTreeMap<&str, &FeedbackValue> = stored
            .feedback_config
            .iter()
            .filter(|config| config.linked())
            .flat_map(|config| &config.values)
            .map(|value| (value.key.as_str(), value))
            .collect();
        let value = |linked: bool, mut sent: FeedbackValue| {
            let stored = stored.get(sent.key.as_str()).filter(|_| linked);
            let managed = stored.and_then(|stored| stored.task_json.as_ref());
            sent.link = stored.map(|stored| stored.link.clone()).unwrap_or_default();
            sent.task_json = match (sent.task_json.filter(|_| linked), managed) {
                (Some(document), Some(managed)) => {
                    let mut planned = self.apply(&document, managed);
                    if let Some(task) = &mut planned.task {
                        task.name.clone_from(&sent.value);
                    }
                    Some(Box::new(planned))
                }
                (Some(document), None) => Some(document),
                (None, managed) => managed.cloned(),
            };
            sent
        };
        let sent = sent.into_iter();
        sent.map(|config| {
            let linked = config.linked();
            let values = config.values.into_iter();
            FeedbackConfig {
                linked: Some(linked),
                values: values.map(|it| value(linked, it)).collect(),
                ..config
            }
        })
        .collect()
    }
}

/// A step that the import creates, with the defaults of what its document leaves out.
pub(in crate::cli) fn new_step(sent: Step) -> Step {
    let (dependencies, refused_shorthand) =
        conditions(sent.dependencies, sent.dependency_shorthand);
    Step {
        published: sent.published.or(Some(DEFAULT_PUBLISHED)),
        cost: sent.cost.or(Some(0)),
        dependencies,
        dependency_shorthand: refused_shorthand,
        ..sent
    }
}

/// A translation as the server stores it: locked unless the document says otherwise.
fn canonical_row((tag, row): (String, StepTranslation)) -> (String, StepTranslation) {
    let StepTranslation {
        title,
        body,
        instructions,
        feedback_config,
        locked,
    } = row;
    let question = feedback_config.into_iter().map(|config| FeedbackConfig {
        linked: None,
        ..config
    });
    let row = StepTranslation {
        title,
        body,
        instructions,
        feedback_config: question.collect(),
        locked: Some(locked.unwrap_or(true)),
    };
    (tag, row)
}

fn canonical_tag(tag: String) -> String {
    match Language::parse(&tag) {
        Some(language) => language.to_string(),
        None => tag,
    }
}

fn without_duplicates(roles: Vec<i32>) -> Vec<i32> {
    let mut unique = Vec::with_capacity(roles.len());
    for role in roles {
        if !unique.contains(&role) {
            unique.push(role);
        }
    }
    unique
}
