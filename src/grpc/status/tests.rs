#![allow(clippy::expect_used, clippy::indexing_slicing)]

use tonic_types::StatusExt;

use super::*;

fn violations(count: usize, path: &str, description: &str) -> Status {
    let mut all = Violations::new();
    for _ in 0..count {
        let root = Path::root("step");
        all.add(
            &root.field("translations").key(path),
            Reason::FieldInvalid,
            description,
        );
    }
    all.into()
}

#[test]
fn every_error_fits_the_trailers() {
    let long = "\u{10FFFF}".repeat(10_000);
    for (path, description) in [("de", long.as_str()), (long.as_str(), "x"), (&long, &long)] {
        let status = violations(100, path, description);
        let shown = status.get_details_bad_request().expect("violations");
        assert!(!shown.field_violations.is_empty());
        let size: usize = status
            .into_http::<()>()
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 32)
            .sum();
        assert!(size < 8_000, "{size}");
    }
}
