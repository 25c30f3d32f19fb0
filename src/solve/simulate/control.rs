//! How long to run: replications in rounds, until the asked precision or time.
//!
//! A replication keeps its statistics in rows of equal time. There are never more than [`MOST_ROWS`] of them: then every
//! two become one, and rows are twice as long from there on. So a run of any length is kept in bounded memory with the same
//! resolution of its warm-up.

use std::{num::NonZero, thread};

use super::{
    SimulateOptions,
    distribution::Blocks,
    estimate::{Batches, Customers, Rows},
    network::Network,
    report,
    run::Run,
    statistics::Layout,
    times::{self, MOST_BLOCKS, Times},
};
use crate::solve::{Solution, SolveError, bind::unusable};

/// Most rows of a replication.
const MOST_ROWS: usize = 256;

/// Rows at which precision is looked at first, and then each time rows were put together and half as many were added.
const FEWEST_ROWS: usize = MOST_ROWS / 2;

/// Rows of a block of times.
const BLOCK_ROWS: usize = MOST_ROWS / MOST_BLOCKS;

/// Events of the run that finds how much model time a row should cover.
const TRIAL_EVENTS: u64 = 8192;

/// Relative half-width up to which a run for a given time knows what precision is asked of otherwise, and counts as converged.
const TIMED_PRECISION: f64 = 0.1;

/// Rows that the trial run is worth.
const TRIAL_ROWS: f64 = 64.0;

/// One replication.
struct Replication<'n> {
    run: Run<'n>,
    rows: Rows,
    blocks: Vec<Times>,
    /// Time at which the rows end.
    end: f64,
    events_left: u64,
    error: Option<SolveError>,
}

impl Replication<'_> {
    /// Runs until there are `n` rows or no events left.
    fn extend(&mut self, n: usize) {
        while self.rows.count() < n && self.events_left > 0 && self.error.is_none() {
            let before = self.run.events;
            let end = self.end + self.rows.length;
            let result = self.run.advance(end, self.events_left);
            self.events_left = self.events_left.saturating_sub(self.run.events - before);
            self.error = result.err();
            if self.events_left > 0 && self.error.is_none() {
                self.end = end;
                self.run.statistics.cut(end, &mut self.rows.values);
                if self.rows.count().is_multiple_of(BLOCK_ROWS) {
                    self.blocks.push(self.run.statistics.times.cut());
                }
            }
        }
        if self.error.is_none() {
            self.error = self.run.partial_deadlock();
        }
    }

    /// Puts every two rows, and every two blocks, together.
    fn halve(&mut self) {
        self.rows.halve();
        times::halve(&mut self.blocks);
    }

    /// Ends a block that the run was too short for.
    fn finish(&mut self) {
        if !self.rows.count().is_multiple_of(BLOCK_ROWS) {
            self.blocks.push(self.run.statistics.times.cut());
        }
    }
}

/// A simulation that has ended.
pub(super) struct Simulation<'n> {
    network: &'n Network,
    layout: Layout,
    options: SimulateOptions,
    outcome: Outcome,
    /// Blocks of times, warm-up removed.
    blocks: Vec<Times>,
    /// Events of all replications.
    pub(super) events: u64,
    /// What it measured.
    pub(super) batches: Batches,
}

impl Simulation<'_> {
    /// Its results.
    pub(super) fn solution(&self) -> Solution {
        let blocks = self.blocks.iter().collect();
        let mut solution = report::solution(self.network, &self.layout, &self.batches);
        let blocks = Blocks::new(blocks, self.options.confidence);
        report::distributions(&mut solution, self.network, (&self.layout, &self.batches), &blocks, &self.options.quantiles);
        describe(&mut solution, self.network, &self.batches, &self.outcome, &self.options);
        solution
    }

    /// Model time of a replication, warm-up included.
    #[expect(clippy::cast_precision_loss, reason = "a count of replications")]
    pub(super) fn run_time(&self) -> f64 {
        (self.batches.time + self.batches.warm_up) / self.options.replications as f64
    }

    /// Its results without batch `b`.
    pub(super) fn solution_without(&self, b: usize) -> Solution {
        report::solution(self.network, &self.layout, &self.batches.without(b))
    }
}

/// Simulates `network` as `options` ask.
pub(super) fn simulate<'n>(network: &'n Network, options: &SimulateOptions) -> Result<Simulation<'n>, SolveError> {
    options.check()?;
    let length = match options.run_time {
        #[expect(clippy::cast_precision_loss, reason = "a small constant")]
        Some(time) => time / MOST_ROWS as f64,
        None => trial_length(network, options)?,
    };
    let layout = Layout::new(&network.origins);
    let mut replications = Vec::new();
    for number in 0..options.replications {
        #[expect(clippy::cast_possible_truncation, reason = "a number of replications")]
        let run = Run::new(network, options.seed, number as u32);
        let rows = Rows { length, width: layout.width(), values: Vec::new() };
        let events_left = (options.max_events / options.replications as u64).max(1);
        replications.push(Replication { run, rows, blocks: Vec::new(), end: 0.0, events_left, error: None });
    }
    let (batches, outcome) = rounds(network, &layout, &mut replications, options)?;
    let mut blocks = Vec::new();
    for replication in &mut replications {
        replication.finish();
        blocks.extend(std::mem::take(&mut replication.blocks).into_iter().skip(batches.warm_up_rows.div_ceil(BLOCK_ROWS)));
    }
    let events = replications.iter().map(|r| r.run.events).sum();
    Ok(Simulation { network, layout, options: options.clone(), outcome, blocks, events, batches })
}

