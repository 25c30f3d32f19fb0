//! The result of a comparison with black boxes.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::model::Measure;

/// The model beside black boxes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baselines {
    /// The controlled value that the curves are drawn against, without `$`.
    pub load: String,
    /// Level of intervals and bands, in (0, 1).
    pub confidence: f64,
    /// Largest load that the extrapolations were fitted to; absent where none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted_up_to: Option<f64>,
    /// Trials held out from the extrapolations.
    pub held_out: Vec<String>,
    /// By measure.
    pub measures: IndexMap<Measure, MeasureBaselines>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The methods on one measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureBaselines {
    /// The methods, the model first.
    pub methods: Vec<MethodScore>,
    /// Measured values.
    pub points: Vec<MeasuredPoint>,
    /// Values by method over the loads, from the fits without the trials held out (of all trials where none is).
    pub curves: IndexMap<BaselineMethod, Vec<CurvePoint>>,
    /// The polynomial of all trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polynomial: Option<PolynomialReport>,
    /// The polynomial of the trials that are not held out, of a degree of its own: the one that is extrapolated and drawn. Absent where none is held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extrapolated_polynomial: Option<PolynomialReport>,
    /// The scalability law of all trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalability: Option<ScalabilityReport>,
}

/// Who predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineMethod {
    /// The fitted model.
    Model,
    /// A polynomial in the load.
    Polynomial,
    /// The Universal Scalability Law.
    ScalabilityLaw,
}

impl BaselineMethod {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Polynomial => "polynomial",
            Self::ScalabilityLaw => "scalability law",
        }
    }
}

/// How far off a method is, in the units of the measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodScore {
    /// The method.
    pub method: BaselineMethod,
    /// Its parameters: the model's for all measures together, a curve's for this one alone and all trials.
    pub n_parameters: usize,
    /// Root mean square error on the trials that it was fitted to.
    pub rms_error: f64,
    /// The same for each trial predicted from the others; absent where one of the fits fails.
    pub leave_one_out_rms_error: Option<f64>,
    /// On the trials of the highest load, fitted to the others; absent where none is held out or the fit fails.
    pub extrapolation: Option<Extrapolation>,
}

/// How far off an extrapolation is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extrapolation {
    /// Values held out.
    pub n: usize,
    /// Root mean square error.
    pub rms_error: f64,
    /// The same relative to the root mean square of the values held out.
    pub relative_error: f64,
    /// Values inside the band of a new measurement; absent where there are no bands.
    pub covered: Option<usize>,
    /// Mean half-width of those bands, before they are ended at what can be measured.
    pub mean_half_width: Option<f64>,
}

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredPoint {
    /// Load.
    pub load: f64,
    /// Value.
    pub value: f64,
    /// Whether it was held out.
    pub held_out: bool,
}

/// One value of a curve with its band of a new measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Load.
    pub load: f64,
    /// Value.
    pub mean: f64,
    /// Lower end of the band.
    pub new_lower: Option<f64>,
    /// Upper end.
    pub new_upper: Option<f64>,
}

/// A polynomial `Σ c_k ((N - centre) / half_range)^k`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolynomialReport {
    /// Coefficients, from the constant up, in the units of the measure.
    pub coefficients: Vec<IntervalEstimate>,
    /// Middle of the loads.
    pub centre: f64,
    /// Half their range.
    pub half_range: f64,
    /// AICc; absent with few values, where the degree was chosen without it, and at an exact fit.
    pub aicc: Option<f64>,
}

impl PolynomialReport {
    /// Its degree.
    pub fn degree(&self) -> usize {
        self.coefficients.len().saturating_sub(1)
    }
}

/// The Universal Scalability Law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalabilityReport {
    /// Throughput of a load of one.
    pub lambda: IntervalEstimate,
    /// Contention.
    pub sigma: IntervalEstimate,
    /// Coherency.
    pub kappa: IntervalEstimate,
    /// Load at which the throughput is largest; absent where it never falls.
    pub peak_load: Option<f64>,
    /// AICc.
    pub aicc: Option<f64>,
}

/// An estimate with its interval; absent at a bound or where it is not determined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalEstimate {
    /// The estimate.
    pub estimate: f64,
    /// Standard error.
    pub std_error: Option<f64>,
    /// Lower end.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
}
