//! A family of rival structures on the same trials: all fitted, the nested ones tested, all ranked, the simplest that explains the
//! trials proposed.
//!
//! ```text
//! Δ_i = AICc_i - min AICc        w_i = exp(-Δ_i / 2) / Σ exp(-Δ_j / 2)
//! ```
//!
//! `w` are Akaike's weights: the evidence for a structure among those of the family (K. Burnham and D. Anderson, Model Selection and
//! Multimodel Inference, 2nd ed. (2002), sections 2.6 and 2.9). AIC stands in where a structure has too many parameters for AICc.
//!
//! The error of leaving a trial out is that of each measure relative to its size, root mean square over the measures, so that structures compare whatever
//! weights they were fitted with.
//!
//! **Which is proposed.** Of the structures that converged, those remain that
//!
//! 1. no structure that contains them explains the trials better than chance would (F-test, Bonferroni over those structures),
//! 2. have a Δ of at most 2 (a difference that Burnham and Anderson call no evidence against a structure),
//! 3. do not miss replicates by more than their error, where trials repeat and any structure of the family meets that.
//!
//! The one with the fewest parameters is proposed, of several the one with the smallest Δ. Where none remains the smallest Δ decides.

use std::{cmp::Ordering, ops::ControlFlow};

use serde::{Deserialize, Serialize};

use super::compare::{CompareError, CompareOptions, Comparison, compare_with, embed, nesting};
use crate::{
    fit::{
        correction::simulated_apart,
        problem::Problem,
        report::Fit,
        search::{
            run::{FitError, Progress, fit_as_asked},
            solver::SolveFn,
        },
    },
    solve,
};

/// Difference of AICc that is no evidence against a structure.
const NO_EVIDENCE: f64 = 2.0;

/// Relative excess of minus twice the log-likelihood that calls for another search.
const EXCESS: f64 = 1e-9;

/// One of several structures to be fitted to the same trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival {
    /// Its name in the report; unique.
    pub name: String,
    /// What is fitted.
    pub problem: Problem,
}

/// What structures are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// Akaike's criterion for few measured values.
    Aicc,
    /// Akaike's criterion, because one structure leaves too few degrees of freedom for the other.
    Aic,
}

/// A family of structures, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Level of the tests.
    pub confidence: f64,
    /// What the members are ranked by.
    pub criterion: Criterion,
    /// Its members, best first; those that cannot be ranked last.
    pub members: Vec<Member>,
    /// Tests of all pairs that are nested.
    pub tests: Vec<NestedTest>,
    /// Pairs that are not nested, or could not be tested.
    pub untested: Vec<UntestedPair>,
    /// The simplest structure that explains the trials.
    pub proposed: Option<Proposal>,
    /// Structures that could not be fitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedRival>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A structure among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its estimated parameters.
    pub parameters: Vec<String>,
    /// Whether its fit found a minimum.
    pub converged: bool,
    /// Its weighted sum of squares, under its own weights.
    pub sum_of_squares: f64,
    /// Its degrees of freedom.
    pub degrees_of_freedom: usize,
    /// Akaike's criterion; absent without a likelihood, as where a model fits exactly.
    pub aic: Option<f64>,
    /// The same for few measured values.
    pub aicc: Option<f64>,
    /// Schwarz' criterion.
    pub bic: Option<f64>,
    /// Its criterion less the smallest of the family.
    pub delta: Option<f64>,
    /// Akaike's weight, 0 to 1.
    pub weight: Option<f64>,
    /// Root mean square error of predicting each trial from the others, relative to the size of each measure; absent where that was not computed.
    pub leave_one_out_error: Option<f64>,
    /// Probability of as much misfit against replicates for a right model; absent where no trial repeats.
    pub lack_of_fit_p_value: Option<f64>,
    /// Whether it explains the trials by the rules of the family.
    pub explains: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// The test of a nested pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NestedTest {
    /// The structure with fewer parameters.
    pub smaller: String,
    /// The one that contains it.
    pub larger: String,
    /// The test.
    pub comparison: Comparison,
}

