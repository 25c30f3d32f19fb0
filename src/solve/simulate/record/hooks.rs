//! Where a run tells its recorder, if it has one, what happens. Without one each is a test of a pointer.

use super::{Event, Place, Recorder, RequestKind};
use crate::solve::simulate::{
    run::{NONE, Run},
    server::Request,
};

impl Run<'_> {
    /// Whether no further cycle begins and no further request arrives from outside.
    #[inline]
    pub(in crate::solve::simulate) fn has_closed(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.is_closed)
    }

    /// Nothing begins from now on.
    pub(super) fn close(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.is_closed = true;
        }
    }

    /// A customer begins a cycle.
    #[inline]
    pub(in crate::solve::simulate) fn note_cycle(&mut self, instance: u32) {
        if self.recorder.is_some() {
            self.requests += 1;
            let (number, now) = (self.requests, self.now);
            let this = self.instances.items[instance as usize];
            self.tell(|recorder| {
                recorder.sent(now, number, RequestKind::Cycle, None, None, this.entry);
                recorder.accepted(now, number, instance, this.task, true);
            });
        }
    }

    /// A request arrives from outside.
    #[inline]
    pub(in crate::solve::simulate) fn note_arrival(&mut self, request: &Request) {
        let now = self.now;
        self.tell(|recorder| recorder.sent(now, request.order, RequestKind::Open, None, None, request.entry));
    }

    /// A strand makes a call.
    #[inline]
    pub(in crate::solve::simulate) fn note_call(&mut self, strand: u32, request: &Request) {
        if self.recorder.is_none() {
            return;
        }
        let kind = if request.caller == NONE { RequestKind::Async } else { RequestKind::Sync };
        let (now, instance, phase) = (self.now, self.strands.items[strand as usize].instance, self.phase_of(strand));
        self.tell(|recorder| {
            let control = *recorder.control(strand);
            let sender = recorder.execution(instance).request;
            let by = Place { request: sender, branch: control.branch, phase, demand: control.demand };
            recorder.sent(now, request.order, kind, Some(by), Some(instance), request.entry);
        });
    }

    /// An instance forwards the request that it would have to reply to.
    #[inline]
    pub(in crate::solve::simulate) fn note_forward(&mut self, instance: u32, request: &Request) {
        let now = self.now;
        self.tell(|recorder| {
            let by = Place { request: recorder.execution(instance).request, branch: 0, phase: 1, demand: 0.0 };
            recorder.sent(now, request.order, RequestKind::Forward, Some(by), Some(instance), request.entry);
        });
    }

    /// A request found no place.
    #[inline]
    pub(in crate::solve::simulate) fn note_lost(&mut self, request: &Request) {
        let now = self.now;
        self.tell(|recorder| recorder.lost(now, request.order));
    }

    /// An instance takes a request.
    #[inline]
    pub(in crate::solve::simulate) fn note_accepted(&mut self, request: &Request, instance: u32, task: u32) {
        let now = self.now;
        self.tell(|recorder| recorder.accepted(now, request.order, instance, task, false));
    }

    /// A strand of its own for an instance, or for a branch that says so next.
    #[inline]
    pub(in crate::solve::simulate) fn note_strand(&mut self, strand: u32) {
        self.tell(|recorder| *recorder.control(strand) = super::recorder::Control::default());
    }

    /// A strand begins its activity.
    #[inline]
    pub(in crate::solve::simulate) fn note_start(&mut self, strand: u32) {
        if self.recorder.is_none() {
            return;
        }
        let (now, this, phase) = (self.now, self.strands.items[strand as usize], self.phase_of(strand));
        self.tell(|recorder| {
            let control = recorder.control(strand);
            (control.phase, control.demand) = (phase, 0.0);
            let branch = control.branch;
            recorder.goes_on(this.instance);
            let request = recorder.execution(this.instance).request;
            recorder.push(now, request, Event::ActivityBegan { branch, phase, activity: this.activity });
        });
    }

    /// A strand gets its processor to do some work.
    #[inline]
    pub(in crate::solve::simulate) fn note_work(&mut self, strand: u32, work: f64) {
        self.tell(|recorder| recorder.control(strand).demand += work);
    }

    /// A strand's activity ends.
    #[inline]
    pub(in crate::solve::simulate) fn note_end(&mut self, strand: u32) {
        let now = self.now;
        let this = self.strands.items[strand as usize];
        self.tell(|recorder| {
            let control = *recorder.control(strand);
            let request = recorder.execution(this.instance).request;
            let (branch, phase, activity, demand) = (control.branch, control.phase, this.activity, control.demand);
            recorder.push(now, request, Event::ActivityEnded { branch, phase, activity, demand });
        });
    }

    /// A strand forks.
    #[inline]
    pub(in crate::solve::simulate) fn note_fork(&mut self, strand: u32) {
        let instance = self.strands.items[strand as usize].instance;
        self.tell(|recorder| recorder.fork(strand, instance));
    }

    /// A strand begins the branch of `fork` that starts with `activity`.
    #[inline]
    pub(in crate::solve::simulate) fn note_branch(&mut self, strand: u32, fork: u32, activity: u32) {
        if self.recorder.is_none() {
            return;
        }
        let (now, instance) = (self.now, self.strands.items[strand as usize].instance);
        let branches = &self.network.forks[fork as usize].branches;
        #[expect(clippy::cast_possible_truncation, reason = "a number of branches")]
        let position = branches.iter().position(|b| *b == activity).unwrap_or(0) as u32;
        self.tell(|recorder| recorder.branch(now, strand, instance, position));
    }

    /// A strand arrives at a join, and goes on beyond it or not.
    #[inline]
    pub(in crate::solve::simulate) fn note_join(&mut self, strand: u32, join: u32, goes_on: bool) {
        let (now, instance) = (self.now, self.strands.items[strand as usize].instance);
        self.tell(|recorder| recorder.arrived(now, strand, instance, join, goes_on));
    }

    /// A strand ends, if not at a join.
    #[inline]
    pub(in crate::solve::simulate) fn note_strand_ended(&mut self, strand: u32) {
        let (now, instance) = (self.now, self.strands.items[strand as usize].instance);
        self.tell(|recorder| recorder.branch_ended(now, strand, instance));
    }

    /// An instance replies to the client that waits.
    #[inline]
    pub(in crate::solve::simulate) fn note_replied(&mut self, instance: u32) {
        let now = self.now;
        self.tell(|recorder| recorder.replied(now, instance));
    }

    /// The work of an instance is over.
    #[inline]
    pub(in crate::solve::simulate) fn note_ended(&mut self, instance: u32) {
        let now = self.now;
        let is_customer = self.instances.items[instance as usize].is_customer;
        self.tell(|recorder| recorder.ended(now, instance, is_customer));
    }

    #[inline]
    fn tell(&mut self, what: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = &mut self.recorder {
            what(recorder);
        }
    }

    fn phase_of(&self, strand: u32) -> u8 {
        let this = &self.strands.items[strand as usize];
        match self.network.activities[this.activity as usize].phase {
            0 => 1 + u8::from(self.instances.items[this.instance as usize].has_replied),
            phase => phase,
        }
    }
}
