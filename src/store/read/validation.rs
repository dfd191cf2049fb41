//! Validations. A guide and the conditions elsewhere that read its variables are of one snapshot.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{GuideSource, guide::ReadGuide};
use crate::{
    call_context::Permit,
    domain::{
        Error, Missing, Result,
        analysis::{Criterion, Fingerprint, Guide, Outside, StopSignal},
        ids::TaskId,
        page::{PAGE_BYTES, PageSize},
        task::TaskFilter,
        validation::{
            Finding, FindingCounts, OtherGuides, RULES_VERSION, ValidationOptions,
            ValidationSubject, too_large, validate,
        },
    },
    store::Account,
};

/// A call validates tasks until their costs reach this many steps.
const STEPS_PER_CALL: usize = 2_000;
/// The cost of a task in addition to the cost of its steps, in steps.
const TASK_COST_STEPS: usize = 20;
/// How many conditions, targets and keys of a task cost as much as a step.
const WEIGHT_PER_STEP: usize = 10;
/// A call validates no further task after this time, so slow guides end a page and not the whole list.
const MAX_PAGE_TIME: Duration = Duration::from_secs(2);
/// The maximum number of tasks that a call validates.
const MAX_TASKS: u32 = (STEPS_PER_CALL / TASK_COST_STEPS) as u32;

#[derive(Debug)]
pub struct ValidationCall {
    pub source: GuideSource,
    /// The digest of the document, if the guide is one.
    pub document: Option<[u8; 32]>,
    /// Stored tasks that the document replaces.
    pub replaced: BTreeSet<TaskId>,
    pub options: ValidationOptions,
    /// The options as they were sent, for the fingerprint.
    pub options_bytes: Vec<u8>,
    /// Where the page starts, and the fingerprint that its token has; `None` for the
    /// first page.
    pub after: Option<(usize, Fingerprint)>,
    pub size: PageSize,
    /// The fingerprint of an earlier response; may be empty. Only the first page compares it.
    pub known_fingerprint: String,
}

/// A page of the findings of a guide.
#[derive(Debug)]
pub struct ValidationPage {
    pub findings: Vec<Finding>,
    /// The index of the first of them.
    pub start: usize,
    pub more: bool,
    /// The counts of the whole guide.
    pub counts: FindingCounts,
    pub fingerprint: Fingerprint,
    /// Whether it is the fingerprint that the caller sent.
    pub unchanged: bool,
}

#[derive(Debug)]
pub struct FindingsCall {
    pub filter: TaskFilter,
    pub options: ValidationOptions,
    pub after: Option<FindingsCursor>,
    pub size: PageSize,
}

/// A point in a list of findings: within the findings of a task, or after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingsCursor {
    pub task: TaskId,
    /// How many of its findings were listed, and the id of the last one. The next page starts after
    /// that finding, wherever it is if the guide has changed. `None` if there are no more.
    pub listed: Option<(usize, String)>,
}

#[derive(Debug, Default)]
pub struct FindingsPage {
    /// The findings, each with the cursor after it.
    pub findings: Vec<(Finding, FindingsCursor)>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<FindingsCursor>,
}

