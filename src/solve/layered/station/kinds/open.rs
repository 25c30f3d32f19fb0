//! Requests from outside to a pool of threads, whose services are of unlike length.
//!
//! As many come as will, whatever is there, so that who waits for a thread is told by a chain of its own ([`stream`](super::stream)). Where threads are no more
//! than cores, they are its servers, for as long as they are busy; the wait behind exponential services of their mean is taken as many times as long
//! as that of two lengths is longer, as far as they do not hold each other up elsewhere: there a closed network of the threads tells how long ([`super::held_up`]), or, of more than it takes, mean rests stand. Where they are more than the cores that they have for themselves, these are what they wait for: a long slice at a core keeps
//! all threads busy, and more requests waiting, than any that are served side by side. With `m` cores, `M` threads,
//! `X(n)` what `n` busy threads do in a unit of time, of a thread that spends `D` at a core and `Z` elsewhere (a delay and a queue in product form),
//!
//! ```text
//! p(n) = X(n) D / min(n, m)         u = X(M) D / m         v = (e D / (D + Z))²
//! W_c     slices as a stream, places for M at the cores and before them              W_p = e W_D + (1 - e) W_s
//! core    W + v (W_c - W)
//! pool    W + u (W_p - W)  if that is longer,   W + v (W_p - W)  if not
//! ```
//!
//! with waits `W_D` behind requests that work at a core as long as all their slices, `W_s` behind such as begin another slice of any of them with chance `1 - e`, and
//! `W` as mean values have it. With one slice to a request on cores that are all they need this is the queue M/H₂/m, split
//! into who has a thread and who has none. With several, the slices of others come between those of a long request, which keeps threads busy less than if it
//! held its core, and more than if lengths were drawn for each slice: `e`, which is one over their mean number, is chosen between the two, and so are `u` and `v`, not derived.
//! Threads that are elsewhere do not come to a core as a stream does, and what they wait for there grows with their number: how many find all cores busy is `W`'s to say.
//!
//! Two lengths have the first three moments of all services, or two where no such have three; where services vary no more than exponential ones, or threads no more
//! than cores serve entries that take as long, mean values stand alone. So they do where a chain would be too large (more than about 16 servers), or the cores are not the pool's own.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `D`, `Z` | `work`, `elsewhere` | time that a request is served at cores, and that its thread is busy otherwise |
//! | `e` | `leaves` | requests over slices |
//! | `u`, `v` | `used`, `at_cores` | load of a core while all threads are busy; square of the part of a request's time that is its only slice |

use smallvec::SmallVec;

use super::{
    super::{super::residual::Law, At, Scratch},
    coming::Coming,
    held_up,
    sources::{count, number, ramp},
    stream::{Beyond, Stream},
};
use crate::{
    model::Scalar,
    solve::layered::{
        flow::Flow,
        net::{Discipline, Net},
    },
};

/// Parts of the square of the mean by which services vary more than exponential ones of one length: up to the one they are as good as these, from the other
/// their lengths count in full.
const VARIED: [f64; 2] = [1e-3, 3e-2];
/// How much shorter than the mean the short services are at most, over it: where three moments would have them shorter, these lengths have two of them.
const SHORTEST: f64 = 0.999;

/// Difference of two rates that is rounding, or what a stage leaves.
const OF_ALL: f64 = 1e-6;
/// Of servers, least that is left by what waits for them.
const LEAST_LEFT: f64 = 1e-3;

/// What is known of a station that a stream from outside, or the threads that it keeps busy, come to.
#[derive(Clone, Copy, Debug)]
pub(in super::super::super) struct Told<S> {
    pub station: usize,
    pub wait: Wait<S>,
}

/// How long requests wait.
#[derive(Clone, Copy, Debug)]
pub(in super::super::super) enum Wait<S> {
    /// So many times as long as behind exponential services of the mean.
    Times(S),
    /// So long, of which such shares of the difference from mean values count.
    Of {
        /// The wait.
        wait: S,
        /// The share, where that is longer.
        if_longer: S,
        /// The share, where that is shorter.
        if_shorter: S,
    },
}

impl<S: Scalar> Told<S> {
    /// Without derivatives.
    pub fn value(&self) -> Told<f64> {
        let wait = match self.wait {
            Wait::Times(times) => Wait::Times(times.value()),
            Wait::Of { wait, if_longer, if_shorter } => {
                Wait::Of { wait: wait.value(), if_longer: if_longer.value(), if_shorter: if_shorter.value() }
            }
        };
        Told { station: self.station, wait }
    }
}

