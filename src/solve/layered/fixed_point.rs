//! The fixed point of one stage: the sweep repeated, accelerated, until nothing changes.
//!
//! The unknowns stand in one row: the waits of all arcs, then the excess wait of every station, then by station the chances to
//! wait, `R` and `φ` ([`super::station`]), and where strands of a fork meet the shares of waits that they cause each other
//! ([`super::graph`]). Where acceleration does not settle, as it may not between full stations of many customers, it begins anew from
//! where plain and ever shorter steps lead.

use std::sync::Arc;

use super::{
    SolveOptions,
    anderson::Anderson,
    derivatives::{Derivatives, Legacy},
    exclusion::Exclusion,
    flow::Flow,
    linearizer::{Absence, NEGLIGIBLE_WAIT, Populations},
    net::Net,
    onward,
    station::{
        Behind, Capacity, Crowds, Lines, Manner, Overtakes, Pools, Scratch, Spared, Sweep, ToldAfterReply, find_after_reply, find_lost,
        set_interlocks, station_waits,
    },
    structure::Structure,
    trust::{Held, follow},
    vectors::furthest,
};
use crate::model::Scalar;

/// Short plain steps after an extrapolation that led nowhere.
const CAUTIOUS_STEPS: usize = 40;
/// Sweeps after which acceleration begins anew, after [`CAUTIOUS_STEPS`] plain steps that are shorter each time.
const PATIENCE: usize = 150;
/// Sweeps after which an iteration is not counted as one that comes near soon.
const LONGEST_APPROACH: usize = 60;
/// Sweeps after which a stage is held within the capacities instead: few that settle freely take more, and most of these have a station that is all but full.
const LONGEST_FREE: usize = 200;
/// Sweeps after which threads of a held stage are not told apart any more.
const LONGEST_APART: usize = 600;
/// A change that is enough after so many sweeps: rounding, or a bound that is met and left again, allows no less.
const STAGNATION: f64 = 1e-7;
const STAGNATION_AFTER: usize = LONGEST_FREE;
/// How much shorter, and the shortest.
const STEP_REDUCTION: f64 = 0.25;
/// Length of the steps of an iteration that goes slowly, and its sweeps at most.
const SLOW_STEP: f64 = 0.15;
const LONGEST_SLOW: usize = 600;
const SHORTEST_STEP: f64 = 0.05;
/// An unknown of one stage over that of another where they are like each other.
const LIKE: std::ops::Range<f64> = 0.1..10.0;
/// How much less exact derivatives are than values, their residual over the steepest of their kind, where no other stage follows from them.
const DERIVATIVE_SLACK: f64 = 10.0;

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
    /// The same, but for what the arrival's own thread changes: nothing.
    Without(&'a [S]),
    /// The solution of this stage at other parameters, in plain numbers.
    Near(&'a [f64]),
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

/// An iteration under way.
pub(super) struct Course<S> {
    /// Where it is, and the image of that.
    pub x: Vec<S>,
    pub image: Vec<S>,
    next: Vec<S>,
    pub acceleration: Anderson<S>,
    n_leading: usize,
    n_waits: usize,
    n_times: usize,
    pub n_sweeps: usize,
    /// How far the image is from `x`; not finite, where the iteration has gone on since.
    pub change: f64,
    step: f64,
}

impl<S: Scalar> Course<S> {
    /// Goes from `x` to the next point.
    pub fn go_on(&mut self) {
        let change = std::mem::replace(&mut self.change, f64::INFINITY);
        if !change.is_finite() {
            return;
        }
        self.acceleration.next(&self.x, &self.image, change, &mut self.next);
        if follow(&mut self.x, &self.next, &self.image, self.n_waits, self.n_times) == Held::Back {
            self.acceleration.forget();
        }
    }

    /// Whether a change of `tolerance` is met, or what is enough after so many sweeps.
    pub fn is_settled(&self, tolerance: f64) -> bool {
        self.change < if self.n_sweeps < STAGNATION_AFTER { tolerance } else { tolerance.max(STAGNATION) }
    }

    /// Forgets what was learned, and goes on by plain steps of length `step`.
    fn begin_again(&mut self, step: f64) {
        self.acceleration.begin(self.n_leading, self.n_waits..self.n_times, CAUTIOUS_STEPS, step);
    }
}

impl<S> Solved<S> {
    /// The stage, if its iteration settled.
    pub fn settled(self) -> Option<Stage<S>> {
        self.converged.then_some(self.stage)
    }
}

/// The sweep with the room that it needs.
pub(super) struct Sweeper<'a, S> {
    pub net: &'a Net<S>,
    options: &'a SolveOptions,
    pub structure: Arc<Structure>,
    flow: Flow<S>,
    /// Room for the flows that a sweep leads to.
    onward: Flow<S>,
    exclusion: Exclusion<S>,
    /// `K` of those in service, by pair.
    served: Vec<S>,
    absence: Absence<S>,
    scratch: Scratch<S>,
    pools: Pools<S>,
    crowds: Crowds<S>,
    overtakes: Overtakes<S>,
    interlocks: Vec<S>,
    after_reply: Vec<Option<ToldAfterReply<S>>>,
    spared: Spared<S>,
    lines: Lines<S>,
    behind: Behind<S>,
    /// An iteration that is over, for its room.
    over: Option<Course<S>>,
    /// What the last stage learned of its derivatives.
    legacy: Legacy,
    /// Whether the threads of a pool are told apart by whom they work for.
    pub tells_strands: bool,
    pub record: Record,
}

impl<'a, S: Scalar> Sweeper<'a, S> {
    /// Makes room for sweeps over `net`, of this structure.
    pub fn new(net: &'a Net<S>, options: &'a SolveOptions, structure: Arc<Structure>) -> Self {
        Self {
            net,
            options,
            flow: Flow::new(net),
            onward: Flow::new(net),
            exclusion: Exclusion::new(net, &structure.pairs),
            served: Vec::new(),
            absence: Absence::new(net),
            scratch: Scratch::new(structure.n_unknowns, net.stations.len(), net.n_processors),
            pools: Pools::new(structure.n_left, net.tasks.len()),
            crowds: Crowds::new(net.stations.len()),
            overtakes: Overtakes::new(net.stations.len()),
            interlocks: Vec::new(),
            after_reply: vec![None; net.stations.len()],
            spared: Spared::new(),
            lines: Lines::new(net),
            behind: Behind::new(net),
            over: None,
            legacy: Legacy::default(),
            tells_strands: true,
            record: Record { sweeps: 0, converged: true, residual: 0.0 },
            structure,
        }
    }

    /// The fixed point at these customers, to a relative change of `tolerance`.
    pub fn solve(&mut self, populations: &Populations<'_, S>, from: &From<'_, S>, manner: Manner, tolerance: f64) -> Solved<S> {
        if let From::Settled(..) = from {
            return self.derivatives(populations, from, manner, tolerance);
        }
        let course = self.course(from, manner);
        self.finish(course, populations, manner, tolerance)
    }

    /// The same, by short steps at first, and for longer.
    pub fn solve_slowly(&mut self, populations: &Populations<'_, S>, from: &From<'_, S>, tolerance: f64) -> Solved<S> {
        let mut course = self.course(from, Manner::FREE);
        course.step = SLOW_STEP;
        course.begin_again(course.step);
        self.follow(course, populations, Manner::FREE, (tolerance, LONGEST_SLOW))
    }

    /// The fixed point to which an iteration under way leads, to a relative change of `tolerance`.
    pub fn finish(&mut self, course: Course<S>, populations: &Populations<'_, S>, manner: Manner, tolerance: f64) -> Solved<S> {
        let most = match manner.capacity {
            Capacity::Free => LONGEST_FREE,
            Capacity::Held if self.tells_strands => LONGEST_APART,
            Capacity::Held => usize::MAX,
        };
        self.follow(course, populations, manner, (tolerance, most))
    }

    /// The same, in so many sweeps at most.
    fn follow(
        &mut self,
        mut course: Course<S>,
        populations: &Populations<'_, S>,
        manner: Manner,
        (tolerance, most): (f64, usize),
    ) -> Solved<S> {
        while !course.is_settled(tolerance) && course.n_sweeps < self.options.max_iterations.min(most) {
            course.go_on();
            self.look(&mut course, populations, manner);
        }
        let converged = course.is_settled(tolerance);
        let x = if converged { &course.image } else { &course.x }.clone();
        self.over = Some(course);
        self.settled(x, populations, converged)
    }

    /// Follows an iteration until a sweep changes less than `near`, or for a while.
    pub fn approach(&mut self, course: &mut Course<S>, populations: &Populations<'_, S>, manner: Manner, near: f64) {
        let most = self.options.max_iterations.min(LONGEST_APPROACH);
        while course.change >= near && course.n_sweeps < most {
            course.go_on();
            self.look(course, populations, manner);
        }
    }

    /// What the next sweep takes from the last one beside the unknowns: where the chances to wait are sought first.
    pub fn memory(&mut self) -> &mut Vec<Option<f64>> {
        &mut self.scratch.last_found
    }

    /// An iteration that begins.
    pub fn course(&mut self, from: &From<'_, S>, manner: Manner) -> Course<S> {
        let x = self.start(from);
        let n_waits = self.net.arcs.len();
        let n_times = n_waits + self.net.stations.len();
        let n_leading = match manner.capacity {
            Capacity::Free => n_waits,
            Capacity::Held => n_times,
        };
        let (small, step) = (n_waits..n_times, cautious_step(manner.capacity));
        let (mut image, mut next, acceleration) = match self.over.take() {
            Some(Course { image, next, mut acceleration, .. }) => {
                acceleration.begin(n_leading, small, 0, step);
                (image, next, acceleration)
            }
            None => (Vec::new(), Vec::new(), Anderson::new(n_leading, small, 0, step)),
        };
        image.clone_from(&x);
        next.clone_from(&x);
        Course { x, image, next, acceleration, n_leading, n_waits, n_times, n_sweeps: 0, change: f64::INFINITY, step: 1.0 }
    }

    /// Sweeps once over where an iteration is; begins it anew where it has left all numbers.
    fn look(&mut self, course: &mut Course<S>, populations: &Populations<'_, S>, manner: Manner) {
        if course.n_sweeps > 0 && course.n_sweeps.is_multiple_of(PATIENCE) {
            course.step = f64::max(course.step * STEP_REDUCTION, SHORTEST_STEP);
            course.begin_again(course.step);
        }
        course.n_sweeps += 1;
        self.sweep(&course.x, populations, manner, &mut course.image);
        let change = self.distance(&course.x, &course.image);
        self.record.sweeps += 1;
        self.record.residual = if change.is_nan() { f64::INFINITY } else { change };
        course.change = self.record.residual;
        if !change.is_finite() {
            let mut begun = self.start(&From::Nothing);
            self.structure.held(manner).for_each(|place| begun[place] = course.x[place]);
            course.x = begun;
            course.begin_again(cautious_step(manner.capacity));
        }
    }

    /// How much less exact the derivatives of a stage are than its values.
    pub fn derivative_slack(&self, populations: &Populations<'_, S>) -> f64 {
        if populations.changes.are_known || self.net.classes.is_empty() { DERIVATIVE_SLACK } else { 1.0 }
    }

    /// The derivatives at the values of a stage that is settled.
    fn derivatives(&mut self, populations: &Populations<'_, S>, from: &From<'_, S>, manner: Manner, tolerance: f64) -> Solved<S> {
        let enough = tolerance * self.derivative_slack(populations);
        let mut x = self.start(from);
        let mut image = x.clone();
        // What is held is left as it starts: pairs of other stages, which move it, would not be noticed.
        if manner.keeps_removal {
            self.legacy = Legacy::default();
        }
        let n_times = self.net.arcs.len() + self.net.stations.len();
        self.flow_at(&x, populations);
        let negligible = NEGLIGIBLE_WAIT * self.longest_service();
        let mut derivatives = Derivatives::new(&x, n_times, negligible, std::mem::take(&mut self.legacy));
        let mut converged = false;
        for sweep in 0..self.options.max_iterations {
            self.sweep(&x, populations, manner, &mut image);
            if sweep == 0 {
                derivatives.expect_no_less(&self.steepest_services());
            }
            let left = derivatives.take(&image, enough);
            self.record.sweeps += 1;
            self.record.residual = left;
            if left <= enough {
                converged = true;
                break;
            }
            derivatives.ask(&mut x);
        }
        self.legacy = derivatives.finish(&mut x);
        self.settled(x, populations, converged)
    }

    /// The stage at its solution.
    pub fn settled(&mut self, x: Vec<S>, populations: &Populations<'_, S>, converged: bool) -> Solved<S> {
        self.flow_at(&x, populations);
        self.exclusion.update(self.net, &self.structure.pairs, &self.flow, populations);
        let stage = Stage { unknowns: x, flow: self.flow.clone(), class_shares: self.exclusion.class_shares.clone() };
        Solved { stage, converged }
    }

    pub fn flow_at(&mut self, x: &[S], populations: &Populations<'_, S>) {
        self.flow.update(self.net, &self.structure.waits(self.net, x), populations.customers);
    }

    pub fn sweep(&mut self, x: &[S], populations: &Populations<'_, S>, manner: Manner, next: &mut [S]) {
        self.flow_at(x, populations);
        self.exclusion.update(self.net, &self.structure.pairs, &self.flow, populations);
        let Structure { layouts, first_left, sparing, pairs, visited, probability_of, .. } = &*self.structure;
        let sweep = Sweep {
            net: self.net,
            flow: &self.flow,
            exclusion: &self.exclusion,
            served: &[],
            absence: None,
            unknowns: x,
            chance_of: probability_of,
            visited,
            overtakes: None,
            left: &[],
            crowds: None,
            interlocks: &[],
            after_reply: &[],
            lines: None,
            behind: None,
            populations,
            manner,
            tells_strands: self.tells_strands,
            spared: None,
        };
        self.overtakes.update(&sweep, layouts);
        let sweep = Sweep { overtakes: Some(&self.overtakes), ..sweep };
        let (busy, there) = self.scratch.last_found[x.len()..].split_at_mut(layouts.len());
        self.pools.update(&sweep, layouts, first_left, &mut self.crowds, busy);
        find_lost(&sweep, layouts, &mut self.crowds, there);
        let lost = |station| self.crowds.lost(station).map(|lost| (lost.waiting, lost.first));
        self.absence.update(self.net, &self.exclusion, populations, lost);
        self.exclusion.find_served(self.net, pairs, &self.pools.paces, &mut self.served);
        set_interlocks(&sweep, layouts, &mut self.interlocks);
        let sweep = Sweep {
            interlocks: &self.interlocks,
            served: &self.served,
            left: &self.pools.left,
            crowds: Some(&self.crowds),
            absence: Some(&self.absence),
            ..sweep
        };
        find_after_reply(&sweep, layouts, &mut self.after_reply);
        self.lines.update(&sweep);
        self.behind.update(&sweep);
        let sweep = Sweep { after_reply: &self.after_reply, lines: Some(&self.lines), behind: Some(&self.behind), ..sweep };
        let n_processors = self.net.n_processors;
        for (s, layout) in layouts.iter().enumerate().take(n_processors) {
            station_waits(&sweep, s, layout, first_left[s], &mut self.scratch, next);
        }
        sparing.update(self.net, &self.flow, &self.exclusion, &self.scratch.caused_at, &mut self.spared);
        let sweep = Sweep { spared: Some((sparing, &self.spared)), ..sweep };
        for (s, layout) in layouts.iter().enumerate().skip(n_processors) {
            station_waits(&sweep, s, layout, first_left[s], &mut self.scratch, next);
        }
        if manner.steps > 0 {
            let (flows, parts) = ((&self.flow, &mut self.onward), &mut self.scratch.parts_at);
            onward::go_on(self.net, &self.structure, parts, flows, (populations.customers, manner.steps), next);
        }
    }

    /// Largest change of an unknown: relative for waits, absolute for ratios; not a number, where one is not.
    pub fn distance(&self, x: &[S], image: &[S]) -> f64 {
        let n_waits = self.net.arcs.len();
        let n_times = n_waits + self.net.stations.len();
        // Beside services, waits may be none but for rounding.
        let longest = image[..n_waits].iter().fold(self.longest_service(), |m, w| m.max(w.value()));
        let least = f64::max(NEGLIGIBLE_WAIT * longest, f64::MIN_POSITIVE);
        let relative = |w: f64| if w > least { w } else { least };
        let of_waits = furthest(&x[..n_waits], &image[..n_waits], relative);
        let of_ratios = furthest(&x[n_times..], &image[n_times..], |_| 1.0);
        if of_waits.is_nan() || of_ratios.is_nan() {
            return f64::NAN;
        }
        let mut most = of_waits.max(of_ratios);
        for layout in &self.structure.layouts {
            let change = (image[layout.excess].value() - x[layout.excess].value()).abs();
            if change.is_nan() {
                return f64::NAN;
            }
            if change > 0.0 {
                // An excess is part of the waits at its station.
                let scale = layout.arcs.iter().map(|&a| relative(image[a].value())).fold(f64::MIN_POSITIVE, f64::max);
                most = most.max(change / scale);
            }
        }
        most
    }

    pub fn longest_service(&self) -> f64 {
        let targets = self.net.arcs.iter().filter_map(|arc| arc.target);
        targets.map(|entry| self.flow.held(entry).value()).filter(|held| held.is_finite()).fold(0.0, f64::max)
    }

    /// What counts as none of a derivative of a time, by direction: a share of the steepest one of a service.
    pub fn steepest_services(&self) -> Vec<f64> {
        let mut steepest = vec![0.0_f64; S::from(0.0).derivatives().len()];
        for entry in self.net.arcs.iter().filter_map(|arc| arc.target) {
            let held = self.flow.held(entry);
            for (most, slope) in steepest.iter_mut().zip(held.derivatives()) {
                *most = most.max(slope.abs() * NEGLIGIBLE_WAIT);
            }
        }
        steepest
    }

    fn start(&self, from: &From<'_, S>) -> Vec<S> {
        match from {
            From::Like(x) => x.to_vec(),
            From::Without(x) => self.without_own_threads(x.to_vec()),
            From::Near(x) | From::Settled(x, None) => x.iter().map(|&v| S::from(v)).collect(),
            From::Settled(x, Some(like)) => likewise(like, x),
            From::Nothing => self.without_own_threads(vec![S::from(0.0); self.structure.n_unknowns]),
        }
    }

    /// The unknowns with `R = 1` and `φ = 0`.
    fn without_own_threads(&self, mut x: Vec<S>) -> Vec<S> {
        for layout in &self.structure.layouts {
            let places = layout.places();
            x[places.removal..places.boost].fill(S::from(1.0));
            x[places.boost..places.end].fill(S::from(0.0));
        }
        x
    }
}

/// The `values` with the derivatives of others that are like them, in proportion.
pub(super) fn likewise<S: Scalar>(like: &[S], values: &[f64]) -> Vec<S> {
    let led = |(&like, &value): (&S, &f64)| {
        let ratio = value / like.value();
        let ratio = if LIKE.contains(&ratio) { ratio } else { 1.0 };
        (like - like.value()) * ratio + value
    };
    like.iter().zip(values).map(led).collect()
}

/// Length of the plain steps after an extrapolation that failed: the harder the stage, the shorter.
fn cautious_step(capacity: Capacity) -> f64 {
    match capacity {
        Capacity::Free => 0.7,
        Capacity::Held => 0.4,
    }
}
