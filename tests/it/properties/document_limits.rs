//! Whatever is stored can be exported, and every export can be imported.

use std::collections::BTreeMap;

use crate::kit::prelude::*;
use proptest::{collection::vec, prelude::*, sample::Index};
use prost::Message;
use prost_types::{Value, value::Kind};

/// A write to a guide whose documents nest.
#[derive(Clone, Debug)]
enum Write {
    CreateStep(Index, DeepValue),
    UpdateStep(Index, DeepValue),
    /// A re-import of a task that adds this many managed tasks, each in the one before,
    /// and a step in the innermost.
    Import(Index, usize, DeepValue),
    Translate(Index, usize),
    /// An observation stops managing its tasks, and their wiring steps are deleted.
    Unlink(Index),
}

/// A JSON value of this many levels.
#[derive(Clone, Copy, Debug)]
struct DeepValue {
    place: ValuePlace,
    levels: usize,
}

#[derive(Clone, Copy, Debug)]
enum ValuePlace {
    Instructions,
    Array,
    Iterations,
    Translation,
}

fn write() -> impl Strategy<Value = Write> {
    let index = any::<Index>;
    prop_oneof![
        3 => (index(), value()).prop_map(|(task, value)| Write::CreateStep(task, value)),
        3 => (index(), value()).prop_map(|(step, value)| Write::UpdateStep(step, value)),
        3 => (index(), 0..4_usize, value())
            .prop_map(|(task, added, value)| Write::Import(task, added, value)),
        2 => (index(), LEVELS).prop_map(|(step, levels)| Write::Translate(step, levels)),
        1 => index().prop_map(Write::Unlink),
    ]
}

const LEVELS: std::ops::RangeInclusive<usize> = 20..=32;

fn value() -> impl Strategy<Value = DeepValue> {
    let place = prop_oneof![
        Just(ValuePlace::Instructions),
        Just(ValuePlace::Array),
        Just(ValuePlace::Iterations),
        Just(ValuePlace::Translation),
    ];
    (place, LEVELS).prop_map(|(place, levels)| DeepValue { place, levels })
}

impl DeepValue {
    /// The step with the value, and the masked field.
    fn put(self, mut step: Step) -> (Step, &'static str) {
        let value = objects_deep(self.levels);
        let json = || {
            let kind = Some(Kind::StructValue(objects_deep(self.levels)));
            Some(Value { kind })
        };
        let field = match self.place {
            ValuePlace::Instructions => {
                step.instructions = vec![value];
                "instructions"
            }
            ValuePlace::Array => {
                step.looping.get_or_insert_default().array = json();
                "looping"
            }
            ValuePlace::Iterations => {
                step.looping.get_or_insert_default().iterations = json();
                "looping"
            }
            ValuePlace::Translation => {
                let row = StepTranslation {
                    instructions: vec![value],
                    ..step_translation("Schritt")
                };
                step.translations.insert("de".to_owned(), row);
                "translations"
            }
        };
        (step, field)
    }
}

fn plain_step() -> Step {
    document_step(StepType::Information, "Step")
}

/// The step in documents that nest this deep.
fn nested_in(step: Step, depth: usize) -> TaskDocument {
    (1..depth).fold(document("Inner", vec![step]), |inner, _| {
        let value = answer_with("new", "Inner", inner);
        let observation = observation_asking(linked_question(vec![value]));
        document("Outer", vec![observation])
    })
}

/// Whether a client can read an export in which the step is nested this deep.
fn can_be_exported(step: Step, depth: usize) -> bool {
    let response = ExportTaskResponse {
        document: Some(nested_in(step, depth)),
        guide_etag: String::new(),
    };
    depth <= 8 && ExportTaskResponse::decode(response.encode_to_vec().as_slice()).is_ok()
}

/// The stored tasks with their steps and depths.
struct Stored(Vec<(Task, Vec<Step>)>);

impl Stored {
    async fn read(client: &Client) -> Self {
        Self(client.tasks_with_steps().await)
    }

    fn depth(&self, task: &str) -> usize {
        let tasks = self.0.iter().map(|(task, _)| (task.guid.as_str(), task));
        let tasks: BTreeMap<&str, &Task> = tasks.collect();
        let parent = |guid: &&str| tasks.get(guid).map(|task| task.parent_guid.as_str());
        let chain = std::iter::successors(Some(task), parent);
        chain.take_while(|guid| !guid.is_empty()).count()
    }

