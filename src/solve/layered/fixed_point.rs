//! The fixed point of one stage: the sweep repeated, accelerated, until nothing changes.
//!
//! The unknowns stand in one row: the waits of all arcs, then the excess wait of every station, then by station the chances to
//! wait, `R` and `φ` ([`super::station`]). Where acceleration does not settle, plain and ever shorter steps take its place.

use super::{
    SolveOptions,
    anderson::{Anderson, Differences},
    exclusion::{Exclusion, Pairs},
    flow::{Flow, Waits},
    linearizer::{Absence, Populations},
    net::Net,
    station::{Capacity, Layout, Left, Scratch, Sweep, pool_factors, station_waits},
};
use crate::model::Scalar;

/// Short plain steps before a fresh start is accelerated.
const CAUTIOUS_STEPS: usize = 3;
/// The same, after an extrapolation that led nowhere.
const CAUTIOUS_STEPS_AGAIN: usize = 40;
/// Sweeps after which acceleration is given up for plain steps, and these for shorter ones.
const PATIENCE: usize = 300;
/// Sweeps after which a stage is solved within the capacities instead.
const FREE_SWEEPS: usize = 600;
/// A change that is enough from then on: rounding, or a bound that is met and left again, allows no less.
const STAGNATION: f64 = 1e-7;
/// How much shorter.
const STEP_REDUCTION: f64 = 0.25;
/// How far an extrapolated unknown may be from its image, as a factor.
const TRUST_FACTOR: f64 = 2.0;
/// Waits above this fraction of the longest one decide whether an extrapolation was held back.
const CONSIDERABLE_WAIT: f64 = 1e-2;
/// Waits below this fraction of their cycle count as zero in the test for convergence.
const NEGLIGIBLE_WAIT: f64 = 1e-7;
/// Derivatives need not be as exact as values: their relative change counts by this factor.
const DERIVATIVE_WEIGHT: f64 = 0.1;

/// How the fixed points went.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub sweeps: usize,
    pub converged: bool,
    pub residual: f64,
}

/// Where an iteration starts.
pub(super) enum From<'a, S> {
    /// No waits.
    Nothing,
    /// The solution of another stage.
    Like(&'a [S]),
    /// This stage's own solution in plain numbers; derivatives start from those of another stage.
    Settled(&'a [f64], Option<&'a [S]>),
}

/// A solved stage.
#[derive(Clone, Debug)]
pub(super) struct Stage<S> {
    pub unknowns: Vec<S>,
    pub flow: Flow<S>,
    pub class_shares: Vec<S>,
}

/// A stage, and whether its iteration settled.
pub(super) struct Solved<S> {
    pub stage: Stage<S>,
    pub converged: bool,
}

/// The sweep with the room that it needs.
pub(super) struct Sweeper<'a, S> {
    net: &'a Net<S>,
    options: &'a SolveOptions,
    pairs: Pairs,
    layouts: Vec<Layout>,
    n_unknowns: usize,
    flow: Flow<S>,
    exclusion: Exclusion<S>,
    absence: Absence<S>,
    scratch: Scratch<S>,
    probability_of: Vec<usize>,
    /// Stations that the threads of a task visit.
    visited: Vec<Vec<usize>>,
    /// What one thread less leaves: by station and pool, and where a station's begin.
    left: Vec<Left<S>>,
    first_left: Vec<usize>,
    /// What the last stage learned of its derivatives' iteration, which the next one's is much like.
    differences: Differences<S>,
    pub record: Record,
}

impl<'a, S: Scalar> Sweeper<'a, S> {
    pub fn new(net: &'a Net<S>, options: &'a SolveOptions) -> Self {
        let pairs = Pairs::new(net);
        let mut layouts: Vec<Layout> = Vec::with_capacity(net.stations.len());
        let mut offset = net.arcs.len() + net.stations.len();
        let mut probability_of = vec![0; net.arcs.len()];
        let mut visited = vec![Vec::new(); net.tasks.len()];
        let mut first_left = Vec::with_capacity(net.stations.len());
        let mut n_left = 0;
        for station in 0..net.stations.len() {
            let layout = Layout::new(net, &pairs, station, offset);
            for (i, &a) in layout.arcs.iter().enumerate() {
                probability_of[a] = offset + layout.row_of[i];
            }
            offset = layout.places().end;
            layout.pools.iter().for_each(|&task| visited[task].push(station));
            first_left.push(n_left);
            n_left += layout.pools.len();
            layouts.push(layout);
        }
        Self {
            net,
            options,
            n_unknowns: offset,
            flow: Flow::new(net),
            exclusion: Exclusion::new(net, &pairs),
            absence: Absence::new(net),
            scratch: Scratch::new(),
            probability_of,
            visited,
            left: vec![Left { threads: f64::INFINITY, waiting: S::from(1.0), first: S::from(1.0), late: S::from(1.0) }; n_left],
            first_left,
            differences: Differences::new(),
            record: Record { sweeps: 0, converged: true, residual: 0.0 },
            pairs,
            layouts,
        }
    }

