//! Files of the NIST Statistical Reference Datasets, nonlinear regression: header with line ranges, the model as a
//! formula, starts, certified values, data.

use layerfit::model::Expression;

use crate::double_double::DoubleDouble;

/// One problem.
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// The model of the response over `$b1`…, `$x` or `$x1`…, and `$pi`.
    pub model: Expression,
    /// Whether the response is the logarithm of the measured value.
    pub response_is_log: bool,
    /// Starting values, start 1 and start 2, `(n_params)` each.
    pub starts: [Vec<f64>; 2],
    /// Certified estimates, `(n_params)`.
    pub estimates: Vec<f64>,
    /// Certified standard errors, `(n_params)`.
    pub std_errors: Vec<f64>,
    /// Certified residual sum of squares.
    pub sum_of_squares: f64,
    /// Names of the predictors: `x`, or `x1`, `x2`.
    pub predictors: Vec<String>,
    /// Rows of response and predictors, to the digits of the file.
    pub rows: Vec<Vec<DoubleDouble>>,
}

impl Dataset {
    /// Reads a `.dat` file.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let (response_is_log, formula) = formula(text).ok_or("no model of the form y = ... + e")?;
        let model = Expression::parse(&formula).map_err(|e| e.to_string())?;
        let (mut starts, mut estimates, mut std_errors) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
        for line in text.lines() {
            let Some((left, right)) = line.split_once('=') else { continue };
            let is_parameter = left.trim().strip_prefix('b').is_some_and(|n| n.parse::<usize>().is_ok());
            let numbers: Vec<f64> = right.split_whitespace().filter_map(|w| w.parse().ok()).collect();
            if let (true, [first, second, estimate, std_error]) = (is_parameter, numbers.as_slice()) {
                starts[0].push(*first);
                starts[1].push(*second);
                estimates.push(*estimate);
                std_errors.push(*std_error);
            }
        }
        let sum_of_squares = text.lines().find_map(|l| l.strip_prefix("Residual Sum of Squares:")?.trim().parse().ok());
        let rows = rows(text);
        let n_predictors = rows.first().map_or(0, Vec::len).saturating_sub(1);
        if estimates.is_empty() || n_predictors == 0 || rows.iter().any(|r| r.len() != n_predictors + 1) {
            return Err("no starts with certified values, or no rows of data".into());
        }
        let predictors = if n_predictors == 1 { vec!["x".into()] } else { (1..=n_predictors).map(|k| format!("x{k}")).collect() };
        let sum_of_squares = sum_of_squares.ok_or("no certified residual sum of squares")?;
        Ok(Self { name: name.to_owned(), model, response_is_log, starts, estimates, std_errors, sum_of_squares, predictors, rows })
    }
}

/// Rows of numbers below the last line that begins with `Data:`.
fn rows(text: &str) -> Vec<Vec<DoubleDouble>> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(header) = lines.iter().rposition(|l| l.starts_with("Data:")) else { return Vec::new() };
    let row = |line: &&str| line.split_whitespace().map(DoubleDouble::parse).collect::<Option<Vec<_>>>();
    lines[header + 1..].iter().filter_map(row).filter(|r| !r.is_empty()).collect()
}

/// Whether the response is `log[y]`, and the right-hand side of the model without its error term, as an expression.
fn formula(text: &str) -> Option<(bool, String)> {
    let model = text.split_once("\nModel:")?.1;
    let (before, after) =
        model.split_once('=').filter(|(before, _)| !before.contains("pi")).or_else(|| model.split_once('=')?.1.split_once('='))?;
    let squeezed: String = after.split("Start").next()?.split_whitespace().collect();
    let end = squeezed.find("+eS").or_else(|| squeezed.rfind("+e"))?;
    Some((before.contains("log["), as_expression(&squeezed[..end])))
}

/// The formula in the syntax of model expressions: `$` before names, round brackets, a digit before a decimal point.
fn as_expression(formula: &str) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for c in formula.chars().chain([' ']) {
        if c.is_ascii_alphabetic() || (c.is_ascii_digit() && !word.is_empty()) {
            word.push(c);
            continue;
        }
        match word.as_str() {
            "" => {}
            "arctan" => text.push_str("atan"),
            "exp" | "cos" | "sin" => text.push_str(&word),
            name => text.push_str(&format!("${name}")),
        }
        word.clear();
        if c == '.' && !text.ends_with(|p: char| p.is_ascii_digit()) {
            text.push('0');
        }
        text.push(match c {
            '[' => '(',
            ']' => ')',
            other => other,
        });
    }
    text.trim().to_owned()
}
