//! A family in words.

use std::fmt::{self, Write as _};

use super::family::{Criterion, Family, Member};
use crate::fit::digits::four_digits;

impl Family {
    /// The family in words: ranking, tests, proposal; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_members(&mut text);
        let _ = self.write_tests(&mut text);
        let _ = self.write_proposal(&mut text);
        text
    }

    fn write_members(&self, text: &mut String) -> fmt::Result {
        let width = self.members.iter().map(|m| m.name.chars().count()).max().unwrap_or(0).max("structure".len());
        let criterion = if self.criterion == Criterion::Aicc { "AICc" } else { "AIC" };
        writeln!(
            text,
            "{:width$}  {:>10}  {:>11}  {:>10}  {:>10}  {:>7}  {:>10}  {:>11}  {:>10}",
            "structure", "parameters", "squares", criterion, "difference", "weight", "BIC", "left out", "misfit p"
        )?;
        let cell = |value: Option<f64>| value.map_or("-".into(), four_digits);
        for m in &self.members {
            let value = if self.criterion == Criterion::Aicc { m.aicc } else { m.aic };
            let weight = m.weight.map_or("-".into(), |w| format!("{w:.3}"));
            let left_out = m.leave_one_out_error.map_or("-".into(), |e| format!("{} %", four_digits(100.0 * e)));
            writeln!(
                text,
                "{:width$}  {:>10}  {:>11}  {:>10}  {:>10}  {weight:>7}  {:>10}  {left_out:>11}  {:>10}",
                m.name,
                m.parameters.len(),
                four_digits(m.sum_of_squares),
                cell(value),
                cell(m.delta),
                cell(m.bic),
                cell(m.lack_of_fit_p_value)
            )?;
        }
        writeln!(text)
    }

    fn write_tests(&self, text: &mut String) -> fmt::Result {
        for t in &self.tests {
            let (c, f) = (&t.comparison, &t.comparison.test);
            let restriction: Vec<String> = c.restriction.iter().map(|r| format!("{} = {}", r.parameter, r.value)).collect();
            writeln!(
                text,
                "{} in {} ({}): {} = {}, p = {}",
                t.smaller,
                t.larger,
                restriction.join(", "),
                f.name(),
                four_digits(f.f),
                four_digits(f.p_value)
            )?;
        }
        for pair in &self.untested {
            writeln!(text, "{} and {}: {}", pair.first, pair.second, pair.reason)?;
        }
        self.failed.iter().try_for_each(|f| writeln!(text, "{} could not be fitted: {}", f.name, f.reason))
    }

    fn write_proposal(&self, text: &mut String) -> fmt::Result {
        let against = |m: &&Member| m.why_not.is_some();
        for m in self.members.iter().filter(against) {
            writeln!(text, "not {}: {}", m.name, m.why_not.as_deref().unwrap_or_default())?;
        }
        if let Some(p) = &self.proposed {
            writeln!(text, "proposed: {} ({})", p.name, p.reason)?;
            writeln!(text, "rule: {}", p.rule)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))
    }
}
