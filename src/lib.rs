//! `expertise`: the authoring service for guided troubleshooting.
//!
//! A task is a guide: ordered steps that lead through a problem. The service stores tasks and
//! steps of many accounts in SQLite or PostgreSQL, and serves them over gRPC. `README.md` explains
//! how to run it, and `docs/architecture.md` how it is built.
//!
//! # Modules
//!
//! ```text
//! wire ──> server ──> grpc (decode) ──> domain ──> store ──> database
//! wire <── server <── grpc (encode) <── domain <── store
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | [`proto`] | the API: generated messages, servers and clients |
//! | [`domain`] | values that are valid by construction, and the rules over them |
//! | `store` | every query; a write is one transaction |
//! | `messages` | conversions between messages of the API and domain values |
//! | `grpc` | one file per service: decode, one store call, encode; `grpc::status` makes the errors |
//! | `auth` | turns credentials into an `auth::Caller` |
//! | [`server`] | listener, connections, layers, health, metrics, shutdown |
//! | `analysis_threads` | work on guides that takes more than a millisecond |
//! | `call_limits` | how many calls and bytes the server handles concurrently |
//! | `call_context` | task-local context of the current call: id, caller, deadline, cancellation, memory |
//! | [`config`], `telemetry` | settings; log and traces |
//! | `client` | calls of commands to a running server |
//! | `translate` | the automatic translation process, a client of the service |
//! | `cli` | the subcommands and their output |
//! | [`program`] | runs the command that the command line names |
//! | `files`, `http_client` | regular files; HTTP requests that the program makes |
//! | `pem`, `version` | PEM files; version and commit of the build |
//! | `reload`, `terminal` | values that are reloaded at intervals; text that is safe on a terminal |
//!
//! There are no dependency cycles between modules. `docs/architecture.md` says which module may use
//! which, where each invariant is enforced, and how CreateStep goes from wire to row.
//!
//! # An example
//!
//! The domain works without a server. A shorthand is one condition, and parsing is the inverse of
//! rendering:
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
//! let error = shorthand::parse("components.1204.charge_light is off").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "at character 36, the end of the text: expected an operator (`=`, `!=`, `>` or `<`)",
//! );
//! # Ok::<(), shorthand::ShorthandError>(())
//! ```

mod analysis_threads;
mod auth;
mod call_context;
mod call_limits;
mod cli;
mod client;
pub mod config;
pub mod domain;
mod files;
mod grpc;
mod http_client;
mod messages;
mod pem;
pub mod program;
pub mod proto;
mod reload;
pub mod server;
mod store;
mod telemetry;
mod terminal;
mod translate;
mod version;
