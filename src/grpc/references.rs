//! The filter of ListReferences.

use super::decode::{field, names::check_name};
use crate::domain::{
    analysis::{AnswerFilter, ReferenceFilter, VariableFilter},
    ids::TaskId,
    text::Tag,
    violation::{Reason, Violations},
};

/// Decodes the filter of ListReferences.
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
        answer: answer.map(|answer: Tag| AnswerFilter(answer.into_string())),
    }))
}
