//! The tables of the page.

use std::fmt::Write;

use anyhow::Context;
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::{
    contract,
    prose::{Prose, reason},
};

const WELL_KNOWN: &str = "https://protobuf.dev/reference/protobuf/google.protobuf/";

/// The fields of a message, in the order of the file.
pub fn write_fields(
    page: &mut String,
    message: &MessageDescriptor,
    prose: &Prose,
) -> anyhow::Result<()> {
    for choice in message.oneofs().filter(|choice| !choice.is_synthetic()) {
        let fields: Vec<_> = choice.fields().map(|f| format!("`{}`", f.name())).collect();
        let text = prose.comment(&choice)?;
        writeln!(
            page,
            "\n`{}`, one of {}: {text}",
            choice.name(),
            fields.join(", ")
        )?;
    }
    if message.fields().len() == 0 {
        writeln!(page, "\nNo fields.")?;
        return Ok(());
    }
    writeln!(page, "\n| Field | Number | Type | |\n|---|---|---|---|")?;
    for field in message.fields() {
        let (name, number) = (field.name(), field.number());
        let text = prose.cell(&prose.plain(&field)?);
        writeln!(
            page,
            "| `{name}` | {number} | {} | {text} |",
            field_type(&field)
        )?;
    }
    Ok(())
}

/// The values of an enum.
pub fn write_values(page: &mut String, kind: &EnumDescriptor, prose: &Prose) -> anyhow::Result<()> {
    writeln!(page, "\n| Value | Number | |\n|---|---|---|")?;
    for value in kind.values() {
        let text = prose.cell(&prose.plain(&value)?);
        writeln!(page, "| `{}` | {} | {text} |", value.name(), value.number())?;
    }
    Ok(())
}

/// The reasons of errors, each with an anchor.
pub fn write_reasons(
    page: &mut String,
    kind: &EnumDescriptor,
    prose: &Prose,
) -> anyhow::Result<()> {
    writeln!(page, "\n| Reason | Number | Code | |\n|---|---|---|---|")?;
    // The zero value is never sent.
    for value in kind.values().filter(|value| value.number() != 0) {
        let (name, number) = (reason(value.name()), value.number());
        let text = prose.plain(&value)?;
        let (code, text) = text.split_once(": ").context("a reason without a code")?;
        let text = prose.cell(text);
        let anchor = format!("<a id=\"{}\"></a>", name.to_lowercase());
        writeln!(page, "| {anchor}`{name}` | {number} | {code} | {text} |")?;
    }
    Ok(())
}

/// The type of a field and its `field_behavior`.
fn field_type(field: &FieldDescriptor) -> String {
    let mut text = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let key = linked(&entry.map_entry_key_field().kind());
            let value = linked(&entry.map_entry_value_field().kind());
            format!("map of {key} to {value}")
        }
        kind if field.is_list() => format!("repeated {}", linked(&kind)),
        kind if field.field_descriptor_proto().proto3_optional() => {
            format!("optional {}", linked(&kind))
        }
        kind => linked(&kind),
    };
    let behaviors = contract::behaviors(field);
    if !behaviors.is_empty() {
        text.push_str(&format!("<br>*{}*", behaviors.join(", ")));
    }
    text
}

/// A type with a link to its description.
fn linked(kind: &Kind) -> String {
    let (package, name) = match kind {
        Kind::Message(message) => (message.package_name().to_owned(), message.name().to_owned()),
        Kind::Enum(kind) => (kind.package_name().to_owned(), kind.name().to_owned()),
        scalar => return format!("`{scalar:?}`"),
    };
    let heading = name.to_lowercase();
    if contract::is_in_contract(&package) {
        format!("[{name}](#{heading})")
    } else {
        // The only name of two words, which protobuf.dev separates in the anchor.
        let heading = heading.replace("fieldmask", "field-mask");
        format!("[{package}.{name}]({WELL_KNOWN}#{heading})")
    }
}
