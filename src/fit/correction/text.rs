//! A correction in words.

use std::fmt::{self, Write as _};

use super::{CorrectionOutcome, CorrectionReport, Factor};
use crate::{
    fit::{
        design::write_table,
        report::digits::{four_digits, six_digits},
    },
    model::Measure,
};

impl CorrectionReport {
    /// The correction in words: outcome, plain estimates, ratios; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let n = self.rounds.len();
        let outcome = match self.outcome {
            CorrectionOutcome::Settled => format!("settled in {n} rounds"),
            CorrectionOutcome::NotSettled => format!("not settled in {n} rounds"),
            CorrectionOutcome::NoMinimum => "no minimum".to_owned(),
        };
        let precision = self.precision.map_or("an unknown precision".into(), |p| format!("{} %", four_digits(100.0 * p)));
        writeln!(text, "corrected for the solver's error: {outcome}; simulated to {precision} with seed {}", self.seed)?;
        let mut table = vec![["without the correction", "estimate", "std error", "interval"].map(str::to_owned).to_vec()];
        for (name, p) in &self.plain {
            let interval = p.lower.zip(p.upper).map_or("none".into(), |(l, u)| format!("{} .. {}", six_digits(l), six_digits(u)));
            table.push(vec![name.clone(), six_digits(p.estimate), p.std_error.map_or("none".into(), four_digits), interval]);
        }
        write_table(text, &table)?;
        for step in &self.slopes_along {
            let moved: Vec<String> = step.iter().map(|(name, by)| format!("{name} by {}", four_digits(*by))).collect();
            writeln!(text, "ratios simulated along what the trials hardly determine: {} and back", moved.join(", "))?;
        }
        let mut table = vec![["measure", "simulated over analytic, by trial"].map(str::to_owned).to_vec()];
        let mut measures: Vec<&Measure> = Vec::new();
        for measure in self.correction.points.iter().flat_map(|p| p.factors.keys()) {
            if !measures.contains(&measure) {
                measures.push(measure);
            }
        }
        for measure in measures {
            let factors = self.correction.points.iter().filter_map(|p| p.factors.get(measure));
            table.push(vec![measure.to_string(), factors.map(in_words).collect::<Vec<_>>().join(" ")]);
        }
        write_table(text, &table)
    }
}

fn in_words(factor: &Factor) -> String {
    match factor.ratio {
        Some(ratio) => four_digits(ratio),
        None => format!("{:+.2e}", factor.simulated - factor.analytic),
    }
}
