//! The values that the contract allows at a place of a document.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_path_to_error::{Path, Segment};

use super::descriptor;

/// Ends the name of the value for an unset field. Enums whose zero is an ordinary value have
/// none.
const UNSPECIFIED: &str = "_UNSPECIFIED";

/// The names of the enum at this path of a document, without the one for an unset field;
/// empty if there is no enum.
pub(super) fn of_enum_at(path: &Path) -> Vec<String> {
    let Ok(document) = descriptor("TaskDocument") else {
        return Vec::new();
    };
    let Some(Kind::Enum(values)) = kind_at(document, path.iter()) else {
        return Vec::new();
    };
    let names = values.values().map(|value| value.name().to_owned());
    names.filter(|name| !name.ends_with(UNSPECIFIED)).collect()
}

/// The names of the fields of the message at this path of a document, or of the one that has
/// the field at the path; empty if there is no message.
pub(super) fn fields_at(path: &Path) -> Vec<String> {
    let Ok(document) = descriptor("TaskDocument") else {
        return Vec::new();
    };
    let segments: Vec<&Segment> = path.iter().collect();
    let above = segments.split_last().map_or(&[][..], |(_, above)| above);
    let message = [segments.as_slice(), above].into_iter().find_map(|path| {
        match kind_at(document.clone(), path.iter().copied()) {
            Some(Kind::Message(message)) => Some(message),
            Some(_) | None => None,
        }
    });
    let fields = message.iter().flat_map(MessageDescriptor::fields);
    fields.map(|field| field.name().to_owned()).collect()
}

fn kind_at<'a>(
    document: MessageDescriptor,
    path: impl Iterator<Item = &'a Segment>,
) -> Option<Kind> {
    let mut kind = Kind::Message(document);
    let mut is_map = false;
    for segment in path {
        let key = match segment {
            Segment::Map { key } => key,
            Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => continue,
        };
        // The segment is a key of a map, and `kind` is already that of its values.
        if std::mem::take(&mut is_map) {
            continue;
        }
        let Kind::Message(message) = &kind else {
            return None;
        };
        let field = field(message, key)?;
        is_map = field.is_map();
        kind = match field.kind() {
            Kind::Message(entry) if is_map => entry.map_entry_value_field().kind(),
            kind => kind,
        };
    }
    Some(kind)
}

fn field(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let by_name = message.get_field_by_name(name);
    by_name.or_else(|| message.get_field_by_json_name(name))
}