    fn task(&self, index: &Index) -> &Task {
        &index.get(&self.0).0
    }

    fn step(&self, index: &Index) -> Option<Step> {
        let steps = self.0.iter().flat_map(|(_, steps)| steps);
        let steps: Vec<&Step> = steps.collect();
        (!steps.is_empty()).then(|| (*index.get(&steps)).clone())
    }
}

async fn run(client: &Client, write: &Write) {
    let stored = Stored::read(client).await;
    let (outcome, expected) = match write {
        Write::CreateStep(task, value) => {
            let guid = &stored.task(task).guid;
            let (step, _) = value.put(plain_step());
            let expected = can_be_exported(step.clone(), stored.depth(guid));
            let task = guid.clone();
            let created = client.create_step(Step { task, ..step }).await;
            (created.map(drop), expected)
        }
        Write::UpdateStep(step, value) => {
            let Some(before) = stored.step(step) else {
                return;
            };
            let (changed, field) = value.put(step_of(&before.guid));
            let expected = can_be_exported(changed.clone(), stored.depth(&before.task));
            (
                client.update_step(changed, &[field]).await.map(drop),
                expected,
            )
        }
        Write::Import(task, added, value) => {
            let guid = &stored.task(task).guid;
            let (step, _) = value.put(plain_step());
            let expected = can_be_exported(step.clone(), stored.depth(guid) + added);
            let steps = nested_in(step, added + 1).steps;
            let guide = document_of(guid, steps);
            let imported = client.import_with(AbsentSteps::Keep, guide).await;
            (imported.map(drop), expected)
        }
        Write::Translate(step, levels) => {
            let step = stored.step(step);
            let work = client.translation_work(&["de"]).await;
            let work = work.into_iter();
            let Some((step, work)) = step.and_then(|step| {
                let work = work.into_iter().find(|work| work.guid == step.guid)?;
                Some((step, work))
            }) else {
                return;
            };
            let value = DeepValue {
                place: ValuePlace::Translation,
                levels: *levels,
            };
            let (translated, _) = value.put(plain_step());
            let expected = can_be_exported(translated, stored.depth(&step.task));
            let item = AutomaticTranslation {
                instructions: vec![objects_deep(*levels)],
                ..automatic(&work, "Schritt")
            };
            (
                client.write_translations(vec![item]).await.map(drop),
                expected,
            )
        }
        Write::Unlink(step) => {
            unlink(client, &stored, step).await;
            return;
        }
    };
    match outcome {
        Ok(()) => assert!(expected, "accepted: {write:?}"),
        Err(status) => {
            assert!(!expected, "refused: {write:?}: {status:?}");
            let failure = Err::<(), _>(status).refused();
            failure.is(Code::InvalidArgument, "NESTING_TOO_DEEP");
        }
    }
}

async fn unlink(client: &Client, stored: &Stored, index: &Index) {
    let steps = stored.0.iter().flat_map(|(_, steps)| steps);
    let linked = |step: &&Step| step.feedback_config.iter().any(|config| config.linked());
    let observations: Vec<&Step> = steps.clone().filter(linked).collect();
    if observations.is_empty() {
        return;
    }
    let observation = index.get(&observations);
    let mut unlinked = step_of(&observation.guid);
    unlinked
        .feedback_config
        .clone_from(&observation.feedback_config);
    unlinked.feedback_config[0].linked = Some(false);
    client.updated_step(unlinked, &["feedback_config"]).await;
    for value in answers_of(observation) {
        for wiring in steps.clone().filter(|step| step.link == value.link) {
            client.delete_step(&wiring.guid).await.accepted();
        }
    }
}

#[apply(property_on_both_databases)]
#[cases(24, (1..=8_usize, vec(write(), 1..8)))]
async fn every_export_is_imported(client: Client, (depth, writes): (usize, Vec<Write>)) {
    client.imported(nested_in(plain_step(), depth)).await;
    for write in &writes {
        run(&client, write).await;
    }
    let other = client.other_account();
    for (task, _) in client.tasks_with_steps().await {
        let exported = client.exported(&task.guid).await;
        let mut copy = exported.clone();
        copy.task.as_mut().unwrap().guid.clear();
        let made = other.imported(copy).await;
        if task.r#type() == TaskType::Standard {
            let again = other.exported(&made.guid).await;
            assert_eq!(canonical(again), canonical(exported));
        }
    }
}
