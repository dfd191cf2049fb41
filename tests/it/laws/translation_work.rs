//! After any history of edits, translations, locks and automatic writes, the listed
//! work is the model's.

use crate::prelude::*;
use proptest::{collection::vec, prelude::*};
use std::collections::{BTreeMap, BTreeSet};

/// The languages that are written.
const LANGUAGES: [&str; 2] = ["de", "de-CH"];
/// A language without any translation, so that its work lists every digest.
const UNWRITTEN: &str = "tlh";

/// Few texts, so that sources often change back and rows are often rewritten unchanged.
const TEXTS: [&str; 3] = ["one", "two", "three"];

/// One change to an account, such as `put WHAT LANGUAGE TEXT LOCK`. A number chooses among what there is, a
/// language or a text; `-` is none. Without a row, `name` changes a name or title alone. `put` writes a whole
/// row, `text` and `lock` a part of it. `machine` makes several writes in one call, each from the current
/// source, from one that was ever seen, or from an unknown one.
fn change() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "task [012]",
        2 => "step [0-9]{2} [012]",
        2 => "subtask [0-9]{2} [0-9]{2}",
        4 => "name [0-9]{2} ([012]|[012]|[012]|[012] [01] [012] (true|false))",
        2 => "body [0-9]{2} [012-]",
        3 => "put [0-9]{2} [01] [012-] (true|false|-)",
        2 => "text [0-9]{2} [01] [012]",
        2 => "lock [0-9]{2} [01] (true|false)",
        1 => "remove [0-9]{2} [01]",
        6 => vec(MACHINE_WRITE, 1..4).prop_map(|writes| format!("machine {}", writes.join(", "))),
        1 => "delete [0-9]{2}",
    ]
}

const MACHINE_WRITE: &str = "[0-9]{2} [01] (0|1|2|0|1|2|0|1|2|-) (now|now|now|now|[0-9]|[0-9]|-)";

