//! Fits and comparisons in words, for people.

use std::fmt::{self, Write as _};

use super::{
    Fit, ParameterEstimate,
    assemble::stop_in_words,
    digits::{four_digits, percent, six_digits, two_digits},
};
use crate::fit::{
    comparison::{
        compare::Comparison,
        f_test::{DofRule, Preferred},
    },
    design::directions_in_words,
    problem::{ErrorScale, Intervals},
    search::weights::WeightSource,
};

impl Fit {
    /// The report in words: parameters, the whole fit, measures, notes; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_parameters(&mut text);
        let _ = self.write_whole(&mut text);
        let _ = self.write_measures(&mut text);
        let _ = self.write_tests(&mut text);
        text.push_str(&directions_in_words(&self.identifiability.weak));
        if let Some(correction) = &self.correction {
            text.push_str(&correction.to_text());
        }
        let _ = self.write_knowledge(&mut text);
        let _ = self.write_resampling(&mut text);
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    fn write_parameters(&self, text: &mut String) -> fmt::Result {
        let percent = percent(self.confidence);
        let width = self.parameters.keys().map(String::len).max().unwrap_or(0).max("parameter".len());
        writeln!(
            text,
            "{:width$}  {:>12}  {:>11}  {:^27}  {:>10}",
            "parameter",
            "estimate",
            "std error",
            format!("{percent} % interval"),
            "start"
        )?;
        for (name, p) in &self.parameters {
            let interval = match (p.lower, p.upper) {
                (Some(low), Some(high)) => format!("{:>12} .. {:<11}", six_digits(low), six_digits(high)),
                (Some(low), None) => format!("{:>12} .. {:<11}", six_digits(low), "no end"),
                (None, Some(high)) => format!("{:>12} .. {:<11}", "no end", six_digits(high)),
                _ => format!("{:^27}", "none"),
            };
            let error = p.std_error.map_or("none".into(), four_digits);
            writeln!(text, "{name:width$}  {:>12}  {error:>11}  {interval}  {:>10}", six_digits(p.estimate), four_digits(p.start))?;
        }
        for (name, explanation) in self.parameters.iter().filter_map(|(n, p)| Some((n, p.explanation.as_ref()?))) {
            writeln!(text, "  {name}: {explanation}")?;
        }
        Ok(())
    }

    fn write_whole(&self, text: &mut String) -> fmt::Result {
        writeln!(text)?;
        writeln!(text, "ended: {}", stop_in_words(self.stop))?;
        writeln!(
            text,
            "{} measured values, {} parameters, {} degrees of freedom; {} iterations, {} evaluations",
            self.n_observations,
            self.parameters.len(),
            self.degrees_of_freedom,
            self.iterations,
            self.evaluations
        )?;
        let mse = self.mean_square_error.map_or("none".into(), six_digits);
        let intervals = match self.interval_degrees_of_freedom {
            None if self.problem.method.intervals == Intervals::Sandwich => "what trials scatter by gives no intervals".to_owned(),
            None if !self.problem.method.loss.is_squared() => "intervals are scaled by what the loss makes of it".to_owned(),
            None if self.error_scale == ErrorScale::Known => "errors are known: it scales no interval".to_owned(),
            None if let Some(dof) = self.degrees_of_freedom_in_words() => {
                format!("scales all intervals; they are wider for variances that are estimated, with {dof} degrees of freedom")
            }
            None => "scales all intervals".to_owned(),
            Some(dof) => format!("intervals are from what trials scatter by, with {dof} degrees of freedom"),
        };
        writeln!(text, "weighted sum of squares {}, mean square error {mse} ({intervals})", six_digits(self.sum_of_squares))?;
        let id = &self.identifiability;
        let condition = id.condition_number.map_or("infinite".into(), four_digits);
        write!(text, "rank {} of {}, condition number {condition}", id.rank, id.free.len())?;
        match &id.weakest_direction {
            Some(direction) if id.free.len() > 1 => writeln!(text, "; the data say least about {direction}")?,
            _ => writeln!(text)?,
        }
        writeln!(text)
    }

    /// The range of the parameters' own degrees of freedom, where they have any.
    fn degrees_of_freedom_in_words(&self) -> Option<String> {
        let each = || self.parameters.values().filter_map(|p| p.degrees_of_freedom);
        let (least, most) = (each().reduce(f64::min)?, each().reduce(f64::max)?);
        let (least, most) = (two_digits(least), two_digits(most));
        Some(if least == most { least } else { format!("{least} to {most}") })
    }

