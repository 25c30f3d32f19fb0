//! The exact solution of small models with exponential or phase-type times, by their Markov chain.
//!
//! # The state
//!
//! What every customer, thread, queue and processor holds at an instant (`state`): how many customers think; for every
//! strand of control its activity, the calls it has made, the stage of its slice or its place at the processor, or the request or
//! the instance that it waits for; for every queue who is in it, in its order. Strands and requests have no names: two
//! states that differ only in which of several like customers or threads is which are one state (`code`).
//!
//! # The transitions
//!
//! Customers' think times, think times of phases, open arrivals and the stages of slices end at their rates, one at a time (`chain`).
//! What follows at the same instant (calls, acceptances, replies, forks and joins, the next slices) takes no time and is followed
//! to its end in every way it can go (`course`, `tasks`), so that no state without duration is in the chain (`draws`). The meaning of
//! every construct is that of the simulator, the order of what happens at one instant included: what it draws is followed in every way.
//!
//! # The equations
//!
//! `pi Q = 0`, `sum pi = 1` on the recurrent class (`recurrent`, `steady`). A measure is `sum_s pi_s r_s` of a reward `r_s` of the
//! states: a level, or a rate of events (`rewards`); times follow by Little's law (`report`).
//!
//! | taken | how |
//! |---|---|
//! | squared coefficient of variation `c` of slices | 1: exponential; > 1: two branches of balanced means; `1/k`: Erlang of `k` stages |
//! | processors | infinite, fcfs, lcfs, rand, hol, pri (preemptive-resume, in the stage it was in), ps and rr with negligible quantum |
//! | tasks | customers with exponential think time, fcfs, hol, rand, inf, any number of threads; bounded queues for what nobody waits for; semaphores, read-write locks |
//! | calls | synchronous, asynchronous, forwarded; stochastic and deterministic numbers; three phases |
//! | replication | every copy is in the chain, results are per copy |
//! | graphs | sequence, or-fork, and-fork, and-join, quorum, loop, replies |
//!
//! Refused by name: times of other laws, quanta and fair shares, joins of several entries, open and asynchronous
//! requests at queues without bound, and more states than [`MarkovOptions::max_states`], also where it only
//! begins to show ([`MarkovOptions::max_work`]).
//!
//! Source: the semantics as in [`super::simulate`]; chains and their solution, Stewart, Introduction to the Numerical Solution of
//! Markov Chains (1994).

mod chain;
mod code;
mod compile;
mod course;
mod deadlock;
mod direct;
mod draws;
mod graph;
mod krylov;
mod locks;
mod network;
mod recurrent;
mod replicate;
mod report;
mod rewards;
mod state;
mod steady;
mod tasks;

use self::{
    chain::{Chain, Rows},
    network::Network,
    steady::Steady,
};
use super::{
    Solution, SolveError, asked,
    bind::{Binder, unusable},
    copies,
};
use crate::model::{Bindings, Model};

/// Most processors and tasks of a replicated model, with all copies.
const MOST_COPIES: usize = 10_000;

/// How to solve a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkovOptions {
    /// Most states, beyond which the model is refused.
    pub max_states: usize,
    /// Most work in finding them where requests that nobody waits for pile up at a task without bound, beyond which the model is refused: runs
    /// of events, each as much as there are strands of control in its state. Elsewhere five times as much.
    pub max_work: usize,
    /// Flow out of balance, as a part of all flow, at which the steady state counts as found.
    pub tolerance: f64,
    /// Most sweeps over the balance equations.
    pub max_sweeps: usize,
}

/// Rates of events between which products and quotients of a few are numbers.
const RATES: std::ops::Range<f64> = 1e-100..1e100;

impl Default for MarkovOptions {
    fn default() -> Self {
        Self { max_states: 300_000, max_work: 20_000_000, tolerance: 1e-13, max_sweeps: 20_000 }
    }
}

