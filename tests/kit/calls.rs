//! Calls of the [catalogue] over the wire: what their requests need in an account.

use bytes::Bytes;
use prost::Message;
use prost_reflect::DynamicMessage;
use serde_json::Value;
use tonic::Status;

use super::{
    catalogue::{Values, catalogue},
    contract::{message_of, proto_json},
};

/// The response of a call as JSON, whose fields have their names in the proto files.
pub fn response(call: &str, answer: &[u8]) -> Value {
    let message = DynamicMessage::decode(message_of(call, "Response"), answer);
    proto_json(&message.expect("a response"))
}

/// Makes what the request needs, or else every resource; what the placeholders stand for.
pub async fn prepare(
    request: Option<&Value>,
    message: impl Fn(&str, Value) -> DynamicMessage,
    send: impl AsyncFn(&str, Bytes) -> Result<Bytes, Status>,
) -> Values {
    let mut values = Values::new();
    let calls = match request {
        Some(request) => catalogue().setup_of(request),
        None => catalogue().setup.iter().collect(),
    };
    for setup in calls {
        let call = &setup.call;
        let request = catalogue().expand(&setup.request, &values);
        let message = message(call, request).encode_to_vec();
        let answer = send(call, message.into()).await;
        let answer = answer.unwrap_or_else(|status| panic!("setup {call}: {status:?}"));
        setup.keep(&response(call, &answer), &mut values);
    }
    values
}
