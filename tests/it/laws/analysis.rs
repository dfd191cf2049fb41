//! Laws for all guides. The evaluators here are written only from the documentation of the API.

mod evaluator;
mod findings;
mod previews;
mod reference_oracle;
mod references;
mod texts;
mod traces;
mod walkthroughs;
