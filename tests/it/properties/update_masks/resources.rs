//! The tasks and steps that the updates send, and how they are stored and read.

use std::{collections::BTreeMap, fmt::Debug};

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::{BoxedStrategy, Strategy, any},
    sample::{select, subsequence},
};
use serde_json::json;
use tonic::Status;

use super::{LANGUAGES, Masked};
use crate::kit::prelude::*;

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

fn any_rows<T: Debug>(row: impl Strategy<Value = T>) -> impl Strategy<Value = BTreeMap<String, T>> {
    let languages = select(&LANGUAGES[..]).prop_map(str::to_owned);
    btree_map(languages, row, 0..=2)
}

/// Ids of one resource at a time, so that it may have any of them.
fn external_ids() -> impl Strategy<Value = Option<String>> {
    option::of(select(&["K-1", "ü 🔧"][..]).prop_map(str::to_owned))
}

fn task_rows() -> impl Strategy<Value = TaskTranslation> {
    (option::of(select(&["x", "y"][..])), any::<Option<bool>>())
        .prop_map(|(name, locked)| TaskTranslation {
            name: owned(name),
            locked,
        })
        .boxed()
}

impl Masked for Task {
    const NAME: &'static str = "Task";
    const FIELDS: &'static [&'static str] =
        &["name", "published", "roles", "dependencies", "external_id"];
    const ROW_FIELDS: &'static [&'static str] = &["name", "locked"];

    fn any_sent() -> BoxedStrategy<Self> {
        let names = select(&["", "A", "B", "Ü🔧"][..]);
        let roles = subsequence(vec![8, 0, 5, 2], 0..4);
        let dependencies = select(vec![
            None,
            Some(all_of(vec![when("a", "=", "1")])),
            full_task().dependencies,
        ]);
        (
            names,
            option::of(0..3),
            roles,
            dependencies,
            external_ids(),
            any_rows(task_rows()),
        )
            .prop_map(
                |(name, published, roles, dependencies, external_id, translations)| Self {
                    name: name.to_owned(),
                    published,
                    roles,
                    dependencies,
                    external_id,
                    translations,
                    ..Self::default()
                },
            )
            .boxed()
    }

    fn is_valid(&self) -> bool {
        !self.name.is_empty() && !self.roles.is_empty()
    }

    fn comparable(self) -> Self {
        self
    }

    fn with_id(self, guid: &str) -> Self {
        self.with_guid(guid)
    }

    fn id_and_version(&self) -> (&str, &str, Option<prost_types::Timestamp>) {
        (&self.guid, &self.etag, self.modified_ts)
    }

    async fn store(client: &Client) -> Self {
        client.given_task(full_task()).await
    }

    async fn read(client: &Client, guid: &str) -> Self {
        client.get_task(guid).await.accepted()
    }

    async fn update(client: &Client, sent: Self, mask: &[&str]) -> Result<Self, Status> {
        let response = client.update_task(sent, mask).await?;
        Ok(response.task.expect("the task"))
    }

    async fn import(client: &Client, sent: Self) -> Result<Self, Status> {
        let response = client.import(document_with(sent, Vec::new())).await?;
        Ok(response.task.expect("the task"))
    }
}

fn instructions() -> impl Strategy<Value = Vec<prost_types::Struct>> {
    let one = select(vec![
        object(json!({})),
        object(json!({"b": [1, null], "a": {"x": true}})),
    ]);
    vec(one, 0..3)
}

fn questions() -> impl Strategy<Value = Vec<FeedbackConfig>> {
    select(vec![
        vec![],
        vec![question("q", &["a"])],
        vec![question("r", &["a", "b"])],
    ])
}

fn step_rows() -> impl Strategy<Value = StepTranslation> {
    let texts = (
        option::of(select(&["t", "u"][..])),
        option::of(select(&["<p>", "<q>"][..])),
    );
    let row = (texts, instructions(), questions(), any::<Option<bool>>());
    row.prop_map(
        |((title, body), instructions, feedback_config, locked)| StepTranslation {
            title: owned(title),
            body: owned(body),
            instructions,
            feedback_config,
            locked,
        },
    )
}

impl Masked for Step {
    const NAME: &'static str = "Step";
    const FIELDS: &'static [&'static str] = &[
        "body",
        "cost",
        "dependencies",
        "external_id",
        "feedback_config",
        "instructions",
        "looping",
        "parts",
        "published",
        "skills",
        "tags",
        "title",
    ];
    const ROW_FIELDS: &'static [&'static str] =
        &["title", "body", "instructions", "feedback_config", "locked"];

    fn any_sent() -> BoxedStrategy<Self> {
        let looping = select(vec![
            None,
            Some(Looping {
                alias: "x".to_owned(),
                array: Some(value(json!([1, "2"]))),
                iterations: None,
            }),
            Some(Looping::default()),
        ]);
        let dependencies = select(vec![None, Some(any_of(vec![when("a", "<", "1")]))]);
        let plain = (
            select(&["", "T", "Ü"][..]),
            option::of(select(&["<b>", "<i>"][..])),
            option::of(select(&[0, 1, 2, 9][..])),
            option::of(0..3),
        );
        let texts = || vec(select(&["a", "b"][..]).prop_map(str::to_owned), 0..3);
        let lists = (texts(), texts(), texts(), instructions(), questions());
        let objects = (looping, dependencies, external_ids());
        (plain, lists, objects, any_rows(step_rows()))
            .prop_map(|(plain, lists, objects, translations)| Self {
                title: plain.0.to_owned(),
                body: owned(plain.1),
                cost: plain.2,
                published: plain.3,
                parts: lists.0,
                skills: lists.1,
                tags: lists.2,
                instructions: lists.3,
                feedback_config: lists.4,
                looping: objects.0,
                dependencies: objects.1,
                external_id: objects.2,
                translations,
                ..Self::default()
            })
            .boxed()
    }

    fn is_valid(&self) -> bool {
        !self.title.is_empty() && self.cost != Some(1)
    }

    fn comparable(mut self) -> Self {
        let rows = self.translations.values_mut();
        let of_rows = rows.flat_map(|row| &mut row.feedback_config);
        for config in self.feedback_config.iter_mut().chain(of_rows) {
            config.linked = config.linked.filter(|linked| *linked);
        }
        self
    }

    fn with_id(self, guid: &str) -> Self {
        self.with_guid(guid)
    }

    fn id_and_version(&self) -> (&str, &str, Option<prost_types::Timestamp>) {
        (&self.guid, &self.etag, self.modified_ts)
    }

    async fn store(client: &Client) -> Self {
        let task = client.given_task(task("Masked")).await;
        let sent = step(&task, StepType::Solution, "Start");
        client.given_step(sent).await
    }

    async fn read(client: &Client, guid: &str) -> Self {
        client.get_step(guid).await.accepted()
    }

    async fn update(client: &Client, sent: Self, mask: &[&str]) -> Result<Self, Status> {
        let response = client.update_step(sent, mask).await?;
        Ok(response.step.expect("the step"))
    }

    async fn import(client: &Client, sent: Self) -> Result<Self, Status> {
        let guid = sent.guid.clone();
        let task = client.get_step(&guid).await?.task;
        client.import(document_of(&task, vec![sent])).await?;
        client.get_step(&guid).await
    }
}
