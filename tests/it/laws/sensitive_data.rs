//! Data of callers only reaches the database. Marked texts, tokens and passwords go through every
//! call of the API, valid and invalid, while the service logs everything. No log line, metric, span
//! or error contains a mark.

mod caller;
mod every_call;
mod invalid_values;
mod marks;
mod service;
mod unreadable_rows;
