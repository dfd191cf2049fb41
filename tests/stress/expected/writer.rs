//! A writer: sends one random write after the other and keeps the state that it
//! expects.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use expertise::proto::v1::Task;
use tonic::Status;

use super::{
    choose,
    errors::{WriteError, retry_while_unavailable, write_error},
    observed::{self, ObservedState, ObservedWorkspace},
    workspace::{Workspace, is_placeholder, linked_values},
    write::{Write, WriteResponse},
};
use crate::kit::{client::Client, rng::Rng};

/// How many acknowledged creates and imports are kept to be repeated later.
const REMEMBERED_WRITES: usize = 8;

/// It alone works on its workspaces.
pub struct Writer {
    name: String,
    pub rng: Rng,
    pub workspaces: Vec<Workspace>,
    /// How many writes were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged creates and imports, each with the id of what it made.
    remembered: Vec<(Write, String)>,
}

/// What became of a write that was not answered.
#[derive(Debug, PartialEq, Eq)]
pub enum UnansweredOutcome {
    /// All of it is there: this is the id of the resource that it made or changed.
    Done(String),
    /// Nothing of it is there.
    NotDone,
}

/// An unanswered write with its outcome.
pub struct ResolvedWrite {
    pub workspace: usize,
    pub write: Write,
    pub outcome: UnansweredOutcome,
}

impl Writer {
    /// So many writers, each with so many workspaces.
    pub fn several(count: usize, workspaces: usize, rng: &mut Rng) -> Vec<Self> {
        let writer = |number| {
            let mut writer = Self {
                name: format!("w{number}"),
                rng: rng.fork(),
                workspaces: Vec::new(),
                acknowledged: 0,
                remembered: Vec::new(),
            };
            for _ in 0..workspaces {
                writer.add_workspace();
            }
            writer
        };
        (0..count).map(writer).collect()
    }

    /// The same, each with one more workspace in a task that all share, so that they
    /// conflict.
    pub fn several_sharing(
        task: &Task,
        count: usize,
        workspaces: usize,
        rng: &mut Rng,
    ) -> Vec<Self> {
        let mut writers = Self::several(count, workspaces, rng);
        for writer in &mut writers {
            let prefix = writer.next_prefix();
            let workspace = Workspace::in_shared_task(prefix, task);
            writer.workspaces.push(workspace);
        }
        writers
    }

    /// Adds an empty workspace; its index.
    pub fn add_workspace(&mut self) -> usize {
        let prefix = self.next_prefix();
        self.workspaces.push(Workspace::new(prefix));
        self.workspaces.len() - 1
    }

    fn next_prefix(&self) -> String {
        format!("{}-{}", self.name, self.workspaces.len())
    }

    /// A workspace without an unanswered write; `None` where each has one.
    pub fn pick_workspace(&mut self) -> Option<usize> {
        let workspaces = self.workspaces.iter().enumerate();
        let free = workspaces.filter(|(_, workspace)| workspace.unanswered.is_none());
        let free: Vec<usize> = free.map(|(index, _)| index).collect();
        self.rng.try_pick(&free).copied()
    }

