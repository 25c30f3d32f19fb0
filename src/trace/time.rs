//! Time stamps of traces: ticks of the log's own clock.
//!
//! A stamp is a fixed-point number of 10⁻⁹ ticks, so that nanoseconds since 1970 and seconds with a fraction are both
//! held exactly. What a tick lasts is said where times become demands (`seconds_per_tick`), not here.

use std::{fmt, num::NonZeroU32};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::number;

const PARTS_PER_TICK: u32 = 1_000_000_000;
const FRACTION_DIGITS: usize = 9;

/// 2⁶³.
const TOO_MANY_TICKS: f64 = 9_223_372_036_854_775_808.0;

/// A point in time, in ticks of the log's clock; exact to 10⁻⁹ tick, range ±2⁶³ ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// The last whole tick that is not later.
    ticks: i64,
    /// How many parts later it is, and one more: so that a time that may be missing takes no more room.
    parts_and_one: NonZeroU32,
}

impl Default for Time {
    fn default() -> Self {
        Self::from_ticks(0)
    }
}

impl Time {
    /// A whole number of ticks.
    pub fn from_ticks(ticks: i64) -> Self {
        Self { ticks, parts_and_one: NonZeroU32::MIN }
    }

    /// So many parts (fewer than a tick has) after a whole number of ticks.
    fn after(ticks: i64, parts: u32) -> Self {
        Self { ticks, parts_and_one: NonZeroU32::MIN.saturating_add(parts) }
    }

    /// Reads `4053220`, `-3`, `12.25` or `1.5e6`; `None` for anything else, and for values outside ±2⁶³ ticks.
    /// Digits past the ninth after the point are cut off.
    #[inline]
    pub fn parse(text: &str) -> Option<Self> {
        Self::of_digits(text.as_bytes()).or_else(|| Self::parse_any(text))
    }

    /// What [`Time::parse`] reads of the text that these bytes are.
    #[inline]
    pub(super) fn parse_bytes(bytes: &[u8]) -> Option<Self> {
        Self::of_digits(bytes).or_else(|| Self::parse_any(std::str::from_utf8(bytes).ok()?))
    }

    #[inline]
    fn of_digits(bytes: &[u8]) -> Option<Self> {
        number::digits(bytes).and_then(|ticks| i64::try_from(ticks).ok()).map(Self::from_ticks)
    }

    /// Reads what is not, as most stamps are, a few digits alone.
    fn parse_any(text: &str) -> Option<Self> {
        if text.contains(['e', 'E']) {
            return Self::from_f64(text.parse().ok()?);
        }
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let parts = fraction.bytes().chain(std::iter::repeat(b'0')).take(FRACTION_DIGITS).fold(0, |sum, b| sum * 10 + u32::from(b - b'0'));
        Some(match (negative, parts) {
            (false, parts) => Self::after(whole, parts),
            (true, 0) => Self::from_ticks(-whole),
            (true, parts) => Self::after(-whole - 1, PARTS_PER_TICK - parts),
        })
    }

    /// The nearest stamp to `ticks`; `None` when it is not finite or out of range.
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked; rounding is what is asked for")]
    pub fn from_f64(ticks: f64) -> Option<Self> {
        if !(-TOO_MANY_TICKS..TOO_MANY_TICKS).contains(&ticks) {
            return None;
        }
        let whole = ticks.trunc();
        // Exact: so large that a tick has no fraction, or rounded to parts of one that is.
        let parts = ((ticks - whole) * f64::from(PARTS_PER_TICK)).round() as i64;
        let per_tick = i64::from(PARTS_PER_TICK);
        Some(Self::after(whole as i64 + parts.div_euclid(per_tick), parts.rem_euclid(per_tick) as u32))
    }

    /// In ticks, rounded to the precision of `f64`.
    pub fn as_f64(self) -> f64 {
        self.ticks_since(Self::default())
    }

    /// Ticks from `earlier` to `self`; negative when `earlier` is later.
    #[expect(clippy::cast_precision_loss, reason = "the nearest f64 is asked for")]
    pub fn ticks_since(self, earlier: Self) -> f64 {
        let mut ticks = i128::from(self.ticks) - i128::from(earlier.ticks);
        let mut parts = i64::from(self.parts_and_one.get()) - i64::from(earlier.parts_and_one.get());
        // Both of one sign, so that what is rounded does not depend on where the clock starts.
        if parts > 0 && ticks < 0 {
            (ticks, parts) = (ticks + 1, parts - i64::from(PARTS_PER_TICK));
        } else if parts < 0 && ticks > 0 {
            (ticks, parts) = (ticks - 1, parts + i64::from(PARTS_PER_TICK));
        }
        let whole = i64::try_from(ticks).map_or_else(|_| ticks as f64, |ticks| ticks as f64);
        if parts == 0 { whole } else { whole + parts as f64 / f64::from(PARTS_PER_TICK) }
    }

