//! Writing a step's rows.

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::{NotSet, Set},
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter,
    sea_query::OnConflict,
};

use super::{
    batch::in_batches,
    entity::{step, step_body, step_translation},
    fault::Fault,
    row,
    script::{Besides, upsert},
    task_write::byte_count,
    transaction::Tx,
};
use crate::domain::{
    Error,
    dependency::Group,
    feedback::Feedback,
    ids::StepId,
    json::{Instruction, Json, WIRE_OVERHEAD, object_wire_bytes, wire_bytes},
    order::Place,
    step::{Step, StepContent},
    text::Body,
    translation::{Language, StepOverlay},
    work::Digest,
};

/// Bytes of a step's fixed fields on the wire, about.
const FIXED_BYTES: usize = 400;
/// Bytes left free below the largest message: a step may still grow when the
/// task that it refers to is renamed.
const RESERVE: i64 = 4096;

/// Adds a step with its body and translations.
pub(super) async fn insert(tx: &Tx, step: &Step, place: Place) -> Result<(), Fault> {
    let row = write_row(tx, step, place)?;
    step::Entity::insert(row.into_active_model())
        .exec_without_returning(&tx.db)
        .await?;
    if let Some(body) = &step.content.body {
        put_body(tx, step, body).await?;
    }
    put_overlays(tx, overlays(tx, None, step)).await
}

/// Writes what differs between two states of a locked step.
pub(super) async fn update(tx: &Tx, before: &Step, after: &Step) -> Result<(), Fault> {
    // Where the step stands is not the update's affair.
    let anywhere = Place {
        position: 0,
        fraction: Vec::new(),
    };
    let row = write_row(tx, after, anywhere)?;
    let mut row = row.into_active_model().reset_all();
    // What the row is found by.
    row.account_id = NotSet;
    row.guid = NotSet;
    row.position = NotSet;
    row.fraction = NotSet;
    step::Entity::update_many()
        .set(row)
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::Guid.eq(after.guid.0))
        .exec(&tx.db)
        .await?;
    if after.content.body != before.content.body {
        match &after.content.body {
            Some(body) => put_body(tx, after, body).await?,
            None => drop_body(tx, after).await?,
        }
    }
    drop_translations(tx, before, after).await?;
    put_overlays(tx, overlays(tx, Some(before), after)).await
}

async fn put_body(tx: &Tx, step: &Step, body: &Body) -> Result<(), Fault> {
    use step_body::{ActiveModel, Column, Entity};
    let key = OnConflict::columns([Column::AccountId, Column::Step])
        .update_column(Column::Body)
        .to_owned();
    Entity::insert(ActiveModel {
        account_id: Set(tx.account_id().to_owned()),
        step: Set(step.guid.0),
        body: Set(body.as_str().to_owned()),
    })
    .on_conflict(key)
    .exec_without_returning(&tx.db)
    .await?;
    Ok(())
}

async fn drop_body(tx: &Tx, step: &Step) -> Result<(), Fault> {
    step_body::Entity::delete_by_id((tx.account_id().to_owned(), step.guid.0))
        .exec(&tx.db)
        .await?;
    Ok(())
}

async fn drop_translations(tx: &Tx, before: &Step, after: &Step) -> Result<(), Fault> {
    use step_translation::{Column, Entity};
    let kept = &after.content.translations;
    let gone: Vec<&str> = before
        .content
        .translations
        .keys()
        .filter(|language| !kept.contains_key(language))
        .map(Language::as_str)
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    Entity::delete_many()
        .filter(Column::AccountId.eq(tx.account_id()))
        .filter(Column::Step.eq(after.guid.0))
        .filter(Column::Language.is_in(gone))
        .exec(&tx.db)
        .await?;
    Ok(())
}

/// What is one row of translations.
const OVERLAY_KEY: [step_translation::Column; 3] = {
    use step_translation::Column::{AccountId, Language, Step};
    [AccountId, Step, Language]
};
/// What changes in a row with its texts.
const TEXTS: [step_translation::Column; 7] = {
    use step_translation::Column::{
        Body, FeedbackConfig, Instructions, Locked, MadeRest, MadeTitle, Title,
    };
    [
        Locked,
        Title,
        Instructions,
        FeedbackConfig,
        MadeTitle,
        MadeRest,
        Body,
    ]
};

