//! Laws for all guides and answers.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::dependency_node::Node;
use proptest::{collection::vec, option, prelude::*, sample::select};
use prost_types::{Value, value::Kind};

use super::evaluator::{ReferenceStep, Scoped, StoredGuides, Viewer};
use crate::{
    laws::random_guides::{Guide, KEYS, Kind as StepKind, Known, LEVELS, NAMES, guides, names},
    prelude::*,
};

/// How many names conditions can read.
const NAME_COUNT: usize = 3 * NAMES.len() + 1;
/// How many values an answer can have: the keys, none, and values of other types.
const VALUE_COUNT: usize = KEYS.len() + 5;

/// The level, and whether unpublished steps are included.
type View = (Option<AccessLevel>, bool);
/// Some answers, and choices of values for the rest.
type PartialAnswers = (Vec<Option<usize>>, Vec<Vec<usize>>);

fn views() -> impl Strategy<Value = View> {
    (option::of(select(&LEVELS[..])), any::<bool>())
}

/// A value by its number.
fn known(number: usize) -> Known {
    match number.checked_sub(KEYS.len()) {
        None => Some(Kind::StringValue(KEYS[number].to_owned())),
        Some(0) => None,
        Some(1) => Some(Kind::NumberValue(1.0)),
        Some(2) => Some(Kind::BoolValue(true)),
        Some(3) => Some(Kind::StringValue("1e0".to_owned())),
        Some(_) => Some(Kind::NumberValue(-0.0)),
    }
}

fn message(known: &Known) -> Value {
    Value {
        kind: Some(known.clone().unwrap_or(Kind::NullValue(0))),
    }
}

/// The name of a variable that stands for all its names: an observation's own one.
fn canonical(name: &str) -> String {
    let wide = NAMES.iter().find(|(own, product)| {
        let wide = format!("components.{product}.{own}");
        wide == name
    });
    wide.map_or(name, |(own, _)| own).to_owned()
}

fn full_names() -> Vec<String> {
    let names = names().into_iter().flatten();
    names
        .map(|(path, variable)| match path.as_str() {
            "" => variable,
            path => format!("{path}.{variable}"),
        })
        .collect()
}

/// A request about a stored guide.
fn request(root: &str, (level, unpublished): View) -> PreviewTaskRequest {
    preview_of(root)
        .with(|it| it.include_unpublished = unpublished)
        .with(|it| it.level = level.map(i32::from))
        .with(|it| it.page_size = 500)
}

/// The steps of a preview without what the evaluator does not know.
fn listed(preview: &PreviewTaskResponse) -> Vec<ReferenceStep> {
    let steps = preview.steps.iter();
    steps
        .map(|step| ReferenceStep {
            via: step.via.clone(),
            guid: step.guid.clone(),
            visible: step.visibility() == Visibility::Visible,
        })
        .collect()
}

/// A preview in which each name has a value or none: the view, values by their numbers, and the depth.
pub type CompletePreview = (View, Vec<usize>, i32);

pub fn complete_previews() -> impl Strategy<Value = CompletePreview> {
    (views(), vec(0..VALUE_COUNT, NAME_COUNT), 0..=8_i32)
}

/// The preview is what a second evaluator finds.
pub async fn check_complete_preview(
    client: &Client,
    root: &str,
    ((level, include_unpublished), values, depth): CompletePreview,
) {
    // Names of the same variable have the value of the first.
    let mut answers = BTreeMap::new();
    let mut request = request(root, (level, include_unpublished)).to_depth(depth);
    for (name, value) in full_names().iter().zip(values) {
        let value = answers.entry(canonical(name)).or_insert(known(value));
        request = request.answering(name, message(value));
    }
    let preview = client.previewed(request).await;
    let undetermined = preview.steps.iter();
    let mut undetermined =
        undetermined.filter(|step| step.visibility() == Visibility::Undetermined);
    assert_eq!(undetermined.next(), None, "with {answers:?}");
    let stored = StoredGuides::of(client).await;
    let viewer = Viewer {
        level,
        include_unpublished,
    };
    let depth = usize::try_from(depth).expect("a depth");
    let value = |_: &str, name: &str| answers[&canonical(name)].clone();
    let expected = stored.list(root, viewer, depth, &value);
    assert_eq!(listed(&preview), expected, "with {answers:?}");
}

