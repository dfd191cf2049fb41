//! Laws of the history, over random histories of every write.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*, sample::Index};
use prost::Message;

use crate::{
    api::revisions::exported,
    kit::{
        links::links_are_consistent,
        random_writes::{self, Kind, Write, write},
    },
    prelude::*,
};

const LANGUAGES: [&str; 3] = ["de", "fr", "nl"];

/// One act of a history. An index chooses among what there is.
#[derive(Clone, Debug)]
enum Act {
    /// A write. If it keeps a revision by itself, it is undone and done again.
    Write(Write),
    /// A revision of a task is asked for.
    Keep(Index),
    /// A revision is restored, which is undone if there is a revision for that.
    Restore(Index),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => write().prop_map(Act::Write),
        1 => any::<Index>().prop_map(Act::Keep),
        2 => any::<Index>().prop_map(Act::Restore),
    ]
}

#[apply(property_on_both_databases)]
#[cases(6, (write(), vec(act(), 1..20)))]
async fn laws_hold_after_every_write(client: Client, (first, acts): (Write, Vec<Act>)) {
    // Something to link from.
    let first = Act::Write(first.of_kind(Kind::ImportGuide));
    let mut history = History {
        client: &client,
        kept: Vec::new(),
        states: BTreeMap::new(),
        now: State::of(&client).await,
    };
    for (number, act) in [first].iter().chain(&acts).enumerate() {
        match act {
            Act::Write(write) => {
                random_writes::apply(&client, write, number).await;
                history.undo_write().await;
            }
            Act::Keep(task) => {
                let tasks: Vec<String> = history.now.guides.keys().cloned().collect();
                if !tasks.is_empty() {
                    let task: &String = task.get(&tasks);
                    client.kept_revision(task).await;
                }
                history.advance().await;
            }
            Act::Restore(revision) if !history.kept.is_empty() => {
                let kept = revision.get(&history.kept).clone();
                history.restore(&kept).await;
            }
            Act::Restore(_) => {}
        }
    }
    history.revisions_are_as_they_were().await;
    history.comparisons_find_every_difference().await;
}

/// The translation work by id and language: its state and the digest of the source.
type Work = BTreeMap<(String, String), (i32, String)>;

/// What an account holds.
#[derive(Debug, PartialEq)]
struct State {
    guides: BTreeMap<String, ExportTaskResponse>,
    work: Work,
}

impl State {
    async fn of(client: &Client) -> Self {
        let tasks = client.tasks_with_steps().await;
        links_are_consistent(&tasks);
        let mut guides = BTreeMap::new();
        for (task, _) in tasks {
            guides.insert(task.guid.clone(), exported(client, &task.guid).await);
        }
        let work = client.translation_work(&LANGUAGES).await.into_iter();
        let work = work.map(|it| {
            let state = it.state;
            ((it.guid, it.language), (state, it.source_digest))
        });
        Self {
            guides,
            work: work.collect(),
        }
    }

    fn document(&self, task: &str) -> &TaskDocument {
        let guide = self.guides.get(task).expect("the task");
        guide.document.as_ref().expect("a document")
    }

    /// The translation work of a guide, except for these tasks and steps.
    fn work_of(&self, document: &TaskDocument, but: &BTreeSet<String>) -> Work {
        let mut ids = BTreeSet::new();
        for document in documents_in(document) {
            ids.extend(document.task.iter().map(|task| &task.guid));
            ids.extend(document.steps.iter().map(|step| &step.guid));
        }
        let work = self.work.iter();
        let work = work.filter(|((id, _), _)| ids.contains(id) && !but.contains(id));
        work.map(|(key, work)| (key.clone(), work.clone()))
            .collect()
    }

    /// Asserts that the guide has another state, except for fields that the system sets.
    fn holds(&self, other: &Self) {
        for task in other.guides.keys() {
            assert!(self.guides.contains_key(task), "{task} is gone");
            assert_eq!(honored(self.document(task)), honored(other.document(task)));
        }
        for (key, work) in &other.work {
            assert_eq!(self.work.get(key), Some(work), "{key:?}");
        }
    }
}

/// A revision, and the guide as it was when the revision was made.
#[derive(Clone)]
struct Kept {
    task: String,
    number: i64,
    document: TaskDocument,
    work: Work,
}

struct History<'a> {
    client: &'a Client,
    kept: Vec<Kept>,
    /// Every guide that there was, by its etag.
    states: BTreeMap<String, TaskDocument>,
    now: State,
}

