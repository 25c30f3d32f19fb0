//! How the stages of a model are solved: in plain numbers or at such a solution, or with derivatives in the same sweeps.

use std::{convert::Infallible, sync::Arc};

use super::{
    Settled, SolveError, SolveOptions, Start, Trace,
    fixed_point::{From, Record, Solved, Stage, Sweeper},
    linearizer::{Changes, Populations},
    net::Net,
    station::Manner,
    structure::Structure,
    together::NEAR,
};
use crate::model::Scalar;

/// How much less exact derivatives are than values in the last stage, whose derivatives follow from the others' and are exact to their
/// tolerance at most.
const LAST_SLACK: f64 = 100.0;
/// Share of the customers with which a stage that does not settle is begun, with how many shares that is tried, and how exact these have to be.
const FIRST_SHARE: f64 = 1.0 / 64.0;
const MOST_SHARES: usize = 10;
const ON_THE_WAY: f64 = 1e-4;

/// A stage that is asked for.
pub(super) struct Asked<'s, S> {
    pub customers: &'s [f64],
    pub changes: &'s Changes<S>,
    /// A stage that is like it.
    pub like: Option<&'s Stage<S>>,
    pub manner: Manner,
    pub tolerance: f64,
}

/// The unknowns at a share of the customers to which those at the last two shares lead.
fn led_on(found: &[(f64, Vec<f64>)], share: f64) -> Option<Vec<f64>> {
    let (last, rest) = found.split_last()?;
    let Some(before) = rest.last() else { return Some(last.1.clone()) };
    let beyond = (share - last.0) / (last.0 - before.0);
    Some(last.1.iter().zip(&before.1).map(|(last, before)| (last + beyond * (last - before)).max(0.0)).collect())
}

/// The unknowns of a stage of a solution nearby, but for what is held, which is that of the stage it is like.
fn nearby<S: Scalar>(near: &Settled, like: Option<&[S]>, manner: Manner, structure: &Structure) -> Vec<f64> {
    let mut unknowns = near.unknowns.clone();
    if let Some(like) = like {
        structure.held(manner).for_each(|place| unknowns[place] = like[place].value());
    }
    unknowns
}

/// Largest number of busy threads of each task.
pub(super) fn caps<S>(net: &Net<S>, customers: &[f64]) -> Vec<f64> {
    net.tasks.iter().map(|t| t.class.map_or(t.cap, |c| customers[c])).collect()
}

/// A way to solve stages.
pub(super) trait Stages<S> {
    /// Why a stage cannot be solved in this way.
    type Failure;

    /// The structure of the model's sweeps.
    fn structure(&self) -> &Arc<Structure>;

    /// The fixed point that is asked for, started from the warm trace, from one that is like it or from no waits.
    fn stage(&mut self, asked: &Asked<'_, S>) -> Result<Stage<S>, Self::Failure>;

    /// The same; none where it does not settle, and nothing follows from that.
    fn tried(&mut self, asked: &Asked<'_, S>) -> Result<Option<Stage<S>>, Self::Failure>;
}

/// Values alone, or derivatives at values that are known.
pub(super) struct Alone<'a, S> {
    net: &'a Net<S>,
    sweeper: Sweeper<'a, S>,
    start: Start<'a>,
    trace: Trace,
    /// Whether a stage had to be held within the capacities to be solved, and so are all that follow.
    is_held: bool,
    /// What still changed of the stage that was furthest from its solution, if one was not solved.
    unsettled: Option<f64>,
}

impl<'a, S: Scalar> Alone<'a, S> {
    pub fn new(net: &'a Net<S>, options: &'a SolveOptions, structure: Arc<Structure>, start: Start<'a>) -> Self {
        let trace = Trace { structure: Some(Arc::clone(&structure)), stages: Vec::new() };
        Self { net, sweeper: Sweeper::new(net, options, structure), start, trace, is_held: false, unsettled: None }
    }

