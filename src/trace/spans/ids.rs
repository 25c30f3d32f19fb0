//! Ids of traces and spans: hexadecimal of any width, base64 as protobuf's JSON has it, and whatever else testers write.
//!
//! | text | id |
//! |---|---|
//! | hexadecimal digits, at most 32 (trace) or 16 (span), or a UUID for a trace | the number |
//! | base64 of at most 16 (trace) or 8 (span) bytes: with `=`, or of the length that it has without | the number, big-endian |
//! | zeros, or empty | none |
//! | anything else | FNV-1a of its bytes, 128 or 64 bits: the same text is the same id in every file |
//!
//! Hexadecimal goes first: a text that is both (eleven hexadecimal digits) is far likelier a short id of an old tracer.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// What a text says as an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Id<T> {
    /// The number that it writes.
    Read(T),
    /// A number made of its bytes, as it writes none.
    Hashed(T),
    /// No id: empty, or zero.
    None,
}

/// The id of a trace.
pub(in crate::trace) fn trace_id(text: &str) -> Id<u128> {
    let id = match written(text, 16).or_else(|| uuid(text)) {
        Some(id) => Id::Read(id),
        None => Id::Hashed(fnv_1a_128(text.as_bytes())),
    };
    if id == Id::Read(0) { Id::None } else { id }
}

/// The id of a span.
pub(in crate::trace) fn span_id(text: &str) -> Id<u64> {
    match written(text, 8).and_then(|id| u64::try_from(id).ok()) {
        Some(0) => Id::None,
        Some(id) => Id::Read(id),
        None => Id::Hashed(fnv_1a_64(text.as_bytes())),
    }
}

/// The number that a text of at most `n_bytes` bytes writes; zero for the empty text.
fn written(text: &str, n_bytes: usize) -> Option<u128> {
    hexadecimal(text, 2 * n_bytes).or_else(|| base64(text, n_bytes))
}

const NO_DIGIT: u8 = u8::MAX;

/// The value of each byte as a hexadecimal digit.
const DIGITS: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value];
        values[digit as usize] = value as u8;
        values[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    values
};

fn hexadecimal(text: &str, most_digits: usize) -> Option<u128> {
    if text.len() > most_digits {
        return None;
    }
    let half = |digits: &[u8]| {
        digits.iter().try_fold(0, |id: u64, digit| match DIGITS[usize::from(*digit)] {
            NO_DIGIT => None,
            value => Some(id << 4 | u64::from(value)),
        })
    };
    let (high, low) = text.as_bytes().split_at(text.len().saturating_sub(16));
    Some(u128::from(half(high)?) << 64 | u128::from(half(low)?))
}

fn base64(text: &str, n_bytes: usize) -> Option<u128> {
    let unpadded = (4 * n_bytes).div_ceil(3);
    if !(text.len() == unpadded || (text.ends_with('=') && text.len() <= n_bytes.div_ceil(3) * 4)) {
        return None;
    }
    let mut bytes = [0; 24];
    let n = BASE64.decode_slice(text, &mut bytes).ok().filter(|n| *n <= n_bytes)?;
    Some(bytes[..n].iter().fold(0, |id, byte| id << 8 | u128::from(*byte)))
}

fn uuid(text: &str) -> Option<u128> {
    let dashes = [8, 13, 18, 23];
    if text.len() != 36 || !text.bytes().enumerate().all(|(i, b)| dashes.contains(&i) == (b == b'-')) {
        return None;
    }
    hexadecimal(&text.replace('-', ""), 32)
}

/// Parameters of the FNV-1a hash: RFC 9923, sections 5 and 2.
fn fnv_1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn fnv_1a_128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_of_any_width_is_padded_on_the_left() {
        assert_eq!(trace_id("5B8EFFF798038103D269B633813FC60C"), Id::Read(0x5b8e_fff7_9803_8103_d269_b633_813f_c60c));
        assert_eq!(trace_id("4376effce3c2d72d"), Id::Read(0x4376_effc_e3c2_d72d));
        assert_eq!(trace_id("A"), Id::Read(10));
        assert_eq!(span_id("eee19b7ec3c1b174"), Id::Read(0xeee1_9b7e_c3c1_b174));
        assert_eq!(span_id("abcdefabcde"), Id::Read(0xabc_defa_bcde));
        assert_eq!(trace_id("5b8efff7-9803-8103-d269-b633813fc60c"), trace_id("5b8efff798038103d269b633813fc60c"));
    }

    #[test]
    fn base64_is_told_by_its_length() {
        assert_eq!(trace_id("AAAAAAAAAAAY0MGPz50I5Q=="), Id::Read(0x18d0_c18f_cf9d_08e5));
        assert_eq!(trace_id("AAAAAAAAAAAY0MGPz50I5Q"), Id::Read(0x18d0_c18f_cf9d_08e5));
        assert_eq!(span_id("GNDBj8+dCOU="), Id::Read(0x18d0_c18f_cf9d_08e5));
        assert_eq!(span_id("GNDBj8+dCOU"), Id::Read(0x18d0_c18f_cf9d_08e5));
        assert_eq!(span_id("AAAAAAAAAAA="), Id::None);
    }

    #[test]
    fn zeros_and_nothing_are_no_id() {
        for text in ["", "0", "0000000000000000"] {
            assert_eq!(span_id(text), Id::None);
            assert_eq!(trace_id(text), Id::None);
        }
        assert_eq!(trace_id("00000000000000000000000000000000"), Id::None);
    }

    #[test]
    fn other_texts_are_hashed_alike_everywhere() {
        // FNV-1a test vectors of the authors: "foobar".
        assert_eq!(fnv_1a_64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv_1a_128(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
        assert_eq!(span_id("sid1"), Id::Hashed(fnv_1a_64(b"sid1")));
        assert!(matches!(span_id("00112233445566778"), Id::Hashed(_)), "17 digits");
        assert!(matches!(trace_id("trace one"), Id::Hashed(_)));
        assert!(matches!(span_id("é"), Id::Hashed(_)));
    }
}
