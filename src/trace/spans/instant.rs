//! Instants and durations as protobuf's JSON writes them: RFC 3339 texts and seconds with an `s`.

use super::super::Time;

const NS_PER_S: i64 = 1_000_000_000;

/// Nanoseconds since 1970 of an RFC 3339 text: `2022-05-16T07:58:38.503123Z`, any offset, any number of digits (cut at nine).
pub(in crate::trace) fn nanoseconds_of_rfc3339(text: &str) -> Option<i64> {
    let digits =
        |from: usize, to: usize| text.get(from..to).filter(|d| d.bytes().all(|b| b.is_ascii_digit())).and_then(|d| d.parse::<i64>().ok());
    let mark = |at: usize, marks: &[u8]| text.as_bytes().get(at).filter(|b| marks.contains(b));
    mark(4, b"-").and(mark(7, b"-")).and(mark(10, b"Tt ")).and(mark(13, b":")).and(mark(16, b":"))?;
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_at);
    let fraction_ns = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => 0,
        Some(digits) if !digits.is_empty() => fraction_of_second_ns(digits)?,
        _ => return None,
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - zone_offset_s(zone)?;
    seconds.checked_mul(NS_PER_S)?.checked_add(fraction_ns)
}

/// Nanoseconds of a text such as `0.000225s` or `-3s`.
pub(in crate::trace) fn nanoseconds_of_seconds(text: &str) -> Option<i64> {
    let number = text.strip_suffix('s')?;
    if number.contains(['e', 'E']) {
        return None;
    }
    Time::parse(number)?;
    let (negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(NS_PER_S)?.checked_add(fraction_of_second_ns(fraction)?)?;
    Some(if negative { -nanoseconds } else { nanoseconds })
}

fn fraction_of_second_ns(digits: &str) -> Option<i64> {
    let valid = digits.bytes().all(|b| b.is_ascii_digit());
    valid.then(|| digits.bytes().chain(std::iter::repeat(b'0')).take(9).fold(0, |sum, b| sum * 10 + i64::from(b - b'0')))
}

fn zone_offset_s(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'Z' | b'z' => return (zone.len() == 1).then_some(0),
        b'+' => 1,
        _ => -1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |digits: &str| digits.parse::<i64>().ok().filter(|n| digits.len() == 2 && (0..60).contains(n));
    Some(sign * (number(hours)? * 3_600 + number(minutes)? * 60))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by years that start in March, as the leap day then ends the year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, ns: Option<i64>) {
        assert_eq!(nanoseconds_of_rfc3339(text), ns, "{text}");
    }

    #[test]
    fn instants() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2022-05-16T07:58:38.503123Z", Some(1_652_687_918_503_123_000));
        check("2000-02-29T23:59:59.999999999Z", Some(951_868_799_999_999_999));
        check("2022-05-16T09:58:38+02:00", Some(1_652_687_918_000_000_000));
        check("1969-12-31T23:59:59.5Z", Some(-500_000_000));
        for wrong in [
            "",
            "2022-05-16",
            "2022-13-16T07:58:38Z",
            "2022-05-16T07:58:38",
            "2022-05-16T07:58:38.Z",
            "2022-05-16T07:58:38Zx",
            "9999-01-01T00:00:00Z",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn durations() {
        for (text, ns) in [
            ("0.000225s", Some(225_000)),
            ("3s", Some(3_000_000_000)),
            ("-0.5s", Some(-500_000_000)),
            ("1.0000000019s", Some(1_000_000_001)),
        ] {
            assert_eq!(nanoseconds_of_seconds(text), ns, "{text}");
        }
        for wrong in ["", "s", "1", "1e3s", "1.2.3s", "99999999999s", "é.s"] {
            assert_eq!(nanoseconds_of_seconds(wrong), None, "{wrong}");
        }
    }
}