/// Model time of a row, from a short run.
fn trial_length(network: &Network, options: &SimulateOptions) -> Result<f64, SolveError> {
    let mut run = Run::new(network, options.seed, 0);
    run.advance(f64::MAX, TRIAL_EVENTS)?;
    if run.now > 0.0 {
        return Ok(run.now / TRIAL_ROWS);
    }
    Err(unusable("model", format!("no time passes in its first {TRIAL_EVENTS} events")))
}

/// What precision is asked of: the throughput of a reference task or the response time of an open entry.
struct Known {
    /// Its name, for people.
    name: String,
    /// Relative half-width.
    relative: f64,
}

/// Why the simulation ended.
struct Outcome {
    /// What precision is asked of, the least precise first.
    known: Vec<Known>,
    /// The relative half-width up to which what is known counts as known.
    wanted: f64,
    /// Whether what was asked was reached.
    is_reached: bool,
    /// What never happened in the time measured.
    unseen: Vec<String>,
}

fn rounds(
    network: &Network,
    layout: &Layout,
    replications: &mut [Replication<'_>],
    options: &SimulateOptions,
) -> Result<(Batches, Outcome), SolveError> {
    let references: Vec<usize> = (0..network.origins.tasks.len()).filter(|&t| network.origins.tasks[t].is_reference).collect();
    let customers: Vec<Customers> = references.iter().map(|&t| customers(network, layout, t)).collect();
    let mut target = if options.run_time.is_some() && options.precision.is_none() { MOST_ROWS } else { FEWEST_ROWS };
    loop {
        extend_all(replications, target, options.workers);
        if let Some(error) = replications.iter_mut().find_map(|r| r.error.take()) {
            return Err(error);
        }
        let rows: Vec<&Rows> = replications.iter().map(|r| &r.rows).collect();
        let batches = Batches::new(&rows, layout, &customers, network.origins.tasks.len(), options.confidence);
        let known = known(network, layout, &batches, &references);
        let residual = known.first().map_or(0.0, |k| k.relative);
        let is_precise = options.precision.is_some_and(|p| residual <= p) && !batches.is_transient;
        let is_timed_out = options.run_time.is_some() && target == MOST_ROWS;
        let is_spent = replications.iter().any(|r| r.events_left == 0);
        if is_precise || is_timed_out || is_spent {
            let unseen = unseen(network, layout, &batches);
            let is_known = residual <= TIMED_PRECISION && unseen.is_empty();
            let is_reached = is_precise || (is_timed_out && options.precision.is_none() && is_known);
            return Ok((batches, Outcome { known, wanted: options.precision.unwrap_or(TIMED_PRECISION), is_reached, unseen }));
        }
        if target == MOST_ROWS {
            replications.iter_mut().for_each(Replication::halve);
            target = FEWEST_ROWS;
        }
        target += FEWEST_ROWS / 2;
    }
}

/// What is kept of the customers of reference task `task`.
fn customers(network: &Network, layout: &Layout, task: usize) -> Customers {
    let entries = network.origins.entries.iter().enumerate().filter(|(_, entry)| entry.task == task);
    let times = entries.flat_map(|(e, entry)| (1..=entry.n_phases).map(move |phase| layout.phase(e, phase)));
    Customers { level: layout.task_level(task), times: times.collect(), cycles: layout.cycles(task) }
}

/// Runs every replication until it has `target` rows.
fn extend_all(replications: &mut [Replication<'_>], target: usize, workers: usize) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let workers = if workers == 0 { cores } else { workers }.min(replications.len()).max(1);
    if workers == 1 {
        return replications.iter_mut().for_each(|r| r.extend(target));
    }
    let each = replications.len().div_ceil(workers);
    thread::scope(|scope| {
        for part in replications.chunks_mut(each) {
            scope.spawn(move || part.iter_mut().for_each(|r| r.extend(target)));
        }
    });
}

/// How precisely the reference tasks' throughputs and the open entries' response times are known, the least precise first.
fn known(network: &Network, layout: &Layout, batches: &Batches, references: &[usize]) -> Vec<Known> {
    let origins = &network.origins;
    let cycles = references.iter().map(|&t| Known {
        name: format!("the throughput of task \"{}\"", origins.tasks[t].name),
        relative: batches.rate(layout.cycles(t), 1.0).relative(),
    });
    let responses = open_entries(network).map(|e| Known {
        name: format!("the response time of entry \"{}\"", origins.entries[e].name),
        relative: batches.mean(layout.open(e), layout.open(e) + 1).unwrap_or_default().relative(),
    });
    let mut known: Vec<Known> = cycles.chain(responses).collect();
    known.sort_by(|a, b| b.relative.total_cmp(&a.relative));
    known
}

/// The entries to which requests come from outside.
fn open_entries(network: &Network) -> impl Iterator<Item = usize> {
    network.sources.iter().map(|s| network.entries[s.entry as usize].origin as usize)
}

/// Steps between two numbers of the clock that the shortest mean slice takes at least, for its rounding not to count.
const CLOCK_STEPS: f64 = 100.0;

/// What is said of a run that grew, or fell, to its end.
const UNSETTLED: &str = "the run did not settle: it is too short for its warm-up, or there is no steady state";

/// Whether a simulation came to a steady state, as far as can be told: it did not grow to its end, and knows what it was asked for.
pub(in crate::solve) fn has_settled(solution: &Solution) -> bool {
    solution.residual <= TIMED_PRECISION && solution.diagnostics.iter().all(|note| note != UNSETTLED)
}

/// What the simulation is asked for and never saw: cycles of customers, replies to requests from outside.
fn unseen(network: &Network, layout: &Layout, batches: &Batches) -> Vec<String> {
    let origins = &network.origins;
    let tasks = origins.tasks.iter().enumerate().filter(|(t, task)| task.is_reference && batches.total(layout.cycles(*t)) == 0.0);
    let tasks = tasks.map(|(_, task)| format!("no cycle of task \"{}\" ended", task.name));
    let entries = open_entries(network).filter(|&e| batches.total(layout.open(e) + 1) == 0.0);
    let entries = entries.map(|e| format!("no request from outside to entry \"{}\" was replied to", origins.entries[e].name));
    let mut unseen: Vec<String> = tasks.chain(entries).collect();
    unseen.dedup();
    unseen
}

fn describe(solution: &mut Solution, network: &Network, batches: &Batches, outcome: &Outcome, options: &SimulateOptions) {
    solution.solver = "simulate".into();
    solution.iterations = batches.count();
    solution.residual = outcome.known.first().map_or(0.0, |k| k.relative);
    solution.converged = outcome.is_reached && !batches.is_transient;
    solution.measured_time = Some(batches.time);
    let notes = &mut solution.diagnostics;
    notes.extend(network.notes.iter().cloned());
    let percent = 100.0 * options.confidence;
    notes.push(format!(
        "simulated {:.6} time units in {} replications after a warm-up of {:.6}; half-widths at {percent} % confidence",
        batches.time, options.replications, batches.warm_up
    ));
    if batches.is_transient {
        notes.push(UNSETTLED.into());
    }
    let clock = (batches.warm_up + batches.time) / f64::from(u32::try_from(options.replications.max(1)).unwrap_or(u32::MAX));
    if let Some(slice) = network.shortest_slice.filter(|slice| *slice < CLOCK_STEPS * f64::EPSILON * clock) {
        solution.converged = false;
        notes.push(format!("slices of {slice:e} are lost in a clock that runs to {clock:e}: such times cannot be simulated side by side"));
    }
    notes.extend(outcome.unseen.iter().map(|what| format!("{what} in the time measured: simulate for longer")));
    for (name, task) in &solution.tasks {
        if let (Some(lost @ 1..), Some(part)) = (task.lost_requests, task.loss_probability) {
            notes.push(format!(
                "task \"{name}\" lost {lost} requests, {:.3} % of the asynchronous and open ones, at its full queue",
                100.0 * part
            ));
        }
    }
    if !outcome.is_reached {
        notes.extend(imprecise(outcome, options));
    }
}

/// What is not known as precisely as it should be. What was never seen at all is said elsewhere.
fn imprecise(outcome: &Outcome, options: &SimulateOptions) -> Option<String> {
    let is_told = |k: &&Known| k.relative.is_finite() || outcome.unseen.is_empty();
    let mut imprecise = outcome.known.iter().filter(|k| k.relative > outcome.wanted).filter(is_told);
    let worst = imprecise.next()?;
    let others = match imprecise.count() {
        0 => String::new(),
        n => format!(" (and {n} others)"),
    };
    let limit = match options.precision {
        Some(precision) => format!("{:.3} % were asked for", 100.0 * precision),
        None => format!("more than {} % does not count as converged", 100.0 * TIMED_PRECISION),
    };
    let remedy = if options.run_time.is_some() { "simulate for longer" } else { "allow more events" };
    if worst.relative.is_infinite() {
        return Some(format!("the run is too short to tell how precisely {} is known{others}: {remedy}", worst.name));
    }
    Some(format!("{} is known to within {:.3} %{others}, where {limit}: {remedy}", worst.name, 100.0 * worst.relative))
}
