//! What callers send stays between them and the database. Marked texts, tokens and
//! passwords go through every call of the contract, valid and invalid ones, while the
//! service logs everything. No log line, metric, span or error holds a mark.

mod caller;
mod every_call;
mod invalid_values;
mod marks;
mod service;
mod unreadable_rows;
