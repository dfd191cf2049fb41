//! Guarantees that hold for every call, or after every history of writes.

mod account_isolation;
mod analysis;
mod equal_answers;
mod every_field;
pub mod field_paths;
mod import_export;
mod links;
mod random_guides;
pub mod revisions;
mod sensitive_data;
mod statement_tenancy;
mod step_order;
mod translation_work;
mod update_masks;
