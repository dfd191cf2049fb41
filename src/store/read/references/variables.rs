//! References to a variable.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sea_orm::{
    ColumnTrait, ConnectionTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    RelationTrait, Select,
    sea_query::{Expr, ExprTrait},
};
use uuid::Uuid;

use super::page;
use crate::{
    analysis_threads::check_call,
    call_context::WorkMemory,
    domain::{
        Error,
        analysis::{
            NameDigest, NameUse, Reference, ReferenceCursor, ReferenceKind, ReferencePage,
            ReferencePlace, VariableFilter,
        },
        ids::{StepId, TaskId},
        page::PAGE_BYTES,
    },
    store::{
        account::Scope,
        entity::{
            name_use::{self, IN_STEP, IN_TASK},
            step, task,
        },
        error::StoreError,
        read::{
            Texts,
            guide::MEMORY_PER_BYTE,
            named::{NameUser, NamingTexts, read_texts, step_users, task_users},
        },
        rows::read_product,
    },
};

/// The maximum number of batches of one call.
const MAX_BATCHES: usize = 3;
/// The maximum number of tasks and steps that a batch examines. The first batch of setters, and of
/// readers, only examines as many as the page has room for.
const MAX_BATCH_ROWS: usize = 1_000;
/// A task or step with more bytes is large: it is read under a permit.
const LARGE_ROW_BYTES: usize = 1024 * 1024;

/// A page of the observations that set a variable and the conditions that read it.
pub async fn to_variable(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &VariableFilter,
    after: Option<ReferenceCursor>,
    size: usize,
    texts: Texts,
) -> Result<ReferencePage, StoreError> {
    let mut search = Search {
        scope,
        filter,
        texts,
        memory: WorkMemory::of_current_call(),
    };
    let mut cursor = after.unwrap_or_else(|| first_cursor(filter));
    let mut items = Vec::new();
    let mut limit = size + 1;
    for _ in 0..MAX_BATCHES {
        let batch = search.read_batch(&cursor, limit).await?;
        let references = batch.references.into_iter();
        items.extend(references.filter(|item| cursor.is_before(item)));
        if items.len() > size {
            return Ok(page(items, size));
        }
        if let Some(id) = batch.continues_after {
            cursor.id = id;
            cursor.path = None;
            if items.len() == size {
                break;
            }
            limit = MAX_BATCH_ROWS;
        } else if cursor.kind == ReferenceKind::Sets {
            cursor = ReferenceCursor::start_of(ReferenceKind::Reads);
            limit = size + 1 - items.len();
        } else {
            return Ok(ReferencePage { items, next: None });
        }
    }
    let next = Some(cursor);
    Ok(ReferencePage { items, next })
}

/// The cursor before all references. A name that no observation can set has no setters.
fn first_cursor(filter: &VariableFilter) -> ReferenceCursor {
    ReferenceCursor::start_of(if filter.may_have_setters() {
        ReferenceKind::Sets
    } else {
        ReferenceKind::Reads
    })
}

/// The references of some tasks and steps, in order.
struct Batch {
    references: Vec<Reference>,
    /// The id of the last of these tasks and steps, if there are more.
    continues_after: Option<Uuid>,
}

/// A search for the references to a variable.
struct Search<'a, C> {
    scope: Scope<'a, C>,
    filter: &'a VariableFilter,
    texts: Texts,
    /// Reserved for large rows.
    memory: WorkMemory,
}

