//! Properties that hold after every history of writes, checked with random histories.

mod equal_answers;
mod import_export;
mod links;
mod step_order;
mod translation_work;
mod update_masks;
