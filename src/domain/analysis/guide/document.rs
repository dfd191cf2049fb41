//! The tasks and steps of a document that is not stored, as an import would create them.

use std::collections::BTreeMap;

use crate::domain::{
    changes::TaskChange,
    ids::{StepId, TaskId},
    import::{ImportPlan, Origin, Origins},
    size::StepSize,
    step::Step,
    task::Task,
};

use super::{SourceStep, SourceTask, SourceTasks, TranslationState};

/// The tasks and steps of a document, from the plan of an import that creates them. They
/// have the ids of the plan.
pub fn of_document(plan: ImportPlan) -> (TaskId, SourceTasks) {
    let ImportPlan {
        changes,
        imported,
        mut origins,
    } = plan;
    let steps = changes.steps.into_iter().map(|change| change.after);
    let mut created: BTreeMap<StepId, Step> = steps.map(|step| (step.guid, *step)).collect();
    let tasks = changes.tasks.into_iter().filter_map(|change| match change {
        TaskChange::Create(task) => Some(*task),
        TaskChange::Update { .. } | TaskChange::Delete { .. } => None,
    });
    let read = tasks.map(|task| {
        let steps = task.steps.iter();
        let steps = steps.filter_map(|step| created.remove(step));
        let steps = steps.map(|step| source_step(step, &mut origins)).collect();
        (task.guid, (source_task(task, &mut origins), Some(steps)))
    });
    (imported.task.guid, read.collect())
}

fn source_task(task: Task, origins: &mut Origins) -> SourceTask {
    let languages = task.content.translations.keys();
    let translations = languages.map(|language| (language.clone(), TranslationState::default()));
    SourceTask {
        translations: translations.collect(),
        origin: Some(
            origins
                .tasks
                .remove(&task.guid)
                .unwrap_or_else(Origin::unlisted),
        ),
        task,
    }
}

fn source_step(step: Step, origins: &mut Origins) -> SourceStep {
    let translations = step.content.translations.iter();
    let translations = translations.map(|(language, translation)| {
        let state = TranslationState {
            has_body: translation.body.is_some(),
            outdated_title: false,
            outdated_rest: false,
        };
        (language.clone(), state)
    });
    SourceStep {
        has_body: step.content.body.is_some(),
        body_bytes: usize::try_from(StepSize::of(&step).bodies).unwrap_or(usize::MAX),
        translations: translations.collect(),
        origin: Some(
            origins
                .steps
                .remove(&step.guid)
                .unwrap_or_else(Origin::unlisted),
        ),
        step,
    }
}