    /// How it went, and what other solutions can start from.
    pub fn finish(self) -> (Record, Trace) {
        let mut record = self.sweeper.record;
        record.residual = self.unsettled.unwrap_or(record.residual);
        (record, self.trace)
    }
}

impl<S: Scalar> Alone<'_, S> {
    /// A stage from those of fewer customers, more and more of them: where full stations wait for each other it is found from where they fill, and beyond that waits grow
    /// as customers do. None where these do not settle, either.
    fn with_more_and_more(&mut self, asked: &Asked<'_, S>) -> Option<Solved<S>> {
        let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
        let mut share = FIRST_SHARE;
        for _ in 0..MOST_SHARES {
            let customers: Vec<f64> = asked.customers.iter().map(|n| (n * share).max(n.min(1.0))).collect();
            let caps = caps(self.net, &customers);
            let populations = Populations { customers: &customers, changes: asked.changes, caps: &caps };
            let led = led_on(&found, share);
            let from = led.as_ref().map_or(From::Nothing, |unknowns| From::Near(unknowns));
            let tolerance = if share < 1.0 { asked.tolerance.max(ON_THE_WAY) } else { asked.tolerance };
            let solved = self.sweeper.solve_slowly(&populations, &from, tolerance);
            if solved.converged && share >= 1.0 {
                return Some(solved);
            }
            let last = found.last().map_or(0.0, |(share, _)| *share);
            if solved.converged {
                found.push((share, solved.stage.unknowns.iter().map(Scalar::value).collect()));
                share = (2.0 * share).min(1.0);
            } else {
                share = f64::midpoint(last, share);
            }
        }
        None
    }

    /// A stage, and whether it was only tried, and did not settle.
    fn solve(&mut self, asked: &Asked<'_, S>, is_tried: bool) -> (Stage<S>, bool) {
        let &Asked { customers, changes, like, manner, tolerance } = asked;
        let caps = caps(self.net, customers);
        let populations = Populations { customers, changes, caps: &caps };
        let stage = self.trace.stages.len();
        let settled = self.start.solved().and_then(|w| w.stages.get(stage));
        let residual = self.sweeper.record.residual;
        let wanted = if self.is_held { Manner::HELD } else { manner };
        // What is held comes from this solution and no other.
        let near = match self.start {
            Start::Near(near) if wanted != Manner::HELD => near.stage(stage, &self.sweeper.structure),
            Start::Cold | Start::Near(_) | Start::Solved(_) => None,
        };
        let like = like.map(|stage| stage.unknowns.as_slice());
        let near = near.map(|near| nearby(near, like, wanted, &self.sweeper.structure));
        let from = match (settled, &near, like) {
            (Some(settled), _, like) => From::Settled(&settled.unknowns, like.filter(|_| !settled.is_anew)),
            (None, Some(near), _) => From::Near(near),
            (None, None, Some(like)) if self.is_held => From::Without(like),
            (None, None, Some(like)) => From::Like(like),
            (None, None, None) => From::Nothing,
        };
        let mut manner = settled.map_or(wanted, |s| s.manner);
        let mut is_anew = settled.map_or(self.is_held, |s| s.is_anew);
        self.sweeper.tells_strands = settled.map_or(self.sweeper.tells_strands, |s| s.tells_strands);
        let mut solved = self.sweeper.solve(&populations, &from, manner, tolerance);
        if !solved.converged && matches!(from, From::Near(_)) {
            let from = like.map_or(From::Nothing, From::Like);
            solved = self.sweeper.solve(&populations, &from, manner, tolerance);
        }
        if settled.is_none()
            && !is_tried
            && !solved.converged
            && manner != Manner::HELD
            && let Some(found) = self.with_more_and_more(asked)
        {
            (solved, manner) = (found, Manner::FREE);
        }
        let has_failed = is_tried && settled.is_none() && !solved.converged;
        if settled.is_none() && !has_failed {
            // Beyond capacity the approximations need not have a solution; within it they do. Later stages are compared with
            // this one, and so are solved alike.
            let ways: &[bool] = match (self.is_held, self.sweeper.tells_strands) {
                (false, _) => &[true, false],
                (true, true) => &[false],
                (true, false) => &[],
            };
            for &tells_strands in ways {
                if !solved.converged {
                    (manner, is_anew, self.is_held) = (Manner::HELD, true, true);
                    self.sweeper.tells_strands = tells_strands;
                    solved = self.sweeper.solve(&populations, &From::Nothing, manner, tolerance);
                }
            }
        }
        if has_failed {
            self.sweeper.record.residual = residual;
        } else if !solved.converged {
            self.sweeper.record.converged = false;
            self.unsettled = Some(self.unsettled.unwrap_or(0.0).max(self.sweeper.record.residual));
        }
        self.trace.stages.push(Settled {
            unknowns: solved.stage.unknowns.iter().map(Scalar::value).collect(),
            manner,
            tells_strands: self.sweeper.tells_strands,
            is_anew,
            has_failed,
        });
        (solved.stage, has_failed)
    }
}

