//! An update by any mask equals the same edit of a model, for tasks and for steps. An import
//! changes what an update without a mask does.

mod resources;

use std::fmt::Debug;

use crate::kit::{contract::descriptor, prelude::*};
use proptest::{
    collection::vec,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
    sample::subsequence,
};
use prost::Message;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value};
use tonic::Status;

const LANGUAGES: [&str; 2] = ["de", "zh-Hant"];

/// A resource that masks select fields of.
pub trait Masked: Clone + Debug + Message + Default + PartialEq + 'static {
    const NAME: &'static str;
    /// The fields that an update may write, but for the translations.
    const FIELDS: &'static [&'static str];
    /// The fields of a row; the first one is its name or title.
    const ROW_FIELDS: &'static [&'static str];

    /// Resources to send.
    fn any_sent() -> BoxedStrategy<Self>;
    /// Whether the resource may be stored.
    fn is_valid(&self) -> bool;
    /// The resource without what responses add to a question.
    fn comparable(self) -> Self;
    fn with_id(self, guid: &str) -> Self;
    fn id_and_version(&self) -> (&str, &str, Option<prost_types::Timestamp>);
    async fn store(client: &Client) -> Self;
    async fn read(client: &Client, guid: &str) -> Self;
    async fn update(client: &Client, sent: Self, mask: &[&str]) -> Result<Self, Status>;
    /// Sends it in a document of its task, where it is part of the guide that there is.
    async fn import(client: &Client, sent: Self) -> Result<Self, Status>;
}

/// Fails when an update writes a field that is missing in `FIELDS`, so that no mask has it.
#[apply(on_both_databases)]
async fn the_models_know_every_field_that_an_update_writes(client: Client) {
    let task = Task::store(&client).await;
    let mask = all_fields::<Task>();
    let mask: Vec<&str> = mask.iter().map(String::as_str).collect();
    let updated = client.update_task(task, &mask).await.accepted();
    assert_known::<Task>(&mask, &updated.ignored_paths);
    let step = Step::store(&client).await;
    let mask = all_fields::<Step>();
    let mask: Vec<&str> = mask.iter().map(String::as_str).collect();
    let updated = client.update_step(step, &mask).await.accepted();
    assert_known::<Step>(&mask, &updated.ignored_paths);
}

fn all_fields<T: Masked>() -> Vec<String> {
    let fields = descriptor(T::NAME);
    fields
        .fields()
        .map(|field| field.name().to_owned())
        .collect()
}

/// Asserts that each field is ignored, or is known: in `FIELDS`, the map of translations, or
/// one that names the resource.
fn assert_known<T: Masked>(mask: &[&str], ignored: &[String]) {
    let name = T::NAME.to_lowercase();
    for field in mask {
        let known = T::FIELDS.contains(field)
            || ["translations", "guid", "etag"].contains(field)
            || ignored.contains(&format!("{name}.{field}"));
        assert!(
            known,
            "{field} of {name} is missing in FIELDS; ignored are {ignored:?}"
        );
    }
}

/// An update of a resource.
#[derive(Clone, Debug)]
pub struct Update<T> {
    sent: T,
    /// Empty: no mask.
    mask: Vec<String>,
    /// Whether it is part of a document, if it has no mask: an import means the same.
    imported: bool,
}

fn update<T: Masked>() -> impl Strategy<Value = Update<T>> {
    let mask = prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec!["*".to_owned()]),
        5 => paths::<T>(),
    ];
    let imported = any::<bool>();
    (T::any_sent(), mask, imported).prop_map(|(sent, mask, imported)| Update {
        sent,
        mask,
        imported,
    })
}

