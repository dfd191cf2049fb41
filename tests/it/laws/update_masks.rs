//! An update by any mask equals the same edit of a model, for tasks and for steps. An import
//! changes what an update without a mask does.

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
    sample::{select, subsequence},
};
use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage, Value as Field};
use serde_json::{Map, Value, json};
use tonic::Status;

use crate::{
    kit::contract::{descriptor, json as json_of},
    laws::every_field::{
        Resource, content_fields, dynamic, is_fixed, remove_unlinked, typed, value,
    },
    prelude::*,
};

const LANGUAGES: [&str; 2] = ["de", "zh-Hant"];

/// A resource that masks select fields of.
trait Masked: Resource + 'static {
    /// Whether the resource may be stored.
    fn is_valid(&self) -> bool;
    async fn store(client: &Client) -> Self;
    async fn try_update(self, client: &Client, mask: &[&str]) -> Result<(), Status>;
}

impl Masked for Task {
    fn is_valid(&self) -> bool {
        !self.name.is_empty() && !self.roles.is_empty()
    }

    async fn store(client: &Client) -> Self {
        client.given_task(full_task()).await
    }

    async fn try_update(self, client: &Client, mask: &[&str]) -> Result<(), Status> {
        client.update_task(self, mask).await.map(drop)
    }
}

impl Masked for Step {
    fn is_valid(&self) -> bool {
        !self.title.is_empty() && self.cost != Some(1)
    }

    async fn store(client: &Client) -> Self {
        let task = client.given_task(task("Masked")).await;
        let sent = step(&task, StepType::Solution, "Start");
        client.given_step(sent).await
    }

    async fn try_update(self, client: &Client, mask: &[&str]) -> Result<(), Status> {
        client.update_step(self, mask).await.map(drop)
    }
}

/// The fields that an update may write, but for the translations.
fn fields<T: Masked>() -> Vec<FieldDescriptor> {
    let mut fields = content_fields::<T>();
    fields.retain(|field| {
        let is_of_subtasks = field.name().starts_with("subtask_");
        !is_fixed(field) && !is_of_subtasks && field.name() != "translations"
    });
    fields
}

/// The fields of a row; the first one is its name or title.
fn row_fields<T: Masked>() -> Vec<FieldDescriptor> {
    let row = descriptor(&format!("{}Translation", T::NAME));
    row.fields().collect()
}

/// Some of the fields, with few values each.
fn any_content(fields: Vec<FieldDescriptor>) -> impl Strategy<Value = Map<String, Value>> {
    let fields = fields.into_iter().map(|field| {
        let name = Just(field.name().to_owned());
        (name, option::of(any_value(&field)))
    });
    let fields: Vec<_> = fields.collect();
    fields.prop_map(|fields| {
        let set = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        set.collect()
    })
}

/// A value of a field; of a text, unless its name is known.
fn any_value(field: &FieldDescriptor) -> BoxedStrategy<Value> {
    let question = |keys: &[&str]| {
        let values = keys.iter().map(|key| json!({"key": key, "value": key}));
        let values: Vec<Value> = values.collect();
        json!([{"name": "q", "type": "enum", "values": values}])
    };
    match field.name() {
        "roles" => subsequence(vec![8, 0, 5, 2], 0..4)
            .prop_map(Value::from)
            .boxed(),
        "published" | "cost" => (0..4).prop_map(Value::from).boxed(),
        "locked" => any::<bool>().prop_map(Value::from).boxed(),
        "dependencies" => {
            let read = json!({"variable": "a", "operator": "<", "targets": ["1"]});
            let other = json!({"operator": 1, "nodes": [{"condition": read}]});
            select(vec![value(field), other]).boxed()
        }
        "feedback_config" => {
            select(vec![json!([]), question(&["a"]), question(&["a", "b"])]).boxed()
        }
        "looping" => select(vec![value(field), json!({})]).boxed(),
        "instructions" => {
            let one = select(vec![json!({}), json!({"b": [1, null], "a": {"x": true}})]);
            vec(one, 0..3).prop_map(Value::from).boxed()
        }
        "parts" | "skills" | "tags" => vec(select(vec!["a", "b"]), 0..3)
            .prop_map(Value::from)
            .boxed(),
        _ => select(vec!["A", "Ü 🔧"]).prop_map(Value::from).boxed(),
    }
}

