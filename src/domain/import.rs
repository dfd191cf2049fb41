//! What an import makes of a document: a plan of every task and step as it is
//! to be, all or nothing.
//!
//! The plan is pure. The store reads what there is, asks for the plan, and
//! writes where the two differ.

mod document;
mod plan;
mod state;
mod wiring;

pub use document::{
    AbsentSteps, DEPTH_MAX, Document, DocumentStep, DocumentTask, DocumentValue, STEPS_MAX, Says,
};
pub use plan::{plan, without_indexes};
pub use state::{Context, Plan, PlannedStep, PlannedTask, Tree};