fn paths<T: Masked>() -> impl Strategy<Value = Vec<String>> {
    // Paths into each language, or the whole map.
    let row_paths = |language: &'static str| {
        let row_fields = T::ROW_FIELDS.iter().enumerate();
        // Quotes around a language are optional: only the path of the first field has them.
        let below = row_fields.map(|(index, field)| match index {
            0 => format!("translations.`{language}`.{field}"),
            _ => format!("translations.{language}.{field}"),
        });
        prop_oneof![
            1 => Just(vec![format!("translations.{language}")]),
            2 => subsequence(below.collect::<Vec<_>>(), 0..=T::ROW_FIELDS.len().min(3)),
        ]
    };
    let rows = LANGUAGES.map(row_paths).prop_map(|paths| paths.concat());
    let map = prop_oneof![3 => rows, 1 => Just(vec!["translations".to_owned()])];
    let fields: Vec<String> = T::FIELDS.iter().map(|field| (*field).to_owned()).collect();
    (subsequence(fields, 0..=4), map)
        .prop_map(|(fields, map)| [fields, map].concat())
        .prop_shuffle()
}

/// The language of a path into `translations`, and the field below it.
fn split_row_path(path: &str) -> Option<(String, String)> {
    let rest = path.strip_prefix("translations.")?.replace('`', "");
    let (language, field) = rest.split_once('.').unwrap_or((&rest, ""));
    Some((language.to_owned(), field.to_owned()))
}

/// The fields of a resource that masks reach, by reflection.
#[derive(Clone)]
struct Model(DynamicMessage);

/// Copies a field; an absent one with a default gets it.
fn copy(to: &mut DynamicMessage, field: &str, from: &DynamicMessage) {
    if from.has_field_by_name(field) {
        to.set_field_by_name(field, from.get_field_by_name(field).unwrap().into_owned());
        return;
    }
    match field {
        "published" => to.set_field_by_name(field, Value::I32(1)),
        "cost" => to.set_field_by_name(field, Value::I32(0)),
        "locked" => to.set_field_by_name(field, Value::Bool(true)),
        _ => to.clear_field_by_name(field),
    }
}

impl Model {
    fn of<T: Masked>(resource: &T) -> Self {
        let bytes = resource.clone().comparable().encode_to_vec();
        let whole = DynamicMessage::decode(descriptor(T::NAME), &*bytes).unwrap();
        let mut reached = DynamicMessage::new(descriptor(T::NAME));
        for field in T::FIELDS.iter().chain(&["translations"]) {
            if whole.has_field_by_name(field) {
                copy(&mut reached, field, &whole);
            }
        }
        Self(reached)
    }

    fn resource<T: Masked>(&self) -> T {
        self.0.transcode_to().unwrap()
    }

    fn rows(&mut self) -> &mut std::collections::HashMap<MapKey, Value> {
        let rows = self.0.get_field_by_name_mut("translations").unwrap();
        rows.as_map_mut().unwrap()
    }

    fn row(&self, language: &str) -> Option<DynamicMessage> {
        let rows = self.0.get_field_by_name("translations").unwrap();
        let row = rows.as_map()?.get(&MapKey::String(language.to_owned()))?;
        row.as_message().cloned()
    }

    fn set_row(&mut self, language: &str, row: DynamicMessage) {
        let language = MapKey::String(language.to_owned());
        self.rows().insert(language, Value::Message(row));
    }

    /// Writes a whole row: it is locked unless it says otherwise.
    fn write_row(&mut self, language: &str, sent: &DynamicMessage) {
        let mut row = sent.clone();
        copy(&mut row, "locked", sent);
        self.set_row(language, row);
    }

    fn write_path(&mut self, path: &str, sent: &Self) {
        if path == "translations" {
            self.rows().clear();
            return self.merge_rows(sent);
        }
        let Some((language, field)) = split_row_path(path) else {
            return copy(&mut self.0, path, &sent.0);
        };
        let sent_row = sent.row(&language);
        if field.is_empty() {
            match sent_row {
                Some(row) => self.write_row(&language, &row),
                None => drop(self.rows().remove(&MapKey::String(language))),
            }
            return;
        }
        let name = format!("{}Translation", self.0.descriptor().name());
        let empty = DynamicMessage::new(descriptor(&name));
        if self.row(&language).is_none() {
            self.write_row(&language, &empty);
        }
        let mut row = self.row(&language).unwrap();
        copy(&mut row, &field, &sent_row.unwrap_or(empty));
        self.set_row(&language, row);
    }

