//! Cores of processors that nothing is said of, where requests arrive from outside: as many as keep up with the self times seen.
//!
//! ```text
//! r_e = a_e + Σ_s r_s y_se        U_p = Σ_(e on p) r_e Σ_k d_ek        cores = ⌈U_p / u⌉ where U_p ≥ 1
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | a, r | arrivals from outside, requests in all of an entry | per second |
//! | y, d | mean requests of an execution, demands of its phases | s |
//! | U, u | busy cores, and how busy each of those assumed is ([`BUSY`]) | |
//!
//! Self times are elapsed times, hence demands from above: a processor of one core that they keep busy for more than all of the time
//! has more cores than one, or they are waits. Without this the model would have no steady state at the load that was seen.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{Assembly, Demands, Parts};
use crate::{
    model::{Number, Processor, ProcessorScheduling, Task},
    structure::{entries::MergedEntry, interactions::ProcessHints},
};

/// How busy the assumed cores are.
const BUSY: f64 = 0.8;
/// Generations of requests that are followed, and what is left of the arrivals when they are enough.
const MOST_GENERATIONS: usize = 1000;
const NEGLIGIBLE: f64 = 1e-9;

impl Assembly<'_> {
    /// Gives cores to processors whose one core could not keep up with `arrivals`, by merged entry a second.
    pub(super) fn assume_cores(&mut self, arrivals: &IndexMap<usize, f64>, hints: &[ProcessHints]) {
        if arrivals.is_empty() || self.parts.options.demands != Demands::SelfTimes {
            return;
        }
        let busy = self.busy_cores(&rates(&self.parts.merged.entries, arrivals), hints);
        let processors = self.out.model.processors.iter().enumerate();
        let is_one = |p: &Processor| p.scheduling != ProcessorScheduling::Inf && p.multiplicity.is(1.0);
        let full = processors.filter_map(|(at, p)| Some((at, *busy.get(&p.name)?)).filter(|(_, busy)| *busy >= 1.0 && is_one(p)));
        for (at, busy) in full.collect::<Vec<_>>() {
            let name = self.out.model.processors[at].name.clone();
            if self.processor_hints(&name).is_some_and(|hints| hints.cores.is_some()) {
                continue;
            }
            let cores = (busy / BUSY).ceil();
            self.out.model.processors[at].multiplicity = Number::Value(cores);
            let message = "self times keep more than one core busy at the rate seen, of a processor that nothing is said of: so many cores \
                           were assumed that they keep up";
            self.out.diagnostics.add("cores_assumed", message, || format!("{name}: {busy:.2} busy, {cores} assumed"));
        }
    }

    /// Mean number of busy cores, by processor.
    fn busy_cores(&self, rates: &[f64], hints: &[ProcessHints]) -> HashMap<String, f64> {
        let Parts { summary, merged, .. } = self.parts;
        let of_task = |task: &'_ Task| task.entries.iter().map(|e| (e.name.clone(), task.processor.clone())).collect::<Vec<_>>();
        let processor_of: HashMap<String, String> = self.out.model.tasks.iter().flat_map(of_task).collect();
        let mut busy: HashMap<String, f64> = HashMap::new();
        for ((it, name), rate) in merged.entries.iter().zip(&self.entry_names).zip(rates) {
            let Some(processor) = processor_of.get(name).filter(|_| *rate > 0.0) else { continue };
            let said = it.operation.and_then(|o| hints[it.task as usize].demands.get(summary.operations.name(o))).copied();
            let demand: f64 = self.demands(it.self_times.map(|time| time.map(|t| t.mean_ticks)), said).iter().sum();
            *busy.entry(processor.clone()).or_insert(0.0) += rate * demand;
        }
        busy
    }
}

/// Requests of the entries a second; none where requests give rise to ever more of them.
fn rates(entries: &[MergedEntry], arrivals: &IndexMap<usize, f64>) -> Vec<f64> {
    let mut rates = vec![0.0; entries.len()];
    let mut next = vec![0.0; entries.len()];
    arrivals.iter().for_each(|(entry, rate)| next[*entry] += rate);
    let enough = NEGLIGIBLE * next.iter().sum::<f64>();
    for _ in 0..MOST_GENERATIONS {
        let now = std::mem::replace(&mut next, vec![0.0; entries.len()]);
        if now.iter().sum::<f64>() <= enough {
            return rates;
        }
        for (entry, rate) in now.into_iter().enumerate().filter(|(_, rate)| *rate > 0.0) {
            rates[entry] += rate;
            entries[entry].arcs.iter().for_each(|arc| next[arc.target] += rate * arc.mean);
        }
    }
    vec![0.0; entries.len()]
}
