//! How much was going on at once: threads of tasks, load at the start of occurrences, and the workload of roots.
//!
//! Input: starts and ends of occurrences and roots, roughly in order of time; output: per instance the most occurrences open
//! at once, per entry the mean number open in the instance at a start (itself included), per reference process a [`Workload`].
//!
//! Starts and ends are put in order in a buffer of [`BUFFER`] events, of which the earlier half is worked off when it is
//! full: disorder within that is without effect.
//!
//! Workload of a reference process, N(t) its open roots, T from the first to the last start without pauses ([`super::pauses`]), n their number, w their mean
//! weight (of sampled traces), R their mean time, X = w (n − 1)/T their rate, all without what lies across a pause:
//!
//! | seen | workload |
//! |---|---|
//! | sessions on at least half of the roots, with two requests or more, all recorded (w = 1) | closed: with Z the mean gap between a reply and the next request of the session, X (R + Z) customers by Little's law; of a fixed set of users (no more than two sessions for each of these) at least the most at once |
//! | n ≥ 30, all recorded, gaps between starts with a coefficient of variation below 1/5 and less than half the standard deviation of the times from the last end to a start (or below 1/100, starts not being ends) | open, by a clock: rate = X. The starts of customers keep time with the ends |
//! | n ≥ 30, all recorded, and Var N / E N < 1/2 over time | closed: with probability p = 1 − Var N/E N of being under way (binomial), customers = E N / p, at least the most at once |
//! | else | open: rate = X (Poisson arrivals have Var N/E N = 1). Of sampled traces sessions tell nothing, as requests are missing from them |
//!
//! Customers are whole, N; their think time is N/X − R, so that they make the requests that were seen: of one customer for 0.3 active sessions, or of more than
//! are active in the mean, it is longer than what users think.

use crate::trace::hashed::HashMap;

use super::{
    catalog::Renumbered,
    hints::{Life, joined},
    pauses::{Between, Betweens, Gap, Quiet},
    quality::Moments,
};
use crate::structure::interactions::{Evidence, SeenLoad, Workload};

/// Events put in order at a time.
const BUFFER: usize = 1 << 17;
/// Most sessions that are followed at a time.
const MAX_SESSIONS: usize = 100_000;
/// Fewest roots from which a closed population is concluded.
const FEWEST_ROOTS: u64 = 30;
/// Dispersion of the number of open roots below which the population is closed.
const CLOSED_BELOW: f64 = 0.5;
/// Coefficient of variation of the gaps between starts below which they may be a clock's, and below which they are whatever the ends do.
const REGULAR_BELOW: f64 = 0.2;
const EXACT_BELOW: f64 = 0.01;
/// Standard deviation of the gaps, over that of the times since the last end, below which starts do not follow ends.
const APART_BELOW: f64 = 0.5;
/// Mean time since the last end, over the mean gap, from which starts are not ends.
const NOT_ENDS_FROM: f64 = 0.1;
/// Sessions for each customer up to which they are a fixed set.
const FIXED_BELOW: f64 = 2.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// An occurrence: its instance and entry.
    Occurrence(u32, u32),
    /// A root: its process and session.
    Root(u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time_ns: i64,
    is_start: bool,
    who: Who,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    now: i64,
    most: i64,
    /// Of instances: the first start and the last end.
    life: Option<Life>,
}

/// Roots of one reference process.
#[derive(Clone, Debug, Default)]
struct Roots {
    open: Open,
    first_ns: Option<i64>,
    last_start_ns: i64,
    last_event_ns: i64,
    /// ∫N dt and ∫N² dt, in seconds.
    area: [f64; 2],
    response_s: Moments,
    weight: Moments,
    between: Betweens,
    last_end_ns: Option<i64>,
    n_with_session: u64,
    /// End of the last request of each session.
    sessions: HashMap<u32, i64>,
}

impl Roots {
    fn event(&mut self, event: &Event, session: u32, quiet: &Quiet) {
        let time_ns = event.time_ns;
        if self.first_ns.is_some() && time_ns > self.last_event_ns {
            let (n, dt) = (self.open.now as f64, seconds(time_ns.saturating_sub(self.last_event_ns)));
            self.area[0] += n * dt;
            self.area[1] += n * n * dt;
        }
        self.last_event_ns = self.last_event_ns.max(time_ns);
        self.open.count(event.is_start);
        if event.is_start {
            self.start(time_ns, quiet);
        } else {
            self.last_end_ns = Some(time_ns);
        }
        if session == 0 {
            return;
        }
        if event.is_start {
            self.n_with_session += 1;
            if let Some(end) = self.sessions.get(&session).filter(|end| **end <= time_ns) {
                self.between.over(quiet.within(*end, time_ns)).think_s.add(seconds(time_ns.saturating_sub(*end)));
            }
        } else if self.sessions.len() < MAX_SESSIONS || self.sessions.contains_key(&session) {
            self.sessions.insert(session, time_ns);
        }
    }

