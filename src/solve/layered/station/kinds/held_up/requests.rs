//! What executions of a pool do where its threads meet: means, and covariances with how much of them counts.
//!
//! ```text
//! ℓ of a visit = h_k² s                 of all else its time
//! E x_i = n_i x_A + Σ_j y_ij E x_B                                    x any of ℓ, Z, w_k, v_k
//! Cov(x, ℓ)_i = n_i Cov_A + Y Cov_B + Var N (x_A + x̄_B)(ℓ_A + ℓ̄_B)
//! ```
//!
//! as `V_i` in [`super::super::super::super::flow`], whose symbols these are, and the third cumulant of `ℓ`
//!
//! ```text
//! κ_i = (n_i - Y) κ_A + Y κ_C + 3 Var N E C Var C + κ_N (E C)³        C = A + B, κ_N = Var N (2 Var N/Y - 1): that of a geometric number, none of a constant one
//! ```
//!
//! by which half of the requests that make one call in the mean are known to make none.

use super::{Kind, Known, Met, Served, Solved, Work};
use crate::{
    model::Scalar,
    solve::layered::{
        completion::Moments,
        net::{CallGroup, Discipline, Node, Work as Does},
        residual::Law,
        station::kinds::{
            open::Services,
            sources::{count, number},
        },
    },
};

/// The third cumulant of a time of such mean and variance ([`Law::third`]).
pub(super) fn third_cumulant<S: Scalar>(mean: S, variance: S) -> S {
    if mean <= 0.0 {
        return S::from(0.0);
    }
    let cube = mean * mean * mean;
    cube * Law::third((variance / (mean * mean) + 1.0) * 0.5) * 6.0 - mean * variance * 3.0 - cube
}

/// The mean cube, of mean, variance and third cumulant.
fn cubes<S: Scalar>(mean: S, variance: S, third: S) -> S {
    third + mean * variance * 3.0 + mean * mean * mean
}

/// The third cumulant, of mean, mean square and mean cube.
fn cumulant<S: Scalar>(mean: S, squares: S, cubes: S) -> S {
    cubes - mean * squares * 3.0 + mean * mean * mean * 2.0
}

/// Where `ℓ` and `Z` stand, and after them some numbers for each station.
const WHOLE: usize = 0;
const ELSEWHERE: usize = 1;
const OF_EACH: usize = 4;

/// Where the time at a station stands, its visits, and what of the time is after replies.
const fn time_at(place: usize) -> usize {
    OF_EACH * place + 2
}

const fn visits_at(place: usize) -> usize {
    OF_EACH * place + 3
}

const fn late_at(place: usize) -> usize {
    OF_EACH * place + 4
}

/// Where the time stands that all strands of an execution need there.
const fn load_at(place: usize) -> usize {
    OF_EACH * place + 5
}

/// Means, covariances with `ℓ`, and its third cumulant.
#[derive(Clone, Debug)]
pub(super) struct Sums<S> {
    mean: Vec<S>,
    with_whole: Vec<S>,
    third: S,
    /// Mean of `ℓ` after the reply.
    late: S,
}

impl<S: Scalar> Sums<S> {
    pub(super) fn none(n_met: usize) -> Self {
        let zero = vec![S::from(0.0); time_at(n_met)];
        Self { mean: zero.clone(), with_whole: zero, third: S::from(0.0), late: S::from(0.0) }
    }

    /// Of `ℓ`.
    pub fn whole(&self) -> Served<S> {
        Served { mean: self.mean[WHOLE], variance: self.with_whole[WHOLE], third: self.third, late: self.late }
    }

    pub fn work(&self, place: usize) -> Work<S> {
        Work { time: self.mean[time_at(place)], visits: self.mean[visits_at(place)], late: self.mean[late_at(place)] }
    }

    /// What all strands of an execution need at a station, and not only as far as it waits for them.
    pub fn load(&self, place: usize) -> S {
        self.mean[load_at(place)]
    }

    fn n_met(&self) -> usize {
        (self.mean.len() - time_at(0)) / OF_EACH
    }

