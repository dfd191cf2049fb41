//! The meaning of conditions, for the analysis and preview of guides. It does not affect what the
//! service accepts, stores or returns elsewhere.
//!
//! A [`Guide`] is a task with its steps and the steps of its subtasks, read as one state. Its
//! conditions are compiled: each refers to its variable by index, and its truth for an unknown
//! value is computed once.

mod budget;
mod condition;
mod evaluation;
mod fingerprint;
mod guide;
mod names;
pub mod preview;
mod references;
mod truth;
mod value;
mod variable;

pub use budget::{Allowance, Budget, DECISION_WORK, NEVER, StopSignal};
pub use condition::{CompiledCondition, Dependencies, TraceReason};
pub use evaluation::{Evaluation, Evaluator, TaskVisit, Visit, evaluate};
pub use fingerprint::Fingerprint;
pub use guide::{
    Guide, GuideDraft, GuideLimit, GuideStep, GuideStop, GuideTask, MAX_GUIDE_STEPS,
    MAX_SUBTASK_LEVELS, SourceTasks, StepPosition, SubtaskEntry, TranslationState, Unpublished,
    guide_weight, plan_tasks, refer_to_documents,
};
pub use names::{KnownVariables, account_name, full_name, parse_account_name};
pub use references::{
    Reference, ReferenceCursor, ReferenceFilter, ReferenceKind, ReferencePage, ReferencePlace,
    VariableFilter,
};
pub use truth::Truth;
pub use value::{Criterion, KeySet, ValueClasses, VariableValue, is_numeric};
pub use variable::{Outside, OutsideSetter, Variable, VariableId};