    /// Whole ticks and parts, both without sign, and whether it is before 0.
    fn magnitude(self) -> (bool, u64, u32) {
        let parts = self.parts_and_one.get() - 1;
        match (self.ticks < 0, parts) {
            (true, 1..) => (true, (self.ticks + 1).unsigned_abs(), PARTS_PER_TICK - parts),
            (is_negative, _) => (is_negative, self.ticks.unsigned_abs(), parts),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_negative, whole, parts) = self.magnitude();
        let sign = if is_negative { "-" } else { "" };
        if parts == 0 {
            return write!(f, "{sign}{whole}");
        }
        let fraction = format!("{parts:09}");
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.parts_and_one == NonZeroU32::MIN { serializer.serialize_i64(self.ticks) } else { serializer.serialize_f64(self.as_f64()) }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a finite number of ticks")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Time, E> {
                Ok(Time::from_ticks(v))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Time, E> {
                i64::try_from(v).map(Time::from_ticks).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(v), &self))
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Time, E> {
                Time::from_f64(v).ok_or_else(|| E::invalid_value(de::Unexpected::Float(v), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, shown: Option<&str>) {
        assert_eq!(Time::parse(text).map(|t| t.to_string()).as_deref(), shown, "{text}");
    }

    #[test]
    fn reads_whole_decimal_and_exponent_forms() {
        check("4053220", Some("4053220"));
        check("1693412345123456789", Some("1693412345123456789"));
        check("1693412345.123456789", Some("1693412345.123456789"));
        check("-12.250", Some("-12.25"));
        check(".5", Some("0.5"));
        check("7.", Some("7"));
        check("1.5e3", Some("1500"));
    }

    #[test]
    fn refuses_what_is_not_a_time() {
        for text in ["", ".", "-", "12a", "1,5", "nan", "inf", "1e400", "9999999999999999999", "--3", "+3", "0x10", "1e19"] {
            check(text, None);
        }
    }

    #[test]
    fn differences_of_large_stamps_are_exact() {
        let (a, b) = (Time::parse("1693412345123456789").unwrap(), Time::parse("1693412345123456790").unwrap());
        assert_eq!(b.ticks_since(a), 1.0);
        assert_eq!(a.ticks_since(b), -1.0);
    }

    #[test]
    fn a_time_that_may_be_missing_takes_no_more_room() {
        assert_eq!(size_of::<Option<Time>>(), 16);
    }

    proptest! {
        /// Order, differences and rounding are those of whole numbers of parts.
        #[test]
        fn is_a_whole_number_of_parts(a in any::<(i64, u32)>(), near in -3_000_000_000..3_000_000_000_i128, others in any::<i64>()) {
            let parts_of = |time: Time| i128::from(time.ticks) * 1_000_000_000 + i128::from(time.parts_and_one.get()) - 1;
            let as_ticks = |parts: i128| (parts / 1_000_000_000) as f64 + (parts % 1_000_000_000) as f64 / 1e9;
            let a = Time::after(a.0 / 2, a.1 % PARTS_PER_TICK);
            let sum = parts_of(a) + near;
            let b = Time::after(sum.div_euclid(1_000_000_000) as i64, sum.rem_euclid(1_000_000_000) as u32);
            for (a, b) in [(a, b), (b, a), (a, Time::from_ticks(others)), (a, Time::default())] {
                prop_assert_eq!(a.cmp(&b), parts_of(a).cmp(&parts_of(b)));
                prop_assert_eq!(a.ticks_since(b), as_ticks(parts_of(a) - parts_of(b)));
            }
            prop_assert_eq!(Time::parse(&a.to_string()), Some(a));
        }

        #[test]
        fn floats_become_the_nearest_part(ticks in -1e12..1e12_f64) {
            let expected = ticks.trunc() as i128 * 1_000_000_000 + (ticks.fract() * 1e9).round() as i128;
            let time = Time::from_f64(ticks).unwrap();
            prop_assert_eq!(i128::from(time.ticks) * 1_000_000_000 + i128::from(time.parts_and_one.get()) - 1, expected);
        }
    }

    #[test]
    fn json_is_a_number() {
        for text in ["4053220", "-7", "1693412345123456789", "0.125"] {
            let time = Time::parse(text).unwrap();
            let json = serde_json::to_string(&time).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), time);
        }
        assert!(serde_json::from_str::<Time>("\"soon\"").is_err());
    }
}
