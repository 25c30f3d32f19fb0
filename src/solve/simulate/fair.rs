//! Fair shares (`cfs`): groups with guaranteed shares, tasks within groups.
//!
//! The credit of group `g` on `m` servers is `c_g(t) = s_g m t - u_g(t)`, with share `s_g` and used server time `u_g`; that
//! of a task is the same with an equal part of its group's share. At the end of every quantum the waiting group of the
//! largest `min(c_g, 0)` is served next, the one served longest ago among equals, and likewise the task within the group.
//! So groups below their share go first, credit accrues while a group is idle, and what is left is split equally. A task
//! that had no jobs comes back with no more credit than the other tasks of its group that have some.
//!
//! A capped group gains no credit while it has no jobs, and waits while its credit is negative: its rate is at most its
//! share even on an idle processor.

use std::collections::VecDeque;

use super::{calendar::Calendar, network};

#[derive(Debug)]
struct Group {
    /// Servers guaranteed.
    rate: f64,
    cap: bool,
    used: f64,
    /// When a capped group's credit was last zero with nothing to run.
    since: f64,
    /// Jobs waiting or running.
    jobs: usize,
    waiting: usize,
    served: u64,
    tasks: Vec<Member>,
}

#[derive(Debug, Default)]
struct Member {
    used: f64,
    /// Jobs waiting or running.
    jobs: usize,
    served: u64,
    queue: VecDeque<u32>,
}

impl Group {
    fn credit(&self, now: f64) -> f64 {
        self.rate * (now - self.since) - self.used
    }
}

/// Jobs under fair shares.
#[derive(Debug)]
pub(super) struct Fair {
    /// Timer of the processor, for capped groups.
    timer: u32,
    quantum: f64,
    turn: u64,
    /// Group and task of the job whose service ended last.
    last: (usize, usize),
    groups: Vec<Group>,
}

impl Fair {
    /// Without jobs.
    pub(super) fn new(timer: u32, servers: usize, quantum: f64, groups: &[network::Group]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a count of servers")]
        let make = |g: &network::Group| Group {
            rate: g.share * servers as f64,
            cap: g.cap,
            used: 0.0,
            since: 0.0,
            jobs: 0,
            waiting: 0,
            served: 0,
            tasks: (0..g.n_tasks).map(|_| Member::default()).collect(),
        };
        Self { timer, quantum, turn: 0, last: (0, 0), groups: groups.iter().map(make).collect() }
    }

    /// Length of a slice.
    pub(super) fn quantum(&self) -> f64 {
        self.quantum
    }

    /// A job arrives.
    pub(super) fn arrive(&mut self, now: f64, strand: u32, (g, task): (u32, u32)) {
        let group = &mut self.groups[g as usize];
        if group.cap && group.jobs == 0 && group.credit(now) > 0.0 {
            group.since = now;
            group.used = 0.0;
        }
        group.jobs += 1;
        let others = group.tasks.iter().filter(|t| t.jobs > 0).map(|t| t.used).fold(f64::INFINITY, f64::min);
        let member = &mut group.tasks[task as usize];
        if member.jobs == 0 && others.is_finite() {
            member.used = member.used.max(others);
        }
        member.jobs += 1;
        self.requeue(strand, (g, task));
    }

    /// A job waits for its next quantum.
    pub(super) fn requeue(&mut self, strand: u32, (g, task): (u32, u32)) {
        let group = &mut self.groups[g as usize];
        group.waiting += 1;
        group.tasks[task as usize].queue.push_back(strand);
    }

    /// A job was served for `time`.
    pub(super) fn charge(&mut self, now: f64, _strand: u32, time: f64, (g, task): (u32, u32)) {
        self.last = (g as usize, task as usize);
        let group = &mut self.groups[g as usize];
        group.used += time;
        group.tasks[task as usize].used += time;
        if group.cap && group.credit(now) > self.quantum {
            group.since = now;
            group.used = -self.quantum;
        }
    }

    /// The job that was charged last leaves.
    pub(super) fn leave(&mut self) {
        let group = &mut self.groups[self.last.0];
        group.jobs -= 1;
        group.tasks[self.last.1].jobs -= 1;
    }

    /// The job to serve next. If there are only jobs of groups at their cap, sets the processor's timer for the first.
    pub(super) fn next(&mut self, now: f64, calendar: &mut Calendar) -> Option<u32> {
        let mut best: Option<(f64, u64, usize)> = None;
        let mut wake = f64::INFINITY;
        for (g, group) in self.groups.iter().enumerate() {
            if group.waiting == 0 {
                continue;
            }
            let credit = group.credit(now);
            if group.cap && credit < -1e-9 * self.quantum {
                wake = wake.min(now - credit / group.rate);
                continue;
            }
            let standing = credit.min(0.0);
            if best.is_none_or(|(c, served, _)| standing > c || (standing >= c && group.served < served)) {
                best = Some((standing, group.served, g));
            }
        }
        if wake.is_finite() {
            calendar.set(self.timer, wake);
        } else {
            calendar.clear(self.timer);
        }
        let (_, _, g) = best?;
        self.take(now, g)
    }

    fn take(&mut self, now: f64, g: usize) -> Option<u32> {
        self.turn += 1;
        let group = &mut self.groups[g];
        #[expect(clippy::cast_precision_loss, reason = "a count of tasks")]
        let part = group.rate * (now - group.since) / group.tasks.len() as f64;
        let mut best: Option<(f64, u64, usize)> = None;
        for (t, task) in group.tasks.iter().enumerate().filter(|(_, t)| !t.queue.is_empty()) {
            let standing = (part - task.used).min(0.0);
            if best.is_none_or(|(c, served, _)| standing > c || (standing >= c && task.served < served)) {
                best = Some((standing, task.served, t));
            }
        }
        let (_, _, t) = best?;
        group.served = self.turn;
        group.waiting -= 1;
        group.tasks[t].served = self.turn;
        group.tasks[t].queue.pop_front()
    }
}
