//! Entries, phases, activities and calls.

use std::{collections::HashMap, ops::Range};

use super::{Compiler, index, task_element};
use crate::{
    model::{self, CallOrder},
    solve::{
        ResultCallKind, SolveError,
        bind::unusable,
        copies::check_connections,
        role::Role,
        simulate::{
            graph::{Graph, Step},
            law::{Family, Law},
            network::{Activity, Call, Entry, Fork, Forwarding, Join, Loop, Network, Next, OriginActivity, OriginCall, OriginJoin, Source},
        },
    },
};

impl Compiler<'_> {
    /// Registers calls, forwardings and joins for results: by entry and phase, by activity, the forwardings by entry.
    pub(super) fn call_origins(&mut self, t: usize, task: &model::Task, graph: &Graph) -> Result<CallOrigins, SolveError> {
        let mut origins = CallOrigins::default();
        for (e, entry) in task.entries.iter().enumerate() {
            let from = self.first_origin[t] + e;
            for phase in &entry.phases {
                let ids = self.calls_of(t, (from, phase.phase), None, &phase.activity)?;
                origins.phases.insert((e, phase.phase), ids);
            }
            origins.forwardings.push(self.network.origins.calls.len());
            for forwarding in &entry.forwarding {
                let mean = self.binder.amount(&forwarding.probability, &format!("entry \"{}\"", entry.name), "forwarding probability")?;
                let (to, kind) = (self.entry_origin(&forwarding.dest, &entry.name)?, ResultCallKind::Forward);
                let fan_out = self.fan_out(t, &forwarding.dest)?;
                self.network.origins.calls.push(OriginCall { from, to, phase: 1, activity: None, kind, fan_out, mean });
            }
        }
        origins.first_activity = self.network.origins.activities.len();
        for (a, activity) in task.activities.iter().enumerate() {
            self.network.origins.activities.push(OriginActivity { task: t, name: activity.name.clone(), takes_time: false });
            let (entry, phase) = graph.reached[a].unwrap_or((0, 1));
            let ids = self.calls_of(t, (self.first_origin[t] + entry, phase), Some(activity.name.clone()), activity)?;
            origins.activities.push(ids);
        }
        origins.first_join = self.network.origins.joins.len();
        for (j, join) in graph.joins.iter().enumerate() {
            let activities = join.inputs.iter().map(|&a| task.activities[a].name.clone()).collect();
            let is_timed = join.is_external || graph.joined.iter().any(|joins| joins.contains(&j));
            self.network.origins.joins.push(OriginJoin { task: t, activities, is_timed });
        }
        Ok(origins)
    }

    fn calls_of(
        &mut self,
        t: usize,
        (from, phase): (usize, u8),
        name: Option<String>,
        activity: &model::Activity,
    ) -> Result<usize, SolveError> {
        let first = self.network.origins.calls.len();
        for call in activity.counted_calls() {
            let mean = self.binder.amount(&call.mean, &format!("activity \"{}\"", activity.name), "mean number of calls")?;
            let to = self.entry_origin(&call.dest, &activity.name)?;
            let (activity, fan_out) = (name.clone(), self.fan_out(t, &call.dest)?);
            self.network.origins.calls.push(OriginCall { from, to, phase, activity, kind: call.kind.into(), fan_out, mean });
        }
        Ok(first)
    }

    fn entry_origin(&self, name: &str, caller: &str) -> Result<usize, SolveError> {
        let found = self.entries.get(name).map(|&(t, e)| self.first_origin[t] + e);
        found.ok_or_else(|| unusable(format!("\"{caller}\""), format!("it calls entry \"{name}\", which does not exist")))
    }

    pub(super) fn entries_of(
        &mut self,
        t: usize,
        task: &model::Task,
        copy: u32,
        graph: &Graph,
        origins: &CallOrigins,
        family: Family,
    ) -> Result<(), SolveError> {
        let first_activity = index(self.network.activities.len());
        let number = self.placements[t].first_task + copy;
        for (a, activity) in task.activities.iter().enumerate() {
            let site = Site { t, copy, number, family, phase: 0, origin: index(origins.first_activity + a) };
            let takes_time = self.activity(&site, activity, origins.activities[a])?;
            self.network.origins.activities[origins.first_activity + a].takes_time |= takes_time;
        }
        self.link(graph, (t, copy), first_activity, origins.first_join);
        for (e, entry) in task.entries.iter().enumerate() {
            let mut first = graph.first[e].map(|a| first_activity + index(a));
            let mut phases: Vec<_> = entry.phases.iter().collect();
            phases.sort_by_key(|p| p.phase);
            for (i, phase) in phases.iter().enumerate() {
                let this = index(self.network.activities.len());
                let site = Site { t, copy, number, family, phase: phase.phase, origin: u32::MAX };
                let takes_time = self.activity(&site, &phase.activity, origins.phases[&(e, phase.phase)])?;
                let origin = &mut self.network.origins.entries[self.first_origin[t] + e];
                if let Some(phase_takes_time) = origin.takes_time.get_mut(usize::from(phase.phase).wrapping_sub(1)) {
                    *phase_takes_time |= takes_time;
                }
                if i + 1 < phases.len() {
                    self.network.activities[this as usize].next = Next::Activity(this + 1);
                }
                first = first.or(Some(this));
            }
            self.entry(t, e, copy, first, origins)?;
        }
        Ok(())
    }

    fn entry(&mut self, t: usize, e: usize, copy: u32, first: Option<u32>, origins: &CallOrigins) -> Result<(), SolveError> {
        let entry = &self.model.tasks[t].entries[e];
        let element = format!("entry \"{}\"", entry.name);
        let number = index(self.network.entries.len());
        if let Some(rate) = &entry.open_arrival_rate {
            let rate = self.binder.amount(rate, &element, "open arrival rate")?;
            if rate > 0.0 {
                self.network.sources.push(Source { entry: number, mean_gap: 1.0 / rate });
            }
        }
        let first_forwarding = index(self.network.forwardings.len());
        let mut cumulative = 0.0;
        for (f, forwarding) in entry.forwarding.iter().enumerate() {
            let origin = origins.forwardings[e] + f;
            for to in self.targets(t, copy, &forwarding.dest)? {
                cumulative += self.network.origins.calls[origin].mean;
                self.network.forwardings.push(Forwarding { origin: index(origin), entry: to, cumulative });
            }
        }
        if cumulative > 1.0 + 1e-9 {
            return Err(unusable(element, format!("its forwarding probabilities sum to {cumulative}, expected at most 1")));
        }
        let priority = entry.priority.as_ref().map(|p| self.binder.finite(p, &element, "priority")).transpose()?;
        self.network.entries.push(Entry {
            origin: index(self.first_origin[t] + e),
            task: self.placements[t].first_task + copy,
            role: Role::of(entry),
            priority: priority.unwrap_or(0.0),
            first,
            has_phases: entry.start_activity.is_none(),
            forwardings: first_forwarding..index(self.network.forwardings.len()),
        });
        Ok(())
    }

    /// Task and entry of `name`, which task `t` calls.
    fn called(&self, t: usize, name: &str) -> Result<(usize, usize), SolveError> {
        let missing = || unusable(task_element(&self.model.tasks[t]), format!("it calls entry \"{name}\", which does not exist"));
        self.entries.get(name).copied().ok_or_else(missing)
    }

    /// To how many copies of the task of entry `name` a copy of task `t` sends.
    fn fan_out(&self, t: usize, name: &str) -> Result<u32, SolveError> {
        let task = &self.model.tasks[t];
        let (d, _) = self.called(t, name)?;
        let called = &self.model.tasks[d];
        let fan = |list: &[model::Fan], other: &str, what: &str| -> Result<u32, SolveError> {
            let value = list.iter().find(|f| f.task == other).map(|f| &f.value);
            value.map_or(Ok(1), |v| self.binder.whole(v, &task_element(task), what, 1.0))
        };
        let out = fan(&task.fan_out, &called.name, "fan-out")?;
        let fan_in = fan(&called.fan_in, &task.name, "fan-in")?;
        let (copies, there) = (self.placements[t].copies, &self.placements[d]);
        check_connections(&task.name, &called.name, (copies, out), (there.copies, fan_in))?;
        Ok(out)
    }

    /// The entries over all copies that a call of copy `copy` of task `t` to `name` reaches.
    fn targets(&self, t: usize, copy: u32, name: &str) -> Result<Vec<u32>, SolveError> {
        let ((d, e), out) = (self.called(t, name)?, self.fan_out(t, name)?);
        let there = &self.placements[d];
        let to = |k: u32| there.first_entry + (copy * out + k) % there.copies * there.n_entries + index(e);
        Ok((0..out).map(to).collect())
    }

    /// Adds a phase or activity. Whether it can take time.
    fn activity(&mut self, site: &Site, activity: &model::Activity, origin: usize) -> Result<bool, SolveError> {
        let element = format!("activity \"{}\"", activity.name);
        let deterministic = activity.call_order == CallOrder::Deterministic;
        let first_call = index(self.network.calls.len());
        let mut n_calls = 0.0;
        for (i, call) in activity.counted_calls().enumerate() {
            let what = "number of deterministic calls";
            let count = if deterministic { self.binder.whole(&call.mean, &element, what, 0.0)? } else { 0 };
            let mean = self.network.origins.calls[origin + i].mean;
            for entry in self.targets(site.t, site.copy, &call.dest)? {
                n_calls += mean;
                let is_sync = call.kind == model::CallKind::Sync;
                self.network.calls.push(Call { origin: index(origin + i), entry, is_sync, cumulative: n_calls, count });
            }
        }
        let demand = self.binder.amount(&activity.host_demand, &element, "host demand")?;
        let cvsq = self.binder.amount(&activity.host_demand_cvsq, &element, "squared coefficient of variation")?;
        let p = self.hosts[site.t];
        let mean = demand / (1.0 + n_calls) / self.speeds[p];
        let slice = Law::new(site.family, mean, cvsq).map_err(|reason| unusable(&element, reason))?;
        if demand > 0.0 {
            let shortest = self.network.shortest_slice.map_or(mean, |shortest| shortest.min(mean));
            self.network.shortest_slice = Some(shortest);
            self.slices[p].0 += mean;
            self.slices[p].1 += 1.0;
        }
        let think = self.binder.amount(&activity.think_time, &element, "think time")?;
        self.network.activities.push(Activity {
            origin: site.origin,
            task: site.number,
            phase: site.phase,
            think,
            has_demand: demand > 0.0,
            slice,
            order: activity.call_order,
            calls: first_call..index(self.network.calls.len()),
            n_calls,
            replies: Vec::new(),
            next: Next::End,
        });
        let waits = self.network.calls[first_call as usize..].iter().any(|call| call.is_sync);
        Ok(demand > 0.0 || think > 0.0 || waits)
    }

    /// Numbers a task's graph over all copies.
    fn link(&mut self, graph: &Graph, (t, copy): (usize, u32), first_activity: u32, first_join_origin: usize) {
        let network = &mut self.network;
        let first_fork = index(network.forks.len());
        let first_join = index(network.joins.len());
        let entry = self.placements[t].first_entry + copy * self.placements[t].n_entries;
        let shift = Shift { first_activity, first_fork, first_join };
        for (branches, joins) in graph.forks.iter().zip(&graph.joined) {
            let branches = branches.iter().map(|&b| first_activity + index(b)).collect();
            network.forks.push(Fork { branches, joins: joins.iter().map(|&j| index(j)).collect() });
        }
        network.joins_of_a_task = network.joins_of_a_task.max(graph.joins.len());
        for (slot, join) in graph.joins.iter().enumerate() {
            let next = shift.step(&join.next, network);
            let origin = index(first_join_origin + slot);
            network.joins.push(Join { origin, is_external: join.is_external, slot: index(slot), needed: index(join.needed), next });
        }
        for (a, step) in graph.next.iter().enumerate() {
            let this = first_activity + index(a);
            let next = shift.step(step, network);
            let activity = &mut network.activities[this as usize];
            activity.next = next;
            activity.replies = graph.replies[a].iter().map(|&e| entry + index(e)).collect();
        }
    }
}

