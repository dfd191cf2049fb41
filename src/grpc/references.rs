//! The filter and the page tokens of ListReferences.

use uuid::Uuid;

use super::{
    decode::{Field, field, names::check_name},
    page_token::PageCursor,
};
use crate::domain::{
    analysis::{AnswerFilter, ReferenceCursor, ReferenceFilter, ReferenceKind, VariableFilter},
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

/// The filter of a listing as it was sent. A request with a malformed one gets no token.
pub fn filters_as_bytes(task: &str, variable: &str, answer: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Upper and lower case of an id are equal.
    for text in [&task.to_ascii_lowercase(), variable, answer] {
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

impl PageCursor for ReferenceCursor {
    fn to_bytes(&self) -> Vec<u8> {
        let Self { kind, id, path } = self;
        let kind = ReferenceKind::ALL.iter().position(|each| each == kind);
        let kind = kind.and_then(|kind| u8::try_from(kind).ok());
        let mut bytes = vec![kind.unwrap_or_default(), u8::from(path.is_some())];
        bytes.extend(id.as_bytes());
        bytes.extend(path.iter().flat_map(|path| path.bytes()));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([kind, has_path], bytes) = bytes.split_first_chunk()?;
        let (id, path) = bytes.split_first_chunk::<16>()?;
        let path = String::from_utf8(path.to_vec()).ok()?;
        Some(Self {
            kind: *ReferenceKind::ALL.get(usize::from(*kind))?,
            id: Uuid::from_bytes(*id),
            path: (*has_path == 1).then_some(path),
        })
    }
}