impl<S: Scalar> At<'_, S> {
    /// The share of what a row finds at several servers that comes by itself, and not with what its own request sent.
    fn share_without_messages(&self, r: usize, scratch: &Scratch<S>) -> S {
        let n = self.visits.len();
        let terms = r * n..(r + 1) * n;
        let zero = S::from(0.0);
        let sent = scratch.messages.get(terms.clone()).unwrap_or_default().iter().fold(zero, |sum, &found| sum + found);
        if self.servers <= 1.0 || sent <= 0.0 {
            return S::from(1.0);
        }
        let parts = scratch.alpha[terms.clone()].iter().zip(&scratch.load[terms]).zip(self.visits);
        let any = parts.fold(zero, |sum, ((&alpha, &load), v)| if v.first > 0.0 { sum + alpha * v.wait / v.first + load } else { sum });
        any / (any + sent)
    }

    /// Takes what a row waits for to what is told of it.
    pub(in super::super) fn take_told(&self, r: usize, scratch: &mut Scratch<S>) {
        let Some(told) = self.told else { return };
        let n = self.visits.len();
        let terms = r * n..(r + 1) * n;
        let of_told = self.share_without_messages(r, scratch);
        let (alpha, beta) = (&mut scratch.alpha[terms.clone()], &mut scratch.beta[terms]);
        match told.wait {
            // Who waits behind others waits as much longer as these.
            Wait::Times(times) => beta.iter_mut().for_each(|part| *part *= times),
            Wait::Of { wait, if_longer, if_shorter } => {
                let parts = alpha.iter().zip(&*beta).zip(self.visits);
                let found = parts.fold(scratch.own[r], |sum, ((&alpha, &beta), v)| sum + alpha * v.wait + beta);
                let share = if wait > found { if_longer } else { if_shorter };
                let share = share * of_told;
                // Not as a factor of what is found: waits that follow from themselves would be led astray by one that is far from 1.
                if let Some(longer) = scratch.messages_wait.get_mut(r) {
                    // What they wait behind is as much longer.
                    let same = alpha.iter().zip(&self.layout.row_of).filter(|(_, row)| **row == r);
                    let again = -(same.fold(S::from(0.0), |sum, (&alpha, _)| sum + alpha) * share) + 1.0;
                    *longer = if again > LEAST_LEFT { *longer / again } else { *longer };
                }
                alpha.iter_mut().chain(beta).for_each(|part| *part *= -share + 1.0);
                scratch.own[r] = scratch.own[r] * (-share + 1.0) + wait * share;
            }
        }
    }
}

/// Moments of what is served: its number a unit of time, and means of its powers over factorials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Services<S> {
    pub rate: S,
    pub powers: [S; 3],
}

/// Finds how long requests from outside wait at the pool of a task, with such flow and waits, and its threads for cores; nothing where others come, too, or services are alike.
pub(super) fn waits<S: Scalar>(net: &Net<S>, solved: (&Flow<S>, &[S]), task: usize) -> SmallVec<[Told<S>; 2]> {
    let Some(come) = Coming::find(net, solved, task) else { return SmallVec::new() };
    let Coming { station, places, .. } = come;
    let (pool, processor) = (&net.stations[station], net.tasks[task].processor);
    let threads = threads(net, solved.0, task, station);
    let cores = threads.as_ref().and_then(|threads| Cores::find(net, solved, task, &threads.busy));
    let own = cores.filter(|_| places.is_none()).and_then(|cores| cores.waits(pool.servers));
    // Where threads meet elsewhere, too, what they wait for there is as much.
    let held_up = held_up::of_pool(net, solved, task, &come).filter(|it| it.is_elsewhere || own.is_none());
    let of_pool = held_up.map(|it| {
        let share = ramp(it.excess, VARIED) * come.counts;
        Wait::Of { wait: it.wait, if_longer: share, if_shorter: share }
    });
    match own {
        Some([alone, of_core]) => {
            [(station, of_pool.unwrap_or(alone)), (processor, of_core)].map(|(station, wait)| Told { station, wait }).into()
        }
        None if let Some(wait) = of_pool => [Told { station, wait }].into_iter().collect(),
        None if let Some(Threads { busy, counts }) = threads.filter(|threads| threads.counts > 0.0 && places.is_none()) => {
            let slack = slack(net, solved.0, task, (pool.servers, &busy)) * counts;
            let of_ratio = |ratio: S| Wait::Times(busy.rest() + (ratio - busy.rest()) * slack);
            busy.ratio(pool.servers).map(|ratio| Told { station, wait: of_ratio(ratio) }).into_iter().collect()
        }
        // What services of one entry vary is in their rests, as elsewhere.
        None => SmallVec::new(),
    }
}

