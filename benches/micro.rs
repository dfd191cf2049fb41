//! The time of parts of a call, to find what makes it slow; `docs/performance.md` has no
//! figures of these.
//!
//! Uses only the public items of the crate. Decoding is measured with requests that have
//! one violation, so that they never reach the store.

#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;

use bytes::{BufMut, Bytes, BytesMut};
use criterion::{Criterion, criterion_group, criterion_main};
use expertise::{
    auth::{Caller, Scope},
    config::DatabaseUrl,
    domain::{
        ids::{AccountId, ProductId, StepId, TaskId},
        order::{Numbering, Place},
        patch::Edit,
        revision::Revision,
        shorthand,
        step::{Cost, Step, StepContent, StepKind, StepPatch},
        text::{Body, Title},
        time::Timestamp,
    },
    grpc::{self, Limits},
    proto::v1,
    store::{Options, Store},
};
use http_body_util::Full;
use prost::Message;
use tonic::service::Routes;
use tower::Service;
use uuid::Uuid;

criterion_group!(
    parts, shorthands, order_keys, mask_merge, messages, requests
);
criterion_main!(parts);

const SHORTHAND: &str = "components.1204.charge_light = off, blinking";
const MAX_MESSAGE_BYTES: usize = 72 << 20;

fn shorthands(criterion: &mut Criterion) {
    let group = shorthand::parse(SHORTHAND).expect("a shorthand");
    criterion.bench_function("shorthand/parse", |bench| {
        bench.iter(|| shorthand::parse(black_box(SHORTHAND)));
    });
    criterion.bench_function("shorthand/render", |bench| {
        bench.iter(|| shorthand::render(black_box(&group)));
    });
}

fn order_keys(criterion: &mut Criterion) {
    let (low, high) = (Place::nth(0), Place::nth(1));
    let numbering = Numbering::default();
    criterion.bench_function("order/append", |bench| {
        bench.iter(|| black_box(numbering).append());
    });
    criterion.bench_function("order/between_numbers", |bench| {
        bench.iter(|| Place::between(black_box(&low), black_box(&high)));
    });
    // As after many inserts between the same steps.
    let mut near = high.clone();
    for _ in 0..200 {
        near = Place::between(&low, &near).expect("room");
    }
    criterion.bench_function("order/between_fractions", |bench| {
        bench.iter(|| Place::between(black_box(&low), black_box(&near)));
    });
}

fn mask_merge(criterion: &mut Criterion) {
    let step = stored_step();
    let title = Title::parse("Try an outlet in another room".to_owned()).expect("a title");
    let patch = StepPatch {
        title: Edit::Set(Ok(title)),
        ..StepPatch::default()
    };
    criterion.bench_function("merge/title", |bench| {
        bench.iter(|| step.merge(black_box(patch.clone()), None));
    });
}

fn messages(criterion: &mut Criterion) {
    let request = v1::CreateStepRequest {
        step: Some(sent_step()),
        ..v1::CreateStepRequest::default()
    };
    let bytes = request.encode_to_vec();
    criterion.bench_function("message/encode", |bench| {
        bench.iter(|| black_box(&request).encode_to_vec());
    });
    criterion.bench_function("message/decode", |bench| {
        bench.iter(|| v1::CreateStepRequest::decode(black_box(bytes.as_slice())));
    });
}

/// The services in this process, without a server.
fn requests(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let routes = runtime.block_on(async {
        let store = Store::open(Options {
            database: DatabaseUrl::parse("sqlite::memory:").expect("a URL"),
            replica: None,
            migrate: true,
            max_connections: 1,
            max_message_bytes: MAX_MESSAGE_BYTES,
        });
        let limits = Limits {
            max_message_bytes: MAX_MESSAGE_BYTES,
        };
        grpc::routes(store.await.expect("a database"), limits)
    });
    let refused = frame(&v1::CreateStepRequest {
        step: Some(v1::Step {
            product_id: Some(0),
            ..sent_step()
        }),
        ..v1::CreateStepRequest::default()
    });
    let create = "/expertise.v1.StepService/CreateStep";
    let invalid_id = frame(&v1::GetStepRequest {
        guid: "none".to_owned(),
    });
    let get = "/expertise.v1.StepService/GetStep";
    for (name, path, message) in [
        ("request/create_step_refused", create, refused),
        ("request/get_step_refused", get, invalid_id),
    ] {
        criterion.bench_function(name, |bench| {
            let request = || expect_refusal(routes.clone(), path, message.clone());
            bench.iter(|| runtime.block_on(request()));
        });
    }
}

/// Makes a call whose request must be refused.
async fn expect_refusal(mut routes: Routes, path: &str, message: Bytes) -> http::HeaderMap {
    let caller = Caller {
        account: AccountId::parse("bench").expect("an account"),
        subject: String::new(),
        scopes: Scope::ALL.to_vec(),
    };
    let body = tonic::body::Body::new(Full::new(message));
    let request = http::Request::post(path)
        .header("content-type", "application/grpc")
        .extension(caller)
        .body(body)
        .expect("a request");
    let response = routes.call(request).await.expect("an answer");
    let headers = response.into_parts().0.headers;
    // 3 is INVALID_ARGUMENT: the request was decoded and refused.
    assert_eq!(
        headers.get("grpc-status").map(|status| status.as_bytes()),
        Some(b"3".as_slice())
    );
    headers
}

fn frame(message: &impl Message) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len()).expect("a length"));
    message.encode(&mut frame).expect("a buffer of its length");
    frame.freeze()
}

/// A step as a caller sends it.
fn sent_step() -> v1::Step {
    v1::Step {
        task: Uuid::nil().to_string(),
        product_id: Some(1204),
        r#type: v1::StepType::Solution.into(),
        title: "Try another outlet".to_owned(),
        body: Some("Without a power strip. ".repeat(45)),
        cost: Some(2),
        dependency_shorthand: Some(SHORTHAND.to_owned()),
        tags: vec!["power".to_owned(), "first".to_owned()],
        ..v1::Step::default()
    }
}

/// A step as the store has it.
fn stored_step() -> Step {
    let title = Title::parse("Try another outlet".to_owned()).expect("a title");
    let body = Body::parse("Without a power strip. ".repeat(45)).expect("a body");
    Step {
        guid: StepId(Uuid::nil()),
        account: AccountId::parse("bench").expect("an account"),
        task: TaskId(Uuid::nil()),
        product: ProductId::new(1204).expect("a product"),
        title: title.as_str().to_owned(),
        kind: StepKind::Solution {
            title,
            cost: Cost::new(2).expect("a cost"),
            feedback: None,
        },
        content: StepContent {
            body: Some(body),
            dependencies: shorthand::parse(SHORTHAND).ok(),
            ..StepContent::default()
        },
        link: None,
        r_data: serde_json::Map::new(),
        revision: Revision::first(Timestamp(0)),
    }
}