impl<S: Scalar> Stages<S> for Alone<'_, S> {
    type Failure = Infallible;

    fn structure(&self) -> &Arc<Structure> {
        &self.sweeper.structure
    }

    fn stage(&mut self, asked: &Asked<'_, S>) -> Result<Stage<S>, Infallible> {
        Ok(self.solve(asked, false).0)
    }

    fn tried(&mut self, asked: &Asked<'_, S>) -> Result<Option<Stage<S>>, Infallible> {
        let known = self.start.solved().and_then(|trace| trace.stages.get(self.trace.stages.len()));
        if let Some(failed) = known.filter(|stage| stage.has_failed) {
            self.trace.stages.push(failed.clone());
            return Ok(None);
        }
        let (stage, has_failed) = self.solve(asked, true);
        Ok((!has_failed).then_some(stage))
    }
}

/// Values and derivatives in the same sweeps, or one after the other in stages where that is easier.
pub(super) struct Together<'a, S> {
    plain: Sweeper<'a, f64>,
    sweeper: Sweeper<'a, S>,
    near: Option<&'a Trace>,
    trace: Trace,
}

/// Why values and derivatives are not found together.
pub(super) enum NotTogether {
    /// A stage does not settle, or not its derivatives.
    Hard,
    /// The model is refused.
    Refused(SolveError),
}

impl std::convert::From<SolveError> for NotTogether {
    fn from(error: SolveError) -> Self {
        Self::Refused(error)
    }
}

impl<'a, S: Scalar> Together<'a, S> {
    /// For `net`, of which `plain` has the values.
    pub fn new(net: &'a Net<S>, plain: &'a Net<f64>, options: &'a SolveOptions) -> Self {
        let structure = Arc::new(Structure::new(plain));
        let near = options.near.as_ref().map(|near| near.trace());
        let trace = Trace { structure: Some(Arc::clone(&structure)), stages: Vec::new() };
        let plain = Sweeper::new(plain, options, Arc::clone(&structure));
        Self { plain, sweeper: Sweeper::new(net, options, structure), near, trace }
    }

    /// How it went, and what other solutions can start from.
    pub fn finish(self) -> (Record, Trace) {
        let mut record = self.sweeper.record;
        record.sweeps += self.plain.record.sweeps;
        (record, self.trace)
    }
}

