//! A track in words and as CSV.

use std::fmt::{self, Write as _};

use super::report::{Change, Track, TrackedEstimate};
use crate::fit::digits::{four_digits, percent, six_digits};

impl Track {
    /// The track in words: parameters, history, tests, changes; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_drifts(&mut text);
        let _ = self.write_history(&mut text);
        let _ = self.write_tests(&mut text);
        for change in &self.changes {
            let _ = writeln!(text, "change: {}", change.in_words());
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    fn write_drifts(&self, text: &mut String) -> fmt::Result {
        let unit = if self.timed { "unit of time" } else { "trial" };
        for (name, p) in &self.parameters {
            let how = if p.drift_estimated { "estimated" } else { "given" };
            let (scale, relative) =
                if p.logarithmic { ("by its logarithm", " (relative)") } else { ("as it is, projected on its bounds", "") };
            let drift = if p.drift == 0.0 { "no drift".into() } else { format!("drift {}{relative} in one {unit}", four_digits(p.drift)) };
            writeln!(text, "{name}: {drift} ({how}), tracked {scale}; fitted to all trials as constant {}", six_digits(p.fitted))?;
        }
        writeln!(text)
    }

    fn write_history(&self, text: &mut String) -> fmt::Result {
        let percent = percent(self.confidence);
        for name in self.parameters.keys() {
            writeln!(text, "{name:<12}  {:>12}  {:^29}  {:>12}  {:>10}", "smoothed", format!("{percent} % interval"), "filtered", "NIS p")?;
            for t in &self.trials {
                let filtered = t.filtered.get(name).map_or("-".into(), |e| six_digits(e.estimate));
                let p_value = t.innovation.as_ref().map_or("-".into(), |i| four_digits(i.p_value));
                let Some(e) = t.smoothed.get(name) else { continue };
                let ends = e.lower.zip(e.upper).map(|(l, u)| format!("{:>13} .. {:<12}", six_digits(l), six_digits(u)));
                let interval = ends.unwrap_or_else(|| format!("{:^29}", "-"));
                let label = t.time.map_or_else(|| t.trial.clone(), |time| format!("{} @{time}", t.trial));
                writeln!(text, "{label:<12}  {:>12}  {interval}  {filtered:>12}  {p_value:>10}", six_digits(e.estimate))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }

    fn write_tests(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "log-likelihood of the innovations {}", six_digits(self.log_likelihood))?;
        if let Some(t) = &self.drift_test {
            let at_most = if t.n_drifts > 1 { "at most " } else { "" };
            writeln!(text, "drift against none: likelihood ratio {}, p = {at_most}{}", four_digits(t.statistic), four_digits(t.p_value))?;
        }
        if let Some(c) = &self.consistency {
            let of_themselves = self.errors.values().any(|e| e.factor.is_some());
            let verdict = match c.consistent {
                true if of_themselves => "near 1 by the errors that are estimated from them",
                true => "as the filter says",
                false => "not as the filter says",
            };
            let (lower, upper) = (four_digits(c.lower), four_digits(c.upper));
            writeln!(text, "innovations: mean square {} ({lower} to {upper} expected, {} values): {verdict}", four_digits(c.mean), c.dof)?;
        }
        for (measure, w) in &self.whiteness {
            writeln!(
                text,
                "innovations of {measure}: Ljung-Box Q({}) = {}, p = {}",
                w.lags,
                four_digits(w.statistic),
                four_digits(w.p_value)
            )?;
        }
        for (measure, e) in &self.errors {
            let factor = e.factor.map_or("as known".into(), |f| format!("estimated, {} times what the fit has", four_digits(f)));
            writeln!(text, "error of {measure}: {} ({factor})", four_digits(e.deviation))?;
        }
        Ok(())
    }

    /// One line a trial: `trial`, `time`, then of every parameter smoothed and filtered estimate with interval, then the innovations.
    pub fn to_csv(&self) -> String {
        let mut header = vec!["trial".to_owned(), "time".to_owned()];
        for name in self.parameters.keys() {
            for kind in ["smoothed", "filtered"] {
                header.extend(["", "_lower", "_upper"].map(|end| format!("{kind}{end}({name})")));
            }
        }
        header.extend(["nis", "nis_dof", "nis_p", "window_p"].map(str::to_owned));
        let ends = |e: Option<&TrackedEstimate>| match e {
            Some(e) => [Some(e.estimate), e.lower, e.upper].map(|v| v.map_or_else(String::new, |v| v.to_string())),
            None => [const { String::new() }; 3],
        };
        let mut text = header.join(",") + "\n";
        for t in &self.trials {
            let mut cells = vec![quoted(&t.trial), t.time.map_or_else(String::new, |v| v.to_string())];
            for name in self.parameters.keys() {
                cells.extend(ends(t.smoothed.get(name)));
                cells.extend(ends(t.filtered.get(name)));
            }
            match &t.innovation {
                Some(i) => cells.extend([
                    i.squared.to_string(),
                    i.dof.to_string(),
                    i.p_value.to_string(),
                    i.window_p_value.map_or_else(String::new, |p| p.to_string()),
                ]),
                None => cells.extend([const { String::new() }; 4]),
            }
            text += &cells.join(",");
            text.push('\n');
        }
        text
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

impl Change {
    /// The change in a sentence.
    pub fn in_words(&self) -> String {
        match self {
            Self::Jump { trial, parameter, size, std_error, lower, upper, logarithmic, p_value, instead_of_drift } => {
                let how = if *instead_of_drift {
                    " against constant parameters; with this jump these explain the trials clearly better than drift"
                } else {
                    ""
                };
                let by = match (logarithmic, lower.zip(*upper)) {
                    (true, Some((low, high))) => {
                        format!("a factor of {} (interval {} to {})", four_digits(*size), four_digits(low), four_digits(high))
                    }
                    (true, None) => format!("a factor of {}", four_digits(*size)),
                    (false, _) => format!("{} (standard error {})", four_digits(*size), four_digits(*std_error)),
                };
                format!("{parameter} jumped by {by} into trial \"{trial}\" (p = {}{how})", four_digits(*p_value))
            }
            Self::Moved { measure, from_trial, noticed_at, rose, limit } => {
                let way = if *rose { "above" } else { "below" };
                format!(
                    "{measure} has stayed {way} what the filter predicts since trial \"{from_trial}\", noticed at trial \"{noticed_at}\" (cumulative sum beyond {})",
                    four_digits(*limit)
                )
            }
            Self::Outlying { trial, p_value } => {
                format!("trial \"{trial}\" does not fit what came before (p = {} over all trials)", four_digits(*p_value))
            }
        }
    }
}
