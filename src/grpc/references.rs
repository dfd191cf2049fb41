//! The filter of ListReferences.

use super::decode::{Field, field, names::check_name};
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
    let id = field::optional_guid(task, TaskId::parse, Field::root("task", violations));
    if variable.is_empty() {
        if task.is_empty() {
            let mut field = Field::root("task", violations);
            field.refuse(Reason::FieldRequired, "is required without `variable`");
        }
        if !answer.is_empty() {
            let mut field = Field::root("answer", violations);
            field.refuse(Reason::FieldInvalid, "needs `variable`");
        }
        return id.map(ReferenceFilter::Task);
    }
    check_name(&variable, Field::root("variable", violations));
    let answer = match answer.is_empty() {
        true => None,
        false => field::text(answer, Field::root("answer", violations)),
    };
    (violations.total() == before).then_some(ReferenceFilter::Variable(VariableFilter {
        name: variable,
        task: id,
        answer: answer.map(|answer: Tag| AnswerFilter(answer.into_string())),
    }))
}
