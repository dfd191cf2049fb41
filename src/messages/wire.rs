//! The fields of an encoded message.

use prost::{
    decode_length_delimiter,
    encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field},
};

/// A field as it is encoded.
pub struct WireField<'a> {
    pub number: u32,
    pub whole: &'a [u8],
    /// A text, bytes, or a message; empty for a number.
    pub content: &'a [u8],
}

/// The fields of a message in their order; `None` if the bytes are not a message.
pub fn fields(mut bytes: &[u8]) -> Option<Vec<WireField<'_>>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let begin = bytes;
        let (number, wire_type) = decode_key(&mut bytes).ok()?;
        let content = match wire_type {
            WireType::LengthDelimited => {
                let length = decode_length_delimiter(&mut bytes).ok()?;
                let (content, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                content
            }
            _ => {
                skip_field(wire_type, number, &mut bytes, DecodeContext::default()).ok()?;
                &[]
            }
        };
        fields.push(WireField {
            number,
            whole: begin.get(..begin.len() - bytes.len())?,
            content,
        });
    }
    Some(fields)
}

/// The encoded fields to which the numbers lead, from these fields of a message.
pub fn find<'m>(message: &[WireField<'m>], numbers: &[u32]) -> Vec<&'m [u8]> {
    let Some((number, below)) = numbers.split_first() else {
        return Vec::new();
    };
    message
        .iter()
        .filter(|field| field.number == *number)
        .flat_map(|field| match below {
            [] => vec![field.whole],
            below => find(&fields(field.content).unwrap_or_default(), below),
        })
        .collect()
}

/// Appends a field of messages or text.
pub fn append(number: u32, content: &[u8], message: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, message);
    encode_varint(content.len() as u64, message);
    message.extend_from_slice(content);
}
