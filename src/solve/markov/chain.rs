//! The chain: states found breadth-first from the start, their transition rates, and their rewards.

use std::collections::{HashMap, hash_map::Entry};

use indexmap::IndexSet;

use super::{
    MarkovOptions,
    code::{decode, encode},
    compile::index,
    course::{Course, Event},
    draws::Draws,
    network::{Discipline, NONE, Network},
    refused,
    rewards::{Layout, Row, add_levels},
    state::{Doing, State},
};
use crate::solve::SolveError;

/// Most runs of the choices of one event.
const RUNS_LIMIT: usize = 20_000;

/// How many times [`MarkovOptions::max_work`] is allowed in states where nothing piles up.
const WORK_WITHOUT_PILES: usize = 5;

/// Requests that nobody waits for at one task without bound, above which they count as piling up.
const PILE: usize = 20;

/// Probability that the runs too improbable to be followed may leave out together.
const LOSS_LIMIT: f64 = 1e-12;

/// Rows of sparse numbers, one after the other.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Where each row ends.
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Columns and values of a row.
    pub(super) fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = if i == 0 { 0 } else { self.ends[i - 1] }..self.ends[i];
        self.columns[range.clone()].iter().zip(&self.values[range]).map(|(&c, &v)| (c as usize, v))
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: impl IntoIterator<Item = (usize, f64)>) {
        for (column, value) in row {
            self.columns.push(index(column));
            self.values.push(value);
        }
        self.ends.push(self.columns.len());
    }
}

/// A Markov chain in continuous time.
#[derive(Debug, Default)]
pub(super) struct Chain {
    states: IndexSet<Box<[u8]>>,
    /// Rates to other states.
    pub(super) rates: Rows,
    /// Rewards a unit of time.
    pub(super) rewards: Rows,
    /// States in which nothing can happen.
    pub(super) dead: Vec<usize>,
    /// The state that each was found from.
    parents: Vec<usize>,
}

impl Chain {
    /// The chain of `network`.
    ///
    /// # Errors
    /// [`SolveError::Unsupported`] where there are more states, or more work to find them, than `options` allow, [`SolveError::Unusable`] for a model that goes in
    /// circles without time passing or in which a reply is missing.
    pub(super) fn explore(network: &Network, options: &MarkovOptions) -> Result<Self, SolveError> {
        let (chain, layout) = (Self::default(), Layout::new(network));
        let mut explorer = Explorer { network, options, chain, layout, next: Vec::new(), work: 0, work_at_piles: 0, pile: None };
        explorer.start()?;
        let mut row = Row::new(explorer.layout.width);
        let mut at = 0;
        while let Some(code) = explorer.chain.states.get_index(at) {
            let state = decode(network, code);
            explorer.expand(at, &state, &mut row)?;
            at += 1;
        }
        Ok(explorer.chain)
    }

    /// Number of states.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// A state by its number.
    pub(super) fn state(&self, network: &Network, number: usize) -> State {
        self.states.get_index(number).map_or_else(|| State::empty(network), |code| decode(network, code))
    }

    /// The bytes of a state.
    #[cfg(test)]
    pub(super) fn code(&self, number: usize) -> Option<&[u8]> {
        self.states.get_index(number).map(|code| &**code)
    }

    /// Mean time of the way by which a state was found.
    pub(super) fn time_to(&self, mut number: usize) -> f64 {
        let mut time = 0.0;
        while number != self.parents[number] {
            number = self.parents[number];
            time += 1.0 / self.rates.row(number).map(|r| r.1).sum::<f64>();
        }
        time
    }
}

struct Explorer<'a> {
    network: &'a Network,
    options: &'a MarkovOptions,
    chain: Chain,
    layout: Layout,
    /// States after the event at hand, with rates.
    next: Vec<(usize, f64)>,
    /// Work so far, in the unit of [`MarkovOptions::max_work`], in states without a pile and in those with one.
    work: usize,
    work_at_piles: usize,
    /// The pile in the state at hand.
    pile: Option<(usize, usize)>,
}

