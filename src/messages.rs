//! Conversions between messages of the contract and domain values. The services and the
//! command line use them.

pub mod decode;
pub mod encode;
pub mod ignored;
pub mod mask;

#[cfg(test)]
mod json_tests;
