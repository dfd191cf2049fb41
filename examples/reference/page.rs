//! The whole page.

#[path = "../../tests/kit/catalogue.rs"]
#[allow(dead_code, clippy::expect_used, clippy::indexing_slicing)]
mod catalogue;
pub mod contract;
mod prose;
mod rpc_examples;
mod table;

use std::fmt::Write;

use anyhow::Context;
use prost_reflect::{MessageDescriptor, MethodDescriptor, ServiceDescriptor};

use self::{
    catalogue::{catalogue, entry},
    contract::{Contract, ERROR_REASON},
    prose::Prose,
    rpc_examples::{RpcExamples, call_name},
};

const HEAD: &str = "\
<!-- Written by `cargo run --example reference > docs/reference.md` from the comments in proto/expertise/v1. -->

# Reference

The API `expertise.v1`, generated from its [proto files](../proto/expertise/v1). In JSON, field names may also be written in lowerCamelCase.

- A *required* field must be set. In a resource, it must be set on create.
- An *immutable* field cannot change after create.
- The server sets the *identifier* of a resource and its *output only* fields. Values that callers send for them are ignored.
- `optional` means that an absent field differs from zero.
- The server speaks gRPC. The HTTP paths are for a transcoding gateway.
- Examples are actual responses of a server, in JSON. IDs, etags, and times are replaced; `…` marks omissions.
- Names in capitals such as [FIELD_REQUIRED](#field_required) are [error reasons](#error-reasons).
";

/// The page in GitHub's Markdown. Its examples are responses of a server that is started for them.
///
/// # Errors If the descriptors lack something that the page needs, such as a comment, or if a call
/// of an example fails.
pub async fn write() -> anyhow::Result<String> {
    let contract = Contract::read()?;
    let examples = RpcExamples::record(&contract).await?;
    let prose = Prose::read(&contract);
    let mut page = HEAD.to_owned();
    write_contents(&mut page, &contract)?;
    for service in &contract.services {
        write_service(&mut page, service, &prose, &examples)?;
    }
    writeln!(page, "\n## Messages")?;
    for message in &contract.messages {
        writeln!(
            page,
            "\n### {}\n\n{}",
            message.name(),
            prose.comment(message)?
        )?;
        table::write_fields(&mut page, message, &prose)?;
    }
    writeln!(page, "\n## Enums")?;
    for kind in &contract.enums {
        writeln!(page, "\n### {}\n\n{}", kind.name(), prose.comment(kind)?)?;
        table::write_values(&mut page, kind, &prose)?;
    }
    let text = prose.comment(&contract.reasons)?;
    writeln!(page, "\n## Error reasons\n\n{text}")?;
    let common_reasons = links(&catalogue().reasons_of_every_call);
    writeln!(page, "\nEvery rpc can fail with {common_reasons}.")?;
    table::write_reasons(&mut page, &contract.reasons, &prose)?;
    Ok(page)
}

fn write_contents(page: &mut String, contract: &Contract) -> anyhow::Result<()> {
    writeln!(page, "\n## Contents\n")?;
    for service in &contract.services {
        let rpcs: Vec<_> = service.methods().map(|rpc| link(rpc.name())).collect();
        writeln!(page, "- {}: {}", link(service.name()), rpcs.join(", "))?;
    }
    let messages: Vec<_> = contract.messages.iter().map(|m| link(m.name())).collect();
    writeln!(page, "- [Messages](#messages): {}", messages.join(", "))?;
    let enums: Vec<_> = contract.enums.iter().map(|e| link(e.name())).collect();
    writeln!(page, "- [Enums](#enums): {}", enums.join(", "))?;
    writeln!(page, "- [Error reasons](#error-reasons) (`{ERROR_REASON}`)")?;
    Ok(())
}

fn write_service(
    page: &mut String,
    service: &ServiceDescriptor,
    prose: &Prose,
    examples: &RpcExamples,
) -> anyhow::Result<()> {
    writeln!(
        page,
        "\n## {}\n\n{}",
        service.name(),
        prose.comment(service)?
    )?;
    for rpc in service.methods() {
        writeln!(page, "\n### {}\n\n{}", rpc.name(), prose.comment(&rpc)?)?;
        let (verb, path, _) = contract::http(&rpc).context("an rpc without an HTTP path")?;
        let (verb, full) = (verb.to_uppercase(), rpc.full_name());
        let (service, name) = full.rsplit_once('.').context("an rpc without a service")?;
        writeln!(page, "\n`{service}/{name}`, as HTTP `{verb} {path}`")?;
        write_message(page, &rpc, "Request", &rpc.input(), prose)?;
        write_message(page, &rpc, "Response", &rpc.output(), prose)?;
        let own = links(&entry(&call_name(&rpc)).reasons);
        writeln!(
            page,
            "\n**Fails with** {own}, and [what every rpc can fail with](#error-reasons)."
        )?;
        let example = examples
            .find(rpc.name())
            .context("an rpc without an example")?;
        writeln!(page, "\n{example}")?;
    }
    Ok(())
}

/// The request or response of an rpc.
fn write_message(
    page: &mut String,
    rpc: &MethodDescriptor,
    kind: &str,
    message: &MessageDescriptor,
    prose: &Prose,
) -> anyhow::Result<()> {
    writeln!(page, "\n**{kind}** `{}`", message.name())?;
    let text = prose.plain(message)?;
    // The heading already says this.
    let heading = format!("{kind} of {}.", rpc.name());
    let text = text.strip_prefix(&heading).unwrap_or(&text).trim_start();
    if !text.is_empty() {
        writeln!(page, "\n{}", prose.linked(text))?;
    }
    table::write_fields(page, message, prose)
}

/// A link to the heading of this name.
fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

/// Reasons as links to their rows.
fn links(reasons: &[String]) -> String {
    let links = reasons
        .iter()
        .map(|reason| format!("[{reason}](#{})", reason.to_lowercase()));
    links.collect::<Vec<_>>().join(", ")
}