    /// The fixed point at these customers, to a relative change of `tolerance`.
    pub fn solve(&mut self, populations: &Populations<'_, S>, from: &From<'_, S>, capacity: Capacity, tolerance: f64) -> Solved<S> {
        let mut x = self.start(from);
        let n_waits = self.net.arcs.len();
        let cautious = match from {
            From::Nothing => CAUTIOUS_STEPS,
            From::Like(_) | From::Settled(..) => 0,
        };
        let n_times = n_waits + self.net.stations.len();
        let n_leading = match capacity {
            Capacity::Free => n_waits,
            Capacity::Kept => n_times,
            Capacity::KeptThroughout => x.len(),
        };
        let mut acceleration = Anderson::new(n_leading, n_waits..n_times, cautious, cautious_step(capacity));
        let differences = std::mem::take(&mut self.differences);
        if matches!(from, From::Settled(..)) {
            acceleration = acceleration.remembering(differences);
        }
        let (mut converged, mut step) = (false, 1.0);
        let mut image = x.clone();
        let most = if capacity == Capacity::Free { FREE_SWEEPS } else { usize::MAX };
        for sweep in 0..self.options.max_iterations.min(most) {
            if sweep > 0 && sweep % PATIENCE == 0 {
                step *= STEP_REDUCTION;
                acceleration = Anderson::plain(step);
            }
            self.sweep(&x, populations, capacity, &mut image);
            let change = self.distance(&x, &image);
            self.record.sweeps += 1;
            self.record.residual = change;
            if !change.is_finite() {
                x = self.start(&From::Nothing);
                acceleration = Anderson::new(n_leading, n_waits..n_times, CAUTIOUS_STEPS_AGAIN, cautious_step(capacity));
                continue;
            }
            let enough = if sweep < PATIENCE { tolerance } else { tolerance.max(STAGNATION) };
            if change < enough {
                converged = true;
                x.copy_from_slice(&image);
                break;
            }
            let next = acceleration.next(&x, &image, change);
            if follow(&mut x, &next, &image, n_waits, n_times) == Held::Back {
                acceleration.forget();
            }
        }
        self.differences = acceleration.into_differences();
        self.flow_at(&x, populations);
        self.exclusion.update(self.net, &self.pairs, &self.flow, populations);
        let stage = Stage { unknowns: x, flow: self.flow.clone(), class_shares: self.exclusion.class_shares.clone() };
        Solved { stage, converged }
    }

    fn flow_at(&mut self, x: &[S], populations: &Populations<'_, S>) {
        let waits = Waits { wait: &x[..self.net.arcs.len()], row: &self.probability_of, probability: x };
        self.flow.update(self.net, &waits, populations.customers);
    }

    fn sweep(&mut self, x: &[S], populations: &Populations<'_, S>, capacity: Capacity, next: &mut [S]) {
        self.flow_at(x, populations);
        self.exclusion.update(self.net, &self.pairs, &self.flow, populations);
        self.absence.update(self.net, &self.exclusion.class_shares, populations);
        let mut left = std::mem::take(&mut self.left);
        let sweep = Sweep {
            net: self.net,
            flow: &self.flow,
            exclusion: &self.exclusion,
            absence: &self.absence,
            unknowns: x,
            visited: &self.visited,
            left: &[],
            populations,
            capacity,
        };
        pool_factors(&sweep, &self.layouts, &self.first_left, &mut left);
        let sweep = Sweep { left: &left, ..sweep };
        for (s, layout) in self.layouts.iter().enumerate() {
            station_waits(&sweep, s, layout, self.first_left[s], &mut self.scratch, next);
        }
        self.left = left;
    }

