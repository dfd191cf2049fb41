//! What an automatic translator has to do.
//!
//! A call looks at a bounded number of resources in the order of their ids, so
//! that it costs what its page costs even where nearly everything is translated.

use std::collections::BTreeMap;

use sea_orm::{DbBackend, FromQueryResult, Value};
use serde::Deserialize;
use uuid::Uuid;

use super::{Account, backend, fault::Fault, row, transaction::statement};
use crate::domain::{
    Result,
    ids::{StepId, TaskId},
    page::{PAGE_BYTES, PageSize},
    text::Body,
    translation::LANGUAGES_MAX,
    work::{Digest, Source, State, Target, Work, WorkCursor, WorkFilter, WorkPage},
};

/// Resources that one statement looks at.
const WINDOW: i64 = 500;
/// Statements that look, in one call.
const WINDOWS: usize = 4;

/// A resource and what there is of it in the languages asked for.
#[derive(FromQueryResult)]
struct Looked {
    guid: Uuid,
    bytes: i64,
    /// How many languages it has, asked for or not.
    languages: i64,
    rows: Option<String>,
}

/// A language, whether it is locked, and whether it was made from the source as
/// it is.
#[derive(Deserialize)]
struct Row(String, row::Flag, row::Flag);

#[derive(FromQueryResult)]
struct TaskSource {
    guid: Uuid,
    name: String,
}

#[derive(FromQueryResult)]
struct StepSource {
    guid: Uuid,
    title: String,
    instructions: Option<String>,
    feedback_config: Option<String>,
    rest_digest: Vec<u8>,
    body: Option<String>,
}

/// Something to do, before its texts are read.
struct Found {
    cursor: WorkCursor,
    language: usize,
    state: State,
}

/// Work being gathered.
struct Gathering {
    found: Vec<Found>,
    bytes: usize,
    size: usize,
    /// Where the listing goes on.
    cursor: WorkCursor,
    full: bool,
}

impl Account {
    /// Lists work in the order of ids, tasks first.
    pub async fn list_work(
        &self,
        filter: &WorkFilter,
        after: Option<WorkCursor>,
        size: PageSize,
    ) -> Result<WorkPage> {
        if let Some(task) = filter.task {
            self.order_epoch(task).await?;
        }
        Ok(self.gather_work(filter, after, size).await?)
    }

    async fn gather_work(
        &self,
        filter: &WorkFilter,
        after: Option<WorkCursor>,
        size: PageSize,
    ) -> Result<WorkPage, Fault> {
        let mut gathering = Gathering {
            found: Vec::new(),
            bytes: 0,
            size: size.get() as usize,
            cursor: after.unwrap_or(WorkCursor::START),
            full: false,
        };
        let mut ended = false;
        for _ in 0..WINDOWS {
            let looked = self.look(filter, gathering.cursor).await?;
            let last = looked.len() < usize::try_from(WINDOW).unwrap_or(usize::MAX);
            for resource in looked {
                gathering.add(resource, filter)?;
                if gathering.full {
                    break;
                }
            }
            if gathering.full {
                break;
            }
            if last && gathering.cursor.steps {
                ended = true;
                break;
            }
            if last {
                gathering.cursor = WorkCursor {
                    steps: true,
                    ..WorkCursor::START
                };
            }
        }
        let next = (!ended).then_some(gathering.cursor);
        let items = self.read_sources(filter, gathering.found).await?;
        Ok(WorkPage { items, next })
    }

