//! A preview as a tree.

use std::collections::{BTreeMap, VecDeque};

use console::style;
use prost_types::value::Kind;

use crate::{
    cli::{
        layout::Branch,
        out::{sanitize, step_count},
        wording,
    },
    proto::v1::{
        ConditionTrace, LogicalOperator, OpenVariable, PreviewQuestion, PreviewTaskResponse,
        PreviewText, PreviewedStep, PreviewedTask, StepType, TraceReason, TracedCondition, Truth,
        Visibility, VisibilityReason, condition_trace::Node,
    },
};

/// The tree of the steps, and what is undecided. Texts that are not in `language` are marked; an
/// empty `language` is that of the source. `audiences` has the audience of the task, and of the
/// tasks of subtask steps.
pub(super) fn text(
    preview: &PreviewTaskResponse,
    language: &str,
    audiences: &BTreeMap<Option<usize>, String>,
) -> String {
    let PreviewTaskResponse {
        task,
        steps,
        next_observation,
        open_variables,
        hidden_answers,
        ..
    } = preview;
    let task = task.clone().unwrap_or_default();
    let audience = audiences.get(&None).into_iter();
    let audience = audience.map(|it| Branch::leaf(format!("the task is {it}")));
    let mut leaves: Vec<Branch> = audience.chain(traced("the task", &task.trace)).collect();
    let tree = StepTree {
        language,
        audiences,
    };
    let mut listed = steps.iter().enumerate().collect();
    leaves.extend(tree.branches(&mut listed, 0, task.visibility()));
    let mut text = Branch::new(task_lines(&task), leaves).text();
    if let Some(id) = next_observation.last() {
        // Steps of a document may have no ids, so indexes name them.
        let guid = if id.starts_with('#') { "" } else { id };
        let next = steps.iter().find(|step| is_open(step));
        let next = next.filter(|it| it.guid == guid && it.via.len() + 1 == next_observation.len());
        let next = next.map(|step| format!("{} {guid}", shown(step.title.as_ref())));
        let next = next.as_ref().unwrap_or(id).trim();
        text.push_str(&format!("next observation: {next}\n"));
    }
    for variable in open_variables {
        text.push_str(&format!("open: {}\n", open_variable(variable, steps)));
    }
    for name in hidden_answers {
        text.push_str(&format!("answered but not asked: {}\n", sanitize(name)));
    }
    text
}

/// Whether the step is a visible observation without an answer.
fn is_open(step: &PreviewedStep) -> bool {
    let mut question = step.question.iter();
    step.visibility() == Visibility::Visible
        && step.r#type() == StepType::Observation
        && question.any(|question| question.answer.is_none())
}

fn task_lines(task: &PreviewedTask) -> Vec<String> {
    let name = style(shown(task.name.as_ref())).bold();
    let state = state(task.visibility(), task.reasons(), Visibility::Visible);
    let mut lines = vec![format!("{name} {state}")];
    lines.extend(guid_line(&task.guid));
    lines
}

/// Documents may have no ids.
fn guid_line(guid: &str) -> Option<String> {
    (!guid.is_empty()).then(|| style(guid).dim().to_string())
}

struct StepTree<'a> {
    language: &'a str,
    audiences: &'a BTreeMap<Option<usize>, String>,
}

impl StepTree<'_> {
    /// The branches of the steps at this depth, each with the steps of its subtask. `reached` says
    /// whether their task, and the step that leads to it, is visible.
    fn branches(
        &self,
        steps: &mut VecDeque<(usize, &PreviewedStep)>,
        depth: usize,
        reached: Visibility,
    ) -> Vec<Branch> {
        let mut branches = Vec::new();
        while let Some((index, step)) = steps.pop_front_if(|(_, step)| step.via.len() >= depth) {
            let audience = self.audiences.get(&Some(index)).into_iter();
            let audience = audience.map(|it| Branch::leaf(format!("its task is {it}")));
            let mut leaves: Vec<Branch> = audience.collect();
            leaves.extend(traced("the step", &step.trace));
            leaves.extend(traced("its task", &step.subtask_trace));
            leaves.extend(step.question.as_ref().map(question));
            leaves.extend(self.branches(steps, depth + 1, step.visibility()));
            let lines = self.lines(branches.len() + 1, step, reached);
            branches.push(Branch::new(lines, leaves));
        }
        branches
    }

    fn lines(&self, place: usize, step: &PreviewedStep, reached: Visibility) -> Vec<String> {
        let kind = wording::step_kind(step.r#type(), step.cost);
        let title = style(shown(step.title.as_ref())).bold();
        let state = state(step.visibility(), step.reasons(), reached);
        let mut lines = vec![format!("{place}. {kind}: {title} {state}")];
        lines.extend(guid_line(&step.guid));
        let language = match step.instructions_language.as_str() {
            "" => String::new(),
            language if language == self.language => String::new(),
            language => format!(" [{}]", sanitize(language)),
        };
        let instructions = wording::instruction_count(step.instructions.len());
        lines.extend(instructions.map(|it| it + &language));
        lines.extend(step.body.iter().map(|body| shown(Some(body))));
        lines
    }
}

