//! From sums to means.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::{
    Class, Summary,
    forks::ForkShape,
    sums::{ForkSums, RequestSums, TimeSums},
};
use crate::{
    structure::entries::{Accepts, ArcKind, Merged, MergedArc, MergedEntry, MergedFork, MergedTime},
    trace::hashed::{self, HashSet},
};

/// How many units start interactions at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Starters {
    /// The recording being counted, and its units so far with their tasks.
    current: (String, HashSet<(u32, u32)>),
    /// Most units in one recording, all together and by task.
    most: u64,
    most_of_task: hashed::IndexMap<u32, u64>,
}

impl Starters {
    /// A recording starts, or goes on.
    pub(super) fn begin(&mut self, trace: &str, continued: bool) {
        if !continued || self.current.0 != trace {
            self.close();
            trace.clone_into(&mut self.current.0);
        }
    }

    /// A unit of `task` starts an interaction.
    pub(super) fn add(&mut self, unit: u32, task: u32) {
        self.current.1.insert((unit, task));
    }

    fn close(&mut self) {
        match self.current.1.len() {
            0 => {}
            // Nearly all recordings have one.
            1 => {
                self.most = self.most.max(1);
                for (_, task) in self.current.1.drain() {
                    let most = self.most_of_task.entry(task).or_insert(0);
                    *most = 1.max(*most);
                }
            }
            _ => {
                (self.most, self.most_of_task) = self.counted();
                self.current.1.clear();
            }
        }
    }

    /// With the recording being counted.
    fn counted(&self) -> (u64, hashed::IndexMap<u32, u64>) {
        let mut of_task: hashed::IndexMap<u32, u64> = hashed::IndexMap::default();
        for (_, task) in &self.current.1 {
            *of_task.entry(*task).or_insert(0) += 1;
        }
        let mut most_of_task = self.most_of_task.clone();
        for (task, n) in of_task {
            let most = most_of_task.entry(task).or_insert(0);
            *most = n.max(*most);
        }
        (self.most.max(self.current.1.len() as u64), most_of_task)
    }

    pub(super) fn merge(&mut self, later: &Self, task_here: impl Fn(u32) -> u32) {
        let (most, most_of_task) = later.counted();
        self.most = self.most.max(most);
        for (task, n) in most_of_task {
            let here = self.most_of_task.entry(task_here(task)).or_insert(0);
            *here = n.max(*here);
        }
    }
}

/// A class of the summary that nothing requests, under the scenarios' factors.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Its task.
    pub task: u32,
    /// Number of its occurrences.
    pub n_occurrences: u64,
    /// What they weigh.
    pub weight: f64,
    /// The entry that the class is.
    pub entry: usize,
    /// Weighted sums of requests: kind, phase, entry.
    pub requests: Vec<((ArcKind, u8, usize), f64)>,
    /// Weighted sum of their self times in ticks, where any is known.
    pub self_time_ticks: Option<f64>,
}

impl Summary {
    /// Most units that started interactions in one recording: of one task, or all together.
    pub fn most_starters(&self, task: Option<u32>) -> u64 {
        let (most, most_of_task) = self.starters.counted();
        task.map_or(most, |task| most_of_task.get(&task).copied().unwrap_or(0)).max(1)
    }

    /// Units that served requests, by task: shape `(n_tasks,)`.
    pub fn serving_units(&self) -> Vec<u64> {
        let mut units = vec![0; self.tasks.names.len()];
        for (task, _) in self.tasks.of_unit.iter().zip(&self.served).filter(|(_, served)| **served) {
            units[*task as usize] += 1;
        }
        units
    }

    /// The entries; `factors`, shape `(n_scenarios,)`, are the fₛ of the module's equations.
    pub fn merged(&self, factors: &[f64]) -> Merged {
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.sort_by_key(|class| self.classes[*class].place);
        let mut entry_of = vec![0; order.len()];
        for (entry, class) in order.iter().enumerate() {
            entry_of[*class] = entry;
        }
        let entries = order.iter().map(|class| self.entry(*class, factors, &entry_of)).collect();
        Merged { entries, entry_of }
    }