impl History<'_> {
    /// Reads the state after a write. Asserts that no two guides have one etag, and that each new
    /// revision is the guide before the write or, if it was asked for or published, after it.
    /// Returns the state before, and the new revisions that the write can be undone by.
    async fn advance(&mut self) -> (State, Vec<(String, i64)>) {
        let before = std::mem::replace(&mut self.now, State::of(self.client).await);
        for (task, guide) in &self.now.guides {
            let document = self.now.document(task);
            let known = self.states.entry(guide.guide_etag.clone());
            assert_eq!(known.or_insert_with(|| document.clone()), document);
        }
        let mut by_themselves = Vec::new();
        let tasks: BTreeSet<&String> = before.guides.keys().chain(self.now.guides.keys()).collect();
        for task in tasks {
            let revisions = self.client.all_revisions(task).await;
            let is_new = |revision: &&TaskRevision| {
                let mut kept = self.kept.iter();
                !kept.any(|kept| kept.task == *task && kept.number == revision.revision)
            };
            let new: Vec<&TaskRevision> = revisions.iter().filter(is_new).collect();
            assert!(new.len() <= 1, "{new:?}");
            for revision in new {
                let state = match revision.cause() {
                    RevisionCause::Requested | RevisionCause::Published => &self.now,
                    _ => {
                        by_themselves.push((task.clone(), revision.revision));
                        &before
                    }
                };
                let guide = &state.guides[task];
                assert_eq!(revision.guide_etag, guide.guide_etag);
                let document = state.document(task).clone();
                self.kept.push(Kept {
                    task: task.clone(),
                    number: revision.revision,
                    work: state.work_of(&document, &BTreeSet::new()),
                    document,
                });
            }
        }
        (before, by_themselves)
    }

    /// Undoes the write that was made last, if it has kept a revision, and does it again.
    async fn undo_write(&mut self) {
        let (before, revisions) = self.advance().await;
        for (task, number) in revisions {
            let after = self.now.guides.get(&task).cloned();
            let undone = self.client.restored(&task, number).await;
            assert!(undone.replaced_ids.is_empty(), "{undone:?}");
            self.advance().await;
            self.now.holds(&before);
            assert_eq!(undone.previous_revision == 0, after.is_none(), "{undone:?}");
            if let Some(after) = after {
                let again = self.client.restored(&task, undone.previous_revision).await;
                assert!(again.replaced_ids.is_empty(), "{again:?}");
                self.advance().await;
                let expected = honored(after.document.as_ref().expect("a document"));
                assert_eq!(honored(self.now.document(&task)), expected);
            }
        }
    }

    /// Restores a revision, and undoes that.
    async fn restore(&mut self, kept: &Kept) {
        let Kept { task, number, .. } = kept;
        let request = restore_of(task, number);
        let mut answer = self.restore_by(request.clone()).await;
        if answer.is_err() {
            let skip_missing_subtasks = true;
            answer = self
                .restore_by(request.with(|it| it.skip_missing_subtasks = skip_missing_subtasks))
                .await;
        }
        let Ok(restored) = answer else { return };
        let (before, _) = self.advance().await;
        self.is_restored(kept, &restored).await;
        if restored.outcome() == ImportOutcome::Unchanged {
            assert_eq!(self.now, before);
        }
        if restored.previous_revision != 0 {
            let undone = self.client.restored(task, restored.previous_revision).await;
            assert!(undone.replaced_ids.is_empty(), "{undone:?}");
            self.advance().await;
            self.now.holds(&before);
        }
    }

    /// Restores a revision. A refusal changes nothing.
    async fn restore_by(
        &mut self,
        request: RestoreRevisionRequest,
    ) -> Result<RestoreRevisionResponse, Failure> {
        let skips = request.skip_missing_subtasks;
        self.client.call(request).await.map_err(|status| {
            let failure = Failure::from(status);
            let reason = failure.reason();
            let is_expected = ["NESTING_TOO_DEEP", "EXTERNAL_ID_TAKEN"].contains(&reason)
                || (reason == "REVISION_UNRESTORABLE" && !skips);
            assert!(is_expected, "{failure:?}");
            failure
        })
    }

    /// Asserts that a guide is as in a revision that was restored.
    async fn is_restored(&self, kept: &Kept, restored: &RestoreRevisionResponse) {
        let task = &kept.task;
        let found = self.now.document(task);
        assert_eq!(restored.task, found.task);
        assert_eq!(restored.guide_etag, self.now.guides[task].guide_etag);
        let mut expected = kept.document.clone();
        without_steps(&mut expected, &restored.skipped_steps);
        let mut expected = with_ids(&expected, &restored.replaced_ids);
        let root = found.task.as_ref().expect("a task");
        if let Some(task) = &mut expected.task {
            task.set_type(root.r#type());
            task.parent_guid.clone_from(&root.parent_guid);
            task.idx = root.idx;
            if root.r#type() == TaskType::Linked {
                task.name.clone_from(&root.name);
            }
        }
        // Titles of subtask steps follow the tasks that they refer to.
        let mut renamed = BTreeSet::from([task.clone()]);
        if root.name == kept.document.task.as_ref().expect("a task").name {
            renamed.clear();
        }
        let name = |task: &String| {
            let guide = self.now.guides.get(task)?.document.as_ref()?;
            Some(&guide.task.as_ref()?.name)
        };
        for_each_document(&mut expected, &mut |document| {
            for step in &mut document.steps {
                if let Some(name) = name(&step.subtask_id).filter(|name| **name != step.title)
                    && step.r#type() == StepType::Subtask
                {
                    step.title.clone_from(name);
                    renamed.insert(step.guid.clone());
                }
            }
        });
        let mut found = honored(found);
        let mut expected = honored(&expected);
        if !restored.replaced_ids.is_empty() {
            for document in [&mut found, &mut expected] {
                for_each_document(document, &mut without_creation);
            }
        }
        assert_eq!(found, expected, "{restored:?}");
        if restored.replaced_ids.is_empty() && restored.skipped_steps.is_empty() {
            let compared = self.client.compare_revisions(task, kept.number, "").await;
            // The name of a managed task is not compared.
            assert!(compared.accepted().same);
            let work = self.now.work_of(&kept.document, &renamed);
            let before = kept
                .work
                .iter()
                .filter(|((id, _), _)| !renamed.contains(id));
            let before: Work = before.map(|(key, it)| (key.clone(), it.clone())).collect();
            assert_eq!(work, before);
        }
    }

    async fn revisions_are_as_they_were(&self) {
        for kept in &self.kept {
            let document = self.client.revision_document(&kept.task, kept.number).await;
            assert_eq!(document, kept.document);
        }
    }

    async fn comparisons_find_every_difference(&self) {
        for [base, target] in self
            .kept
            .windows(2)
            .chain(self.kept.windows(3))
            .filter_map(|it| {
                let ends = [it.first()?, it.last()?];
                (ends[0].task == ends[1].task).then_some(ends)
            })
        {
            let compared = self
                .client
                .compare_revisions(&base.task, base.number, target.number);
            let same = compared.await.accepted().same;
            assert_eq!(same, compared_fields(base) == compared_fields(target));
        }
    }
}

