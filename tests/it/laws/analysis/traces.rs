//! A trace says why a step is visible.

use condition_trace::Node;
use proptest::{collection::vec, option};
use prost_types::{Value, value::Kind};

use super::evaluator::StoredGuides;
use crate::{
    laws::random_guides::{Guide, KEYS, NAMES, condition_holds, guides},
    prelude::*,
};

/// The truth of a trace from its conditions; `None` is UNKNOWN.
fn recomputed(trace: &ConditionTrace) -> Option<bool> {
    let truth = match trace.node.as_ref().expect("a node") {
        Node::Condition(condition) => from_leaf(trace.result(), condition),
        Node::Group(group) => {
            let nodes: Vec<Option<bool>> = group.nodes.iter().map(recomputed).collect();
            let decides = group.operator() == LogicalOperator::Or;
            if nodes.contains(&Some(decides)) {
                Some(decides)
            } else if nodes.contains(&None) {
                None
            } else {
                Some(!decides)
            }
        }
    };
    assert_eq!(trace.result(), message(truth), "{trace:?}");
    truth
}

/// The truth of a condition: computed from the value in its trace, or else as the trace
/// says.
fn from_leaf(result: Truth, condition: &TracedCondition) -> Option<bool> {
    let seen = condition.value.as_ref().map(|value| match &value.kind {
        Some(Kind::NullValue(_)) => None,
        kind => kind.clone(),
    });
    match seen {
        Some(seen) => Some(condition_holds(
            &seen,
            &condition.operator,
            &condition.targets,
        )),
        None => match result {
            Truth::True => Some(true),
            Truth::False => Some(false),
            _ => None,
        },
    }
}

fn message(truth: Option<bool>) -> Truth {
    match truth {
        Some(true) => Truth::True,
        Some(false) => Truth::False,
        None => Truth::Unknown,
    }
}

#[apply(property_on_one_database)]
#[cases(20, (guides(), vec(option::of(0..=KEYS.len()), NAMES.len())))]
async fn a_trace_recomputed_from_its_conditions_gives_the_visibility(
    client: Client,
    (guide, values): (Guide, Vec<Option<usize>>),
) {
    let root = guide.stored(&client).await.swap_remove(0).guid;
    let mut request = preview_of(&root).with(|it| it.explain = true).to_depth(2);
    request.page_size = 500;
    for ((name, _), value) in NAMES.iter().zip(values) {
        let Some(value) = value else { continue };
        let null = || Value {
            kind: Some(Kind::NullValue(0)),
        };
        let key = KEYS.get(value).map_or_else(null, |key| text(key));
        request = request.answering(name, key);
    }
    let preview = client.previewed(request).await;
    let stored = StoredGuides::of(&client).await;
    let holds = |trace: Option<&ConditionTrace>| trace.map_or(Some(true), recomputed);
    for step in &preview.steps {
        let depends = holds(step.trace.as_ref());
        let reasons: Vec<VisibilityReason> = step.reasons().collect();
        let hidden = reasons.contains(&VisibilityReason::Condition);
        assert_eq!(hidden, depends == Some(false), "{step:?}");
        let mut parts = vec![depends];
        if step.r#type() == StepType::Subtask {
            parts.push(holds(step.subtask_trace.as_ref()));
            let subtask = stored.task(&stored.step(&step.guid).subtask_id);
            parts.push(Some(subtask.published == Some(1)));
        }
        let other = [
            VisibilityReason::NotPublished,
            VisibilityReason::AfterEnd,
            VisibilityReason::SubtaskCycle,
            VisibilityReason::TaskHidden,
        ];
        let expected = if parts.contains(&Some(false)) {
            Visibility::Hidden
        } else if reasons.iter().any(|reason| other.contains(reason)) {
            // It is not visible for another reason.
            assert_ne!(step.visibility(), Visibility::Visible, "{step:?}");
            continue;
        } else if parts.contains(&None) {
            Visibility::Undetermined
        } else if reasons == [VisibilityReason::UnknownValue] {
            // An END before it is undetermined.
            Visibility::Undetermined
        } else {
            Visibility::Visible
        };
        assert_eq!(step.visibility(), expected, "{step:?}");
    }
}