impl<C: ConnectionTrait> Search<'_, C> {
    /// Reads the references of the next tasks and steps after a cursor, at most `limit`. Their texts
    /// have about [`PAGE_BYTES`] in total, but at least one is read. Fails with
    /// [`StoreError::NeedsLargeReadPermit`] if one is large and only small ones may be read.
    async fn read_batch(
        &mut self,
        cursor: &ReferenceCursor,
        limit: usize,
    ) -> Result<Batch, StoreError> {
        let mut users = match self.filter.task {
            Some(task) => self.users_in_task(task, cursor).await?,
            None => self.users_in_account(cursor, limit + 1).await?,
        };
        users.sort_unstable_by_key(|user| user.guid);
        let mut bytes = 0;
        let fitting = users.iter().take(limit).take_while(|user| {
            let fits = bytes < PAGE_BYTES;
            bytes += if fits { user.bytes() } else { 0 };
            fits
        });
        let fitting = fitting.count();
        let has_more = users.len() > fitting;
        users.truncate(fitting);
        if users.iter().any(|user| user.bytes() > LARGE_ROW_BYTES) {
            self.hold_large_rows(bytes)?;
        }
        let last = users.last().map(|user| user.guid);
        let texts = read_texts(self.scope, &users).await?;
        Ok(Batch {
            references: match cursor.kind {
                ReferenceKind::Sets => self.setters(texts)?,
                _ => self.readers(texts).await?,
            },
            continues_after: last.filter(|_| has_more),
        })
    }

    /// The first steps after a cursor that the index names for the variable, and the first tasks; at
    /// most `limit` of each.
    async fn users_in_account(
        &self,
        cursor: &ReferenceCursor,
        limit: usize,
    ) -> Result<Vec<NameUser>, StoreError> {
        use name_use::{Column, Relation};
        let uses = |in_step: i16| {
            self.uses(cursor.kind)
                .filter(Column::InStep.eq(in_step))
                .filter(match cursor.path {
                    Some(_) => Column::Guid.gte(cursor.id),
                    None => Column::Guid.gt(cursor.id),
                })
                .order_by_asc(Column::Guid)
                .limit(limit as u64)
        };
        let db = self.scope.db;
        let steps = uses(IN_STEP).join(JoinType::InnerJoin, Relation::Step.def());
        let mut users: Vec<NameUser> = step_users(steps).into_model().all(db).await?;
        if cursor.kind == ReferenceKind::Reads {
            let tasks = uses(IN_TASK).join(JoinType::InnerJoin, Relation::Task.def());
            users.extend(task_users(tasks).into_model().all(db).await?);
        }
        Ok(users)
    }

    /// The steps of a task after a cursor that the index names for the variable, and the task itself.
    /// Each is looked up in the index, so the cost does not depend on how many others use the name.
    async fn users_in_task(
        &self,
        task: TaskId,
        cursor: &ReferenceCursor,
    ) -> Result<Vec<NameUser>, StoreError> {
        let is_named = |guid: Expr| {
            let of_row = name_use::Column::Guid.into_expr().eq(guid);
            Expr::exists(self.uses(cursor.kind).filter(of_row).into_query())
        };
        let db = self.scope.db;
        let steps = self
            .scope
            .find::<step::Entity>()
            .filter(step::Column::Task.eq(task.0))
            .filter(is_named(step::Column::Guid.into_expr()));
        let mut users: Vec<NameUser> = step_users(steps).into_model().all(db).await?;
        if cursor.kind == ReferenceKind::Reads {
            let tasks = self
                .scope
                .find::<task::Entity>()
                .filter(task::Column::Guid.eq(task.0))
                .filter(is_named(task::Column::Guid.into_expr()));
            users.extend(task_users(tasks).into_model().all(db).await?);
        }
        // In SQL this condition would tempt SQLite to look at all steps of the account.
        users.retain(|user| {
            user.guid > cursor.id || (user.guid == cursor.id && cursor.path.is_some())
        });
        Ok(users)
    }

    /// The rows of the index that name the variable.
    fn uses(&self, kind: ReferenceKind) -> Select<name_use::Entity> {
        let name = &self.filter.name;
        let digests = match (kind, self.filter.task) {
            (ReferenceKind::Sets, Some(task)) => vec![
                NameDigest::new(NameUse::Sets, name),
                NameDigest::of_own_name(task, name),
            ],
            (ReferenceKind::Sets, None) => vec![NameDigest::new(NameUse::Sets, name)],
            _ => vec![NameDigest::new(NameUse::Reads, name)],
        };
        let digests = digests.into_iter().map(|NameDigest(digest)| digest);
        self.scope
            .find::<name_use::Entity>()
            .filter(name_use::Column::NameDigest.is_in(digests))
    }

    /// Reserves memory for large rows, which are read under a permit.
    fn hold_large_rows(&mut self, bytes: usize) -> Result<(), StoreError> {
        if self.texts == Texts::Small {
            return Err(StoreError::NeedsLargeReadPermit(PAGE_BYTES));
        }
        let bytes = bytes.saturating_mul(MEMORY_PER_BYTE);
        let more = bytes.saturating_sub(self.memory.bytes());
        if self.memory.try_grow(more) {
            Ok(())
        } else {
            Err(Error::Overloaded.into())
        }
    }

    /// The observations that set the variable.
    fn setters(&self, texts: Vec<NamingTexts>) -> Result<Vec<Reference>, StoreError> {
        let mut references = Vec::new();
        for texts in texts {
            let product = read_product(texts.product_id)?;
            let question = texts.content.0.question.as_ref();
            if question.is_some_and(|question| self.filter.is_set_by(product, question)) {
                references.push(Reference {
                    kind: ReferenceKind::Sets,
                    place: place(&texts, "feedback_config[0]".to_owned()),
                    condition: None,
                });
            }
        }
        Ok(references)
    }

    /// The conditions that read the variable.
    async fn readers(&self, mut texts: Vec<NamingTexts>) -> Result<Vec<Reference>, StoreError> {
        if !self.filter.may_have_setters() {
            // The name may be a task's own: then the conditions of that task read its own variable.
            let tasks = texts.iter().map(|texts| TaskId(texts.task));
            let own = self.tasks_with_own_name(tasks.collect()).await?;
            texts.retain(|texts| !own.contains(&TaskId(texts.task)));
        }
        let mut references = Vec::new();
        for texts in texts {
            check_call()?;
            let dependencies = texts.content.0.dependencies.iter();
            let conditions = dependencies.flat_map(|group| self.filter.conditions_reading(group));
            references.extend(conditions.map(|(path, condition)| Reference {
                kind: ReferenceKind::Reads,
                place: place(&texts, path),
                condition: Some(condition),
            }));
        }
        Ok(references)
    }

    /// Those of the tasks that set the name within themselves.
    async fn tasks_with_own_name(
        &self,
        tasks: BTreeSet<TaskId>,
    ) -> Result<HashSet<TaskId>, StoreError> {
        let name = &self.filter.name;
        let digest = |task: TaskId| (NameDigest::of_own_name(task, name).0, task);
        let digests: BTreeMap<Uuid, TaskId> = tasks.into_iter().map(digest).collect();
        if digests.is_empty() {
            return Ok(HashSet::new());
        }
        let found: Vec<Uuid> = self
            .scope
            .find::<name_use::Entity>()
            .select_only()
            .column(name_use::Column::NameDigest)
            .filter(name_use::Column::NameDigest.is_in(digests.keys().copied()))
            .into_tuple()
            .all(self.scope.db)
            .await?;
        let own = found.iter().filter_map(|digest| digests.get(digest));
        Ok(own.copied().collect())
    }
}

fn place(texts: &NamingTexts, path: String) -> ReferencePlace {
    ReferencePlace {
        task: TaskId(texts.task),
        step: texts.is_step().then_some(StepId(texts.guid)),
        path,
        title: texts.title.clone(),
    }
}
