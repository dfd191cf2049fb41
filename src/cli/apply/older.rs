//! Files with an older state of their guide.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cli::guides,
    client::{CallError, Client},
    messages::{authored::authored, managed_documents::managed_documents_mut},
    proto::v1::{TaskDocument, TaskRevision},
};

/// How many earlier revisions a file is compared with.
const MAX_COMPARED: usize = 100;

/// Whether a file has an earlier state of the guide, but not that of the last run.
pub(super) async fn is_older(
    client: &Client,
    applied: &TaskRevision,
    base: &TaskDocument,
    planned: &TaskDocument,
) -> Result<bool, CallError> {
    if has_same_content(planned, base) {
        return Ok(false);
    }
    let (name, steps) = (guides::name(planned), planned.steps.len());
    let may_be_equal = |it: &&TaskRevision| {
        it.revision < applied.revision
            && it.task_name == name
            && usize::try_from(it.step_count) == Ok(steps)
    };
    let revisions = guides::list_revisions(client, &applied.task).await?;
    for revision in revisions.iter().filter(may_be_equal).take(MAX_COMPARED) {
        let number = revision.revision.to_string();
        match guides::get_revision(client, &applied.task, &number).await {
            Ok((_, document)) if has_same_content(planned, &document) => return Ok(true),
            // It has been deleted meanwhile.
            Err(error) if error.reason != "REVISION_NOT_FOUND" => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}

/// Whether authors have written the same in two guides. Ignores ids, which differ if a step was deleted
/// and created again, and automatic translations.
pub(super) fn has_same_content(one: &TaskDocument, other: &TaskDocument) -> bool {
    let [mut one, mut other] = [one, other].map(|guide| {
        let mut content = authored(guide);
        clear_ids(&mut content);
        content
    });
    drop_automatic(&mut one, &mut other);
    one == other
}

fn clear_ids(guide: &mut TaskDocument) {
    if let Some(task) = &mut guide.task {
        task.guid.clear();
        task.external_id = None;
    }
    for step in &mut guide.steps {
        step.guid.clear();
        step.external_id = None;
        managed_documents_mut(step).for_each(clear_ids);
    }
}

/// Removes automatic translations from two guides, and translations that one of them has locked since.
fn drop_automatic(one: &mut TaskDocument, other: &mut TaskDocument) {
    if let (Some(one), Some(other)) = (&mut one.task, &mut other.task) {
        let translations = [&mut one.translations, &mut other.translations];
        drop_automatic_of(translations, |it| &mut it.locked);
    }
    for (one, other) in one.steps.iter_mut().zip(&mut other.steps) {
        let translations = [&mut one.translations, &mut other.translations];
        drop_automatic_of(translations, |it| &mut it.locked);
        for (one, other) in managed_documents_mut(one).zip(managed_documents_mut(other)) {
            drop_automatic(one, other);
        }
    }
}

fn drop_automatic_of<T: Clone + PartialEq>(
    [one, other]: [&mut BTreeMap<String, T>; 2],
    locked: impl Fn(&mut T) -> &mut Option<bool>,
) {
    let is_automatic = |it: &T| *locked(&mut it.clone()) == Some(false);
    let texts = |it: &T| {
        let mut texts = it.clone();
        *locked(&mut texts) = None;
        texts
    };
    let languages: BTreeSet<String> = one.keys().chain(other.keys()).cloned().collect();
    for language in languages {
        let is_dropped = match (one.get(&language), other.get(&language)) {
            (Some(one), Some(other)) => match (is_automatic(one), is_automatic(other)) {
                (true, true) => true,
                (false, false) => false,
                _ => texts(one) == texts(other),
            },
            (one, other) => one.or(other).is_some_and(is_automatic),
        };
        if is_dropped {
            one.remove(&language);
            other.remove(&language);
        }
    }
}
