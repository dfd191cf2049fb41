//! The examples of the page: calls in JSON, with the responses of a server in this process.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::{Context, bail};
use clap::{Args, Command, FromArgMatches, builder::Resettable};
use expertise::{
    config::{ServerSettings, with_uniform_names},
    server::Server,
};
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;
use tokio::sync::oneshot;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};

use super::{
    catalogue::{Values, catalogue, entry},
    contract::Contract,
};

/// The account that the page shows.
const ACCOUNT: &str = "demo";
/// Longer messages are cut off, unless they have at most [`MAX_LINES_IF_WHOLE`].
const MAX_LINES: usize = 18;
const MAX_LINES_IF_WHOLE: usize = 22;
/// A list or object that fits in this width, in characters, is shown on one line.
const MAX_WIDTH: usize = 120;
/// Fields whose values differ from run to run and have no meaning.
const OPAQUE_FIELDS: [&str; 9] = [
    "cursor",
    "fingerprint",
    "guide_etag",
    "id",
    "next_cursor",
    "next_page_token",
    "size_bytes",
    "source_digest",
    "transaction",
];

/// The request and response that the page shows of each rpc, in Markdown.
pub struct RpcExamples(BTreeMap<String, String>);

impl RpcExamples {
    /// Starts a server and records the examples of `tests/calls.json`.
    pub async fn record(contract: &Contract) -> anyhow::Result<Self> {
        let program = with_uniform_names(ServerSettings::augment_args(Command::new("")));
        let program = program.mut_args(|setting| setting.env(Resettable::Reset));
        let args = ["", "--listen=127.0.0.1:0", "--database-url=sqlite::memory:"];
        let settings = ServerSettings::from_arg_matches(&program.try_get_matches_from(args)?)?;
        let server = Server::bind(settings.check()?).await?;
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, starting) = oneshot::channel();
        let serving = tokio::spawn(server.serve(
            || {
                let _ = started.send(());
            },
            async { drop(stopped.await) },
        ));
        let examples = match starting.await {
            Ok(()) => call_all(contract, address).await,
            Err(_) => bail!("the server has not started"),
        };
        drop(stop);
        serving.await??;
        examples.map(Self)
    }

    pub fn find(&self, rpc: &str) -> Option<&String> {
        self.0.get(rpc)
    }
}

/// Records the example of each rpc in its own account, which has every resource.
async fn call_all(
    contract: &Contract,
    address: SocketAddr,
) -> anyhow::Result<BTreeMap<String, String>> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let methods = contract.services.iter().flat_map(|it| it.methods());
    let methods: BTreeMap<_, _> = methods.map(|rpc| (call_name(&rpc), rpc)).collect();
    let mut examples = BTreeMap::new();
    for (call, rpc) in &methods {
        let mut account = Account {
            name: format!("demo-{}", examples.len()),
            channel: channel.clone(),
            methods: &methods,
            stand_ins: StandIns::default(),
        };
        let mut values = Values::new();
        for setup in &catalogue().setup {
            let request = catalogue().expand(&setup.request, &values);
            let (_, _, response) = account.call(&setup.call, request).await?;
            setup.keep(&response, &mut values);
        }
        let request = catalogue().expand(entry(call).base("example"), &values);
        let (sent, received, _) = account.call(call, request).await?;
        let shown =
            format!("```jsonc\n// An example request\n{sent}\n// Its response\n{received}\n```");
        examples.insert(rpc.name().to_owned(), shown);
    }
    Ok(examples)
}

/// The name of an rpc in the catalogue, such as `TaskService/GetTask`.
pub fn call_name(rpc: &MethodDescriptor) -> String {
    format!("{}/{}", rpc.parent_service().name(), rpc.name())
}

struct Account<'a> {
    name: String,
    channel: Channel,
    methods: &'a BTreeMap<String, MethodDescriptor>,
    stand_ins: StandIns,
}

impl Account<'_> {
    /// The request and the response as the page shows them, and the response.
    async fn call(
        &mut self,
        call: &str,
        request: Value,
    ) -> anyhow::Result<(String, String, Value)> {
        let rpc = self
            .methods
            .get(call)
            .with_context(|| format!("{call} is no rpc"))?;
        let request = DynamicMessage::deserialize(rpc.input(), request)?;
        let sent = self.stand_ins.shown(&request)?;
        let response = send(self.channel.clone(), &self.name, rpc, request).await;
        let response = response.with_context(|| format!("{call} fails"))?;
        let received = self.stand_ins.shown(&response)?;
        Ok((sent, received, serde_json::from_str(&to_json(&response)?)?))
    }
}

async fn send(
    channel: Channel,
    account: &str,
    rpc: &MethodDescriptor,
    request: DynamicMessage,
) -> anyhow::Result<DynamicMessage> {
    let mut client = Grpc::new(channel);
    client.ready().await?;
    let path = format!("/{}/{}", rpc.parent_service().full_name(), rpc.name());
    let mut request = Request::new(request);
    let account: MetadataValue<_> = account.parse()?;
    request.metadata_mut().insert("x-account-id", account);
    let codec = DynamicCodec(rpc.output());
    let response = client.unary(request, path.parse()?, codec).await?;
    Ok(response.into_inner())
}

