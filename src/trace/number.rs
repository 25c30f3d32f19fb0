//! Numbers of traces: digits eight at a time.

/// Most digits of a whole number that `f64` holds exactly whatever they are.
const MOST_EXACT_DIGITS: usize = 15;

/// Most digits of a whole number that `u64` holds whatever they are.
const MOST_DIGITS: usize = 19;

/// The digit 0, eight times.
const ZEROS: u64 = 0x3030_3030_3030_3030;

const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// What `text` says, if that is from 1 to 19 digits and nothing else; the rest is left to the standard library.
#[inline]
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > MOST_DIGITS {
        return None;
    }
    let (eights, rest) = text.as_chunks::<8>();
    let mut sum = 0;
    for eight in eights {
        sum = sum * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
    }
    if rest.is_empty() {
        return Some(sum);
    }
    // The digits that are left, at the end of a word that begins with zeros.
    let n = rest.len();
    let word = match (text.last_chunk(), rest.first_chunk(), rest.last_chunk()) {
        (Some(last), ..) => u64::from_le_bytes(*last),
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << (64 - 8 * n) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => return rest.iter().try_fold(sum, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))),
    };
    let is_left = u64::MAX << (64 - 8 * n);
    Some(sum * POWERS_OF_TEN[n] + eight_digits(word & is_left | ZEROS & !is_left)?)
}

/// The number that eight digits write, the first in the lowest byte: neighbours are joined to pairs, pairs to fours, these to the whole.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    if word & HIGH != ZEROS || word.wrapping_add(0x0606_0606_0606_0606) & HIGH != ZEROS {
        return None;
    }
    let word = word & !HIGH;
    let pairs = (word.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(1 + (10_000 << 32)) >> 32)
}

/// A whole number as `str::parse` reads it.
#[inline]
pub(super) fn whole(text: &str) -> Option<i64> {
    match digits(text.as_bytes()) {
        Some(whole) => i64::try_from(whole).ok(),
        None => text.parse().ok(),
    }
}

/// A whole number from 0 as `str::parse` reads it.
#[inline]
pub(super) fn unsigned(text: &str) -> Option<u64> {
    unsigned_bytes(text.as_bytes())
}

/// The same of the text that these bytes are.
#[inline]
pub(super) fn unsigned_bytes(bytes: &[u8]) -> Option<u64> {
    digits(bytes).or_else(|| std::str::from_utf8(bytes).ok()?.parse().ok())
}

/// The nearest `f64` to what `text` says, as `str::parse` reads it.
pub(super) fn decimal(text: &str) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "so few digits are exact")]
    match digits(text.as_bytes()) {
        Some(whole) if text.len() <= MOST_EXACT_DIGITS => Some(whole as f64),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decimal, digits, whole};

    proptest! {
        #[test]
        fn whole_numbers_are_what_the_standard_library_reads(text in "[-+]?[0-9]{0,21}|[0-9]{0,9}[!-~]?[0-9]{0,9}") {
            prop_assert_eq!(whole(&text), text.parse().ok());
            let only_digits = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() < 20;
            prop_assert_eq!(digits(text.as_bytes()), text.parse().ok().filter(|_| only_digits));
        }
    }

    #[test]
    fn is_what_the_standard_library_reads() {
        for text in
            ["", "0", "7", "125", "999999999999999", "1234567890123456", "-3", "+3", "1.5", "1e3", "inf", "NaN", "12a", " 1", "00012"]
        {
            let expected: Option<f64> = text.parse().ok();
            assert_eq!(decimal(text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        }
    }
}
