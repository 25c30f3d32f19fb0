//! The forests of all recordings that are open, and the batches that are handed over.

use super::{Found, forest::Forest};
use crate::{
    structure::{
        SecondPhase,
        interactions::{Interactions, Recording},
    },
    trace::{
        diagnostics::Diagnostics,
        same::{LogStep, Step, Vocabulary, What},
    },
};

/// Fewest occurrences of a forest that are worth looking through.
const FEW_OCCURRENCES: usize = 64;

/// Occurrences for each unit whose name a batch has, at the least; and those of a batch that are enough whatever names it has.
const FEW_FOR_A_UNIT: usize = 4;
const ENOUGH_OCCURRENCES: usize = 1 << 16;

/// A recording whose end was not seen.
#[derive(Debug)]
struct Open {
    forest: Forest,
    /// What stands for it in the next batch that it is part of.
    recording: Recording,
}

/// All recordings that are open.
#[derive(Debug)]
pub(super) struct Recordings {
    second_phase: SecondPhase,
    /// Occurrences that are held before complete trees are looked for, and those that make a batch: at the least.
    batch: usize,
    slots: Vec<Option<Box<Open>>>,
    n_open: usize,
    /// Occurrences of all forests.
    n_held: usize,
    /// The next batch, without the names.
    next: Interactions,
}

impl Recordings {
    pub(super) fn new(second_phase: SecondPhase, batch: usize) -> Self {
        let (slots, next) = Default::default();
        Self { second_phase, batch, slots, n_open: 0, n_held: 0, next }
    }

    /// Takes what happens in a recording.
    pub(super) fn take(&mut self, names: &Vocabulary, step: LogStep<'_>, found: &mut Found<'_>) {
        let slot = step.recording;
        match step.what {
            What::Begin { name, scenario, continued } => {
                self.slots.resize_with(self.slots.len().max(slot + 1), || None);
                let recording = Recording { continued, ..Recording::new(name, scenario) };
                self.slots[slot] = Some(Box::new(Open { forest: Forest::new(self.second_phase), recording }));
                self.n_open += 1;
            }
            What::Step(step) => {
                if !self.step(slot, step, names) {
                    return;
                }
            }
            What::End => {
                if let Some(mut open) = self.slots[slot].take() {
                    self.n_held -= open.forest.n_occurrences();
                    self.n_open -= 1;
                    open.forest.end_recording();
                    self.hand_over(&mut open, names);
                }
            }
        }
        if self.next.occurrences.len().max(self.next.traces.len()) >= self.batch(names) {
            found(named(std::mem::take(&mut self.next), names));
        }
    }

    /// Hands over the last batch, with what was odd in the logs before what was odd in the trees.
    pub(super) fn finish(mut self, names: &Vocabulary, mut diagnostics: Diagnostics, found: &mut Found<'_>) {
        diagnostics.merge(std::mem::take(&mut self.next.diagnostics));
        self.next.diagnostics = diagnostics;
        found(named(self.next, names));
    }

    /// Occurrences that are held.
    #[cfg(test)]
    pub(super) fn n_held(&self) -> usize {
        self.n_held + self.next.occurrences.len()
    }

    /// Each batch has all names, and to look for complete trees is to look at all units.
    fn batch(&self, names: &Vocabulary) -> usize {
        self.batch.max((FEW_FOR_A_UNIT * names.units.names.len()).min(ENOUGH_OCCURRENCES))
    }

    /// Takes a step; whether something was moved to the next batch.
    fn step(&mut self, slot: usize, step: Step<'_>, names: &Vocabulary) -> bool {
        let Some(open) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return false };
        let forest = &mut open.forest;
        let before = forest.n_occurrences();
        match step {
            Step::Message(message) => forest.message(message),
            Step::Send(number, message) => forest.send(number, message),
            Step::Receive(number, message) => forest.receive(number, message),
            Step::Local(event) => forest.local_event(event),
        }
        self.n_held = self.n_held + forest.n_occurrences() - before;
        if self.n_held < self.batch {
            return false;
        }
        let batch = self.batch(names);
        let share = (batch / self.n_open.max(1)).max(FEW_OCCURRENCES.min(batch));
        let is_due = |open: &mut Box<Open>| self.n_held >= batch && open.forest.may_hand_over(share);
        let Some(mut open) = self.slots[slot].take_if(is_due) else { return false };
        self.n_held -= open.forest.n_occurrences();
        self.hand_over(&mut open, names);
        self.n_held += open.forest.n_occurrences();
        self.slots[slot] = Some(open);
        true
    }

    /// Moves what is complete of a recording to the next batch; if it is the first of the recording, even if that is nothing.
    fn hand_over(&mut self, open: &mut Open, names: &Vocabulary) {
        let trace = self.next.traces.len() as u32;
        let before = self.next.occurrences.len();
        open.forest.hand_over(trace, &mut self.next);
        open.forest.notes.tell(&open.recording.name, &names.units.names, &mut self.next.diagnostics);
        if self.next.occurrences.len() > before || !open.recording.continued {
            self.next.traces.push(open.recording.clone());
            open.recording.continued = true;
        }
    }
}

fn named(batch: Interactions, names: &Vocabulary) -> Interactions {
    let Vocabulary { units, operations, scenarios } = names.clone();
    Interactions { units, operations, scenarios, ..batch }
}