/// Solves `model` exactly with its `$parameters` bound to `values` (the model's own definitions fill what `values` leaves out).
///
/// [`Solution::iterations`] is the number of sweeps over the balance equations (0 where they were eliminated),
/// [`Solution::residual`] the flow out of balance as a part of all flow, and [`Solution::converged`] whether that is within
/// [`MarkovOptions::tolerance`].
///
/// # Errors
/// [`SolveError::Unsupported`] for constructs without a chain of few states, [`SolveError::Unbound`] and [`SolveError::Unusable`] for
/// numbers and references that cannot be used, [`SolveError::Deadlock`] where tasks can come to wait for one another for ever
/// (its time is the mean time of a shortest way there).
pub fn solve_markov(model: &Model, values: &Bindings, options: &MarkovOptions) -> Result<Solution, SolveError> {
    let binder = Binder::new(model, values)?;
    let copies = copies::lay_out(model, binder.values(), ("markov", MOST_COPIES))?;
    let network = compile::compile(&copies.all, &binder)?;
    let chain = Chain::explore(&network, options)?;
    check_rates(&chain)?;
    let class = recurrent_class(&copies.all, &network, &chain)?;
    let steady = steady::steady_state(&restricted(&chain, &class), options.tolerance, options.max_sweeps);
    let mut means = vec![0.0; rewards::Layout::new(&network).width];
    for (&state, probability) in class.iter().zip(&steady.probabilities) {
        chain.rewards.row(state).for_each(|(place, reward)| means[place] += probability * reward);
    }
    let mut solution = if copies.has_several() {
        let single = compile::compile(&copies.single, &binder)?;
        report::solution(model, &single, &replicate::per_copy(&copies, &network, &single, &means))
    } else {
        report::solution(model, &network, &means)
    };
    copies.annotate(&mut solution);
    solution.solver = "markov".into();
    solution.converged = steady.residual <= options.tolerance;
    solution.iterations = steady.sweeps;
    solution.residual = steady.residual;
    solution.diagnostics = network.notes;
    solution.diagnostics.extend(asked::note(model, binder.values()));
    if !solution.converged {
        let Steady { residual, sweeps, .. } = steady;
        let text = format!("the steady state was not found: {residual:.1e} of all flow is out of balance after {sweeps} sweeps");
        solution.diagnostics.push(text + ", and the figures are not those of the model");
    }
    solution.diagnostics.push(format!("a chain of {} states, {} of them recurrent", chain.len(), class.len()));
    Ok(solution)
}

/// Refuses what cannot be told apart in numbers of double precision.
fn check_rates(chain: &Chain) -> Result<(), SolveError> {
    let all = (0..chain.rates.len()).flat_map(|state| chain.rates.row(state));
    match all.map(|(_, rate)| rate).find(|rate| !RATES.contains(rate)) {
        Some(rate) => {
            Err(unusable("model", format!("something in it happens at a rate of {rate:e}, expected {:e} to {:e}", RATES.start, RATES.end)))
        }
        None => Ok(()),
    }
}

/// The states of the only recurrent class, in which nobody waits for ever.
fn recurrent_class(model: &Model, network: &Network, chain: &Chain) -> Result<Vec<usize>, SolveError> {
    let mut classes = recurrent::recurrent_classes(&chain.rates);
    for &state in classes.iter().filter_map(|c| c.first()) {
        if let Some(error) = deadlock::deadlock(model, network, chain, state, chain.dead.contains(&state)) {
            return Err(error);
        }
    }
    if let Some(&dead) = chain.dead.first() {
        return Err(unusable("model", format!("after {:.6} time units nothing can happen any more", chain.time_to(dead))));
    }
    match classes.pop() {
        Some(class) if classes.is_empty() => Ok(class),
        _ => Err(refused("a steady state that depends on the start", "the model".into())),
    }
}

/// The rates within a class.
fn restricted(chain: &Chain, class: &[usize]) -> Rows {
    let mut numbers = vec![0; chain.len()];
    class.iter().enumerate().for_each(|(i, &s)| numbers[s] = i);
    let mut rates = Rows::default();
    class.iter().for_each(|&s| rates.push(chain.rates.row(s).map(|(to, rate)| (numbers[to], rate))));
    rates
}

/// A construct that the chain does not take.
fn refused(construct: &'static str, element: String) -> SolveError {
    SolveError::Unsupported { solver: "markov", construct, element }
}
