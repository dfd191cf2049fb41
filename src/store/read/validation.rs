//! Validations. A guide and the conditions elsewhere that read its variables are of one snapshot.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{GuideSource, guide::ReadGuide};
use crate::{
    domain::{
        Error, Result,
        analysis::{Fingerprint, Guide, StopSignal},
        ids::TaskId,
        page::{PAGE_BYTES, PageSize},
        task::TaskFilter,
        validation::{
            Finding, FindingCounts, OtherGuides, OutsideReaders, RULES_VERSION, ValidationOptions,
            ValidationSubject, too_large, validate,
        },
    },
    store::Account,
};

/// A call validates tasks until their costs reach this many steps.
const STEPS_PER_CALL: usize = 2_000;
/// The cost of a task in addition to that of its steps, in steps.
const TASK_COST_STEPS: usize = 20;
/// How many conditions, targets and keys of a task cost as much as a step.
const WEIGHT_PER_STEP: usize = 10;
/// A call validates no further task after this time, so slow guides end a page and not the whole list.
const MAX_PAGE_TIME: Duration = Duration::from_secs(2);
/// How many ids of tasks one statement reads.
const TASKS_AT_ONCE: u32 = 100;

/// The request of a validation.
#[derive(Debug)]
pub struct ValidationCall {
    /// The guide.
    pub source: GuideSource,
    /// The digest of the document, if the guide is one.
    pub document: Option<[u8; 32]>,
    /// Stored tasks that the document replaces.
    pub replaced: BTreeSet<TaskId>,
    /// How it is validated.
    pub options: ValidationOptions,
    /// The options as they were sent, for the fingerprint.
    pub options_bytes: Vec<u8>,
    /// Where the page starts, and the fingerprint that its token has; `None` for the
    /// first page.
    pub after: Option<(usize, Fingerprint)>,
    /// How many findings the page has at most.
    pub size: PageSize,
    /// The fingerprint of an earlier response; may be empty. Only the first page compares it.
    pub known_fingerprint: String,
}

/// A page of the findings of a guide.
#[derive(Debug)]
pub struct ValidationPage {
    /// The findings.
    pub findings: Vec<Finding>,
    /// The index of the first of them.
    pub start: usize,
    /// Whether there are more.
    pub more: bool,
    /// The counts of the whole guide.
    pub counts: FindingCounts,
    /// The fingerprint of the guide.
    pub fingerprint: Fingerprint,
    /// Whether it is the one that the caller sent.
    pub unchanged: bool,
}

/// The request of a list of findings.
#[derive(Debug)]
pub struct FindingsCall {
    /// Which tasks are validated.
    pub filter: TaskFilter,
    /// How they are validated.
    pub options: ValidationOptions,
    /// Where the page starts; `None` for the first page.
    pub after: Option<FindingsCursor>,
    /// How many findings the page has at most.
    pub size: PageSize,
}

/// A point in a list of findings: within those of a task, or after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingsCursor {
    /// The task.
    pub task: TaskId,
    /// How many of its findings were listed; `ALL` if there are no more.
    pub findings: usize,
    /// The id of the last of them. The next page starts after it, wherever it is when the
    /// guide has changed.
    pub last: [u8; 32],
}

impl FindingsCursor {
    /// The number for a task of which all findings were listed.
    const ALL: usize = usize::MAX;

    fn after(task: TaskId) -> Self {
        Self {
            task,
            findings: Self::ALL,
            last: [0; 32],
        }
    }

    fn within(task: TaskId, findings: usize, finding: &Finding) -> Self {
        let mut last = [0; 32];
        for (slot, byte) in last.iter_mut().zip(finding.id().bytes()) {
            *slot = byte;
        }
        Self {
            task,
            findings,
            last,
        }
    }

    /// How many of a task's findings were listed before.
    fn listed(&self, findings: &[Finding]) -> usize {
        let is_last = |finding: &Finding| finding.id().bytes().eq(self.last);
        let last = findings.iter().position(is_last);
        last.map_or(self.findings, |index| index + 1)
    }
}

