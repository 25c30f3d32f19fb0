//! Reference tasks: what nothing requests becomes the cycle of customers.
//!
//! Input: what nothing requests (originators), as classes of a summary; output: for each reference task the mean requests
//! of one cycle.
//!
//! - One scenario and no usage profile: each task with originators is a class of customers, and one cycle is one
//!   originator: y(d) = Σₒ wₒ n(o, d) / Σₒ wₒ over the originators of the task.
//! - Several scenarios, or a profile: one Client makes all initial requests. One cycle is one run of one scenario, which
//!   is s with probability pₛ = Wₛ / Σ W, and a recording is a run: y(d) = Σₛ pₛ / rₛ · Σₒ wₒ n(o, d) over the originators
//!   o in the recordings of s, which stand for rₛ runs. The weights W are the profile's; without one Wₛ = rₛ.
//!
//! A reference task has one entry, as customers with several are not solved alike by the tools.

mod sessions;

use indexmap::IndexMap;

pub use sessions::of_sessions;

use super::{
    ExtractOptions, OptionError,
    entries::{ArcKind, Merged, MergedArc},
    interactions::{Evidence, OpenAtOnce, ProcessHints, SeenLoad, Workload},
    summary::{Label, Start, Summary},
};

/// A class of customers.
#[derive(Clone, Debug, PartialEq)]
pub struct Customers {
    /// The task that its originators are of; `None` for the Client of all scenarios.
    pub task: Option<u32>,
    /// The class of behaviour that its mix and think time are of, empty of the only one; `None` of recordings.
    pub class: Option<String>,
    /// Number of originators.
    pub n_occurrences: u64,
    /// The first of them.
    pub first: Label,
    /// Most units that were originators in one recording.
    pub n_units: u64,
    /// Requests of one cycle; targets are indices into [`Merged::entries`].
    pub arcs: Vec<MergedArc>,
    /// Mean self time of one cycle in ticks, where it is known.
    pub self_time_ticks: Option<f64>,
    /// The workload, where the traces or the user say it.
    pub workload: Option<Workload>,
    /// What was seen of the load that they make.
    pub seen: Option<SeenLoad>,
    /// The requests that their number is concluded from, where that is how many were open at once.
    pub open_at_once: Option<OpenAtOnce>,
}

/// A scenario of the usage profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioShare {
    /// Number of its recordings.
    pub n_traces: u64,
    /// The recordings that these stand for.
    pub weight: f64,
    /// Probability that a run is of this scenario.
    pub probability: f64,
}

/// The share of each scenario, in order of the summary's scenarios.
///
/// # Errors
/// [`OptionError`] where the profile names a scenario that was not recorded, or leaves one out that was.
pub fn scenario_shares(summary: &Summary, options: &ExtractOptions) -> Result<Vec<ScenarioShare>, OptionError> {
    let profile = &options.usage_profile;
    let recorded = || summary.scenarios.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = profile.keys().find(|name| summary.scenarios.get(name).is_none()) {
        return Err(OptionError {
            option: format!("scenario \"{unknown}\" of the usage profile"),
            found: format!("not among those recorded ({})", recorded()),
            expected: "the name of a recorded scenario",
        });
    }
    let weights: Vec<f64> = match summary.scenarios.iter().find(|name| !profile.contains_key(*name)) {
        Some(_) if profile.is_empty() => summary.traces_weight.clone(),
        Some(left_out) => {
            return Err(OptionError {
                option: format!("the weight of scenario \"{left_out}\" in the usage profile"),
                found: "missing".to_owned(),
                expected: "a weight for every recorded scenario",
            });
        }
        None => summary.scenarios.iter().map(|name| profile[name]).collect(),
    };
    // They count by their ratios: those that are too great for a sum are made smaller.
    let unit = if weights.iter().sum::<f64>().is_finite() { 1.0 } else { weights.len() as f64 };
    let total: f64 = weights.iter().map(|weight| weight / unit).sum();
    let shares = summary.n_traces.iter().zip(&summary.traces_weight).zip(weights);
    Ok(shares
        .map(|((n, weight), of_profile)| ScenarioShare {
            n_traces: *n,
            weight: *weight,
            probability: if total > 0.0 { of_profile / unit / total } else { 0.0 },
        })
        .collect())
}

/// The factor of each scenario in means, shape `(n_scenarios,)`: 1 without a profile, else pₛ / rₛ.
pub fn factors(shares: &[ScenarioShare], options: &ExtractOptions) -> Vec<f64> {
    let each = if options.usage_profile.is_empty() { vec![1.0; shares.len()] } else { per_recording(shares) };
    debug_assert!(each.iter().all(|factor| factor.is_finite()));
    each
}

