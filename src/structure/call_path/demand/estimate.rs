//! The demands at one resource, by the rule that fits what was measured.
//!
//! An action is of all processes that use the resource: its throughput is the sum of theirs, its response time their mean, weighted by
//! throughput.

use indexmap::{IndexMap, IndexSet};

use super::{
    DemandEstimate, Interval, LOW_LOAD, ObservedAction, Resource, Rule, low_load, nnls, overhead_factor, service_demand_law,
    weighted_response_times,
};
use crate::trace::diagnostics::Diagnostics;

/// An action of all processes that use a resource.
struct Action<'o> {
    name: &'o str,
    processes: Vec<String>,
    /// On this resource, seconds.
    response_time_s: f64,
    /// In the records, 1/s.
    throughput_per_s: f64,
}

/// What was measured in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// What was measured in the intervals that can be used.
fn measured(resource: &Resource, actions: &[Action<'_>], diagnostics: &mut Diagnostics) -> Vec<Measured> {
    let usable = resource.intervals.iter().filter(|interval| is_in_range(resource, interval, diagnostics));
    let of = |interval: &Interval, action: &Action<'_>| interval.throughputs_per_s.get(action.name).copied();
    usable
        .map(|interval| Measured {
            utilization: interval.utilization,
            throughputs_per_s: actions.iter().map(|action| of(interval, action).unwrap_or(action.throughput_per_s)).collect(),
        })
        .collect()
}

/// The rule, and by it the demand of each action, seconds; `None` where it yields nothing.
fn demands(resource: &Resource, actions: &[Action<'_>], measured: &[Measured], diagnostics: &mut Diagnostics) -> (Rule, Option<Vec<f64>>) {
    if measured.len() > actions.len() {
        let rows: Vec<Vec<f64>> = measured.iter().map(|interval| interval.throughputs_per_s.clone()).collect();
        let busy: Vec<f64> = measured.iter().map(|interval| interval.utilization * resource.cores).collect();
        return (Rule::Regression, Some(nnls(&rows, &busy).solution));
    }
    let Measured { utilization, throughputs_per_s } = measured.first().cloned().unwrap_or_default();
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
    diagnostics.add("wrr_used", "demands were estimated by weighted response-time ratios", || resource.name.clone());
    (Rule::ResponseTimeRatios, demands)
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
