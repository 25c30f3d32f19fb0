//! Reference tasks: what nothing requests becomes the cycle of customers.
//!
//! Input: merged entries and the occurrences that nothing requested (originators); output: for each reference task the
//! mean requests of one cycle.
//!
//! - One scenario and no usage profile: each task with originators is a class of customers, and one cycle is one
//!   originator: y(d) = Σₒ n(o, d) / (number of originators of the task).
//! - Several scenarios, or a profile: one Client makes all initial requests. One cycle is one run of one scenario, which
//!   is s with probability pₛ = wₛ / Σ w, and a trace is a run: y(d) = Σₛ pₛ / rₛ · Σₒ n(o, d) over the originators o in
//!   the rₛ traces of s. The weights w are the profile's; without one wₛ = rₛ.
//!
//! A reference task has one entry, as customers with several are not solved alike by the tools.

use indexmap::{IndexMap, IndexSet};

use super::{
    ExtractOptions, OptionError,
    interactions::{Interactions, Tasks},
    merge::{Accepts, ArcKind, Merged, MergedArc},
};

/// A class of customers.
#[derive(Clone, Debug, PartialEq)]
pub struct Customers {
    /// The task that its originators are of; `None` for the Client of all scenarios.
    pub task: Option<u32>,
    /// Number of originators.
    pub n_occurrences: u64,
    /// The first of them (index into [`Interactions::occurrences`]).
    pub first: usize,
    /// Most units that were originators in one trace.
    pub n_units: u64,
    /// Requests of one cycle; targets are indices into [`Merged::entries`].
    pub arcs: Vec<MergedArc>,
    /// Mean self time of one cycle in ticks, where it is known.
    pub self_time_ticks: Option<f64>,
}

/// A scenario of the usage profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioShare {
    /// Number of its traces.
    pub n_traces: u64,
    /// Probability that a run is of this scenario.
    pub probability: f64,
}

/// The share of each scenario, in order of [`Interactions::scenarios`].
///
/// # Errors
/// [`OptionError`] where the profile names a scenario that was not recorded, or leaves one out that was.
pub fn scenario_shares(interactions: &Interactions, options: &ExtractOptions) -> Result<Vec<ScenarioShare>, OptionError> {
    let profile = &options.usage_profile;
    let recorded = || interactions.scenarios.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = profile.keys().find(|name| interactions.scenarios.get(name).is_none()) {
        return Err(OptionError {
            option: format!("scenario \"{unknown}\" of the usage profile"),
            found: format!("not among those recorded ({})", recorded()),
            expected: "the name of a recorded scenario",
        });
    }
    let n_traces = interactions.traces_of_scenarios();
    let weights: Vec<f64> = match interactions.scenarios.iter().find(|name| !profile.contains_key(*name)) {
        Some(_) if profile.is_empty() => n_traces.iter().map(|n| *n as f64).collect(),
        Some(left_out) => {
            return Err(OptionError {
                option: format!("the weight of scenario \"{left_out}\" in the usage profile"),
                found: "missing".to_owned(),
                expected: "a weight for every recorded scenario",
            });
        }
        None => interactions.scenarios.iter().map(|name| profile[name]).collect(),
    };
    let total: f64 = weights.iter().sum();
    Ok(n_traces.into_iter().zip(weights).map(|(n_traces, weight)| ScenarioShare { n_traces, probability: weight / total }).collect())
}

/// How much each trace weighs in means, shape `(n_traces,)`: all alike without a profile, else pₛ / rₛ.
pub fn trace_weights(interactions: &Interactions, shares: &[ScenarioShare], options: &ExtractOptions) -> Vec<f64> {
    let weight = |scenario: u32| {
        let share = &shares[scenario as usize];
        if options.usage_profile.is_empty() { 1.0 } else { share.probability / share.n_traces as f64 }
    };
    interactions.traces.iter().map(|trace| weight(trace.scenario)).collect()
}

/// The reference tasks, by their first originator.
pub fn customers(
    interactions: &Interactions,
    tasks: &Tasks,
    merged: &Merged,
    shares: &[ScenarioShare],
    options: &ExtractOptions,
) -> Vec<Customers> {
    let combined = shares.len() > 1 || !options.usage_profile.is_empty();
    let mut classes: IndexMap<Option<u32>, Class> = IndexMap::new();
    for (index, occurrence) in interactions.occurrences.iter().enumerate() {
        let entry = &merged.entries[merged.entry_of[index]];
        if entry.accepts != Accepts::Nothing {
            continue;
        }
        let share = &shares[interactions.traces[occurrence.trace as usize].scenario as usize];
        let weight = if combined { share.probability / share.n_traces as f64 } else { 1.0 };
        let task = (!combined).then(|| tasks.of_unit[occurrence.unit as usize]);
        classes.entry(task).or_insert_with(|| Class::new(index)).members.push((index, weight));
    }
    let class = |(task, class): (Option<u32>, Class)| class.customers(task, interactions, merged, combined);
    classes.into_iter().map(class).collect()
}

struct Class {
    first: usize,
    /// Originators with their weight in a cycle, before division by the number of cycles.
    members: Vec<(usize, f64)>,
}

impl Class {
    fn new(first: usize) -> Self {
        Self { first, members: Vec::new() }
    }

    fn customers(self, task: Option<u32>, interactions: &Interactions, merged: &Merged, combined: bool) -> Customers {
        let n_cycles = if combined { 1.0 } else { self.members.len() as f64 };
        let mut sums: IndexMap<(ArcKind, u8, usize), f64> = IndexMap::new();
        let mut units: IndexMap<u32, IndexSet<u32>> = IndexMap::new();
        let mut self_time: Option<f64> = None;
        for (index, weight) in &self.members {
            let occurrence = &interactions.occurrences[*index];
            units.entry(occurrence.trace).or_default().insert(occurrence.unit);
            if let Some(ticks) = occurrence.self_time_ticks[0] {
                self_time = Some(self_time.unwrap_or(0.0) + weight * ticks / n_cycles);
            }
            for arc in &merged.entries[merged.entry_of[*index]].arcs {
                *sums.entry((arc.kind, arc.phase, arc.target)).or_insert(0.0) += weight * arc.mean;
            }
        }
        let mut arcs: Vec<MergedArc> =
            sums.into_iter().map(|((kind, phase, target), sum)| MergedArc { kind, phase, target, mean: sum / n_cycles }).collect();
        arcs.sort_by_key(|arc| (arc.kind, arc.phase, arc.target));
        Customers {
            task,
            n_occurrences: self.members.len() as u64,
            first: self.first,
            n_units: units.values().map(|units| units.len() as u64).max().unwrap_or(1),
            arcs,
            self_time_ticks: self_time,
        }
    }
}
