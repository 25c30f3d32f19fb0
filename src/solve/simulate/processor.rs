//! Processors: jobs of strands, queued and served by discipline.
//!
//! A job is the slice of work that a strand (by number) waits for; it ends when the strand's timer fires, except under true
//! sharing, where the processor's own timer fires for the job that ends first. Work is in time on one server.

use super::{
    calendar::Calendar,
    fair::Fair,
    law::{Stream, stream},
    network::{self, Discipline, Network},
    queue::Queue,
    sharing::Sharing,
    statistics::Statistics,
};
use crate::solve::bind::Count;

/// Stream numbers of processors start here, those of tasks at 0.
const FIRST_STREAM: u32 = 1 << 24;

/// What a strand has at a processor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Job {
    /// Work left when its present service began.
    left: f64,
    /// When its present service began.
    since: f64,
    /// Order of arrival, kept through preemption.
    order: u64,
    /// Processor that its task runs on.
    pub(super) processor: u32,
    /// Rank of the task at the processor; 0 is most urgent.
    pub(super) rank: u32,
    /// Group and task within it, under fair shares.
    pub(super) group: (u32, u32),
}

/// What the processors share with the rest of a run.
pub(super) struct Floor<'a> {
    pub(super) now: f64,
    pub(super) calendar: &'a mut Calendar,
    pub(super) statistics: &'a mut Statistics,
    pub(super) jobs: &'a mut [Job],
    /// First timer of strands.
    pub(super) first_timer: u32,
}

impl Floor<'_> {
    /// Lets the timer of `strand` fire after `delay`.
    #[inline]
    pub(super) fn set(&mut self, strand: u32, delay: f64) {
        self.calendar.set(self.first_timer + strand, self.now + delay);
    }
}

/// Whether a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// The job is done; its server waits for [`Station::extend`] or [`Station::release`].
    Done,
    /// Only its quantum ended.
    Quantum,
}

/// A processor.
#[derive(Debug)]
pub(super) struct Station {
    /// Place of its utilization.
    level: usize,
    servers: usize,
    busy: usize,
    orders: u64,
    /// Jobs in service; kept for preemption only.
    running: Vec<u32>,
    stream: Stream,
    waiting: Waiting,
}

#[derive(Debug)]
enum Waiting {
    Infinite,
    Queue(Queue<u32>),
    Preemptive(Queue<u32>),
    RoundRobin(Queue<u32>, f64),
    Sharing(Sharing),
    Fair(Fair),
}

impl Station {
    /// Processor number `p` of `network`, empty.
    pub(super) fn new(network: &Network, p: u32, seed: u64, replication: u32) -> Self {
        let spec: &network::Processor = &network.processors[p as usize];
        let servers = match (&spec.discipline, spec.servers) {
            (Discipline::Infinite, _) | (_, Count::Infinite) => usize::MAX,
            (_, Count::Finite(n)) => n as usize,
        };
        let waiting = match &spec.discipline {
            Discipline::Infinite => Waiting::Infinite,
            Discipline::Fifo => Waiting::Queue(Queue::fifo()),
            Discipline::Lifo => Waiting::Queue(Queue::lifo()),
            Discipline::Random => Waiting::Queue(Queue::random()),
            Discipline::HeadOfLine => Waiting::Queue(Queue::ranked()),
            Discipline::Preemptive => Waiting::Preemptive(Queue::ranked()),
            Discipline::Sharing => Waiting::Sharing(Sharing::new(servers, p)),
            Discipline::RoundRobin(quantum) => Waiting::RoundRobin(Queue::fifo(), *quantum),
            Discipline::Fair { quantum, groups } => Waiting::Fair(Fair::new(p, servers, *quantum, groups)),
        };
        let level = spec.origin as usize;
        let stream = stream(seed, replication, FIRST_STREAM + p);
        Self { level, servers, busy: 0, orders: 0, running: Vec::new(), stream, waiting }
    }

    /// A strand's `work` arrives.
    #[inline]
    pub(super) fn arrive(&mut self, floor: &mut Floor<'_>, strand: u32, work: f64) {
        self.orders += 1;
        let job = &mut floor.jobs[strand as usize];
        job.left = work;
        job.order = self.orders;
        let urgency = -f64::from(job.rank);
        match &mut self.waiting {
            Waiting::Sharing(sharing) => {
                floor.statistics.shift(self.level, floor.now, sharing.arrive(floor.now, floor.calendar, strand, work));
                return;
            }
            Waiting::Fair(fair) => {
                fair.arrive(floor.now, strand, job.group);
                return self.dispatch_fair(floor);
            }
            _ => {}
        }
        if self.busy < self.servers {
            self.busy += 1;
            floor.statistics.shift(self.level, floor.now, 1.0);
            return self.start(floor, strand);
        }
        match &mut self.waiting {
            Waiting::Queue(queue) | Waiting::RoundRobin(queue, _) => queue.push(strand, urgency, self.orders),
            Waiting::Preemptive(queue) => {
                queue.push(strand, urgency, self.orders);
                self.preempt(floor);
            }
            Waiting::Infinite | Waiting::Sharing(_) | Waiting::Fair(_) => {}
        }
    }

