//! Properties that hold after every history of writes, checked with random histories.

mod import_export;
mod linked_tasks;
mod step_masks;
mod step_order;
mod task_masks;
mod translation_work;
