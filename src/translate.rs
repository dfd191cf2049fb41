//! The automatic translation process: lists what a server has to translate, translates
//! it with an engine, and writes it back.
//!
//! *Invariant:* an item is written completely or not at all, and never over a lock. The server
//! checks the lock in the transaction that writes the item. A run may be interrupted at any time,
//! and several runs may be concurrent.

mod engine;
mod html;
mod parts;
mod run;
mod work;

pub(crate) use self::run::{list_work, run};