/// Rows of translations to write.
#[derive(Default)]
pub(super) struct Overlays {
    /// Rows whose texts are new: made from the source as it is now.
    texts: Vec<step_translation::ActiveModel>,
    /// Rows of which the lock alone changes.
    locks: Vec<step_translation::ActiveModel>,
}

impl Overlays {
    /// Adds the rows of another step.
    pub fn append(&mut self, other: Self) {
        self.texts.extend(other.texts);
        self.locks.extend(other.locks);
    }

    /// Writes the rows as part of a script.
    pub fn besides(&self, besides: &mut Besides) {
        let Self { texts, locks } = self;
        let rows = [
            (texts, TEXTS.as_slice()),
            (locks, &[step_translation::Column::Locked]),
        ];
        for (rows, change) in rows {
            let otherwise = upsert(&OVERLAY_KEY, change);
            for row in rows {
                besides.insert(row, &otherwise);
            }
        }
    }

    /// A row with new texts.
    pub fn of_texts(row: step_translation::ActiveModel) -> Self {
        Self {
            texts: vec![row],
            locks: Vec::new(),
        }
    }
}

/// The rows in which two states of a step differ.
pub(super) fn overlays(tx: &Tx, before: Option<&Step>, after: &Step) -> Overlays {
    let mut overlays = Overlays::default();
    let rest = rest_digest(after);
    for (language, row) in &after.content.translations {
        let known = before.and_then(|step| step.content.translations.get(language));
        let relocked = known.map(|known| StepOverlay {
            locked: row.locked,
            ..known.clone()
        });
        if known == Some(row) {
            continue;
        }
        let written = overlay_row(tx, after, &rest, language, row);
        if relocked.as_ref() == Some(row) {
            overlays.locks.push(written);
        } else {
            overlays.texts.push(written);
        }
    }
    overlays
}

/// Stands for the texts of a step but its title.
fn rest_digest(step: &Step) -> Vec<u8> {
    Digest::of_rest(&step.content, step.kind.feedback())
        .0
        .to_vec()
}

