//! One recording while it is read: ends of messages and messages to steps, in order of time.

use super::{
    LocalEvent, Message, Time, Times, Vocabulary,
    pairing::{Event, Id, Paired, Pairing, Side},
    repeats::Repeats,
    steps::{Context, DUPLICATE, Step, Steps},
    window::Window,
};
use crate::trace::diagnostics::Diagnostics;

/// What a recording gives up at once, at the least.
const FEW: usize = 64;

/// Examples kept of ends that were given up.
const EXAMPLES_KEPT: u64 = 5;

/// What all recordings of a log share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) vocabulary: Vocabulary,
    pub(super) diagnostics: Diagnostics,
}

/// An end of a message: its id, unit, peer, message type, and whether it is a sending.
type Identified = (Id, u32, Option<u32>, Option<u32>, bool);

/// One recording.
#[derive(Debug)]
pub(super) struct Recording {
    /// What its rows name it by.
    pub(super) key: Box<str>,
    pub(super) name: String,
    /// When it was opened, and when it had its last row: numbers of switches between recordings.
    pub(super) opened: u64,
    pub(super) last_row: u64,
    last_time: Option<Time>,
    /// Ends of messages and local events, and the last that left.
    window: Window<Event>,
    last_event: Option<(Time, u64, u64)>,
    /// Ends with an id.
    repeats: Repeats<Identified>,
    pairing: Pairing,
    /// Ends that were given up: sendings, receptions.
    unpaired: [Unpaired; 2],
    steps: Steps,
}

/// Ends of one kind that have no other end.
#[derive(Debug, Default)]
struct Unpaired {
    n: u64,
    examples: Vec<String>,
    /// The first of them in order of time.
    first: Option<(Time, u64, u64)>,
}

impl Recording {
    pub(super) fn new(key: &str, name: String, opened: u64, times: Times) -> Self {
        Self {
            key: key.into(),
            name,
            opened,
            last_row: opened,
            last_time: None,
            window: Window::default(),
            last_event: None,
            repeats: Repeats::default(),
            pairing: Pairing::default(),
            unpaired: Default::default(),
            steps: Steps::new(times),
        }
    }

    /// Messages and ends of messages that are held.
    pub(super) fn n_held(&self) -> usize {
        self.n_in_windows() + self.pairing.len()
    }

    /// Those of them that wait for nothing but that there is enough.
    pub(super) fn n_in_windows(&self) -> usize {
        self.window.len() + self.steps.len()
    }

    /// Takes a message; `mark` tells its id from others.
    pub(super) fn message(&mut self, message: Message, seq: u64, mark: u32, shared: &mut Shared) {
        let context = &mut Context { recording: &self.name, units: &shared.vocabulary.units, diagnostics: &mut shared.diagnostics };
        self.steps.message(message, seq, mark, context);
    }

    /// Takes an end of a message, or a local event.
    pub(super) fn event(&mut self, event: Event, shared: &mut Shared) {
        if event.side != Side::Local
            && let Some(last) = self.last_time.replace(event.time).filter(|last| event.time < *last)
        {
            let text = "messages were not in order of their time and have been sorted";
            shared.diagnostics.add("unordered_time", text, || format!("{}: {} after {last}", self.name, event.time));
        }
        if self.last_event.is_some_and(|last| event.key() < last) {
            let text = "events came later than the window allows, and were paired when they came";
            shared.diagnostics.add("late_event", text, || self.shown(&event, &shared.vocabulary));
        }
        self.window.push(event);
    }

