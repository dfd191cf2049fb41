//! Restores: imports of the document of a revision, whose tasks and steps get their former ids where these
//! are free.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    Precondition, Result,
    decide::WriteContext,
    history::{KeptDocument, TranslatedFrom},
    ids::{StepId, TaskId},
    row_version::RowVersion,
    step::{NewStep, SentSubtask, Step},
    task::Task,
    text::Name,
    translation_work::SourceDigest,
};

use super::{
    Absent, AbsentFields, AbsentSteps, Document, DocumentStep, ImportContext, ImportPlan,
    StepFields, TaskTree,
    plan::{Target, plan_with_ids},
};

/// The restore of a revision.
pub struct Restore<'a> {
    pub kept: KeptDocument,
    /// The tasks of the revision that are outside of the guide now, with everything below them.
    pub others: &'a [TaskTree],
    /// What the outdated translations of stored tasks and steps were made from.
    pub outdated: &'a TranslatedFrom,
    /// Whether subtask steps are left out whose tasks are gone.
    pub skip_missing_subtasks: bool,
}

impl Restore<'_> {
    /// Plans the restore. The request only has a field for the revision, so descriptions name the
    /// rest.
    pub fn plan(self, context: ImportContext<'_>) -> Result<ImportPlan> {
        let KeptDocument {
            mut document,
            outdated,
        } = self.kept;
        prepare(&mut document, None);
        let guide = context.existing.into_iter().flat_map(TaskTree::all);
        let outside = self.others.iter().flat_map(TaskTree::all);
        let restored = RestoredIds {
            kept_sources: outdated,
            stored_sources: self.outdated,
            guide: guide.map(|tree| tree.task.guid).collect(),
            outside: outside.map(|tree| (tree.task.guid, tree)).collect(),
            replaced: BTreeMap::new(),
            missing: Vec::new(),
            translated_from: TranslatedFrom::default(),
        };
        let absent = Absent {
            steps: AbsentSteps::Delete,
            fields: AbsentFields::Reset,
            keeps_locked: false,
        };
        let (mut plan, restored) = plan_with_ids(&document, absent, Some(restored), context)?;
        let Some(RestoredIds {
            replaced,
            missing,
            translated_from,
            ..
        }) = restored
        else {
            return Ok(plan);
        };
        if !missing.is_empty() && !self.skip_missing_subtasks {
            return Err(Precondition::MissingSubtasks { steps: missing }.into());
        }
        plan.changes.translated_from = translated_from;
        for claimed in &mut plan.changes.claimed_ids {
            claimed.field = "revision".into();
        }
        plan.imported.replaced = replaced;
        for step in &missing {
            plan.imported.replaced.remove(&step.0);
        }
        plan.imported.skipped = missing.into_iter().collect();
        Ok(plan)
    }
}

/// Violations name steps by their ids, and subtask steps refer to tasks only by ids. A managed task
/// gets the name of its answer.
fn prepare(document: &mut Document, name: Option<&Name>) {
    if let (Some(new), Some(name)) = (&mut document.task.new, name) {
        new.name = name.clone();
    }
    for step in &mut document.steps {
        let guid = step.guid.map_or_else(String::new, |guid| guid.to_string());
        step.path = format!("step {guid}");
        step.subtask = SentSubtask {
            guid: step.subtask.guid,
            ..SentSubtask::default()
        };
        let question = match &mut step.fields {
            StepFields::New(new) => new.kind.observation_feedback_mut(),
            StepFields::Refused | StepFields::Kept => None,
        };
        let values = question
            .into_iter()
            .flat_map(|question| &mut question.values);
        for (value, managed) in values.zip(&mut step.values) {
            value.link = managed.ids.first().copied();
            let name = Name::parse(value.value.as_str().to_owned()).ok();
            if let Some(document) = &mut managed.document {
                document.path.clone_from(&step.path);
                prepare(document, name.as_ref());
            }
        }
    }
}

/// The ids that the tasks and steps of a revision get, and what their translations were made from.
pub(super) struct RestoredIds<'a> {
    /// What outdated translations of the revision were made from.
    kept_sources: TranslatedFrom,
    stored_sources: &'a TranslatedFrom,
    /// The tasks of the stored guide.
    guide: BTreeSet<TaskId>,
    outside: BTreeMap<TaskId, &'a TaskTree>,
    /// New ids of tasks and steps, by their ids in the revision.
    replaced: BTreeMap<Uuid, Uuid>,
    /// Subtask steps whose tasks are gone, by their ids in the revision.
    missing: Vec<StepId>,
    translated_from: TranslatedFrom,
}

