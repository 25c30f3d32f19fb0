//! Threads of one pool among themselves: what one thread less changes at the stations that the pool visits.
//!
//! A saturated pool of `m` threads is a closed class of `m` customers: an arrival sees the station with `m - 1` of them. The
//! factor `f_t` of [`super::super::exclusion`] says how many other threads there are, but takes them to be as busy at the station as
//! with all `m`. What is really left there follows from exact mean value analysis of the pool alone, on its own stations. Where fewer can be busy,
//! as their callers are of a smaller pool, there are `n = 1/(1 - K̄)` strands that exclude each other, and not `m`:
//!
//! ```text
//! R_s(n) = L_s + w_s(n),   X(n) = n / (Z + Σ β_s R_s(n)),   Q_s(n) = X(n) R_s(n)
//! w_s(n) = L_s E[(N - c + 1)⁺] / c,   N binomial of n-1 with mean Q_s(n-1)                      = L_s Q_s(n-1) for one server
//!        = L_s Q_s(n-1) / c            but at fewer cores than threads, with Q_s(n) = X(n) (L_s / c + w_s(n)) (Seidmann et al. 1987)
//! ψ_w = (Q_s(n-1) - X(n-1) L_s (1 - u_∞)) / (Q_s(n) - X(n) L_s (1 - u_∞)),         ψ_u = X(n-1) / X(n)         n ≤ m, between whole numbers linear
//! c = 1 + n (1 - K) (ψ n/(n-1) - 1)
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `L_s` | service at `s` in one execution of the pool's entries, slowed by the load of other pools: `/(1 - u_others)`, of the servers below |
//! | `u_∞` | load, of the servers, of those that no number of threads bounds: what is waited for them is left with one thread less |
//! | `c` of `w_s` | servers; of threads that hold each other up as many as are as fast all together |
//! | `Z` | time of an execution, and before it, spent elsewhere |
//! | `β_s` | what a unit of time at `s` adds to an execution: 1 but in strands of a fork ([`super::super::graph`]), of which that is longest that counts; the mean over its requests |
//! | `K̄` | `K` between requests of the pool, in the mean of what its threads find of each other |
//! | `ψ` | what is left with one strand less, of those waiting and in service |
//! | `q(j)`, `Π` | chances that `j` other threads are busy, and that all are |
//! | `N_j` | how many of `j` are at the station, binomial with mean `Q_s(j)` |
//! | `c` | factor on `K` between arcs of the pool; 1 where no threads exclude each other, `ψ n/(n-1)` where they are all busy |
//!
//! Where the number of busy threads is known ([`super::crowd`]), the same analysis of `n` busy threads, `Z` without the time before an
//! execution, says more: an arrival finds the others that `q` tells of, and there are those that `q` and `Π` tell of, both with its own
//! customer away, as the Linearizer has it. At one server, for `f_t` in `K` and `c`,
//!
//! ```text
//! ψ_w = Σ_j q(j) w_s(j) X(j) / [Σ_j q(j) w_s(j) X(j) + Π (w_s(m) X(m) - w_s(m-1) X(m-1))],   ψ_u likewise of X       K c = ψ K / f_t
//! ```
//!
//! which is exact for a pool at product-form stations that customers come to, whatever its load. So it is at several cores, or threads, that the pool has
//! for itself, with the chance `Π_s = Σ_j q(j) P(N_j ≥ c)` to find them all busy, `N_j` as a network of the station and a delay has it ([`super::busy`], `there`) and
//!
//! ```text
//! w_s(n) = Σ_i P(N_(n-1) = i) (i - c + 1)⁺ S(c)/c,    L_s(n) = Σ_i P(N_(n-1) = i) S(min(i + 1, c)),    Q_s(n) = X(n) (w_s(n) + L_s(n))
//! ```
//!
//! with `S` of [`super::crowd`], or `L_s` where the servers do not hold each other up. The sum in brackets, over that of all numbers of busy threads at any time, is what one customer less leaves
//! there ([`super::first_guess`]). Of a pool that only another calls `q` and `Π` are told by that one ([`below`]), and `ψ` is over that sum: with all customers, none of whom less takes a thread
//! away; so `K c = ψ K / K̄`, and the Linearizer's factor is not asked.
//!
//! Elsewhere threads that have a core each wait for none; what Seidmann's queue takes for waiting there stands for the rest of what they find, and
//! pools come out nearer with it (thread pools beside the exact chain 1.33 % off, without it 1.43). So do three threads on two cores above
//! second phases, where the two are little apart (demands of a published example miss by 2 % more without it).
//!
//! Threads of several callers, and of one the customers of several classes, are no alike sources: of one that is always there and fifteen that seldom are, each finds others than this says. With `p`
//! the share of its time for which a source is at the pool, their number varies by `1 - r` of what it would if they were alike, and `ψ` and `Π_s` count in part, with what the servers say else for the
//! rest:
//!
//! ```text
//! η = (1 - r/.1)⁺,     r = Var(p) / (E[p] (1 - E[p]))         over the sources; .1 is chosen
//! ```
//!
//! What second phases change of what an arrival finds is added ([`late`]).
//!
//! With it the threads of one pool need no boost, and [`super::removal`] only where they exclude each other more than in the mean: for one pool at
//! product-form stations the wait is that of exact mean value analysis.

