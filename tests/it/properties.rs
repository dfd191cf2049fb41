//! What holds of every history, checked with random ones.

mod import_export;
mod linked_tasks;
mod step_masks;
mod step_order;
mod task_masks;
mod translation_work;
