//! The serving of a request from its reply to its end.

use super::Request;
use crate::solve::{
    bind::unusable,
    simulate::{
        law,
        network::TaskKind,
        run::{Instance, NONE, Resume, Run, Turn},
    },
};

impl Run<'_> {
    /// Takes the time of a phase of an instance, and begins the next.
    #[inline]
    pub(in crate::solve::simulate) fn end_phase(&mut self, instance: u32, phase: usize) {
        let this = &mut self.instances.items[instance as usize];
        let time = self.now - this.since;
        this.since = self.now;
        let origin = self.network.entries[this.entry as usize].origin as usize;
        self.statistics.tally_phase(origin, phase, time);
    }

    /// Phase 1 of an instance is over: the caller goes on, or the request is forwarded. Returns the caller that goes on.
    #[inline]
    pub(in crate::solve::simulate) fn reply(&mut self, instance: u32) -> Option<u32> {
        let network = self.network;
        let this = &mut self.instances.items[instance as usize];
        this.has_replied = true;
        let Instance { entry, task, caller, is_customer, is_open, is_async, sent, .. } = *this;
        if is_customer {
            return None;
        }
        let spec = &network.entries[entry as usize];
        self.statistics.tally_response(spec.origin as usize, self.now - sent);
        if is_open {
            let place = self.statistics.layout.open(spec.origin as usize);
            self.statistics.tally(place, self.now - sent);
        }
        if is_async {
            self.servers[task as usize].occupied -= 1;
            self.statistics.shift(self.statistics.layout.population(), self.now, -1.0);
        }
        if caller == NONE {
            return None;
        }
        self.instances.items[instance as usize].caller = NONE;
        if !spec.forwardings.is_empty() {
            let drawn = law::uniform(&mut self.streams[task as usize]);
            let list = &network.forwardings[spec.forwardings.start as usize..spec.forwardings.end as usize];
            if let Some(forwarding) = list.iter().find(|f| drawn < f.cumulative) {
                let urgency = network.entries[forwarding.entry as usize].priority + network.tasks[task as usize].priority;
                let (entry, origin) = (forwarding.entry, forwarding.origin);
                let request = Request { entry, caller, origin, sent: self.now, urgency, order: self.next_order(), is_open: false };
                self.note_forward(instance, &request);
                self.deliver(request);
                return None;
            }
        }
        self.note_replied(instance);
        self.strands.items[caller as usize].resume = Resume::Slice;
        let activity = self.strands.items[caller as usize].activity;
        if network.activities[activity as usize].has_demand {
            self.ready.push_back(caller);
        } else {
            self.later.push(caller);
        }
        Some(caller)
    }

    /// A strand ends, and with the last one its instance. Whether it goes on at once, as a customer in its next cycle.
    #[inline]
    pub(in crate::solve::simulate) fn end_strand(&mut self, strand: u32) -> bool {
        self.note_strand_ended(strand);
        let this = self.strands.items[strand as usize];
        self.release_frame(this.frame);
        let instance = &mut self.instances.items[this.instance as usize];
        instance.n_strands -= 1;
        let is_last = instance.n_strands == 0;
        if is_last && instance.is_customer {
            self.end_instance(this.instance);
            let task = self.instances.items[this.instance as usize].task;
            let next = &mut self.strands.items[strand as usize];
            next.resume = Resume::Cycle;
            next.frame = NONE;
            next.turn = Turn::AtOnce;
            return self.think(strand, task);
        }
        self.strands.items[strand as usize].is_live = false;
        self.strands.remove(strand);
        if is_last {
            self.end_instance(this.instance);
        }
        false
    }

    /// The work of an instance is over.
    #[inline]
    pub(in crate::solve::simulate) fn end_instance(&mut self, number: u32) {
        let network = self.network;
        let this = self.instances.items[number as usize];
        let spec = &network.entries[this.entry as usize];
        self.release_frame(this.root);
        self.instances.items[number as usize].root = NONE;
        if !spec.has_phases {
            self.end_phase(number, if this.has_replied { 2 } else { 1 });
            if !this.has_replied {
                self.end_without_reply(number);
            }
        }
        let task = &network.tasks[this.task as usize];
        let completions = self.statistics.layout.completions(spec.origin as usize);
        self.statistics.count(completions);
        if task.kind == TaskKind::Synchronizing {
            return self.end_synchronizing(number);
        }
        self.shift_entry(this.entry, -1.0);
        self.note_ended(number);
        if this.is_customer {
            self.statistics.tally_response(spec.origin as usize, self.now - this.sent);
            return;
        }
        self.instances.remove(number);
        self.end_service(this.task, spec);
        if this.holds_lock {
            self.give_back(this.task, spec.role);
        }
        self.serve_waiting(this.task);
    }

    /// The activities of an instance ended without a reply: right only where nobody waits for one.
    pub(in crate::solve::simulate) fn end_without_reply(&mut self, number: u32) {
        let Instance { entry, caller, .. } = self.instances.items[number as usize];
        if caller != NONE {
            let name = &self.network.origins.entries[self.network.entries[entry as usize].origin as usize].name;
            let reason = format!("at time {} its activities ended without a reply to the caller", self.now);
            self.fail(unusable(format!("entry \"{name}\""), reason));
        }
        self.reply(number);
    }

    /// Counts a cycle of a lock or a task that joins several entries.
    pub(in crate::solve::simulate) fn count_cycle(&mut self, task: u32) {
        let place = self.statistics.layout.cycles(self.network.tasks[task as usize].origin as usize);
        self.statistics.count(place);
    }
}
