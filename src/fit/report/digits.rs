//! Numbers for people: so many significant digits, whatever the size.

/// `value` with four significant digits, without trailing zeros.
pub(crate) fn four_digits(value: f64) -> String {
    let text = significant(value, 4);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `value` to two significant digits.
pub(crate) fn two_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return four_digits(value);
    }
    let unit = 10_f64.powi(decimal_exponent(value) - 1);
    four_digits((value / unit).round() * unit)
}

/// A share as a percentage, without what floating point adds to it: `57` of 0.57.
pub(crate) fn percent(share: f64) -> String {
    let text = significant(100.0 * share, 9);
    if text.contains('.') && !text.contains('e') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `value` with six significant digits.
pub(crate) fn six_digits(value: f64) -> String {
    significant(value, 6)
}

fn significant(value: f64, digits: i32) -> String {
    let exponent = if value == 0.0 { 0 } else { decimal_exponent(value) };
    match exponent {
        -4..=6 => {
            let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
            format!("{value:.decimals$}")
        }
        _ => {
            let decimals = usize::try_from(digits - 1).unwrap_or(0);
            format!("{value:.decimals$e}")
        }
    }
}

/// Exponent of the leading decimal digit of a finite number that is not zero.
#[expect(clippy::cast_possible_truncation, reason = "decimal exponents of f64 lie within ±324")]
fn decimal_exponent(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_the_digits_that_were_meant() {
        assert_eq!([0.95, 0.57, 0.29, 0.999, 0.999_999_9].map(percent), ["95", "57", "29", "99.9", "99.99999"]);
    }

    #[test]
    fn two_digits_stand_for_what_is_about_known() {
        let shown: Vec<String> = [86_577.0, 0.018_27, 0.0, 171_294.7, 9.96, 1e-7].into_iter().map(two_digits).collect();
        assert_eq!(shown, ["87000", "0.018", "0", "170000", "10", "1.000e-7"]);
    }

    #[test]
    fn four_digits_of_any_size() {
        for (value, text) in
            [(0.0, "0"), (1.0, "1"), (0.012_345_6, "0.01235"), (-123_456.0, "-123456"), (1.5e-9, "1.500e-9"), (2.0e12, "2.000e12")]
        {
            assert_eq!(four_digits(value), text);
        }
    }

    #[test]
    fn six_digits_of_any_size() {
        for (value, text) in [(0.0, "0.00000"), (2.0, "2.00000"), (1234.5678, "1234.57"), (1.25e-7, "1.25000e-7")] {
            assert_eq!(six_digits(value), text);
        }
    }
}