impl Explorer<'_> {
    /// The number of a state, new or not.
    fn number(&mut self, state: &State, parent: Option<usize>) -> Result<usize, SolveError> {
        let (number, is_new) = self.chain.states.insert_full(encode(self.network, state));
        if is_new {
            self.chain.parents.push(parent.unwrap_or(number));
        }
        if number < self.options.max_states {
            return Ok(number);
        }
        Err(refused("so large a state space", format!("the model, which has more than {} states", self.options.max_states)))
    }

    /// The states at the start: all customers think, or begin where they do not.
    fn start(&mut self) -> Result<(), SolveError> {
        let mut draws = Draws::new();
        for _ in 0..RUNS_LIMIT {
            let mut course = Course::new(self.network, State::empty(self.network), &mut draws);
            for (t, task) in self.network.tasks.iter().enumerate().filter(|t| t.1.is_reference) {
                if task.threads > self.options.max_states {
                    return Err(refused("so many customers", format!("{} of them", task.threads)));
                }
                for _ in 0..task.threads {
                    if task.think > 0.0 {
                        course.state.servers[t].thinking += 1;
                    } else {
                        let strand = course.new_customer(t);
                        course.ready.push_back(strand);
                    }
                }
            }
            if course.settle()? {
                let state = course.state;
                self.number(&state, None)?;
            }
            if !draws.next_run() {
                return Ok(());
            }
        }
        Err(refused("so many choices that take no time", "the model".into()))
    }

    /// The transitions and rewards of a state.
    fn expand(&mut self, number: usize, state: &State, row: &mut Row) -> Result<(), SolveError> {
        add_levels(self.network, &self.layout, state, row);
        let events = events(self.network, state);
        if events.is_empty() {
            self.chain.dead.push(number);
        }
        self.next.clear();
        self.pile = pile(self.network, state);
        for (event, rate) in events {
            self.event(number, state, event, rate, row)?;
        }
        self.next.sort_unstable_by_key(|n| n.0);
        self.next.dedup_by(|later, first| {
            let same = later.0 == first.0;
            first.1 += if same { later.1 } else { 0.0 };
            same
        });
        let next = std::mem::take(&mut self.next);
        self.chain.rates.push(next.iter().copied().filter(|n| n.0 != number));
        self.next = next;
        self.chain.rewards.push(row.take());
        Ok(())
    }

    /// Counts a run of an event in `state`; the work is bounded more closely where requests that nobody waits for pile up.
    fn spend(&mut self, state: &State) -> Result<(), SolveError> {
        let (work, most) = match self.pile {
            Some(_) => (&mut self.work_at_piles, self.options.max_work),
            None => (&mut self.work, self.options.max_work.saturating_mul(WORK_WITHOUT_PILES)),
        };
        *work += state.strands.len();
        if *work <= most {
            return Ok(());
        }
        let found = self.chain.len();
        let element = match self.pile {
            Some((task, n)) => format!(
                "task \"{}\", at which nothing bounds what goes on after the reply: {n} in one of the first {found} states",
                self.network.tasks[task].name
            ),
            None => format!("the model, with {} strands of control in one of the first {found} states", state.strands.len()),
        };
        Err(refused("so large a state space", element))
    }

    fn event(&mut self, number: usize, state: &State, event: Event, rate: f64, row: &mut Row) -> Result<(), SolveError> {
        let mut draws = Draws::new();
        let mut total = 0.0;
        for _ in 0..RUNS_LIMIT {
            self.spend(state)?;
            let mut course = Course::new(self.network, state.clone(), &mut draws);
            if course.after(event)? {
                let (state, counts) = (course.state, course.counts);
                let flow = rate * draws.probability;
                total += draws.probability;
                counts.into_iter().for_each(|place| row.add(place, flow));
                let to = self.number(&state, Some(number))?;
                self.next.push((to, flow));
            }
            if !draws.next_run() {
                break;
            }
        }
        if total > 1.0 - LOSS_LIMIT {
            return Ok(());
        }
        Err(refused("so many choices that take no time", "the model".into()))
    }
}

/// A task without bound, and how many requests are at work there that nobody waits for, where they are more than a few.
fn pile(network: &Network, state: &State) -> Option<(usize, usize)> {
    let mut left = vec![0; network.tasks.len()];
    for instance in state.instances.iter().filter(|i| i.caller == NONE && !i.is_customer) {
        left[network.entries[instance.entry as usize].task as usize] += 1;
    }
    left.into_iter().enumerate().find(|&(task, n)| n > PILE && network.tasks[task].threads == usize::MAX)
}

/// What strands have in common that do the same for roots of which they are all there is: what happens to one may happen to any.
type Alike = (Event, u32, [bool; 5], u32, u32, (u32, u32));

/// Adds an event of strand `s`, to one of a strand that is alike where there is one.
fn add_of_strand(state: &State, s: u32, event: (Event, f64), events: &mut Vec<(Event, f64)>, known: &mut HashMap<Alike, usize>) {
    let strand = &state.strands[s as usize];
    let it = &state.instances[strand.instance as usize];
    let is_alone = it.caller == NONE && it.n_strands == 1 && it.root == NONE && strand.frame == NONE;
    if !is_alone {
        return events.push(event);
    }
    let of_any = match event.0 {
        Event::Thought(_) => Event::Thought(NONE),
        _ => Event::Stage(NONE),
    };
    let flags = [it.is_customer, it.is_open, it.is_async, it.has_replied, it.holds_lock];
    let alike = (of_any, it.entry, flags, strand.activity, strand.stage, (strand.call, strand.left));
    match known.entry(alike) {
        Entry::Occupied(place) => events[*place.get()].1 += event.1,
        Entry::Vacant(place) => {
            place.insert(events.len());
            events.push(event);
        }
    }
}

/// What can happen in a state, with rates.
fn events(network: &Network, state: &State) -> Vec<(Event, f64)> {
    let mut known = HashMap::new();
    let mut events: Vec<(Event, f64)> = network.sources.iter().map(|&(entry, rate)| (Event::Arrival(entry), rate)).collect();
    for (t, task) in network.tasks.iter().enumerate().filter(|t| t.1.is_reference) {
        let thinking = state.servers[t].thinking;
        if thinking > 0 {
            events.push((Event::Customer(t), f64::from(thinking) / task.think));
        }
    }
    for (s, strand) in state.strands.iter().enumerate().filter(|s| s.1.doing == Doing::Thinking) {
        let event = (Event::Thought(index(s)), 1.0 / network.activities[strand.activity as usize].think);
        add_of_strand(state, index(s), event, &mut events, &mut known);
    }
    for (spec, station) in network.processors.iter().zip(&state.stations) {
        let speed = station.speed(spec.discipline, spec.servers);
        for &s in &station.running {
            let strand = &state.strands[s as usize];
            if let Some(law) = &network.activities[strand.activity as usize].slice {
                let event = (Event::Stage(s), speed * law.stages[strand.stage as usize].rate);
                match spec.discipline {
                    // Who runs on has a place among the others.
                    Discipline::Preemptive => events.push(event),
                    _ => add_of_strand(state, s, event, &mut events, &mut known),
                }
            }
        }
    }
    events
}