/// A pair without a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UntestedPair {
    /// One structure.
    pub first: String,
    /// The other.
    pub second: String,
    /// Why there is no test.
    pub reason: String,
}

/// The structure that is proposed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its name.
    pub name: String,
    /// The rule by which it was chosen, in words.
    pub rule: String,
    /// How the rule applies here, in words.
    pub reason: String,
}

/// A structure that could not be fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedRival {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The rule of the proposal, in words.
pub const RULE: &str = "the fewest parameters among the structures that no structure containing them beats by the F-test (Bonferroni), whose criterion is within 2 \
                        of the best, and whose misfit is no more than replicates differ";

/// Why a family cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// Fewer than two structures.
    #[error("a family has at least two structures, not {0}")]
    TooFew(usize),
    /// Two structures of one name.
    #[error("two structures are named \"{0}\"")]
    SameName(String),
    /// Other trials.
    #[error("\"{name}\" is fitted to other trials than \"{first}\"")]
    DifferentTrials {
        /// The structure.
        name: String,
        /// The first of the family.
        first: String,
    },
    /// Other weights, loss or knowledge of errors.
    #[error("\"{name}\" is weighed otherwise than \"{first}\": fit all with the same weighting, loss and errors")]
    DifferentWeighting {
        /// The structure.
        name: String,
        /// The first of the family.
        first: String,
    },
    /// One corrected for the solver's error, the other not.
    #[error("of \"{name}\" and \"{first}\" one is corrected for the solver's error, the other is not: correct all or none")]
    DifferentCorrection {
        /// The structure.
        name: String,
        /// The first of the family.
        first: String,
    },
    /// No structure could be fitted.
    #[error("no structure of the family could be fitted")]
    NoneFitted,
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// A family with its fits, in the order in which they were given.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedFamily {
    /// Names and fits.
    pub fits: Vec<(String, Fit)>,
    /// The comparison.
    pub family: Family,
}

/// Fits all `rivals` to their trials, each trial being left out in turn, corrected for the solver's error where that is asked, and compares
/// them. A structure that ends above one that it contains is fitted again from that one's solution.
///
/// # Errors
/// [`FamilyError`]; a structure that cannot be fitted is not an error but said in the result.
pub fn fit_family(
    rivals: &[Rival],
    options: &CompareOptions,
    progress: &mut dyn FnMut(&str, &Progress) -> ControlFlow<()>,
) -> Result<FittedFamily, FamilyError> {
    fit_family_with(rivals, options, &solve::sensitivities, progress)
}

/// As [`fit_family`], with another solver.
///
/// # Errors
/// As [`fit_family`].
pub fn fit_family_with(
    rivals: &[Rival],
    options: &CompareOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&str, &Progress) -> ControlFlow<()>,
) -> Result<FittedFamily, FamilyError> {
    check_alike(&rivals.iter().map(|r| (r.name.as_str(), &r.problem)).collect::<Vec<_>>())?;
    let mut order: Vec<usize> = (0..rivals.len()).collect();
    order.sort_by_key(|&i| rivals[i].problem.estimate.len());
    let mut fits: Vec<Option<Fit>> = vec![None; rivals.len()];
    let mut failed = Vec::new();
    for i in order {
        let Rival { name, problem } = &rivals[i];
        let mut problem = problem.clone();
        problem.method.leave_one_trial_out = true;
        let mut report = |p: &Progress| progress(name, p);
        match fit_as_asked(&problem, &options.fit, solver, &mut report) {
            Ok(fit) => {
                let smaller: Vec<&Fit> = fits.iter().flatten().collect();
                let fit = from_smaller(fit, &smaller, options, solver, &mut report)?;
                fits[i] = Some(fit);
            }
            Err(FitError::Cancelled) => return Err(FamilyError::Cancelled),
            Err(error) => failed.push(FailedRival { name: name.clone(), reason: in_words(&error) }),
        }
    }
    let fits: Vec<(String, Fit)> = rivals.iter().zip(fits).filter_map(|(rival, fit)| Some((rival.name.clone(), fit?))).collect();
    if fits.is_empty() {
        return Err(FamilyError::NoneFitted);
    }
    let members: Vec<(&str, &Fit)> = fits.iter().map(|(name, fit)| (name.as_str(), fit)).collect();
    let mut family = ranked(&members, options, solver, &|| true)?;
    family.failed = failed;
    Ok(FittedFamily { fits, family })
}

