//! A stepwise search in words.

use std::fmt::{self, Write as _};

use super::search::{Attempt, Round, StepwiseReport};
use crate::fit::digits::{four_digits, percent};

impl StepwiseReport {
    /// The search in words: candidates of every round, eliminations, proposal; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        for (number, round) in self.additions.iter().enumerate() {
            self.write_round(text, number + 1, round)?;
        }
        for e in &self.eliminations {
            let p = e
                .p_value
                .map_or("it is needed, or the model has no fit without it".into(), |p| format!("without it p = {}", four_digits(p)));
            let verdict = if e.left_out { ": left out" } else { "" };
            writeln!(text, "surplus? {} ({}): {p}{verdict}", e.parameter, e.because)?;
        }
        let added = if self.added.is_empty() { "nothing".to_owned() } else { self.added.join("; ") };
        writeln!(text, "proposed: add {added}")?;
        if !self.left_out.is_empty() {
            writeln!(text, "proposed: leave out {}", self.left_out.join(", "))?;
        }
        writeln!(text, "estimated then: {}", self.parameters.join(", "))?;
        self.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))
    }

    fn write_round(&self, text: &mut String, number: usize, round: &Round) -> fmt::Result {
        let n = round.candidates.iter().filter(|c| c.p_value.is_some()).count();
        writeln!(
            text,
            "round {number}: {} candidates; sums of squares by the weights of the larger fit; p corrected for {n} tests (Holm)",
            round.candidates.len()
        )?;
        for c in &round.candidates {
            writeln!(text, "  {}", c.in_words())?;
        }
        match &round.taken {
            Some(taken) => writeln!(text, "taken: {taken}")?,
            None => writeln!(text, "taken: none; no addition explains more than chance would at {} %", percent(self.confidence))?,
        }
        writeln!(text)
    }
}

impl Attempt {
    /// The attempt in a line.
    fn in_words(&self) -> String {
        if let Some(failure) = &self.failure {
            return format!("{}: not tested ({failure})", self.description);
        }
        let mut parts = Vec::new();
        if let (Some(name), Some(estimate)) = (&self.parameter, self.estimate) {
            let half_width = self.half_width.map_or(String::new(), |h| format!(" ± {}", four_digits(h)));
            parts.push(format!("{name} = {}{half_width} ({})", four_digits(estimate), self.unit));
        }
        if let Some((without, with)) = self.sums_of_squares {
            parts.push(format!("sum of squares {} → {}", four_digits(without), four_digits(with)));
        }
        if let (Some(f), Some(p), Some(corrected)) = (self.f, self.p_value, self.corrected_p_value) {
            parts.push(format!("F = {}, p = {}, corrected {}", four_digits(f), four_digits(p), four_digits(corrected)));
        }
        if let Some(change) = self.aicc_change {
            parts.push(format!("AICc {}{}", if change >= 0.0 { "+" } else { "" }, four_digits(change)));
        }
        if self.layered {
            parts.push("both by the layered solver".into());
        }
        format!("{}: {}", self.description, parts.join("; "))
    }
}