    /// What nothing requests, by its first occurrence.
    pub fn starts(&self, factors: &[f64], merged: &Merged) -> Vec<Start> {
        let mut starts: Vec<Start> = Vec::new();
        for (class, entry) in merged.entry_of.iter().enumerate() {
            if merged.entries[*entry].accepts == Accepts::Nothing {
                starts.push(self.start(class, *entry, factors, merged));
            }
        }
        starts.sort_by_key(|start| start.entry);
        starts
    }

    fn start(&self, class: usize, entry: usize, factors: &[f64], merged: &Merged) -> Start {
        let by_operation = self.is_by_operation(class);
        let mut start = Start {
            task: merged.entries[entry].task,
            n_occurrences: merged.entries[entry].n_occurrences,
            weight: 0.0,
            entry,
            requests: Vec::new(),
            self_time_ticks: None,
        };
        let mut requests: IndexMap<(ArcKind, u8, usize), f64> = IndexMap::new();
        for (scenario, sums) in &self.classes[class].sums {
            let factor = factors[*scenario as usize];
            start.weight += factor * sums.weight;
            if sums.self_time[0].n > 0 {
                start.self_time_ticks = Some(start.self_time_ticks.unwrap_or(0.0) + factor * sums.self_time[0].sum);
            }
            // By behaviour the sums are those of one occurrence.
            let times = if by_operation { factor } else { factor * sums.weight };
            for ((kind, phase, target), of_kind) in &sums.requests {
                *requests.entry((*kind, *phase, merged.entry_of[*target])).or_insert(0.0) += times * of_kind.sum;
            }
        }
        start.requests = requests.into_iter().collect();
        start.requests.sort_by_key(|(request, _)| *request);
        start
    }

    fn entry(&self, number: usize, factors: &[f64], entry_of: &[usize]) -> MergedEntry {
        let (signature, class) = self.classes.get_index(number).expect("the number is of a class");
        let pooled = Pooled::of(class, factors, self.is_by_operation(number));
        let (whole, all) = (pooled.requests_weight, pooled.weight);
        let arc = |(kind, phase, target): (ArcKind, u8, usize), sums: RequestSums| MergedArc {
            kind,
            phase,
            target: entry_of[target],
            mean: if sums.whole > 0.0 { sums.whole / whole } else { sums.sum / all },
            counts: sums.counts.into_iter().collect(),
        };
        let mut arcs: Vec<MergedArc> = pooled.requests.into_iter().map(|(key, sums)| arc(key, sums)).collect();
        arcs.sort_by_key(|arc| (arc.kind, arc.phase, arc.target));
        let forks = joined(pooled.forks, whole).into_iter().map(|(shape, fork)| MergedFork {
            mean: fork.weight / whole,
            branches: shape
                .into_iter()
                .zip(fork.requests)
                .map(|(branch, sums)| branch.into_iter().zip(sums).map(|((kind, class), sums)| arc((kind, 1, class), sums)).collect())
                .collect(),
        });
        MergedEntry {
            task: signature.task,
            accepts: signature.accepts,
            operation: class.operation,
            n_occurrences: pooled.n,
            first: class.first,
            examples: class.examples.iter().map(|trace| self.trace_names.name(*trace).to_owned()).collect(),
            arcs,
            forks: forks.collect(),
            self_times: self_times(&pooled.self_time, pooled.weight),
        }
    }
}

/// The sums of a class over scenarios.
#[derive(Default)]
struct Pooled {
    n: u64,
    weight: f64,
    /// What the requests are divided by: the weight of the occurrences that are known whole, or where there are none, of all.
    requests_weight: f64,
    self_time: [TimeSums; 2],
    requests: hashed::IndexMap<(ArcKind, u8, usize), RequestSums>,
    forks: BTreeMap<ForkShape, ForkSums>,
}

