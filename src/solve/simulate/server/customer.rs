//! Customers: think, pick an entry, cycle.

use super::limit;
use crate::solve::simulate::{
    law,
    network::TaskKind,
    run::{Instance, NONE, Resume, Run},
};

impl Run<'_> {
    /// Customers begin with their think time.
    pub(in crate::solve::simulate) fn start_customers(&mut self) {
        let network = self.network;
        for (t, task) in network.tasks.iter().enumerate() {
            if task.kind != TaskKind::Reference {
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "bounded by the limit of elements")]
            let number = t as u32;
            for _ in 0..limit(task.threads) {
                let instance = self.instances.insert(Instance {
                    entry: task.entries.start,
                    task: number,
                    caller: NONE,
                    is_customer: true,
                    is_open: false,
                    is_async: false,
                    has_replied: false,
                    holds_lock: false,
                    sent: 0.0,
                    since: 0.0,
                    n_strands: 1,
                    root: NONE,
                    partner: NONE,
                });
                let strand = self.new_strand(instance, NONE, Resume::Cycle);
                if self.think(strand, number) {
                    self.ready.push_back(strand);
                }
            }
        }
    }

    /// A customer thinks before its next cycle. Whether it goes on at once.
    #[inline]
    pub(in crate::solve::simulate) fn think(&mut self, strand: u32, task: u32) -> bool {
        let delay = self.network.tasks[task as usize].think.draw(&mut self.streams[task as usize]);
        if delay > 0.0 {
            self.wake_after(strand, delay);
        }
        delay <= 0.0
    }

    /// A customer has thought and picks an entry.
    #[inline]
    pub(in crate::solve::simulate) fn begin_cycle(&mut self, strand: u32) -> bool {
        if self.has_closed() {
            return false;
        }
        let network = self.network;
        let instance = self.strands.items[strand as usize].instance;
        let number = self.instances.items[instance as usize].task;
        let task = &network.tasks[number as usize];
        let mut entry = task.entries.start;
        if task.visits.len() > 1 {
            let drawn = law::uniform(&mut self.streams[number as usize]);
            #[expect(clippy::cast_possible_truncation, reason = "a count of entries")]
            let chosen = task.visits.iter().position(|&v| drawn < v).unwrap_or(task.visits.len() - 1) as u32;
            entry += chosen;
        }
        let this = &mut self.instances.items[instance as usize];
        this.entry = entry;
        this.has_replied = false;
        this.since = self.now;
        this.sent = self.now;
        this.n_strands = 1;
        self.note_cycle(instance);
        self.strands.items[strand as usize].resume = Resume::Begin;
        self.shift_entry(entry, 1.0);
        true
    }
}