impl<'a> RestoredIds<'a> {
    /// What becomes of a managed task of the revision.
    pub fn managed_target(&self, kept: &Document, parent: Target<'a>) -> Target<'a> {
        let Some(id) = kept.task.guid else {
            return Target::New;
        };
        if let Some(tree) = parent.stored().and_then(|parent| parent.managed.get(&id)) {
            return Target::Stored(tree);
        }
        match self.outside.get(&id).copied() {
            // A new task takes over no standard task: a restore that undoes this one would not make
            // that standard again.
            Some(tree)
                if !matches!(parent, Target::New)
                    && tree.task.managed.is_none()
                    && is_same(kept, tree) =>
            {
                Target::Stored(tree)
            }
            Some(_) => Target::New,
            None if self.guide.contains(&id) => Target::New,
            None => Target::Undeleted,
        }
    }

    /// Gives a new task its former id if the id is free. Notes what its translations were made
    /// from. If a translation was made from a different text than the stored one, the task gets a
    /// new version.
    pub fn set_task(
        &mut self,
        kept: &Document,
        target: Target<'a>,
        after: &mut Task,
        write: &WriteContext,
    ) {
        let (Some(former), Some(new)) = (kept.task.guid, &kept.task.new) else {
            return;
        };
        let before = target.stored().map(|tree| &tree.task);
        match target {
            Target::Stored(_) => {}
            Target::New => drop(self.replaced.insert(former.0, after.guid.0)),
            Target::Undeleted => {
                after.guid = former;
                after.row_version = RowVersion::after_deletion(kept.task.created, write);
            }
        }
        for language in after.content.translations.keys() {
            let key = (former, language.clone());
            let source = self.kept_sources.tasks.get(&key);
            let source = source.map_or(new.name.as_str(), String::as_str);
            if let Some(before) = before.filter(|it| it.content.translations.contains_key(language))
            {
                let stored = self.stored_sources.tasks.get(&key);
                if source != stored.map_or(before.name.as_str(), String::as_str) {
                    after.row_version = before.row_version.next(write);
                }
            }
            let key = (after.guid, language.clone());
            self.translated_from.tasks.insert(key, source.to_owned());
        }
    }

    /// The same for a step of a task. Its values manage the tasks of the revision, and not those of stored
    /// values with equal keys.
    pub fn set_step(
        &mut self,
        (kept, new): (&DocumentStep, &NewStep),
        target: Target<'a>,
        before: Option<&Step>,
        after: &mut Step,
        write: &WriteContext,
    ) {
        let Some(former) = kept.guid else {
            return;
        };
        after.kind = new.kind.clone();
        if before.is_none() {
            after.r_data = kept.r_data.clone().unwrap_or_default();
            match target {
                Target::New => drop(self.replaced.insert(former.0, after.guid.0)),
                Target::Stored(_) | Target::Undeleted => {
                    after.guid = former;
                    after.row_version = RowVersion::after_deletion(kept.created, write);
                }
            }
        }
        if after.content.translations.is_empty() {
            return;
        }
        let title = match after.kind.subtask() {
            Some(_) => kept.title.clone().unwrap_or_default(),
            None => after.title.clone(),
        };
        let own = (title, SourceDigest::for_step_content(after));
        let stored_own = before.map(|it| (it.title.clone(), SourceDigest::for_step_content(it)));
        for language in after.content.translations.keys() {
            let key = (former, language.clone());
            let source = self.kept_sources.steps.get(&key).unwrap_or(&own);
            let stored = self.stored_sources.steps.get(&key).or(stored_own.as_ref());
            if let Some(before) = before.filter(|it| it.content.translations.contains_key(language))
                && stored != Some(source)
            {
                after.row_version = before.row_version.next(write);
            }
            let key = (after.guid, language.clone());
            self.translated_from.steps.insert(key, source.clone());
        }
    }

    /// Leaves out a step whose task is gone.
    pub fn leave_out(&mut self, step: StepId) {
        let mut replaced = self.replaced.iter();
        let former = replaced.find(|(_, new)| **new == step.0);
        let former = former.map_or(step, |(former, _)| StepId(*former));
        self.missing.push(former);
    }
}

/// Whether a task that is no longer managed equals the revision, with everything below it.
fn is_same(kept: &Document, stored: &TaskTree) -> bool {
    let (task, b) = (&kept.task.new, &stored.task);
    let same_task = task
        .as_ref()
        .is_some_and(|a| a.name == b.name && a.product == b.product && a.content == b.content);
    let same_step = |(kept, b): (&DocumentStep, &Step)| {
        // The title of a subtask step follows the task that it refers to.
        let is_same = |a: &NewStep| {
            let same_title = a.kind.subtask().is_some() || a.title == b.title;
            same_title && a.kind == b.kind && a.content == b.content
        };
        kept.guid == Some(b.guid)
            && kept.link == b.link
            && kept.fields.as_new().is_some_and(is_same)
    };
    let managed = kept.steps.iter().flat_map(|step| &step.values);
    let managed = managed.filter_map(|value| value.document.as_deref());
    let managed: Vec<&Document> = managed.collect();
    let same_managed = |kept: &&Document| {
        let stored = kept.task.guid.and_then(|task| stored.managed.get(&task));
        stored.is_some_and(|stored| is_same(kept, stored))
    };
    same_task
        && kept.steps.len() == stored.steps.len()
        && kept.steps.iter().zip(&stored.steps).all(same_step)
        && managed.len() == stored.managed.len()
        && managed.iter().all(same_managed)
}
