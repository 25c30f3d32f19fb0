//! True processor sharing.
//!
//! `n` jobs on `m` servers are each served at rate `r = min(1, m/n)`. In virtual time `V`, `dV/dt = r`, a job of work `w`
//! that arrives at `V0` ends at `V0 + w`, whatever comes and goes meanwhile.

use super::calendar::Calendar;

#[derive(Clone, Copy, Debug)]
struct Share {
    end: f64,
    order: u64,
    strand: u32,
}

impl Share {
    fn before(&self, other: &Self) -> bool {
        self.end < other.end || (self.end <= other.end && self.order < other.order)
    }
}

/// Jobs that share `servers` servers.
#[derive(Debug)]
pub(super) struct Sharing {
    servers: usize,
    /// Timer of the processor.
    timer: u32,
    virtual_time: f64,
    since: f64,
    orders: u64,
    /// Binary heap, the job that ends first on top.
    shares: Vec<Share>,
}

impl Sharing {
    /// Without jobs.
    pub(super) fn new(servers: usize, timer: u32) -> Self {
        Self { servers, timer, virtual_time: 0.0, since: 0.0, orders: 0, shares: Vec::new() }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of jobs")]
    fn rate(&self) -> f64 {
        if self.shares.len() <= self.servers { 1.0 } else { self.servers as f64 / self.shares.len() as f64 }
    }

    fn advance(&mut self, now: f64) {
        self.virtual_time += (now - self.since) * self.rate();
        self.since = now;
        if self.shares.is_empty() {
            self.virtual_time = 0.0;
        }
    }

    fn schedule(&self, now: f64, calendar: &mut Calendar) {
        match self.shares.first() {
            Some(first) => calendar.set(self.timer, now + (first.end - self.virtual_time).max(0.0) / self.rate()),
            None => calendar.clear(self.timer),
        }
    }

    fn insert(&mut self, strand: u32, work: f64) {
        self.orders += 1;
        let share = Share { end: self.virtual_time + work, order: self.orders, strand };
        self.shares.push(share);
        let mut place = self.shares.len() - 1;
        while place > 0 && share.before(&self.shares[(place - 1) / 2]) {
            self.shares[place] = self.shares[(place - 1) / 2];
            place = (place - 1) / 2;
        }
        self.shares[place] = share;
    }

    fn remove_first(&mut self) -> Option<Share> {
        let first = *self.shares.first()?;
        let last = self.shares.pop()?;
        let n = self.shares.len();
        if n > 0 {
            let mut place = 0;
            while 2 * place + 1 < n {
                let left = 2 * place + 1;
                let child = if left + 1 < n && self.shares[left + 1].before(&self.shares[left]) { left + 1 } else { left };
                if !self.shares[child].before(&last) {
                    break;
                }
                self.shares[place] = self.shares[child];
                place = child;
            }
            self.shares[place] = last;
        }
        Some(first)
    }

    /// A job arrives; returns the change in the number of busy servers.
    pub(super) fn arrive(&mut self, now: f64, calendar: &mut Calendar, strand: u32, work: f64) -> f64 {
        self.advance(now);
        self.insert(strand, work);
        self.schedule(now, calendar);
        if self.shares.len() <= self.servers { 1.0 } else { 0.0 }
    }

    /// The strand whose job is done; until [`Sharing::extend`] or [`Sharing::release`] its place is kept.
    pub(super) fn finish(&mut self, now: f64) -> Option<u32> {
        self.advance(now);
        let first = self.shares.first()?;
        self.virtual_time = self.virtual_time.max(first.end);
        Some(first.strand)
    }

    /// The job that was done goes on with more work.
    pub(super) fn extend(&mut self, now: f64, calendar: &mut Calendar, strand: u32, work: f64) {
        self.remove_first();
        self.insert(strand, work);
        self.schedule(now, calendar);
    }

    /// The job that was done leaves; returns the change in the number of busy servers.
    pub(super) fn release(&mut self, now: f64, calendar: &mut Calendar) -> f64 {
        self.remove_first();
        let change = if self.shares.len() < self.servers { -1.0 } else { 0.0 };
        if self.shares.is_empty() {
            self.virtual_time = 0.0;
        }
        self.schedule(now, calendar);
        change
    }
}
