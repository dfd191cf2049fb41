//! Calls with any bytes and any metadata, and what must hold of each answer.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use prost::Message;
use serde_json::{Value, json};
use tonic::{
    Code, Request, Status,
    metadata::{AsciiMetadataValue, KeyAndValueRef, MetadataMap, MetadataValue},
};
use tonic_types::StatusExt;

use super::{
    marks::{self, KEY, SECRET, TEXT},
    raw::RawCodec,
    service::{AUDIENCE, ISSUER, Mode},
    world::World,
};

/// Far beyond what an answer takes: a wait that long has hung.
const BOUND: Duration = Duration::from_secs(60);

/// What a call is sent with.
pub type Metadata = Vec<(&'static str, String)>;

/// Calls over one connection, and counts them.
#[derive(Clone)]
pub struct Caller {
    pub world: World,
    mode: Mode,
    calls: Arc<AtomicUsize>,
}

impl Caller {
    pub fn of(address: SocketAddr, mode: Mode) -> Self {
        Self {
            world: World::at(address),
            mode,
            calls: Arc::default(),
        }
    }

    /// The same as another account.
    pub fn foreign(&self) -> Self {
        Self {
            world: self.world.foreign(),
            ..self.clone()
        }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// A call that must go well.
    pub async fn call<M: Message + Default>(&self, call: &str, request: &impl Message) -> M {
        let answer = self.send(call, request.encode_to_vec()).await;
        let answer = answer.unwrap_or_else(|status| panic!("{call}: {status:?}"));
        M::decode(answer).expect("a response")
    }

    /// The answer to a call with good credentials.
    pub async fn send(&self, call: &str, message: Vec<u8>) -> Result<Bytes, Status> {
        self.send_with(call, message, &self.credentials()).await
    }

    /// The answer to a call with this metadata. A refusal is one of the contract and
    /// holds no mark.
    pub async fn send_with(
        &self,
        call: &str,
        message: Vec<u8>,
        metadata: &Metadata,
    ) -> Result<Bytes, Status> {
        let path = format!("/expertise.v1.{call}").parse().expect("a path");
        let mut request = Request::new(Bytes::from(message));
        let binary = MetadataValue::from_bytes(TEXT.as_bytes());
        request.metadata_mut().insert_bin("x-canary-bin", binary);
        for (name, value) in metadata {
            let value = AsciiMetadataValue::try_from(value.as_bytes()).expect("a header's value");
            request.metadata_mut().append(*name, value);
        }
        let mut client = tonic::client::Grpc::new(self.world.channel());
        client.ready().await.expect("a connection");
        self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = client.unary(request, path, RawCodec);
        let answer = tokio::time::timeout(BOUND, answer)
            .await
            .expect("an answer");
        answer
            .inspect_err(|status| tells_nothing(call, status))
            .map(tonic::Response::into_inner)
    }

    /// Metadata that is accepted, and some that means nothing.
    pub fn credentials(&self) -> Metadata {
        let mut metadata = vec![
            ("x-canary", TEXT.to_owned()),
            ("cookie", format!("session={TEXT}")),
            ("traceparent", TEXT.to_owned()),
            ("tracestate", format!("{TEXT}={TEXT}")),
        ];
        metadata.extend(match self.mode {
            Mode::Header => vec![
                ("x-account-id", self.world.account().to_owned()),
                // Only what believes tokens looks at it.
                ("authorization", format!("Bearer {TEXT}")),
            ],
            Mode::Jwt => vec![("authorization", bearer(SECRET, &self.claims()))],
        });
        metadata
    }

    /// Metadata that is not accepted.
    pub fn wrong_credentials(&self) -> Vec<Metadata> {
        match self.mode {
            Mode::Header => {
                let account = || ("x-account-id", "42".to_owned());
                vec![
                    vec![("x-account-id", format!("{TEXT} {TEXT}"))],
                    vec![("x-account-id", TEXT.repeat(10))],
                    vec![("x-account-id", format!("{TEXT}\u{fc}"))],
                    vec![("x-account-id", TEXT.to_owned()), account()],
                    vec![account(), ("x-subject", TEXT.repeat(30))],
                    vec![account(), ("x-subject", format!("{TEXT}\u{fc}"))],
                    vec![account(), ("x-scopes", TEXT.to_owned())],
                    vec![account(), ("x-scopes", format!("{TEXT}\u{fc}"))],
                    vec![account(), ("grpc-timeout", TEXT.to_owned())],
                    vec![account(), ("grpc-encoding", TEXT.to_owned())],
                    vec![account(), ("x-long", TEXT.repeat(2_000))],
                    vec![("authorization", format!("Bearer {TEXT}"))],
                ]
            }
            Mode::Jwt => {
                let but = |claim: &str, value: Value| {
                    let mut claims = self.claims();
                    claims[claim] = value;
                    bearer(SECRET, &claims)
                };
                let good = bearer(SECRET, &self.claims());
                let values = [
                    TEXT.to_owned(),
                    format!("Bearer {TEXT}"),
                    format!("Basic {TEXT}"),
                    format!("Bearer {TEXT}.{TEXT}.{TEXT}"),
                    format!("Bearer {}", TEXT.repeat(2_000)),
                    format!("{good} {TEXT}"),
                    bearer("another secret of 32 bytes or more", &self.claims()),
                    but("account_id", json!(format!("{TEXT} {TEXT}"))),
                    but("sub", json!(format!("{TEXT}\n"))),
                    but("iss", json!(TEXT)),
                    but("aud", json!(TEXT)),
                    but("exp", json!(TEXT)),
                    but("nbf", json!(TEXT)),
                    but("scope", json!(TEXT)),
                    but("scope", json!({TEXT: TEXT})),
                    signed(
                        SECRET,
                        &json!({"alg": "HS256", "typ": TEXT}),
                        &self.claims(),
                    ),
                    signed(SECRET, &json!({"alg": TEXT}), &self.claims()),
                    signed(
                        SECRET,
                        &json!({"alg": "RS256", "kid": TEXT}),
                        &self.claims(),
                    ),
                    signed(
                        SECRET,
                        &json!({"alg": "HS256", "crit": [TEXT]}),
                        &self.claims(),
                    ),
                ];
                let alone = values
                    .map(|value| vec![("authorization", value)])
                    .into_iter();
                let late = vec![("authorization", good), ("grpc-timeout", TEXT.to_owned())];
                alone.chain([late]).collect()
            }
        }
    }

    fn claims(&self) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let exp = now.expect("a time after 1970").as_secs() + 3600;
        json!({
            "account_id": self.world.account(), "sub": "ann", "iss": ISSUER, "aud": AUDIENCE,
            "exp": exp, "scope": "read write translate admin", "note": TEXT,
        })
    }
}

fn bearer(secret: &str, claims: &Value) -> String {
    signed(secret, &json!({"alg": "HS256", "typ": "JWT"}), claims)
}

fn signed(secret: &str, header: &Value, claims: &Value) -> String {
    let encode = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", encode(header), encode(claims));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, message.as_bytes()));
    format!("Bearer {message}.{signature}")
}

#[track_caller]
fn tells_nothing(call: &str, status: &Status) {
    let info = status.get_details_error_info();
    let domain = info.map(|info| info.domain);
    assert_eq!(
        domain.as_deref(),
        Some("expertise.v1"),
        "{call}: {status:?}"
    );
    assert_ne!(status.code(), Code::Unknown, "{call}: {status:?}");
    let details = String::from_utf8_lossy(status.details());
    let told = format!(
        "{} {details} {}",
        status.message(),
        shown(status.metadata())
    );
    let found = marks::found(&told, &[KEY]);
    assert!(found.is_empty(), "{call} tells {found:?}: {status:?}");
}

fn shown(metadata: &MetadataMap) -> String {
    let shown = metadata.iter().map(|entry| match entry {
        KeyAndValueRef::Ascii(name, value) => format!("{name}: {value:?}\n"),
        KeyAndValueRef::Binary(name, value) => format!("{name}: {value:?}\n"),
    });
    shown.collect()
}