#[apply(property_on_one_database)]
#[cases(16, (guides(), views(), (vec(option::of(0..VALUE_COUNT), NAME_COUNT), vec(vec(0..VALUE_COUNT, 40), 20))))]
async fn what_is_said_with_some_answers_holds_for_every_completion(
    client: Client,
    (guide, (level, include_unpublished), (values, completions)): (Guide, View, PartialAnswers),
) {
    let root = guide.stored(&client).await.swap_remove(0).guid;
    let mut answers: BTreeMap<String, Known> = BTreeMap::new();
    for (name, value) in full_names().iter().zip(values) {
        if let Some(value) = value {
            answers.entry(canonical(name)).or_insert(known(value));
        }
    }
    let mut request = request(&root, (level, include_unpublished)).to_depth(3);
    let listed = client.previewed(request.clone()).await.steps;
    let asks = |name: &str| {
        let mut questions = listed.iter().filter_map(|step| step.question.as_ref());
        questions.any(|question| question.name == name)
    };
    for (name, value) in &answers {
        request = request.answering(name, message(value));
        // A name of observations outside the guide counts separately.
        let same = NAMES.iter().filter(|(own, _)| own == name && !asks(own));
        for (own, product) in same {
            let name = format!("components.{product}.{own}");
            request = request.answering(&name, message(value));
        }
    }
    let preview = client.previewed(request).await;
    let stored = StoredGuides::of(&client).await;
    let viewer = Viewer {
        level,
        include_unpublished,
    };
    // Observations whose answers decide whether any observation is asked are never asked.
    let never_asked = preview.steps.iter().zip(self::listed(&preview));
    let never_asked = never_asked.filter(|(step, _)| {
        let answer = step.question.as_ref().and_then(|it| it.answer.as_ref());
        answer == Some(&message(&None))
    });
    let never_asked: Vec<ReferenceStep> = never_asked.map(|(_, step)| step).collect();
    for choices in completions {
        // The value of each name as read by each task: the answer, or a possible one.
        let value = |unanswered: &BTreeSet<Scoped>, task: &str, name: &str| {
            if let Some(value) = answers.get(&canonical(name)) {
                return value.clone();
            }
            let scope = if stored.is_own(task, name) { task } else { "" };
            if unanswered.contains(&(scope.to_owned(), name.to_owned())) {
                return None;
            }
            let place = scope.bytes().chain(name.bytes()).map(usize::from);
            let choice = choices[place.sum::<usize>() % choices.len()];
            match stored.keys(task, name) {
                None => known(choice),
                Some(keys) => {
                    let key = keys.get(choice % (keys.len() + 1));
                    key.map(|key| Kind::StringValue(key.clone()))
                }
            }
        };
        // Hidden observations have no answers, and neither do observations that can no longer be
        // asked.
        let mut unanswered = stored.names_set_by(&never_asked);
        if preview.next_observation.is_empty() {
            let value = |task: &str, name: &str| value(&unanswered, task, name);
            let listed = stored.list(&root, viewer, 8, &value);
            unanswered.extend(stored.names_set_by(&listed));
        }
        let complete = loop {
            let value = |task: &str, name: &str| value(&unanswered, task, name);
            let listed = stored.list(&root, viewer, 8, &value);
            let hidden = stored.names_of_hidden(&listed);
            if hidden.is_subset(&unanswered) {
                break stored.list(&root, viewer, 3, &value);
            }
            unanswered.extend(hidden);
        };
        assert_eq!(complete.len(), preview.steps.len());
        for (step, complete) in preview.steps.iter().zip(complete) {
            match step.visibility() {
                Visibility::Visible => assert!(complete.visible, "{step:?} with {choices:?}"),
                Visibility::Hidden => assert!(!complete.visible, "{step:?} with {choices:?}"),
                _ => {}
            }
        }
    }
}

