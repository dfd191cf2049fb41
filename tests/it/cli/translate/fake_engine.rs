//! A fake engine over plain HTTP.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// A request to the engine.
pub struct EngineRequest {
    /// How many requests for a translation there were before.
    pub number: usize,
    /// The body as it came.
    pub body: String,
}

impl EngineRequest {
    /// The texts of a LibreTranslate request.
    pub fn texts(&self) -> Vec<String> {
        let mut body: Value = serde_json::from_str(&self.body).expect("JSON");
        serde_json::from_value(body["q"].take()).expect("texts")
    }
}

/// What the engine does.
pub enum Reply {
    /// A status and a body.
    Answer(u16, String),
    /// A request for a pause of so many seconds.
    RetryAfter(u64),
    /// Never responds.
    Silence,
    /// The connection ends.
    Disconnect,
}

/// LibreTranslate's answer: every text in upper case.
pub fn upper_case(request: &EngineRequest) -> Reply {
    let texts = request.texts();
    let loud: Vec<String> = texts.iter().map(|text| text.to_uppercase()).collect();
    Reply::Answer(200, json!({ "translatedText": loud }).to_string())
}

type Script = dyn Fn(&EngineRequest) -> Reply + Send + Sync;

/// A running engine.
pub struct FakeEngine {
    /// Where it is.
    pub url: String,
    requests: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl FakeEngine {
    /// Starts an engine on its own port.
    pub async fn start(script: impl Fn(&EngineRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = requests.clone();
        tokio::spawn(async move {
            let script: Arc<Script> = Arc::new(script);
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, script.clone(), received.clone()));
            }
        });
        Self { url, requests }
    }

    /// The bodies of all requests for a translation so far.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("no panic");
        requests.iter().map(|(_, body)| body.clone()).collect()
    }

    /// The times between one request for a translation and the next.
    pub fn pauses(&self) -> Vec<Duration> {
        let requests = self.requests.lock().expect("no panic");
        let pairs = requests.windows(2);
        pairs.map(|pair| pair[1].0 - pair[0].0).collect()
    }
}

async fn serve_connection(
    mut stream: TcpStream,
    script: Arc<Script>,
    received: Arc<Mutex<Vec<(Instant, String)>>>,
) {
    let Some((head, body)) = read_request(&mut stream).await else {
        return;
    };
    if head.starts_with("get ") {
        answer(&mut stream, 200, "[]").await;
        return;
    }
    let number = {
        let mut received = received.lock().expect("no panic");
        received.push((Instant::now(), body.clone()));
        received.len() - 1
    };
    match script(&EngineRequest { number, body }) {
        Reply::Answer(status, body) => answer(&mut stream, status, &body).await,
        Reply::RetryAfter(seconds) => {
            let answer = format!(
                "HTTP/1.1 429 Some\r\nretry-after: {seconds}\r\ncontent-length: 0\r\n\
                 connection: close\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        Reply::Silence => sleep(Duration::from_secs(600)).await,
        Reply::Disconnect => {}
    }
}

async fn answer(stream: &mut TcpStream, status: u16, body: &str) {
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} Some\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    // The client may have given up.
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// A request's head in lower case, and its body.
async fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|length| length.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Some((head, body.to_owned()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
