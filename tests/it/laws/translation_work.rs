//! After any history of edits, translations, locks and automatic writes, the listed
//! work is the model's.

use crate::kit::prelude::*;
use proptest::{collection::vec, option, prelude::*};
use std::collections::{BTreeMap, BTreeSet};

/// The languages that are written.
const LANGUAGES: [&str; 2] = ["de", "de-CH"];
/// A language without any translation, so that its work lists every digest.
const UNWRITTEN: &str = "tlh";

/// Few texts, so that sources often change back and rows are often rewritten unchanged.
const TEXTS: [&str; 3] = ["one", "two", "three"];

/// Which task or step, of those that there are.
type Pick = usize;

/// The source that an automatic translation names.
#[derive(Clone, Debug)]
enum NamedSource {
    Current,
    /// From any source that was ever seen.
    Seen(usize),
    Unknown,
}

/// What a person does to a row.
#[derive(Clone, Debug)]
enum Row {
    /// Writes it whole.
    Put {
        text: Option<usize>,
        locked: Option<bool>,
    },
    /// Writes its text alone.
    Text(usize),
    /// Locks or unlocks it alone.
    Lock(bool),
    Remove,
}

/// One change to an account.
#[derive(Clone, Debug)]
enum Change {
    CreateTask(usize),
    CreateStep(Pick, usize),
    CreateSubtask(Pick, Pick),
    /// A new name or title; with a row, in one update.
    EditName(Pick, usize, Option<(usize, usize, bool)>),
    EditBody(Pick, Option<usize>),
    EditRow(Pick, usize, Row),
    /// Several writes of a machine in one call.
    Automatic(Vec<(Pick, usize, Option<usize>, NamedSource)>),
    Delete(Pick),
}

fn pick() -> impl Strategy<Value = Pick> {
    any::<Pick>()
}

