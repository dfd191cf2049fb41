//! Writing a task's rows.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, sea_query::OnConflict};

use super::{
    batch::in_batches,
    entity::{task, task_translation},
    fault::Fault,
    row,
    script::{Besides, upsert},
    task_read::{LINKED, STEP_GUID_BYTES},
    transaction::Tx,
};
use crate::domain::{
    Error,
    ids::TaskId,
    task::Task,
    translation::{Language, TaskOverlay},
};

/// Bytes of a task's fixed fields on the wire, about.
const FIXED_BYTES: usize = 400;
/// Bytes left free below the largest message: a managed task may still grow
/// when its value is reworded.
pub(super) const RESERVE: i64 = 4096;

/// What a task's row says of its steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// How many there are.
    pub step_count: i64,
    /// See [`task::Model::last_position`].
    pub last_position: i64,
    /// Which numbering they have.
    pub epoch: i64,
}

/// The task's row.
pub(super) fn write_row(task: &Task, order: Order) -> task::Model {
    let Task {
        guid,
        account,
        name,
        product,
        dependencies,
        published,
        roles,
        translations,
        managed,
        steps: _,
        version,
        dirty,
        index,
        created,
        modified,
    } = task;
    let dependencies = row::write_dependencies(dependencies.as_ref());
    let overlays: usize = translations
        .iter()
        .map(|(language, row)| {
            language.as_str().len() + row.name.as_ref().map_or(0, |name| name.as_str().len()) + 16
        })
        .sum();
    let size =
        FIXED_BYTES + name.as_str().len() + dependencies.as_ref().map_or(0, String::len) + overlays;
    task::Model {
        account_id: account.as_str().to_owned(),
        guid: guid.0,
        name: name.as_str().to_owned(),
        product_id: product.get(),
        kind: if managed.is_some() { LINKED } else { 0 },
        published: published.get(),
        roles: row::write_roles(roles),
        role_bits: row::role_bits(roles),
        dependencies,
        parent_guid: managed.map(|managed| managed.parent.0),
        idx: managed.map_or(0, |managed| managed.idx),
        step_count: order.step_count,
        last_position: order.last_position,
        order_epoch: order.epoch,
        size: byte_count(size),
        version: *version,
        dirty_record: *dirty,
        mvn_indexed: index.indexed,
        mvn_version: index.version,
        mvn_info: index.info.clone(),
        mvn_ts: index.at.map(|at| at.0),
        created_ts: created.0,
        modified_ts: modified.0,
    }
}

/// A number of bytes as it stands in a column.
pub(super) fn byte_count(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Refuses what could never be returned.
pub(super) fn check_size(tx: &Tx, row: &task::Model) -> Result<(), Fault> {
    let limit = tx.max_message_bytes;
    let steps = row.step_count.saturating_mul(STEP_GUID_BYTES);
    let bytes = row.size.saturating_add(steps).saturating_add(RESERVE);
    if bytes > byte_count(limit) {
        return Err(Error::TooLarge { limit }.into());
    }
    Ok(())
}

/// Removes, adds and changes the rows in which two states of a task differ.
pub(super) async fn update_translations(tx: &Tx, before: &Task, after: &Task) -> Result<(), Fault> {
    use task_translation::{Column, Entity};
    let gone: Vec<&str> = before
        .translations
        .keys()
        .filter(|language| !after.translations.contains_key(language))
        .map(|language| language.as_str())
        .collect();
    if !gone.is_empty() {
        Entity::delete_many()
            .filter(Column::AccountId.eq(tx.account_id()))
            .filter(Column::Task.eq(after.guid.0))
            .filter(Column::Language.is_in(gone))
            .exec(&tx.db)
            .await?;
    }
    put_overlays(tx, overlays(tx, Some(before), after)).await
}

/// What is one row of translations.
const OVERLAY_KEY: [task_translation::Column; 3] = {
    use task_translation::Column::{AccountId, Language, Task};
    [AccountId, Task, Language]
};
/// What changes in a row with its texts.
const TEXTS: [task_translation::Column; 3] = {
    use task_translation::Column::{Locked, MadeName, Name};
    [Name, Locked, MadeName]
};

/// Rows of translations to write.
#[derive(Default)]
pub(super) struct Overlays {
    /// Rows whose texts are new: made from the source as it is now.
    texts: Vec<task_translation::ActiveModel>,
    /// Rows of which the lock alone changes.
    locks: Vec<task_translation::ActiveModel>,
}

impl Overlays {
    /// Adds the rows of another task.
    pub fn append(&mut self, other: Self) {
        self.texts.extend(other.texts);
        self.locks.extend(other.locks);
    }

    /// Writes the rows as part of a script.
    pub fn besides(&self, besides: &mut Besides) {
        let Self { texts, locks } = self;
        let rows = [
            (texts, TEXTS.as_slice()),
            (locks, &[task_translation::Column::Locked]),
        ];
        for (rows, change) in rows {
            let otherwise = upsert(&OVERLAY_KEY, change);
            for row in rows {
                besides.insert(row, &otherwise);
            }
        }
    }

    /// A row with new texts.
    pub fn of_texts(row: task_translation::ActiveModel) -> Self {
        Self {
            texts: vec![row],
            locks: Vec::new(),
        }
    }
}

/// The rows in which two states of a task differ.
pub(super) fn overlays(tx: &Tx, before: Option<&Task>, after: &Task) -> Overlays {
    let mut overlays = Overlays::default();
    for (language, row) in &after.translations {
        let known = before.and_then(|task| task.translations.get(language));
        if known == Some(row) {
            continue;
        }
        let written = overlay_row(tx, after.guid, after.name.as_str(), language, row);
        if known.is_some_and(|known| known.name == row.name) {
            overlays.locks.push(written);
        } else {
            overlays.texts.push(written);
        }
    }
    overlays
}

/// The row of a task's texts in one language, made from its name as it is.
pub(super) fn overlay_row(
    tx: &Tx,
    guid: TaskId,
    name: &str,
    language: &Language,
    overlay: &TaskOverlay,
) -> task_translation::ActiveModel {
    task_translation::ActiveModel {
        account_id: Set(tx.account_id().to_owned()),
        task: Set(guid.0),
        language: Set(language.as_str().to_owned()),
        name: Set(overlay.name.as_ref().map(|name| name.as_str().to_owned())),
        locked: Set(overlay.locked),
        made_name: Set(name.to_owned()),
    }
}

/// Adds rows or replaces them.
pub(super) async fn put_overlays(tx: &Tx, overlays: Overlays) -> Result<(), Fault> {
    use task_translation::{Column, Entity};
    let Overlays { texts, locks } = overlays;
    for (rows, change) in [(texts, TEXTS.as_slice()), (locks, &[Column::Locked][..])] {
        let key = OnConflict::columns(OVERLAY_KEY)
            .update_columns(change.iter().copied())
            .to_owned();
        for rows in in_batches(rows) {
            Entity::insert_many(rows)
                .on_conflict(key.clone())
                .exec_without_returning(&tx.db)
                .await?;
        }
    }
    Ok(())
}
