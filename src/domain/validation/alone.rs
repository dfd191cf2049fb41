//! Validates a document without the account that it is for. The document is taken to be
//! the only guide that sets its variables, unless all guides are given, and subtasks of the account
//! to be visible and to have an outcome.

use std::collections::BTreeMap;

use crate::domain::{
    Error, Result,
    analysis::{
        Budget, Guide, GuideDraft, NEVER, SourceStep, SourceTask, SourceTasks, of_document,
        parse_account_name,
    },
    decide::WriteContext,
    ids::TaskId,
    import::{Absent, Document, ImportContext, plan},
    step::{Cost, NewStep, ReferencedTask, Step, StepContent, StepKind, StepType, SubtaskRef},
    task::{NewTask, Task, TaskContent},
    text::Name,
};

use super::{
    Finding, FindingCounts, OneOfAllGuides, OtherGuides, Rule, RuleSetting, ValidationOptions,
    ValidationSubject, suggestion::closest, validate,
};

#[derive(Debug)]
pub struct FindingsAlone {
    pub findings: Vec<Finding>,
    pub counts: FindingCounts,
    /// Variables that look misspelt, but that another guide of the account may set.
    pub unchecked: Vec<UncheckedVariable>,
}

/// A variable that a condition reads, and that only another guide can set.
#[derive(Debug, PartialEq, Eq)]
pub struct UncheckedVariable {
    pub name: String,
    /// The variable of the guide that may be meant.
    pub suggestion: String,
}

/// The findings of a document by the rules that do not need the account. A document that an
/// import would refuse is refused with the same violations. With `among`, it is one of these guides,
/// and the account has no others.
pub fn validate_alone(
    document: Document,
    mut options: ValidationOptions,
    among: Option<OneOfAllGuides<'_>>,
    write: &WriteContext,
) -> Result<FindingsAlone> {
    if let Some(among) = among {
        among.check_subtasks(&document)?;
    }
    let subtasks = document.subtask_targets().into_iter();
    let stand_ins = subtasks.filter_map(|subtask| {
        let translations = among.and_then(|among| among.find_translations(&subtask));
        let content = TaskContent {
            translations: translations.cloned().unwrap_or_default(),
            external_id: subtask.external_id.clone(),
            ..TaskContent::default()
        };
        let task = subtask.guid.unwrap_or_else(|| TaskId((write.new_id)()));
        let subtask = SubtaskRef {
            task,
            ..subtask.unresolved()
        };
        Some((task, stand_in(subtask, content, write)?))
    });
    let mut stand_ins: SourceTasks = stand_ins.collect();
    let referenced = stand_ins.iter();
    let referenced: BTreeMap<TaskId, ReferencedTask> = referenced
        .map(|(task, (source, _))| (*task, ReferencedTask::to(&source.task)))
        .collect();
    let context = ImportContext::for_new_guide(write, &referenced);
    let (root, mut tasks) = of_document(plan(&document, Absent::DEFAULT, context)?);
    tasks.append(&mut stand_ins);
    let draft = GuideDraft::new(root, tasks, &options.known_variables);
    let draft = draft.ok_or_else(|| Error::task_not_found(root, "document.task.guid"))?;
    let outside = among.iter().flat_map(|among| {
        let names = draft.account_variables().map(|variable| &variable.name);
        names.map(|name| (name.clone(), among.setters_elsewhere(name)))
    });
    let outside = outside.collect();
    let guide = draft.finish(outside, NEVER).ok_or_else(stopped)?;
    for rule in Rule::ALL.iter().filter(|rule| rule.needs_account()) {
        options.rules.insert(*rule, RuleSetting::Off);
    }
    let validated = validate(ValidationSubject {
        guide: &guide,
        readers: &BTreeMap::new(),
        options: &options,
        other_guides: match among {
            Some(_) => OtherGuides::Read,
            None => OtherGuides::Unknown,
        },
        stop: NEVER,
    });
    let (findings, counts) = validated.ok_or_else(stopped)?;
    Ok(FindingsAlone {
        findings,
        counts,
        unchecked: match among {
            Some(_) => Vec::new(),
            None => unchecked_variables(&guide, &options),
        },
    })
}

fn stopped() -> Error {
    Error::Internal("a validation stopped".to_owned())
}

/// The variables that only another guide may set, if their names are close to a known one.
fn unchecked_variables(guide: &Guide, options: &ValidationOptions) -> Vec<UncheckedVariable> {
    let rule = Rule::UnknownVariable;
    if options.severity(rule, rule.text().severity).is_none() {
        return Vec::new();
    }
    let of_account = guide.variables.iter();
    let of_account = of_account.filter(|it| parse_account_name(&it.name).is_some());
    let (unknown, known): (Vec<_>, Vec<_>) = of_account.partition(|it| it.is_unknown());
    let budget = Budget::new(0, NEVER);
    let read = unknown.into_iter().filter(|variable| variable.is_read);
    let unchecked = read.filter_map(|variable| {
        let known = known.iter().map(|known| known.name.as_str());
        Some(UncheckedVariable {
            name: variable.name.clone(),
            suggestion: closest(&variable.name, known, &budget.hints)?.to_owned(),
        })
    });
    unchecked.collect()
}

/// A stand-in for a task of the account: a task that everybody may see, with a solution.
fn stand_in(
    SubtaskRef {
        task: guid,
        product,
    }: SubtaskRef,
    content: TaskContent,
    write: &WriteContext,
) -> Option<(SourceTask, Option<Vec<SourceStep>>)> {
    let new = NewTask {
        name: Name::parse("A task of the account".to_owned()).ok()?,
        product,
        content,
    };
    let task = Task {
        guid,
        ..Task::create(new, None, write)
    };
    let new = NewStep {
        task: guid,
        product,
        title: "A solution".to_owned(),
        kind: StepKind::new(StepType::Solution, Cost::default(), None, None)?,
        content: StepContent::default(),
    };
    Some((task.into(), Some(vec![Step::create(new, write).into()])))
}
