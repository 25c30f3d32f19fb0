//! From mean rewards to a [`Solution`].
//!
//! By Little's law a mean time is the mean number of those to whom it happens over the rate at which it ends: the wait of a
//! call is the mean number of its requests in the queue over the rate at which they are accepted, a phase's service
//! time the mean number of instances in it over the rate at which it ends.

use indexmap::IndexMap;

use super::{
    compile::index,
    network::{Lock, Network},
    rewards::Layout,
};
use crate::{
    model::Model,
    solve::{ActivityResult, CallResult, EntryResult, ProcessorResult, ResultCallKind, Solution, TaskResult, role::Role},
};

/// The results from the mean rewards.
pub(super) fn solution(model: &Model, network: &Network, means: &[f64]) -> Solution {
    let names = model.tasks.iter().flat_map(|t| &t.entries).map(|e| e.name.as_str()).collect();
    let report = Report { model, network, layout: Layout::new(network), names, means };
    let entries: IndexMap<String, EntryResult> =
        (0..network.entries.len()).map(|e| (report.names[e].to_owned(), report.entry(index(e)))).collect();
    Solution {
        model: model.name.clone(),
        processors: report.processors(),
        tasks: report.tasks(),
        activities: report.activities(),
        calls: (0..network.routes.len()).map(|r| report.call(index(r))).collect(),
        entries,
        ..Solution::default()
    }
}

struct Report<'a> {
    model: &'a Model,
    network: &'a Network,
    layout: Layout,
    /// Names of the entries.
    names: Vec<&'a str>,
    means: &'a [f64],
}

impl Report<'_> {
    /// The part that the mean at `part` is of the one at `whole`; 0 where nothing happens.
    fn ratio(&self, part: usize, whole: usize) -> f64 {
        if self.means[whole] > 0.0 { self.means[part] / self.means[whole] } else { 0.0 }
    }

    fn processors(&self) -> IndexMap<String, ProcessorResult> {
        let result = |p: usize| ProcessorResult { utilization: self.means[p], ..ProcessorResult::default() };
        self.model.processors.iter().enumerate().map(|(p, processor)| (processor.name.clone(), result(p))).collect()
    }

    fn tasks(&self) -> IndexMap<String, TaskResult> {
        let sum = |entries: std::ops::Range<u32>, place: fn(&Layout, u32) -> usize| -> f64 {
            entries.map(|e| self.means[place(&self.layout, e)]).sum()
        };
        let result = |t: usize| TaskResult {
            throughput: sum(self.network.tasks[t].entries.clone(), self.cycles(t)),
            utilization: sum(self.network.tasks[t].entries.clone(), Layout::busy),
            ..TaskResult::default()
        };
        self.model.tasks.iter().enumerate().map(|(t, task)| (task.name.clone(), result(t))).collect()
    }

    /// What is counted as a task's cycles: of a lock, what it gets back.
    fn cycles(&self, t: usize) -> fn(&Layout, u32) -> usize {
        if self.network.tasks[t].lock == Lock::None { Layout::completions } else { Layout::gives }
    }

    fn entry(&self, e: u32) -> EntryResult {
        let (layout, spec) = (&self.layout, &self.network.entries[e as usize]);
        let mut result = EntryResult {
            throughput: self.means[layout.completions(e)],
            utilization: self.means[layout.busy(e)],
            ..EntryResult::default()
        };
        for phase in 1..=spec.n_phases {
            if phase > 1 && !spec.has_phases && self.means[layout.phase_ends(e, phase)] <= 0.0 {
                break;
            }
            result.service_times.push(Some(self.ratio(layout.in_phase(e, phase), layout.phase_ends(e, phase))));
        }
        if self.network.sources.iter().any(|s| s.0 == e) {
            result.open_wait_time = Some(self.ratio(layout.open(e), layout.open_replies(e)));
            result.loss_probability = Some(self.ratio(layout.open_lost(e), layout.open_offered(e)));
        }
        if matches!(spec.role, Role::Wait | Role::ReadLock | Role::WriteLock) {
            result.holding_time = Some(self.ratio(layout.held(e), layout.gives(e)));
        }
        result
    }

    fn activities(&self) -> IndexMap<String, IndexMap<String, ActivityResult>> {
        let mut results: IndexMap<String, IndexMap<String, ActivityResult>> = IndexMap::new();
        for (a, activity) in self.network.activities.iter().enumerate().filter(|a| a.1.phase == 0) {
            let (level, ends) = (self.layout.in_activity(index(a)), self.layout.activity_ends(index(a)));
            let result =
                ActivityResult { service_time: Some(self.ratio(level, ends)), throughput: self.means[ends], ..ActivityResult::default() };
            let task = &self.model.tasks[activity.task as usize];
            results.entry(task.name.clone()).or_default().insert(activity.name.clone(), result);
        }
        results
    }

    fn call(&self, r: u32) -> CallResult {
        let route = &self.network.routes[r as usize];
        let layout = &self.layout;
        CallResult {
            from: self.names[route.from as usize].to_owned(),
            to: self.names[route.to as usize].to_owned(),
            phase: route.phase,
            activity: route.activity.map(|a| self.network.activities[a as usize].name.clone()),
            kind: route.kind,
            fan_out: None,
            mean: route.mean,
            waiting: Some(self.ratio(layout.waiting(r), layout.accepted(r))),
            waiting_half_width: None,
            waiting_variance: None,
            loss_probability: (route.kind == ResultCallKind::Async).then(|| self.ratio(layout.lost(r), layout.offered(r))),
        }
    }
}
