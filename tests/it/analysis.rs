//! The analysis of guides: what somebody would see and why, and where something is used.

mod preview;
mod references;