/// A pool before requests from outside alone.
struct Threads<S> {
    /// What its threads are busy with.
    busy: Services<S>,
    /// How far it counts that entries are not alike.
    counts: S,
}

/// What its threads are busy with; none where something goes on after replies.
fn threads<S: Scalar>(net: &Net<S>, flow: &Flow<S>, task: usize, station: usize) -> Option<Threads<S>> {
    if net.tasks[task].entries.iter().any(|&entry| flow.held(entry) > flow.phases[entry][0]) {
        return None;
    }
    let pool = &net.stations[station];
    let of_entry = |&arc: &usize| Some((flow.arc_rate[arc], net.arcs[arc].target?));
    let entries: Vec<(S, usize)> = pool.arcs.iter().filter_map(of_entry).filter(|(rate, _)| *rate > 0.0).collect();
    let busy = Services::of(entries.iter().map(|&(rate, entry)| {
        let (mean, variance) = (flow.phases[entry][0], flow.phase_variances[entry][0]);
        (rate, mean, (mean + variance / mean) * 0.5)
    }))?;
    let alone = entries.iter().map(|&(rate, entry)| (rate, flow.phases[entry][0], flow.phases[entry][0]));
    let counts = ramp(Services::of(alone)?.excess(), VARIED);
    Some(Threads { busy, counts })
}

/// Chance that no station at which the threads of a task may hold each other up is busy while all of so many are, as is known of their times ([`super::super::crowd`]).
fn slack<S: Scalar>(net: &Net<S>, flow: &Flow<S>, task: usize, (threads, busy): (f64, &Services<S>)) -> S {
    let all = (busy.rate * busy.powers[0]).recip() * threads;
    let visits = |arc: &usize| net.arcs[*arc].source.held().is_some_and(|node| net.nodes[node].task == task);
    let load = |arc: &usize| {
        let it = &net.arcs[*arc];
        let slice = |node: usize| net.nodes[node].demand / net.nodes[node].slices;
        let service = it.target.map_or_else(|| it.source.node().map_or(S::from(0.0), slice), |entry| flow.held(entry));
        flow.arc_rate[*arc] * service
    };
    net.stations.iter().filter(|station| station.servers < threads && station.arcs.iter().any(visits)).fold(
        S::from(1.0),
        |left, station| {
            let used = station.arcs.iter().map(load).fold(S::from(0.0), |sum, load| sum + load) / station.servers * all;
            if used < 1.0 { left * (-used + 1.0) } else { S::from(0.0) }
        },
    )
}

/// Cores that a pool of more threads has for itself.
struct Cores<S> {
    cores: f64,
    slices: Services<S>,
    /// Of requests.
    work: Services<S>,
    elsewhere: S,
}

impl<S: Scalar> Cores<S> {
    fn find(net: &Net<S>, (flow, waits): (&Flow<S>, &[S]), task: usize, busy: &Services<S>) -> Option<Self> {
        let it = &net.tasks[task];
        let station = &net.stations[it.processor];
        let threads = net.stations[it.station?].servers;
        if station.discipline != Discipline::Fcfs || !(1.0..threads).contains(&station.servers) {
            return None;
        }
        let zero = S::from(0.0);
        let (mut slices, mut requests, mut there) = (Vec::new(), Vec::new(), zero);
        for &arc in &station.arcs {
            let node = net.arcs[arc].source.held().map(|node| &net.nodes[node]).filter(|node| node.task == task)?;
            let rate = flow.arc_rate[arc];
            if rate <= 0.0 {
                continue;
            }
            let rest = |mean: S| mean * (node.cvsq + 1.0) * 0.5;
            let slice = node.demand / node.slices;
            slices.push((rate, slice, rest(slice)));
            requests.push((rate / node.slices, node.demand, rest(node.demand)));
            there += rate * (waits[arc] + slice);
        }
        let elsewhere = busy.powers[0] - there / busy.rate;
        let elsewhere = if elsewhere > 0.0 { elsewhere } else { zero };
        let (slices, work) = (Services::of(slices.into_iter())?, Services::of(requests.into_iter())?);
        // Of requests that need no core, or come to it from several nodes, one chain does not tell.
        let is_of_all = (work.rate.value() / busy.rate.value() - 1.0).abs() < OF_ALL;
        is_of_all.then_some(Self { cores: station.servers, slices, work, elsewhere })
    }

