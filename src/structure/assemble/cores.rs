//! Cores of processors that nothing is said of: as many as serve the load that was seen with hardly a wait.
//!
//! ```text
//! r_e = a_e + Σ_s r_s y_se        U = Σ_ek r_e d_ek        V = Σ_ek r_e n_ek        n_ek = 1 + Σ y_ek
//! w(c) = m C(c, U) / (c − U)      m = V / U² Σ_ek r_e d_ek² / n_ek
//! cores = fewest c > U with w(c) ≤ 1/10, and b − 1 more; no more than the processor's tasks have threads, and U / (4/5) where U ≥ 1
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | a, r | what starts of an entry, by arrivals and by customers at the rate seen; requests in all | per second |
//! | y, d, n | mean requests of an execution, demands of its phases, times that it comes to the processor: n slices of d / n | s |
//! | U, V | busy cores, arrivals at the processor (sums over entries e on it and phases k) | , per second |
//! | C(c, U) | probability that all of c cores are busy (Erlang): random arrivals, exponential slices | |
//! | m | by how much more they wait as slices differ: E s² / 2 (E s)² of the mixture | |
//! | w | all waits over all demands | |
//! | b | most requests that one execution has at the processor at once: its branches come together | |
//!
//! Self times are elapsed times: they hold the waits for the processor already, and a model that adds them once more contradicts the
//! load that it is made from. So what is assumed are more cores, or, where there are fewer, that the self times are waits in part.
//! Demands that are CPU times, or said, hold no waits: with these a processor has one core where that keeps up, else cores that are
//! busy for four fifths.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{Assembly, Customers, Demands, Parts};
use crate::{
    model::{Number, Processor, ProcessorScheduling, Task, TaskScheduling},
    structure::{
        Technique,
        entries::{ArcKind, MergedArc, MergedEntry},
        interactions::{ProcessHints, Workload},
    },
};

/// How busy assumed cores are at most.
const BUSY: f64 = 0.8;
/// Waits over demands that assumed cores leave.
const WAIT: f64 = 0.1;
/// Busy cores beyond which no wait is computed.
const MOST_BUSY: f64 = 1e6;
/// Generations of requests that are followed, and what is left of the first when they are enough.
const MOST_GENERATIONS: usize = 1000;
const NEGLIGIBLE: f64 = 1e-9;

/// What comes to a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Mean number of busy cores.
    busy: f64,
    /// Slices of work a second, and the sum of their squares a second.
    slices: f64,
    squares_s: f64,
    /// Most requests of one execution at once.
    at_once: f64,
    /// Whether some of it is CPU time.
    is_cpu_time: bool,
}

impl Use {
    fn add(&mut self, rate: f64, demand: f64, n_slices: f64) {
        self.busy += rate * demand;
        self.slices += rate * n_slices;
        self.squares_s += rate * demand * demand / n_slices;
    }

    /// All waits over all demands with so many cores, more than are busy.
    fn wait(&self, cores: f64, erlang_b: f64) -> f64 {
        let all_busy = erlang_b / (1.0 - self.busy / cores * (1.0 - erlang_b));
        let mixture = self.slices * self.squares_s / (self.busy * self.busy);
        mixture * all_busy / (cores - self.busy)
    }

    /// Cores with hardly a wait, for what may come from `threads` threads.
    fn cores(&self, threads: f64) -> f64 {
        let keeping_up = if self.busy >= 1.0 { (self.busy / BUSY).ceil() } else { 1.0 };
        if self.is_cpu_time || self.busy <= 0.0 || self.busy > MOST_BUSY {
            return keeping_up;
        }
        let (mut cores, mut erlang_b) = (0.0, 1.0);
        while cores <= self.busy || self.wait(cores, erlang_b) > WAIT {
            if cores >= threads {
                break;
            }
            cores += 1.0;
            erlang_b = self.busy * erlang_b / (cores + self.busy * erlang_b);
        }
        // No more than come from threads, even where rounding has these busy for a little more than all of the time.
        (cores + (self.at_once - 1.0).clamp(0.0, MOST_BUSY).ceil()).max(keeping_up).min(threads)
    }
}