    /// Gives up what each window holds beyond fewer than `most` (≥ 1), and of the ends that wait for the other end those that
    /// are more than `most_waiting`. On the way the window of messages holds fewer than `limit`.
    pub(super) fn release(
        &mut self,
        most: usize,
        limit: usize,
        most_waiting: usize,
        shared: &mut Shared,
        out: &mut impl FnMut(&Vocabulary, Step<'_>),
    ) {
        while self.window.len() >= most
            && let Some(event) = self.window.pop()
        {
            self.last_event = self.last_event.max(Some(event.key()));
            self.pair(event, shared);
            self.release_steps(limit, shared, out);
        }
        while self.pairing.len() > most_waiting
            && let Some(event) = self.pairing.give_up()
        {
            self.note_unpaired(&event, shared);
        }
        self.release_steps(most, shared, out);
    }

    /// Gives up all that is held: the recording ends.
    pub(super) fn end(&mut self, limit: usize, shared: &mut Shared, out: &mut impl FnMut(&Vocabulary, Step<'_>)) {
        self.release(1, limit, 0, shared, out);
        self.tell_unpaired(shared);
    }

    /// Gives up half of what the windows hold; all if that is little.
    pub(super) fn release_half(&mut self, limit: usize, shared: &mut Shared, out: &mut impl FnMut(&Vocabulary, Step<'_>)) {
        let half = self.window.len().max(self.steps.len()) / 2;
        self.release(if half < FEW { 1 } else { half }, limit, usize::MAX, shared, out);
        self.window.shrink();
        self.steps.shrink();
    }

    fn release_steps(&mut self, most: usize, shared: &mut Shared, out: &mut impl FnMut(&Vocabulary, Step<'_>)) {
        if self.steps.len() < most {
            return;
        }
        if self.steps.is_undecided() {
            let context = &mut Context { recording: &self.name, units: &shared.vocabulary.units, diagnostics: &mut shared.diagnostics };
            self.steps.decide(context);
        }
        let Shared { vocabulary, diagnostics } = shared;
        let context = &mut Context { recording: &self.name, units: &vocabulary.units, diagnostics };
        while self.steps.len() >= most && self.steps.pop(context, |step| out(vocabulary, step)) {}
    }

    fn pair(&mut self, event: Event, shared: &mut Shared) {
        let context = &mut Context { recording: &self.name, units: &shared.vocabulary.units, diagnostics: &mut shared.diagnostics };
        if event.side == Side::Local {
            self.steps.local_event(LocalEvent { unit: event.unit, time: event.time }, context);
            return;
        }
        let Event { id, unit, peer, operation, side, .. } = event;
        if id != Id::NONE && self.repeats.has_seen((event.time, event.seq), (id, unit, peer, operation, side == Side::Send)) {
            let (code, message) = DUPLICATE;
            shared.diagnostics.add(code, message, || self.shown(&event, &shared.vocabulary));
            return;
        }
        match self.pairing.add(event) {
            Paired::Waits => {}
            Paired::Alone => self.note_unpaired(&event, shared),
            Paired::Message(send, receive) => {
                if send.id == Id::NONE {
                    let text = "without message ids, messages were paired first in, first out";
                    context.diagnostics.add("no_msg_id_fifo_assumed", text, || {
                        format!("{}: {} at {}", context.recording, context.units.names.name(receive.unit), receive.time)
                    });
                }
                let message = Message {
                    sender: send.unit,
                    receiver: receive.unit,
                    sent: Some(send.time),
                    received: receive.time,
                    operation: receive.operation.or(send.operation),
                };
                self.steps.message(message, receive.seq, 0, context);
            }
        }
    }

    fn note_unpaired(&mut self, event: &Event, shared: &Shared) {
        let example =
            (self.unpaired[usize::from(event.side == Side::Receive)].n < EXAMPLES_KEPT).then(|| self.shown(event, &shared.vocabulary));
        let unpaired = &mut self.unpaired[usize::from(event.side == Side::Receive)];
        unpaired.n += 1;
        unpaired.examples.extend(example);
        unpaired.first = Some(unpaired.first.map_or(event.key(), |first| first.min(event.key())));
    }

    /// Counts the ends that were given up, first those of which there was one first.
    fn tell_unpaired(&mut self, shared: &mut Shared) {
        let kinds =
            [("unpaired_send", "sends without a reception were dropped"), ("unpaired_receive", "receptions without a send were dropped")];
        let mut unpaired: Vec<_> = std::mem::take(&mut self.unpaired).into_iter().zip(kinds).collect();
        unpaired.sort_by_key(|(unpaired, _)| unpaired.first);
        for (Unpaired { n, examples, .. }, (code, message)) in unpaired {
            shared.diagnostics.add_times(code, message, n, examples);
        }
    }

    fn shown(&self, event: &Event, vocabulary: &Vocabulary) -> String {
        let operation = event.operation.map_or("", |operation| vocabulary.operations.name(operation));
        format!("{}: {} {operation} at {}", self.name, vocabulary.units.names.name(event.unit), event.time)
    }
}