/// What a person does to a row.
#[derive(Clone, Copy)]
enum Row<'a> {
    Whole(Option<&'a str>, Option<bool>),
    Text(&'a str),
    Lock(bool),
    Removed,
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
    fn pick(&self, pick: usize, fits: impl Fn(&Resource) -> bool) -> Option<usize> {
        let all = self.resources.iter().enumerate();
        let fitting: Vec<usize> = all.filter(|(_, r)| fits(r)).map(|(n, _)| n).collect();
        (!fitting.is_empty()).then(|| fitting[pick % fitting.len()])
    }

    fn task(&self, pick: usize) -> Option<&Resource> {
        let index = self.pick(pick, |resource| !resource.source.is_step)?;
        Some(&self.resources[index])
    }

    /// Makes the change by calls and in the model.
    async fn apply(&mut self, client: &Client, change: &str) {
        let number = |word: &str| word.parse::<usize>().expect(change);
        let text = |word: &str| word.parse::<usize>().ok().map(|text| TEXTS[text]);
        let (kind, rest) = change.split_once(' ').expect(change);
        let words: Vec<&str> = rest.split(' ').collect();
        match (kind, &words[..]) {
            ("task", [name]) => self.create_task(client, TEXTS[number(name)]).await,
            ("step", [task, title]) => {
                let title = TEXTS[number(title)];
                self.create_step(client, number(task), title).await;
            }
            ("subtask", [task, other]) => {
                self.create_subtask(client, number(task), number(other))
                    .await;
            }
            ("name", [what, name, row @ ..]) => {
                let row = match row {
                    [language, text, locked] => Some((
                        LANGUAGES[number(language)],
                        TEXTS[number(text)],
                        *locked == "true",
                    )),
                    _ => None,
                };
                let name = TEXTS[number(name)];
                self.edit_name(client, number(what), name, row).await;
            }
            ("body", [step, body]) => self.edit_body(client, number(step), text(body)).await,
            ("machine", _) => self.automatic(client, rest).await,
            ("delete", [what]) => self.delete(client, number(what)).await,
            (_, [what, language, row @ ..]) => {
                let row = match (kind, row) {
                    ("put", [new, locked]) => Row::Whole(text(new), locked.parse().ok()),
                    ("text", [new]) => Row::Text(TEXTS[number(new)]),
                    ("lock", [locked]) => Row::Lock(*locked == "true"),
                    ("remove", []) => Row::Removed,
                    _ => panic!("{change}"),
                };
                let language = LANGUAGES[number(language)];
                self.edit_row(client, number(what), language, row).await;
            }
            _ => panic!("{change}"),
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

    async fn create_step(&mut self, client: &Client, task: usize, title: &str) {
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

    async fn create_subtask(&mut self, client: &Client, task: usize, other: usize) {
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
        what: usize,
        name: &str,
        row: Option<(&'static str, &str, bool)>,
    ) {
        let Some(index) = self.pick(what, |resource| resource.other.is_none()) else {
            return;
        };
        let resource = &mut self.resources[index];
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

    async fn edit_body(&mut self, client: &Client, step: usize, body: Option<&str>) {
        let Some(index) = self.pick(step, |resource| resource.source.is_step) else {
            return;
        };
        let resource = &mut self.resources[index];
        let body = body.map(str::to_owned);
        let update = step_of(&resource.guid).with(|it| it.body = body.clone());
        client.updated_step(update, &["body"]).await;
        resource.source.body = body;
    }

    async fn edit_row(
        &mut self,
        client: &Client,
        what: usize,
        language: &'static str,
        row: Row<'_>,
    ) {
        let Some(index) = self.pick(what, |_| true) else {
            return;
        };
        let resource = &mut self.resources[index];
        let name = if resource.source.is_step {
            ".title"
        } else {
            ".name"
        };
        let (part, text, locked) = match row {
            Row::Whole(text, locked) => ("", text, locked),
            Row::Text(text) => (name, Some(text), None),
            Row::Lock(locked) => (".locked", None, Some(locked)),
            Row::Removed => ("", None, None),
        };
        let sent = Some((language, text, locked)).filter(|_| !matches!(row, Row::Removed));
        let mask = format!("translations.{language}{part}");
        resource.update(client, None, sent, &[&mask]).await;
        let text = match (row, resource.rows.get(language)) {
            (Row::Removed, _) => return drop(resource.rows.remove(language)),
            (Row::Lock(_), known) => known.and_then(|known| known.text.clone()),
            _ => text.map(str::to_owned),
        };
        // A person's edit locks it, unless it says otherwise.
        resource.edit(language, text, locked);
    }

    async fn automatic(&mut self, client: &Client, writes: &str) {
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        let mut changed = BTreeSet::new();
        let writes = writes.split(", ").map(|write| {
            let words: Vec<&str> = write.split(' ').collect();
            let number = |word: usize| words[word].parse::<usize>().ok();
            let text = number(2).map(|text| TEXTS[text].to_owned());
            let language = LANGUAGES[number(1).expect(write)];
            (number(0).expect(write), language, text, words[3])
        });
        let writes: Vec<_> = writes.collect();
        // The service refuses the whole request if one of its writes has no text.
        let complete = writes.iter().all(|(_, _, text, _)| text.is_some());
        for (what, language, text, made) in writes {
            let count = self.resources.len() + self.deleted_ids.len();
            if count == 0 {
                return;
            }
            let index = what % count;
            let source = self.resources.get(index).map(|known| known.source.clone());
            let translated_from = match made.parse::<usize>() {
                Ok(seen) => self.digests.keys().nth(seen % self.digests.len()).cloned(),
                Err(_) => source.filter(|_| made == "now"),
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

    async fn delete(&mut self, client: &Client, what: usize) {
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
#[cases(6, vec(change(), 1..40))]
async fn work_equals_the_models(client: Client, changes: Vec<String>) {
    expect_work_of_model(&client, &changes, 7).await;
}

/// Makes the changes. After each, the work is read in pages of another size below `page_sizes`.
async fn expect_work_of_model(client: &Client, changes: &[String], page_sizes: usize) {
    let mut model = Model::default();
    // Something to start from.
    model.create_task(client, TEXTS[0]).await;
    model.read_digests(client).await;
    for (number, change) in changes.iter().enumerate() {
        model.apply(client, change).await;
        model.read_digests(client).await;
        let page_size = i32::try_from(number % page_sizes).unwrap();
        model.assert_work(client, page_size).await;
    }
    model.assert_rows(client).await;
}

/// Histories that each decide a rule, of the task 0, the step 1 and the subtask step 2. `it` is one of
/// the first two. [`change`] has the notation.
const KNOWN_HISTORIES: &str = "
a row of a person is locked: put it 0 1 -; name it 1
an unlocked row is outdated: put it 0 1 false; name it 1
the source changed back: put it 0 1 false; name it 1; name it 0
unlocked after it changed: put it 0 1 -; name it 1; lock it 0 false
unlocked before it changed: put it 0 1 -; lock it 0 false; name it 1
written since: put it 0 1 false; name it 1; put it 0 2 false
one text written since: put it 0 1 false; name it 1; text it 0 2
written with its source: put it 0 1 false; name it 1 0 2 false
sent unchanged with its source: put it 0 1 false; name it 1 0 1 false
an empty row is a row: put it 0 - false
a row that is gone is missing: put it 0 1 false; remove it 0
another body: put it 0 1 false; body 0 1
the subtask is renamed: text 2 0 1; lock 2 0 false; name it 1
what is gone has no work: put it 0 1 false; delete 2; delete 1
a machine's row is unlocked: machine it 0 1 now; name it 1
an outdated row is written anew: put it 0 1 false; name it 1; machine it 0 2 now
the same write again: machine it 0 1 now; machine it 0 1 now
the same text of a new source: put it 0 1 false; name it 1; machine it 0 1 now
other languages stay: text it 1 1; machine it 0 2 now
a locked row stays: put it 0 1 -; machine it 0 2 now; name it 1; machine it 0 2 0; machine it 0 2 -
an empty locked row stays: lock it 0 true; machine it 0 2 now
an unlocked row of a person is written: put it 0 1 false; machine it 0 2 now
a row that is gone is written: put it 0 1 -; remove it 0; machine it 0 2 now
sources of before are stale: name it 1; machine it 0 2 0; machine it 0 2 1; machine it 0 2 2; machine it 0 2 -
what is gone is not found: delete 2; machine 2 0 1 now, 0 0 2 now, 2 0 1 -
the last of several stays: machine it 0 1 now, it 0 2 now
results are in order: put it 0 1 -; machine 2 0 1 -, it 0 1 now, 2 0 1 now, 2 1 1 now
";

#[apply(on_both_databases)]
async fn work_equals_the_models_after_known_histories(client: Client) {
    for what in ["0", "1"] {
        for history in KNOWN_HISTORIES.lines().filter(|line| !line.is_empty()) {
            println!("{history}, of {what}");
            let (_, changes) = history.split_once(": ").expect(history);
            let changes = format!("step 0 0; subtask 0 0; {changes}").replace("it", what);
            let changes: Vec<String> = changes.split("; ").map(str::to_owned).collect();
            // The random histories have pages of other sizes.
            expect_work_of_model(&client.other_account(), &changes, 1).await;
        }
    }
}