mod alone;
mod below;
mod late;
mod requests;

pub(super) use self::late::Late;
use self::{
    alone::{Stop, cycles, find_others, shrink},
    requests::{Requests, believed, requests_of},
};
use super::{
    super::{
        exclusion::{Pace, with_one_less},
        linearizer::Populations,
        net::{Discipline, Work},
    },
    Layout, Sweep,
    crowd::{Come, Crowds, HowMany, Numbers, Stay},
};
use crate::model::Scalar;

/// Pools of more threads are left to `f_t`, which is exact for many.
pub(super) const LARGEST_POOL: f64 = 128.0;
/// Sources for each thread with which who waits for a thread is told by how many are there, whoever of them threads go on for after the reply.
const MANY_SOURCES: f64 = 4.0;
/// Strands that are fewer count as these.
const FEWEST_STRANDS: f64 = 1.01;
/// Processors of no more servers have Seidmann's queue, however many threads.
const SEIDMANN_SERVERS: f64 = 2.0;
/// `r` from which how many are busy of alike sources says nothing.
const UNLIKE_SOURCES: f64 = 0.1;
/// Sources that are there for more of their time are not told apart by rounding.
const ALWAYS_THERE: f64 = 1.0 - 1e-9;

/// What one strand less leaves at the station, of those waiting and of those in service; relative to `(n-1)/n`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Left<S> {
    /// `n`; infinite where nothing is taken away.
    strands: S,
    /// `K̄`.
    pub keep: S,
    pub waiting: S,
    pub first: S,
    /// What second phases change of it.
    pub(super) late: Late<S>,
    /// `ψ/f_t` of those waiting and in service, where it is known how many threads are busy.
    others: Option<(S, S)>,
    /// `η`: in which part these count, and `Π_s`.
    counts: S,
    /// Whether `ψ` is of what is there with all customers.
    of_all: bool,
    /// `Π_s`, the same, at several servers that nobody else comes to.
    all_busy: Option<S>,
}

/// What one thread less of each pool leaves, and room to find it.
pub(in super::super) struct Pools<S> {
    /// At every station, by station and position of the pool there.
    pub left: Vec<Left<S>>,
    /// The pace of each task's pool.
    pub paces: Vec<Option<Pace<S>>>,
    pools: Vec<Pool<S>>,
    /// Stops of pools that are done.
    spare: Vec<Vec<Stop<S>>>,
}

impl<S: Scalar> Pools<S> {
    /// Of so many pools, each counted at each of its stations, and tasks.
    pub fn new(n_left: usize, n_tasks: usize) -> Self {
        Self { left: vec![Left::nothing(); n_left], paces: vec![None; n_tasks], pools: Vec::new(), spare: Vec::new() }
    }