    /// What they do in the mean.
    pub fn mean_kind(&self) -> Kind<S> {
        Kind { at: (0..self.n_met()).map(|place| self.work(place)).collect(), elsewhere: self.mean[ELSEWHERE] }
    }

    /// What those of two lengths do, of which such a share is `short`: none of it less than nothing, and all of it in the mean.
    pub fn kinds(&self, lengths: [S; 2], short: S) -> [Kind<S>; 2] {
        let long = -short + 1.0;
        let of = |i: usize| {
            let (mean, slope) = (self.mean[i], self.with_whole[i] / self.with_whole[WHOLE]);
            let [of_short, of_long] = lengths.map(|length| mean + slope * (length - self.mean[WHOLE]));
            match () {
                () if of_short < 0.0 => [S::from(0.0), mean / long],
                () if of_long < 0.0 => [mean / short, S::from(0.0)],
                () => [of_short, of_long],
            }
        };
        let at = |kind: usize| {
            (0..self.n_met()).map(move |place| {
                let [time, visits, late] = [time_at, visits_at, late_at].map(|at| of(at(place))[kind]);
                Work { time, visits, late }
            })
        };
        [0, 1].map(|kind| Kind { at: at(kind).collect(), elsewhere: of(ELSEWHERE)[kind] })
    }

    /// A time of its own, where nobody meets.
    fn add_time(&mut self, mean: S, variance: S) {
        for i in [WHOLE, ELSEWHERE] {
            self.mean[i] += mean;
            self.with_whole[i] += variance;
        }
        self.third += third_cumulant(mean, variance);
    }

    /// One visit to a station.
    fn add_visit(&mut self, place: usize, weight: S, Served { mean, variance, third, late }: Served<S>) {
        self.third += third * weight * weight * weight;
        self.mean[WHOLE] += mean * weight;
        self.with_whole[WHOLE] += variance * weight * weight;
        self.mean[time_at(place)] += mean;
        self.mean[load_at(place)] += mean;
        self.with_whole[time_at(place)] += variance * weight;
        self.mean[visits_at(place)] += 1.0;
        self.mean[late_at(place)] += late;
    }

    /// As many of what is independent of all else.
    fn add(&mut self, other: &Self, times: S) {
        for (to, from) in [(&mut self.mean, &other.mean), (&mut self.with_whole, &other.with_whole)] {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to += times * from);
        }
        self.third += times * other.third;
    }

    /// What a strand does `times` in an execution, which all together delay that by so much of their time.
    pub(super) fn add_delaying(&mut self, strand: &Self, times: S, delay: S) {
        let n_met = self.n_met();
        let loads: Vec<S> = (0..n_met).map(|place| self.load(place) + times * strand.load(place)).collect();
        for (to, from) in self.mean.iter_mut().zip(&strand.mean) {
            *to += delay * *from;
        }
        for (to, from) in self.with_whole.iter_mut().zip(&strand.with_whole) {
            *to += delay * delay * *from;
        }
        self.third += delay * delay * delay * strand.third;
        (0..n_met).zip(loads).for_each(|(place, load)| self.mean[load_at(place)] = load);
    }

    /// Takes all but the loads in such proportion that `ℓ` has this law.
    pub(super) fn scale_to(&mut self, Moments { mean, variance, .. }: Moments<S>) {
        let loads: Vec<S> = (0..self.n_met()).map(|place| self.load(place)).collect();
        let (of_means, of_products) = (self.mean[WHOLE], self.with_whole[WHOLE]);
        let scale = |values: &mut [S], to: S, from: S| values.iter_mut().filter(|_| from > 0.0).for_each(|value| *value *= to / from);
        scale(&mut self.mean, mean, of_means);
        scale(&mut self.with_whole, variance, of_products);
        let longer = if of_products > 0.0 { variance / of_products } else { S::from(0.0) };
        self.third *= if longer > 0.0 { longer * longer.sqrt() } else { S::from(0.0) };
        loads.into_iter().enumerate().for_each(|(place, load)| self.mean[load_at(place)] = load);
    }

    /// What follows with such a chance.
    fn add_with_chance(&mut self, other: &Self, chance: S) {
        let Served { mean, variance, third, .. } = other.whole();
        let left = chance * (-chance + 1.0) * mean;
        self.third += cumulant(chance * mean, chance * (variance + mean * mean), chance * cubes(mean, variance, third));
        for i in 0..self.mean.len() {
            self.mean[i] += chance * other.mean[i];
            self.with_whole[i] += chance * other.with_whole[i] + left * other.mean[i];
        }
    }

    /// Of a mixture: adds so much of one to sums of means, of products with `ℓ` and of its cubes.
    fn mix(&mut self, other: &Self, share: S) {
        let Served { mean: whole, variance, third, .. } = other.whole();
        self.third += share * cubes(whole, variance, third);
        for i in 0..self.mean.len() {
            self.mean[i] += share * other.mean[i];
            self.with_whole[i] += share * (other.with_whole[i] + other.mean[i] * whole);
        }
    }

    /// Covariances and cumulant of sums that were mixed of one in all.
    fn mixed(mut self) -> Self {
        let whole = self.mean[WHOLE];
        self.third = cumulant(whole, self.with_whole[WHOLE], self.third);
        self.with_whole.iter_mut().zip(&self.mean).for_each(|(product, &mean)| *product -= mean * whole);
        self
    }
}

