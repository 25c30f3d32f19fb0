//! Values, derivatives and errors of expressions.

use num_dual::DualSVec64;

use super::*;

fn value(text: &str) -> Result<f64, String> {
    let bindings: Bindings = [("x", 3.0), ("y", 0.5)].into_iter().collect();
    Expression::parse(text).and_then(|e| e.eval(&bindings)).map_err(|e| e.to_string())
}

#[test]
fn expressions_have_the_values_of_the_grammar() {
    for (text, expected) in [
        ("1", 1.0),
        ("1.5e1 + 1D1", 25.0),
        ("2 + 3 * 4", 14.0),
        ("10 - 3 - 2", 5.0),
        ("2 ** 3 ** 2", 512.0),
        ("7 % 4", 3.0),
        ("-7 % 4", -3.0),
        ("-2 ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("(-2) ** 3", -8.0),
        ("$x * $y", 1.5),
        ("$x-1", 2.0),
        ("$x -1", 2.0),
        ("max(1, $x, 2) + min($y, 4)", 3.5),
        ("$x > 2 ? 10 : 20", 10.0),
        ("$x > 3 ? 10 : $x == 3 ? 20 : 30", 20.0),
        ("!0 + !$x", 1.0),
        ("0 || $x && 0", 0.0),
        ("1 < 2 == 1", 1.0),
        ("$x > 5 ? 1/0 : 7", 7.0),
        ("pow(2, 10) + abs(0 - 1)", 1025.0),
        ("0 ** 0", 1.0),
        ("floor(2.7) + ceil(2.2) + round(2.5)", 8.0),
        ("sqrt(16) + exp(0) + log10(100) + ln(1)", 7.0),
        ("4 * atan(1)", std::f64::consts::PI),
        ("@infinity", f64::INFINITY),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn other_texts_are_refused_with_their_column() {
    for (text, expected) in [
        ("", "column 1: expected a number"),
        ("1 +", "column 4: expected a number"),
        ("1 2", "column 3: expected an operator"),
        ("(1", "column 3: expected an operator or \")\""),
        ("$", "column 1: expected a parameter's name"),
        ("a", "column 2: expected \"(\""),
        ("max(1,", "column 7"),
        ("1 ? 2", "column 6: expected \":\""),
        ("1 & 2", "column 3"),
        ("1 ~ 2", "unexpected character"),
        ("1e999", "too large"),
        ("\"text\"", "expected a number"),
    ] {
        let message = Expression::parse(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
    let deep = "(".repeat(5_000);
    assert!(Expression::parse(&deep).expect_err("deep").to_string().contains("nested"));
    let signs = "-".repeat(50_000) + "1";
    assert!(Expression::parse(&signs).expect_err("signs").to_string().contains("nested"));
}

#[test]
fn operations_without_a_value_are_errors() {
    for (text, expected) in [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("(0-2) ** 0.5", "has no value"),
        ("0 ** (0-1)", "has no value"),
        ("log(0)", "log of 0"),
        ("sqrt(0-1)", "square root of -1"),
        ("rand()", "no function rand of 0"),
        ("$z", "parameter $z has no value"),
        ("$x[0]", "$x is not a list"),
        ("@infinity - @infinity", "not a number"),
    ] {
        let message = value(text).expect_err(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn long_expressions_need_no_stack() {
    let text = vec!["1"; 200_000].join("+");
    assert_eq!(value(&text), Ok(200_000.0));
}

#[test]
fn derivatives_pass_through() {
    let x = 3.0;
    let bindings: Bindings<DualSVec64<1>> = [("x", DualSVec64::from_re(x).derivative(0))].into_iter().collect();
    for (text, derivative) in [
        ("$x * $x", 2.0 * x),
        ("$x ** 3", 3.0 * x * x),
        ("2 ** $x", 8.0 * 2.0_f64.ln()),
        ("$x ** $x", 27.0 * (x.ln() + 1.0)),
        ("1 / $x", -1.0 / (x * x)),
        ("$x % 2", 1.0),
        ("7 % $x", -2.0),
        ("$x > 1 ? 5 * $x : $x", 5.0),
        ("max($x, 1) + floor($x)", 1.0),
        ("(0 - $x) ** 2", 2.0 * x),
    ] {
        let got = Expression::parse(text).and_then(|e| e.eval(&bindings)).expect(text);
        let found = got.derivatives().first().copied().unwrap_or(0.0);
        assert!((found - derivative).abs() < 1e-12, "{text}: {found} for {derivative}");
    }
}
