//! What waits for what, when nothing moves any more or requests pile up.

use std::{collections::BTreeSet, fmt::Write};

use super::run::{NONE, Resume, Run};
use crate::solve::{SolveError, role::Role};

/// Most waits that a message names.
const NAMED_LIMIT: usize = 8;

impl Run<'_> {
    /// The error of a run in which nothing can happen any more.
    pub(super) fn deadlock(&self) -> SolveError {
        let live = |strand: usize| self.strands.items[strand].is_live;
        let stuck: Vec<bool> = (0..self.strands.items.len()).map(live).collect();
        SolveError::Deadlock { time: self.now, waits: self.waits(&stuck) }
    }

    /// The error of a run in which requests pile up, naming where most of them wait.
    pub(super) fn unbounded(&self) -> SolveError {
        let lengths = self.servers.iter().map(|s| s.waiting().len());
        let longest = lengths.enumerate().max_by_key(|&(_, n)| n);
        let (task, waiting) = longest.unwrap_or((0, 0));
        let network = self.network;
        #[expect(clippy::cast_possible_truncation, reason = "bounded by the limit of elements")]
        if waiting > 0 {
            return SolveError::Unbounded { resource: format!("task \"{}\"", network.task_name(task as u32)), waiting };
        }
        let mut jobs = vec![0_usize; network.processors.len()];
        for (s, strand) in self.strands.items.iter().enumerate() {
            if strand.is_live && strand.resume == Resume::Service {
                #[expect(clippy::cast_possible_truncation, reason = "strands are numbered in 32 bits")]
                let processor = self.processor_of(s as u32);
                jobs[processor as usize] += 1;
            }
        }
        let (processor, waiting) = jobs.into_iter().enumerate().max_by_key(|&(_, n)| n).unwrap_or((0, 0));
        let origin = network.processors.get(processor).map_or(0, |p| p.origin as usize);
        let name = network.origins.processors.get(origin).map_or("", |p| p.0.as_str());
        SolveError::Unbounded { resource: format!("processor \"{name}\""), waiting }
    }

    /// The error of a run in which some strands wait for one another for ever while others go on, if there are any.
    ///
    /// A strand is alive when it thinks, is at a processor, or waits for an instance or in a queue of a task that has a
    /// strand alive. What waits for a lock, or at or for a join of several entries, is alive as long as there is a strand alive
    /// (or a stream of open arrivals) whose task can, by calls of any depth, give the lock back or reach the join.
    pub(super) fn partial_deadlock(&self) -> Option<SolveError> {
        let n = self.strands.items.len();
        let mut alive: Vec<bool> = self.strands.items.iter().map(|s| s.is_live && s.resume != Resume::Blocked).collect();
        let mut task_alive = vec![false; self.network.tasks.len()];
        let openers = self.openers();
        for source in &self.network.sources {
            let task = self.network.entries[source.entry as usize].task as usize;
            openers[task].iter().for_each(|&t| task_alive[t as usize] = true);
        }
        loop {
            let mut changed = false;
            for instance in self.parked.iter().flatten().map(|&i| self.instances.items[i as usize]) {
                if task_alive[instance.task as usize] {
                    changed |= self.revive(instance.caller, &mut alive);
                }
            }
            for s in 0..n {
                let strand = self.strands.items[s];
                if strand.is_live && alive[s] {
                    let task = self.instances.items[strand.instance as usize].task;
                    changed |= !std::mem::replace(&mut task_alive[task as usize], true);
                    for &opened in &openers[task as usize] {
                        changed |= !std::mem::replace(&mut task_alive[opened as usize], true);
                    }
                    let mut instance = strand.instance;
                    while let Some(joined) = self.instances.items.get(instance as usize) {
                        changed |= self.revive(joined.caller, &mut alive);
                        instance = joined.partner;
                    }
                }
            }
            for (server, _) in self.servers.iter().zip(&task_alive).filter(|(_, alive)| **alive) {
                for request in server.waiting() {
                    changed |= self.revive(request.caller, &mut alive);
                }
            }
            if !changed {
                break;
            }
        }
        let stuck: Vec<bool> = (0..n).map(|s| self.strands.items[s].is_live && !alive[s]).collect();
        stuck.contains(&true).then(|| SolveError::Deadlock { time: self.now, waits: self.waits(&stuck) })
    }

    /// For each task the locks that it can give back, and the tasks with joins of several entries that it can reach, by calls
    /// of any depth.
    fn openers(&self) -> Vec<Vec<u32>> {
        let network = self.network;
        let n = network.tasks.len();
        let mut opens: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); n];
        let mut calls: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); n];
        let mut reach = |from: u32, entry: u32| {
            let to = network.entries[entry as usize].task;
            calls[from as usize].insert(to);
            let is_taking = matches!(network.entries[entry as usize].role, Role::Wait | Role::ReadLock | Role::WriteLock);
            if network.tasks[to as usize].kind.is_open_ended() && !is_taking {
                opens[from as usize].insert(to);
            }
        };
        for activity in &network.activities {
            network.calls[activity.calls.start as usize..activity.calls.end as usize].iter().for_each(|c| reach(activity.task, c.entry));
        }
        for entry in &network.entries {
            let forwardings = &network.forwardings[entry.forwardings.start as usize..entry.forwardings.end as usize];
            forwardings.iter().for_each(|f| reach(entry.task, f.entry));
        }
        for source in &network.sources {
            reach(network.entries[source.entry as usize].task, source.entry);
        }
        loop {
            let mut changed = false;
            for task in 0..n {
                let found: Vec<u32> = calls[task].iter().flat_map(|&to| opens[to as usize].iter().copied()).collect();
                let before = opens[task].len();
                opens[task].extend(found);
                changed |= opens[task].len() > before;
            }
            if !changed {
                return opens.into_iter().map(|set| set.into_iter().collect()).collect();
            }
        }
    }

    fn revive(&self, strand: u32, alive: &mut [bool]) -> bool {
        strand != NONE && !std::mem::replace(&mut alive[strand as usize], true)
    }

    /// What the stuck strands wait for, by task and entry.
    fn waits(&self, stuck: &[bool]) -> Vec<String> {
        let mut waits: Vec<String> = Vec::new();
        let mut add = |text: String| {
            if !waits.contains(&text) {
                waits.push(text);
            }
        };
        for server in &self.servers {
            for request in server.waiting() {
                if request.caller == NONE || !stuck.get(request.caller as usize).copied().unwrap_or(false) {
                    continue;
                }
                let instance = self.strands.items[request.caller as usize].instance;
                let caller = self.network.task_name(self.instances.items[instance as usize].task);
                let entry = &self.network.entries[request.entry as usize];
                let entry_name = &self.network.origins.entries[entry.origin as usize].name;
                let mut text = format!("task \"{caller}\" waits for entry \"{entry_name}\"");
                let _ = write!(text, " of task \"{}\"", self.network.task_name(entry.task));
                add(text);
            }
        }
        for instance in self.parked.iter().flatten() {
            let task = self.network.task_name(self.instances.items[*instance as usize].task);
            add(format!("task \"{task}\" waits at a join of several entries"));
        }
        let more = waits.len().saturating_sub(NAMED_LIMIT);
        waits.truncate(NAMED_LIMIT);
        if more > 0 {
            waits.push(format!("{more} more"));
        }
        waits
    }
}
