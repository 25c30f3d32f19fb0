//! Time stamps of traces: ticks of the log's own clock.
//!
//! A stamp is a fixed-point number of 10⁻⁹ ticks, so that nanoseconds since 1970 and seconds with a fraction are both
//! held exactly. What a tick lasts is said where times become demands (`seconds_per_tick`), not here.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::number;

const PARTS_PER_TICK: i128 = 1_000_000_000;
const FRACTION_DIGITS: usize = 9;

/// A point in time, in ticks of the log's clock; exact to 10⁻⁹ tick, range ±2⁶³ ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i128);

impl Time {
    /// A whole number of ticks.
    pub fn from_ticks(ticks: i64) -> Self {
        Self(i128::from(ticks) * PARTS_PER_TICK)
    }

    /// Reads `4053220`, `-3`, `12.25` or `1.5e6`; `None` for anything else, and for values outside ±2⁶³ ticks.
    /// Digits past the ninth after the point are cut off.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(ticks) = number::digits(text.as_bytes()).and_then(|ticks| i64::try_from(ticks).ok()) {
            return Some(Self::from_ticks(ticks));
        }
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
        let parts = fraction.bytes().chain(std::iter::repeat(b'0')).take(FRACTION_DIGITS).fold(0, |sum, b| sum * 10 + i128::from(b - b'0'));
        let value = i128::from(whole) * PARTS_PER_TICK + parts;
        Some(Self(if negative { -value } else { value }))
    }

    /// The nearest stamp to `ticks`; `None` when it is not finite or out of range.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the range is checked; rounding is what is asked for")]
    pub fn from_f64(ticks: f64) -> Option<Self> {
        (ticks.abs() <= i64::MAX as f64).then(|| {
            let whole = ticks.trunc();
            Self(whole as i128 * PARTS_PER_TICK + ((ticks - whole) * PARTS_PER_TICK as f64).round() as i128)
        })
    }

    /// In ticks, rounded to the precision of `f64`.
    pub fn as_f64(self) -> f64 {
        parts_as_ticks(self.0)
    }

    /// Ticks from `earlier` to `self`; negative when `earlier` is later.
    pub fn ticks_since(self, earlier: Self) -> f64 {
        parts_as_ticks(self.0 - earlier.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest f64 is asked for")]
fn parts_as_ticks(parts: i128) -> f64 {
    // Divisions of 64 bits are several times as quick, and exact as well.
    if let (Ok(parts), Ok(per_tick)) = (i64::try_from(parts), i64::try_from(PARTS_PER_TICK)) {
        return (parts / per_tick) as f64 + (parts % per_tick) as f64 / per_tick as f64;
    }
    (parts / PARTS_PER_TICK) as f64 + (parts % PARTS_PER_TICK) as f64 / PARTS_PER_TICK as f64
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, parts) = (self.0.abs() / PARTS_PER_TICK, self.0.abs() % PARTS_PER_TICK);
        if parts == 0 {
            return write!(f, "{sign}{whole}");
        }
        let fraction = format!("{parts:09}");
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.0 / PARTS_PER_TICK) {
            Ok(ticks) if self.0 % PARTS_PER_TICK == 0 => serializer.serialize_i64(ticks),
            _ => serializer.serialize_f64(self.as_f64()),
        }
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
