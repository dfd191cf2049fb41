//! The page as a whole: what stands on it, in which order.

mod contract;
mod prose;
mod table;

use std::fmt::Write;

use anyhow::Context;
use prost_reflect::{MessageDescriptor, MethodDescriptor, ServiceDescriptor};

use self::{
    contract::{Contract, ERROR_REASON},
    prose::Prose,
};

const HEAD: &str = "\
<!-- Written by `cargo run --example reference > docs/reference.md` from the comments in proto/expertise/v1. -->

# Reference

The contract `expertise.v1`, as its [proto files](../proto/expertise/v1) have it, with their names; in JSON, fields may also be
written in lowerCamelCase. A field marked *required* must be set, in a resource when it is created; one marked *immutable* is fixed
from then on; an *identifier* is given by the server and names the resource; one marked *output only* is the server's alone: sent, it
changes nothing and is no error. `optional` means that absent and zero differ. The server speaks gRPC; the HTTP paths are for a gateway that
transcodes. Names in capitals such as [FIELD_REQUIRED](#field_required) are the [reasons](#error-reasons) that errors give.
";

/// The page, in Markdown as GitHub shows it.
///
/// # Errors
/// When the descriptors are not those of the contract.
pub fn write() -> anyhow::Result<String> {
    let contract = Contract::read()?;
    let prose = Prose::read(&contract);
    let mut page = HEAD.to_owned();
    contents(&mut page, &contract)?;
    for service in &contract.services {
        of_service(&mut page, service, &prose)?;
    }
    writeln!(page, "\n## Messages")?;
    for message in &contract.messages {
        writeln!(page, "\n### {}\n\n{}", message.name(), prose.of(message)?)?;
        table::of_fields(&mut page, message, &prose)?;
    }
    writeln!(page, "\n## Enums")?;
    for kind in &contract.enums {
        writeln!(page, "\n### {}\n\n{}", kind.name(), prose.of(kind)?)?;
        table::of_values(&mut page, kind, &prose)?;
    }
    let text = prose.of(&contract.reasons)?;
    writeln!(page, "\n## Error reasons\n\n{text}")?;
    table::of_reasons(&mut page, &contract.reasons, &prose)?;
    Ok(page)
}

fn contents(page: &mut String, contract: &Contract) -> anyhow::Result<()> {
    writeln!(page, "\n## Contents\n")?;
    for service in &contract.services {
        let calls: Vec<_> = service.methods().map(|call| link(call.name())).collect();
        writeln!(page, "- {}: {}", link(service.name()), calls.join(", "))?;
    }
    let messages: Vec<_> = contract.messages.iter().map(|m| link(m.name())).collect();
    writeln!(page, "- [Messages](#messages): {}", messages.join(", "))?;
    let enums: Vec<_> = contract.enums.iter().map(|e| link(e.name())).collect();
    writeln!(page, "- [Enums](#enums): {}", enums.join(", "))?;
    writeln!(page, "- [Error reasons](#error-reasons) (`{ERROR_REASON}`)")?;
    Ok(())
}

fn of_service(page: &mut String, service: &ServiceDescriptor, prose: &Prose) -> anyhow::Result<()> {
    writeln!(page, "\n## {}\n\n{}", service.name(), prose.of(service)?)?;
    for call in service.methods() {
        writeln!(page, "\n### {}\n\n{}", call.name(), prose.of(&call)?)?;
        let (verb, path) = contract::http(&call).context("a call without an HTTP path")?;
        let (verb, full) = (verb.to_uppercase(), call.full_name());
        let (service, name) = full.rsplit_once('.').context("a call without a service")?;
        writeln!(page, "\n`{service}/{name}`, as HTTP `{verb} {path}`")?;
        of_half(page, &call, "Request", &call.input(), prose)?;
        of_half(page, &call, "Response", &call.output(), prose)?;
    }
    Ok(())
}

/// What a call takes or answers.
fn of_half(
    page: &mut String,
    call: &MethodDescriptor,
    half: &str,
    message: &MessageDescriptor,
    prose: &Prose,
) -> anyhow::Result<()> {
    writeln!(page, "\n**{half}** `{}`", message.name())?;
    let text = prose.plain(message)?;
    // The heading says so much already.
    let said = format!("{half} of {}.", call.name());
    let text = text.strip_prefix(&said).unwrap_or(&text).trim_start();
    if !text.is_empty() {
        writeln!(page, "\n{}", prose.linked(text))?;
    }
    table::of_fields(page, message, prose)
}

/// A link to the heading of this name.
fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}
