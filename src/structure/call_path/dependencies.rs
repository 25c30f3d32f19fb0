//! Probabilistic parametric dependencies: how an action depends on a parameter (Brosig et al. 2011, section II.B).
//!
//! Input: for each execution a tuple of the parameter's characterisation v and the outcome i of the action (index of the branch
//! transition, iterations of the loop, or for demands a number of nanoseconds); output: distributions of the outcome per
//! value, or per bin of values where there are many.
//!
//! | symbol | is |
//! |---|---|
//! | f_v(i) = #{v_k = v, i_k = i} / #{v_k = v} | probability of outcome i given value v |
//! | p(v) = #{v_k = v} / #T | weight of the value |
//! | f_P(i) = Σ p(v_j) f_{v_j}(i) / Σ p(v_j) | probability of i given the bin P: the pooled counts of its values |
//!
//! Bins are equidistant, of width w = (max − min) / B, a value being in bin min(B − 1, ⌊(v − min) / w⌋), or equiprobable: as many
//! tuples in each as equal values, which are never split, allow. The paper names both; the formulas are ours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    flow::Pmf,
    options::{Characterisation, DependencySpec},
};

/// More values than this are many.
const MANY_VALUES: usize = 20;
/// So are values with fewer samples each than this.
const FEW_SAMPLES: u64 = 5;
/// Most values that are kept apart: beyond, numbers lose a digit.
const MOST_VALUES: usize = 10_000;

/// How values are put into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Binning {
    /// This many bins of equal width.
    Equidistant(usize),
    /// At most this many bins of about equally many tuples.
    Equiprobable(usize),
}

impl Default for Binning {
    fn default() -> Self {
        Self::Equiprobable(10)
    }
}

/// A number in the order of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value(f64);

impl Eq for Value {}
impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Least and largest value of a bin.
type Range = (f64, f64);
/// Outcomes, and their sum.
type Sums = (Pmf, i128);

/// The distribution of the outcome for one value, or one bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditional {
    /// The value as text, where it is not a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Least value of the bin that was observed.
    pub from: f64,
    /// Largest value of the bin that was observed.
    pub to: f64,
    /// Σ p(v) over its values.
    pub weight: f64,
    /// Outcomes → how often.
    pub outcomes: Pmf,
    /// Mean outcome.
    pub mean: f64,
}

/// All tuples of one dependency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependence {
    numbers: BTreeMap<Value, (Pmf, i128)>,
    texts: BTreeMap<Box<str>, (Pmf, i128)>,
    /// Significant digits of numbers; `None` while all are kept.
    digits: Option<i32>,
}

impl Dependence {
    /// Adds a tuple whose value is a number.
    pub fn add(&mut self, value: f64, outcome: u64) {
        let value = self.rounded(if value == 0.0 { 0.0 } else { value });
        let (outcomes, sum) = self.numbers.entry(Value(value)).or_default();
        outcomes.add(outcome, 1);
        *sum += i128::from(outcome);
        self.bound();
    }

    /// Adds a tuple whose value is a text. Beyond 10,000 texts, further ones count as `(other)`.
    pub fn add_text(&mut self, value: &str, outcome: u64) {
        let value = if self.texts.contains_key(value) || self.texts.len() < MOST_VALUES { value } else { "(other)" };
        let (outcomes, sum) = self.texts.entry(value.into()).or_default();
        outcomes.add(outcome, 1);
        *sum += i128::from(outcome);
    }

    /// Adds what is said by a parameter's rendering.
    pub fn add_rendering(&mut self, rendering: &str, characterisation: Characterisation, outcome: u64) {
        match characterise(rendering, characterisation) {
            Some(value) => self.add(value, outcome),
            None => self.add_text(rendering, outcome),
        }
    }

    /// Adds the tuples of `other`.
    pub fn merge(&mut self, other: Self) {
        for (Value(value), (outcomes, sum)) in other.numbers {
            let value = self.rounded(value);
            let here = self.numbers.entry(Value(value)).or_default();
            here.0.merge(&outcomes);
            here.1 += sum;
            self.bound();
        }
        for (text, (outcomes, sum)) in other.texts {
            let here = self.texts.entry(text).or_default();
            here.0.merge(&outcomes);
            here.1 += sum;
        }
    }

    /// Number of tuples.
    pub fn n(&self) -> u64 {
        self.numbers.values().chain(self.texts.values()).map(|(outcomes, _)| outcomes.n()).sum()
    }

    /// The distribution for each value, in order.
    pub fn per_value(&self) -> Vec<Conditional> {
        let n = self.n() as f64;
        let numbers = self.numbers.iter().map(|(value, sums)| conditional(None, (value.0, value.0), sums.clone(), n));
        let texts = self.texts.iter().map(|(text, sums)| conditional(Some(text), (f64::NAN, f64::NAN), sums.clone(), n));
        numbers.chain(texts).collect()
    }

