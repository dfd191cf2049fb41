//! ImportTask of a document that creates a task with its steps.

mod absent_steps;
pub mod example_guides;
mod existing_task;
mod outcomes;
mod retries;
mod step_limit;
