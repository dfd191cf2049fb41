//! Frames of HTTP/2, byte by byte.

/// What every connection begins with: the preface and empty settings.
pub fn preface() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// HEADERS that begin a call of the contract, or of the service at a path, with more headers.
pub fn call(stream: u32, method: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let block = header_block(method, more);
    let mut bytes = Vec::new();
    // A frame holds 16 KB; CONTINUATION has the rest.
    let mut pieces = block.chunks(16_384).peekable();
    let mut kind = HEADERS;
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() {
            END_HEADERS
        } else {
            0
        };
        bytes.extend(frame(kind, flags, stream, piece));
        kind = CONTINUATION;
    }
    bytes
}

/// The headers of a call, none of them indexed.
pub fn header_block(method: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let path = match method.starts_with('/') {
        true => method.to_owned(),
        false => format!("/expertise.v1.{method}"),
    };
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", &path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("x-account-id", "flood"),
    ]
    .iter()
    .chain(more)
    {
        block.push(0);
        text(&mut block, name);
        text(&mut block, value);
    }
    block
}

/// A string of HPACK: its length with a prefix of 7 bits, and itself.
fn text(block: &mut Vec<u8>, text: &str) {
    match u8::try_from(text.len()) {
        Ok(short @ 0..127) => block.push(short),
        Ok(_) | Err(_) => {
            block.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                block.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            block.push(rest as u8);
        }
    }
    block.extend(text.as_bytes());
}

pub fn data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, payload)
}

pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// The number of the n-th stream that a client opens.
pub fn stream(n: u32) -> u32 {
    2 * n + 1
}
