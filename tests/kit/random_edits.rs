//! Random edits of an exported guide, above all of its linked questions.

use expertise::proto::v1::*;
use proptest::{
    prelude::*,
    sample::Index,
    strategy::{Just, Union},
};

use super::{
    documents::documents_in,
    sample::{
        answer, answer_with, document_step, linked_question, observation_asking, question, subtask,
    },
};

const KEYS: [&str; 4] = ["5", "true", "a", "b"];
const TEXTS: [&str; 3] = ["Five", "Green", "Blinks"];

/// A change at the document, step and value that the indexes choose.
#[derive(Clone, Debug)]
pub struct Edit {
    document: Index,
    step: Index,
    other: Index,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Add,
    Drop,
    Move,
    OmitStepId,
    /// A subtask step refers to another task of the guide.
    ReferTo,
    Name,
    /// The task's id is left out, so that the import creates a task.
    OmitTaskId,
    OmitQuestion,
    FlipLinked,
    AddValue,
    DropValue,
    SwapValues,
    Reword,
    Rekey,
    DropDocument,
    /// The value gets a copy of another document.
    CopyDocument,
}

/// How often each kind is made.
const WEIGHTS: [(u32, Kind); 16] = [
    (3, Kind::Add),
    (3, Kind::Drop),
    (2, Kind::Move),
    (2, Kind::OmitStepId),
    (1, Kind::ReferTo),
    (2, Kind::Name),
    (1, Kind::OmitTaskId),
    (1, Kind::OmitQuestion),
    (2, Kind::FlipLinked),
    (3, Kind::AddValue),
    (3, Kind::DropValue),
    (2, Kind::SwapValues),
    (2, Kind::Reword),
    (2, Kind::Rekey),
    (2, Kind::DropDocument),
    (1, Kind::CopyDocument),
];

pub fn edit() -> impl Strategy<Value = Edit> {
    let kind = Union::new_weighted(WEIGHTS.map(|(weight, kind)| (weight, Just(kind))).to_vec());
    let indexes = (any::<Index>(), any::<Index>(), any::<Index>());
    (indexes, kind).prop_map(|((document, step, other), kind)| Edit {
        document,
        step,
        other,
        kind,
    })
}

/// The document after the edits that fit it.
pub fn edited(mut document: TaskDocument, edits: &[Edit]) -> TaskDocument {
    for edit in edits {
        let all: Vec<TaskDocument> = documents_in(&document).into_iter().cloned().collect();
        let fitting: Vec<usize> = (0..all.len()).filter(|at| edit.fits(&all[*at])).collect();
        if !fitting.is_empty() {
            let mut at = *edit.document.get(&fitting);
            let chosen = document_at(&mut document, &mut at).expect("a document");
            edit.make(chosen, &all);
        }
    }
    document
}

/// The document at the index, in the order of [`documents_in`]. Subtracts the documents before it
/// from the index.
fn document_at<'a>(
    document: &'a mut TaskDocument,
    index: &mut usize,
) -> Option<&'a mut TaskDocument> {
    if *index == 0 {
        return Some(document);
    }
    *index -= 1;
    let steps = document.steps.iter_mut();
    let configs = steps.flat_map(|step| &mut step.feedback_config);
    let values = configs.flat_map(|config| &mut config.values);
    let mut inner = values.filter_map(|value| value.task_json.as_mut());
    inner.find_map(|inner| document_at(inner, index))
}

fn is_subtask(step: &Step) -> bool {
    step.r#type() == StepType::Subtask
}

fn asks(step: &Step) -> bool {
    step.r#type() == StepType::Observation && !step.feedback_config.is_empty()
}

impl Edit {
    fn fits(&self, document: &TaskDocument) -> bool {
        let mut steps = document.steps.iter();
        match self.kind {
            Kind::Add | Kind::Name | Kind::OmitTaskId => true,
            Kind::Drop | Kind::Move | Kind::OmitStepId => steps.next().is_some(),
            Kind::ReferTo => steps.any(is_subtask),
            _ => steps.any(asks),
        }
    }