/// `[visible]`, or why it is hidden or undetermined. `reached` is the visibility of its task.
fn state(
    visibility: Visibility,
    reasons: impl Iterator<Item = VisibilityReason>,
    reached: Visibility,
) -> impl std::fmt::Display {
    let reasons = reasons.map(|reason| match (reason, visibility, reached) {
        (VisibilityReason::SubtaskHidden, Visibility::Undetermined, _) => {
            "the subtask may be hidden".to_owned()
        }
        (VisibilityReason::TaskHidden, _, Visibility::Undetermined) => {
            "the task may be hidden".to_owned()
        }
        _ => wording::name(reason.as_str_name(), "VISIBILITY_REASON_"),
    });
    let reasons: Vec<String> = reasons.collect();
    let name = wording::name(visibility.as_str_name(), "VISIBILITY_");
    let text = match reasons.as_slice() {
        [] => format!("[{name}]"),
        reasons => format!("[{name}: {}]", reasons.join(", ")),
    };
    match visibility {
        Visibility::Visible => style(text).green(),
        Visibility::Hidden => style(text).red(),
        Visibility::Undetermined | Visibility::Unspecified => style(text).yellow(),
    }
}

/// A text, marked if it is outdated or not in the requested language.
fn shown(text: Option<&PreviewText>) -> String {
    let Some(text) = text else {
        return String::new();
    };
    let language = match text.language.as_str() {
        "" => "source",
        language => language,
    };
    let marks = [(text.fallback, language), (text.outdated, "outdated")];
    let marks: Vec<&str> = marks
        .into_iter()
        .filter_map(|(is_set, mark)| is_set.then_some(mark))
        .collect();
    let mark = match marks.as_slice() {
        [] => String::new(),
        marks => format!(" [{}]", marks.join(", ")),
    };
    sanitize(&format!("{}{mark}", text.text))
}

fn question(question: &PreviewQuestion) -> Branch {
    let known = match question.answer.as_ref().map(|answer| &answer.kind) {
        None => String::new(),
        Some(None | Some(Kind::NullValue(_))) => ", not answered".to_owned(),
        Some(Some(_)) => {
            let answer = question.answer.as_ref().map(wording::target);
            let answer = sanitize(&answer.unwrap_or_default());
            format!(", answered {}", style(answer).green())
        }
    };
    let name = style(sanitize(&question.name)).magenta();
    let answers = question.answers.iter().map(|answer| {
        let line = format!(
            "{}: {}",
            sanitize(&answer.key),
            shown(answer.value.as_ref())
        );
        let mut lines = vec![line];
        if !answer.link.is_empty() {
            lines.push(format!("leads to task {}", answer.link));
        }
        Branch::new(lines, Vec::new())
    });
    Branch::new(vec![format!("asks {name}{known}")], answers.collect())
}

/// Why the conditions of something hold or fail.
fn traced(of: &str, trace: &Option<ConditionTrace>) -> Option<Branch> {
    let trace = trace.as_ref()?;
    let head = format!("the conditions of {of} are {}", truth(trace.result()));
    Some(Branch::new(vec![head], vec![trace_branch(trace)]))
}

fn trace_branch(trace: &ConditionTrace) -> Branch {
    let truth = truth(trace.result());
    match &trace.node {
        Some(Node::Condition(condition)) => {
            Branch::leaf(format!("{truth}: {}", compared(condition)))
        }
        Some(Node::Group(group)) => {
            let all = match group.operator() {
                LogicalOperator::And => "all of these",
                LogicalOperator::Or => "one of these",
                LogicalOperator::Unspecified => "these",
            };
            let nodes = group.nodes.iter().map(trace_branch).collect();
            Branch::new(vec![format!("{truth}: {all}")], nodes)
        }
        None => Branch::new(Vec::new(), Vec::new()),
    }
}

/// A comparison and the actual value, such as `power is "on" (it is "off")`.
fn compared(condition: &TracedCondition) -> String {
    let TracedCondition {
        name,
        operator,
        targets,
        value,
        ..
    } = condition;
    let seen = value.as_ref().map(wording::target).unwrap_or_default();
    let seen = match condition.reason() {
        TraceReason::Unanswered => "it is not answered".to_owned(),
        TraceReason::UnknownValue => "its value is not known".to_owned(),
        TraceReason::NotComparable => format!("{seen} cannot be compared"),
        TraceReason::Matched | TraceReason::NotMatched | TraceReason::Unspecified => {
            format!("it is {seen}")
        }
    };
    let comparison = wording::comparison(operator, targets);
    sanitize(&format!("{name} {comparison} ({seen})"))
}

fn truth(truth: Truth) -> impl std::fmt::Display {
    let name = wording::name(truth.as_str_name(), "TRUTH_");
    match truth {
        Truth::True => style(name).green(),
        Truth::False => style(name).red(),
        Truth::Unknown | Truth::Unspecified => style(name).yellow(),
    }
}

fn open_variable(variable: &OpenVariable, listed: &[PreviewedStep]) -> String {
    let OpenVariable { name, steps, keys } = variable;
    let asking = listed.iter().filter(|step| {
        let mut question = step.question.iter();
        question.any(|question| super::sets(question, name))
    });
    let asking: Vec<Visibility> = asking.map(PreviewedStep::visibility).collect();
    let only_hidden = !asking.is_empty() && asking.iter().all(|it| *it == Visibility::Hidden);
    let asked = match only_hidden {
        true => "; only hidden steps ask for it",
        false => "",
    };
    let depend = if *steps == 1 { "depends" } else { "depend" };
    let steps = step_count(usize::try_from(*steps).unwrap_or_default());
    let keys = match keys.as_slice() {
        [] => String::new(),
        keys => format!("; its answers are {}", keys.join(", ")),
    };
    sanitize(&format!("{name}: {steps} {depend} on it{keys}{asked}"))
}
