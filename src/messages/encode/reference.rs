//! References.

use super::json;
use crate::{
    domain::analysis::{Reference, ReferenceKind},
    proto::v1,
};

pub fn reference(reference: Reference) -> v1::Reference {
    let kind = match reference.kind {
        ReferenceKind::Subtask => v1::ReferenceKind::Subtask,
        ReferenceKind::Wiring => v1::ReferenceKind::Wiring,
        ReferenceKind::Manages => v1::ReferenceKind::Manages,
        ReferenceKind::Sets => v1::ReferenceKind::Sets,
        ReferenceKind::Reads => v1::ReferenceKind::Reads,
    };
    let place = reference.place;
    let (operator, targets) = reference.condition.map_or_else(Default::default, |it| {
        let targets = it.targets.into_iter().map(json::target);
        (it.operator.symbol().to_owned(), targets.collect())
    });
    v1::Reference {
        kind: kind.into(),
        place: Some(v1::Place {
            task: place.task.to_string(),
            step: place.step.map_or_else(String::new, |step| step.to_string()),
            path: place.path,
            title: place.title,
        }),
        operator,
        targets,
    }
}