/// Compares fits of a family, named.
///
/// # Errors
/// [`FamilyError`].
pub fn compare_family(members: &[(&str, &Fit)], options: &CompareOptions) -> Result<Family, FamilyError> {
    compare_family_while(members, options, &solve::sensitivities, &|| true)
}

/// As [`compare_family`], with another solver, as long as `keep` says so: it is asked between two pairs.
///
/// # Errors
/// As [`compare_family`], and [`FamilyError::Cancelled`].
pub fn compare_family_while(
    members: &[(&str, &Fit)],
    options: &CompareOptions,
    solver: &SolveFn<'_>,
    keep: &dyn Fn() -> bool,
) -> Result<Family, FamilyError> {
    check_alike(&members.iter().map(|(name, fit)| (*name, &fit.problem)).collect::<Vec<_>>())?;
    ranked(members, options, solver, keep)
}

fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |e| e.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn check_alike(members: &[(&str, &Problem)]) -> Result<(), FamilyError> {
    let [(first, one), others @ ..] = members else { return Err(FamilyError::TooFew(0)) };
    if others.is_empty() {
        return Err(FamilyError::TooFew(1));
    }
    for (i, (name, problem)) in others.iter().enumerate() {
        let names = || (name.to_string(), first.to_string());
        if members[..=i].iter().any(|(earlier, _)| earlier == name) {
            return Err(FamilyError::SameName(name.to_string()));
        }
        if problem.trials != one.trials {
            let (name, first) = names();
            return Err(FamilyError::DifferentTrials { name, first });
        }
        let how = |p: &Problem| (p.weighting, p.method.loss, p.method.error_scale);
        if how(problem) != how(one) {
            let (name, first) = names();
            return Err(FamilyError::DifferentWeighting { name, first });
        }
        if problem.method.correct_solver.is_some() != one.method.correct_solver.is_some() {
            let (name, first) = names();
            return Err(FamilyError::DifferentCorrection { name, first });
        }
    }
    Ok(())
}

