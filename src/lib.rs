//! `expertise`: the authoring service for guided troubleshooting.
//!
//! A task is a guide: ordered steps that lead through a problem. The service
//! keeps tasks and steps for many accounts, over gRPC, on SQLite or PostgreSQL.
//! `README.md` says how to run it, `docs/architecture.md` how it is built.
//!
//! # The rooms
//!
//! ```text
//! wire ──> server ──> grpc (decode) ──> domain ──> store ──> database
//! wire <── server <── grpc (encode) <── domain <── store
//! ```
//!
//! | Room | What is in it |
//! |---|---|
//! | [`proto`] | the contract: generated messages, servers and clients |
//! | [`domain`] | values that are valid by construction, and the laws over them |
//! | [`store`] | every query; a write is one transaction |
//! | [`grpc`] | decode, one store call, encode; [`grpc::status`] makes the errors |
//! | [`auth`] | credentials become an [`auth::Caller`] |
//! | [`server`] | the listener and what every call passes |
//! | `ongoing` | the call that work is done for: what nobody waits for is not begun |
//! | [`config`], [`telemetry`] | settings; the log and traces |
//! | [`client`] | a running server as commands call it |
//! | [`translate`] | the automatic translation process, a client of the service |
//! | [`cli`] | the subcommands: what each does, and what people and scripts read of it |
//! | [`pem`], [`version`] | files of certificates and keys; which build this is |
//! | `terminal` | texts made safe for a terminal |
//!
//! [`domain`] imports nothing of ours, [`store`] does not know the wire, and
//! [`grpc`] does not know the database.
//!
//! # What always holds
//!
//! - No query without an account: all of them hang off [`store::Account`].
//! - The schema's keys make a reference into another account impossible.
//! - After decoding nothing re-validates: a value of a domain type is valid.
//! - One write is one transaction, begun in one place, run to its end even when
//!   the caller goes away.
//! - Locks are taken in one order: tasks by id, then steps by id.
//! - An answer OK means durable.
//! - SQLite and PostgreSQL answer alike, from one code path.
//! - No state that matters lives in a process: several servers share a database.
//!
//! # CreateStep, from wire to row
//!
//! The server's gate finds the caller, its scope and its deadline in the headers
//! and notes the caller in the request's extensions. The service decodes the
//! message to a [`domain::step::NewStep`] and gathers everything that is wrong
//! with it in [`domain::violation::Violations`]; what a type of step needs is in
//! the shape of [`domain::step::StepKind`], so that a subtask with a title of its
//! own cannot be said. [`store::Account::create_step`] raises the parent task's
//! version and inserts behind its last step in one statement; what needs more
//! to be looked at, it does in a transaction: it locks the parent task, takes a
//! subtask's title from the task that it names, finds the place, inserts without
//! reading back, raises the task's version and commits. The stored
//! [`domain::step::Step`] is encoded, and [`grpc::status::from_error`] tells the
//! caller of anything that went wrong.
//!
//! # A taste
//!
//! The domain works without a server. A shorthand is one condition, and parsing
//! and rendering are inverse:
//!
//! ```
//! use expertise::domain::{dependency::Node, shorthand};
//!
//! let group = shorthand::parse("components.1204.charge_light=off,blinking")?;
//! let [Node::Condition(condition)] = group.nodes.as_slice() else {
//!     panic!("a shorthand is one condition");
//! };
//! assert_eq!(condition.path.as_str(), "components.1204");
//! assert_eq!(condition.variable.as_str(), "charge_light");
//! assert_eq!(
//!     shorthand::render(&group).as_deref(),
//!     Some("components.1204.charge_light = off, blinking"),
//! );
//!
//! let fault = shorthand::parse("components.1204.charge_light is off").unwrap_err();
//! assert_eq!(fault.to_string(), "at character 36: expected an operator (`=`, `!=`, `>` or `<`)");
//! # Ok::<(), shorthand::ShorthandFault>(())
//! ```

pub mod auth;
pub mod cli;
pub mod client;
pub mod config;
pub mod domain;
pub mod grpc;
mod ongoing;
pub mod pem;

pub mod proto;
pub mod server;
pub mod store;
pub mod telemetry;
mod terminal;
pub mod translate;
pub mod version;