    fn write_measures(&self, text: &mut String) -> fmt::Result {
        let names: Vec<String> = self.weighting.measures.keys().map(ToString::to_string).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0).max("measure".len());
        writeln!(text, "{:width$}  {:>4}  {:>12}  {:>9}  weighted by", "measure", "n", "rms residual", "relative")?;
        for (name, m) in names.iter().zip(self.weighting.measures.values()) {
            let relative = m.relative_residual.map_or("none".into(), |r| format!("{} %", four_digits(100.0 * r)));
            writeln!(
                text,
                "{name:width$}  {:>4}  {:>12}  {relative:>9}  {}",
                m.n,
                four_digits(m.rms_residual),
                source_in_words(m.weighted_by)
            )?;
        }
        Ok(())
    }

    fn write_tests(&self, text: &mut String) -> fmt::Result {
        let d = &self.diagnosis;
        if let Some(i) = &self.information {
            let aicc = i.aicc.map_or("none".into(), six_digits);
            let (aic, bic) = (six_digits(i.aic), six_digits(i.bic));
            writeln!(text, "AIC {aic}, AICc {aicc}, BIC {bic} ({} parameters, those of the errors among them)", i.n_parameters)?;
        }
        if let Some(test) = &d.overall {
            let (n, dof) = (self.parameters.len(), self.degrees_of_freedom);
            writeln!(text, "against no model: F({n}, {dof}) = {}, p = {}", four_digits(test.statistic), four_digits(test.p_value))?;
        }
        if let Some(l) = &d.lack_of_fit {
            let f = four_digits(l.f);
            writeln!(text, "misfit against replicates: F({}, {}) = {f}, p = {}", l.misfit_dof, l.pure_error_dof, four_digits(l.p_value))?;
        }
        if let Some(test) = &d.error_scale {
            writeln!(text, "misfit against known errors: chi-square {}, p = {}", four_digits(test.statistic), four_digits(test.p_value))?;
        }
        if let Some(test) = &d.normality {
            writeln!(text, "normal residuals: W = {}, p = {}", four_digits(test.statistic), four_digits(test.p_value))?;
        }
        Ok(())
    }

    /// Ties, priors, joint box.
    fn write_knowledge(&self, text: &mut String) -> fmt::Result {
        let interval = |low: Option<f64>, high: Option<f64>| match (low, high) {
            (Some(low), Some(high)) => format!("{} .. {}", six_digits(low), six_digits(high)),
            _ => "no interval".into(),
        };
        for (name, d) in &self.derived {
            let error = d.std_error.map_or("none".into(), four_digits);
            writeln!(text, "tied: {name} = {}, std error {error}, {}", six_digits(d.estimate), interval(d.lower, d.upper))?;
        }
        for (name, p) in &self.priors {
            let alone = p.data_alone.map_or("the data alone do not determine it".into(), |a| {
                let error = a.std_error.map_or(String::new(), |s| format!(" ± {}", four_digits(s)));
                format!("the data alone say {}{error}", six_digits(a.estimate))
            });
            let share = p.share.map_or("all".into(), |s| format!("{} %", four_digits(100.0 * s)));
            let [low, likely, high] = <[f64; 3]>::from(p.prior);
            writeln!(text, "prior: {name} in [{low}, {likely}, {high}]: {share} of what is known of it; {alone}")?;
        }
        if let Some(joint) = self.joint.as_ref().filter(|j| j.parameters.len() > 1) {
            let sides: Vec<String> =
                joint.sidak.iter().map(|(n, l)| format!("{n} {} .. {}", six_digits(l.lower), six_digits(l.upper))).collect();
            writeln!(text, "all at once at {} %: {}", percent(joint.confidence), sides.join(", "))?;
        }
        Ok(())
    }

    fn write_resampling(&self, text: &mut String) -> fmt::Result {
        if let Some(b) = &self.bootstrap {
            for (name, e) in &b.parameters {
                let range = format!("{} .. {}", six_digits(e.lower), six_digits(e.upper));
                writeln!(
                    text,
                    "resampled {} times: {name} bias {}, std error {}, {range}",
                    b.n,
                    four_digits(e.bias),
                    four_digits(e.std_error)
                )?;
            }
        }
        if let Some(out) = &self.diagnosis.leave_one_out {
            writeln!(text, "each trial predicted from the others: weighted sum of squares {}", six_digits(out.sum_of_squares))?;
            for (measure, rms) in &out.rms_errors {
                writeln!(text, "  {measure}: rms error {}", four_digits(*rms))?;
            }
        }
        Ok(())
    }

    /// The fit in one line: `d1 = 2.01 ± 0.04, d2 = …`.
    pub fn to_line(&self) -> String {
        let half_width = |p: &ParameterEstimate| match p.upper {
            Some(upper) => format!(" ± {}", four_digits(upper - p.estimate)),
            None => String::new(),
        };
        let part = |(name, p): (&String, &ParameterEstimate)| format!("{name} = {}{}", six_digits(p.estimate), half_width(p));
        self.parameters.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

fn source_in_words(source: WeightSource) -> &'static str {
    match source {
        WeightSource::StandardErrors => "its standard errors",
        WeightSource::Weights => "the weights given",
        WeightSource::ResidualVariance => "its own residual variance",
        WeightSource::SharedResidualVariance => "a relative residual variance shared by measures with few values",
        WeightSource::Unit => "nothing (all weights 1)",
        WeightSource::Covariances => "covariances within each trial",
        WeightSource::Replicates => "the covariance of replicates",
        WeightSource::LeftOut => "nothing: left out",
    }
}

impl Comparison {
    /// The comparison in words; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        for (size, c) in [("smaller", &self.smaller), ("larger", &self.larger)] {
            writeln!(text, "{size}: fit {} ({}), sum of squares {}", c.fit, c.parameters.join(", "), six_digits(c.sum_of_squares))?;
        }
        let restriction: Vec<String> = self.restriction.iter().map(|r| format!("{} = {}", r.parameter, r.value)).collect();
        writeln!(text, "the larger structure is the smaller one where {}", restriction.join(", "))?;
        let t = &self.test;
        let rule = if self.dof_rule == DofRule::Intercept { ", one more for an intercept" } else { "" };
        writeln!(
            text,
            "{} = {}{rule}; critical value {} at {} %; p = {}",
            t.name(),
            four_digits(t.f),
            four_digits(t.critical_value),
            percent(self.confidence),
            four_digits(t.p_value)
        )?;
        let verdict = match t.preferred {
            Preferred::Smaller => "the data do not ask for what the larger structure adds",
            Preferred::Larger => "the larger structure explains more than chance would",
        };
        writeln!(text, "preferred: fit {} ({verdict})", self.preferred_fit)?;
        self.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))
    }
}