impl<S: Scalar> Stages<S> for Together<'_, S> {
    type Failure = NotTogether;

    fn structure(&self) -> &Arc<Structure> {
        &self.sweeper.structure
    }

    fn stage(&mut self, asked: &Asked<'_, S>) -> Result<Stage<S>, NotTogether> {
        let &Asked { customers, changes, like, manner, tolerance } = asked;
        let net = self.sweeper.net;
        let caps = caps(net, customers);
        let plain_changes = changes.values();
        let plain = Populations { customers, changes: &plain_changes, caps: &caps };
        let populations = Populations { customers, changes, caps: &caps };
        // What is held comes from this solution and no other.
        let near = self.near.filter(|_| manner != Manner::HELD);
        let near = near.and_then(|near| near.stage(self.trace.stages.len(), &self.plain.structure));
        let like = like.map(|stage| stage.unknowns.as_slice());
        let near = near.map(|near| nearby(near, like, manner, &self.plain.structure));
        let values: Option<Vec<f64>> = like.map(|like| like.iter().map(Scalar::value).collect());
        let from = match (&near, &values) {
            (Some(near), _) => From::Near(near),
            (None, Some(values)) => From::Like(values),
            (None, None) => From::Nothing,
        };
        let slack = if changes.are_known { LAST_SLACK } else { self.sweeper.derivative_slack(&populations) };
        let mut course = self.plain.course(&from, manner);
        let mut together = None;
        if manner != Manner::HELD {
            self.plain.approach(&mut course, &plain, manner, NEAR);
            if course.change < NEAR && !course.is_settled(tolerance) {
                let memory = self.plain.memory();
                together = self.sweeper.together(&mut course, memory, like, (&populations, manner), (tolerance, slack * tolerance));
            }
        }
        let stage = match together {
            Some(stage) => stage,
            None => {
                let solved = self.plain.finish(course, &plain, manner, tolerance);
                let values = solved.settled().ok_or(NotTogether::Hard)?.unknowns;
                let solved = self.sweeper.solve(&populations, &From::Settled(&values, like), manner, tolerance);
                solved.settled().ok_or(NotTogether::Hard)?
            }
        };
        let unknowns = stage.unknowns.iter().map(Scalar::value).collect();
        self.trace.stages.push(Settled { unknowns, manner, tells_strands: true, is_anew: false, has_failed: false });
        Ok(stage)
    }

    fn tried(&mut self, asked: &Asked<'_, S>) -> Result<Option<Stage<S>>, NotTogether> {
        self.stage(asked).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::compile::compile, *};
    use crate::model::{Bindings, lqn_text};

    /// Two classes before two pools, one of which calls the other, and a database of one thread.
    fn net() -> Net<f64> {
        let text = "P 0 p uu i p p1 f p p2 f -1
            T 0 t c1 r e1 -1 uu z 3 m 6 t c2 r e2 -1 uu z 1 m 3 t s1 n f1 -1 p1 m 3 t s2 n g1 -1 p2 m 2 t s3 n h1 -1 p2 -1
            E 0 s e1 0.1 -1 y e1 f1 1 -1 s e2 0.2 -1 y e2 f1 1 -1 y e2 g1 1 -1 s f1 0.2 -1 y f1 g1 1 -1 y f1 h1 0.5 -1
            s g1 0.3 -1 y g1 h1 1 -1 s h1 0.2 -1 -1";
        let model = lqn_text::parse(text).unwrap_or_else(|error| panic!("{error}"));
        compile(&model, &Bindings::new()).unwrap()
    }

    /// Also where the solution starts from one whose `R` is another.
    #[test]
    fn without_one_customer_removal_is_that_of_all() {
        let net = net();
        let (options, changes) = (SolveOptions::default(), Changes::none(net.arcs.len(), net.classes.len()));
        let structure = Arc::new(Structure::new(&net));
        let solve = |start: Start<'_>| {
            let mut stages = Alone::new(&net, &options, Arc::clone(&structure), start);
            let asked = Asked { customers: &[6.0, 3.0], changes: &changes, like: None, manner: Manner::FREE, tolerance: 1e-9 };
            let Ok(all) = stages.stage(&asked);
            let asked = Asked { customers: &[5.0, 3.0], like: Some(&all), manner: Manner::WITHOUT_ONE, ..asked };
            let Ok(less) = stages.stage(&asked);
            let (record, trace) = stages.finish();
            assert!(record.converged);
            (all.unknowns, less.unknowns, trace)
        };
        let (all, less, mut trace) = solve(Start::Cold);
        let removal = |unknowns: &[f64]| structure.held(Manner::WITHOUT_ONE).map(|place| unknowns[place]).collect::<Vec<f64>>();
        assert!(removal(&all).iter().any(|&r| r < 0.9), "some wait less without the own thread");
        assert_eq!(removal(&less), removal(&all));
        let longest = |unknowns: &[f64]| unknowns[..net.arcs.len()].iter().fold(0.0_f64, |most, &wait| most.max(wait));
        assert!(longest(&less) < 0.99 * longest(&all));
        structure.held(Manner::WITHOUT_ONE).for_each(|place| trace.stages[1].unknowns[place] = 1.0);
        let (_, again, _) = solve(Start::Near(&trace));
        for (i, (again, less)) in again.iter().zip(&less).enumerate() {
            assert!((again - less).abs() < 1e-7, "{i}: {again} {less}");
        }
    }
}
