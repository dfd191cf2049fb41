//! The tasks and steps of a document that is not stored, as an import would create them.

use std::collections::BTreeMap;

use crate::domain::{
    changes::TaskChange,
    ids::{StepId, TaskId},
    import::ImportPlan,
    size::StepSize,
    step::Step,
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