/// Where threads of a pool meet, and what leads there.
pub(super) struct Search<'a, S> {
    pub(super) solved: Solved<'a, S>,
    pub met: Vec<Met<S>>,
}

impl<'a, S: Scalar> Search<'a, S> {
    pub fn new(solved: Solved<'a, S>) -> Self {
        Self { solved, met: Vec::new() }
    }

    fn place(&self, station: usize) -> Option<usize> {
        self.met.iter().position(|met| met.station == station)
    }

    /// Entries that executions come to without a station at which they meet before; finds these. None where too little is known of what they do.
    pub fn reach(&mut self, task: usize, threads: usize, known: &mut Known<S>) -> Option<Vec<bool>> {
        let net = self.solved.net;
        let mut reached = vec![false; net.entries.len()];
        net.tasks[task].entries.iter().for_each(|&entry| reached[entry] = true);
        for &below in &net.order {
            for &entry in &net.tasks[below].entries {
                if !reached[entry] {
                    continue;
                }
                let nodes: Vec<usize> = match &net.entries[entry].work {
                    Does::Phases(phases) => phases[..if below == task { phases.len() } else { 1 }].iter().flatten().copied().collect(),
                    Does::Graph(graph) => (0..graph.vertices.len()).flat_map(|v| graph.nodes_of(v)).collect(),
                };
                for node in nodes.into_iter().map(|node| &net.nodes[node]) {
                    if let Some(host) = node.host_arc {
                        self.meet(host, threads, known)?;
                    }
                    for arc in node.calls.iter().flat_map(CallGroup::arcs) {
                        let is_met = self.meet(arc, threads, known)?;
                        let Some(target) = net.arcs[arc].target else { continue };
                        reached[target] |= !is_met;
                    }
                }
            }
        }
        Some(reached)
    }

    /// Whether threads meet at the station of an arc; none where the order there is neither that of arrival nor sharing.
    fn meet(&mut self, arc: usize, threads: usize, known: &mut Known<S>) -> Option<bool> {
        let net = self.solved.net;
        let station = net.arcs[arc].station;
        let it = &net.stations[station];
        if it.servers >= count(threads) || it.discipline == Discipline::Delay {
            return Some(false);
        }
        let shared = match it.discipline {
            Discipline::Fcfs => false,
            Discipline::Sharing => true,
            _ => return None,
        };
        if self.place(station).is_none() {
            let servers = number(it.servers);
            let met = match net.arcs[arc].target {
                None => Met { shared, ..Met::of_cores(station, (1..=servers).map(|n| S::from(count(n))).collect()) },
                Some(entry) => match known.get(&station) {
                    Some(met) => met.clone()?,
                    None => {
                        let met = Met::of_pool(self.solved, (station, net.entries[entry].task), servers, known);
                        known.insert(station, met.clone());
                        met?
                    }
                },
            };
            self.met.push(met);
        }
        Some(true)
    }

