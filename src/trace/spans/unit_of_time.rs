//! Whether a source's times are in the unit that its format has.
//!
//! Milliseconds that are read as nanoseconds make every span start within an hour of 1970, and last a millionth of its time. Where all
//! starts of a source are of this century in another unit, and in that of the format of the first weeks of 1970, that is said; nothing is
//! converted. Recordings whose clock starts at 0 begin before, and are left alone.

use super::SpanFormatSeen;

/// Nanoseconds since 1970 of the years 2001 to 2099.
const THIS_CENTURY_NS: std::ops::RangeInclusive<i64> = 978_307_200_000_000_000..=4_102_444_800_000_000_000;

/// Units, each a thousand of the one before.
const UNITS: [&str; 4] = ["nanoseconds", "microseconds", "milliseconds", "seconds"];

/// The first and the last start of a source's spans.
#[derive(Debug, Default)]
pub(super) struct Starts(Option<(i64, i64)>);

impl Starts {
    /// Notes a start, nanoseconds since 1970.
    pub(super) fn note(&mut self, start_ns: i64) {
        let (first, last) = self.0.get_or_insert((start_ns, start_ns));
        *first = start_ns.min(*first);
        *last = start_ns.max(*last);
    }

    /// Where the times seem to be in another unit than that of the format: that, and the format's.
    pub(super) fn other_unit(&self, seen: SpanFormatSeen) -> Option<(&'static str, &'static str)> {
        let (first, last) = self.0?;
        let own = match seen {
            SpanFormatSeen::OtlpJson | SpanFormatSeen::OtlpProtobuf => 0,
            SpanFormatSeen::Jaeger | SpanFormatSeen::Zipkin => 1,
        };
        let is_of_this_century = |start_ns: i64, factor: i64| start_ns.checked_mul(factor).is_some_and(|t| THIS_CENTURY_NS.contains(&t));
        let others = UNITS.iter().skip(own + 1).zip([1_000, 1_000_000, 1_000_000_000]);
        let other =
            others.filter(|(_, factor)| [first, last].iter().all(|t| is_of_this_century(*t, *factor))).map(|(unit, _)| *unit).next()?;
        Some((other, UNITS[own]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(starts_ns: &[i64], seen: SpanFormatSeen) -> Option<&'static str> {
        let mut starts = Starts::default();
        starts_ns.iter().for_each(|t| starts.note(*t));
        starts.other_unit(seen).map(|(other, _)| other)
    }

    #[test]
    fn times_of_1970_that_are_of_this_century_in_another_unit_are_told() {
        let otlp = SpanFormatSeen::OtlpJson;
        assert_eq!(other(&[1_700_000_000_000, 1_700_000_360_000], otlp), Some("milliseconds"));
        assert_eq!(other(&[1_700_000_000_000_000], otlp), Some("microseconds"));
        assert_eq!(other(&[1_700_000_000], otlp), Some("seconds"));
        // Milliseconds and seconds as microseconds.
        assert_eq!(other(&[1_700_000_000_000_000], SpanFormatSeen::Jaeger), Some("milliseconds"));
        assert_eq!(other(&[1_700_000_000_000], SpanFormatSeen::Zipkin), Some("seconds"));
    }

    #[test]
    fn times_of_now_and_recordings_from_0_are_left_alone() {
        let otlp = SpanFormatSeen::OtlpProtobuf;
        assert_eq!(other(&[1_700_000_000_000_000_000], otlp), None);
        assert_eq!(other(&[0, 1_700_000_000_000], otlp), None);
        assert_eq!(other(&[5_000_000, 1_700_000_000_000], otlp), None);
        assert_eq!(other(&[i64::MAX], otlp), None);
        assert_eq!(other(&[], otlp), None);
    }
}
