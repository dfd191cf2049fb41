//! A preview as a tree.

use std::collections::{BTreeMap, VecDeque};

use console::style;
use prost_types::value::Kind;

use crate::{
    cli::{
        layout::{Branch, with_hanging_indent},
        out::sanitize,
        wording,
    },
    proto::v1::{
        ConditionTrace, LogicalOperator, OpenVariable, PreviewAnswer, PreviewQuestion,
        PreviewTaskResponse, PreviewText, PreviewedStep, PreviewedTask, StepType, TraceReason,
        TracedCondition, Truth, Visibility, VisibilityReason, condition_trace::Node,
    },
};

/// What the response of a preview does not say.
#[derive(Default)]
pub(super) struct Reasons {
    /// A line about levels.
    pub levels: Option<String>,
    /// Lines for subtask steps, by the index of the step in the response.
    pub subtasks: BTreeMap<usize, Vec<String>>,
}

/// The tree of the steps, and what is open. Texts that are not in `language` are marked;
/// an empty `language` is that of the source.
pub(super) fn text(preview: &PreviewTaskResponse, language: &str, reasons: &Reasons) -> String {
    let PreviewTaskResponse {
        task,
        steps,
        next_observation,
        open_variables,
        hidden_answers,
        ..
    } = preview;
    let task = task.clone().unwrap_or_default();
    let mut leaves: Vec<Branch> = traces([("the task", &task.trace)]);
    let mut left = steps.iter().enumerate().collect();
    let context = TreeContext { language, reasons };
    leaves.extend(context.step_branches(&mut left, 0, task.visibility()));
    let mut text = Branch::new(task_lines(&task), leaves).text();
    if let Some(next) = next_observation.last() {
        let step = steps.iter().find(|step| {
            let via = via(next_observation).iter().map(|id| without_index(id));
            step.guid == without_index(next) && step.via.iter().eq(via) && is_open(step)
        });
        let title = step
            .map(|step| shown(step.title.as_ref()))
            .unwrap_or_default();
        text.push_str(&with_hanging_indent(
            "next observation: ",
            match title.is_empty() {
                true => next.clone(),
                false => format!("{title} {}", without_index(next)),
            }
            .trim(),
        ));
    }
    for variable in open_variables {
        let line = open_variable(variable, steps);
        text.push_str(&with_hanging_indent("open: ", &line));
    }
    for name in hidden_answers {
        text.push_str(&with_hanging_indent("answered but not asked: ", name));
    }
    if shows_outdated(&task, steps) {
        let meaning = "a translation whose source text has changed since";
        text.push_str(&with_hanging_indent("[outdated]: ", meaning));
    }
    let levels = reasons.levels.iter();
    text.extend(levels.map(|line| with_hanging_indent("levels: ", line)));
    text
}

/// Whether a text of the tree is marked as an outdated translation.
fn shows_outdated(task: &PreviewedTask, steps: &[PreviewedStep]) -> bool {
    let of_steps = steps.iter().flat_map(|step| {
        let answers = step.question.iter().flat_map(|question| &question.answers);
        let values = answers.flat_map(|answer| &answer.value);
        step.title.iter().chain(&step.body).chain(values)
    });
    task.name.iter().chain(of_steps).any(|text| text.outdated)
}

/// Whether the step is a visible observation without an answer. Steps of a document may have
/// no ids, and the first of those that are open is the next observation.
fn is_open(step: &PreviewedStep) -> bool {
    let mut question = step.question.iter();
    step.visibility() == Visibility::Visible
        && step.r#type() == StepType::Observation
        && question.any(|question| question.answer.is_none())
}

/// The id of a step; empty for the index of one that has none.
fn without_index(id: &str) -> &str {
    if id.starts_with('#') { "" } else { id }
}

/// The subtask steps by which the last of the ids is reached.
fn via(ids: &[String]) -> &[String] {
    ids.split_last().map_or(&[], |(_, via)| via)
}

fn task_lines(task: &PreviewedTask) -> Vec<String> {
    let name = style(shown(task.name.as_ref())).bold();
    let state = state(task.visibility(), task.reasons(), Visibility::Visible);
    let mut lines = vec![format!("{name} {state}")];
    // A document without an id has none.
    if !task.guid.is_empty() {
        lines.push(style(&task.guid).dim().to_string());
    }
    lines
}

/// What the branches of steps depend on in addition to the steps.
struct TreeContext<'a> {
    language: &'a str,
    reasons: &'a Reasons,
}

impl TreeContext<'_> {
    /// The branches of the steps at this depth, each with the steps of its subtask, which
    /// follow it. `reached` says whether their task, and the step that leads to it, is visible.
    fn step_branches(
        &self,
        steps: &mut VecDeque<(usize, &PreviewedStep)>,
        depth: usize,
        reached: Visibility,
    ) -> Vec<Branch> {
        let mut branches = Vec::new();
        while steps
            .front()
            .is_some_and(|(_, step)| step.via.len() >= depth)
        {
            let Some((index, step)) = steps.pop_front() else {
                break;
            };
            let subtask_lines = self.reasons.subtasks.get(&index).into_iter().flatten();
            let mut leaves: Vec<Branch> = subtask_lines
                .map(|line| Branch::new(vec![line.clone()], Vec::new()))
                .collect();
            leaves.extend(traces([
                ("the step", &step.trace),
                ("its task", &step.subtask_trace),
            ]));
            leaves.extend(step.question.as_ref().map(question));
            leaves.extend(self.step_branches(steps, depth + 1, step.visibility()));
            let lines = step_lines(branches.len() + 1, step, self.language, reached);
            branches.push(Branch::new(lines, leaves));
        }
        branches
    }
}