    /// The next resources from a cursor on.
    async fn look(&self, filter: &WorkFilter, from: WorkCursor) -> Result<Vec<Looked>, Fault> {
        let db = &self.lagging();
        let languages = filter.languages.len();
        // A resource whose languages are all done is passed over.
        let reach = if from.languages < languages {
            ">="
        } else {
            ">"
        };
        let mut values = vec![Value::from(from.guid), Value::from(WINDOW)];
        let only = filter.task.map_or("", |task| {
            values.push(task.0.into());
            if from.steps {
                " AND r.task = $4"
            } else {
                " AND r.guid = $4"
            }
        });
        let first = values.len() + 2;
        let places: Vec<String> = (first..first + languages)
            .map(|n| format!("${n}"))
            .collect();
        values.extend(filter.languages.iter().map(|tag| Value::from(tag.as_str())));
        let (array, rows, cast) = match backend(db) {
            DbBackend::Sqlite => ("json_array", "json_group_array", ""),
            _ => ("json_build_array", "json_agg", "::text"),
        };
        let (table, overlays, key, bytes, fresh) = if from.steps {
            (
                "steps",
                "step_translations",
                "step",
                "r.size + r.body_size",
                "l.made_title = r.title AND l.made_rest = r.rest_digest",
            )
        } else {
            (
                "tasks",
                "task_translations",
                "task",
                "r.size",
                "l.made_name = r.name",
            )
        };
        let places = places.join(", ");
        let sql = format!(
            "SELECT r.guid, {bytes} AS bytes, \
               (SELECT COUNT(*) FROM {overlays} l \
                WHERE l.account_id = $1 AND l.{key} = r.guid) AS languages, \
               (SELECT {rows}({array}(l.language, l.locked, {fresh})){cast} FROM {overlays} l \
                WHERE l.account_id = $1 AND l.{key} = r.guid AND l.language IN ({places})) AS rows \
             FROM {table} r WHERE r.account_id = $1 AND r.guid {reach} $2{only} \
             ORDER BY r.guid LIMIT $3"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        Ok(Looked::find_by_statement(statement).all(db).await?)
    }

    /// Reads the texts of what was found.
    async fn read_sources(
        &self,
        filter: &WorkFilter,
        found: Vec<Found>,
    ) -> Result<Vec<(Work, WorkCursor)>, Fault> {
        let ids = |steps: bool| -> Vec<Uuid> {
            let of = found.iter().filter(|found| found.cursor.steps == steps);
            let mut ids: Vec<Uuid> = of.map(|found| found.cursor.guid).collect();
            ids.dedup();
            ids
        };
        let mut sources: BTreeMap<(bool, Uuid), (Source, Digest)> = BTreeMap::new();
        for row in self.task_sources(ids(false)).await? {
            let digest = Digest::of_task(&row.name);
            let source = Source::Task { name: row.name };
            sources.insert((false, row.guid), (source, digest));
        }
        for row in self.step_sources(ids(true)).await? {
            let guid = row.guid;
            sources.insert((true, guid), row.read()?);
        }
        let work = |found: Found| {
            let WorkCursor { steps, guid, .. } = found.cursor;
            // What was deleted since it was found is no work.
            let (source, digest) = sources.get(&(steps, guid))?.clone();
            let work = Work {
                target: if steps {
                    Target::Step(StepId(guid))
                } else {
                    Target::Task(TaskId(guid))
                },
                language: filter.languages.get(found.language)?.clone(),
                state: found.state,
                source,
                digest,
            };
            Some((work, found.cursor))
        };
        Ok(found.into_iter().filter_map(work).collect())
    }

    async fn task_sources(&self, ids: Vec<Uuid>) -> Result<Vec<TaskSource>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let db = &self.lagging();
        let sql = format!(
            "SELECT guid, name FROM tasks WHERE account_id = $1 AND guid IN ({})",
            placeholders(ids.len())
        );
        let values = ids.into_iter().map(Value::from);
        let statement = statement(backend(db), &self.id, sql, values);
        Ok(TaskSource::find_by_statement(statement).all(db).await?)
    }

    async fn step_sources(&self, ids: Vec<Uuid>) -> Result<Vec<StepSource>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let db = &self.lagging();
        let sql = format!(
            "SELECT s.guid, s.title, s.instructions, s.feedback_config, s.rest_digest, \
               (SELECT b.body FROM step_bodies b \
                WHERE b.account_id = $1 AND b.step = s.guid) AS body \
             FROM steps s WHERE s.account_id = $1 AND s.guid IN ({})",
            placeholders(ids.len())
        );
        let values = ids.into_iter().map(Value::from);
        let statement = statement(backend(db), &self.id, sql, values);
        Ok(StepSource::find_by_statement(statement).all(db).await?)
    }
}

/// Placeholders behind the account's.
fn placeholders(count: usize) -> String {
    let places: Vec<String> = (2..count + 2).map(|n| format!("${n}")).collect();
    places.join(", ")
}

impl Gathering {
    /// Adds what there is to do of a resource, as far as the page has room.
    fn add(&mut self, looked: Looked, filter: &WorkFilter) -> Result<(), Fault> {
        let Looked {
            guid,
            bytes,
            languages,
            rows,
        } = looked;
        let full = usize::try_from(languages).is_ok_and(|count| count >= LANGUAGES_MAX);
        let rows: Vec<Row> = match rows {
            Some(json) => {
                serde_json::from_str(&json).map_err(|_| Fault::Corrupt("translations"))?
            }
            None => Vec::new(),
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let resumed = self.cursor.guid == guid;
        let done = if resumed { self.cursor.languages } else { 0 };
        for (index, language) in filter.languages.iter().enumerate().skip(done) {
            let row = rows.iter().find(|row| row.0 == language.as_str());
            let state = match row {
                // There is no room for one language more.
                None if full => None,
                None => Some(State::Missing),
                Some(Row(_, locked, fresh)) if !locked.get() && !fresh.get() => {
                    Some(State::Outdated)
                }
                Some(_) => None,
            };
            let room = PAGE_BYTES.saturating_sub(self.bytes);
            if state.is_some()
                && (self.found.len() >= self.size || (bytes > room && !self.found.is_empty()))
            {
                self.full = true;
                return Ok(());
            }
            self.cursor = WorkCursor {
                steps: self.cursor.steps,
                guid,
                languages: index + 1,
            };
            if let Some(state) = state {
                self.bytes = self.bytes.saturating_add(bytes);
                self.found.push(Found {
                    cursor: self.cursor,
                    language: index,
                    state,
                });
            }
        }
        Ok(())
    }
}

impl StepSource {
    fn read(self) -> Result<(Source, Digest), Fault> {
        let Self {
            guid: _,
            title,
            instructions,
            feedback_config,
            rest_digest,
            body,
        } = self;
        let rest = rest_digest
            .try_into()
            .map_err(|_| Fault::Corrupt("rest_digest"))?;
        let digest = Digest::of_step(&title, Digest(rest));
        let source = Source::Step {
            title,
            body: body
                .map(|body| row::text(Body::parse(body), "body"))
                .transpose()?,
            instructions: row::read_instructions(instructions)?,
            feedback: row::read_feedback(feedback_config)?,
        };
        Ok((source, digest))
    }
}
