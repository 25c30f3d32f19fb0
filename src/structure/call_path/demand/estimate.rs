//! The demands at one resource, by the rule that fits what was measured.
//!
//! An action is of all processes that use the resource: its throughput is the sum of theirs, its response time their mean, weighted by
//! throughput. Intervals are used in an order of their own, so that nothing depends on the one in which they are given.

use indexmap::{IndexMap, IndexSet};
use nalgebra::DMatrix;

use super::{
    DemandEstimate, Interval, LOW_LOAD, ObservedAction, Resource, Rule, low_load, nnls, overhead_factor, service_demand_law,
    weighted_response_times,
};
use crate::trace::diagnostics::Diagnostics;

/// Smallest over largest singular value of throughputs (each over its maximum) from which demands can be told apart.
const TOLD_APART: f64 = 1e-9;

/// An action of all processes that use a resource.
struct Action<'o> {
    name: &'o str,
    processes: Vec<String>,
    /// On this resource, seconds.
    response_time_s: f64,
    /// In the records, 1/s.
    throughput_per_s: f64,
}

/// What was measured in one interval, or the mean of several.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    /// Mean utilisation of one core.
    utilization: f64,
    /// Of each action, 1/s.
    throughputs_per_s: Vec<f64>,
}

/// Estimates the demands of the actions that use `resource`, by the rule that fits.
pub fn estimate(resource: &Resource, observed: &[ObservedAction], diagnostics: &mut Diagnostics) -> Vec<DemandEstimate> {
    note_unknown(resource, observed, diagnostics);
    let actions = actions(resource, observed, diagnostics);
    let measured = measured(resource, &actions, diagnostics);
    if measured.is_empty() || actions.is_empty() {
        return Vec::new();
    }
    let (rule, demands) = demands(resource, &actions, &measured, diagnostics);
    if demands.is_none() {
        let message = "what uses a resource has no throughput, or takes no time: demands cannot be told";
        diagnostics.add("demands_not_known", message, || resource.name.clone());
    }
    let overhead_factor = resource.overhead.and_then(|[without, with]| overhead_factor(without, with));
    if overhead_factor.is_none() {
        let message = "demands hold the overhead of monitoring, as no run without it was measured";
        diagnostics.add("overhead_unknown", message, || resource.name.clone());
    }
    let mut estimates = Vec::new();
    for (action, demand) in actions.into_iter().zip(demands.unwrap_or_default()) {
        let demand_s = demand * overhead_factor.unwrap_or(1.0);
        if demand_s > action.response_time_s {
            diagnostics.add("D>R", "demands are above the response times of their actions", || {
                format!("{} at {}: {demand_s} s > {} s", action.name, resource.name, action.response_time_s)
            });
        }
        let (name, processes) = (action.name.to_owned(), action.processes);
        estimates.push(DemandEstimate { resource: resource.name.clone(), action: name, processes, demand_s, rule, overhead_factor });
    }
    estimates
}

/// The actions that use `resource`, in order of `observed`.
fn actions<'o>(resource: &Resource, observed: &'o [ObservedAction], diagnostics: &mut Diagnostics) -> Vec<Action<'o>> {
    let mut of_names: IndexMap<&str, Vec<&ObservedAction>> = IndexMap::new();
    for action in observed.iter().filter(|action| resource.is_used_by(action)) {
        of_names.entry(&action.name).or_default().push(action);
    }
    let servers: IndexSet<&String> = of_names.values().flatten().filter_map(|action| action.server.as_ref()).collect();
    if servers.len() > 1 {
        let message = "a resource of which no server is said is used on several: it is taken as one that all share, whose cores are those of no \
                       server. Name its server if it is that of one";
        diagnostics.add("resource_of_replicas", message, || {
            format!("{}: {}", resource.name, servers.iter().map(|server| server.as_str()).collect::<Vec<_>>().join(", "))
        });
    }
    let action = |(name, of_processes): (&'o str, Vec<&ObservedAction>)| Action {
        name,
        processes: of_processes.iter().map(|action| action.process.clone()).collect::<IndexSet<String>>().into_iter().collect(),
        response_time_s: resource.response_times_s.get(name).copied().unwrap_or_else(|| mean_self_time_s(&of_processes)),
        throughput_per_s: of_processes.iter().map(|action| action.throughput_per_s).sum(),
    };
    of_names.into_iter().map(action).collect()
}

/// The mean self time of an action over its processes, by throughput; without rounding where all are alike.
fn mean_self_time_s(of_processes: &[&ObservedAction]) -> f64 {
    let all: f64 = of_processes.iter().map(|action| action.throughput_per_s).sum();
    let first = of_processes.first().map_or(0.0, |action| action.self_time_s);
    let beyond: f64 = of_processes.iter().map(|action| action.throughput_per_s * (action.self_time_s - first)).sum();
    if all > 0.0 { first + beyond / all } else { first }
}

