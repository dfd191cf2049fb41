//! The automatic translation process: lists what a server has to translate, translates
//! it with an engine, and writes it back.
//!
//! *Invariant:* an item is written whole or not at all, and never over a lock: the server
//! checks that in the transaction that writes it. So a run may be interrupted at any
//! time, and two may run at once.

mod engine;
mod html;
mod parts;
mod run;
mod work;

pub(crate) use self::run::{list_work, run};