impl Assembly<'_> {
    /// Notes the load of `customers`, as it was seen, else as their number and think time, asked for or concluded, say.
    pub(super) fn note_load(&mut self, customers: &Customers) {
        let implied = || match customers.workload? {
            Workload::Open { rate } => Some(rate),
            Workload::Closed { customers: n, think_time } => {
                let (asked_n, asked_think_time) = self.population(customers);
                let cycle = self.response_time(customers) + asked_think_time.literal().unwrap_or(think_time);
                (cycle > 0.0).then(|| asked_n.literal().unwrap_or(n) / cycle)
            }
        };
        let Some(rate) = customers.seen.map(|seen| seen.rate).or_else(implied) else { return };
        for arc in &customers.arcs {
            *self.load.entry(arc.target).or_insert(0.0) += rate * arc.mean;
        }
    }

    /// Self times of all that a cycle waits for, seconds.
    fn response_time(&self, customers: &Customers) -> f64 {
        let Parts { merged, options, .. } = self.parts;
        let is_waited_for = |arc: &&MergedArc| arc.phase == 1 && arc.kind != ArcKind::Async;
        let mut first = IndexMap::new();
        customers.arcs.iter().filter(is_waited_for).for_each(|arc| *first.entry(arc.target).or_insert(0.0) += arc.mean);
        let visits = requests(&merged.entries, &first, is_waited_for);
        let own = |entry: &MergedEntry| entry.self_times[0].map_or(0.0, |time| time.mean_ticks * options.seconds_per_tick);
        let called: f64 = merged.entries.iter().zip(visits).map(|(entry, n)| n * own(entry)).sum();
        called + customers.self_time_ticks.map_or(0.0, |ticks| ticks * options.seconds_per_tick)
    }

    /// Gives cores to processors that nothing is said of.
    pub(super) fn assume_cores(&mut self, hints: &[ProcessHints]) {
        if self.load.is_empty() || self.parts.options.demands != Demands::SelfTimes {
            return;
        }
        let uses = self.uses(hints);
        let threads = self.threads();
        for (at, name) in self.open_processors() {
            let Some(of) = uses.get(&name) else { continue };
            let cores = of.cores(threads.get(&name).copied().unwrap_or(f64::INFINITY));
            if self.out.model.processors[at].multiplicity.literal().is_some_and(|known| cores <= known) {
                continue;
            }
            self.out.model.processors[at].multiplicity = Number::Value(cores);
            let message = "self times hold the waits for the processor already: of one that nothing is said of, so many cores were assumed \
                           that they add at most a tenth to them at the load seen";
            self.out.diagnostics.add("cores_assumed", message, || format!("{name}: {:.2} busy, {cores} assumed", of.busy));
        }
    }

    /// Processors whose number of cores is not said, by their place.
    fn open_processors(&self) -> Vec<(usize, String)> {
        let is_said = |p: &Processor| self.processor_hints(&p.name).is_some_and(|hints| hints.cores.is_some());
        let is_open = |p: &Processor| p.scheduling != ProcessorScheduling::Inf && !is_said(p);
        let processors = self.out.model.processors.iter().enumerate();
        processors.filter(|(_, p)| is_open(p)).map(|(at, p)| (at, p.name.clone())).collect()
    }

    /// Threads of the tasks of each processor; of tasks without limit, and of numbers that are not known, without limit.
    fn threads(&self) -> HashMap<String, f64> {
        let of_task = |task: &Task| task.multiplicity.literal().filter(|_| task.scheduling != TaskScheduling::Inf).unwrap_or(f64::INFINITY);
        let mut threads: HashMap<String, f64> = HashMap::new();
        for task in &self.out.model.tasks {
            *threads.entry(task.processor.clone()).or_insert(0.0) += of_task(task);
        }
        threads
    }

    /// What comes to each processor.
    fn uses(&self, hints: &[ProcessHints]) -> HashMap<String, Use> {
        let Parts { summary, merged, options, .. } = self.parts;
        let of_task = |task: &'_ Task| task.entries.iter().map(|e| (e.name.clone(), task.processor.clone())).collect::<Vec<_>>();
        let processor_of: HashMap<String, String> = self.out.model.tasks.iter().flat_map(of_task).collect();
        let rates = requests(&merged.entries, &self.load, |_| true);
        let mut uses: HashMap<String, Use> = HashMap::new();
        for ((it, name), rate) in merged.entries.iter().zip(&self.entry_names).zip(rates) {
            let Some(processor) = processor_of.get(name).filter(|_| rate > 0.0) else { continue };
            let said = it.operation.and_then(|o| hints[it.task as usize].demands.get(summary.operations.name(o))).copied();
            let demands = self.demands(it.self_times.map(|time| time.map(|t| t.mean_ticks)), said);
            let of = uses.entry(processor.clone()).or_default();
            of.is_cpu_time |= said.is_some() || matches!(options.technique, Some(Technique::Tlc | Technique::ExecutionGraph));
            for (phase, demand) in (1..).zip(demands).filter(|(_, demand)| *demand > 0.0) {
                let calls = it.arcs.iter().filter(|arc| arc.phase == phase && arc.kind == ArcKind::Sync);
                of.add(rate, demand, 1.0 + calls.map(|arc| arc.mean).sum::<f64>());
            }
        }
        let on =
            |entry: usize| processor_of.get(&self.entry_names[entry]).and_then(|name| uses.contains_key(name).then_some(name.as_str()));
        for (processor, at_once) in most_at_once(&merged.entries, on) {
            uses.entry(processor).or_default().at_once = at_once;
        }
        uses
    }
}