#[apply(property_on_one_database)]
#[cases(16, (guides(), vec(0..KEYS.len(), 40), any::<bool>()))]
async fn answering_the_next_observation_again_and_again_ends(
    client: Client,
    (guide, choices, by_full_name): (Guide, Vec<usize>, bool),
) {
    let root = guide.stored(&client).await.swap_remove(0).guid;
    let stored = StoredGuides::of(&client).await;
    let mut request = preview_of(&root).with(|it| it.include_unpublished = true);
    let mut answered = BTreeSet::new();
    for choice in choices {
        let preview = client.previewed(request.clone()).await;
        let Some(next) = preview.next_observation.last() else {
            return;
        };
        let step = stored.step(next);
        assert_eq!(step.r#type(), StepType::Observation);
        let own = &step.feedback_config[0].name;
        let product = step.product_id.expect("a product");
        assert!(answered.insert(own.clone()), "{own} is asked for twice");
        let answers = answers_of(step);
        let key = &answers[choice % answers.len()].key;
        let name = if by_full_name {
            format!("components.{product}.{own}")
        } else {
            own.clone()
        };
        request = request.answering(&name, text(key));
    }
    panic!("more observations than there are names");
}

/// The guide without outside observations. Own names without an observation in their task become
/// account-wide names.
fn closed(mut guide: Guide) -> Guide {
    guide.outside.clear();
    let entered = guide.entered();
    for (index, task) in guide.tasks.iter_mut().enumerate() {
        if !entered.contains(&index) {
            task.steps.clear();
        }
        let observed = task.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Observation(observation) => Some(observation.name),
            _ => None,
        });
        let own: BTreeSet<&str> = observed.collect();
        let groups = task.steps.iter_mut().map(|step| &mut step.dependencies);
        for group in groups.chain([&mut task.dependencies]).flatten() {
            widen(group, &own);
        }
    }
    guide
}

fn widen(group: &mut DependencyGroup, own: &BTreeSet<&str>) {
    for node in group.nodes.iter_mut().filter_map(|node| node.node.as_mut()) {
        match node {
            Node::Group(group) => widen(group, own),
            Node::Condition(condition) if condition.path.is_empty() => {
                let mut named = NAMES.iter().filter(|(name, _)| *name == condition.variable);
                if let Some((name, product)) = named.next().filter(|(name, _)| !own.contains(name))
                {
                    condition.path = format!("components.{product}");
                    condition.variable = (*name).to_owned();
                }
            }
            Node::Condition(_) => {}
        }
    }
}

#[apply(property_on_one_database)]
#[cases(20, (guides(), views(), vec(0..KEYS.len(), 40)))]
async fn nothing_is_undetermined_once_nothing_is_left_to_ask(
    client: Client,
    (guide, view, choices): (Guide, View, Vec<usize>),
) {
    let guide = closed(guide);
    let root = guide.stored(&client).await.swap_remove(0).guid;
    let stored = StoredGuides::of(&client).await;
    let mut request = request(&root, view).to_depth(8);
    // Names that nothing sets are given.
    for name in full_names() {
        if stored.keys(&root, &name).is_none() && !NAMES.iter().any(|(own, _)| *own == name) {
            request = request.answering(&name, message(&None));
        }
    }
    for choice in choices {
        let preview = client.previewed(request.clone()).await;
        let Some(next) = preview.next_observation.last() else {
            let is_undetermined =
                |step: &&PreviewedStep| step.visibility() == Visibility::Undetermined;
            let undetermined: Vec<_> = preview.steps.iter().filter(is_undetermined).collect();
            assert_eq!(undetermined, Vec::<&PreviewedStep>::new());
            assert_eq!(preview.open_variables, []);
            return;
        };
        let answers = answers_of(stored.step(next));
        let name = &stored.step(next).feedback_config[0].name;
        request = request.answering(name, text(&answers[choice % answers.len()].key));
    }
    panic!("more observations than there are names");
}
