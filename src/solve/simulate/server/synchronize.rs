//! Tasks that join activities of several entries.

use super::{Order, State};
use crate::solve::simulate::run::{Instance, NONE, Run};

impl Run<'_> {
    /// A synchronizing task is busy from the first acceptance until the joined work ends.
    pub(in crate::solve::simulate) fn open_synchronizing(&mut self, task: u32, entry: u32) {
        self.shift_entry(entry, 1.0);
        if let State::Synchronizing { closed, .. } = &self.servers[task as usize].state
            && closed.is_empty()
        {
            let level = self.statistics.layout.task_level(self.network.tasks[task as usize].origin as usize);
            self.statistics.shift(level, self.now, 1.0);
        }
    }

    pub(in crate::solve::simulate) fn serve_synchronizing(&mut self, task: u32) {
        let State::Synchronizing { is_busy, closed, queue } = &mut self.servers[task as usize].state else { return };
        if *is_busy {
            return;
        }
        if let Some(request) = queue.take_first(|r| !closed.contains(&r.entry)) {
            *is_busy = true;
            self.accept(&request, Order::Ready);
        }
    }

    /// A strand arrives at a join of activities of several entries: all but the last wait there with their entries closed.
    pub(in crate::solve::simulate) fn arrive_at_external_join(&mut self, strand: u32, number: u32) -> bool {
        let network = self.network;
        let join = &network.joins[number as usize];
        let this = self.strands.items[strand as usize];
        let parked = &mut self.parked[number as usize];
        #[expect(clippy::cast_possible_truncation, reason = "as many as the join has inputs")]
        let arrived = parked.len() as u32 + 1;
        if arrived == 1 {
            self.parked_since[number as usize] = self.now;
        }
        if arrived == join.needed {
            self.statistics.tally_join(join.origin as usize, self.now - self.parked_since[number as usize]);
            while let Some(partner) = self.parked[number as usize].pop() {
                self.join_partner(this.instance, partner);
            }
            return self.follow(strand, &join.next);
        }
        parked.push(this.instance);
        self.release_frame(this.frame);
        self.strands.items[strand as usize].is_live = false;
        self.strands.remove(strand);
        let instance = self.instances.items[this.instance as usize];
        self.instances.items[this.instance as usize].n_strands -= 1;
        self.end_phase(this.instance, if instance.has_replied { 2 } else { 1 });
        self.shift_entry(instance.entry, -1.0);
        if let State::Synchronizing { is_busy, closed, .. } = &mut self.servers[instance.task as usize].state {
            *is_busy = false;
            closed.push(instance.entry);
        }
        self.serve_waiting(instance.task);
        false
    }

    pub(in crate::solve::simulate) fn join_partner(&mut self, instance: u32, partner: u32) {
        let rest = self.instances.items[instance as usize].partner;
        self.instances.items[partner as usize].partner = rest;
        self.instances.items[instance as usize].partner = partner;
    }

    /// The work of an instance of a synchronizing task is over, and that of the instances joined with it.
    pub(in crate::solve::simulate) fn end_synchronizing(&mut self, number: u32) {
        let Instance { entry, task, mut partner, .. } = self.instances.items[number as usize];
        self.shift_entry(entry, -1.0);
        self.count_cycle(task);
        self.note_ended(number);
        self.instances.remove(number);
        while partner != NONE {
            let joined = self.instances.items[partner as usize];
            let place = self.statistics.layout.completions(self.network.entries[joined.entry as usize].origin as usize);
            self.statistics.count(place);
            if joined.is_async && !joined.has_replied {
                self.reply(partner);
            }
            self.release_frame(joined.root);
            self.note_ended(partner);
            self.instances.remove(partner);
            if let State::Synchronizing { closed, .. } = &mut self.servers[task as usize].state {
                closed.retain(|&e| e != joined.entry);
            }
            partner = joined.partner;
        }
        let State::Synchronizing { is_busy, closed, .. } = &mut self.servers[task as usize].state else { return };
        *is_busy = false;
        if closed.is_empty() {
            let level = self.statistics.layout.task_level(self.network.tasks[task as usize].origin as usize);
            self.statistics.shift(level, self.now, -1.0);
        }
        self.serve_waiting(task);
    }
}