    /// Finds them, and how services grow with the number of their busy threads; `found` is where these numbers were found last, by station.
    pub fn update(
        &mut self,
        sweep: &Sweep<'_, S>,
        layouts: &[Layout],
        first_place: &[usize],
        crowds: &mut Crowds<S>,
        found: &mut [Option<f64>],
    ) {
        let Self { left, paces, pools, spare } = self;
        left.fill(Left::nothing());
        paces.fill(None);
        crowds.clear();
        for (layout, &place) in layouts.iter().zip(first_place).skip(sweep.net.n_processors) {
            late::find_of_customers(sweep, layout, &mut left[place..place + layout.pools.len()]);
        }
        for &task in sweep.net.order.iter().rev() {
            let it = &sweep.net.tasks[task];
            let threads = sweep.populations.caps[task];
            if it.class.is_some() || !(2.0..=LARGEST_POOL).contains(&threads) {
                continue;
            }
            let (executions, service) = sweep.executions(task);
            if executions <= 0.0 {
                continue;
            }
            let mut stops = spare.pop().unwrap_or_default();
            find_stops(sweep, layouts, first_place, crowds, (task, threads, executions), &mut stops);
            late::find_at_stops(sweep, layouts, (task, executions), &mut stops, crowds);
            let mut pool = Pool { task, threads, executions, service, stops, numbers: None, counts: S::from(1.0) };
            if let Some(station) = it.station {
                add_crowd(sweep, &layouts[station], station, &mut pool, crowds, &mut found[station]);
            }
            pools.push(pool);
        }
        below::find_numbers(sweep, layouts, pools, crowds);
        // Backwards, so that each finds its own room again.
        for mut pool in pools.drain(..).rev() {
            set_left(sweep, layouts, &mut pool, left, paces);
            pool.stops.clear();
            spare.push(pool.stops);
        }
    }
}

/// Sets what is left of a pool at its stops, and its pace.
fn set_left<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], pool: &mut Pool<S>, left: &mut [Left<S>], paces: &mut [Option<Pace<S>>]) {
    let Pool { task, threads, executions, stops, counts, .. } = pool;
    let is_told = sweep.net.tasks[*task].width <= 1.0 && sweep.tells_strands;
    let keep = if is_told { mean_keep(sweep, layouts, *task) } else { S::from(1.0) };
    let strands = strands(*threads, keep);
    shrink(stops, strands, *executions);
    let scale = strands / (strands - 1.0);
    paces[*task] = stops.first().filter(|stop| stop.now.1 > 0.0).map(|stop| Pace { strands, of_each: stop.before.1 / stop.now.1 * scale });
    for stop in &*stops {
        // One less leaves no more, but for rounding.
        let ratio = |less: S, full: S| match () {
            () if full > 0.0 && less < full => less / full * scale,
            () if full > 0.0 => scale,
            () => S::from(1.0),
        };
        left[stop.place] = Left {
            strands,
            keep,
            waiting: ratio(stop.before.0, stop.now.0),
            first: ratio(stop.before.1, stop.now.1),
            late: stop.late,
            others: stop.others.as_ref().map(|others| {
                let kept = if others.of_all { mean_keep(sweep, layouts, *task) } else { sweep.exclusion.of_threads(*task) };
                (others.waiting.left(others.of_all) / kept, others.first.left(others.of_all) / kept)
            }),
            of_all: stop.others.as_ref().is_some_and(|others| others.of_all),
            all_busy: stop.others.as_ref().and_then(|others| others.all_busy),
            counts: *counts,
        };
    }
}

/// A task, how many of its threads can be busy, its executions a unit of time, how long one takes and where; and how many are busy, where that is known, with `η`.
struct Pool<S> {
    task: usize,
    threads: f64,
    executions: S,
    service: S,
    stops: Vec<Stop<S>>,
    numbers: Option<Numbers<S>>,
    counts: S,
}