/// A page of the findings of an account.
#[derive(Debug)]
pub struct FindingsPage {
    /// The findings, each with the cursor after it.
    pub findings: Vec<(Finding, FindingsCursor)>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<FindingsCursor>,
}

impl Account {
    /// Validates a guide.
    pub async fn validate_task(&self, call: ValidationCall) -> Result<ValidationPage> {
        let ValidationCall {
            source,
            document,
            replaced,
            options,
            options_bytes,
            after,
            size,
            known_fingerprint,
        } = call;
        let read = self.read_for_validation(source, replaced, &options).await?;
        let identity = Identity {
            document,
            options_bytes,
            seen: after.map(|(_, seen)| seen),
            known: after.is_none().then_some(known_fingerprint),
        };
        let validated = self.validate(read, Arc::new(options), Some(identity));
        let Validated {
            mut findings,
            counts,
            fingerprint,
            unchanged,
        } = validated.await?;
        let fingerprint =
            fingerprint.ok_or_else(|| Error::Internal("no fingerprint".to_owned()))?;
        let start = after.map_or(0, |(start, _)| start).min(findings.len());
        let mut page = findings.split_off(start);
        let more = page.len() > size.get() as usize;
        page.truncate(size.get() as usize);
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
        let FindingsCall {
            filter,
            options,
            after,
            size,
        } = call;
        let options = Arc::new(options);
        let size = size.get() as usize;
        let mut page = FindingsPage {
            findings: Vec::new(),
            next: None,
        };
        let mut cost = 0;
        let started = Instant::now();
        let mut last = after.map(|cursor| cursor.task);
        // The task in which the previous page ended before the last finding.
        let resumed = after.filter(|cursor| cursor.findings != FindingsCursor::ALL);
        let mut tasks: Vec<TaskId> = resumed.iter().map(|cursor| cursor.task).collect();
        let mut bytes = 0;
        let mut more = true;
        loop {
            for task in tasks {
                // Without a task there is no cursor to go on from.
                let is_late = page.next.is_some() && started.elapsed() >= MAX_PAGE_TIME;
                let is_full = page.findings.len() >= size || bytes >= PAGE_BYTES;
                if cost >= STEPS_PER_CALL || is_full || is_late {
                    return Ok(page);
                }
                let listed = resumed.filter(|cursor| cursor.task == task);
                let found = match self.findings_of(task, &options).await {
                    // The page is sent, and the next one is retried.
                    Err(Error::Overloaded) if page.next.is_some() => return Ok(page),
                    found => found?,
                };
                cost += found.cost + TASK_COST_STEPS;
                let start = listed.map_or(0, |cursor| cursor.listed(&found.findings));
                let rest = found.findings.into_iter().enumerate().skip(start);
                let mut rest = rest.peekable();
                let room = size - page.findings.len();
                let taken = rest.by_ref().take(room).map(|(index, finding)| {
                    bytes += finding.bytes();
                    let after = FindingsCursor::within(task, index + 1, &finding);
                    (finding, after)
                });
                page.findings.extend(taken);
                page.next = Some(FindingsCursor::after(task));
                if rest.peek().is_some() {
                    page.next = page.findings.last().map(|(_, cursor)| *cursor);
                    return Ok(page);
                }
                last = Some(task);
            }
            if !more {
                page.next = None;
                return Ok(page);
            }
            tasks = self.list_task_ids(&filter, last, TASKS_AT_ONCE).await?;
            more = tasks.len() == TASKS_AT_ONCE as usize;
        }
    }

