//! `expertise translate`: against engines that fail in every way and a service that
//! answers as told, and once against the real ones.

mod apertium;
mod engine;
mod fake_engine;
mod fake_service;
mod process;
mod run;
mod service;

/// What the modules here import.
mod prelude {
    pub use super::{
        fake_engine::{FakeEngine, Reply, upper_case},
        fake_service::{FakeService, State},
        run::{question, run, step, translate},
    };
}
