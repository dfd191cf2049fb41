//! An update of a task by any mask equals the same edit on a model.

use std::collections::BTreeMap;

use crate::kit::prelude::*;
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{select, subsequence},
};

on_both_databases! {
    masked_updates_equal_edits_of_a_model: vec(update(), 1..8), 24;
}

const LANGUAGES: [&str; 3] = ["de", "en", "zh-Hant"];

/// The fields of a task that masks reach.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    name: String,
    published: Option<i32>,
    roles: Vec<i32>,
    dependencies: Option<DependencyGroup>,
    translations: BTreeMap<String, TaskTranslation>,
}

/// What a path names.
#[derive(Clone, Debug)]
enum Path {
    Name,
    Published,
    Roles,
    Dependencies,
    Translations,
    Language(&'static str),
    NameIn(&'static str),
    LockIn(&'static str),
}

#[derive(Clone, Debug)]
enum Mask {
    Absent,
    Star,
    Paths(Vec<Path>),
}

#[derive(Clone, Debug)]
struct Update {
    sent: Model,
    mask: Mask,
}

fn model() -> impl Strategy<Value = Model> {
    let names = select(&["", "A", "B", "Ü🔧"][..]);
    let roles = subsequence(vec![8, 0, 5, 2], 0..4);
    let dependencies = select(vec![
        None,
        Some(all_of(vec![when("a", "=", "1")])),
        full_task().dependencies,
    ]);
    let row = (
        option::of(select(&["x", "y"][..])),
        option::of(any::<bool>()),
    );
    let row = row.prop_map(|(name, locked)| TaskTranslation {
        name: name.map(str::to_owned),
        locked,
    });
    let rows = btree_map(select(&LANGUAGES[..]).prop_map(str::to_owned), row, 0..3);
    (names, option::of(0..3), roles, dependencies, rows).prop_map(
        |(name, published, roles, dependencies, translations)| Model {
            name: name.to_owned(),
            published,
            roles,
            dependencies,
            translations,
        },
    )
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    let plain = subsequence(
        vec![Path::Name, Path::Published, Path::Roles, Path::Dependencies],
        0..=4,
    );
    // Paths into each language, or the whole map.
    let within = |language| {
        select(vec![
            vec![],
            vec![Path::Language(language)],
            vec![Path::NameIn(language)],
            vec![Path::LockIn(language)],
            vec![Path::LockIn(language), Path::NameIn(language)],
        ])
    };
    let rows = LANGUAGES.map(within).prop_map(|paths| paths.concat());
    let map = prop_oneof![3 => rows, 1 => Just(vec![Path::Translations])];
    (plain, map)
        .prop_map(|(plain, map)| [plain, map].concat())
        .prop_filter("no path is no mask", |paths| !paths.is_empty())
        .prop_shuffle()
}

fn update() -> impl Strategy<Value = Update> {
    let mask = prop_oneof![
        2 => Just(Mask::Absent),
        1 => Just(Mask::Star),
        5 => paths().prop_map(Mask::Paths),
    ];
    (model(), mask).prop_map(|(sent, mask)| Update { sent, mask })
}

impl Path {
    fn text(&self) -> String {
        match self {
            Self::Name => "name".to_owned(),
            Self::Published => "published".to_owned(),
            Self::Roles => "roles".to_owned(),
            Self::Dependencies => "dependencies".to_owned(),
            Self::Translations => "translations".to_owned(),
            Self::Language(language) => format!("translations.{language}"),
            Self::NameIn(language) => format!("translations.`{language}`.name"),
            Self::LockIn(language) => format!("translations.{language}.locked"),
        }
    }
}

/// The stored row after a write of the whole row.
fn written(row: &TaskTranslation) -> TaskTranslation {
    TaskTranslation {
        name: row.name.clone(),
        locked: row.locked.or(Some(true)),
    }
}

impl Model {
    fn message(&self, guid: &str) -> Task {
        Task {
            guid: guid.to_owned(),
            name: self.name.clone(),
            published: self.published,
            roles: self.roles.clone(),
            dependencies: self.dependencies.clone(),
            translations: self.translations.clone(),
            ..Task::default()
        }
    }

    fn of(task: &Task) -> Self {
        Self {
            name: task.name.clone(),
            published: task.published,
            roles: task.roles.clone(),
            dependencies: task.dependencies.clone(),
            translations: task.translations.clone(),
        }
    }

    /// The model after the update; `None` when it must be refused.
    fn edited(&self, update: &Update) -> Option<Self> {
        let mut after = self.clone();
        match &update.mask {
            Mask::Absent => after.merge(&update.sent),
            Mask::Star => {
                for path in [
                    Path::Name,
                    Path::Published,
                    Path::Roles,
                    Path::Dependencies,
                    Path::Translations,
                ] {
                    after.set(&path, &update.sent);
                }
            }
            Mask::Paths(paths) => paths.iter().for_each(|p| after.set(p, &update.sent)),
        }
        (!after.name.is_empty() && !after.roles.is_empty()).then_some(after)
    }

    fn merge(&mut self, sent: &Self) {
        if !sent.name.is_empty() {
            self.name.clone_from(&sent.name);
        }
        self.published = sent.published.or(self.published);
        if !sent.roles.is_empty() {
            self.roles.clone_from(&sent.roles);
        }
        if sent.dependencies.is_some() {
            self.dependencies.clone_from(&sent.dependencies);
        }
        for (language, row) in &sent.translations {
            self.translations.insert(language.clone(), written(row));
        }
    }

    fn set(&mut self, path: &Path, sent: &Self) {
        match path {
            Path::Name => self.name.clone_from(&sent.name),
            Path::Published => self.published = sent.published.or(Some(1)),
            Path::Roles => self.roles.clone_from(&sent.roles),
            Path::Dependencies => self.dependencies.clone_from(&sent.dependencies),
            Path::Translations => {
                let rows = sent.translations.iter();
                self.translations = rows.map(|(k, row)| (k.clone(), written(row))).collect();
            }
            Path::Language(language) => match sent.translations.get(*language) {
                Some(row) => {
                    self.translations
                        .insert((*language).to_owned(), written(row));
                }
                None => {
                    self.translations.remove(*language);
                }
            },
            Path::NameIn(language) => self.row(language).name = sent.name_in(language),
            Path::LockIn(language) => {
                let row = sent.translations.get(*language);
                let locked = row.and_then(|row| row.locked);
                self.row(language).locked = locked.or(Some(true));
            }
        }
    }

    fn name_in(&self, language: &str) -> Option<String> {
        self.translations.get(language)?.name.clone()
    }

    /// The row of a language, made locked when there is none.
    fn row(&mut self, language: &str) -> &mut TaskTranslation {
        self.translations
            .entry(language.to_owned())
            .or_insert(TaskTranslation {
                name: None,
                locked: Some(true),
            })
    }
}

impl Update {
    /// The update without cases that the contract leaves open: sub-paths that would
    /// create an empty row, and a star without roles.
    fn unambiguous(mut self, before: &Model) -> Self {
        match &mut self.mask {
            Mask::Absent => {}
            Mask::Star if self.sent.roles.is_empty() => self.sent.roles.push(0),
            Mask::Star => {}
            Mask::Paths(paths) => paths.retain(|path| match path {
                Path::NameIn(language) => {
                    before.translations.contains_key(*language)
                        || self.sent.name_in(language).is_some()
                }
                Path::LockIn(language) => before.translations.contains_key(*language),
                _ => true,
            }),
        }
        if matches!(&self.mask, Mask::Paths(paths) if paths.is_empty()) {
            self.mask = Mask::Absent;
        }
        self
    }

    fn mask(&self) -> Vec<String> {
        match &self.mask {
            Mask::Absent => Vec::new(),
            Mask::Star => vec!["*".to_owned()],
            Mask::Paths(paths) => paths.iter().map(Path::text).collect(),
        }
    }
}

async fn masked_updates_equal_edits_of_a_model(client: Client, updates: Vec<Update>) {
    let mut stored = client.given_task(full_task()).await;
    for update in updates {
        let before = Model::of(&stored);
        let update = update.unambiguous(&before);
        let mask = update.mask();
        let mask: Vec<&str> = mask.iter().map(String::as_str).collect();
        let sent = update.sent.message(&stored.guid);
        let outcome = client.update_task(sent, &mask).await;
        let Some(expected) = before.edited(&update) else {
            assert_eq!(outcome.refused().code, Code::InvalidArgument);
            let unchanged = client.get_task(&stored.guid).await.accepted();
            assert_eq!(unchanged, stored);
            continue;
        };
        let answered = outcome.accepted().task.unwrap();
        assert_eq!(Model::of(&answered), expected);
        let changed = expected != before;
        assert_eq!(answered.etag != stored.etag, changed);
        assert_eq!(answered.modified_ts != stored.modified_ts, changed);
        stored = client.get_task(&stored.guid).await.accepted();
        assert_eq!(stored, answered);
    }
}