    /// A change to a part of a row locks it, unless the mask also names its lock.
    fn lock_edited(&mut self, path: &str, mask: &[String]) {
        let Some((language, field)) = split_row_path(path) else {
            return;
        };
        let lock = (language.clone(), "locked".to_owned());
        let mut named = mask.iter().filter_map(|path| split_row_path(path));
        if !field.is_empty()
            && !named.any(|named| (named.0.to_string(), named.1.to_string()) == lock)
            && let Some(mut row) = self.row(&language)
        {
            row.set_field_by_name("locked", Value::Bool(true));
            self.set_row(&language, row);
        }
    }

    fn merge_rows(&mut self, sent: &Self) {
        for language in LANGUAGES {
            if let Some(row) = sent.row(language) {
                self.write_row(language, &row);
            }
        }
    }

    /// The resource after the update; `None` when it must be refused.
    fn edited<T: Masked>(&self, update: &Update<T>) -> Option<T> {
        let (mut after, sent) = (self.clone(), Self::of(&update.sent));
        match update.mask.as_slice() {
            [] => {
                let populated = |field: &&&str| sent.0.has_field_by_name(field);
                for field in T::FIELDS.iter().filter(populated) {
                    after.write_path(field, &sent);
                }
                after.merge_rows(&sent);
            }
            [star] if star == "*" => {
                for field in T::FIELDS.iter().chain(&["translations"]) {
                    after.write_path(field, &sent);
                }
            }
            paths => {
                paths.iter().for_each(|path| after.write_path(path, &sent));
                paths.iter().for_each(|path| after.lock_edited(path, paths));
            }
        }
        let resource: T = after.resource();
        resource.is_valid().then_some(resource)
    }

    /// The update without cases that the contract leaves open: sub-paths that would
    /// create an empty row.
    fn unambiguous<T: Masked>(&self, mut update: Update<T>) -> Update<T> {
        let sent = Self::of(&update.sent);
        update.mask.retain(|path| match split_row_path(path) {
            Some((language, field)) if !field.is_empty() => {
                let name = T::ROW_FIELDS[0];
                let sent_row = sent.row(&language);
                let named = sent_row.is_some_and(|row| row.has_field_by_name(name));
                self.row(&language).is_some() || (field == name && named)
            }
            _ => true,
        });
        update
    }
}

/// Asserts that each update leaves what the same edit of the model does.
async fn updates_equal_edits<T: Masked>(client: &Client, updates: Vec<Update<T>>) {
    let mut stored = T::store(client).await;
    for update in updates {
        let before = Model::of(&stored);
        let update = before.unambiguous(update);
        let mask: Vec<&str> = update.mask.iter().map(String::as_str).collect();
        let (guid, etag, modified) = stored.id_and_version();
        let sent = update.sent.clone().with_id(guid);
        let outcome = match update.imported && mask.is_empty() {
            true => T::import(client, sent).await,
            false => T::update(client, sent, &mask).await,
        };
        let Some(expected) = before.edited(&update) else {
            assert_eq!(outcome.refused().code, Code::InvalidArgument);
            assert_eq!(T::read(client, guid).await, stored);
            continue;
        };
        let answered = outcome.accepted();
        assert_eq!(Model::of(&answered).resource::<T>(), expected);
        let changed = expected != before.resource();
        let (_, new_etag, new_modified) = answered.id_and_version();
        assert_eq!(new_etag != etag, changed);
        assert_eq!(new_modified != modified, changed);
        stored = T::read(client, guid).await;
        assert_eq!(stored, answered);
    }
}

#[apply(property_on_both_databases)]
#[cases(12, vec(update::<Task>(), 1..8))]
async fn masked_task_updates_equal_edits_of_a_model(client: Client, updates: Vec<Update<Task>>) {
    updates_equal_edits(&client, updates).await;
}

#[apply(property_on_both_databases)]
#[cases(12, vec(update::<Step>(), 1..8))]
async fn masked_step_updates_equal_edits_of_a_model(client: Client, updates: Vec<Update<Step>>) {
    updates_equal_edits(&client, updates).await;
}
