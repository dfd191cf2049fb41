//! References and their places.

use super::json;
use crate::{
    domain::{
        analysis::{Reference, ReferenceKind, ReferencePlace},
        dependency::Condition,
    },
    proto::v1,
};

/// A reference.
pub fn reference(reference: Reference) -> v1::Reference {
    let Reference {
        kind,
        place,
        condition,
    } = reference;
    let (operator, targets) = match condition {
        None => (String::new(), Vec::new()),
        Some(Condition {
            variable: _,
            operator,
            targets,
            path: _,
        }) => {
            let targets = targets.into_iter().map(json::target);
            (operator.symbol().to_owned(), targets.collect())
        }
    };
    v1::Reference {
        kind: reference_kind(kind).into(),
        place: Some(reference_place(place)),
        operator,
        targets,
    }
}

fn reference_place(place: ReferencePlace) -> v1::Place {
    let ReferencePlace {
        task,
        step,
        path,
        title,
    } = place;
    v1::Place {
        task: task.to_string(),
        step: step.map_or_else(String::new, |step| step.to_string()),
        path,
        title,
    }
}

fn reference_kind(kind: ReferenceKind) -> v1::ReferenceKind {
    match kind {
        ReferenceKind::Subtask => v1::ReferenceKind::Subtask,
        ReferenceKind::Wiring => v1::ReferenceKind::Wiring,
        ReferenceKind::Manages => v1::ReferenceKind::Manages,
        ReferenceKind::Sets => v1::ReferenceKind::Sets,
        ReferenceKind::Reads => v1::ReferenceKind::Reads,
    }
}
