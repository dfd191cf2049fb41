//! What an import makes of a document: a plan of every task and step as it is
//! to be, all or nothing.
//!
//! The plan is pure: the store reads what there is, and turns the plan's changes into
//! statements.

mod document;
mod plan;
mod state;
mod wiring;

pub use document::{
    AbsentSteps, DEPTH_MAX, Document, DocumentStep, DocumentTask, DocumentValue, STEPS_MAX, Says,
};
pub use plan::{plan, without_indexes};
pub use state::{ImportContext, ImportPlan, TaskTree};