/// Requests of the entries where `first` are made, those counted that are `followed`; none where requests give rise to ever more of them.
pub(super) fn requests(entries: &[MergedEntry], first: &IndexMap<usize, f64>, followed: impl Fn(&&MergedArc) -> bool) -> Vec<f64> {
    let mut requests = vec![0.0; entries.len()];
    let mut next = vec![0.0; entries.len()];
    first.iter().for_each(|(entry, n)| next[*entry] += n);
    let enough = NEGLIGIBLE * next.iter().sum::<f64>();
    for _ in 0..MOST_GENERATIONS {
        let now = std::mem::replace(&mut next, vec![0.0; entries.len()]);
        if now.iter().sum::<f64>() <= enough {
            return requests;
        }
        for (entry, n) in now.into_iter().enumerate().filter(|(_, n)| *n > 0.0) {
            requests[entry] += n;
            entries[entry].arcs.iter().filter(&followed).for_each(|arc| next[arc.target] += n * arc.mean);
        }
    }
    vec![0.0; entries.len()]
}

/// The most requests that one execution of an entry has at each processor at once, in the mean, where its branches, and those of what
/// they wait for, come together; `on` is the processor of an entry.
fn most_at_once<'p>(entries: &[MergedEntry], on: impl Fn(usize) -> Option<&'p str>) -> HashMap<String, f64> {
    let mut widths: Vec<HashMap<&str, f64>> = (0..entries.len()).map(|entry| on(entry).map(|p| (p, 1.0)).into_iter().collect()).collect();
    let has_forks = entries.iter().any(|entry| !entry.forks.is_empty());
    for _ in 0..if has_forks { MOST_GENERATIONS.min(entries.len()) } else { 0 } {
        let mut is_settled = true;
        for (at, entry) in entries.iter().enumerate().rev() {
            let wider = width_of(entry, &widths);
            for (processor, width) in wider {
                let known = widths[at].entry(processor).or_insert(0.0);
                if width > *known + NEGLIGIBLE {
                    (*known, is_settled) = (width, false);
                }
            }
        }
        if is_settled {
            break;
        }
    }
    let mut most: HashMap<String, f64> = HashMap::new();
    for (processor, width) in widths.into_iter().flatten() {
        let known = most.entry(processor.to_owned()).or_insert(0.0);
        *known = known.max(width);
    }
    most
}

/// What an execution of an entry has at once at each processor, by what the entries that it waits for have.
fn width_of<'p>(entry: &MergedEntry, widths: &[HashMap<&'p str, f64>]) -> HashMap<&'p str, f64> {
    let of_arcs = |arcs: &[MergedArc]| {
        let mut width: HashMap<&'p str, f64> = HashMap::new();
        for arc in arcs.iter().filter(|arc| arc.kind == ArcKind::Sync) {
            for (processor, n) in &widths[arc.target] {
                let known = width.entry(processor).or_insert(0.0);
                *known = known.max(n * arc.mean.min(1.0));
            }
        }
        width
    };
    let mut most = of_arcs(&entry.arcs);
    for fork in &entry.forks {
        let mut together: HashMap<&'p str, f64> = HashMap::new();
        fork.branches.iter().flat_map(|arcs| of_arcs(arcs)).for_each(|(processor, n)| *together.entry(processor).or_insert(0.0) += n);
        for (processor, n) in together {
            let known = most.entry(processor).or_insert(0.0);
            *known = known.max(n);
        }
    }
    most
}