    /// Of each entry that is reached: what executions of the task do, and others until their replies.
    pub fn by_entry(&self, task: usize, reached: &[bool]) -> Vec<Option<Sums<S>>> {
        let net = self.solved.net;
        let mut found: Vec<Option<Sums<S>>> = vec![None; net.entries.len()];
        for &entry in net.order.iter().rev().flat_map(|&task| &net.tasks[task].entries).filter(|&&entry| reached[entry]) {
            let mut sums = Sums::none(self.met.len());
            match &net.entries[entry].work {
                Does::Phases([first, later @ ..]) => {
                    if let Some(node) = *first {
                        sums = self.of_node(&net.nodes[node], &found);
                    }
                    // Its own threads are held after the reply, too.
                    for &node in later.iter().flatten().filter(|_| net.entries[entry].task == task) {
                        let late = self.of_node(&net.nodes[node], &found);
                        sums.late += late.mean[WHOLE];
                        sums.add(&late, S::from(1.0));
                    }
                }
                Does::Graph(graph) => sums = self.of_graph(graph, &found),
            }
            found[entry] = Some(sums);
        }
        found
    }

    /// Of all requests to a task, with what is known of its entries; `ℓ` of them besides. None where none come.
    pub fn of_all(&self, task: usize, by_entry: &[Option<Sums<S>>]) -> Option<(Sums<S>, Services<S>)> {
        let (net, flow) = (self.solved.net, self.solved.flow);
        let come = || {
            let entries = net.tasks[task].entries.iter();
            let sums = entries.filter_map(|&entry| Some((flow.entry_rate[entry], by_entry[entry].as_ref()?)));
            sums.filter(|(rate, sums)| *rate > 0.0 && sums.mean[WHOLE] > 0.0)
        };
        let lengths = Services::of_moments(come().map(|(rate, sums)| {
            let Served { mean, variance, third, .. } = sums.whole();
            (rate, [mean, (variance + mean * mean) * 0.5, cubes(mean, variance, third) / 6.0])
        }))?;
        let mut all = Sums::none(self.met.len());
        come().for_each(|(rate, sums)| all.mix(sums, rate / lengths.rate));
        Some((all.mixed(), lengths))
    }

    pub(super) fn of_node(&self, node: &Node<S>, below: &[Option<Sums<S>>]) -> Sums<S> {
        let net = self.solved.net;
        let n_met = self.met.len();
        let mut slice = Sums::none(n_met);
        if let Some(host) = node.host_arc
            && !self.add_met(host, &mut slice)
        {
            let (own, wait) = (node.demand / node.slices, self.solved.waits[host]);
            slice.add_time(own + wait, own * own * node.cvsq + wait * wait);
        }
        let mut calls = Sums::none(n_met);
        for group in &node.calls {
            let mut call = self.of_call(group.arc, below);
            for &leg in &group.legs {
                call.add_with_chance(&self.of_call(leg, below), net.arcs[leg].leg_probability);
            }
            calls.mix(&call, net.arcs[group.arc].visits);
        }
        let mut all = Sums::none(n_met);
        all.add_time(node.think_time, node.think_time * node.think_time);
        all.add(&slice, node.slices);
        let (of_slice, of_calls) = (slice.mean[WHOLE], calls.mean[WHOLE]);
        let varies = node.n_sync_variance;
        for i in 0..all.mean.len() {
            let (slice, calls, product) = (slice.mean[i], calls.mean[i], calls.with_whole[i]);
            all.mean[i] += calls;
            if node.n_sync > 0.0 {
                let call = calls / node.n_sync;
                let step = (slice + call) * (of_slice + of_calls / node.n_sync);
                all.with_whole[i] += product - call * of_calls + varies * step;
            } else if !node.deterministic {
                // None, but for the slopes where calls begin with a parameter: Var N and Y are as one there.
                all.with_whole[i] += product + varies * slice * of_slice + calls * of_slice + of_calls * slice;
            }
        }
        let of_slice = slice.whole();
        let (calls, squares, cubes) = (of_calls, calls.with_whole[WHOLE], calls.third);
        if node.n_sync > 0.0 {
            let [mean, square, cube] = [calls, squares, cubes].map(|sum| sum / node.n_sync);
            let step = of_slice.mean + mean;
            let variance = of_slice.variance + square - mean * mean;
            all.third += node.n_sync * cumulant(mean, square, cube) + varies * step * variance * 3.0;
            all.third += varies * (varies / node.n_sync * 2.0 - 1.0) * step * step * step;
        } else if !node.deterministic {
            let Served { mean, variance, .. } = of_slice;
            let square = variance + mean * mean;
            all.third += varies * mean * (square + variance * 2.0) + (calls * square + squares * mean) * 3.0 + cubes;
        }
        all
    }

