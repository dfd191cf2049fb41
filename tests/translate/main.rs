//! The automatic translation process: against engines that fail in every way
//! and a service that answers as told, and once against the real ones.

#![allow(clippy::expect_used)]

mod apertium;
mod binary;
mod engine;
mod harness;
mod service;
