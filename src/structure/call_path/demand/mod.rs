//! Resource demands from utilisation, throughput and response times, and their calibration (Brosig et al. 2011, II.B, II.C).
//!
//! Input: what was measured of a resource and of the actions that use it over an interval; output: the demand of each action, its
//! processing time without waiting, in seconds.
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | U, m | utilisation of one core of the resource, number of cores | |
//! | X_a, R_a, D_a | throughput, mean response (self) time and demand of action a | 1/s, s, s |
//! | κ | factor that takes the overhead of monitoring out of a demand | |
//! | δ(load) | time to establish a connection | s |
//!
//! | rule | equation | used when |
//! |---|---|---|
//! | low load | D_a = R_a | U < 0.2 |
//! | service demand law | D = U m / X | one action uses the resource |
//! | weighted response-time ratios | D_a = m U R_a / Σ_b X_b R_b, so that Σ X_a D_a = m U | else |
//! | regression | min ‖m U − X D‖², D ≥ 0, over intervals | two intervals or more, at least as many as actions, tell the demands apart |
//! | overhead | κ = (U₀/X₀) / (U₁/X₁), 0 without and 1 with monitoring; D ← κ D | both runs were made |
//! | connection delay | R_o ← R_o + n_conn(o) δ(load), δ interpolated linearly, constant outside of what was measured | |
//!
//! The other rules take the means over the intervals that were measured.
//!
//! The paper cites these rules; the formulas of the ratios, of κ and of δ, and the threshold 0.2 are ours. With two resources
//! (an application's CPU and that of its database) the ratios are taken for each, with its own U, and R_a the time in database
//! calls, and the self time without it; where that time is not visible the same R_a serves for both.

mod estimate;
mod nnls;

pub use estimate::estimate;
pub use nnls::{Nnls, nnls};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::options::CallPathOptionError;

/// Below this utilisation, response times are demands.
pub const LOW_LOAD: f64 = 0.2;

/// Mean response times are demands, where hardly anything waits.
pub fn low_load(response_times_s: &[f64]) -> Vec<f64> {
    response_times_s.to_vec()
}

/// Service demand law: D = U m / X; `None` where the throughput is not above 0.
pub fn service_demand_law(utilization: f64, cores: f64, throughput_per_s: f64) -> Option<f64> {
    (throughput_per_s > 0.0).then(|| utilization * cores / throughput_per_s)
}

/// Weighted response-time ratios: D_a = m U R_a / Σ_b X_b R_b; `None` where that sum is not above 0.
pub fn weighted_response_times(utilization: f64, cores: f64, throughputs_per_s: &[f64], response_times_s: &[f64]) -> Option<Vec<f64>> {
    let busy: f64 = throughputs_per_s.iter().zip(response_times_s).map(|(x, r)| x * r).sum();
    (busy > 0.0).then(|| response_times_s.iter().map(|r| cores * utilization * r / busy).collect())
}

/// The overhead factor κ = (U₀/X₀) / (U₁/X₁), 0 without and 1 with monitoring; `None` where it is not a number above 0.
pub fn overhead_factor(without: (f64, f64), with: (f64, f64)) -> Option<f64> {
    let factor = (without.0 / without.1) / (with.0 / with.1);
    (factor.is_finite() && factor > 0.0).then_some(factor)
}

/// Time to establish a connection, by load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionDelay {
    /// Samples (load, seconds), in any order.
    pub samples: Vec<(f64, f64)>,
}

impl ConnectionDelay {
    /// δ(load) in seconds: linear between samples, those of equal load averaged, constant outside; 0 without samples.
    pub fn at(&self, load: f64) -> f64 {
        let mut samples: Vec<(f64, f64, f64)> = Vec::new();
        let mut sorted = self.samples.clone();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, delay) in sorted {
            match samples.last_mut() {
                Some((known, sum, n)) if *known == at => (*sum, *n) = (*sum + delay, *n + 1.0),
                _ => samples.push((at, delay, 1.0)),
            }
        }
        let after = samples.partition_point(|(at, ..)| *at < load);
        let delay = |index: usize| samples.get(index).map(|(at, sum, n)| (*at, sum / n));
        match (after.checked_sub(1).and_then(delay), delay(after)) {
            (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (load - x0) / (x1 - x0),
            (Some((_, only)), None) | (None, Some((_, only))) => only,
            (None, None) => 0.0,
        }
    }

    /// A response time with the delays of its connections.
    pub fn added_to(&self, response_time_s: f64, n_connections: f64, load: f64) -> f64 {
        response_time_s + n_connections * self.at(load)
    }
}