    /// The findings of one task of a list; none if it was deleted.
    async fn findings_of(
        &self,
        task: TaskId,
        options: &Arc<ValidationOptions>,
    ) -> Result<TaskFindings> {
        let source = GuideSource::Stored(task);
        let read = self
            .read_for_validation(source, BTreeSet::new(), options)
            .await;
        let read = match read {
            Ok(read) => read,
            Err(Error::TaskNotFound(_)) => {
                return Ok(TaskFindings {
                    findings: Vec::new(),
                    cost: 0,
                });
            }
            Err(Error::TooLarge { limit, .. }) => {
                return Ok(TaskFindings {
                    findings: too_large(task, limit, options).into_iter().collect(),
                    cost: STEPS_PER_CALL,
                });
            }
            Err(error) => return Err(error),
        };
        let cost = read.step_count().max(read.weight() / WEIGHT_PER_STEP);
        let validated = self.validate(read, Arc::clone(options), None).await?;
        Ok(TaskFindings {
            findings: validated.findings,
            cost,
        })
    }

    async fn read_for_validation(
        &self,
        source: GuideSource,
        replaced: BTreeSet<TaskId>,
        options: &ValidationOptions,
    ) -> Result<ReadGuide> {
        let account = self.clone();
        let known = options.known_variables.clone();
        Self::run_to_end(async move {
            let snapshot = account.begin_snapshot().await?;
            let source = Arc::new(source);
            let read = account.read_guide(snapshot.scope(), &source, Some(replaced), &known);
            Ok(read.await?)
        })
        .await
    }

    /// Validates a guide that was read. A heavy one is validated on a thread of its own.
    /// In a list, guides have no identity.
    async fn validate(
        &self,
        read: ReadGuide,
        options: Arc<ValidationOptions>,
        identity: Option<Identity>,
    ) -> Result<Validated> {
        let weight = read.weight();
        let compiled = self
            .analysis_threads()
            .run_once(weight, |stop| read.finish(stop));
        let (guide, readers, memory) = compiled.await?;
        let validate = move |stop: StopSignal<'_>| {
            let _held = &memory;
            let mut validated = Validated::default();
            if let Some(identity) = &identity {
                let fingerprint = identity.fingerprint(&guide, &readers);
                if let Err(error) = fingerprint.check_page(identity.seen) {
                    return Some(Err(error));
                }
                validated.fingerprint = Some(fingerprint);
                validated.unchanged = identity.known.as_ref() == Some(&fingerprint.to_string());
                if validated.unchanged {
                    return Some(Ok(validated));
                }
            }
            let (findings, counts) = validate(ValidationSubject {
                guide: &guide,
                readers: &readers,
                options: &options,
                other_guides: OtherGuides::Read,
                stop,
            })?;
            Some(Ok(Validated {
                findings,
                counts,
                ..validated
            }))
        };
        self.analysis_threads().run(weight, validate).await?
    }
}

/// What the fingerprint of a guide is made of and compared with, in addition to the guide.
struct Identity {
    /// The digest of the document, if the guide is one.
    document: Option<[u8; 32]>,
    options_bytes: Vec<u8>,
    /// The fingerprint that the page's token has.
    seen: Option<Fingerprint>,
    /// The fingerprint of an earlier response, on the first page.
    known: Option<String>,
}

impl Identity {
    /// Identifies the guide, what reads its variables, the options and the rules.
    fn fingerprint(
        &self,
        guide: &Guide,
        readers: &BTreeMap<String, OutsideReaders>,
    ) -> Fingerprint {
        let guide = Fingerprint::of(guide, self.document);
        let readers = format!("{readers:?}");
        validation_fingerprint(guide, RULES_VERSION, &self.options_bytes, &readers)
    }
}

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

/// The findings of a guide.
#[derive(Default)]
struct Validated {
    findings: Vec<Finding>,
    counts: FindingCounts,
    fingerprint: Option<Fingerprint>,
    /// Whether the fingerprint is the one that the caller sent. Then there are no findings.
    unchanged: bool,
}

/// The findings of one task of a list.
struct TaskFindings {
    findings: Vec<Finding>,
    /// The cost of its guide, in steps.
    cost: usize,
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
