//! Prints the tour.

use anyhow::bail;
use expertise::proto::v1::{Placement, Step, StepType};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Prints the heading of a stage of the tour.
pub fn heading(title: &str) {
    println!("\n== {title}");
}

/// Prints a line below a heading.
pub fn print_line(line: impl AsRef<str>) {
    println!("   {}", line.as_ref());
}

/// Prints a step with its number in the guide, counted from 1.
pub fn step(number: usize, step: &Step, remark: &str) {
    let kind = kind(step.r#type());
    print_line(format!("{number:>3}  {kind:<12} {}{remark}", step.title).trim_end());
}

pub fn placement(placement: Placement) -> &'static str {
    short(placement.as_str_name(), "PLACEMENT_")
}

fn short(name: &'static str, prefix: &str) -> &'static str {
    name.strip_prefix(prefix).unwrap_or(name)
}

/// The short name of a step type.
pub fn kind(kind: StepType) -> &'static str {
    short(kind.as_str_name(), "STEP_TYPE_")
}

/// Prints an expected error; any other outcome ends the tour.
pub fn expect_error<T>(outcome: Result<T, Status>, code: Code, reason: &str) -> anyhow::Result<()> {
    let status = match outcome {
        Ok(_) => bail!("accepted, though {code:?} {reason} was expected"),
        Err(status) => status,
    };
    let info = status.get_details_error_info();
    let given = info.map(|info| info.reason).unwrap_or_default();
    if status.code() != code || given != reason {
        bail!("{status} ({given}), though {code:?} {reason} was expected");
    }
    print_line(format!("refused: {code:?} {given}: {}", status.message()));
    print_violations(&status);
    Ok(())
}

/// Prints every violation of the request or of a precondition.
fn print_violations(status: &Status) {
    let details = status.get_error_details();
    let fields = details
        .bad_request()
        .map(|it| it.field_violations.as_slice());
    for violation in fields.unwrap_or_default() {
        let (field, reason) = (&violation.field, &violation.reason);
        print_line(format!("  - {field}: {} ({reason})", violation.description));
    }
    let preconditions = details
        .precondition_failure()
        .map(|it| it.violations.as_slice());
    for violation in preconditions.unwrap_or_default() {
        print_line(format!("  - {} {}", violation.r#type, violation.subject));
    }
}
