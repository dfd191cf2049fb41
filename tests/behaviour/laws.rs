//! What holds of every history, tried with random ones.

mod of_imports;
mod of_links;
mod of_order;
mod of_step_masks;
mod of_task_masks;
mod of_work;