    /// The distribution for each bin of numbers, in order, without empty ones; texts stay as they are.
    pub fn partition(&self, binning: Binning) -> Vec<Conditional> {
        let bin_of = match binning {
            Binning::Equidistant(n_bins) => self.equidistant(n_bins.max(1)),
            Binning::Equiprobable(n_bins) => self.equiprobable(n_bins.max(1)),
        };
        let n = self.n() as f64;
        let mut bins: BTreeMap<usize, (Range, Sums)> = BTreeMap::new();
        for ((value, (outcomes, sum)), bin) in self.numbers.iter().zip(bin_of) {
            let ((_, to), sums) = bins.entry(bin).or_insert(((value.0, value.0), Default::default()));
            *to = value.0;
            sums.0.merge(outcomes);
            sums.1 += sum;
        }
        let numbers = bins.into_values().map(|(range, sums)| conditional(None, range, sums, n));
        let texts = self.texts.iter().map(|(text, sums)| conditional(Some(text), (f64::NAN, f64::NAN), sums.clone(), n));
        numbers.chain(texts).collect()
    }

    /// Whether there are so many values that bins say more: over 20, or with fewer than 5 samples each.
    pub fn has_many_values(&self) -> bool {
        self.numbers.len() > MANY_VALUES || self.numbers.values().any(|(outcomes, _)| outcomes.n() < FEW_SAMPLES)
    }

    fn equidistant(&self, n_bins: usize) -> Vec<usize> {
        let (Some((Value(least), _)), Some((Value(most), _))) = (self.numbers.first_key_value(), self.numbers.last_key_value()) else {
            return Vec::new();
        };
        let width = (most - least) / n_bins as f64;
        let bin = |value: &Value| if width > 0.0 { (((value.0 - least) / width) as usize).min(n_bins - 1) } else { 0 };
        self.numbers.keys().map(bin).collect()
    }

    fn equiprobable(&self, n_bins: usize) -> Vec<usize> {
        let n: u64 = self.numbers.values().map(|(outcomes, _)| outcomes.n()).sum();
        let mut before = 0;
        let bin = |(outcomes, _): &(Pmf, i128)| {
            // The bin of the middle one of the equal values.
            let middle = 2 * before + outcomes.n();
            before += outcomes.n();
            (u128::from(middle) * n_bins as u128 / (2 * u128::from(n))) as usize
        };
        self.numbers.values().map(bin).map(|bin| bin.min(n_bins - 1)).collect()
    }

    fn rounded(&self, value: f64) -> f64 {
        match self.digits {
            Some(digits) if value != 0.0 && value.is_finite() => {
                let scale = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
                let rounded = (value * scale).round() / scale;
                if rounded.is_finite() { rounded } else { value }
            }
            _ => value,
        }
    }

    /// Drops a digit while there are too many values.
    fn bound(&mut self) {
        while self.numbers.len() > MOST_VALUES && self.digits != Some(1) {
            self.digits = Some(self.digits.map_or(6, |digits| digits - 1));
            for (Value(value), (outcomes, sum)) in std::mem::take(&mut self.numbers) {
                let here = self.numbers.entry(Value(self.rounded(value))).or_default();
                here.0.merge(&outcomes);
                here.1 += sum;
            }
        }
    }
}

fn conditional(text: Option<&str>, (from, to): (f64, f64), (outcomes, sum): (Pmf, i128), n_all: f64) -> Conditional {
    let n = outcomes.n() as f64;
    Conditional { text: text.map(str::to_owned), from, to, weight: n / n_all, mean: sum as f64 / n, outcomes }
}

/// The number that a rendering says; `None` where it says none.
fn characterise(rendering: &str, characterisation: Characterisation) -> Option<f64> {
    let text = rendering.trim();
    match characterisation {
        Characterisation::Value => text.parse().ok().filter(|value: &f64| value.is_finite()),
        Characterisation::Length => Some(rendering.chars().count() as f64),
        Characterisation::Size => match text.strip_prefix(['[', '{']).and_then(|rest| rest.strip_suffix([']', '}'])) {
            Some(elements) if elements.trim().is_empty() => Some(0.0),
            Some(elements) => Some(n_elements(elements) as f64),
            None => text.parse::<u64>().ok().map(|n| n as f64),
        },
    }
}

/// Elements between commas, those inside of brackets and quotes not counted.
fn n_elements(text: &str) -> usize {
    let (mut depth, mut quoted, mut n) = (0_i64, false, 1);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' | '(' if !quoted => depth += 1,
            ']' | '}' | ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => n += 1,
            _ => {}
        }
    }
    n
}

/// A dependency, quantified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DependencyReport {
    /// What depends on what.
    pub dependency: DependencySpec,
    /// Number of tuples.
    pub n: u64,
    /// Whether the values are in bins.
    pub binned: bool,
    /// Distributions of the outcome.
    pub conditionals: Vec<Conditional>,
}

impl DependencyReport {
    pub(super) fn of(dependency: &DependencySpec, dependence: &Dependence, binning: Binning) -> Self {
        let binned = dependence.has_many_values();
        let conditionals = if binned { dependence.partition(binning) } else { dependence.per_value() };
        Self { dependency: dependency.clone(), n: dependence.n(), binned, conditionals }
    }
}
