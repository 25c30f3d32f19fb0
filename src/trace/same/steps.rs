//! The steps of a recording in order of time.
//!
//! Input: messages and local events nearly in order; output: what takes effect when. By reception, a message is one step,
//! at the time of its reception. With both times it is two: its sending, and its reception. Of steps at one time those of
//! the message received first are first, and local events are last.
//!
//! | symbol | is |
//! |---|---|
//! | s, r | times of a message's sending and reception; s is taken to be r where it is not known, or later |
//! | W | most messages and events held: one is in its place if fewer than W came before it that belong after it |

use std::cmp::Ordering;

use super::{LocalEvent, Message, Time, Times, repeats::Repeats, window::Window};
use crate::trace::{diagnostics::Diagnostics, units::Units};

/// What is told of messages, or ends of messages, with an id that are alike in all.
pub(super) const DUPLICATE: (&str, &str) = ("duplicate_message", "messages, or ends of messages, that were recorded twice were taken once");

/// What oddities are told of.
pub(crate) struct Context<'c> {
    /// The name of the recording.
    pub(crate) recording: &'c str,
    pub(crate) units: &'c Units,
    pub(crate) diagnostics: &'c mut Diagnostics,
}

/// Something that takes effect in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'m> {
    /// A message, sent and received at once.
    Message(&'m Message),
    /// The sending of a message; the number stands for it until it is received, and for no other so long.
    Send(u32, &'m Message),
    /// The reception of the message of that number.
    Receive(u32, &'m Message),
    /// Something that a unit did on its own.
    Local(&'m LocalEvent),
}

/// What puts steps in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Time,
    is_local: bool,
    /// Reception of its message.
    received: Time,
    seq: u64,
    arrival: u64,
}

/// What has a [`Key`], of which the time is at hand.
trait Keyed {
    fn time(&self) -> Time;
    fn key(&self) -> Key;

    fn order(&self, other: &impl Keyed) -> Ordering {
        self.time().cmp(&other.time()).then_with(|| self.key().cmp(&other.key()))
    }
}

/// A message or local event that is held back.
#[derive(Clone, Copy, Debug)]
struct Held {
    time: Time,
    seq: u64,
    arrival: u64,
    /// What tells the id of a message from others; 0 without one.
    mark: u32,
    what: HeldBack,
}

#[derive(Clone, Copy, Debug)]
enum HeldBack {
    Message(Message),
    Local(LocalEvent),
}

impl Keyed for Held {
    fn time(&self) -> Time {
        self.time
    }

    fn key(&self) -> Key {
        let (is_local, received) = match &self.what {
            HeldBack::Message(message) => (false, message.received),
            HeldBack::Local(event) => (true, event.time),
        };
        Key { time: self.time, is_local, received, seq: self.seq, arrival: self.arrival }
    }
}

/// A message that was sent, until it is received.
#[derive(Clone, Copy, Debug)]
struct OnItsWay {
    message: Message,
    number: u32,
    seq: u64,
    arrival: u64,
}

impl Keyed for OnItsWay {
    fn time(&self) -> Time {
        self.message.received
    }

    fn key(&self) -> Key {
        Key { time: self.time(), is_local: false, received: self.time(), seq: self.seq, arrival: self.arrival }
    }
}

/// What is put in order by its key.
#[derive(Clone, Copy, Debug)]
struct ByKey<T>(T);

impl<T: Keyed> PartialEq for ByKey<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Keyed> Eq for ByKey<T> {}

impl<T: Keyed> PartialOrd for ByKey<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Keyed> Ord for ByKey<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

/// What is held back of one recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    times: Times,
    /// Until it is decided: whether a message does not say when it was sent, and the first that was received before it was sent.
    lacks_sending: bool,
    skewed: Option<Held>,
    /// Messages, by their sending where that counts, and local events.
    window: Window<ByKey<Held>>,
    /// By their reception.
    on_their_way: Window<ByKey<OnItsWay>>,
    /// Numbers of messages that may be given out again, and how many there are.
    free: Vec<u32>,
    n_numbers: u32,
    n_arrived: u64,
    last_received: Option<Time>,
    last_step: Option<Key>,
    /// Messages with an id.
    repeats: Repeats<(u32, Message)>,
    noted_skew: bool,
}

impl Steps {
    /// Nothing so far.
    pub(crate) fn new(times: Times) -> Self {
        Self { times, ..Self::default() }
    }

    /// How many messages and events are held.
    pub(crate) fn len(&self) -> usize {
        self.window.len() + self.on_their_way.len()
    }

    /// Takes a message; one that a unit sent to itself is counted and dropped. Where `mark` is not 0 it tells the message's id from
    /// others, and of messages that are alike in all one is taken.
    pub(crate) fn message(&mut self, message: Message, seq: u64, mark: u32, context: &mut Context<'_>) {
        if let Some(last) = self.last_received.replace(message.received).filter(|last| message.received < *last) {
            let text = "messages were not in order of their time and have been sorted";
            context.diagnostics.add("unordered_time", text, || format!("{}: {} after {last}", context.recording, message.received));
        }
        if message.sender == message.receiver {
            context.diagnostics.add("self_message", "messages of a task to itself were dropped", || {
                at_reception(&message, context.recording, context.units)
            });
            return;
        }
        self.hold(Held { time: message.received, seq, arrival: self.n_arrived, mark, what: HeldBack::Message(message) }, context);
    }

    /// Takes a local event.
    pub(crate) fn local_event(&mut self, event: LocalEvent, context: &mut Context<'_>) {
        self.hold(Held { time: event.time, seq: 0, arrival: self.n_arrived, mark: 0, what: HeldBack::Local(event) }, context);
    }

    /// Decides what is to be decided: to be called before the first [`Steps::pop`].
    pub(crate) fn decide(&mut self, context: &mut Context<'_>) {
        if self.times != Times::Auto {
            return;
        }
        let skewed = self.skewed.take();
        if let Some(Held { what: HeldBack::Message(message), .. }) = &skewed {
            self.note_skew(message, context);
        }
        if self.lacks_sending || skewed.is_some() {
            self.times = Times::Reception;
            return;
        }
        self.times = Times::Both;
        self.window.move_all(|ByKey(held)| {
            if let HeldBack::Message(Message { sent: Some(sent), .. }) = held.what {
                held.time = sent;
            }
        });
    }

    /// Hands over the next step, whatever may come later, or drops a repetition; whether there is one of either (none as long as [`Steps::decide`] is due).
    pub(crate) fn pop(&mut self, context: &mut Context<'_>, out: impl FnOnce(Step<'_>)) -> bool {
        match (self.window.peek(), self.on_their_way.peek()) {
            (None, None) => false,
            _ if self.is_undecided() => false,
            (Some(ByKey(next)), Some(ByKey(reception))) if next.order(reception).is_le() => self.pop_held(context, out),
            (Some(_), None) => self.pop_held(context, out),
            _ => self.pop_reception(out),
        }
    }

    #[inline]
    fn pop_held(&mut self, context: &mut Context<'_>, out: impl FnOnce(Step<'_>)) -> bool {
        let Some(ByKey(next)) = self.window.peek() else { return false };
        if let (1.., HeldBack::Message(message)) = (next.mark, &next.what)
            && self.repeats.has_seen((next.time, next.seq), (next.mark, *message))
        {
            let (code, text) = DUPLICATE;
            context.diagnostics.add(code, text, || at_reception(message, context.recording, context.units));
            self.window.pop();
            return true;
        }
        note_step(&mut self.last_step, next);
        match &next.what {
            HeldBack::Message(message) if self.times == Times::Both => {
                let number = self.free.pop().unwrap_or_else(|| {
                    self.n_numbers += 1;
                    self.n_numbers - 1
                });
                out(Step::Send(number, message));
                self.on_their_way.push(ByKey(OnItsWay { message: *message, number, seq: next.seq, arrival: next.arrival }));
            }
            HeldBack::Message(message) => out(Step::Message(message)),
            HeldBack::Local(event) => out(Step::Local(event)),
        }
        self.window.pop();
        true
    }

    #[inline]
    fn pop_reception(&mut self, out: impl FnOnce(Step<'_>)) -> bool {
        let Some(ByKey(next)) = self.on_their_way.peek() else { return false };
        note_step(&mut self.last_step, next);
        self.free.push(next.number);
        out(Step::Receive(next.number, &next.message));
        self.on_their_way.pop();
        true
    }

    /// Whether [`Steps::decide`] is due.
    pub(crate) fn is_undecided(&self) -> bool {
        self.times == Times::Auto
    }

    /// Gives back memory that is not used.
    pub(crate) fn shrink(&mut self) {
        self.window.shrink();
        self.on_their_way.shrink();
    }

    fn hold(&mut self, held: Held, context: &mut Context<'_>) {
        self.n_arrived += 1;
        if self.is_undecided() {
            self.look_at(&held);
            self.window.push(ByKey(held));
            return;
        }
        if let HeldBack::Message(message) = &held.what {
            self.note_contradiction(message, context);
        }
        self.put(held, context);
    }

    /// What a message says of the times that can be used.
    fn look_at(&mut self, held: &Held) {
        let HeldBack::Message(message) = &held.what else { return };
        self.lacks_sending |= message.sent.is_none();
        let is_skewed = message.sent.is_some_and(|sent| sent > message.received);
        if is_skewed && self.skewed.is_none_or(|first| held.key() < first.key()) {
            self.skewed = Some(*held);
        }
    }

    /// Puts a message or event in its place.
    fn put(&mut self, mut held: Held, context: &mut Context<'_>) {
        if let (Times::Both, HeldBack::Message(message)) = (self.times, &held.what) {
            let sent = message.sent.unwrap_or(message.received);
            if sent > message.received {
                let text = "messages that were received before they were sent were taken as sent when they were received";
                context.diagnostics.add("sending_time_clamped", text, || at_reception(message, context.recording, context.units));
            }
            held.time = sent.min(message.received);
        }
        if self.last_step.is_some_and(|last| held.time <= last.time && held.key() < last) {
            let text = "messages and events came later than the window allows, and were taken when they came";
            context.diagnostics.add("late_step", text, || format!("{}: at {}", context.recording, held.time));
        }
        self.window.push(ByKey(held));
    }

    /// What comes after the decision may differ from what it was made on.
    fn note_contradiction(&mut self, message: &Message, context: &mut Context<'_>) {
        if message.sent.is_some_and(|sent| sent > message.received) {
            self.note_skew(message, context);
        } else if self.times == Times::Both && message.sent.is_none() {
            let text = "messages do not say when they were sent, unlike others: taken as received at once";
            context.diagnostics.add("sending_time_missing", text, || at_reception(message, context.recording, context.units));
        }
    }

    /// Clocks that disagree are told once in a recording.
    fn note_skew(&mut self, message: &Message, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.noted_skew, true) {
            let text = "messages were received before they were sent: the clocks of the log disagree";
            context.diagnostics.add("clock_skew", text, || format!("{}: received at {}", context.recording, message.received));
        }
    }
}

/// Remembers the last step in order.
fn note_step(last: &mut Option<Key>, next: &impl Keyed) {
    if last.is_none_or(|last| last.time < next.time() || last < next.key()) {
        *last = Some(next.key());
    }
}

fn at_reception(message: &Message, recording: &str, units: &Units) -> String {
    format!("{recording}: {} at {}", units.names.name(message.sender), message.received)
}