    /// Writes until told to stop, or until a call is not answered.
    pub async fn write_until(&mut self, client: &Client, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let workspace = self.rng.below(self.workspaces.len());
            let written = match self.next_write(client, workspace).await {
                Ok(write) => {
                    let sent = write.send(client).await;
                    self.note(workspace, write, sent)
                }
                Err(status) => Err(write_error(&status)),
            };
            match written {
                Ok(()) | Err(WriteError::NotDone) => {}
                Err(WriteError::Unknown) => return,
                Err(other) => panic!("{other:?}, but nobody else writes here"),
            }
        }
    }

    /// The next write to a workspace. Reads the ids first that the last response did not
    /// hold.
    pub async fn next_write(&mut self, client: &Client, workspace: usize) -> Result<Write, Status> {
        self.read_ids(client, workspace).await?;
        choose::next_write(&mut self.workspaces[workspace], &mut self.rng, client).await
    }

    /// Notes the result of a write that was sent: the expected state after it, or that it was
    /// not answered.
    pub fn note(
        &mut self,
        workspace: usize,
        write: Write,
        sent: Result<WriteResponse, Status>,
    ) -> Result<(), WriteError> {
        match sent {
            Ok(response) => {
                self.note_acknowledged(workspace, write, response);
                Ok(())
            }
            Err(status) => {
                let error = write_error(&status);
                if error == WriteError::Unknown {
                    self.workspaces[workspace].unanswered = Some(write);
                }
                Err(error)
            }
        }
    }

    fn note_acknowledged(&mut self, workspace: usize, write: Write, response: WriteResponse) {
        let id = self.workspaces[workspace].apply(&write);
        let made = response.guid();
        self.workspaces[workspace].match_response(&id, response);
        self.acknowledged += 1;
        if write.has_request_id() {
            if self.remembered.len() == REMEMBERED_WRITES {
                self.remembered.remove(0);
            }
            self.remembered.push((write, made));
        }
    }

    /// Reads the tasks of a workspace that holds placeholders, to replace them by ids. What
    /// is read must match what the workspace expects.
    async fn read_ids(&mut self, client: &Client, workspace: usize) -> Result<(), Status> {
        let workspace = &mut self.workspaces[workspace];
        if !workspace.has_placeholders() {
            return Ok(());
        }
        let own = workspace.tasks.iter().filter(|expected| !expected.shared);
        let mut guids: Vec<String> = own.map(|expected| expected.task.guid.clone()).collect();
        guids.retain(|guid| !is_placeholder(guid));
        // A managed task whose id was known is found twice: in the workspace and by its link.
        let mut tasks = BTreeMap::new();
        while let Some(guid) = guids.pop() {
            let task = observed::task_with_steps(client, &guid).await?;
            let linked = task.1.iter().flat_map(linked_values);
            guids.extend(linked.map(|(_, value)| value.link.clone()));
            tasks.insert(guid, task);
        }
        let observed = ObservedWorkspace {
            tasks: tasks.values().collect(),
            steps_of_shared_task: Vec::new(),
            roles: workspace.roles.iter().collect(),
        };
        let matched = workspace.matched(&observed);
        let prefix = &workspace.prefix;
        *workspace =
            matched.unwrap_or_else(|why| panic!("workspace {prefix} after a write: {why}"));
        Ok(())
    }

    /// Repeats the writes with a request id, and one that was acknowledged: those that
    /// were not done are done now, and none is done twice. How many were repeated.
    pub async fn repeat(&mut self, client: &Client, resolved: Vec<ResolvedWrite>) -> u64 {
        let mut repeated = 0;
        for ResolvedWrite {
            workspace,
            write,
            outcome,
        } in resolved
        {
            if !write.has_request_id() {
                continue;
            }
            let response = retry_while_unavailable!(write.send(client).await);
            match outcome {
                UnansweredOutcome::Done(id) => assert_eq!(response.guid(), id, "{write:?}"),
                UnansweredOutcome::NotDone => self.note_acknowledged(workspace, write, response),
            }
            repeated += 1;
        }
        if let Some((write, id)) = self.rng.try_pick(&self.remembered) {
            let response = retry_while_unavailable!(write.send(client).await);
            assert_eq!(response.guid(), *id, "{write:?}");
            repeated += 1;
        }
        repeated
    }
}

/// Asserts that everything acknowledged is there, every unanswered write whole or
/// not at all, and nothing else. The outcomes of the unanswered writes, writer by
/// writer.
pub fn verify<'a>(
    writers: impl IntoIterator<Item = &'a mut Writer>,
    shared_task: Option<&Task>,
    state: &ObservedState,
) -> Vec<Vec<ResolvedWrite>> {
    state.assert_consistent();
    let mut found = state.by_workspace(shared_task);
    let resolved = writers.into_iter().map(|writer| {
        let mut resolved = Vec::new();
        for (index, workspace) in writer.workspaces.iter_mut().enumerate() {
            let observed = found.remove(workspace.prefix.as_str()).unwrap_or_default();
            let write = workspace.unanswered.clone();
            if let (Some(outcome), Some(write)) = (workspace.resolve(&observed), write) {
                resolved.push(ResolvedWrite {
                    workspace: index,
                    write,
                    outcome,
                });
            }
        }
        resolved
    });
    let resolved = resolved.collect();
    assert!(found.is_empty(), "nobody made {:?}", found.keys());
    resolved
}
