//! Traces: each node with its truth, and each comparison with the value that it saw.

use condition_trace::Node;
use proptest::{collection::vec, option};
use prost_types::{Value, value::Kind};

use super::{information, observation, reference::StoredGuides, step_titled};
use crate::{
    kit::prelude::*,
    random_guides::{Guide, KEYS, NAMES, condition_holds, guides},
};

/// The trace of the only condition of a step.
fn only(preview: &PreviewTaskResponse, title: &str) -> (Truth, TracedCondition) {
    let trace = step_titled(preview, title).trace.as_ref().expect("a trace");
    let Some(Node::Group(group)) = &trace.node else {
        panic!("no group: {trace:?}");
    };
    let [node] = group.nodes.as_slice() else {
        panic!("not one node: {group:?}");
    };
    let Some(Node::Condition(condition)) = &node.node else {
        panic!("no condition: {node:?}");
    };
    (node.result(), condition.clone())
}

#[apply(on_one_database)]
async fn a_comparison_says_what_it_saw_and_why(client: Client) {
    let steps = vec![
        observation("light", &["off", "5"]),
        information("equal", when("light", "=", "5")),
        information("unequal", when("light", "!=", "5")),
        information("greater", when("light", ">", "4")),
        information("not a bound", when("light", ">", "high")),
        information("impossible", when("light", "=", "green")),
    ];
    let task = client.imported(document("Lamp", steps)).await;
    let null = value(serde_json::Value::Null);
    for (answer, title, result, reason) in [
        (Some(text("5")), "equal", Truth::True, TraceReason::Matched),
        (
            Some(text("5")),
            "unequal",
            Truth::False,
            TraceReason::NotMatched,
        ),
        (
            Some(number(5.0)),
            "equal",
            Truth::True,
            TraceReason::Matched,
        ),
        (
            Some(text("5")),
            "greater",
            Truth::True,
            TraceReason::Matched,
        ),
        (
            Some(text("off")),
            "greater",
            Truth::False,
            TraceReason::NotComparable,
        ),
        (
            Some(text("5")),
            "not a bound",
            Truth::False,
            TraceReason::NotComparable,
        ),
        (
            Some(null.clone()),
            "equal",
            Truth::False,
            TraceReason::Unanswered,
        ),
        (Some(null), "unequal", Truth::True, TraceReason::Unanswered),
        (None, "equal", Truth::Unknown, TraceReason::UnknownValue),
        (None, "impossible", Truth::False, TraceReason::NotMatched),
        (
            None,
            "not a bound",
            Truth::False,
            TraceReason::NotComparable,
        ),
    ] {
        let mut request = preview_of(&task.guid).with_traces(true);
        if let Some(answer) = &answer {
            request = request.answering("light", answer.clone());
        }
        let preview = client.previewed(request).await;
        let (found, condition) = only(&preview, title);
        assert_eq!(
            (found, condition.reason()),
            (result, reason),
            "{title} {answer:?}"
        );
        assert_eq!(condition.value, answer, "{title}");
        assert_eq!(condition.name, "light");
    }
}

#[apply(on_one_database)]
async fn a_trace_has_the_form_of_the_dependencies_and_their_paths(client: Client) {
    let inner = any_of(vec![when("a", "=", "1"), when("b", "!=", "2")]);
    let group = all_of(vec![
        comparison(Condition {
            variable: "light".to_owned(),
            operator: ">".to_owned(),
            targets: vec![number(1.0), text("x")],
            path: "components.9".to_owned(),
        }),
        nested(inner),
    ]);
    let step = document_step(StepType::Information, "step").depending_on(group);
    let task = client.imported(document("Lamp", vec![step])).await;
    let request = preview_of(&task.guid).with_traces(true);
    let preview = client.previewed(request.answering("b", text("3"))).await;
    let trace = step_titled(&preview, "step")
        .trace
        .as_ref()
        .expect("a trace");
    let Some(Node::Group(outer)) = &trace.node else {
        panic!("no group: {trace:?}");
    };
    assert_eq!(trace.result(), Truth::Unknown);
    assert_eq!(outer.operator(), LogicalOperator::And);
    let [first, second] = outer.nodes.as_slice() else {
        panic!("not two nodes: {outer:?}");
    };
    let Some(Node::Condition(condition)) = &first.node else {
        panic!("no condition: {first:?}");
    };
    assert_eq!(condition.name, "components.9.light");
    assert_eq!(condition.operator, ">");
    assert_eq!(condition.targets, [number(1.0), text("x")]);
    assert_eq!(condition.path, "dependencies.nodes[0].condition");
    let Some(Node::Group(inner)) = &second.node else {
        panic!("no group: {second:?}");
    };
    assert_eq!(second.result(), Truth::True);
    assert_eq!(inner.operator(), LogicalOperator::Or);
    let Some(Node::Condition(condition)) = &inner.nodes[1].node else {
        panic!("no condition: {inner:?}");
    };
    assert_eq!(
        condition.path,
        "dependencies.nodes[1].group.nodes[1].condition"
    );
}

#[apply(on_one_database)]
async fn a_subtask_step_has_the_trace_of_its_task(client: Client) {
    let condition = all_of(vec![when("light", "=", "off")]);
    let other = client
        .given_task(task("Other").with_dependencies(condition.clone()))
        .await;
    let task = client
        .given_task(task("Lamp").with_dependencies(condition))
        .await;
    client.given_step(subtask(&task, &other)).await;
    let request = preview_of(&task.guid).with_traces(true);
    let preview = client
        .previewed(request.answering("light", text("on")))
        .await;
    let step = step_titled(&preview, "Other");
    assert_eq!(step.trace, None);
    let trace = step.subtask_trace.as_ref().expect("a trace");
    assert_eq!(trace.result(), Truth::False);
    let of_task = preview.task.as_ref().and_then(|task| task.trace.as_ref());
    assert_eq!(of_task, Some(trace));
}

#[apply(on_one_database)]
async fn without_explain_there_is_no_trace(client: Client) {
    let dark = task("Dark").with_dependencies(all_of(vec![when("light", "=", "off")]));
    let other = client.given_task(dark.clone().named("Other")).await;
    let steps = vec![
        information("step", when("light", "=", "off")),
        subtask(&Task::default(), &other),
    ];
    let guide = client.imported(document_with(dark, steps)).await;
    let preview = client.previewed(preview_of(&guide.guid)).await;
    assert_eq!(step_titled(&preview, "step").trace, None);
    assert_eq!(step_titled(&preview, "Other").subtask_trace, None);
    assert_eq!(preview.task.expect("a task").trace, None);
}

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
#[cases(40, (guides(), vec(option::of(0..=KEYS.len()), NAMES.len())))]
async fn a_trace_recomputed_from_its_conditions_gives_the_visibility(
    client: Client,
    (guide, values): (Guide, Vec<Option<usize>>),
) {
    let root = guide.stored(&client).await.swap_remove(0).guid;
    let mut request = preview_of(&root).with_traces(true).to_depth(2);
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