    /// Begins or resumes the service of a job on a server that is counted busy.
    #[inline]
    fn start(&mut self, floor: &mut Floor<'_>, strand: u32) {
        let now = floor.now;
        let job = &mut floor.jobs[strand as usize];
        job.since = now;
        let time = match &self.waiting {
            Waiting::RoundRobin(_, quantum) => job.left.min(*quantum),
            _ => job.left,
        };
        if matches!(self.waiting, Waiting::Preemptive(_)) {
            self.running.push(strand);
        }
        floor.set(strand, time);
    }

    /// Lets the most urgent waiting job take the server of the least urgent running one, if that is less urgent.
    fn preempt(&mut self, floor: &mut Floor<'_>) {
        let Waiting::Preemptive(queue) = &mut self.waiting else { return };
        let rank_of = |s: &u32| (floor.jobs[*s as usize].rank, floor.jobs[*s as usize].order);
        let Some(place) = (0..self.running.len()).max_by_key(|&i| rank_of(&self.running[i])) else { return };
        let victim = self.running[place];
        let job = &mut floor.jobs[victim as usize];
        let urgency = -f64::from(job.rank);
        if queue.top_urgency().is_none_or(|top| top <= urgency) {
            return;
        }
        job.left = (job.left - (floor.now - job.since)).max(0.0);
        floor.calendar.clear(floor.first_timer + victim);
        self.running.swap_remove(place);
        if let Some(next) = queue.pop(&mut self.stream) {
            queue.push(victim, urgency, job.order);
            self.start(floor, next);
        }
    }

    /// The timer of a strand in service fired.
    #[inline]
    pub(super) fn expire(&mut self, floor: &mut Floor<'_>, strand: u32) -> Expiry {
        let job = &mut floor.jobs[strand as usize];
        match &mut self.waiting {
            Waiting::RoundRobin(queue, quantum) => {
                job.left -= job.left.min(*quantum);
                if job.left > 0.0 {
                    queue.push(strand, 0.0, 0);
                    self.next(floor);
                    return Expiry::Quantum;
                }
            }
            Waiting::Fair(fair) => {
                let time = job.left.min(fair.quantum());
                job.left -= time;
                fair.charge(floor.now, strand, time, job.group);
                if job.left > 0.0 {
                    fair.requeue(strand, job.group);
                    self.vacate(floor);
                    self.dispatch_fair(floor);
                    return Expiry::Quantum;
                }
            }
            Waiting::Preemptive(_) => {
                if let Some(place) = self.running.iter().position(|&s| s == strand) {
                    self.running.swap_remove(place);
                }
            }
            _ => {}
        }
        Expiry::Done
    }

    /// The processor's own timer fired: the strand whose job is done, if one is.
    pub(super) fn expire_timer(&mut self, floor: &mut Floor<'_>) -> Option<u32> {
        match &mut self.waiting {
            Waiting::Sharing(sharing) => sharing.finish(floor.now),
            Waiting::Fair(_) => {
                self.dispatch_fair(floor);
                None
            }
            _ => None,
        }
    }

    /// The strand whose job is done goes on with `work` more on the same server.
    #[inline]
    pub(super) fn extend(&mut self, floor: &mut Floor<'_>, strand: u32, work: f64) {
        let now = floor.now;
        let job = &mut floor.jobs[strand as usize];
        job.left = work;
        match &mut self.waiting {
            Waiting::Sharing(sharing) => sharing.extend(floor.now, floor.calendar, strand, work),
            Waiting::Fair(fair) => {
                job.since = now;
                let time = work.min(fair.quantum());
                floor.set(strand, time);
            }
            _ => self.start(floor, strand),
        }
    }

    /// The strand whose job is done leaves its server to the next.
    #[inline]
    pub(super) fn release(&mut self, floor: &mut Floor<'_>) {
        match &mut self.waiting {
            Waiting::Sharing(sharing) => {
                floor.statistics.shift(self.level, floor.now, sharing.release(floor.now, floor.calendar));
            }
            Waiting::Fair(fair) => {
                fair.leave();
                self.vacate(floor);
                self.dispatch_fair(floor);
            }
            _ => self.next(floor),
        }
    }

    #[inline]
    fn vacate(&mut self, floor: &mut Floor<'_>) {
        self.busy -= 1;
        floor.statistics.shift(self.level, floor.now, -1.0);
    }

    /// Gives a free server to the next in the queue.
    #[inline]
    fn next(&mut self, floor: &mut Floor<'_>) {
        let next = match &mut self.waiting {
            Waiting::Queue(queue) | Waiting::Preemptive(queue) | Waiting::RoundRobin(queue, _) => queue.pop(&mut self.stream),
            _ => None,
        };
        match next {
            Some(strand) => self.start(floor, strand),
            None => self.vacate(floor),
        }
    }

    fn dispatch_fair(&mut self, floor: &mut Floor<'_>) {
        let Waiting::Fair(fair) = &mut self.waiting else { return };
        while self.busy < self.servers {
            let Some(strand) = fair.next(floor.now, floor.calendar) else { return };
            self.busy += 1;
            floor.statistics.shift(self.level, floor.now, 1.0);
            let job = &mut floor.jobs[strand as usize];
            job.since = floor.now;
            let time = job.left.min(fair.quantum());
            floor.calendar.set(floor.first_timer + strand, floor.now + time);
        }
    }
}
