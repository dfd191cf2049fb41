//! Validations: one transaction reads a guide, and the conditions elsewhere that read its
//! variables.

use std::collections::{BTreeMap, BTreeSet};

use tracing::Instrument;

use super::{GuideSource, run_to_end};
use crate::{
    domain::{
        Error, Result,
        analysis::{Fingerprint, Guide},
        ids::TaskId,
        page::{Page, PageSize},
        task::TaskFilter,
        validation::{
            Finding, FindingCounts, OtherGuides, OutsideReaders, RULES_VERSION, ValidationOptions,
            ValidationSubject, validate,
        },
    },
    store::{Account, connection::Purpose, error::StoreError},
};

/// A call validates tasks until their costs reach this many steps.
const STEPS_PER_CALL: usize = 2_000;
/// The cost of a task in addition to that of its steps, in steps.
const TASK_COST_STEPS: usize = 20;
/// Guides up to this many steps and conditions are validated without a thread for blocking
/// work, which would cost more than the rules.
const MAX_INLINE_GUIDE_SIZE: usize = 300;
/// How many tasks of a list are read at once.
const TASKS_AT_ONCE: i32 = 100;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A guide, and the conditions elsewhere that read its variables.
struct ReadGuide {
    guide: Guide,
    readers: BTreeMap<String, OutsideReaders>,
}

impl Account {
    /// Validates a guide. It is read from the primary, in at most six statements.
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
        let fingerprint = read.fingerprint(document, &options_bytes);
        fingerprint.check_page(after.map(|(_, seen)| seen))?;
        let unchanged = after.is_none() && known_fingerprint == fingerprint.to_string();
        let (mut findings, counts) = if unchanged {
            (Vec::new(), FindingCounts::default())
        } else {
            read.validate(options).await?.0
        };
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
            mut options,
            after,
            size,
        } = call;
        let size = size.get() as usize;
        let mut page = FindingsPage {
            findings: Vec::new(),
            next: None,
        };
        let mut cost = 0;
        let mut last = after.map(|cursor| cursor.task);
        // The task in which the previous page ended before the last finding.
        let resumed = after.filter(|cursor| cursor.findings != FindingsCursor::ALL);
        let mut tasks: Vec<TaskId> = resumed.iter().map(|cursor| cursor.task).collect();
        let mut more = true;
        loop {
            for task in tasks {
                if cost >= STEPS_PER_CALL || page.findings.len() >= size {
                    return Ok(page);
                }
                let listed = resumed.filter(|cursor| cursor.task == task);
                let found = self.findings_of(task, options).await?;
                options = found.options;
                cost += found.steps + TASK_COST_STEPS;
                let start = listed.map_or(0, |cursor| cursor.listed(&found.findings));
                let rest = found.findings.into_iter().enumerate().skip(start);
                let mut rest = rest.peekable();
                let room = size - page.findings.len();
                let taken = rest.by_ref().take(room).map(|(index, finding)| {
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
            let at_once = PageSize::new(TASKS_AT_ONCE);
            let at_once = at_once.ok_or_else(|| Error::Internal("no page size".to_owned()))?;
            let listed = self.list_tasks(filter.clone(), last, at_once).await?;
            let Page {
                items,
                more: more_tasks,
            } = listed;
            more = more_tasks;
            tasks = items.into_iter().map(|task| task.guid).collect();
        }
    }

    /// The findings of one task of a list; none if it was deleted or is too large to read.
    async fn findings_of(&self, task: TaskId, options: ValidationOptions) -> Result<TaskFindings> {
        let read = self
            .read_for_validation(GuideSource::Stored(task), BTreeSet::new(), &options)
            .await;
        let read = match read {
            Ok(read) => read,
            Err(Error::TaskNotFound(_) | Error::TooLarge { .. }) => {
                return Ok(TaskFindings {
                    findings: Vec::new(),
                    steps: 0,
                    options,
                });
            }
            Err(error) => return Err(error),
        };
        let steps = read.guide.tasks.iter();
        let steps = steps
            .map(|task| task.steps.as_ref().map_or(0, Vec::len))
            .sum();
        let ((findings, _), options) = read.validate(options).await?;
        Ok(TaskFindings {
            findings,
            steps,
            options,
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
        run_to_end(async move {
            let db = account.reader().begin(Purpose::Snapshot).await;
            let db = db.map_err(StoreError::from)?;
            let read = account
                .read_guide_and_readers(&db, &source, replaced, &known)
                .await;
            let (guide, readers) = read?;
            Ok(ReadGuide { guide, readers })
        })
        .await
    }
}

/// The findings of one task of a list.
struct TaskFindings {
    findings: Vec<Finding>,
    /// How many steps its guide has.
    steps: usize,
    options: ValidationOptions,
}

type Validated = ((Vec<Finding>, FindingCounts), ValidationOptions);

impl ReadGuide {
    /// Identifies the guide, what reads its variables, the options and the rules.
    fn fingerprint(&self, document: Option<[u8; 32]>, options: &[u8]) -> Fingerprint {
        let guide = Fingerprint::of(&self.guide, document);
        let readers = format!("{:?}", self.readers);
        let rules = guide.with(&RULES_VERSION.to_be_bytes());
        rules.with(options).with(readers.as_bytes())
    }

    /// Validates the guide, a large one on a thread for blocking work. Returns the options,
    /// too.
    async fn validate(self, options: ValidationOptions) -> Result<Validated> {
        let is_small = self.guide.size <= MAX_INLINE_GUIDE_SIZE;
        let validate = move || {
            let subject = ValidationSubject {
                guide: &self.guide,
                readers: &self.readers,
                options: &options,
                other_guides: OtherGuides::Read,
            };
            let validated = validate(subject);
            (validated, options)
        };
        if is_small {
            return Ok(validate());
        }
        let span = tracing::Span::current();
        let work = tokio::task::spawn_blocking(move || span.in_scope(validate));
        let validated = work.in_current_span().await;
        validated.map_err(|_| Error::Internal("a validation panicked".to_owned()))
    }
}