    fn start(&mut self, time_ns: i64, quiet: &Quiet) {
        let last_ns = self.last_start_ns;
        if self.first_ns.is_none() {
            (self.first_ns, self.last_event_ns) = (Some(time_ns), time_ns);
        } else if last_ns <= time_ns {
            self.between.over(quiet.within(last_ns, time_ns)).gap_s.add(seconds(time_ns.saturating_sub(last_ns)));
        }
        if let Some(end_ns) = self.last_end_ns.filter(|end_ns| *end_ns <= time_ns) {
            self.between.over(quiet.within(end_ns, time_ns)).since_end_s.add(seconds(time_ns.saturating_sub(end_ns)));
        }
        self.last_start_ns = time_ns;
    }

    fn merge(&mut self, other: Self) {
        self.open.now += other.open.now;
        self.open.most = self.open.most.max(other.open.most);
        self.first_ns = [self.first_ns, other.first_ns].into_iter().flatten().min();
        self.last_start_ns = self.last_start_ns.max(other.last_start_ns);
        self.last_event_ns = self.last_event_ns.max(other.last_event_ns);
        self.area[0] += other.area[0];
        self.area[1] += other.area[1];
        self.response_s.merge(other.response_s);
        self.weight.merge(other.weight);
        self.between.merge(other.between);
        self.last_end_ns = self.last_end_ns.max(other.last_end_ns);
        self.n_with_session += other.n_with_session;
        self.sessions.extend(other.sessions);
    }

    /// Whether at least half of them are of sessions with several requests.
    fn are_of_sessions(&self) -> bool {
        self.n_with_session * 2 >= self.weight.count && self.between.without(&[]).think_s.count > 0
    }

    /// Whether some were not recorded.
    fn are_sampled(&self) -> bool {
        (self.weight.mean - 1.0).abs() >= 1e-9
    }

    /// The workload, and what was seen of it.
    fn workload(&self, pauses: &[Gap]) -> Option<(Workload, SeenLoad)> {
        let n = self.weight.count;
        let first_ns = self.first_ns?;
        let own: Vec<Gap> = pauses.iter().filter(|pause| first_ns <= pause.0 && pause.1 <= self.last_start_ns).copied().collect();
        let paused = own.iter().map(|(from, to)| seconds(to.saturating_sub(*from))).sum::<f64>();
        let span = seconds(self.last_start_ns.saturating_sub(first_ns)) - paused;
        let n_gaps = n.saturating_sub(1 + own.len() as u64);
        if n_gaps == 0 || span <= 0.0 {
            return None;
        }
        let rate = n_gaps as f64 / span * self.weight.mean;
        let found = |workload: Workload, evidence: Evidence| Some((workload, SeenLoad { rate, evidence: Some(evidence) }));
        let between = self.between.without(&own);
        let most = self.open.most as f64;
        if self.are_of_sessions() && between.think_s.count > 0 && !self.are_sampled() {
            let active = rate * (self.response_s.mean + between.think_s.mean);
            let are_fixed = self.sessions.len() as f64 <= FIXED_BELOW * active;
            let customers = if are_fixed { active.round().max(most) } else { active.round() };
            return found(self.closed(customers, rate), Evidence::Sessions(self.sessions.len() as u64));
        }
        let all = seconds(self.last_event_ns.saturating_sub(first_ns)) - paused;
        let mean = self.area[0] / all;
        let dispersion = (self.area[1] / all - mean * mean) / mean;
        let tells = n >= FEWEST_ROOTS && !self.are_sampled();
        if let (true, Some(variation)) = (tells, clock(&between)) {
            return found(Workload::Open { rate }, Evidence::Clock(variation));
        }
        if tells && dispersion < CLOSED_BELOW {
            let dispersion = dispersion.max(0.0);
            let customers = (mean / (1.0 - dispersion)).round().max(most);
            return found(self.closed(customers, rate), Evidence::Steady(dispersion));
        }
        found(Workload::Open { rate }, Evidence::Arrivals)
    }

    /// So many customers, or as many as are enough, with the think time with which they make `rate`.
    fn closed(&self, customers: f64, rate: f64) -> Workload {
        let response_s = self.response_s.mean;
        Workload::at_rate(Workload::enough(customers, rate, response_s).max(1.0), rate, response_s)
    }
}

/// The coefficient of variation of the gaps between starts where they are a clock's.
fn clock(between: &Between) -> Option<f64> {
    let Between { gap_s, since_end_s, .. } = between;
    let variation = gap_s.coefficient_of_variation()?;
    let [gap, since_end] = [gap_s, since_end_s].map(|moments| moments.variance().map(f64::sqrt));
    let is_apart = gap? < APART_BELOW * since_end?;
    let is_exact = variation < EXACT_BELOW && since_end_s.mean > NOT_ENDS_FROM * gap_s.mean;
    (variation < REGULAR_BELOW && (is_apart || is_exact)).then_some(variation)
}

impl Open {
    fn count(&mut self, is_start: bool) {
        self.now += if is_start { 1 } else { -1 };
        self.most = self.most.max(self.now);
    }

