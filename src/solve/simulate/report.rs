//! From batches to a [`Solution`]: results per copy of replicated elements.

use indexmap::IndexMap;

use super::{
    estimate::{Batches, Estimate, Per},
    network::{Network, OriginEntry},
    statistics::Layout,
};
use crate::solve::{ActivityResult, CallResult, EntryResult, ProcessorResult, ResultCallKind, Solution, TaskResult};

/// The results by element.
pub(super) fn solution(network: &Network, layout: &Layout, batches: &Batches) -> Solution {
    let report = Report { network, layout, batches };
    Solution {
        processors: report.processors(),
        tasks: report.tasks(),
        entries: network.origins.entries.iter().enumerate().map(|(e, entry)| (entry.name.clone(), report.entry(e, entry))).collect(),
        activities: report.activities(),
        calls: report.calls(),
        ..Solution::default()
    }
}

struct Report<'a> {
    network: &'a Network,
    layout: &'a Layout,
    batches: &'a Batches,
}

impl Report<'_> {
    fn rate(&self, place: usize, copies: f64) -> Estimate {
        self.batches.estimate(place, Per::Time, 1.0 / copies)
    }

    /// Mean of the times summed at `place` and counted next to it.
    fn mean(&self, place: usize) -> Estimate {
        self.batches.estimate(place, Per::Place(place + 1), 1.0)
    }

    /// Part of those counted next to `place` that are counted at `place`.
    fn part(&self, place: usize) -> f64 {
        self.batches.estimate(place, Per::Place(place + 1), 1.0).mean
    }

    fn processors(&self) -> IndexMap<String, ProcessorResult> {
        let result = |(p, (name, copies)): (usize, &(String, f64))| {
            let busy = self.rate(p, *copies);
            (name.clone(), ProcessorResult { utilization: busy.mean, utilization_half_width: busy.half_width })
        };
        self.network.origins.processors.iter().enumerate().map(result).collect()
    }

    fn tasks(&self) -> IndexMap<String, TaskResult> {
        let mut results = IndexMap::new();
        for (t, task) in self.network.origins.tasks.iter().enumerate() {
            let cycles = self.rate(self.layout.cycles(t), task.copies);
            let busy = self.rate(self.layout.task_level(t), task.copies);
            let result = TaskResult {
                throughput: cycles.mean,
                throughput_half_width: cycles.half_width,
                utilization: busy.mean,
                utilization_half_width: busy.half_width,
            };
            results.insert(task.name.clone(), result);
        }
        results
    }

    fn entry(&self, e: usize, entry: &OriginEntry) -> EntryResult {
        let copies = self.network.origins.tasks[entry.task].copies;
        let completions = self.rate(self.layout.completions(e), copies);
        let busy = self.rate(self.layout.entry_level(e), copies);
        let mut result = EntryResult {
            throughput: completions.mean,
            throughput_half_width: completions.half_width,
            utilization: busy.mean,
            utilization_half_width: busy.half_width,
            ..EntryResult::default()
        };
        self.phases(e, entry, &mut result);
        if entry.is_open {
            let response = self.mean(self.layout.open(e));
            result.open_wait_time = Some(response.mean);
            result.open_wait_time_half_width = response.half_width;
            if entry.is_bounded {
                result.loss_probability = Some(self.part(self.layout.open_lost(e)));
            }
        }
        if entry.is_taking {
            let holding = self.mean(self.layout.holding(e));
            result.holding_time = Some(holding.mean);
            result.holding_time_half_width = holding.half_width;
        }
        result
    }

    fn phases(&self, e: usize, entry: &OriginEntry, result: &mut EntryResult) {
        let mut half_widths = Vec::new();
        let mut variances = Vec::new();
        for phase in 1..=entry.n_phases {
            let place = self.layout.phase(e, phase);
            let number = self.batches.total(place + 2);
            if phase > 1 && number == 0.0 && result.service_times.iter().any(|&s| s > 0.0) {
                break;
            }
            let time = self.batches.estimate(place, Per::Place(place + 2), 1.0);
            let square = self.batches.estimate(place + 1, Per::Place(place + 2), 1.0).mean;
            result.service_times.push(time.mean);
            half_widths.extend(time.half_width);
            variances.push((square - time.mean * time.mean).max(0.0));
        }
        result.service_times_half_width = (half_widths.len() == result.service_times.len()).then_some(half_widths);
        result.service_time_variances = Some(variances);
    }

    fn activities(&self) -> IndexMap<String, IndexMap<String, ActivityResult>> {
        let mut results: IndexMap<String, IndexMap<String, ActivityResult>> = IndexMap::new();
        for (a, (t, name)) in self.network.origins.activities.iter().enumerate() {
            let task = &self.network.origins.tasks[*t];
            let place = self.layout.activity(a);
            let (time, rate) = (self.mean(place), self.rate(place + 1, task.copies));
            let result = ActivityResult {
                service_time: time.mean,
                service_time_half_width: time.half_width,
                throughput: rate.mean,
                throughput_half_width: rate.half_width,
            };
            results.entry(task.name.clone()).or_default().insert(name.clone(), result);
        }
        results
    }

    fn calls(&self) -> Vec<CallResult> {
        let mut results = Vec::new();
        for (c, call) in self.network.origins.calls.iter().enumerate() {
            let waiting = self.mean(self.layout.waiting(c));
            let to = &self.network.origins.entries[call.to];
            let lost = (call.kind == ResultCallKind::Async && to.is_bounded).then(|| self.part(self.layout.lost(c)));
            results.push(CallResult {
                from: self.network.origins.entries[call.from].name.clone(),
                to: to.name.clone(),
                phase: call.phase,
                activity: call.activity.clone(),
                kind: call.kind,
                mean: call.mean,
                waiting: waiting.mean,
                waiting_half_width: waiting.half_width,
                loss_probability: lost,
            });
        }
        results
    }
}