/// What a recording of each scenario counts in the mean of a run, pₛ / rₛ. Of one that was only seen in late parts of recordings, which
/// stand for none themselves, as much as of any other.
fn per_recording(shares: &[ScenarioShare]) -> Vec<f64> {
    let all: f64 = shares.iter().map(|share| share.weight).sum();
    let any = if all > 0.0 { all.recip() } else { 0.0 };
    shares.iter().map(|share| if share.weight > 0.0 { share.probability / share.weight } else { any }).collect()
}

/// The reference tasks, by their first originator.
pub fn customers(summary: &Summary, merged: &Merged, shares: &[ScenarioShare], options: &ExtractOptions) -> Vec<Customers> {
    let combined = shares.len() > 1 || !options.usage_profile.is_empty();
    let factors = if combined { per_recording(shares) } else { vec![1.0; shares.len()] };
    let mut classes: IndexMap<Option<u32>, Vec<Start>> = IndexMap::new();
    for start in summary.starts(&factors, merged) {
        classes.entry((!combined).then_some(start.task)).or_default().push(start);
    }
    classes.into_iter().map(|(task, starts)| of_class(task, &starts, summary, merged)).collect()
}

fn of_class(task: Option<u32>, starts: &[Start], summary: &Summary, merged: &Merged) -> Customers {
    let n_cycles = if task.is_some() { starts.iter().map(|start| start.weight).sum() } else { 1.0 };
    let mut sums: IndexMap<(ArcKind, u8, usize), f64> = IndexMap::new();
    let mut self_time: Option<f64> = None;
    for start in starts {
        if let Some(ticks) = start.self_time_ticks {
            self_time = Some(self_time.unwrap_or(0.0) + ticks / n_cycles);
        }
        for (request, sum) in &start.requests {
            *sums.entry(*request).or_insert(0.0) += sum;
        }
    }
    // Where all cycles are of one entry, how often each makes what requests is known.
    let only: &[MergedArc] = if let (Some(_), [start]) = (task, starts) { &merged.entries[start.entry].arcs } else { &[] };
    let arc = |((kind, phase, target), sum): (_, f64)| {
        let of_entry = only.iter().find(|arc| (arc.kind, arc.phase, arc.target) == (kind, phase, target));
        MergedArc { kind, phase, target, mean: sum / n_cycles, counts: of_entry.map_or_else(Vec::new, |arc| arc.counts.clone()) }
    };
    let mut arcs: Vec<MergedArc> = sums.into_iter().map(arc).collect();
    arcs.sort_by_key(|arc| (arc.kind, arc.phase, arc.target));
    Customers {
        task,
        class: None,
        n_occurrences: starts.iter().map(|start| start.n_occurrences).sum(),
        first: merged.entries[starts[0].entry].first,
        n_units: summary.most_starters(task),
        arcs,
        self_time_ticks: self_time,
        workload: joined_hints(starts, summary, |hints| hints.workload, joined),
        seen: joined_hints(starts, summary, |hints| hints.seen, joined_load),
        open_at_once: joined_hints(starts, summary, |hints| hints.open_at_once, |_, _| None),
    }
}

/// What hints say of the processes that start, joined; `None` where two do not go together.
fn joined_hints<T>(
    starts: &[Start],
    summary: &Summary,
    said: impl Fn(&ProcessHints) -> Option<T>,
    joined: impl Fn(T, T) -> Option<T>,
) -> Option<T> {
    let units = summary.units.process_of.iter().zip(&summary.tasks.of_unit);
    let mut processes: Vec<u32> =
        units.filter(|(_, task)| starts.iter().any(|start| start.task == **task)).map(|(process, _)| *process).collect();
    processes.sort_unstable();
    processes.dedup();
    let known = processes.iter().filter_map(|process| said(summary.hints.processes.get(summary.units.processes.name(*process))?));
    known.map(Some).reduce(|a, b| joined(a?, b?)).flatten()
}

/// Of several open workloads the sum of rates, of several closed ones all customers with the mean think time; of both kinds, nothing.
fn joined(a: Workload, b: Workload) -> Option<Workload> {
    match (a, b) {
        (Workload::Open { rate: a }, Workload::Open { rate: b }) => Some(Workload::Open { rate: a + b }),
        (Workload::Closed { customers: a, think_time: z }, Workload::Closed { customers: b, think_time: y }) => {
            Some(Workload::Closed { customers: a + b, think_time: (a * z + b * y) / (a + b) })
        }
        _ => None,
    }
}

/// All cycles a second; what differing evidence is of is random arrivals.
#[expect(clippy::unnecessary_wraps, reason = "as the other way of joining")]
fn joined_load(a: SeenLoad, b: SeenLoad) -> Option<SeenLoad> {
    let joined = |(a, b)| if a == b { a } else { Evidence::Arrivals };
    Some(SeenLoad { rate: a.rate + b.rate, evidence: a.evidence.zip(b.evidence).map(joined) })
}
