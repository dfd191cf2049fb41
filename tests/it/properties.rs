//! Properties that hold after every history of writes, checked with random histories.

mod document_limits;
mod equal_answers;
mod import_export;
pub mod linked_tasks;
mod step_order;
mod translation_work;
pub mod update_masks;
