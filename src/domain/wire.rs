//! Encoded sizes of protobuf fields, in bytes.

/// A field below 16 with a truth value, or with an enum value below 128.
pub const BOOL_FIELD_BYTES: usize = 2;
/// A field below 16 with a double.
pub const DOUBLE_FIELD_BYTES: usize = 9;

/// A field with this number, whose text or message has so many bytes.
pub const fn field_bytes(number: u32, bytes: usize) -> usize {
    varint_bytes(number as u64 * 8) + varint_bytes(bytes as u64) + bytes
}

/// A number with seven bits a byte.
const fn varint_bytes(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::field_bytes;

    #[test]
    fn numbers_and_lengths_have_seven_bits_a_byte() {
        for (number, bytes, size) in [
            (1, 0, 2),
            (15, 127, 2 + 127),
            (16, 127, 3 + 127),
            (15, 128, 3 + 128),
            (2_047, 16_383, 4 + 16_383),
            (2_048, 16_384, 6 + 16_384),
        ] {
            assert_eq!(field_bytes(number, bytes), size, "{number}, {bytes}");
        }
    }
}
