//! Imports: read what there is, plan, write where the two differ. The number of
//! statements grows with the number of batches, not of steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use uuid::Uuid;

use super::{
    Account, Mode, Outcome, Retry,
    batch::Batch,
    fault::Fault,
    link,
    retry::once,
    step::referenced,
    transaction::Tx,
    tree::{self, Grown},
};
use crate::domain::{
    Error, Result,
    etag::{Etag, Expected},
    ids::TaskId,
    import::{AbsentSteps, Context, Document, Plan, PlannedTask, plan},
    step::Referenced,
    task::Task,
};

/// What an import is to do.
#[derive(Debug)]
pub struct Import {
    /// The task to bring to the document's state; `None` makes one.
    pub target: Option<TaskId>,
    /// The document.
    pub document: Document,
    /// The version that the task must have.
    pub expected: Expected,
    /// What becomes of steps that the document leaves out.
    pub absent: AbsentSteps,
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The task.
    pub task: Task,
    /// What was sent and not honored, as paths below the request.
    pub ignored: BTreeSet<String>,
}

impl Account {
    /// Makes a task with all its steps, or brings one to a document's state;
    /// all or nothing.
    pub async fn import_task(
        &self,
        import: Import,
        retry: Option<Retry<Imported>>,
        mode: Mode,
    ) -> Result<Outcome<Imported>> {
        let import = Arc::new(import);
        let retry = Arc::new(retry);
        self.write(mode, move |tx| {
            let (import, retry) = (Arc::clone(&import), Arc::clone(&retry));
            Box::pin(async move { once(tx, retry.as_ref().as_ref(), mode, run(tx, &import)).await })
        })
        .await
    }
}

async fn run(tx: &Tx, import: &Import) -> Result<Imported, Fault> {
    let Import {
        target,
        document,
        expected,
        absent,
    } = import;
    let named = document.subtasks();
    let (grown, referenced) = lock(tx, *target, &named).await?;
    if let (Some(guid), None) = (target, &grown.tree) {
        return Err(Error::TaskNotFound(*guid).into());
    }
    if let Some(tree) = &grown.tree
        && !expected.matches(&Etag::of(
            tree.task.guid.0,
            tree.task.version,
            tree.task.modified,
        ))
    {
        return Err(Error::EtagMismatch.into());
    }
    let plan = plan(
        document.clone(),
        Context {
            account: &tx.account,
            now: tx.now,
            new_id: &mut Uuid::now_v7,
            existing: grown.tree.as_ref(),
            referenced: &referenced,
            absent: *absent,
        },
    )?;
    write(tx, &plan, &grown).await?;
    let Plan { tasks, ignored } = plan;
    let task = tasks
        .into_iter()
        .next()
        .ok_or(Fault::Corrupt("a plan without a task"))?;
    Ok(Imported {
        task: task.after,
        ignored,
    })
}

/// Locks the task with everything below it and the tasks that subtask steps
/// name, in the order of ids, then the steps.
async fn lock(
    tx: &Tx,
    target: Option<TaskId>,
    named: &BTreeSet<TaskId>,
) -> Result<(Grown, BTreeMap<TaskId, Referenced>), Fault> {
    let below = match target {
        Some(root) => tree::ids(&tx.db, &tx.account, root).await?,
        None => Vec::new(),
    };
    let all: BTreeSet<TaskId> = below.iter().chain(named).copied().collect();
    let all: Vec<TaskId> = all.into_iter().collect();
    let mut known = BTreeMap::new();
    for chunk in all.chunks(super::batch::ROWS) {
        for locked in tx.lock_tasks(chunk).await? {
            known.insert(locked.guid, referenced(&locked.row)?);
        }
    }
    let Some(root) = target else {
        let grown = Grown {
            tree: None,
            places: BTreeMap::new(),
            numberings: BTreeMap::new(),
        };
        return Ok((grown, known));
    };
    if tree::ids(&tx.db, &tx.account, root).await? != below {
        return Err(Fault::Lost);
    }
    tx.lock_steps(&below).await?;
    let grown = tree::grow(&tx.db, &tx.account, root).await?;
    Ok((grown, known))
}

async fn write(tx: &Tx, plan: &Plan, grown: &Grown) -> Result<(), Fault> {
    let mut batch = Batch::default();
    for task in &plan.tasks {
        batch.task(tx, task, grown)?;
    }
    batch.write(tx).await?;
    let renamed = |task: &&PlannedTask| {
        let before = task.before.as_ref();
        before.is_some_and(|before| before.name != task.after.name)
    };
    let renamed: Vec<TaskId> = plan
        .tasks
        .iter()
        .filter(renamed)
        .map(|task| task.after.guid)
        .collect();
    link::sync_titles(tx, &renamed).await
}
