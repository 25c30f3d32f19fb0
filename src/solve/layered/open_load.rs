//! Whether requests that nobody waits for can be served at all: open arrivals, asynchronous requests, and calls of second phases without a bound on their
//! threads. No queue holds these up, and so they pile up where they and what goes before them take all that the servers can do:
//!
//! ```text
//! Σ_a o_a λ_a s_a ≥ m                                                        a station without urgency
//! Σ_{a ≥ l} o_a λ_a s_a + Σ_{a > l} h_a λ_a s_a ≥ m,   o_a > 0 of level l       one that goes by urgency
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `o_a` | share of the requests of arc `a` for which no customer and no thread of theirs waits |
//! | `h_a` | share of those of customers who wait for nothing of level `l` or below at the station: that these pile up holds none of them up |
//! | `λ_a`, `s_a`, `m` | rate of `a`, time that a server is held for each, and servers |

use super::{
    super::SolveError,
    Stage,
    net::{Discipline, Net, Station},
    outcome::held_by,
};
use crate::model::Scalar;

/// Load at which an open queue counts as saturated, as a share of its servers.
const SATURATION: f64 = 1.0 - 1e-9;
/// Share of its servers from which the load of an open queue, where it rests on estimates, is remarked: one of .97 is known that in truth would be
/// 1.1.
const NEAR_SATURATION: f64 = 0.95;
/// Share of such a load that is estimated, from which it rests on that.
const RESTS_ON_ESTIMATES: f64 = 0.05;

/// Refuses a model whose requests that nobody waits for exceed what a task or processor can serve of them. Returns remarks on those that are near that by
/// what is estimated.
pub(super) fn check<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Result<Vec<String>, SolveError> {
    let mut remarks = Vec::new();
    let offered = Offered { net, stage, outside: outside_shares(net, stage) };
    for (s, station) in net.stations.iter().enumerate().filter(|(_, station)| station.servers.is_finite()) {
        let Some(load) = offered.largest(station) else { continue };
        if load.all < station.servers * NEAR_SATURATION {
            continue;
        }
        let kind = if s < net.n_processors { "processor" } else { "task" };
        let resource = format!("{kind} \"{}\"", station.name);
        let at_least = offered.without_waits(station, load.level);
        if load.all >= station.servers * SATURATION {
            return Err(SolveError::Saturated { resource, utilization: load.all, capacity: station.servers, at_least });
        }
        let busy = 100.0 * load.all / station.servers;
        if load.before > RESTS_ON_ESTIMATES * load.all {
            remarks.push(format!(
                "{resource} is {busy:.0} % busy with requests that nobody waits for and more urgent ones of customers, whose throughput is estimated: whether it keeps up, a simulation tells"
            ));
        } else if at_least < (1.0 - RESTS_ON_ESTIMATES) * load.all {
            remarks.push(format!(
                "{resource} is {busy:.0} % busy with requests from outside, of which {:.0} % are waits that are estimated: whether it keeps up, a simulation tells",
                100.0 * (load.all - at_least) / station.servers
            ));
        }
    }
    Ok(remarks)
}

/// What is offered to a station by requests that nobody waits for, and by what goes before them.
struct Offered<'a, S> {
    net: &'a Net<S>,
    stage: &'a Stage<S>,
    /// Share of each entry's invocations for which nobody waits.
    outside: Vec<f64>,
}

/// A load, in servers.
struct Load {
    /// Urgency of the least urgent of the requests that nobody waits for; none where a station does not look at it.
    level: Option<f64>,
    all: f64,
    /// Of that, more urgent requests of customers.
    before: f64,
}

