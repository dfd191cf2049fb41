//! The tasks and steps of a document that is not stored, as an import would create them.

use std::collections::BTreeMap;

use crate::domain::{
    changes::TaskChange,
    ids::{StepId, TaskId},
    import::ImportPlan,
    size::StepSize,
    step::{ReferencedTask, Step},
};

use super::{GuideStep, GuideTask, SourceTasks, TranslationState};

/// The root of a document, and its tasks with their steps, from the plan of an import that would
/// create them. They have the ids of the plan.
pub fn plan_tasks(plan: ImportPlan) -> (TaskId, SourceTasks) {
    let ImportPlan {
        changes,
        imported,
        mut origins,
    } = plan;
    let steps = changes.steps.into_iter().map(|change| *change.after);
    let mut created: BTreeMap<StepId, Step> = steps.map(|step| (step.guid, step)).collect();
    let mut tasks = SourceTasks::new();
    for change in changes.tasks {
        let TaskChange::Create(task) = change else {
            continue;
        };
        let steps = task.steps.iter().filter_map(|step| created.remove(step));
        let steps = steps.map(|step| GuideStep {
            origin: origins.steps.remove(&step.guid),
            ..planned_step(step)
        });
        let planned = GuideTask {
            origin: origins.tasks.remove(&task.guid),
            steps: Some(steps.collect()),
            ..(*task).into()
        };
        tasks.insert(planned.task.guid, planned);
    }
    (imported.task.guid, tasks)
}

/// Makes subtask steps refer to the tasks of documents instead of the tasks that these replace. A task of a
/// document replaces the one with its external id, and the one with its id in the document if `replaces`
/// accepts that id.
pub fn refer_to_documents(tasks: &mut SourceTasks, replaces: impl Fn(&TaskId) -> bool) {
    let (mut by_id, mut by_external_id) = (BTreeMap::new(), BTreeMap::new());
    for GuideTask { task, origin, .. } in tasks.values() {
        let Some(origin) = origin else { continue };
        let target = ReferencedTask::to(task);
        let external_id = target.external_id.clone();
        by_external_id.extend(external_id.map(|id| (id, target.clone())));
        by_id.extend(origin.guid.filter(&replaces).map(|id| (id, target)));
    }
    // Tasks that are not of a document, but have the external id of one.
    for GuideTask { task, .. } in tasks.values().filter(|it| it.origin.is_none()) {
        let external_id = task.content.external_id.as_ref();
        if let Some(target) = external_id.and_then(|id| by_external_id.get(id)) {
            by_id.entry(task.guid).or_insert_with(|| target.clone());
        }
    }
    let steps = tasks.values_mut().flat_map(|task| &mut task.steps);
    for step in steps.flatten().map(|step| &mut step.step) {
        let subtask = step.kind.subtask().map(|subtask| subtask.task);
        if let Some(target) = subtask.and_then(|id| by_id.get(&id)) {
            step.refer_to(target.clone());
        }
    }
}

fn planned_step(step: Step) -> GuideStep {
    let translations = step.content.translations.iter();
    let translations = translations.map(|(language, translation)| {
        let state = TranslationState {
            has_body: translation.body.is_some(),
            ..TranslationState::default()
        };
        (language.clone(), state)
    });
    GuideStep {
        translations: translations.collect(),
        has_body: step.content.body.is_some(),
        body_bytes: usize::try_from(StepSize::for_step(&step).bodies).unwrap_or(usize::MAX),
        ..step.into()
    }
}