/// Adds how the threads of a pool hold each other up, and what an arrival finds of the others at its stops.
fn add_crowd<S: Scalar>(
    sweep: &Sweep<'_, S>,
    layout: &Layout,
    station: usize,
    pool: &mut Pool<S>,
    crowds: &mut Crowds<S>,
    found: &mut Option<f64>,
) {
    let servers = sweep.net.stations[station].servers;
    let sources = layout.sources(sweep);
    // Who may come while a thread is at work for the request before is not known, but of many sources it hardly matters.
    let is_known = layout.ends_at_reply || sources >= MANY_SOURCES * pool.threads;
    // Where there are threads for all, those of several callers hold each other up as well, and of one that forks: the threads of another only one visit
    // these stops themselves.
    let are_told_apart = layout.pools.len() > 1
        || sweep.net.tasks[pool.task].bounded_by == pool.task && layout.pools.iter().all(|&above| sweep.net.tasks[above].class.is_none());
    let has_room = pool.threads < servers && is_known && are_told_apart;
    if pool.threads != servers && !has_room {
        return;
    }
    let busy = pool.executions * pool.service;
    let come = is_known.then(|| {
        let waiting = layout.arcs.iter().fold(S::from(0.0), |sum, &a| sum + sweep.flow.arc_rate[a] * sweep.unknowns[a]);
        Come { sources, there: busy + waiting, found }
    });
    let meet = crowds.add(
        station,
        pool.threads,
        HowMany::by(come),
        pool.services_alone(),
        (busy, pool.service),
        pool.stops.iter().map(|s| s.stay),
    );
    pool.counts = alike(sweep, layout);
    if !meet || has_room && layout.pools.len() > 1 || pool.counts <= 0.0 {
        return;
    }
    pool.find_others(crowds, false);
    if layout.is_guessed(sweep, sources) {
        let lost = pool.stops.iter().filter_map(|stop| Some((stop.station, stop.others.as_ref()?.lost(sources)?)));
        lost.for_each(|(station, lost)| crowds.set_lost(station, lost));
    }
}

/// `η` of who comes to a station: 1 where the threads of all callers, or of one the customers of all classes, are there for as much of their time.
fn alike<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout) -> S {
    let [zero, one] = [S::from(0.0), S::from(1.0)];
    // How many of the threads may come that nobody waits for, or that work for what comes from outside, is not known.
    if layout.of_senders {
        return one;
    }
    let Populations { customers, .. } = *sweep.populations;
    let n = customers.len();
    let are_pools = layout.pools.len() > 1;
    // Of threads without bound there are no more than who begins what they do.
    let most = layout.sources(sweep);
    let strands = |&task: &usize| sweep.populations.strands_at(sweep.net, task, layout.station).min(most);
    let sources: Vec<f64> = if are_pools { layout.pools.iter().map(strands).collect() } else { customers.to_vec() };
    if sources.iter().any(|number| number.is_infinite()) {
        return one;
    }
    let mut there = vec![zero; sources.len()];
    for (&arc, &pool) in layout.arcs.iter().zip(&layout.pool_of) {
        let Some((kin, pool)) = sweep.net.kin_of_arc(arc).zip(pool) else { return one };
        let of_arc = sweep.flow.arc_rate[arc] * (sweep.unknowns[arc] + sweep.service(arc).0);
        if are_pools {
            there[pool] += of_arc;
        } else {
            let shares = &sweep.exclusion.class_shares[kin * n..(kin + 1) * n];
            there.iter_mut().zip(shares).for_each(|(there, &share)| *there += of_arc * share);
        }
    }
    let (mut kinds, mut all, mut mean, mut square) = (0, 0.0, zero, zero);
    for (&there, &sources) in there.iter().zip(&sources).filter(|(there, sources)| **there > 0.0 && **sources > 0.0) {
        kinds += 1;
        all += sources;
        mean += there;
        square += there * there / sources;
    }
    if kinds < 2 || mean >= all * ALWAYS_THERE {
        return one;
    }
    let (mean, square) = (mean / all, square / all);
    let part = (square - mean * mean) / (mean * (-mean + 1.0)) / UNLIKE_SOURCES;
    if part < 1.0 { -part + 1.0 } else { zero }
}

impl<S: Scalar> Pool<S> {
    /// How long an execution takes while one thread is busy, two and so on, where nobody else comes to the stops, nor to what they visit.
    fn services_alone(&self) -> Option<Vec<S>> {
        let is_alone = self.stops.iter().all(|stop| stop.is_of_one_pool && stop.is_alone);
        is_alone.then(|| cycles(&self.stops, self.service, self.threads)).filter(|services| !services.is_empty())
    }