impl Pooled {
    fn of(class: &Class, factors: &[f64], by_operation: bool) -> Self {
        let mut pooled = Self::default();
        let mut partial = 0.0;
        for (position, (scenario, sums)) in class.sums.iter().enumerate() {
            let factor = factors[*scenario as usize];
            pooled.n += sums.n;
            pooled.weight += factor * sums.weight;
            partial += factor * sums.partial;
            for (all, here) in pooled.self_time.iter_mut().zip(&sums.self_time) {
                all.add_scaled(here, factor);
            }
            if by_operation {
                pooled.add_requests(&sums.requests, &sums.forks, factor);
            } else if position == 0 {
                pooled.add_requests(&sums.requests, &sums.forks, 1.0);
            }
        }
        pooled.requests_weight = match (by_operation, partial < pooled.weight) {
            (false, _) => 1.0,
            (true, true) => pooled.weight - partial,
            (true, false) => pooled.weight,
        };
        if !by_operation {
            // What one occurrence showed, all of them do.
            let n = pooled.n;
            let of_forks = pooled.forks.values_mut().flat_map(|fork| fork.requests.iter_mut().flatten());
            pooled.requests.values_mut().chain(of_forks).flat_map(|sums| sums.counts.values_mut()).for_each(|times| *times *= n);
        }
        pooled
    }

    fn add_requests(
        &mut self,
        requests: &hashed::IndexMap<(ArcKind, u8, usize), RequestSums>,
        forks: &BTreeMap<ForkShape, ForkSums>,
        factor: f64,
    ) {
        for (key, sums) in requests {
            self.requests.entry(*key).or_default().add_scaled(sums, factor);
        }
        for (shape, sums) in forks {
            self.forks.entry(shape.clone()).or_default().add_scaled(sums, factor);
        }
    }
}

/// Most forks of one shape in an invocation for smaller ones to be taken for it.
const ONCE: f64 = 1.05;

/// Branches of a fork need not overlap in every invocation: a fork all of whose branches another one has is that other one with
/// some branches out of step, unless both together are made more than once in an invocation.
fn joined(forks: BTreeMap<ForkShape, ForkSums>, n_invocations: f64) -> Vec<(ForkShape, ForkSums)> {
    let mut by_size: Vec<(ForkShape, ForkSums)> = forks.into_iter().collect();
    by_size.sort_by(|(a, of_a), (b, of_b)| b.len().cmp(&a.len()).then(of_b.weight.total_cmp(&of_a.weight)));
    let mut kept: Vec<(ForkShape, ForkSums)> = Vec::new();
    for (shape, fork) in by_size {
        let fits = |whole: &ForkSums| whole.weight + fork.weight <= ONCE * n_invocations;
        let whole = kept.iter_mut().find_map(|(known, whole)| Some((places(&shape, known)?, whole)).filter(|(_, whole)| fits(whole)));
        let Some((places, whole)) = whole else {
            kept.push((shape, fork));
            continue;
        };
        whole.weight += fork.weight;
        for (place, more) in places.into_iter().zip(fork.requests) {
            whole.requests[place].iter_mut().zip(more).for_each(|(here, there)| here.add_scaled(&there, 1.0));
        }
    }
    kept
}

/// Where each branch of a part stands among those of a whole; both are sorted.
fn places(part: &ForkShape, whole: &ForkShape) -> Option<Vec<usize>> {
    let mut from = 0;
    let place = |branch| {
        let at = from + whole[from..].iter().position(|other| other == branch)?;
        from = at + 1;
        Some(at)
    };
    part.iter().map(place).collect()
}

/// An occurrence without a second phase counts as zero in its mean; one whose first phase is not known does not count.
fn self_times(sums: &[TimeSums; 2], weight: f64) -> [Option<MergedTime>; 2] {
    let of_all = TimeSums { weight, ..sums[1] };
    [&sums[0], &of_all].map(|sums| {
        (sums.n > 0 && sums.weight > 0.0).then(|| {
            let mean_ticks = sums.sum / sums.weight;
            let variance = (sums.sum_of_squares / sums.weight - mean_ticks * mean_ticks).max(0.0);
            let variation = (sums.n > 1 && mean_ticks > 0.0).then(|| variance.sqrt() / mean_ticks);
            MergedTime { mean_ticks, variation }
        })
    })
}