impl<S: Scalar> Offered<'_, S> {
    /// The largest load of the levels of a station; none where somebody waits for all requests.
    fn largest(&self, station: &Station) -> Option<Load> {
        let net = self.net;
        let of_nobody = || station.arcs.iter().copied().filter(|&a| self.outside(a) > 0.0);
        of_nobody().next()?;
        if !matches!(station.discipline, Discipline::HeadOfLine | Discipline::Preemptive) {
            return Some(Load { level: None, all: self.of_nobody(station, None, |a| self.held(a)), before: 0.0 });
        }
        let mut levels: Vec<f64> = of_nobody().map(|a| net.arcs[a].priority).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let of_level = |level: f64| {
            let before = self.before(station, level);
            Load { level: Some(level), all: self.of_nobody(station, Some(level), |a| self.held(a)) + before, before }
        };
        levels.into_iter().map(of_level).max_by(|a, b| a.all.total_cmp(&b.all))
    }

    /// Load of the requests at least as urgent as `level` that nobody waits for, of which each holds a server for so long.
    fn of_nobody(&self, station: &Station, level: Option<f64>, held: impl Fn(usize) -> f64) -> f64 {
        let goes_before = |a: &&usize| level.is_none_or(|level| self.net.arcs[**a].priority >= level);
        station.arcs.iter().filter(goes_before).map(|&a| self.outside(a) * self.rate(a) * held(a)).sum()
    }

    /// The same, had nothing ever to wait: what is sure, but for the rates of what customers send.
    fn without_waits(&self, station: &Station, level: Option<f64>) -> f64 {
        let flow = self.stage.flow.without_waits(self.net);
        self.of_nobody(station, level, |a| held_by(self.net, &flow, a))
    }

    /// Load of what is more urgent than `level`, of customers whom nothing of it or below can hold up.
    fn before(&self, station: &Station, level: f64) -> f64 {
        let net = self.net;
        let waits = |class: usize| station.arcs.iter().any(|&a| net.arcs[a].priority <= level && self.share_of_class(a, class) > 0.0);
        let free: Vec<usize> = (0..net.classes.len()).filter(|&class| !waits(class)).collect();
        let of_free = |a: usize| free.iter().map(|&class| self.share_of_class(a, class)).sum::<f64>();
        let more_urgent = station.arcs.iter().copied().filter(|&a| net.arcs[a].priority > level);
        more_urgent.map(|a| of_free(a) * self.rate(a) * self.held(a)).sum()
    }

    fn outside(&self, arc: usize) -> f64 {
        waited_for(self.net, arc).map_or(1.0, |node| self.outside[self.net.nodes[node].entry])
    }

    /// Share of an arc's requests for which a customer of the class waits, or a thread of theirs.
    fn share_of_class(&self, arc: usize, class: usize) -> f64 {
        let net = self.net;
        let waits = |node: usize| self.stage.class_shares[net.nodes[node].kin * net.classes.len() + class].value();
        if self.rate(arc) > 0.0 { waited_for(net, arc).map_or(0.0, waits) } else { 0.0 }
    }

    fn rate(&self, arc: usize) -> f64 {
        self.stage.flow.arc_rate[arc].value()
    }

    fn held(&self, arc: usize) -> f64 {
        held_by(self.net, &self.stage.flow, arc)
    }
}

/// The node whose thread an arc holds, where threads are limited: second phases of an infinite server wait for their calls, and
/// nobody waits for them.
fn waited_for<S>(net: &Net<S>, arc: usize) -> Option<usize> {
    net.arcs[arc].source.held().filter(|&node| net.nodes[node].phase == 0 || net.tasks[net.nodes[node].task].cap.is_finite())
}

/// Share of each entry's invocations for which no customer and no thread of theirs waits: a queue cannot hold these up.
fn outside_shares<S: Scalar>(net: &Net<S>, stage: &Stage<S>) -> Vec<f64> {
    let flow = &stage.flow;
    let mut arriving = vec![0.0; net.entries.len()];
    let mut held: Vec<(usize, usize, usize)> = Vec::new();
    for (a, arc) in net.arcs.iter().enumerate() {
        let Some(target) = arc.target else { continue };
        match waited_for(net, a) {
            Some(node) => held.push((net.tasks[net.nodes[node].task].position, a, target)),
            None => arriving[target] += flow.arc_rate[a].value(),
        }
    }
    // Callers before callees: all that reaches an entry is known before what it sends.
    held.sort_unstable();
    let share = |arriving: &[f64], entry: usize| {
        let rate = flow.entry_rate[entry].value();
        if rate > 0.0 { (arriving[entry] / rate).min(1.0) } else { 0.0 }
    };
    for (_, a, target) in held {
        let from = waited_for(net, a).map_or(0.0, |node| share(&arriving, net.nodes[node].entry));
        arriving[target] += from * flow.arc_rate[a].value();
    }
    (0..net.entries.len()).map(|entry| share(&arriving, entry)).collect()
}