    /// Largest change of an unknown: relative for waits, absolute for ratios; derivatives relative to the steepest of their kind.
    fn distance(&self, x: &[S], image: &[S]) -> f64 {
        let n_waits = self.net.arcs.len();
        let longest = image[..n_waits].iter().fold(0.0_f64, |m, w| m.max(w.value()));
        let relative = |w: f64| w.max(NEGLIGIBLE_WAIT * longest).max(f64::MIN_POSITIVE);
        if image.iter().any(|v| v.value().is_nan()) {
            return f64::NAN;
        }
        let n_times = n_waits + self.net.stations.len();
        let (of_waits, of_ratios) = (steepest(&image[..n_waits]), steepest(&image[n_times..]));
        let mut most = change(&x[..n_waits], &image[..n_waits], &of_waits, relative);
        for layout in &self.layouts {
            // An excess is part of the waits at its station.
            let scale = layout.arcs.iter().map(|&a| relative(image[a].value())).fold(f64::MIN_POSITIVE, f64::max);
            let excess = layout.excess..layout.excess + 1;
            most = most.max(change(&x[excess.clone()], &image[excess], &of_waits, |_| scale));
        }
        most.max(change(&x[n_times..], &image[n_times..], &of_ratios, |_| 1.0))
    }

    fn start(&self, from: &From<'_, S>) -> Vec<S> {
        match from {
            From::Like(x) => x.to_vec(),
            From::Settled(x, None) => x.iter().map(|&v| S::from(v)).collect(),
            From::Settled(x, Some(like)) => x.iter().zip(*like).map(|(&v, &other)| other - other.value() + v).collect(),
            From::Nothing => {
                let mut x = vec![S::from(0.0); self.n_unknowns];
                for layout in &self.layouts {
                    let places = layout.places();
                    x[places.removal..places.boost].fill(S::from(1.0));
                }
                x
            }
        }
    }
}

/// Length of the plain steps at the start and after an extrapolation that failed: the harder the stage, the shorter.
fn cautious_step(capacity: Capacity) -> f64 {
    match capacity {
        Capacity::Free => 0.7,
        Capacity::Kept => 0.4,
        Capacity::KeptThroughout => 0.2,
    }
}

/// Whether an extrapolation was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Back,
    Not,
}

/// Sets `x` to `next`, held near the `image` from which it was extrapolated; an excess wait, which may come from nothing, only
/// above zero.
fn follow<S: Scalar>(x: &mut [S], next: &[S], image: &[S], n_waits: usize, n_times: usize) -> Held {
    let longest = image[..n_waits].iter().fold(0.0_f64, |m, w| m.max(w.value()));
    let mut held = Held::Not;
    for (i, ((unknown, &value), &near)) in x.iter_mut().zip(next).zip(image).enumerate() {
        let (less, more) = (near / TRUST_FACTOR, near * TRUST_FACTOR);
        let (least, most) = if (n_waits..n_times).contains(&i) {
            (S::from(0.0), S::from(f64::INFINITY))
        } else if near < 0.0 {
            (more, less)
        } else {
            (less, more)
        };
        let inside = value >= least && value <= most;
        *unknown = if value < least {
            least
        } else if value > most {
            most
        } else {
            value
        };
        if !inside && i < n_waits && near > CONSIDERABLE_WAIT * longest {
            held = Held::Back;
        }
    }
    held
}

/// Largest derivative in each direction.
fn steepest<S: Scalar>(values: &[S]) -> Vec<f64> {
    let mut most = vec![f64::MIN_POSITIVE; values.first().map_or(0, |v| v.derivatives().len())];
    for v in values {
        for (m, d) in most.iter_mut().zip(v.derivatives()) {
            *m = m.max(d.abs());
        }
    }
    most
}

/// Largest change from `old` to `new`, each value over its `scale`, each derivative over the `steepest` one of its direction.
fn change<S: Scalar>(old: &[S], new: &[S], steepest: &[f64], scale: impl Fn(f64) -> f64) -> f64 {
    let mut most = 0.0_f64;
    for (&old, &new) in old.iter().zip(new) {
        let difference = new - old;
        most = most.max(difference.value().abs() / scale(new.value()));
        for (d, steepest) in difference.derivatives().iter().zip(steepest) {
            most = most.max(DERIVATIVE_WEIGHT * d.abs() / steepest);
        }
    }
    most
}
