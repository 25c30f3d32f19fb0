//! Logs that are read on one thread and analysed on another: what happens in their recordings, in batches.

use crate::trace::{
    diagnostics::Diagnostics,
    names::Names,
    same::{LocalEvent, LogStep, Message, Sink, Step, Vocabulary, What},
};

/// Steps of a batch.
const STEPS: usize = 1024;

/// What happens in a recording, of which the first number is, as [`LogStep`] says it.
#[derive(Debug)]
enum Happened {
    Begin(u32, Box<Begun>),
    Message(u32, Message),
    Send(u32, u32, Message),
    Receive(u32, u32, Message),
    Local(u32, LocalEvent),
    End(u32),
}

/// A recording that begins.
#[derive(Debug)]
struct Begun {
    name: Box<str>,
    scenario: u32,
    continued: bool,
}

/// What happens in recordings, in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Batch {
    steps: Vec<Happened>,
    names: NewNames,
}

/// Names that the batches before do not have, by set.
#[derive(Debug, Default)]
struct NewNames {
    units: Vec<Box<str>>,
    processes: Vec<Box<str>>,
    process_of: Vec<u32>,
    operations: Vec<Box<str>>,
    scenarios: Vec<Box<str>>,
}

/// Steps that are being read, until there are enough for a batch.
#[derive(Debug, Default)]
pub(super) struct Batches {
    steps: Vec<Happened>,
    /// Names that were sent: units, processes, operations, scenarios.
    n_sent: [usize; 4],
}

impl Batches {
    /// Sends all that `read` hands over; returns what it returns.
    pub(super) fn made<E>(
        read: impl FnOnce(&mut Sink<'_>) -> Result<(Vocabulary, Diagnostics), E>,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(Vocabulary, Diagnostics), E> {
        let mut batches = Self::default();
        let (names, diagnostics) = read(&mut |names, step| batches.add(names, step, send))?;
        batches.send(&names, send);
        Ok((names, diagnostics))
    }

    /// Adds what happens next; sends a batch when it is full.
    fn add(&mut self, names: &Vocabulary, step: LogStep<'_>, send: &mut dyn FnMut(Batch)) {
        let recording = u32::try_from(step.recording).expect("fewer than 2^32 recordings at once");
        self.steps.push(match step.what {
            What::Step(Step::Message(message)) => Happened::Message(recording, *message),
            What::Step(Step::Send(number, message)) => Happened::Send(recording, number, *message),
            What::Step(Step::Receive(number, message)) => Happened::Receive(recording, number, *message),
            What::Step(Step::Local(event)) => Happened::Local(recording, *event),
            What::Begin { name, scenario, continued } => {
                Happened::Begin(recording, Box::new(Begun { name: name.into(), scenario, continued }))
            }
            What::End => Happened::End(recording),
        });
        if self.steps.len() >= STEPS {
            self.send(names, send);
        }
    }

    /// Sends what there is.
    fn send(&mut self, names: &Vocabulary, send: &mut dyn FnMut(Batch)) {
        let Vocabulary { units, operations, scenarios } = names;
        let [n_units, n_processes, n_operations, n_scenarios] = self.n_sent;
        let since = |names: &Names, n_sent: usize| names.iter().skip(n_sent).map(Box::from).collect();
        let names = NewNames {
            units: since(&units.names, n_units),
            processes: since(&units.processes, n_processes),
            process_of: units.process_of[n_units..].to_vec(),
            operations: since(operations, n_operations),
            scenarios: since(scenarios, n_scenarios),
        };
        self.n_sent = [units.names.len(), units.processes.len(), operations.len(), scenarios.len()];
        send(Batch { steps: std::mem::replace(&mut self.steps, Vec::with_capacity(STEPS)), names });
    }
}

impl Batch {
    /// Adds its names to those of the batches before, then hands over what happened.
    #[inline]
    pub(super) fn replay(&self, known: &mut Vocabulary, take: &mut impl FnMut(&Vocabulary, LogStep<'_>)) {
        let add = |names: &mut Names, new: &[Box<str>]| {
            for name in new {
                names.intern(name);
            }
        };
        add(&mut known.units.names, &self.names.units);
        add(&mut known.units.processes, &self.names.processes);
        known.units.process_of.extend(&self.names.process_of);
        add(&mut known.operations, &self.names.operations);
        add(&mut known.scenarios, &self.names.scenarios);
        for happened in &self.steps {
            let (recording, what) = match happened {
                Happened::Begin(recording, begun) => {
                    (recording, What::Begin { name: &begun.name, scenario: begun.scenario, continued: begun.continued })
                }
                Happened::Message(recording, message) => (recording, What::Step(Step::Message(message))),
                Happened::Send(recording, number, message) => (recording, What::Step(Step::Send(*number, message))),
                Happened::Receive(recording, number, message) => (recording, What::Step(Step::Receive(*number, message))),
                Happened::Local(recording, event) => (recording, What::Step(Step::Local(event))),
                Happened::End(recording) => (recording, What::End),
            };
            take(known, LogStep { recording: *recording as usize, what });
        }
    }
}
