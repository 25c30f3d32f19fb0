//! How many spans one span stands for: the sampling probability that its `tracestate` tells.
//!
//! OpenTelemetry's entry `ot=` holds a rejection threshold `th`, one to fourteen hexadecimal digits, which are the leading
//! digits of T of 56 bits; the span was kept with probability 1 − T / 2⁵⁶ and stands for the reciprocal (OpenTelemetry
//! specification, "`TraceState` probability sampling", and OTEP 235). The older `p:` of that specification is the negative
//! binary logarithm of the probability, 63 for zero.

/// The adjusted count, at least 1, that a W3C `tracestate` tells; `None` where it tells none.
pub(in crate::trace) fn adjusted_count_of_tracestate(tracestate: &str) -> Option<f64> {
    let (_, fields) = tracestate.split(',').filter_map(|entry| entry.trim().split_once('=')).find(|(key, _)| *key == "ot")?;
    let field = |name: &str| fields.split(';').filter_map(|field| field.split_once(':')).find(|(key, _)| *key == name).map(|(_, v)| v);
    field("th").and_then(count_of_threshold).or_else(|| field("p").and_then(count_of_p_value))
}

const THRESHOLD_DIGITS: usize = 14;

#[expect(clippy::cast_precision_loss, reason = "thresholds have 56 bits, of which 52 matter")]
fn count_of_threshold(digits: &str) -> Option<f64> {
    if digits.is_empty() || digits.len() > THRESHOLD_DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let threshold = u64::from_str_radix(digits, 16).ok()? << (4 * (THRESHOLD_DIGITS - digits.len()));
    let all = 1_u64 << (4 * THRESHOLD_DIGITS);
    Some(all as f64 / (all - threshold) as f64)
}

fn count_of_p_value(p: &str) -> Option<f64> {
    p.parse::<i32>().ok().filter(|p| (0..63).contains(p)).map(|p| 2_f64.powi(p))
}

/// The largest adjusted count: that of the smallest probability that OpenTelemetry's threshold can say, 2⁻⁵⁶.
pub const LARGEST_COUNT: f64 = (1_u64 << 56) as f64;

/// The adjusted count of a rate: one in `rate` from 1 on, a probability below; none beyond what a threshold could say.
pub(in crate::trace) fn adjusted_count_of_rate(rate: f64) -> Option<f64> {
    let count = if rate >= 1.0 { rate } else { rate.recip() };
    (rate > 0.0 && count <= LARGEST_COUNT).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tracestate: &str, count: Option<f64>) {
        assert_eq!(adjusted_count_of_tracestate(tracestate), count, "{tracestate}");
    }

    #[test]
    fn thresholds_as_in_the_specification() {
        // Probabilities 1, 1/2, 1/4, 1/10 and 1/100 with their thresholds of the specification's table.
        check("ot=th:0", Some(1.0));
        check("ot=th:8", Some(2.0));
        check("ot=th:c", Some(4.0));
        check("vendor=x:y, ot=rv:6e6d1a75832a2f;th:8 ,other=1", Some(2.0));
        let tenth = adjusted_count_of_tracestate("ot=th:e6666666666666").unwrap();
        assert!((tenth - 10.0).abs() < 1e-12);
        let hundredth = adjusted_count_of_tracestate("ot=th:fd70a").unwrap();
        assert!((hundredth - 100.0).abs() < 0.01);
    }

    #[test]
    fn the_older_power_of_two_is_read_too() {
        check("ot=p:2;r:5", Some(4.0));
        check("ot=p:63", None);
    }

    #[test]
    fn what_tells_nothing_tells_nothing() {
        for text in ["", "ot=", "ot=rv:1", "ot=th:", "ot=th:xyz", "ot=th:000000000000000", "state.2", "other=th:8", "ot=th:+8"] {
            check(text, None);
        }
    }

    #[test]
    fn rates_are_one_in_n_or_probabilities() {
        assert_eq!(adjusted_count_of_rate(20.0), Some(20.0));
        assert_eq!(adjusted_count_of_rate(0.25), Some(4.0));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 1e10, 1e300, 1e-20] {
            assert_eq!(adjusted_count_of_rate(rate), None);
        }
    }
}