impl Account {
    pub async fn validate_task(&self, call: ValidationCall) -> Result<ValidationPage> {
        let options = call.options;
        let (start, seen) = call.after.unzip();
        let read = self.read_for_validation(&call.source, &call.replaced, &options);
        let read = read.await?;
        let weight = read.weight;
        let (document, options_bytes) = (call.document, call.options_bytes);
        let compile = move |stop: StopSignal<'_>| {
            let subject = read.finish(stop)?;
            let (guide, readers, _) = &subject;
            let guide_fingerprint = Fingerprint::new(guide, document);
            let reader_text = format!("{readers:?}");
            let fingerprint = validation_fingerprint(
                guide_fingerprint,
                RULES_VERSION,
                &options_bytes,
                &reader_text,
            );
            Some((subject, fingerprint))
        };
        let known = call.known_fingerprint;
        let find = move |(subject, fingerprint): &(CompiledGuide, _), stop: StopSignal<'_>| {
            let fingerprint: Fingerprint = *fingerprint;
            if let Err(changed) = fingerprint.check_page(seen) {
                return Some(Err(changed));
            }
            let unchanged = seen.is_none() && known == fingerprint.to_string();
            let found = if unchanged {
                Default::default()
            } else {
                validate_guide(subject, &options, stop)?
            };
            Some(Ok((found, fingerprint, unchanged)))
        };
        let threads = self.analysis_threads();
        let found = threads.run(weight, compile, find).await?;
        let ((mut findings, counts), fingerprint, unchanged) = found?;
        let start = start.unwrap_or_default().min(findings.len());
        let mut page = findings.split_off(start);
        let more = page.len() > call.size.get() as usize;
        page.truncate(call.size.get() as usize);
        Ok(ValidationPage {
            findings: page,
            start,
            more,
            counts,
            fingerprint,
            unchanged,
        })
    }

    /// Lists the findings of the account's tasks.
    pub async fn list_findings(&self, call: FindingsCall) -> Result<FindingsPage> {
        let options = Arc::new(call.options);
        let size = call.size.get() as usize;
        let started = Instant::now();
        let (mut cost, mut bytes) = (0, 0);
        let last = call.after.as_ref().map(|cursor| cursor.task);
        // The task in which the previous page ended before the last finding.
        let resumed = call.after.filter(|cursor| cursor.listed.is_some());
        let others = self.list_task_ids(&call.filter, last, MAX_TASKS + 1);
        let resumed_task = resumed.as_ref().map(|cursor| cursor.task);
        let mut page = FindingsPage::default();
        for task in resumed_task.into_iter().chain(others.await?) {
            // Without a task, there is no cursor to continue from.
            let is_late = page.next.is_some() && started.elapsed() >= MAX_PAGE_TIME;
            let is_full = page.findings.len() >= size || bytes >= PAGE_BYTES;
            if cost >= STEPS_PER_CALL || is_full || is_late {
                return Ok(page);
            }
            let (findings, task_cost) = match self.find_task_findings(task, &options).await {
                // The page is sent, and the next one is retried.
                Err(Error::Overloaded(_)) if page.next.is_some() => return Ok(page),
                found => found?,
            };
            cost += task_cost + TASK_COST_STEPS;
            let resumed = resumed.as_ref().filter(|cursor| cursor.task == task);
            let start = resumed.map_or(0, |cursor| cursor.count_listed(&findings));
            let count = findings.len();
            let room = size - page.findings.len();
            let rest = findings.into_iter().enumerate().skip(start).take(room);
            page.findings.extend(rest.map(|(index, finding)| {
                bytes += finding.bytes();
                let listed = Some((index + 1, finding.id()));
                (finding, FindingsCursor { task, listed })
            }));
            if count > start + room {
                page.next = page.findings.last().map(|(_, cursor)| cursor.clone());
                return Ok(page);
            }
            page.next = Some(FindingsCursor { task, listed: None });
        }
        page.next = None;
        Ok(page)
    }

    /// The findings of one task of a list, and the cost of its guide in steps. A deleted task has none.
    async fn find_task_findings(
        &self,
        task: TaskId,
        options: &Arc<ValidationOptions>,
    ) -> Result<(Vec<Finding>, usize)> {
        let (source, replaced) = (GuideSource::Stored(task), BTreeSet::new());
        let read = self.read_for_validation(&source, &replaced, options);
        let read = match read.await {
            Ok(read) => read,
            Err(Error::NotFound {
                missing: Missing::Task(_),
                ..
            }) => return Ok((Vec::new(), 0)),
            Err(Error::TooLarge { limit, .. }) => {
                let findings = too_large(task, limit, options);
                return Ok((findings.into_iter().collect(), STEPS_PER_CALL));
            }
            Err(error) => return Err(error),
        };
        let weight = read.weight;
        let cost = read.step_count().max(weight / WEIGHT_PER_STEP);
        let options = Arc::clone(options);
        let find = move |subject: &CompiledGuide, stop: StopSignal<'_>| {
            validate_guide(subject, &options, stop)
        };
        let threads = self.analysis_threads();
        let compile = |stop: StopSignal<'_>| read.finish(stop);
        let (findings, _) = threads.run(weight, compile, find).await?;
        Ok((findings, cost))
    }

    async fn read_for_validation(
        &self,
        source: &GuideSource,
        replaced: &BTreeSet<TaskId>,
        options: &ValidationOptions,
    ) -> Result<ReadGuide> {
        let (snapshot, known) = (self.begin_snapshot().await?, &options.known_variables);
        let read = self.read_guide(snapshot.scope(), source, Some(replaced), known);
        Ok(read.await?)
    }
}

fn validate_guide(
    (guide, readers, _): &CompiledGuide,
    options: &ValidationOptions,
    stop: StopSignal<'_>,
) -> Option<(Vec<Finding>, FindingCounts)> {
    validate(ValidationSubject {
        guide,
        readers,
        options,
        other_guides: OtherGuides::Read,
        stop,
    })
}

impl FindingsCursor {
    /// How many of the task's findings were listed before.
    fn count_listed(&self, findings: &[Finding]) -> usize {
        let Some((count, last)) = &self.listed else {
            return findings.len();
        };
        let last = findings.iter().position(|finding| finding.id() == *last);
        last.map_or(*count, |index| index + 1)
    }
}

/// A guide, the conditions elsewhere that read its variables, and the memory of both.
type CompiledGuide = (Guide, BTreeMap<String, Outside<Criterion>>, Permit);

/// Combines all that findings follow from.
fn validation_fingerprint(
    guide: Fingerprint,
    rules: u32,
    options: &[u8],
    readers: &str,
) -> Fingerprint {
    let rules = guide.with(&rules.to_be_bytes());
    rules.with(options).with(readers.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_changes_with_guide_rules_options_and_readers() {
        let guide = Fingerprint([0; 16]);
        let first = validation_fingerprint(guide, 1, b"options", "readers");
        for other in [
            validation_fingerprint(Fingerprint([1; 16]), 1, b"options", "readers"),
            validation_fingerprint(guide, 2, b"options", "readers"),
            validation_fingerprint(guide, 1, b"others", "readers"),
            validation_fingerprint(guide, 1, b"options", "others"),
        ] {
            assert_ne!(first, other);
        }
    }
}