fn step_lines(place: usize, step: &PreviewedStep, asked: &str, reached: Visibility) -> Vec<String> {
    let PreviewedStep {
        guid,
        cost,
        title,
        body,
        instructions,
        instructions_language,
        ..
    } = step;
    let cost = match cost {
        0 => String::new(),
        cost => format!(", cost {cost}"),
    };
    let kind = style(format!("{}{cost}", wording::kind(step.r#type()))).cyan();
    let title = style(shown(title.as_ref())).bold();
    let state = state(step.visibility(), step.reasons(), reached);
    let mut lines = vec![format!("{place}. {kind}: {title} {state}")];
    if !guid.is_empty() {
        lines.push(style(guid).dim().to_string());
    }
    let language = match instructions_language.as_str() {
        "" => String::new(),
        language if language == asked => String::new(),
        language => format!(" [{}]", sanitize(language)),
    };
    lines.extend(wording::instruction_count(instructions.len()).map(|it| it + &language));
    lines.extend(body.iter().map(|body| shown(Some(body))));
    lines
}

/// `[visible]`, or whether it is hidden or undetermined, and why. `reached` is the visibility
/// of what it belongs to.
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
        _ => wording::name(reason.as_str_name(), "VISIBILITY_REASON_").replace('_', " "),
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

/// A text, marked if it is not in the language asked for or not current.
fn shown(text: Option<&PreviewText>) -> String {
    let Some(PreviewText {
        text,
        language,
        fallback,
        outdated,
    }) = text
    else {
        return String::new();
    };
    let language = match language.as_str() {
        "" => "source",
        language => language,
    };
    let mark = match (fallback, outdated) {
        (false, false) => String::new(),
        (true, false) => format!(" [{language}]"),
        (false, true) => " [outdated]".to_owned(),
        (true, true) => format!(" [{language}, outdated]"),
    };
    sanitize(&format!("{text}{mark}"))
}

fn question(question: &PreviewQuestion) -> Branch {
    let PreviewQuestion {
        name,
        answers,
        answer,
    } = question;
    let known = match answer.as_ref().map(|answer| &answer.kind) {
        None => String::new(),
        Some(None | Some(Kind::NullValue(_))) => ", not answered".to_owned(),
        Some(Some(_)) => {
            let answer = answer.as_ref().map(wording::target).unwrap_or_default();
            format!(", answered {}", style(sanitize(&answer)).green())
        }
    };
    let head = format!("asks {}{known}", style(sanitize(name)).magenta());
    let answers = answers.iter().map(|answer| {
        let PreviewAnswer { key, value, link } = answer;
        let line = format!("{}: {}", sanitize(key), shown(value.as_ref()));
        match link.as_str() {
            "" => Branch::new(vec![line], Vec::new()),
            link => Branch::new(vec![line, format!("leads to task {link}")], Vec::new()),
        }
    });
    Branch::new(vec![head], answers.collect())
}

/// Why conditions hold or not, each named by what they are conditions of.
fn traces<const N: usize>(traces: [(&str, &Option<ConditionTrace>); N]) -> Vec<Branch> {
    let traces = traces.into_iter();
    let present = traces.filter_map(|(of, trace)| Some((of, trace.as_ref()?)));
    let branches = present.map(|(of, trace)| {
        let head = format!("the conditions of {of} are {}", truth(trace.result()));
        Branch::new(vec![head], vec![traced(trace)])
    });
    branches.collect()
}

fn traced(trace: &ConditionTrace) -> Branch {
    match &trace.node {
        Some(Node::Condition(condition)) => {
            let line = format!("{}: {}", truth(trace.result()), compared(condition));
            Branch::new(vec![line], Vec::new())
        }
        Some(Node::Group(group)) => {
            let all = match group.operator() {
                LogicalOperator::And => "all of these",
                LogicalOperator::Or => "one of these",
                LogicalOperator::Unspecified => "these",
            };
            let line = format!("{}: {all}", truth(trace.result()));
            Branch::new(vec![line], group.nodes.iter().map(traced).collect())
        }
        None => Branch::new(Vec::new(), Vec::new()),
    }
}

/// A comparison with the value that it saw, such as `power is "on" (it is "off")`.
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
    let mut asking = listed.iter().filter(|step| {
        let mut question = step.question.iter();
        question.any(|question| super::sets(question, name))
    });
    let is_asked_by_hidden_steps = asking.next().is_some_and(|first| {
        let is_hidden = |step: &PreviewedStep| step.visibility() == Visibility::Hidden;
        is_hidden(first) && asking.all(is_hidden)
    });
    let asked = match is_asked_by_hidden_steps {
        true => "; only hidden steps ask for it",
        false => "",
    };
    let steps = match steps {
        1 => "1 step depends".to_owned(),
        steps => format!("{steps} steps depend"),
    };
    let keys = match keys.as_slice() {
        [] => String::new(),
        keys => format!("; its answers are {}", keys.join(", ")),
    };
    sanitize(&format!("{name}: {steps} on it{keys}{asked}"))
}