    fn make(&self, document: &mut TaskDocument, all: &[TaskDocument]) {
        let steps = &mut document.steps;
        let count = steps.len();
        match self.kind {
            Kind::Add => {
                let new = self.new_step(&all[0]);
                steps.insert(self.step.index(count + 1), new);
            }
            Kind::Name => {
                let task = document.task.get_or_insert_default();
                task.name = self.text().to_owned();
            }
            Kind::OmitTaskId => document.task.get_or_insert_default().guid.clear(),
            Kind::Drop => drop(steps.remove(self.step.index(count))),
            Kind::Move => {
                let step = steps.remove(self.step.index(count));
                steps.insert(self.other.index(count), step);
            }
            Kind::OmitStepId => steps[self.step.index(count)].guid.clear(),
            Kind::ReferTo => {
                let target = self.other.get(all).task.clone().unwrap_or_default();
                let step = self.choose(steps, is_subtask);
                steps[step].subtask_id = target.guid;
                steps[step].subtask_pid = target.product_id;
                steps[step].subtask_external_id = None;
            }
            Kind::OmitQuestion => {
                let step = self.choose(steps, asks);
                steps[step].feedback_config.clear();
            }
            _ => {
                let step = self.choose(steps, asks);
                self.edit_question(&mut steps[step].feedback_config[0], all);
            }
        }
    }

    /// The index of one of the steps that fit.
    fn choose(&self, steps: &[Step], fits: fn(&Step) -> bool) -> usize {
        let fitting: Vec<usize> = (0..steps.len()).filter(|at| fits(&steps[*at])).collect();
        *self.step.get(&fitting)
    }

    fn text(&self) -> &'static str {
        TEXTS[self.other.index(TEXTS.len())]
    }

    /// A step of a guide with this document.
    fn new_step(&self, guide: &TaskDocument) -> Step {
        match self.other.index(4) {
            0 => document_step(StepType::Information, "note"),
            1 => subtask(&Task::default(), &guide.task.clone().unwrap_or_default()),
            2 => observation_asking(question("it", &["a", "b"])),
            _ => observation_asking(linked_question(vec![self.new_value("a"), answer("b", "B")])),
        }
    }

    /// A value, of which some bring a document, and some of these manage others.
    fn new_value(&self, key: &str) -> FeedbackValue {
        let inner = linked_question(vec![answer("a", "A")]);
        let steps = match self.step.index(4) {
            0 => return answer(key, self.text()),
            1 => Vec::new(),
            2 => vec![document_step(StepType::Information, "note")],
            _ => vec![observation_asking(inner)],
        };
        answer_with(key, self.text(), TaskDocument { task: None, steps })
    }

    /// Makes the edit if it is one of questions that fits.
    pub fn edit_question(&self, config: &mut FeedbackConfig, all: &[TaskDocument]) {
        let linked = config.linked.unwrap_or_default();
        let count = config.values.len();
        let (at, key) = (self.other.index(count), KEYS[self.step.index(KEYS.len())]);
        let is_new = !config.values.iter().any(|value| value.key == key);
        match self.kind {
            Kind::FlipLinked => config.linked = Some(!linked),
            Kind::AddValue if is_new => {
                let mut value = self.new_value(key);
                value.task_json = value.task_json.filter(|_| linked);
                config.values.insert(at, value);
            }
            Kind::DropValue if count > 1 => drop(config.values.remove(at)),
            Kind::SwapValues => config.values.swap(at, self.step.index(count)),
            Kind::Reword => config.values[at].value = self.text().to_owned(),
            Kind::Rekey if is_new => config.values[at].key = key.to_owned(),
            Kind::DropDocument => config.values[at].task_json = None,
            Kind::CopyDocument if linked && !all.is_empty() => {
                config.values[at].task_json = Some(Box::new(self.step.get(all).clone()));
            }
            _ => {}
        }
    }
}