/// `fit`, or a better one from the solution of a smaller structure that it contains and yet explains less than.
fn from_smaller(
    fit: Fit,
    smaller: &[&Fit],
    options: &CompareOptions,
    solver: &SolveFn<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, FamilyError> {
    let mut best = fit;
    for small in smaller.iter().filter(|s| s.converged) {
        let surprise = |f: &Fit| f.information.map(|i| -2.0 * i.log_likelihood);
        let worse = match (surprise(&best), surprise(small)) {
            (Some(large), Some(small)) => large > small + EXCESS * small.abs(),
            _ => !best.converged,
        };
        if !worse {
            continue;
        }
        let Ok(restriction) = nesting(small, &best, options, solver) else { continue };
        let x: Vec<f64> = small.estimates().map(|(_, v)| v).collect();
        let start = embed(small, &best, &x, |name| restriction.iter().find(|r| r.parameter == name).map(|r| r.value));
        let mut problem = best.problem.clone();
        problem.estimate.iter_mut().zip(start).for_each(|(e, s)| e.start = Some(s));
        match fit_as_asked(&problem, &options.fit, solver, progress) {
            Ok(again) if again.converged && (!best.converged || surprise(&again) < surprise(&best)) => best = again,
            Err(FitError::Cancelled) => return Err(FamilyError::Cancelled),
            _ => {}
        }
    }
    Ok(best)
}

fn ranked(
    members: &[(&str, &Fit)],
    options: &CompareOptions,
    solver: &SolveFn<'_>,
    keep: &dyn Fn() -> bool,
) -> Result<Family, FamilyError> {
    let confidence = members.iter().map(|(_, f)| f.problem.confidence).fold(0.0, f64::max);
    let (tests, untested) = pairs(members, options, solver, keep)?;
    let complete = members.iter().filter_map(|(_, f)| f.information).all(|i| i.aicc.is_some());
    let criterion = if complete { Criterion::Aicc } else { Criterion::Aic };
    let mut family = Family {
        confidence,
        criterion,
        members: members.iter().map(|(name, fit)| member(name, fit)).collect(),
        tests,
        untested,
        proposed: None,
        failed: Vec::new(),
        notes: Vec::new(),
    };
    family.weigh();
    family.judge();
    family.members.sort_by(|a, b| a.order(b));
    family.proposed = family.proposal();
    family.notes = family.remarks();
    family.notes.extend(simulated_apart(members));
    Ok(family)
}

type Pairs = (Vec<NestedTest>, Vec<UntestedPair>);

fn pairs(members: &[(&str, &Fit)], options: &CompareOptions, solver: &SolveFn<'_>, keep: &dyn Fn() -> bool) -> Result<Pairs, FamilyError> {
    let (mut tests, mut untested) = (Vec::new(), Vec::new());
    for (i, (first, a)) in members.iter().enumerate() {
        for (second, b) in &members[i + 1..] {
            if !keep() {
                return Err(FamilyError::Cancelled);
            }
            match compare_with(a, b, options, solver) {
                Ok(comparison) => {
                    let (smaller, larger) = if comparison.smaller.fit == 1 { (first, second) } else { (second, first) };
                    tests.push(NestedTest { smaller: smaller.to_string(), larger: larger.to_string(), comparison });
                }
                Err(error) => {
                    let reason = match &error {
                        CompareError::NotNested { reason } => format!("not nested: {reason}"),
                        other => in_words(other),
                    };
                    untested.push(UntestedPair { first: first.to_string(), second: second.to_string(), reason });
                }
            }
        }
    }
    Ok((tests, untested))
}

fn member(name: &str, fit: &Fit) -> Member {
    Member {
        name: name.to_owned(),
        parameters: fit.parameters.keys().cloned().collect(),
        converged: fit.converged,
        sum_of_squares: fit.sum_of_squares,
        degrees_of_freedom: fit.degrees_of_freedom,
        aic: fit.information.map(|i| i.aic),
        aicc: fit.information.and_then(|i| i.aicc),
        bic: fit.information.map(|i| i.bic),
        delta: None,
        weight: None,
        leave_one_out_error: leave_one_out_error(fit),
        lack_of_fit_p_value: fit.diagnosis.lack_of_fit.map(|l| l.p_value),
        explains: false,
        why_not: None,
    }
}

/// Root mean square over the measures of the relative errors of leaving a trial out.
pub fn leave_one_out_error(fit: &Fit) -> Option<f64> {
    let out = fit.diagnosis.leave_one_out.as_ref().filter(|o| o.failed.is_empty())?;
    let relative = out.rms_errors.iter().filter_map(|(measure, rms)| {
        let m = fit.weighting.measures.get(measure)?;
        let size = m.rms_residual / m.relative_residual.filter(|r| *r > 0.0)?;
        Some((rms / size).powi(2))
    });
    let (sum, n) = relative.fold((0.0, 0.0), |(sum, n), r| (sum + r, n + 1.0));
    (n > 0.0).then(|| (sum / n).sqrt())
}

impl Member {
    fn criterion(&self, criterion: Criterion) -> Option<f64> {
        if criterion == Criterion::Aicc { self.aicc } else { self.aic }
    }

    fn order(&self, other: &Self) -> Ordering {
        let key = |m: &Self| m.delta.unwrap_or(f64::INFINITY);
        key(self).total_cmp(&key(other)).then(self.sum_of_squares.total_cmp(&other.sum_of_squares))
    }

    fn misses_replicates(&self, confidence: f64) -> bool {
        self.lack_of_fit_p_value.is_some_and(|p| p < 1.0 - confidence)
    }
}

impl Family {
    fn weigh(&mut self) {
        let of = |m: &Member, criterion| m.criterion(criterion).filter(|_| m.converged);
        let least = self.members.iter().filter_map(|m| of(m, self.criterion)).fold(f64::INFINITY, f64::min);
        for m in &mut self.members {
            m.delta = of(m, self.criterion).map(|value| value - least);
        }
        let total: f64 = self.members.iter().filter_map(|m| m.delta).map(|d| (-0.5 * d).exp()).sum();
        for m in &mut self.members {
            m.weight = m.delta.map(|d| (-0.5 * d).exp() / total);
        }
    }

    /// Applies the rules to each member.
    fn judge(&mut self) {
        let all_miss = self.members.iter().all(|m| m.misses_replicates(self.confidence));
        let alpha = 1.0 - self.confidence;
        for m in &mut self.members {
            let containing: Vec<&NestedTest> = self.tests.iter().filter(|t| t.smaller == m.name).collect();
            let count = f64::from(u32::try_from(containing.len()).unwrap_or(u32::MAX));
            let best = containing.into_iter().min_by(|a, b| a.comparison.test.p_value.total_cmp(&b.comparison.test.p_value));
            m.why_not = if !m.converged {
                Some("its fit found no minimum".into())
            } else if let Some(t) = best.filter(|t| t.comparison.test.p_value * count < alpha) {
                let p = crate::fit::digits::four_digits(t.comparison.test.p_value * count);
                Some(format!("{} explains more than chance would (p = {p})", t.larger))
            } else if let Some(d) = m.delta.filter(|d| *d > NO_EVIDENCE) {
                Some(format!("its criterion is {} above the best", crate::fit::digits::four_digits(d)))
            } else if !all_miss && m.misses_replicates(self.confidence) {
                Some("it misses replicates by more than they differ".into())
            } else {
                None
            };
            m.explains = m.why_not.is_none();
        }
    }

    fn proposal(&self) -> Option<Proposal> {
        let simplest =
            self.members.iter().filter(|m| m.explains).min_by(|a, b| a.parameters.len().cmp(&b.parameters.len()).then(a.order(b)));
        let (name, reason) = match simplest {
            Some(m) => {
                let others = self.members.iter().filter(|o| o.explains && o.name != m.name).count();
                let among = match others {
                    0 => "it alone meets the rule".to_owned(),
                    _ => format!("{others} others meet it too, with no fewer parameters"),
                };
                (m.name.clone(), format!("{} parameters; {among}", m.parameters.len()))
            }
            None => {
                let best = self.members.iter().find(|m| m.converged)?;
                (best.name.clone(), "no structure meets the rule; this one has the smallest criterion".into())
            }
        };
        Some(Proposal { name, rule: RULE.to_owned(), reason })
    }

    fn remarks(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.members.iter().all(|m| m.misses_replicates(self.confidence)) {
            notes.push(
                "every structure misses replicates by more than they differ: none explains the trials to within their error".to_owned(),
            );
        }
        for m in self.members.iter().filter(|m| m.converged && m.aic.is_none()) {
            notes.push(format!("{} has no likelihood to rank by (an exact fit, or a loss that bounds outliers)", m.name));
        }
        if self.criterion == Criterion::Aic {
            notes.push("a structure leaves too few degrees of freedom for AICc: all are ranked by AIC, which favours parameters".into());
        }
        notes
    }
}
