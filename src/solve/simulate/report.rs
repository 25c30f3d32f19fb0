//! From batches to a [`Solution`]: results per copy of replicated elements.

use indexmap::IndexMap;

use super::{
    distribution::Blocks,
    estimate::{Batches, Estimate},
    network::{Network, OriginActivity, OriginEntry, OriginJoin, Watch, Watched},
    statistics::Layout,
};
use crate::solve::{
    ActivityResult, AskedTimes, Bin, CallResult, Distribution, EntryResult, Exceedance, JoinResult, ProcessorResult, ResultCallKind,
    Solution, TaskResult, results::several,
};

/// The results by element.
pub(super) fn solution(network: &Network, layout: &Layout, batches: &Batches) -> Solution {
    let report = Report { network, layout, batches };
    Solution {
        processors: report.processors(),
        tasks: report.tasks(),
        entries: network.origins.entries.iter().enumerate().map(|(e, entry)| (entry.name.clone(), report.entry(e, entry))).collect(),
        activities: report.activities(),
        calls: report.calls(),
        joins: report.joins(),
        ..Solution::default()
    }
}

/// Adds distributions of times to the results.
pub(super) fn distributions(
    solution: &mut Solution,
    network: &Network,
    (layout, batches): (&Layout, &Batches),
    blocks: &Blocks<'_>,
    quantiles: &[f64],
) {
    let report = Report { network, layout, batches };
    for (e, entry) in network.origins.entries.iter().enumerate() {
        if let Some(result) = solution.entries.get_mut(&entry.name) {
            result.response_time = report.response(e, blocks, quantiles);
        }
    }
    for (w, watch) in network.origins.watches.iter().enumerate() {
        let Some(asked) = asked(w, watch, blocks) else { continue };
        let origins = &network.origins;
        let list = match watch.of {
            Watched::Phase { entry, .. } => solution.entries.get_mut(&origins.entries[entry].name).map(|r| &mut r.asked_times),
            Watched::Activity { activity } => {
                let of = &origins.activities[activity];
                let results = solution.activities.get_mut(&origins.tasks[of.task].name);
                results.and_then(|r| r.get_mut(&of.name)).map(|r| &mut r.asked_times)
            }
            Watched::Holding { task } => solution.tasks.get_mut(&origins.tasks[task].name).map(|r| &mut r.asked_times),
            Watched::Join { join } => {
                let of = &origins.joins[join];
                let found = solution.joins.iter_mut().find(|r| r.task == origins.tasks[of.task].name && r.activities == of.activities);
                found.map(|r| &mut r.asked_times)
            }
        };
        if let Some(list) = list {
            list.push(asked);
        }
    }
}

/// What watch number `w` counted; `None` where it counted nothing.
fn asked(w: usize, watch: &Watch, blocks: &Blocks<'_>) -> Option<AskedTimes> {
    if blocks.is_unwatched(w) {
        return None;
    }
    let phase = match watch.of {
        Watched::Phase { phase, .. } => Some(phase),
        Watched::Activity { .. } | Watched::Holding { .. } | Watched::Join { .. } => None,
    };
    if watch.bins == 0 {
        let (probability, probability_half_width) = blocks.watched(w, 1);
        let exceeds = Some(Exceedance { limit: watch.end, probability, probability_half_width });
        return Some(AskedTimes { phase, exceeds, histogram: Vec::new() });
    }
    let width = (watch.end - watch.begin) / f64::from(watch.bins);
    let edge = |i: u32| if i == watch.bins { watch.end } else { watch.begin + width * f64::from(i) };
    let ends = (0..=watch.bins).map(|i| Some(edge(i))).chain([None]);
    let begins = [0.0].into_iter().chain((0..=watch.bins).map(edge));
    let bin = |(i, (begin, end)): (usize, (f64, Option<f64>))| {
        let (probability, probability_half_width) = blocks.watched(w, i);
        Bin { begin, end, probability, probability_half_width }
    };
    Some(AskedTimes { phase, exceeds: None, histogram: begins.zip(ends).enumerate().map(bin).collect() })
}

struct Report<'a> {
    network: &'a Network,
    layout: &'a Layout,
    batches: &'a Batches,
}