    /// Sets what an arrival finds of the other threads at the stops, of the pool that was added last; over what is there with all customers, or without one.
    fn find_others(&mut self, crowds: &Crowds<S>, of_all: bool) {
        let (stops, service) = (&mut self.stops, self.service);
        find_others(stops, crowds.busy(), service, of_all);
        for stop in stops.iter_mut() {
            let Some(requested) = &stop.requested else { continue };
            let of = stop.late.find_of_busy(requested, &crowds.busy(), service, of_all);
            if let Some((others, of)) = stop.others.as_mut().zip(of.filter(|_| stop.has_one_pool)) {
                others.lost = Some((of.waiting, of.first));
            }
        }
        self.numbers = crowds.numbers();
    }
}

/// Adds the stops of a pool of so many threads and executions a unit of time.
fn find_stops<S: Scalar>(
    sweep: &Sweep<'_, S>,
    layouts: &[Layout],
    first_place: &[usize],
    crowds: &Crowds<S>,
    (task, threads, executions): (usize, f64, S),
    stops: &mut Vec<Stop<S>>,
) {
    let zero = S::from(0.0);
    let delays = delays(sweep, task);
    let delay_of = |arc: usize| {
        let node = sweep.net.arcs[arc].source.held();
        node.and_then(|node| delays.iter().find(|(n, _)| *n == node)).map_or(S::from(1.0), |(_, delay)| *delay)
    };
    for &station in &sweep.visited[task] {
        let (layout, it) = (&layouts[station], &sweep.net.stations[station]);
        let Some(pool) = layout.pools.iter().position(|&p| p == task) else { continue };
        if it.discipline == Discipline::Delay && crowds.at(station).is_empty() {
            continue;
        }
        // Who is in a task of no fewer threads waits at what it visits, and not for a thread.
        let target = layout.arcs.first().and_then(|&a| sweep.net.arcs[a].target).map(|entry| sweep.net.entries[entry].task);
        if target.is_some_and(|target| sweep.net.tasks[target].bounded_by == task) {
            continue;
        }
        let requests = requests_of(sweep, layout, |other| other == pool, delay_of);
        let Requests { own, all, sent, first: first_time, wait, delaying, .. } = requests;
        // Of servers that hold each other up, all together are as fast as fewer that do not.
        let (alone, slowest, most) = match (crowds.at(station), target) {
            ([first, .., last], Some(target)) => (*first, *last, sweep.populations.strands(sweep.net, target)),
            _ => (S::from(1.0), S::from(1.0), it.servers),
        };
        let servers = alone / slowest * most;
        let as_fast_as = slowest.recip() * most;
        let demand = own / executions / (-believed((all - own) / as_fast_as) + 1.0) * alone;
        // The queue of theirs is Seidmann's.
        let (alone, queueing, of_one) =
            if crowds.at(station).is_empty() { (S::from(1.0), S::from(1.0), it.servers) } else { (alone, alone / servers, 1.0) };
        let elsewhere = first_time * (-alone + 1.0);
        let there = first_time + wait;
        let delay = if there > 0.0 { delaying / there } else { S::from(1.0) };
        let few_cores = station < sweep.net.n_processors && it.servers > 1.0 && it.servers < threads;
        let threads_of_target = target.map_or(it.servers, |target| sweep.populations.caps[target]);
        let mean_alone = crowds.mean_alone(station).map(|mean| mean * requests.number / executions);
        let mean = mean_alone.unwrap_or(own / executions);
        let services =
            if layout.is_of_one_pool() { crowds.at(station).iter().map(|&service| service * mean).collect() } else { Vec::new() };
        stops.push(Stop {
            station,
            place: first_place[station] + pool,
            demand,
            slowed: demand * believed(sent / as_fast_as),
            servers,
            number: if it.servers.is_finite() { it.servers } else { threads_of_target },
            few_cores: few_cores && it.servers > SEIDMANN_SERVERS,
            residence: (wait + first_time) / executions,
            delay,
            before: (zero, zero),
            now: (zero, zero),
            others: None,
            is_of_one_pool: layout.is_of_one_pool(),
            is_alone: target.is_none() || mean_alone.is_some() || it.servers <= 1.0 || crowds.never_meet(station),
            services,
            numbers: Vec::new(),
            late: Late::none(S::from(1.0)),
            requested: None,
            requests,
            as_fast_as,
            has_one_pool: !layout.open && layout.pools.len() == 1,
            stay: Stay::new(first_time * queueing / executions, own * queueing / executions, (wait + elsewhere) / executions, of_one)
                .delaying(delay),
        });
    }
}

