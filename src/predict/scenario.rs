//! Scenarios: the operating points at which a prediction is asked for.

use indexmap::IndexMap;

use crate::model::{Bindings, Number};

/// Most operating points of one prediction; each is a solution of the model.
pub const MOST_SCENARIOS: usize = 100_000;

/// Values of one name, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The parameter, without `$`.
    pub name: String,
    /// Its values, at least one.
    pub values: Vec<f64>,
}

/// The cross product of axes, the last varying fastest; without axes, one operating point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenarios {
    /// Axes, in the order given.
    pub axes: Vec<Axis>,
}

/// A scenario that cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// Not of the form.
    #[error("\"{text}\": expected NAME=VALUE or NAME=FROM..TO or NAME=FROM..TO:STEP with numbers, as in users=10..100:10")]
    Form {
        /// The text as given.
        text: String,
    },
    /// A step of zero, or away from the end.
    #[error("\"{text}\": a step of {step} does not lead from {from} to {to}")]
    Step {
        /// The text as given.
        text: String,
        /// The step.
        step: f64,
        /// First value.
        from: f64,
        /// Last value.
        to: f64,
    },
    /// A name on two axes.
    #[error("\"{name}\" is given twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// More points than are solved at once.
    #[error("{text}: more than {MOST_SCENARIOS} operating points: take larger steps")]
    TooMany {
        /// The text with which there are so many.
        text: String,
    },
}

impl Scenarios {
    /// Reads `NAME=VALUE` and `NAME=FROM..TO[:STEP]` texts (a `$` before the name is allowed). The step is 1, or -1
    /// where the range falls; `TO` is included where a step meets it.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn parse(texts: &[String]) -> Result<Self, ScenarioError> {
        let mut axes: IndexMap<String, Axis> = IndexMap::new();
        let mut count = 1_usize;
        for text in texts {
            let axis = parse_axis(text)?;
            count = count.saturating_mul(axis.values.len());
            if count > MOST_SCENARIOS {
                return Err(ScenarioError::TooMany { text: text.clone() });
            }
            if let Some(earlier) = axes.insert(axis.name.clone(), axis) {
                return Err(ScenarioError::Twice { name: earlier.name });
            }
        }
        Ok(Self { axes: axes.into_values().collect() })
    }

    /// How many operating points there are.
    pub fn n_points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// All operating points, at least one.
    pub fn points(&self) -> Vec<Bindings> {
        self.axes.iter().fold(vec![Bindings::new()], |points, axis| {
            let with = |point: &Bindings, value: f64| {
                let mut point = point.clone();
                point.set(axis.name.clone(), value);
                point
            };
            points.iter().flat_map(|point| axis.values.iter().map(move |v| with(point, *v))).collect()
        })
    }
}

fn parse_axis(text: &str) -> Result<Axis, ScenarioError> {
    let form = || ScenarioError::Form { text: text.to_owned() };
    let (name, values) = text.split_once('=').ok_or_else(form)?;
    let name = name.trim();
    let name = name.strip_prefix('$').unwrap_or(name);
    let parameter = Number::parse(&format!("${name}")).ok_or_else(form)?;
    if parameter.parameter() != Some(name) {
        return Err(form());
    }
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(form);
    let Some((from, rest)) = values.split_once("..") else {
        return Ok(Axis { name: name.to_owned(), values: vec![number(values)?] });
    };
    let (to, step) = rest.split_once(':').map_or((rest, None), |(to, step)| (to, Some(step)));
    let (from, to) = (number(from)?, number(to)?);
    let step = step.map(number).transpose()?.unwrap_or(if to < from { -1.0 } else { 1.0 });
    Ok(Axis { name: name.to_owned(), values: range(from, to, step, text)? })
}

/// The values of the range that `text` gives.
fn range(from: f64, to: f64, step: f64, text: &str) -> Result<Vec<f64>, ScenarioError> {
    if from == to {
        return Ok(vec![from]);
    }
    let steps = (to - from) / step;
    if !(steps > 0.0 && steps.is_finite()) {
        return Err(ScenarioError::Step { text: text.to_owned(), step, from, to });
    }
    // A step that should meet the end may miss it by rounding.
    let steps = (steps * (1.0 + 1e-12) + 1e-9).floor();
    #[expect(clippy::cast_precision_loss, reason = "the limit is far below 2^53")]
    if steps >= MOST_SCENARIOS as f64 {
        return Err(ScenarioError::TooMany { text: text.to_owned() });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie between 0 and the limit")]
    let count = steps as u32;
    Ok((0..=count).map(|k| rounded(from + f64::from(k) * step, step)).collect())
}

/// `value` without the rounding of its sum: 0.1 + 2 · 0.1 is 0.3.
fn rounded(value: f64, step: f64) -> f64 {
    let unit = 10f64.powf((step.abs().log10() - 9.0).floor());
    let near = (value / unit).round() * unit;
    let text = format!("{near:.12e}");
    text.parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Scenarios, ScenarioError> {
        Scenarios::parse(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
    }

    fn values(text: &str) -> Vec<f64> {
        parse(&[text]).expect(text).axes[0].values.clone()
    }

    #[test]
    fn ranges_are_read() {
        assert_eq!(values("users=10"), [10.0]);
        assert_eq!(values("$users = 1..3"), [1.0, 2.0, 3.0]);
        assert_eq!(values("u=3..1"), [3.0, 2.0, 1.0]);
        assert_eq!(values("u=1..10:4"), [1.0, 5.0, 9.0]);
        assert_eq!(values("u=0.1..0.5:0.1"), [0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(values("u=-2..2:2"), [-2.0, 0.0, 2.0]);
        assert_eq!(values("u=5..5"), [5.0]);
        assert_eq!(values("u=1e-3..3e-3:1e-3"), [0.001, 0.002, 0.003]);
        assert_eq!(values("u=100..0:-50"), [100.0, 50.0, 0.0]);
    }

    #[test]
    fn the_cross_product_varies_the_last_fastest() {
        let points = parse(&["a=1..2", "b=5..6"]).unwrap().points();
        let pairs: Vec<_> = points.iter().map(|p| (p.get("a").unwrap(), p.get("b").unwrap())).collect();
        assert_eq!(pairs, [(1.0, 5.0), (1.0, 6.0), (2.0, 5.0), (2.0, 6.0)]);
        assert_eq!(parse(&[]).unwrap().points().len(), 1);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "users",
            "=3",
            "users=",
            "users=x",
            "users=1..",
            "users=..5",
            "users=1..5:",
            "users=1..5:x",
            "users=inf",
            "users=nan",
            "2a=1",
            "a b=1",
        ] {
            assert!(matches!(parse(&[text]), Err(ScenarioError::Form { .. })), "{text}");
        }
        for text in ["u=1..5:0", "u=1..5:-1", "u=5..1:1"] {
            assert!(matches!(parse(&[text]), Err(ScenarioError::Step { .. })), "{text}");
        }
        assert_eq!(parse(&["u=1", "u=2"]), Err(ScenarioError::Twice { name: "u".into() }));
        let too_many = |texts: &[&str], text: &str| {
            let words = format!("{text}: more than 100000 operating points: take larger steps");
            assert_eq!(parse(texts).unwrap_err().to_string(), words);
        };
        too_many(&["u=1..1e12"], "u=1..1e12");
        too_many(&["u=1..1e19"], "u=1..1e19");
        too_many(&["u=1..1000", "v=1..1000"], "v=1..1000");
    }
}
