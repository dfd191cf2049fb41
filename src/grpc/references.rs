//! The filter and the results of ListReferences.

use crate::{
    domain::{
        analysis::{Reference, ReferenceFilter, VariableFilter},
        ids::TaskId,
        text::Tag,
        violation::{Reason, Violations},
    },
    messages::{
        decode::{field, names::check_name},
        encode::{json, text},
    },
    proto::v1,
};

pub fn filter(
    task: &str,
    variable: String,
    answer: String,
    violations: &mut Violations,
) -> Option<ReferenceFilter> {
    let before = violations.total();
    let id = field::optional_guid(task, TaskId::parse, violations.at("task"));
    if variable.is_empty() {
        if task.is_empty() {
            let mut field = violations.at("task");
            field.refuse(Reason::FieldRequired, "is required without `variable`");
        }
        if !answer.is_empty() {
            let mut field = violations.at("answer");
            field.refuse(Reason::FieldInvalid, "needs `variable`");
        }
        return id.map(ReferenceFilter::Task);
    }
    check_name(&variable, violations.at("variable"));
    let answer = match answer.is_empty() {
        true => None,
        false => field::text(answer, violations.at("answer")),
    };
    (violations.total() == before).then_some(ReferenceFilter::Variable(VariableFilter {
        name: variable,
        task: id,
        answer: answer.map(Tag::into_string),
    }))
}

pub fn reference(reference: Reference) -> v1::Reference {
    let place = reference.place;
    let (operator, targets) = reference.condition.map_or_else(Default::default, |it| {
        let targets = it.targets.into_iter().map(json::target);
        (it.operator.symbol().to_owned(), targets.collect())
    });
    v1::Reference {
        kind: reference.kind as i32,
        place: Some(v1::Place {
            task: place.task.to_string(),
            step: text(place.step),
            path: place.path,
            title: place.title,
        }),
        operator,
        targets,
    }
}
