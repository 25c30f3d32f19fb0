//! The result of a design.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{candidate::Candidate, choose::Criterion};
use crate::model::{Bindings, Measure};

/// The search that found a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Search {
    /// All sets were tried.
    Exhaustive,
    /// Greedy starts, improved by exchanges.
    Exchange,
}

/// What to measure next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// What was to be small.
    pub criterion: Criterion,
    /// What a new trial measures.
    pub measures: Vec<Measure>,
    /// Level of the half-widths.
    pub confidence: f64,
    /// The trials to run, in the order of the candidates; empty where none were asked about.
    pub chosen: Vec<Chosen>,
    /// What they cost together, where costs are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost: Option<f64>,
    /// Factor on a typical half-width (D: geometric mean over all directions; A: root mean square; c: that of the prediction); absent
    /// where it does not exist yet.
    pub width_ratio: Option<f64>,
    /// Share of the best possible criterion that is reached at least: `det^(1/n)` for D, one over the variances for A and c.
    /// Absent where costs stand against no budget, or the information stays singular.
    pub efficiency: Option<f64>,
    /// How the set was found.
    pub search: Search,
    /// Directions in parameter space that are seen now, and will be, of how many.
    pub rank: RankChange,
    /// Combinations that are not seen now, in words.
    pub unidentified_now: Vec<String>,
    /// Combinations that the set would leave unseen.
    pub unidentified_after: Vec<String>,
    /// By parameter, before and after.
    pub parameters: IndexMap<String, WidthChange>,
    /// The prediction that was designed for, before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetReport>,
    /// What each candidate alone would bring, best first.
    pub candidates: Vec<RankedPoint>,
    /// What each measure that the trials do not have would bring at their operating points, best first.
    pub additional_measures: Vec<RankedMeasure>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A chosen operating point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The operating point.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// How many trials there.
    pub times: usize,
}

/// Ranks of the information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankChange {
    /// As it is.
    pub now: usize,
    /// With the chosen trials.
    pub after: usize,
    /// Number of free parameters.
    pub of: usize,
}

/// The interval of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WidthChange {
    /// Its estimate.
    pub estimate: f64,
    /// Half-width as it is; absent where it is not determined.
    pub half_width_now: Option<f64>,
    /// Half-width with the chosen trials.
    pub half_width_after: Option<f64>,
}

/// The interval of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// The measure.
    pub measure: Measure,
    /// The operating point.
    pub at: Bindings,
    /// Its predicted mean.
    pub value: f64,
    /// Half-width of the band of the mean as it is; absent where it is not determined.
    pub half_width_now: Option<f64>,
    /// Half-width with the chosen trials.
    pub half_width_after: Option<f64>,
}

/// What one trial at a candidate alone would bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankedPoint {
    /// The candidate.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// As [`Design::width_ratio`].
    pub width_ratio: Option<f64>,
    /// Rank of the information with it.
    pub rank: usize,
    /// Half-widths of the parameters with it.
    pub half_widths: IndexMap<String, Option<f64>>,
    /// Half-width of the prediction with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_half_width: Option<f64>,
    /// Why it cannot be judged: the model has no solution there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What one more measure at the operating points of the trials would bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankedMeasure {
    /// The measure.
    pub measure: Measure,
    /// As [`Design::width_ratio`].
    pub width_ratio: Option<f64>,
    /// Rank of the information with it.
    pub rank: usize,
    /// Half-widths of the parameters with it.
    pub half_widths: IndexMap<String, Option<f64>>,
    /// Half-width of the prediction with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_half_width: Option<f64>,
}