    /// For a thread and for a core; none where a chain would be too large, or has no steady state.
    fn waits(&self, threads: f64) -> Option<[Wait<S>; 2]> {
        let one = S::from(1.0);
        let work = self.work.powers[0];
        let leaves = self.work.rate / self.slices.rate;
        let done = throughputs(work, self.elsewhere, self.cores, number(threads));
        let paces: Vec<S> = done.iter().enumerate().map(|(n, &done)| done * work / count(n + 1).min(self.cores)).collect();
        let (alone, used) = (*paces.first()?, *paces.last()?);
        let places = number(threads);
        let of = |services: &Services<S>, (rate, leaves): (S, S), paces: &[S], part: fn(Beyond<S>) -> S| {
            let (lengths, short) = services.lengths()?;
            let it = Stream { rate, services: lengths, short, leaves, servers: number(self.cores), paces, ends: &[] };
            Some(part(it.beyond(places)?) / rate)
        };
        let core = of(&self.slices, (self.slices.rate, one), &[one], |beyond| beyond.servers)?;
        let whole = of(&self.work, (self.work.rate, one), &paces, |beyond| beyond.places)?;
        let pool = if leaves < 1.0 {
            let drawn = of(&self.slices, (self.work.rate, leaves), &paces, |beyond| beyond.places)?;
            drawn + (whole - drawn) * leaves
        } else {
            whole
        };
        let counts = ramp(self.slices.excess(), VARIED);
        let (used, at_cores) = (used * counts, (leaves * alone).powi(2) * counts);
        Some([
            Wait::Of { wait: pool, if_longer: used, if_shorter: at_cores },
            Wait::Of { wait: core, if_longer: at_cores, if_shorter: at_cores },
        ])
    }
}

impl<S: Scalar> Services<S> {
    /// Of rates, means and mean rests; none where there are none.
    pub fn of(services: impl Iterator<Item = (S, S, S)>) -> Option<Self> {
        Self::of_moments(services.filter(|(_, mean, _)| *mean > 0.0).map(|(rate, mean, rest)| {
            let third = mean * mean * mean * Law::third(rest / mean);
            (rate, [mean, mean * rest, third])
        }))
    }

    /// Of rates, and means of powers over factorials; none where there are none.
    pub fn of_moments(services: impl Iterator<Item = (S, [S; 3])>) -> Option<Self> {
        let zero = S::from(0.0);
        let mut it = Self { rate: zero, powers: [zero; 3] };
        for (rate, powers) in services {
            it.rate += rate;
            it.powers.iter_mut().zip(powers).for_each(|(sum, power)| *sum += rate * power);
        }
        let rate = it.rate;
        it.powers.iter_mut().for_each(|power| *power /= rate);
        (rate > 0.0).then_some(it)
    }

    /// By how much services vary more than exponential ones of one length, over the square of the mean.
    pub fn excess(&self) -> S {
        self.rest() - 1.0
    }

    /// With so much less of what varies more than exponential services of one length.
    pub fn nearer_to_exponential(&self, less: S) -> Self {
        let [mean, _, third] = self.powers;
        let share = -less + 1.0;
        let (square, cube) = (mean * mean, mean * mean * mean);
        let second = self.excess() * share;
        let third = (third / cube - self.excess() * 3.0 - 1.0) * share;
        Self { rate: self.rate, powers: [mean, square * (second + 1.0), cube * (third + second * 3.0 + 1.0)] }
    }

    /// The two lengths, and the share of the short ones; none where services vary no more than exponential ones.
    pub fn lengths(&self) -> Option<([S; 2], S)> {
        let mean = self.powers[0];
        let second = self.excess();
        if second.value().is_nan() || second <= VARIED[0] {
            return None;
        }
        // Of what is more or less than the mean, over it.
        let third = self.powers[2] / (mean * mean * mean) - second * 3.0 - 1.0;
        let skew = third / second;
        let root = (skew * skew + second * 4.0).sqrt();
        let less = (skew - root) * 0.5;
        let less = if less > -SHORTEST { less } else { S::from(-SHORTEST) };
        let more = -second / less;
        Some(([mean * (less + 1.0), mean * (more + 1.0)], more / (more - less)))
    }