    fn lives(&mut self, life: Life) {
        self.life = Some(self.life.map_or(life, |known| joined(known, life)));
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 * 1e-9
}

/// What is open at once.
#[derive(Clone, Debug, Default)]
pub struct Load {
    events: Vec<Event>,
    instances: HashMap<u32, Open>,
    /// Load at starts, by entry.
    pub at_start: HashMap<u32, Moments>,
    roots: HashMap<u32, Roots>,
    quiet: Quiet,
}

impl Load {
    /// An occurrence of `entry` in `instance`.
    pub fn occurrence(&mut self, instance: u32, entry: u32, start_ns: i64, end_ns: i64) {
        self.add(Who::Occurrence(instance, entry), start_ns, end_ns);
    }

    /// An occurrence in `instance` of which nothing says when it was.
    pub fn instance(&mut self, instance: u32) {
        self.instances.entry(instance).or_default();
    }

    /// A root of `process` that stands for `weight`; one of which the end is not known came, and that is all.
    pub fn root(&mut self, process: u32, session: u32, start_ns: i64, end_ns: Option<i64>, weight: f64) {
        let roots = self.roots.entry(process).or_default();
        if let Some(end_ns) = end_ns {
            roots.response_s.add(seconds(end_ns.saturating_sub(start_ns)));
        }
        roots.weight.add(weight);
        self.add(Who::Root(process, session), start_ns, end_ns.unwrap_or(start_ns));
    }

    fn add(&mut self, who: Who, start_ns: i64, end_ns: i64) {
        self.events.push(Event { time_ns: start_ns, is_start: true, who });
        self.events.push(Event { time_ns: end_ns.max(start_ns.saturating_add(1)), is_start: false, who });
        if self.events.len() >= BUFFER {
            self.work_off(BUFFER / 2);
        }
    }

    fn work_off(&mut self, n: usize) {
        // What the last time left stands in order already, which this kind of sorting makes use of.
        self.events.sort();
        for event in self.events.drain(..n) {
            let gone = self.quiet.event(event.time_ns, event.is_start, matches!(event.who, Who::Root(..)));
            for gap in gone.into_iter().flatten() {
                self.roots.values_mut().for_each(|roots| roots.between.release(gap, &self.quiet));
            }
            match event.who {
                Who::Root(process, session) => self.roots.entry(process).or_default().event(&event, session, &self.quiet),
                Who::Occurrence(instance, entry) => {
                    let open = self.instances.entry(instance).or_default();
                    open.count(event.is_start);
                    open.lives((event.time_ns, event.time_ns));
                    if event.is_start {
                        self.at_start.entry(entry).or_default().add(open.now as f64);
                    }
                }
            }
        }
    }

    /// Takes over what `other` saw; `numbers` are those here of what it numbers. What both had worked off before is not put
    /// in order any more: of what was open at once, the part with more counts.
    pub fn absorb(&mut self, other: Self, numbers: &Renumbered) {
        let who = |who: Who| match who {
            Who::Occurrence(instance, entry) => Who::Occurrence(numbers.instances[instance as usize], numbers.entry(entry)),
            Who::Root(process, session) => Who::Root(numbers.names[process as usize], session),
        };
        self.events.extend(other.events.into_iter().map(|event| Event { who: who(event.who), ..event }));
        for (instance, theirs) in other.instances {
            let open = self.instances.entry(numbers.instances[instance as usize]).or_default();
            open.now += theirs.now;
            open.most = open.most.max(theirs.most);
            theirs.life.into_iter().for_each(|life| open.lives(life));
        }
        for (entry, theirs) in other.at_start {
            self.at_start.entry(numbers.entry(entry)).or_default().merge(theirs);
        }
        self.quiet.absorb(&other.quiet);
        for (process, theirs) in other.roots {
            self.roots.entry(numbers.names[process as usize]).or_default().merge(theirs);
        }
        self.roots.values_mut().for_each(|roots| roots.between.settle(&self.quiet));
    }

    /// The same with all worked off.
    pub fn finished(&self) -> Self {
        let mut finished = self.clone();
        finished.work_off(finished.events.len());
        finished
    }

    /// Instances, with the most occurrences open at once and, where it is known, when they were alive.
    pub fn instances(&self) -> impl Iterator<Item = (u32, u64, Option<Life>)> {
        self.instances.iter().map(|(instance, open)| (*instance, u64::try_from(open.most).unwrap_or(0), open.life))
    }

    /// The workload of each reference process, where it is known, and what was seen of it.
    pub fn workloads(&self) -> impl Iterator<Item = (u32, (Workload, SeenLoad))> {
        let pauses = self.pauses();
        self.roots.iter().filter_map(move |(process, roots)| Some((*process, roots.workload(&pauses)?)))
    }

    /// Times in which nothing was recorded, in order.
    pub fn pauses(&self) -> Vec<Gap> {
        self.quiet.pauses()
    }

    /// Reference processes whose roots are of sessions of which not all was recorded.
    pub fn sampled_sessions(&self) -> impl Iterator<Item = u32> {
        self.roots.iter().filter(|(_, roots)| roots.are_sampled() && roots.are_of_sessions()).map(|(process, _)| *process)
    }
}