/// What was measured in the intervals that can be used, in an order of its own.
fn measured(resource: &Resource, actions: &[Action<'_>], diagnostics: &mut Diagnostics) -> Vec<Measured> {
    let usable = resource.intervals.iter().filter(|interval| is_in_range(resource, interval, diagnostics));
    let of = |interval: &Interval, action: &Action<'_>| interval.throughputs_per_s.get(action.name).copied();
    let mut measured: Vec<Measured> = usable
        .map(|interval| Measured {
            utilization: interval.utilization,
            throughputs_per_s: actions.iter().map(|action| of(interval, action).unwrap_or(action.throughput_per_s)).collect(),
        })
        .collect();
    measured.sort_by(|a, b| {
        let throughputs = || a.throughputs_per_s.iter().zip(&b.throughputs_per_s).map(|(a, b)| a.total_cmp(b));
        a.utilization.total_cmp(&b.utilization).then_with(|| throughputs().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal))
    });
    measured
}

/// The rule, and by it the demand of each action, seconds; `None` where it yields nothing.
fn demands(resource: &Resource, actions: &[Action<'_>], measured: &[Measured], diagnostics: &mut Diagnostics) -> (Rule, Option<Vec<f64>>) {
    let rows: Vec<Vec<f64>> = measured.iter().map(|interval| interval.throughputs_per_s.clone()).collect();
    if measured.len() > 1 && tells_apart(&rows) {
        let busy: Vec<f64> = measured.iter().map(|interval| interval.utilization * resource.cores).collect();
        return (Rule::Regression, Some(nnls(&rows, &busy).solution));
    }
    if measured.len() > 1 {
        let message = "the intervals of a resource do not tell the demands of its actions apart: their means were used";
        diagnostics.add("intervals_averaged", message, || format!("{}: {} intervals", resource.name, measured.len()));
    }
    let Measured { utilization, throughputs_per_s } = mean(measured);
    let response_times: Vec<f64> = actions.iter().map(|action| action.response_time_s).collect();
    if utilization < LOW_LOAD {
        diagnostics.add("low_load_rule_used", "response times were taken for demands, as the load was low", || resource.name.clone());
        return (Rule::LowLoad, Some(low_load(&response_times)));
    }
    if let [throughput] = throughputs_per_s.as_slice() {
        let demand = service_demand_law(utilization, resource.cores, *throughput);
        return (Rule::ServiceDemandLaw, demand.map(|demand| vec![demand]));
    }
    let demands = weighted_response_times(utilization, resource.cores, &throughputs_per_s, &response_times);
    if demands.is_some() {
        diagnostics.add("wrr_used", "demands were estimated by weighted response-time ratios", || resource.name.clone());
    }
    (Rule::ResponseTimeRatios, demands)
}

/// Whether rows of throughputs have full column rank: no demand can be had for another.
fn tells_apart(rows: &[Vec<f64>]) -> bool {
    let n_columns = rows.first().map_or(0, Vec::len);
    let most: Vec<f64> = (0..n_columns).map(|column| rows.iter().map(|row| row[column]).fold(0.0, f64::max)).collect();
    if rows.len() < n_columns || most.iter().any(|most| *most <= 0.0) {
        return false;
    }
    let values = DMatrix::from_fn(rows.len(), n_columns, |row, column| rows[row][column] / most[column]).singular_values();
    values.min() > TOLD_APART * values.max()
}

fn mean(measured: &[Measured]) -> Measured {
    let n = measured.len() as f64;
    let n_actions = measured.first().map_or(0, |interval| interval.throughputs_per_s.len());
    let of = |action: usize| measured.iter().map(|interval| interval.throughputs_per_s[action]).sum::<f64>() / n;
    Measured {
        utilization: measured.iter().map(|interval| interval.utilization).sum::<f64>() / n,
        throughputs_per_s: (0..n_actions).map(of).collect(),
    }
}

/// Tells the names that `resource` has and the records have not.
fn note_unknown(resource: &Resource, observed: &[ObservedAction], diagnostics: &mut Diagnostics) {
    let of_intervals = resource.intervals.iter().flat_map(|interval| interval.throughputs_per_s.keys());
    let actions: IndexSet<&String> = of_intervals.chain(resource.response_times_s.keys()).collect();
    let unseen = actions.into_iter().filter(|name| !observed.iter().any(|action| action.name == **name));
    let is_seen = |name: &String| observed.iter().any(|action| action.component == *name || action.process == *name);
    let users = resource.components.iter().filter(|name| !is_seen(name));
    let server = resource.server.iter().filter(|name| !observed.iter().any(|action| action.server.as_ref() == Some(*name)));
    for name in unseen.chain(users).chain(server) {
        let message = "measurements name services, components or servers that the records do not show; they are not used";
        diagnostics.add("resource_of_nothing", message, || format!("{name} at {}", resource.name));
    }
    if !observed.is_empty() && !observed.iter().any(|action| resource.is_used_by(action)) {
        let message = "none of the components that use a resource runs on its server, by the records: it is not used";
        diagnostics.add("resource_not_used", message, || resource.name.clone());
    }
}

fn is_in_range(resource: &Resource, interval: &Interval, diagnostics: &mut Diagnostics) -> bool {
    let fits = (0.0..=1.0).contains(&interval.utilization) && resource.cores > 0.0 && resource.cores.is_finite();
    if !fits {
        diagnostics.add("utilisation_out_of_range", "intervals with a utilisation outside of 0 to 1 were left out", || {
            format!("{}: {}", resource.name, interval.utilization)
        });
    }
    fits
}