fn for_each_document(document: &mut TaskDocument, change: &mut impl FnMut(&mut TaskDocument)) {
    change(document);
    let configs = document
        .steps
        .iter_mut()
        .flat_map(|it| &mut it.feedback_config);
    for value in configs.flat_map(|config| &mut config.values) {
        if let Some(document) = &mut value.task_json {
            for_each_document(document, change);
        }
    }
}

/// A document without what the system sets on every write.
pub fn honored(document: &TaskDocument) -> TaskDocument {
    let mut document = document.clone();
    for_each_document(&mut document, &mut |document| {
        if let Some(task) = &mut document.task {
            task.etag.clear();
            task.modified_ts = None;
            task.dirty_record = false;
        }
        for step in &mut document.steps {
            step.etag.clear();
            step.modified_ts = None;
            step.dirty_record = false;
        }
    });
    document
}

fn without_creation(document: &mut TaskDocument) {
    if let Some(task) = &mut document.task {
        task.created_ts = None;
    }
    for step in &mut document.steps {
        step.created_ts = None;
    }
}

/// What a comparison of the revision shows.
fn compared_fields(kept: &Kept) -> TaskDocument {
    let mut document = honored(&kept.document);
    for_each_document(&mut document, &mut |document| {
        without_creation(document);
        if let Some(task) = &mut document.task {
            task.r#type = None;
            task.parent_guid.clear();
            task.idx = 0;
        }
        for step in &mut document.steps {
            if step.r#type() == StepType::Subtask {
                step.title.clear();
            }
        }
    });
    document
}

/// Removes steps from a document, and from the lists of its tasks.
fn without_steps(document: &mut TaskDocument, steps: &[String]) {
    for_each_document(document, &mut |document| {
        document.steps.retain(|step| !steps.contains(&step.guid));
        if let Some(task) = &mut document.task {
            task.steps.retain(|step| !steps.contains(step));
        }
    });
}

/// A document with other ids.
fn with_ids<'a>(
    document: &TaskDocument,
    ids: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> TaskDocument {
    let mut bytes = document.encode_to_vec();
    for (former, new) in ids {
        let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(former.as_bytes()));
        for at in starts.collect::<Vec<_>>() {
            bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
        }
    }
    TaskDocument::decode(bytes.as_slice()).expect("the document")
}