/// Origins of the calls of a task.
#[derive(Default)]
pub(super) struct CallOrigins {
    phases: HashMap<(usize, u8), usize>,
    forwardings: Vec<usize>,
    activities: Vec<usize>,
    first_activity: usize,
    first_join: usize,
}

/// Where an activity belongs.
struct Site {
    t: usize,
    copy: u32,
    number: u32,
    family: Family,
    phase: u8,
    origin: u32,
}

/// Offsets of one copy's graph.
struct Shift {
    first_activity: u32,
    first_fork: u32,
    first_join: u32,
}

impl Shift {
    /// Cumulative weights of a list.
    fn list(&self, from: &[(f64, usize)], network: &mut Network) -> (Range<u32>, f64) {
        let first = index(network.choices.len());
        let mut sum = 0.0;
        for &(weight, activity) in from {
            sum += weight;
            network.choices.push((sum, self.first_activity + index(activity)));
        }
        (first..index(network.choices.len()), sum)
    }

    fn step(&self, step: &Step, network: &mut Network) -> Next {
        match step {
            Step::End => Next::End,
            Step::Activity(a) => Next::Activity(self.first_activity + index(*a)),
            Step::Fork(f) => Next::Fork(self.first_fork + index(*f)),
            Step::Or(branches) => Next::Or(self.list(branches, network).0),
            Step::Loop(bodies, end) => {
                let (bodies, total) = self.list(bodies, network);
                network.loops.push(Loop { bodies, total, end: end.map(|a| self.first_activity + index(a)) });
                Next::Loop(index(network.loops.len() - 1))
            }
            Step::Join(j) => Next::Join(self.first_join + index(*j)),
        }
    }
}