/// Resources to send.
fn any_sent<T: Masked>() -> impl Strategy<Value = T> {
    let language = select(&LANGUAGES[..]).prop_map(str::to_owned);
    let rows = btree_map(language, any_content(row_fields::<T>()), 0..=2);
    (any_content(fields::<T>()), rows).prop_map(|(mut content, rows)| {
        content.insert("translations".to_owned(), json!(rows));
        typed(content)
    })
}

/// An update of a resource.
#[derive(Clone, Debug)]
struct Update<T> {
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
    (any_sent(), mask, imported).prop_map(|(sent, mask, imported)| Update {
        sent,
        mask,
        imported,
    })
}

fn paths<T: Masked>() -> impl Strategy<Value = Vec<String>> {
    // Paths into each language, or the whole map.
    let row_paths = |language: &'static str| {
        let fields = row_fields::<T>().into_iter().enumerate();
        // Quotes around a language are optional: only the path of the first field has them.
        let below = fields.map(|(index, field)| match index {
            0 => format!("translations.`{language}`.{}", field.name()),
            _ => format!("translations.{language}.{}", field.name()),
        });
        prop_oneof![
            1 => Just(vec![format!("translations.{language}")]),
            2 => subsequence(below.collect::<Vec<_>>(), 0..=row_fields::<T>().len().min(3)),
        ]
    };
    let rows = LANGUAGES.map(row_paths).prop_map(|paths| paths.concat());
    let map = prop_oneof![3 => rows, 1 => Just(vec!["translations".to_owned()])];
    let fields = fields::<T>().into_iter();
    let fields: Vec<String> = fields.map(|field| field.name().to_owned()).collect();
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
        "published" => to.set_field_by_name(field, Field::I32(1)),
        "cost" => to.set_field_by_name(field, Field::I32(0)),
        "locked" => to.set_field_by_name(field, Field::Bool(true)),
        _ => to.clear_field_by_name(field),
    }
}

impl Model {
    fn of<T: Masked>(resource: &T) -> Self {
        let mut content = json_of(&dynamic(resource));
        remove_unlinked(&mut content);
        let whole = DynamicMessage::deserialize(descriptor(T::NAME), content).unwrap();
        let mut reached = DynamicMessage::new(descriptor(T::NAME));
        for field in Self::fields::<T>() {
            if whole.has_field_by_name(&field) {
                copy(&mut reached, &field, &whole);
            }
        }
        Self(reached)
    }

    fn fields<T: Masked>() -> Vec<String> {
        let fields = fields::<T>()
            .into_iter()
            .map(|field| field.name().to_owned());
        fields.chain(["translations".to_owned()]).collect()
    }

    fn resource<T: Masked>(&self) -> T {
        self.0.transcode_to().unwrap()
    }

    fn rows(&mut self) -> &mut std::collections::HashMap<MapKey, Field> {
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
        self.rows().insert(language, Field::Message(row));
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
            row.set_field_by_name("locked", Field::Bool(true));
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
                let fields = fields::<T>().into_iter();
                for field in fields.filter(|field| sent.0.has_field(field)) {
                    after.write_path(field.name(), &sent);
                }
                after.merge_rows(&sent);
            }
            [star] if star == "*" => {
                for field in Self::fields::<T>() {
                    after.write_path(&field, &sent);
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
                let name = &row_fields::<T>()[0];
                let sent_row = sent.row(&language);
                let named = sent_row.is_some_and(|row| row.has_field(name));
                self.row(&language).is_some() || (field == name.name() && named)
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
        let sent = update.sent.clone().with_place_of(&stored);
        let outcome = match update.imported && mask.is_empty() {
            true => client.import(sent.in_document()).await.map(drop),
            false => sent.try_update(client, &mask).await,
        };
        let after = T::get(client, stored.guid()).await;
        let Some(expected) = before.edited(&update) else {
            assert_eq!(outcome.refused().code, Code::InvalidArgument);
            assert_eq!(after, stored);
            continue;
        };
        outcome.accepted();
        assert_eq!(Model::of(&after).resource::<T>(), expected);
        let changed = expected != before.resource();
        for field in ["etag", "modified_ts"] {
            let [before, after] = [&stored, &after].map(|it| {
                let field = dynamic(it)
                    .get_field_by_name(field)
                    .map(|it| it.into_owned());
                field.expect("a field")
            });
            assert_eq!(before != after, changed, "{field}");
        }
        stored = after;
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