    /// Adds a visit over an arc, if threads meet where it leads.
    fn add_met(&self, arc: usize, to: &mut Sums<S>) -> bool {
        let Some(place) = self.place(self.solved.net.arcs[arc].station) else { return false };
        let met = &self.met[place];
        if let Some(served) = met.served(self.solved, arc) {
            to.add_visit(place, met.weight, served);
        }
        true
    }

    fn of_call(&self, arc: usize, below: &[Option<Sums<S>>]) -> Sums<S> {
        let mut call = Sums::none(self.met.len());
        if self.add_met(arc, &mut call) {
            return call;
        }
        let wait = self.solved.waits[arc];
        call.add_time(wait, wait * wait);
        if let Some(sums) = self.solved.net.arcs[arc].target.and_then(|target| below[target].as_ref()) {
            call.add(sums, S::from(1.0));
        }
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(mean: f64) -> Served<f64> {
        let variance = mean * mean;
        Served { mean, variance, third: third_cumulant(mean, variance), late: 0.0 }
    }

    #[test]
    fn exponential_times_have_their_cumulants() {
        assert!((third_cumulant(0.7, 0.49) - 2.0 * 0.343).abs() < 1e-12);
        assert_eq!(third_cumulant(0.0, 0.0), 0.0);
    }

    /// With chance .3 a visit to a station, at which it counts twice.
    #[test]
    fn what_follows_with_a_chance_is_a_mixture() {
        let mut visit = Sums::none(1);
        visit.add_visit(0, 2.0, exponential(0.5));
        let mut sums = Sums::none(1);
        sums.add_time(1.0, 0.25);
        sums.add_with_chance(&visit, 0.3);
        let Served { mean, variance, third, .. } = sums.whole();
        assert!((mean - 1.3).abs() < 1e-12 && (variance - (0.25 + 0.3 * 2.0 - 0.09)).abs() < 1e-12);
        assert!((third - (third_cumulant(1.0, 0.25) + 0.3 * 6.0 - 3.0 * 0.3 * 0.6 + 2.0 * 0.027)).abs() < 1e-12);
        // E[w ℓ] - E w E ℓ of the visit, whose ℓ is twice its w.
        let Work { time, visits, .. } = sums.work(0);
        assert!((time - 0.15).abs() < 1e-12 && (visits - 0.3).abs() < 1e-12);
        assert!((sums.with_whole[time_at(0)] - (0.3 * 1.0 - 0.15 * 0.3)).abs() < 1e-12);
        assert!((sums.with_whole[visits_at(0)] - (0.3 * 1.0 - 0.3 * 0.3)).abs() < 1e-12);
    }

    #[test]
    fn kinds_do_in_the_mean_what_all_do() {
        let mut all = Sums::none(2);
        let mut long = Sums::none(2);
        long.add_visit(0, 1.0, exponential(3.0));
        let mut short = Sums::none(2);
        short.add_visit(1, 1.0, exponential(0.2));
        all.mix(&long, 0.25);
        all.mix(&short, 0.75);
        let all = all.mixed();
        let kinds = all.kinds([0.125, 4.0], 0.8);
        for (place, time) in [(0, 0.75), (1, 0.15)] {
            let of = |kind: usize| kinds[kind].at[place].time;
            assert!(of(0) >= 0.0 && of(1) >= 0.0 && (0.8 * of(0) + 0.2 * of(1) - time).abs() < 1e-12, "{kinds:?}");
        }
        // Who is long is long there, and short ones are elsewhere.
        assert!(kinds[1].at[0].time > 3.0 && kinds[1].at[1].time < kinds[0].at[1].time);
    }
}