impl Report<'_> {
    fn rate(&self, place: usize, copies: f64) -> Estimate {
        self.batches.rate(place, 1.0 / copies)
    }

    /// Mean of the times summed at `place` and counted next to it; `None` where there were none.
    fn mean(&self, place: usize) -> Option<Estimate> {
        self.batches.mean(place, place + 1)
    }

    /// Mean and variance of the times summed at `place`, with their squares and number after it; `None` where there were none. A mean of 0
    /// has a half-width only where it is 0 by the structure of the model.
    fn moments(&self, place: usize, is_none: bool) -> Option<(Estimate, f64)> {
        let mean = self.batches.mean(place, place + 2)?;
        let square = self.batches.mean(place + 1, place + 2)?.mean;
        Some((if is_none { mean } else { mean.unless_never() }, (square - mean.mean * mean.mean).max(0.0)))
    }

    /// Part of those counted next to `place` that are counted at `place`.
    fn part(&self, place: usize) -> Option<f64> {
        self.mean(place).map(|part| part.mean)
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
            let copies = f64::from(task.copies);
            let cycles = self.rate(self.layout.cycles(t), copies);
            let busy = self.rate(self.layout.task_level(t), copies);
            let mut result = TaskResult {
                throughput: cycles.mean,
                throughput_half_width: cycles.half_width,
                copies: several(task.copies),
                utilization: busy.mean,
                utilization_half_width: busy.half_width,
                ..TaskResult::default()
            };
            if let Some(lost) = self.mean(self.layout.task_lost(t)).map(Estimate::unless_never) {
                result.loss_probability = Some(lost.mean);
                result.loss_probability_half_width = lost.half_width;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
                let count = self.batches.total(self.layout.task_lost(t)) as u64;
                result.lost_requests = Some(count);
            }
            results.insert(task.name.clone(), result);
        }
        results
    }

    fn entry(&self, e: usize, entry: &OriginEntry) -> EntryResult {
        let copies = f64::from(self.network.origins.tasks[entry.task].copies);
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
            let response = self.mean(self.layout.open(e)).map(Estimate::unless_never);
            result.open_wait_time = response.map(|r| r.mean);
            result.open_wait_time_half_width = response.and_then(|r| r.half_width);
            if entry.is_bounded {
                result.loss_probability = self.part(self.layout.open_lost(e));
            }
        }
        if entry.is_taking {
            let holding = self.moments(self.layout.holding(e), false);
            result.holding_time = holding.map(|h| h.0.mean);
            result.holding_time_half_width = holding.and_then(|h| h.0.half_width);
            result.holding_time_variance = holding.map(|h| h.1);
        }
        result
    }

    fn phases(&self, e: usize, entry: &OriginEntry, result: &mut EntryResult) {
        let mut half_widths = Vec::new();
        let mut variances = Vec::new();
        for phase in 1..=entry.n_phases {
            let place = self.layout.phase(e, phase);
            let goes_on = || (phase + 1..=entry.n_phases).any(|p| self.batches.total(self.layout.phase(e, p) + 2) > 0.0);
            let skipped = || goes_on().then_some((Estimate { mean: 0.0, half_width: Some(0.0) }, 0.0));
            let is_none = entry.takes_time.get(phase - 1) == Some(&false);
            let time = self.moments(place, is_none).or_else(skipped);
            if phase > 1 && time.is_none() && !entry.has_phases {
                break;
            }
            result.service_times.push(time.map(|t| t.0.mean));
            half_widths.push(time.and_then(|t| t.0.half_width));
            variances.push(time.map(|t| t.1));
        }
        result.service_times_half_width = half_widths.iter().any(Option::is_some).then_some(half_widths);
        result.service_time_variances = Some(variances);
    }

    /// Distribution of the response times of entry `e`; `None` where there were none.
    fn response(&self, e: usize, blocks: &Blocks<'_>, quantiles: &[f64]) -> Option<Distribution> {
        let times = blocks.response(e);
        let count = times.count();
        if count == 0 {
            return None;
        }
        let (mean, variance) = self.moments(self.layout.response(e), false)?;
        Some(Distribution {
            count,
            mean: mean.mean,
            mean_half_width: mean.half_width,
            std_deviation: variance.sqrt(),
            quantiles: times.quantiles(quantiles),
            histogram: times.histogram(),
        })
    }

    fn activities(&self) -> IndexMap<String, IndexMap<String, ActivityResult>> {
        let mut results: IndexMap<String, IndexMap<String, ActivityResult>> = IndexMap::new();
        for (a, OriginActivity { task, name, takes_time }) in self.network.origins.activities.iter().enumerate() {
            let task = &self.network.origins.tasks[*task];
            let place = self.layout.activity(a);
            let time = self.mean(place).map(|time| if *takes_time { time.unless_never() } else { time });
            let rate = self.rate(place + 1, f64::from(task.copies));
            let result = ActivityResult {
                service_time: time.map(|t| t.mean),
                service_time_half_width: time.and_then(|t| t.half_width),
                throughput: rate.mean,
                throughput_half_width: rate.half_width,
                ..ActivityResult::default()
            };
            results.entry(task.name.clone()).or_default().insert(name.clone(), result);
        }
        results
    }

    fn calls(&self) -> Vec<CallResult> {
        let mut results = Vec::new();
        for (c, call) in self.network.origins.calls.iter().enumerate() {
            let to = &self.network.origins.entries[call.to];
            let waiting = self.moments(self.layout.waiting(c), to.is_immediate);
            let lost = (call.kind == ResultCallKind::Async && to.is_bounded).then(|| self.part(self.layout.lost(c))).flatten();
            results.push(CallResult {
                from: self.network.origins.entries[call.from].name.clone(),
                to: to.name.clone(),
                phase: call.phase,
                activity: call.activity.clone(),
                kind: call.kind,
                fan_out: several(call.fan_out),
                mean: call.mean,
                waiting: waiting.map(|w| w.0.mean),
                waiting_half_width: waiting.and_then(|w| w.0.half_width),
                waiting_variance: waiting.map(|w| w.1),
                loss_probability: lost,
            });
        }
        results
    }

    fn joins(&self) -> Vec<JoinResult> {
        let origins = &self.network.origins;
        let result = |(j, join): (usize, &OriginJoin)| {
            let delay = self.moments(self.layout.join(j), false);
            JoinResult {
                task: origins.tasks[join.task].name.clone(),
                activities: join.activities.clone(),
                delay: delay.map(|d| d.0.mean),
                delay_half_width: delay.and_then(|d| d.0.half_width),
                delay_variance: delay.map(|d| d.1),
                asked_times: Vec::new(),
            }
        };
        origins.joins.iter().enumerate().filter(|(_, join)| join.is_timed).map(result).collect()
    }
}
