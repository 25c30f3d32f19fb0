//! The states of the chain of [`super::moments`], and what leads from one to another.

use std::ops::Range;

use super::{
    reached,
    sources::{Cause, Kind, count, number},
    waiting::Waiting,
};

/// What goes from a state to another: of `α p + β M` a unit of time and, of those of the first kind that wait, `α M + β Q`, of whom there are so many more then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub alpha: f64,
    pub beta: f64,
    pub more: f64,
    pub by: Cause,
}

/// Who is there in a state, and what goes from it to which others.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub served: [f64; 2],
    pub waiting: Waiting,
    /// Where its `p` stands, with `M` after it where that is not known from `p`.
    pub place: usize,
    flows: Range<usize>,
}

/// A chain, by how many are there and then by how many of the first kind are served.
pub(super) struct Chain {
    /// How long sources of each kind are away, in the mean of all times.
    pub away: [f64; 2],
    pub states: Vec<State>,
    flows: Vec<(usize, Flow)>,
    /// Where the states of each level begin, and where the last ones end.
    levels: Vec<usize>,
    /// Where the numbers of each state begin, and where the last ones end.
    pub places: Vec<usize>,
    /// How far numbers are apart that know of each other, at most.
    pub reach: usize,
}

impl State {
    /// Whether it is not known from `p` who waits.
    pub fn is_free(&self) -> bool {
        self.waiting.is_free()
    }

    /// `p` and `M`, in a vector of those of all states.
    pub fn pair(&self, vector: &[f64]) -> [f64; 2] {
        let p = vector[self.place];
        [p, if self.is_free() { vector[self.place + 1] } else { p * self.waiting.least }]
    }
}

impl Chain {
    /// Of such kinds before so many servers, with so many there at most.
    pub fn new(kinds: &[Kind<f64>; 2], servers: usize, last: usize) -> Self {
        let most = kinds.map(|kind| number(kind.sources));
        // How many of the first kind may be served with so many there.
        let served = |n: usize| n.min(servers).saturating_sub(most[1])..=n.min(servers).min(most[0]);
        let mut levels = vec![0];
        for n in 0..=last {
            levels.push(levels[n] + served(n).count());
        }
        let away = kinds.map(|kind| kind.away * (1.0 - kind.again));
        let mut it = Self { away, states: Vec::with_capacity(levels[last + 1]), flows: Vec::new(), levels, places: vec![0], reach: 0 };
        for n in 0..=last {
            for i in served(n) {
                let j = n.min(servers) - i;
                let waiting = Waiting::new(count(n - i - j), [count(most[0] - i), count(most[1] - j)]);
                let (first, place) = (it.flows.len(), it.places[it.states.len()]);
                for_each_flow(kinds, [i, j], &waiting, (n < last, n >= servers), |level, more_served, flow| {
                    let (level, i) = (n.wrapping_add_signed(level), i.wrapping_add_signed(more_served));
                    it.flows.push((it.levels[level] + i - served(level).start(), flow));
                });
                it.places.push(place + if waiting.is_free() { 2 } else { 1 });
                it.states.push(State { served: [count(i), count(j)], waiting, place, flows: first..it.flows.len() });
            }
        }
        let apart = |k: usize, to: usize| it.places[k.max(to) + 1] - 1 - it.places[k.min(to)];
        let furthest = |(k, state): (usize, &State)| it.flows_from(state).map(|(to, _)| apart(k, to)).max();
        it.reach = it.states.iter().enumerate().filter_map(furthest).max().unwrap_or(0);
        it
    }

    fn flows_from(&self, state: &State) -> impl Iterator<Item = (usize, Flow)> {
        self.flows[state.flows.clone()].iter().copied()
    }

    /// What goes from a state to others.
    pub fn flows(&self, state: &State) -> impl Iterator<Item = (&State, Flow)> {
        self.flows_from(state).map(|(to, flow)| (&self.states[to], flow))
    }

    /// The chance that so many are there when all servers are busy.
    pub fn chance(&self, vector: &[f64], servers: usize, level: usize) -> f64 {
        reached::chance(&self.levels, servers, level, |state| vector[self.states[state].place])
    }
}

/// Calls `each` for everything that leads from a state of such numbers in service: how many more are there and how many more of the first kind are served
/// then, and what goes. Others may come or not, and find all servers busy or not.
fn for_each_flow(
    kinds: &[Kind<f64>; 2],
    served: [usize; 2],
    waiting: &Waiting,
    (may_come, all_busy): (bool, bool),
    mut each: impl FnMut(isize, isize, Flow),
) {
    let &Waiting { all: w, left: [a, b], least, .. } = waiting;
    let most = waiting.most();
    let of = |rate: f64, [alpha, beta]: [f64; 2], more: f64, by: Cause| Flow { alpha: rate * alpha, beta: rate * beta, more, by };
    if may_come && a > least {
        let (served, more) = if all_busy { (0, 1.0) } else { (1, 0.0) };
        each(1, served, of(kinds[0].away.recip(), [a, -1.0], more, Cause::Comes(0)));
    }
    if may_come && b > w - most {
        each(1, 0, of(kinds[1].away.recip(), [b - w, 1.0], 0.0, Cause::Comes(1)));
    }
    for (kind, &number) in served.iter().enumerate().filter(|(_, number)| **number > 0) {
        let (rate, again) = (count(number) / kinds[kind].service, kinds[kind].again);
        // One of the first kind less is served, and waits if it is back at once.
        let (fewer, back) = if kind == 0 { (-1, 1.0) } else { (0, 0.0) };
        if w == 0.0 {
            each(-1, fewer, of(rate * (1.0 - again), [1.0, 0.0], 0.0, Cause::Goes(kind)));
            continue;
        }
        for (next, can_be, form) in [(0, most > 0.0, [0.0, 1.0]), (1, least < w, [w, -1.0])] {
            if !can_be {
                continue;
            }
            let (taken_up, picked) = if next == 0 { (1, -1.0) } else { (0, 0.0) };
            each(-1, fewer + taken_up, of(rate * (1.0 - again) / w, form, picked, Cause::Goes(kind)));
            if next != kind && again > 0.0 {
                each(0, fewer + taken_up, of(rate * again / w, form, picked + back, Cause::Stays(kind)));
            }
        }
    }
}
