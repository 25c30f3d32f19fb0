//! A comparison with black boxes in words.

use std::fmt::{self, Write as _};

use super::report::{Baselines, IntervalEstimate, MeasureBaselines, PolynomialReport};
use crate::fit::digits::four_digits;

impl Baselines {
    /// The comparison in words; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        write!(text, "beside black boxes, against {}", self.load)?;
        match self.fitted_up_to {
            Some(load) => writeln!(text, "; extrapolated from {} up to {load} to the {} trials above", self.load, self.held_out.len())?,
            None => writeln!(text)?,
        }
        for (measure, of) in &self.measures {
            writeln!(text, "{measure}")?;
            of.write(text)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))
    }
}

impl MeasureBaselines {
    fn write(&self, text: &mut String) -> fmt::Result {
        writeln!(
            text,
            "  {:16}  {:>10}  {:>10}  {:>10}  {:>16}  {:>9}  {:>11}",
            "", "parameters", "rms error", "left out", "extrapolated", "in band", "half-width"
        )?;
        for m in &self.methods {
            let left_out = m.leave_one_out_rms_error.map_or("-".into(), four_digits);
            let (error, covered, width) = match m.extrapolation {
                Some(e) => (
                    format!("{} ({:.0} %)", four_digits(e.rms_error), 100.0 * e.relative_error),
                    e.covered.map_or("-".into(), |c| format!("{c} of {}", e.n)),
                    e.mean_half_width.map_or("-".into(), four_digits),
                ),
                None => ("-".into(), "-".into(), "-".into()),
            };
            writeln!(
                text,
                "  {:16}  {:>10}  {:>10}  {left_out:>10}  {error:>16}  {covered:>9}  {width:>11}",
                m.method.name(),
                m.n_parameters,
                four_digits(m.rms_error)
            )?;
        }
        if let Some(p) = &self.polynomial {
            let other = self.extrapolated_polynomial.as_ref().map(PolynomialReport::degree).filter(|degree| *degree != p.degree());
            let extrapolated = other.map_or(String::new(), |degree| format!(", of degree {degree} where it is extrapolated"));
            writeln!(text, "  polynomial of degree {}{extrapolated}", p.degree())?;
        }
        if let Some(s) = &self.scalability {
            let peak = s.peak_load.map_or("never falls".into(), |n| format!("largest at {}", four_digits(n)));
            writeln!(text, "  scalability law: λ {}, σ {}, κ {}; {peak}", in_words(&s.lambda), in_words(&s.sigma), in_words(&s.kappa))?;
        }
        Ok(())
    }
}

fn in_words(e: &IntervalEstimate) -> String {
    let half_width = e.upper.map_or(" (at its bound, or not determined)".into(), |upper| format!(" ± {}", four_digits(upper - e.estimate)));
    format!("{}{half_width}", four_digits(e.estimate))
}