fn named_source() -> impl Strategy<Value = NamedSource> {
    prop_oneof![
        4 => Just(NamedSource::Current),
        2 => any::<usize>().prop_map(NamedSource::Seen),
        1 => Just(NamedSource::Unknown),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let text = 0..TEXTS.len();
    prop_oneof![
        4 => (option::weighted(0.8, text.clone()), any::<Option<bool>>())
            .prop_map(|(text, locked)| Row::Put { text, locked }),
        2 => text.prop_map(Row::Text),
        3 => any::<bool>().prop_map(Row::Lock),
        1 => Just(Row::Remove),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let text = 0..TEXTS.len();
    let language = 0..LANGUAGES.len();
    let new_row = (language.clone(), text.clone(), any::<bool>());
    let write = (
        pick(),
        language.clone(),
        option::weighted(0.9, text.clone()),
        named_source(),
    );
    prop_oneof![
        2 => text.clone().prop_map(Change::CreateTask),
        2 => (pick(), text.clone()).prop_map(|(task, text)| Change::CreateStep(task, text)),
        2 => (pick(), pick()).prop_map(|(task, other)| Change::CreateSubtask(task, other)),
        4 => (pick(), text.clone(), option::weighted(0.2, new_row))
            .prop_map(|(what, text, row)| Change::EditName(what, text, row)),
        2 => (pick(), option::weighted(0.7, text)).prop_map(|(step, text)| Change::EditBody(step, text)),
        8 => (pick(), language, row()).prop_map(|(what, language, row)| Change::EditRow(what, language, row)),
        6 => vec(write, 1..4).prop_map(Change::Automatic),
        1 => pick().prop_map(Change::Delete),
    ]
}

/// The texts of a task or step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    is_step: bool,
    name: String,
    body: Option<String>,
}

/// A translation: its text, its lock, and the source it was made from.
#[derive(Clone, Debug, PartialEq)]
struct Translation {
    text: Option<String>,
    locked: bool,
    made: Source,
}

#[derive(Clone, Debug)]
struct Resource {
    guid: String,
    /// The task that a step is in.
    task: Option<String>,
    /// The task that a subtask step stands for.
    other: Option<String>,
    source: Source,
    rows: BTreeMap<&'static str, Translation>,
}

/// What the model knows of an account.
#[derive(Default)]
struct Model {
    resources: Vec<Resource>,
    /// The digest of every source that was ever seen.
    digests: BTreeMap<Source, String>,
    /// Ids of what was deleted.
    deleted_ids: Vec<String>,
}

impl Resource {
    fn new(guid: String, source: Source) -> Self {
        Self {
            guid,
            task: None,
            other: None,
            source,
            rows: BTreeMap::new(),
        }
    }

    /// Applies a person's edit to a row.
    fn edit(&mut self, language: &'static str, text: Option<String>, locked: Option<bool>) {
        let known = self.rows.remove(language);
        let made = match known {
            // Unchanged texts keep the source that they were made from.
            Some(known) if known.text == text => known.made,
            _ => self.source.clone(),
        };
        let locked = locked.unwrap_or(true);
        self.rows
            .insert(language, Translation { text, locked, made });
    }

    fn state(&self, language: &str) -> Option<TranslationState> {
        match self.rows.get(language) {
            None => Some(TranslationState::Missing),
            Some(row) if !row.locked && row.made != self.source => Some(TranslationState::Outdated),
            Some(_) => None,
        }
    }

    /// Calls an update with this name or title, if any, and this row, if any.
    async fn update(
        &self,
        client: &Client,
        name: Option<&str>,
        row: Option<(&str, Option<&str>, Option<bool>)>,
        mask: &[&str],
    ) {
        let name = name.unwrap_or_default().to_owned();
        let row = row.map(|(language, text, locked)| {
            let text = text.map(str::to_owned);
            (language.to_owned(), text, locked)
        });
        if self.source.is_step {
            let row = row.map(|(language, title, locked)| {
                let row = StepTranslation::default()
                    .with(|it| it.title = title)
                    .with(|it| it.locked = locked);
                (language, row)
            });
            let update = step_of(&self.guid)
                .titled(name)
                .with_translations(row.into_iter().collect());
            client.updated_step(update, mask).await;
        } else {
            let row =
                row.map(|(language, name, locked)| (language, TaskTranslation { name, locked }));
            let update = task_of(&self.guid)
                .named(name)
                .with_translations(row.into_iter().collect());
            client.updated_task(update, mask).await;
        }
    }
}

impl Model {
    /// The index of the resource picked among those that fit.
    fn pick(&self, pick: Pick, fits: impl Fn(&Resource) -> bool) -> Option<usize> {
        let all = self.resources.iter().enumerate();
        let fitting: Vec<usize> = all.filter(|(_, r)| fits(r)).map(|(n, _)| n).collect();
        (!fitting.is_empty()).then(|| fitting[pick % fitting.len()])
    }

    fn task(&self, pick: Pick) -> Option<&Resource> {
        let index = self.pick(pick, |resource| !resource.source.is_step)?;
        Some(&self.resources[index])
    }

    /// Makes the change by calls and in the model.
    async fn apply(&mut self, client: &Client, change: &Change) {
        match change {
            Change::CreateTask(text) => self.create_task(client, TEXTS[*text]).await,
            Change::CreateStep(task, text) => self.create_step(client, *task, TEXTS[*text]).await,
            Change::CreateSubtask(task, other) => self.create_subtask(client, *task, *other).await,
            Change::EditName(what, text, row) => {
                self.edit_name(client, *what, TEXTS[*text], *row).await;
            }
            Change::EditBody(step, text) => {
                self.edit_body(client, *step, text.map(|text| TEXTS[text]))
                    .await;
            }
            Change::EditRow(what, language, row) => {
                self.edit_row(client, *what, LANGUAGES[*language], row)
                    .await;
            }
            Change::Automatic(writes) => self.automatic(client, writes).await,
            Change::Delete(what) => self.delete(client, *what).await,
        }
    }

    async fn create_task(&mut self, client: &Client, name: &str) {
        let guid = client.given_task(task(name)).await.guid;
        let source = Source {
            is_step: false,
            name: name.to_owned(),
            body: None,
        };
        self.resources.push(Resource::new(guid, source));
    }

    async fn create_step(&mut self, client: &Client, task: Pick, title: &str) {
        let types = [
            StepType::Information,
            StepType::Solution,
            StepType::End,
            StepType::Idp,
        ];
        let step_type = types[task % types.len()];
        let Some(task) = self.task(task) else { return };
        let guide = task.guid.clone();
        let guid = client
            .given_step(step(&task_of(&guide), step_type, title))
            .await
            .guid;
        let source = Source {
            is_step: true,
            name: title.to_owned(),
            body: None,
        };
        self.resources.push(Resource {
            task: Some(guide),
            ..Resource::new(guid, source)
        });
    }

    async fn create_subtask(&mut self, client: &Client, task: Pick, other: Pick) {
        let (Some(task), Some(other)) = (self.task(task), self.task(other)) else {
            return;
        };
        let (guide, other) = (task.guid.clone(), other.clone());
        let target = task_of(&other.guid).with_product(PRODUCT);
        let step = client.given_step(subtask(&task_of(&guide), &target)).await;
        let source = Source {
            is_step: true,
            name: other.source.name,
            body: None,
        };
        self.resources.push(Resource {
            task: Some(guide),
            other: Some(other.guid),
            ..Resource::new(step.guid, source)
        });
    }

    async fn edit_name(
        &mut self,
        client: &Client,
        what: Pick,
        name: &str,
        row: Option<(usize, usize, bool)>,
    ) {
        let Some(index) = self.pick(what, |resource| resource.other.is_none()) else {
            return;
        };
        let resource = &mut self.resources[index];
        let row = row.map(|(language, text, locked)| (LANGUAGES[language], TEXTS[text], locked));
        let sent = row.map(|(language, text, locked)| (language, Some(text), Some(locked)));
        resource.update(client, Some(name), sent, &[]).await;
        resource.source.name = name.to_owned();
        if let Some((language, text, locked)) = row {
            resource.edit(language, Some(text.to_owned()), Some(locked));
        }
        let renamed = Some(resource.guid.clone());
        for step in &mut self.resources {
            if step.other == renamed {
                step.source.name = name.to_owned();
            }
        }
    }

    async fn edit_body(&mut self, client: &Client, step: Pick, body: Option<&str>) {
        let Some(index) = self.pick(step, |resource| resource.source.is_step) else {
            return;
        };
        let resource = &mut self.resources[index];
        let body = body.map(str::to_owned);
        let update = step_of(&resource.guid).with(|it| it.body = body.clone());
        client.updated_step(update, &["body"]).await;
        resource.source.body = body;
    }

    async fn edit_row(&mut self, client: &Client, what: Pick, language: &'static str, row: &Row) {
        let Some(index) = self.pick(what, |_| true) else {
            return;
        };
        let resource = &mut self.resources[index];
        let at = format!("translations.{language}");
        let field = if resource.source.is_step {
            "title"
        } else {
            "name"
        };
        let known = resource.rows.get(language);
        match row {
            Row::Put { text, locked } => {
                let text = text.map(|text| TEXTS[text]);
                let sent = Some((language, text, *locked));
                resource.update(client, None, sent, &[&at]).await;
                resource.edit(language, text.map(str::to_owned), *locked);
            }
            Row::Text(text) => {
                let text = TEXTS[*text];
                let sent = Some((language, Some(text), None));
                let mask = format!("{at}.{field}");
                resource.update(client, None, sent, &[&mask]).await;
                // A person's edit locks it.
                resource.edit(language, Some(text.to_owned()), None);
            }
            Row::Lock(locked) => {
                let text = known.and_then(|known| known.text.clone());
                let sent = Some((language, None, Some(*locked)));
                let mask = format!("{at}.locked");
                resource.update(client, None, sent, &[&mask]).await;
                resource.edit(language, text, Some(*locked));
            }
            Row::Remove => {
                resource.update(client, None, None, &[&at]).await;
                resource.rows.remove(language);
            }
        }
    }

    async fn automatic(
        &mut self,
        client: &Client,
        writes: &[(Pick, usize, Option<usize>, NamedSource)],
    ) {
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        let mut changed = BTreeSet::new();
        // The service refuses the whole request if one of its writes has no text.
        let complete = writes.iter().all(|(_, _, text, _)| text.is_some());
        for (what, language, text, made) in writes {
            let language = LANGUAGES[*language];
            let text = text.map(|text| TEXTS[text].to_owned());
            let count = self.resources.len() + self.deleted_ids.len();
            if count == 0 {
                return;
            }
            let index = *what % count;
            let source = self.resources.get(index).map(|known| known.source.clone());
            let translated_from = match made {
                NamedSource::Current => source.clone(),
                NamedSource::Seen(index) => {
                    let seen: Vec<&Source> = self.digests.keys().collect();
                    Some(seen[index % seen.len()].clone())
                }
                NamedSource::Unknown => None,
            };
            let digest = translated_from
                .as_ref()
                .map(|source| self.digests[source].clone());
            // The same language in any case.
            let written = match sent.len() % 2 {
                0 => language.to_owned(),
                _ => language.to_uppercase(),
            };
            let mut translation = AutomaticTranslation::default()
                .with(|it| it.language = written)
                .with(|it| it.source_digest = digest.unwrap_or_else(|| "nonsense".to_owned()));
            let Some(resource) = self.resources.get_mut(index) else {
                translation.guid = self.deleted_ids[index - self.resources.len()].clone();
                translation.name = text;
                sent.push(translation);
                expected.push(TranslationResult::NotFound);
                continue;
            };
            translation.guid = resource.guid.clone();
            if resource.source.is_step {
                translation.title = text.clone();
            } else {
                translation.name = text.clone();
            }
            sent.push(translation);
            let known = resource.rows.get(language);
            expected.push(if known.is_some_and(|known| known.locked) {
                TranslationResult::SkippedLocked
            } else if translated_from.as_ref() != Some(&resource.source) {
                TranslationResult::Stale
            } else {
                let made = resource.source.clone();
                let locked = false;
                if complete {
                    let row = Translation { text, locked, made };
                    if known != Some(&row) {
                        changed.insert(resource.guid.clone());
                    }
                    resource.rows.insert(language, row);
                }
                TranslationResult::Written
            });
        }
        let before = versions(client).await;
        let outcome = client.write_translations(sent).await;
        let after = versions(client).await;
        if !complete {
            let failure = outcome.refused();
            failure.is(Code::InvalidArgument, "FIELD_REQUIRED");
            assert_eq!(after, before);
            return;
        }
        let response = outcome.accepted();
        let results: Vec<_> = response.results().collect();
        assert_eq!(results, expected);
        // Exactly what was written has a new version: the task of a step keeps its own.
        for (guid, (etag, modified)) in &before {
            let is_changed = changed.contains(guid);
            assert_eq!(after[guid].0 != *etag, is_changed, "{guid}");
            assert_eq!(after[guid].1 != *modified, is_changed, "{guid}");
        }
        let Some(guid) = changed.first() else {
            return;
        };
        let etag = before[guid].0.clone();
        let mut all = self.resources.iter();
        let failure = if all.any(|it| it.guid == *guid && it.source.is_step) {
            let update = step_of(guid).with_etag(etag);
            client.update_step(update, &["body"]).await.refused()
        } else {
            let update = task_of(guid).with_etag(etag);
            client.update_task(update, &["published"]).await.refused()
        };
        failure.is(Code::Aborted, "ETAG_MISMATCH");
    }

    async fn delete(&mut self, client: &Client, what: Pick) {
        let Some(index) = self.pick(what, |_| true) else {
            return;
        };
        let Resource { guid, source, .. } = self.resources[index].clone();
        if source.is_step {
            client.delete_step(&guid).await.accepted();
            self.resources.remove(index);
            self.deleted_ids.push(guid);
            return;
        }
        let request = deletion_of(&guid).with(|it| it.force = true);
        let outcome = client.call(request).await;
        let this = Some(&guid);
        let is_inside = |resource: &Resource| resource.task.as_ref() == this;
        let refers = |resource: &Resource| resource.other.as_ref() == this;
        let mut all = self.resources.iter();
        if all.any(|resource| refers(resource) && !is_inside(resource)) {
            outcome.refused().is_precondition("TASK_REFERENCED");
            return;
        }
        outcome.accepted();
        let is_deleted = |resource: &Resource| resource.guid == guid || is_inside(resource);
        let deleted = self
            .resources
            .extract_if(.., |resource| is_deleted(resource));
        self.deleted_ids
            .extend(deleted.map(|resource| resource.guid));
    }

    /// Reads the digests of the current sources. Digests are equal for equal sources
    /// alone.
    async fn read_digests(&mut self, client: &Client) {
        let work = client.translation_work(&[UNWRITTEN]).await;
        let digests: BTreeMap<String, String> = work
            .into_iter()
            .map(|item| (item.guid, item.source_digest))
            .collect();
        assert_eq!(digests.len(), self.resources.len());
        for resource in &self.resources {
            let digest = &digests[&resource.guid];
            let source = resource.source.clone();
            let known = self.digests.entry(source).or_insert_with(|| digest.clone());
            assert_eq!(known, digest, "{resource:?}");
        }
        let different: BTreeSet<&String> = self.digests.values().collect();
        assert_eq!(different.len(), self.digests.len());
    }

    /// Asserts that the work is the model's, page for page.
    async fn assert_work(&self, client: &Client, page_size: i32) {
        let request = translation_work_request(&LANGUAGES).with_page_size(page_size);
        let work = client.list(request).await;
        let mut found: Vec<_> = work
            .into_iter()
            .map(|item| {
                let state = item.state();
                let source = item.source.unwrap();
                let source = Source {
                    is_step: source.name.is_none(),
                    name: source.name.or(source.title).unwrap(),
                    body: source.body,
                };
                (item.guid, item.language, state, source, item.source_digest)
            })
            .collect();
        found.sort();
        let mut expected = Vec::new();
        for resource in &self.resources {
            for language in LANGUAGES {
                let Some(state) = resource.state(language) else {
                    continue;
                };
                let (guid, source) = (resource.guid.clone(), resource.source.clone());
                let digest = self.digests[&source].clone();
                expected.push((guid, language.to_owned(), state, source, digest));
            }
        }
        expected.sort();
        assert_eq!(found, expected);
    }

    /// Asserts that the rows are the model's.
    async fn assert_rows(&self, client: &Client) {
        for resource in &self.resources {
            let rows: BTreeMap<String, (Option<String>, Option<bool>)> = if resource.source.is_step
            {
                let step = client.get_step(&resource.guid).await.accepted();
                let rows = step.translations.into_iter();
                rows.map(|(tag, row)| (tag, (row.title, row.locked)))
                    .collect()
            } else {
                let task = client.get_task(&resource.guid).await.accepted();
                let rows = task.translations.into_iter();
                rows.map(|(tag, row)| (tag, (row.name, row.locked)))
                    .collect()
            };
            let expected = resource.rows.iter().map(|(tag, row)| {
                let row = (row.text.clone(), Some(row.locked));
                ((*tag).to_owned(), row)
            });
            assert_eq!(rows, expected.collect(), "{resource:?}");
        }
    }
}

/// The etag and the time of change of each task and step.
async fn versions(client: &Client) -> BTreeMap<String, (String, Option<prost_types::Timestamp>)> {
    let mut versions = BTreeMap::new();
    for (task, steps) in client.tasks_with_steps().await {
        versions.insert(task.guid, (task.etag, task.modified_ts));
        let steps = steps.into_iter();
        versions.extend(steps.map(|step| (step.guid, (step.etag, step.modified_ts))));
    }
    versions
}

#[apply(property_on_both_databases)]
#[cases(12, vec(change(), 1..40))]
async fn work_equals_the_models(client: Client, changes: Vec<Change>) {
    let mut model = Model::default();
    // Something to start from.
    model.create_task(&client, TEXTS[0]).await;
    model.read_digests(&client).await;
    for (number, change) in changes.iter().enumerate() {
        model.apply(&client, change).await;
        model.read_digests(&client).await;
        let page_size = i32::try_from(number % 7).unwrap();
        model.assert_work(&client, page_size).await;
    }
    model.assert_rows(&client).await;
}

/// Histories that each decide a rule, of the task 0, the step 1 and the subtask step 2. `it` is one of
/// the first two. [`known_change`] reads their changes.
const KNOWN_HISTORIES: &str = "
a row of a person is locked: put 1; name 1
an unlocked row is outdated: put 1 false; name 1
the source changed back: put 1 false; name 1; name 0
unlocked after it changed: put 1; name 1; lock it false
unlocked before it changed: put 1; lock it false; name 1
written since: put 1 false; name 1; put 2 false
one text written since: put 1 false; name 1; text it 0 2
written with its source: put 1 false; both 2
sent unchanged with its source: put 1 false; both 1
an empty row is a row: put - false
a row that is gone is missing: put 1 false; remove
another body: put 1 false; body 1
the subtask is renamed: text 2 0 1; lock 2 false; name 1
what is gone has no work: put 1 false; delete 2; delete 1
a machine's row is unlocked: machine it 0 1 now; name 1
an outdated row is written anew: put 1 false; name 1; machine it 0 2 now
the same text of a new source: put 1 false; name 1; machine it 0 1 now
other languages stay: text it 1 1; machine it 0 2 now
a locked row stays: put 1; machine it 0 2 now; name 1; machine it 0 2 0; machine it 0 2 -
an empty locked row stays: lock it true; machine it 0 2 now
an unlocked row of a person is written: put 1 false; machine it 0 2 now
a row that is gone is written: put 1; remove; machine it 0 2 now
sources of before are stale: name 1; machine it 0 2 0; machine it 0 2 1; machine it 0 2 2; machine it 0 2 -
what is gone is not found: delete 2; machine 2 0 1 now, 0 0 2 now, 2 0 1 -
the last of several stays: machine it 0 1 now, it 0 2 now
results are in order: put 1; machine 2 0 1 -, it 0 1 now, 2 0 1 now, 2 1 1 now
";

/// A change of `it`, such as `put TEXT LOCK`, `text PICK LANGUAGE TEXT` or
/// `machine PICK LANGUAGE TEXT SOURCE, …`. The source is `now`, the number of one that was seen, or
/// `-` for an unknown one.
fn known_change(it: Pick, change: &str) -> Change {
    let pick = |word: &str| match word {
        "it" => it,
        pick => pick.parse().expect(change),
    };
    let number = |word: &str| word.parse::<usize>().expect(change);
    let row = |row| Change::EditRow(it, 0, row);
    let put = |text, locked| row(Row::Put { text, locked });
    let (kind, rest) = change.split_once(' ').unwrap_or((change, ""));
    let words: Vec<&str> = rest.split(' ').collect();
    match (kind, &words[..]) {
        ("put", [text]) => put(Some(number(text)), None),
        ("put", [text, locked]) => put(text.parse().ok(), locked.parse().ok()),
        ("remove", _) => row(Row::Remove),
        ("name", [text]) => Change::EditName(it, number(text), None),
        ("both", [text]) => Change::EditName(it, 1, Some((0, number(text), false))),
        ("body", [text]) => Change::EditBody(0, Some(number(text))),
        ("delete", [what]) => Change::Delete(pick(what)),
        ("lock", [what, locked]) => Change::EditRow(pick(what), 0, Row::Lock(*locked == "true")),
        ("text", [what, language, text]) => {
            Change::EditRow(pick(what), number(language), Row::Text(number(text)))
        }
        ("machine", _) => {
            let writes = rest.split(", ").map(|write| {
                let words: Vec<&str> = write.split(' ').collect();
                let source = match words[3] {
                    "now" => NamedSource::Current,
                    "-" => NamedSource::Unknown,
                    seen => NamedSource::Seen(number(seen)),
                };
                (
                    pick(words[0]),
                    number(words[1]),
                    Some(number(words[2])),
                    source,
                )
            });
            Change::Automatic(writes.collect())
        }
        _ => panic!("{change}"),
    }
}

#[apply(on_both_databases)]
async fn work_equals_the_models_after_known_histories(client: Client) {
    for what in [0, 1] {
        for history in KNOWN_HISTORIES.lines().filter(|line| !line.is_empty()) {
            println!("{history}, of {what}");
            let (_, changes) = history.split_once(": ").expect(history);
            let given = [Change::CreateStep(0, 0), Change::CreateSubtask(0, 0)];
            let changes = changes.split("; ").map(|change| known_change(what, change));
            let changes = given.into_iter().chain(changes).collect();
            work_equals_the_models(client.other_account(), changes).await;
        }
    }
}
