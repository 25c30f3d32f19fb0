//! Time that requests lose to establishing connections, which no record of theirs shows (Brosig et al. 2011, II.C).
//!
//! Input: calls between services, and what a connection takes by load ([`ConnectionDelay`]); output: for each service that is
//! requested from outside, the connections of an execution and what they add to its response time.
//!
//! ```text
//! n(x) = Σ_(x → y, waited for) m_xy (c_xy + n(y))        R(x) ← R(x) + n(x) δ(load)
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | m_xy | mean number of calls of y by an execution of x | |
//! | c_xy | 1 where y runs on another server than x, or x is outside, else 0 | |
//! | n(x), R(x) | connections of an execution of x, its response time | 1, s |
//! | load | requests from outside | 1/s |
//!
//! The paper names the delay; that it is paid once for each call of another server is ours.

use serde::{Deserialize, Serialize};

use super::{demand::ConnectionDelay, flow::Naming, live::NONE, places::Places, summary::Summary};
use crate::trace::hashed::IndexMap;

/// Generations of calls that are followed.
const MOST_GENERATIONS: usize = 1000;
/// What a generation adds at least.
const NEGLIGIBLE: f64 = 1e-12;

/// What connections add to the response time of a service that is requested from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayReport {
    /// The service, `COMPONENT.METHOD`.
    pub service: String,
    /// Mean number of connections of a request, that to the service itself included.
    pub connections: f64,
    /// The load, requests from outside a second, for which the delay is said.
    pub load_per_s: f64,
    /// Seconds that a connection takes at that load.
    pub delay_s: f64,
    /// Seconds that they add to the response time.
    pub added_s: f64,
}

/// An instance of a component, and a service of it.
type Node = (u32, u32);

/// The delays of all services that are requested from outside, by name; the load is that of the records if `load_per_s` does not say it.
pub(super) fn delays(delay: &ConnectionDelay, load_per_s: Option<f64>, summary: &Summary, places: &Places) -> Vec<DelayReport> {
    let requested = |((from, _, waits), _): &(&super::summary::Connection, &super::summary::ConnectionSums)| from.0 == NONE && *waits;
    let mut found: IndexMap<u32, (f64, u64)> = IndexMap::default();
    let connections = below(summary, places);
    for ((_, to, _), sums) in summary.connections.iter().filter(requested) {
        let (total, n) = found.entry(to.1).or_default();
        *total += (1.0 + connections.get(to).copied().unwrap_or(0.0)) * sums.n as f64;
        *n += sums.n;
    }
    let load_per_s = load_per_s.unwrap_or_else(|| load_seen(summary));
    let delay_s = delay.at(load_per_s);
    let report = |(location, (total, n)): (u32, (f64, u64))| {
        let (component, method) = places.service(location);
        let connections = total / n as f64;
        DelayReport { service: format!("{component}.{method}"), connections, load_per_s, delay_s, added_s: connections * delay_s }
    };
    let mut reports: Vec<DelayReport> = found.into_iter().map(report).collect();
    reports.sort_by(|a, b| a.service.cmp(&b.service));
    reports
}

/// Mean connections below an execution of each service; of circles of calls those of the first generations.
fn below(summary: &Summary, places: &Places) -> IndexMap<Node, f64> {
    let executions = summary.by_instance();
    let server = |node: &Node| places.instances.get_index(node.0 as usize).map_or(NONE, |(_, server)| *server);
    let calls: Vec<(Node, Node, f64)> = summary
        .connections
        .iter()
        .filter(|((from, _, waits), _)| from.0 != NONE && *waits)
        .filter_map(|((from, to, _), sums)| Some((*from, *to, sums.n as f64 / *executions.get(from)? as f64)))
        .collect();
    let mut total: IndexMap<Node, f64> = IndexMap::default();
    let mut generation: IndexMap<Node, f64> = IndexMap::default();
    for (from, _, mean) in calls.iter().filter(|(from, to, _)| server(from) != server(to)) {
        *generation.entry(*from).or_default() += mean;
    }
    for _ in 0..MOST_GENERATIONS {
        if generation.values().all(|n| *n < NEGLIGIBLE) {
            break;
        }
        generation.iter().for_each(|(node, n)| *total.entry(*node).or_default() += n);
        let mut next: IndexMap<Node, f64> = IndexMap::default();
        for (from, to, mean) in &calls {
            if let Some(n) = generation.get(to).filter(|n| **n > 0.0) {
                *next.entry(*from).or_default() += mean * n;
            }
        }
        generation = next;
    }
    total
}

/// Requests from outside a second, over all records.
fn load_seen(summary: &Summary) -> f64 {
    let span_s = summary.span_s();
    let requests: u64 = summary.connections.iter().filter(|((from, ..), _)| from.0 == NONE).map(|(_, sums)| sums.n).sum();
    if span_s > 0.0 { requests as f64 / span_s } else { 0.0 }
}
