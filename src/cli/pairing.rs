//! Finds the steps of one document in another, only by guid or external id.

use std::collections::BTreeMap;

use super::{CliError, out::sanitize, wording};
use crate::{
    messages::managed_documents::{managed_document, managed_documents, values_mut},
    proto::v1::{Step, StepTranslation, StepType, TaskDocument, TaskType},
};

/// The steps of a guide by their guids and external ids.
pub(super) struct KnownSteps<'g> {
    by_guid: BTreeMap<String, &'g Step>,
    by_external_id: BTreeMap<&'g str, &'g Step>,
}

impl<'g> KnownSteps<'g> {
    pub fn new(guide: &'g TaskDocument) -> Self {
        let by_guid = guide.steps.iter();
        let by_external_id = guide.steps.iter().filter(|it| it.external_id.is_some());
        Self {
            by_guid: by_guid
                .map(|step| (step.guid.to_ascii_lowercase(), step))
                .collect(),
            by_external_id: by_external_id
                .map(|step| (step.external_id(), step))
                .collect(),
        }
    }

    pub fn get(&self, step: &Step) -> Option<&'g Step> {
        let by_guid = self.by_guid.get(&step.guid.to_ascii_lowercase());
        // Guids of another account are external ids here.
        let external_id = match step.external_id() {
            "" => step.guid.as_str(),
            id => id,
        };
        let by_external_id = || self.by_external_id.get(external_id);
        by_guid.or_else(by_external_id).copied()
    }
}

/// The steps of a document with their stored counterparts. New steps have other ids but the same
/// order. Between them may be wiring steps that the document does not list.
pub(super) fn pairs<'a>(
    document: &'a TaskDocument,
    after: &'a TaskDocument,
) -> impl Iterator<Item = (&'a Step, Option<&'a Step>)> {
    let steps = KnownSteps::new(after);
    let known: Vec<Option<&Step>> = document.steps.iter().map(|it| steps.get(it)).collect();
    let taken: Vec<&str> = known.iter().flatten().map(|it| it.guid.as_str()).collect();
    let mut new_steps = after
        .steps
        .iter()
        .filter(|step| !taken.contains(&step.guid.as_str()))
        .collect::<Vec<_>>()
        .into_iter();
    let mut next_new = move |sent: &Step| {
        new_steps
            .find(|step| step.r#type == sent.r#type && step.link.is_empty() == sent.link.is_empty())
    };
    let steps = document.steps.iter().zip(known);
    steps.map(move |(sent, known)| (sent, known.or_else(|| next_new(sent))))
}

/// Fails if a document differs from the stored guide in fields that never change, with a line for
/// each field.
pub(super) fn refuse_fixed_fields(
    document: &TaskDocument,
    stored: &TaskDocument,
) -> Result<(), CliError> {
    let fixed = fixed_fields(document, stored);
    match fixed.is_empty() {
        true => Ok(()),
        false => Err(CliError::Failed(fixed.join("\n  "))),
    }
}

fn fixed_fields(document: &TaskDocument, stored: &TaskDocument) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(sent), Some(stored)) = (&document.task, &stored.task) {
        let product = sent.product_id.filter(|it| stored.product_id != Some(*it));
        let is_managed = stored.r#type() == TaskType::Linked;
        if product.is_some() && !is_managed {
            let kept = stored.product_id();
            lines.push(format!(
                "task.product_id: it stays {kept}, because a product never changes"
            ));
        }
        if sent.r#type.is_some() && sent.r#type() != stored.r#type() {
            let kept = stored.r#type().as_str_name();
            lines.push(format!(
                "task.type: it stays {kept}, because a type never changes"
            ));
        }
    }
    let known = KnownSteps::new(stored);
    for (index, sent) in document.steps.iter().enumerate() {
        let Some(stored) = known.get(sent) else {
            continue;
        };
        let path = format!("steps[{index}]");
        let title = sanitize(&stored.title);
        if sent.r#type() != StepType::Unspecified && sent.r#type != stored.r#type {
            let kept = wording::kind(stored.r#type());
            lines.push(format!(
                "{path}.type: step {} \"{title}\" stays {kept}, because a type never changes; to \
                 create another step, leave out the guid and use a new external id",
                index + 1
            ));
        }
        if sent.product_id.is_some() && sent.product_id != stored.product_id {
            let kept = stored.product_id();
            lines.push(format!(
                "{path}.product_id: step {} \"{title}\" stays in product {kept}, because a product \
                 never changes",
                index + 1
            ));
        }
        for (value, sent) in managed_documents(sent) {
            if let Some(stored) = managed_document(stored, &value.key) {
                let below = fixed_fields(sent, stored).into_iter();
                lines.extend(below.map(|line| format!("{path}, answer {}: {line}", value.key)));
            }
        }
    }
    lines
}

/// Which locks of translations a document may leave as they are.
#[derive(Clone, Copy)]
pub(super) struct Locking {
    /// Whether unlocked translations stay unlocked. Otherwise, those with new texts are locked, so that
    /// automatic translation does not replace them.
    pub keep_unlocked: bool,
    /// Whether the document may unlock translations. `edit` shows the current locks, but a file may be
    /// from the time before a translation was locked.
    pub may_unlock: bool,
}

/// Locks translations that a person has changed. Returns a line for each new lock, and for each lock that
/// the document does not remove.
pub(super) fn lock_changed(
    document: &mut TaskDocument,
    stored: &TaskDocument,
    locking: Locking,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut lock = |language: &str, was_locked: bool, locked: &mut Option<bool>, of: &str| {
        let is_as_sent = match was_locked {
            true => locking.may_unlock,
            false => locking.keep_unlocked,
        };
        if is_as_sent {
            locked.get_or_insert(was_locked);
            return;
        }
        match (was_locked, *locked) {
            (false, _) => lines.push(format!("locks the translation {language} of {of}")),
            (true, Some(false)) => lines.push(format!(
                "keeps the lock of the translation {language} of {of}, which only `edit` removes"
            )),
            (true, _) => {}
        }
        *locked = Some(true);
    };
    if let (Some(task), Some(known)) = (&mut document.task, &stored.task) {
        for (language, sent) in &mut task.translations {
            if let Some(before) = known.translations.get(language)
                && (before.locked() || before.name != sent.name)
            {
                lock(language, before.locked(), &mut sent.locked, "the task");
            }
        }
    }
    let known = KnownSteps::new(stored);
    let mut below = Vec::new();
    for (index, step) in document.steps.iter_mut().enumerate() {
        let Some(stored) = known.get(step) else {
            continue;
        };
        for (language, sent) in &mut step.translations {
            if let Some(before) = stored.translations.get(language)
                && (before.locked() || has_other_texts(before, sent))
            {
                let title = sanitize(&stored.title);
                let of = format!("step {} \"{title}\"", index + 1);
                lock(language, before.locked(), &mut sent.locked, &of);
            }
        }
        for value in values_mut(step) {
            if let Some(sent) = &mut value.task_json
                && let Some(stored) = managed_document(stored, &value.key)
            {
                below.extend(lock_changed(sent, stored, locking));
            }
        }
    }
    lines.extend(below);
    lines
}

fn has_other_texts(one: &StepTranslation, other: &StepTranslation) -> bool {
    let texts = |it: &StepTranslation| StepTranslation {
        locked: None,
        ..it.clone()
    };
    texts(one) != texts(other)
}