/// Adds rows or replaces them.
pub(super) async fn put_overlays(tx: &Tx, overlays: Overlays) -> Result<(), Fault> {
    use step_translation::{Column, Entity};
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

/// The row of a step's texts in one language, made from the step as it is.
pub(super) fn overlay_row(
    tx: &Tx,
    step: &Step,
    rest: &[u8],
    language: &Language,
    overlay: &StepOverlay,
) -> step_translation::ActiveModel {
    let source = (step.guid, step.title.as_str(), rest);
    source_row(tx, source, language, overlay)
}

/// The row of a step's texts in one language. `source` is the step with its
/// title and the digest of its other texts.
pub(super) fn source_row(
    tx: &Tx,
    source: (StepId, &str, &[u8]),
    language: &Language,
    overlay: &StepOverlay,
) -> step_translation::ActiveModel {
    let StepOverlay {
        title,
        body,
        instructions,
        feedback,
        locked,
    } = overlay;
    let (step, made_title, made_rest) = source;
    step_translation::ActiveModel {
        account_id: Set(tx.account_id().to_owned()),
        step: Set(step.0),
        language: Set(language.as_str().to_owned()),
        locked: Set(*locked),
        title: Set(title.as_ref().map(|title| title.as_str().to_owned())),
        instructions: Set(row::write_instructions(instructions)),
        feedback_config: Set(row::write_feedback(feedback.as_ref())),
        made_title: Set(made_title.to_owned()),
        made_rest: Set(made_rest.to_vec()),
        body: Set(body.as_ref().map(|body| body.as_str().to_owned())),
    }
}

/// The step's row. Fails when the step could never be returned whole.
pub(super) fn write_row(tx: &Tx, step: &Step, place: Place) -> Result<step::Model, Fault> {
    let Step {
        guid,
        account,
        task,
        product,
        kind,
        title,
        content,
        link,
        r_data,
        dirty,
        version,
        created,
        modified,
    } = step;
    let StepContent {
        body: _,
        dependencies,
        instructions,
        looping,
        parts,
        published,
        skills,
        tags,
        translations: _,
    } = content;
    let r_data = (!r_data.is_empty())
        .then(|| serde_json::to_string(r_data))
        .transpose()
        .map_err(|_| Fault::Corrupt("r_data"))?;
    let mut row = step::Model {
        account_id: account.as_str().to_owned(),
        guid: guid.0,
        task: task.0,
        position: place.position,
        fraction: place.fraction,
        kind: kind.step_type().number(),
        product_id: product.get(),
        title: title.clone(),
        cost: kind.cost().get(),
        published: published.get(),
        dependencies: row::write_dependencies(dependencies.as_ref()),
        feedback_config: row::write_feedback(kind.feedback()),
        instructions: row::write_instructions(instructions),
        looping: row::write_looping(looping.as_ref()),
        parts: row::write_tags(parts),
        skills: row::write_tags(skills),
        tags: row::write_tags(tags),
        subtask_id: kind.subtask().map(|subtask| subtask.task.0),
        subtask_pid: kind.subtask().map(|subtask| subtask.product.get()),
        link: link.map(|task| task.0),
        r_data,
        size: 0,
        body_size: byte_count(body_bytes(content)),
        rest_digest: rest_digest(step),
        version: *version,
        dirty_record: *dirty,
        created_ts: created.0,
        modified_ts: modified.0,
    };
    row.size = byte_count(row_bytes(step) + overlay_bytes(content));
    check_size(tx, row.size, row.body_size)?;
    Ok(row)
}

/// The bytes of all bodies.
fn body_bytes(content: &StepContent) -> usize {
    let own = content.body.as_ref();
    let overlays = content
        .translations
        .values()
        .filter_map(|row| row.body.as_ref());
    own.into_iter()
        .chain(overlays)
        .map(|body| body.as_str().len())
        .sum()
}

/// Refuses what could never be returned.
pub(super) fn check_size(tx: &Tx, listed: i64, bodies: i64) -> Result<(), Fault> {
    let limit = tx.max_message_bytes;
    let bytes = listed.saturating_add(bodies).saturating_add(RESERVE);
    if bytes > byte_count(limit) {
        return Err(Error::TooLarge { limit }.into());
    }
    Ok(())
}

/// The bytes of a row on the wire, at most, bodies left out.
fn row_bytes(step: &Step) -> usize {
    let content = &step.content;
    let tags = content
        .parts
        .iter()
        .chain(&content.skills)
        .chain(&content.tags);
    let tags: usize = tags.map(|tag| tag.as_str().len() + WIRE_OVERHEAD).sum();
    let looping = content.looping.as_ref().map_or(0, |looping| {
        let values = looping.array.iter().chain(&looping.iterations);
        let values: usize = values.map(|Json(value)| wire_bytes(value)).sum();
        looping.alias.as_str().len() + values + 4 * WIRE_OVERHEAD
    });
    FIXED_BYTES
        + step.title.len()
        + content.dependencies.as_ref().map_or(0, Group::wire_bytes)
        + feedback_bytes(step.kind.feedback())
        + instruction_bytes(&content.instructions)
        + looping
        + tags
        + object_wire_bytes(&step.r_data)
}

fn feedback_bytes(feedback: Option<&Feedback>) -> usize {
    /// A link, with all that frames a value.
    const VALUE: usize = 64;
    feedback.map_or(0, |feedback| {
        let values = feedback.values.iter();
        let values: usize = values
            .map(|value| value.key.as_str().len() + value.value.as_str().len() + VALUE)
            .sum();
        feedback.name.as_str().len() + values + VALUE
    })
}

fn instruction_bytes(list: &[Instruction]) -> usize {
    let object = |Instruction(members): &Instruction| WIRE_OVERHEAD + object_wire_bytes(members);
    list.iter().map(object).sum()
}

/// The bytes of all translations without their bodies on the wire, about.
fn overlay_bytes(content: &StepContent) -> usize {
    let rows = content.translations.iter();
    rows.map(|(language, row)| overlay_size(language, row))
        .sum()
}

/// The bytes of a row without its body on the wire, at most.
pub(super) fn overlay_size(language: &Language, row: &StepOverlay) -> usize {
    let title = row.title.as_ref().map_or(0, |title| title.as_str().len());
    language.as_str().len()
        + title
        + instruction_bytes(&row.instructions)
        + feedback_bytes(row.feedback.as_ref())
        + 4 * WIRE_OVERHEAD
}