/// A codec for messages that are described by descriptors.
struct DynamicCodec(MessageDescriptor);

impl Codec for DynamicCodec {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = DynamicEncoder;
    type Decoder = Self;

    fn encoder(&mut self) -> DynamicEncoder {
        DynamicEncoder
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

struct DynamicEncoder;

impl Encoder for DynamicEncoder {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let encoded = prost::Message::encode(&message, out);
        encoded.map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for DynamicCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let decoded = DynamicMessage::decode(self.0.clone(), bytes);
        let decoded = decoded.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(decoded))
    }
}

fn to_json(message: &DynamicMessage) -> anyhow::Result<String> {
    let mut json = Vec::new();
    let options = SerializeOptions::new().use_proto_field_name(true);
    message.serialize_with_options(&mut serde_json::Serializer::pretty(&mut json), &options)?;
    Ok(String::from_utf8(json)?)
}

/// What the page shows instead of values that differ from run to run. Equal values stay equal.
#[derive(Default)]
struct StandIns {
    ids: Vec<String>,
    etags: Vec<String>,
    times: Vec<String>,
}

impl StandIns {
    /// A message in JSON with stand-ins, cut off if it is long.
    fn shown(&mut self, message: &DynamicMessage) -> anyhow::Result<String> {
        let json = to_json(message)?;
        let mut lines = folded(json.lines().map(|line| self.line(line)));
        if lines.len() > MAX_LINES_IF_WHOLE {
            lines.truncate(MAX_LINES);
            lines.push("…".to_owned());
        }
        Ok(lines.join("\n"))
    }

    fn line(&mut self, line: &str) -> String {
        let Some((key, value)) = line.split_once(": \"") else {
            return self.with_ids(line);
        };
        let name = key.trim().trim_matches('"');
        let Some((value, end)) = value.rsplit_once('"') else {
            return line.to_owned();
        };
        // The id of a role is a number and the id of a rule is a name. Both are shown.
        let is_shown = name == "id" && (value.parse::<u64>().is_ok() || value.contains('/'));
        let is_opaque = OPAQUE_FIELDS.contains(&name) && !is_shown;
        let shown = if is_opaque {
            "…".to_owned()
        } else if name == "etag" {
            format!("etag{:012}", number(&mut self.etags, value))
        } else if name == "account_id" {
            ACCOUNT.to_owned()
        } else if name.ends_with("_ts") {
            let second = number(&mut self.times, value);
            format!("2026-11-21T10:38:{second:02}.673205Z")
        } else {
            self.with_ids(value)
        };
        format!("{key}: \"{shown}\"{end}")
    }

    /// The text with stand-ins for UUIDs of version 7, which the server generates.
    fn with_ids(&mut self, text: &str) -> String {
        let is_id = |word: &str| {
            word.len() == 36 && word.split('-').nth(2).is_some_and(|it| it.starts_with('7'))
        };
        let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
        let words = text.split_inclusive(|c| !is_part(c)).map(|piece| {
            let word = piece.trim_end_matches(|c| !is_part(c));
            if is_id(word) {
                let id = format!(
                    "01a1fdaf-d221-7557-a852-{:012}",
                    number(&mut self.ids, word)
                );
                piece.replace(word, &id)
            } else {
                piece.to_owned()
            }
        });
        words.collect()
    }
}

/// Joins the lines of each list and object that is not too wide for one line.
fn folded(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut folded = Vec::new();
    let mut openings = Vec::new();
    for line in lines {
        if line.ends_with(['{', '[']) {
            openings.push(folded.len());
        }
        let is_closing = line.trim_start().starts_with(['}', ']']);
        folded.push(line);
        let Some(opening) = openings.pop_if(|_| is_closing) else {
            continue;
        };
        let lines = folded.split_off(opening);
        let joined = joined(&lines);
        if joined.chars().count() <= MAX_WIDTH {
            folded.push(joined);
        } else {
            folded.extend(lines);
        }
    }
    folded
}

/// The lines of a list or an object as one line: `["a", "b"]`, `{ "key": "a" }`.
fn joined(lines: &[String]) -> String {
    let [opening, content @ .., closing] = lines else {
        return lines.concat();
    };
    let space = if opening.ends_with('{') { " " } else { "" };
    let content: Vec<_> = content.iter().map(|line| line.trim()).collect();
    let content = content.join(" ");
    format!("{opening}{space}{content}{space}{}", closing.trim_start())
}

/// The number of a value among those seen so far, from 1. A new value is added to them.
fn number(values: &mut Vec<String>, value: &str) -> usize {
    let known = values.iter().position(|known| known == value);
    known.map_or_else(
        || {
            values.push(value.to_owned());
            values.len()
        },
        |index| index + 1,
    )
}