/// What the time of each node of a task that forks adds to its executions.
fn delays<S: Scalar>(sweep: &Sweep<'_, S>, task: usize) -> Vec<(usize, S)> {
    let it = &sweep.net.tasks[task];
    if it.width <= 1.0 {
        return Vec::new();
    }
    let graphs = it.entries.iter().filter_map(|&e| match &sweep.net.entries[e].work {
        Work::Graph(graph) => Some(graph),
        Work::Phases(_) => None,
    });
    // Each of a node's executions in one of the entry counts.
    let of_one = |(node, delay): (usize, S)| {
        let times = sweep.net.nodes[node].weight;
        (node, if times > 0.0 { delay / times } else { delay })
    };
    graphs.flat_map(|graph| graph.delays(&|node| sweep.flow.strands[node])).map(of_one).collect()
}

/// `K̄`, by what the threads of a task find of each other at the first station that they visit.
fn mean_keep<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], task: usize) -> S {
    let one = S::from(1.0);
    let Some(&station) = sweep.visited[task].first() else { return one };
    let layout = &layouts[station];
    let n = layout.arcs.len();
    let own = |x: &usize| layout.pool_of[*x].is_some_and(|pool| layout.pools[pool] == task);
    let rate = |x: usize| sweep.flow.arc_rate[layout.arcs[x]];
    let (mut kept, mut all) = (S::from(0.0), S::from(0.0));
    for x in (0..n).filter(own) {
        let found = rate(x) * (sweep.unknowns[layout.arcs[x]] + sweep.service(layout.arcs[x]).0);
        for i in (0..n).filter(own) {
            let weight = rate(i) * found;
            kept += weight * sweep.exclusion.factors[layout.pairs[layout.row_of[i] * n + x] as usize];
            all += weight;
        }
    }
    if all > 0.0 { kept / all } else { one }
}

/// `n`, of so many threads.
fn strands<S: Scalar>(threads: f64, keep: S) -> S {
    let n = (-keep + 1.0).recip();
    if keep >= 1.0 || n >= threads {
        S::from(threads)
    } else if n < FEWEST_STRANDS {
        S::from(FEWEST_STRANDS)
    } else {
        n
    }
}

impl<S: Scalar> Left<S> {
    /// Where a thread less is not asked for.
    pub fn nothing() -> Self {
        let one = S::from(1.0);
        Self {
            strands: S::from(f64::INFINITY),
            keep: one,
            waiting: one,
            first: one,
            late: Late::none(one),
            others: None,
            of_all: false,
            counts: one,
            all_busy: None,
        }
    }

    /// Whether a strand less leaves less.
    pub fn is_less(&self) -> bool {
        self.strands.value().is_finite()
    }

    /// `c` for those waiting and for those in service, at exclusion `keep`.
    pub fn factors(&self, keep: S) -> (S, S) {
        let factor = |left: S| with_one_less(self.strands, keep, left);
        let Some((waiting, first)) = self.others else { return (factor(self.waiting), factor(self.first)) };
        let weighed = |told: S, left: S| if self.counts < 1.0 { told * self.counts + factor(left) * (-self.counts + 1.0) } else { told };
        (weighed(waiting, self.waiting), weighed(first, self.first))
    }

    /// In which part what is there is told with all customers.
    pub fn of_all(&self) -> S {
        if self.of_all { self.counts } else { S::from(0.0) }
    }

    /// The chance that all servers are busy, with `otherwise` where nothing tells it.
    pub fn all_busy(&self, otherwise: impl FnOnce() -> S) -> S {
        match self.all_busy {
            Some(told) if self.counts < 1.0 => told * self.counts + otherwise() * (-self.counts + 1.0),
            Some(told) => told,
            None => otherwise(),
        }
    }
}