/// What was measured of a resource over one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Mean utilisation of one core, in 0..1.
    pub utilization: f64,
    /// Throughput of each action (service `COMPONENT.METHOD`), 1/s; those not named are not known.
    #[serde(default)]
    pub throughputs_per_s: IndexMap<String, f64>,
}

/// A resource, and what uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// Number of cores.
    #[serde(default = "one")]
    pub cores: f64,
    /// Server that it is of, as the records name it; `None` for one that all share that use it, wherever they run.
    #[serde(default)]
    pub server: Option<String>,
    /// Components, or processes (`SERVER::COMPONENT`), that use it; empty for all.
    #[serde(default)]
    pub components: Vec<String>,
    /// Intervals that were measured.
    pub intervals: Vec<Interval>,
    /// Response times of actions on this resource, seconds, in place of self times: as time in database calls.
    #[serde(default)]
    pub response_times_s: IndexMap<String, f64>,
    /// Utilisation and throughput without, and with monitoring, for κ.
    #[serde(default)]
    pub overhead: Option<[(f64, f64); 2]>,
}

fn one() -> f64 {
    1.0
}

impl Resource {
    /// Whether an action uses it: by the names of its component or process, and by its server.
    pub fn is_used_by(&self, action: &ObservedAction) -> bool {
        let named = |name: &String| *name == action.component || *name == action.process;
        let is_there = self.server.is_none() || self.server == action.server;
        is_there && (self.components.is_empty() || self.components.iter().any(named))
    }

    /// Checks that numbers are those of a resource. (Utilisations outside of 0 to 1 are left out and told.)
    ///
    /// # Errors
    /// [`CallPathOptionError`] for a throughput or time that is negative or no number, or cores that are not above 0.
    pub fn check(&self) -> Result<(), CallPathOptionError> {
        let error = |what: &str, found: f64, expected| {
            Err(CallPathOptionError { option: "a resource", found: format!("{}: {what} {found}", self.name), expected })
        };
        let is_bad = |number: &f64| !(number.is_finite() && *number >= 0.0);
        if !(self.cores.is_finite() && self.cores > 0.0) {
            return error("cores", self.cores, "cores above 0");
        }
        let throughputs = self.intervals.iter().flat_map(|interval| interval.throughputs_per_s.values());
        if let Some(bad) = throughputs.copied().find(is_bad) {
            return error("throughput", bad, "throughputs of 0 or more");
        }
        match self.response_times_s.values().copied().find(is_bad) {
            Some(bad) => error("response time", bad, "response times of 0 or more"),
            None => Ok(()),
        }
    }
}

/// The actions of `observed` as `resources[at]` sees them: their self times without the times that the other resources they use say they
/// spend there, at least 0.
pub fn without_others(at: usize, resources: &[Resource], observed: &[ObservedAction]) -> Vec<ObservedAction> {
    let others = || resources.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
    let elsewhere_s = |action: &ObservedAction| -> f64 {
        others().filter(|other| other.is_used_by(action)).filter_map(|other| other.response_times_s.get(&action.name)).sum()
    };
    let less =
        |action: &ObservedAction| ObservedAction { self_time_s: (action.self_time_s - elsewhere_s(action)).max(0.0), ..action.clone() };
    observed.iter().map(less).collect()
}

/// The rule that a demand was estimated by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The response time, at low load.
    LowLoad,
    /// The service demand law.
    ServiceDemandLaw,
    /// Weighted response-time ratios.
    ResponseTimeRatios,
    /// Regression over intervals.
    Regression,
}

/// The demand of an action at a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemandEstimate {
    /// The resource.
    pub resource: String,
    /// The action: a service, `COMPONENT.METHOD`.
    pub action: String,
    /// The processes (component instances) whose demand it is.
    #[serde(default)]
    pub processes: Vec<String>,
    /// Seconds, corrected for the overhead where that is known.
    pub demand_s: f64,
    /// How it was estimated.
    pub rule: Rule,
    /// κ, where it is known.
    pub overhead_factor: Option<f64>,
}

/// An action of one process as the records show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedAction {
    /// Name, `COMPONENT.METHOD`.
    pub name: String,
    /// Its component.
    pub component: String,
    /// The process (component instance): `SERVER::COMPONENT`, or the component where no server is known.
    pub process: String,
    /// The server, where it is known.
    pub server: Option<String>,
    /// Mean self time of the service, wherever it runs, seconds.
    pub self_time_s: f64,
    /// Throughput in this process, 1/s.
    pub throughput_per_s: f64,
}

#[cfg(test)]
mod tests;
