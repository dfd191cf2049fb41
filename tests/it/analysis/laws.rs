//! What holds for every guide. The evaluators here are written from the contract alone.

mod evaluator;
mod findings;
mod previews;
mod reference_oracle;
mod references;
mod texts;
mod traces;
mod walkthroughs;