    /// `ψ` before so many servers, by mean rests where a chain would be too large; none where services vary no more than exponential ones.
    fn ratio(&self, servers: f64) -> Option<S> {
        let (services, short) = self.lengths()?;
        let servers = number(servers);
        let it = Stream { rate: self.rate, services, short, leaves: S::from(1.0), servers, paces: &[], ends: &[] };
        let by_chain = it.beyond(servers).zip(it.beyond_of_one_length(servers));
        Some(by_chain.map_or(self.rest(), |(found, of_one)| found.places / of_one.places))
    }

    /// Mean rest over the mean.
    fn rest(&self) -> S {
        self.powers[1] / (self.powers[0] * self.powers[0])
    }
}

/// `X(1)` to `X(M)`: throughputs of as many threads that go between so many cores, for `work` each, and elsewhere.
fn throughputs<S: Scalar>(work: S, elsewhere: S, cores: f64, threads: usize) -> Vec<S> {
    // Scaled so that no sum is beyond the range of numbers.
    let scale = (work / cores + elsewhere / count(threads)).value();
    let mut at_cores = vec![S::from(1.0)];
    let mut away = vec![S::from(1.0)];
    let mut sums = vec![S::from(1.0)];
    for n in 1..=threads {
        let [core, delay] = [work / count(n).min(cores), elsewhere / count(n)].map(|time| time / scale);
        at_cores.push(at_cores[n - 1] * core);
        away.push(away[n - 1] * delay);
        sums.push((0..=n).fold(S::from(0.0), |sum, k| sum + at_cores[k] * away[n - k]));
    }
    sums.windows(2).map(|pair| pair[0] / pair[1] / scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean value analysis of one core and a delay.
    #[test]
    fn threads_do_what_a_closed_network_does() {
        let (work, elsewhere) = (0.7, 2.1);
        let mut queue = 0.0;
        for (n, found) in (1..=9).zip(throughputs(work, elsewhere, 1.0, 9)) {
            let stay = work * (1.0 + queue);
            let expected = f64::from(n) / (stay + elsewhere);
            queue = expected * stay;
            assert!((found - expected).abs() < 1e-12, "{n}: {found} {expected}");
        }
        let alone = throughputs(0.7, 0.0, 3.0, 128);
        assert!((alone[1] - 2.0 / 0.7).abs() < 1e-12 && (alone[127] - 3.0 / 0.7).abs() < 1e-12);
        let many = throughputs(0.7, 7e3, 3.0, 128);
        assert!((many[127] * 7e3 / 128.0 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn two_lengths_have_the_moments_of_all() {
        let times = [(2.0, 0.3), (1.0, 0.9), (0.4, 5.0)];
        let it = Services::of(times.iter().map(|&(rate, time)| (rate, time, time))).unwrap();
        let ([short, long], share) = it.lengths().unwrap();
        for power in 1..=3 {
            let all = times.iter().map(|(rate, time)| rate * f64::powi(*time, power)).sum::<f64>() / 3.4;
            let two = share * short.powi(power) + (1.0 - share) * long.powi(power);
            assert!((two / all - 1.0).abs() < 1e-12, "{power}: {two} {all}");
        }
        // All that varies more, or nothing, or half of it.
        let [same, none, half] = [0.0, 1.0, 0.5].map(|less| it.nearer_to_exponential(less));
        assert!(same.powers.iter().zip(it.powers).all(|(one, other)| (one / other - 1.0).abs() < 1e-12) && none.lengths().is_none());
        assert!((half.excess() - 0.5 * it.excess()).abs() < 1e-12 && half.powers[2] < it.powers[2], "{half:?} {it:?}");
        assert!(Services::of([(1.0, 0.5, 0.5), (2.0, 0.5, 0.5)].into_iter()).unwrap().lengths().is_none());
        assert!(Services::of([(1.0, 0.5, 0.3)].into_iter()).unwrap().lengths().is_none());
        // Of two constants no two exponential lengths have all three.
        let constant = Services::of([(8.0, 0.01, 0.005), (2.5, 1.0, 0.5)].into_iter()).unwrap();
        let ([short, long], share) = constant.lengths().unwrap();
        for (power, of_all) in constant.powers[..2].iter().enumerate().map(|(power, of_all)| (power as i32 + 1, of_all)) {
            let two = share * short.powi(power) + (1.0 - share) * long.powi(power);
            assert!((two / of_all - 1.0).abs() < 1e-12 && short > 0.0, "{power}: {two} {of_all}");
        }
    }
}
