//! SAME: message traces to interactions by the analysis of interaction trees.
//!
//! Input: for each trace its messages `(A, B, t)` from unit A to unit B, received at `t`, in order of time; output:
//! [`Interactions`]. Source: Israr, Lau, Franks, Woodside, *Automatic generation of layered queuing software performance
//! models from commonly available traces*, WOSP 2005, section 4.
//!
//! A forest of occurrences grows with the messages. `live[X]` is the one occurrence of unit X that may still act; `B ⇒ A`
//! says that A is a strict descendant of B, both live (what lies between may be dead already: a *zombie*).
//!
//! For a message (A, B, t), with u = `live[A]` and v = `live[B]` (Part B of section 4.3):
//!
//! 1. *Not v ⇒ u*: without u, A gets a new occurrence, the root of a tree (an originator). B gets a new occurrence, a child
//!    of u by an arc labelled t; a former v becomes a zombie.
//! 2. *v ⇒ u*: the message closes a cycle v = n₀, n₁, …, u, in which each element is labelled with the time of its outgoing
//!    arc. Two elements are a synchronous interaction; more are a request of n₀ that n₁ … forwarded and u replied to. All
//!    but n₀ become zombies, the arcs of the cycle go, and so do occurrences left without arcs. (An n₀ that was itself
//!    invoked stays live: what it sends next is still the same occurrence's.)
//! 3. *Cleanup*, until nothing changes: a zombie root, a root with several children (all arcs but that to the child whose message
//!    was sent last), and a zombie leaf give their arcs up; each such arc is an asynchronous interaction.
//!
//! At the end of the trace every arc that is left is an asynchronous interaction.
//!
//! | generalisation | rule |
//! |---|---|
//! | local event of A | A runs: messages that it has sent so far are not waited for, and cannot be the first arc of a cycle |
//! | second phase | a unit that replied or forwarded and sends before it accepts anything else goes on with its last occurrence, in phase 2 |
//! | several traces | each starts afresh; what was found is joined by the units' names |
//! | two-point mode | the sender is bound when the message is sent, which also closes a cycle; the receiver when it is received. Equal to the above where both times are equal |
//!
//! Where this differs from the paper's text: an existing live receiver is never joined by an arc unless that closes a cycle
//! (section 4.3 over 4.1); forwarding records keep the order client, forwarders, replier (Part C names the ends the other
//! way round). A root may wait for the child that it sent to last, in the paper (IC) for the last one that is live: a task that
//! takes one request at a time can wait for nothing but its last message, and its receiver need not be live, where it handed that
//! on. With [`SecondPhase::Ignore`] it is as in the paper. *Self time* of an occurrence is the sum of its gaps from a reception
//! to the next sending.
//!
//! Memory is bounded: trees in which nothing can happen any more are handed over ([`Same`]) in batches, each with all of a
//! tree. Trees that grow beyond what can be held are cut, and counted (`occurrence_cut`, `deep_tree`).

mod arriving;
mod forest;
mod notes;
mod recordings;

use super::{
    ExtractOptions, SecondPhase, Summary, Timing,
    cores::on_all_cores,
    interactions::Interactions,
    steps::{has_steps, summed},
};
use crate::trace::{
    SourcesAre, StreamSource,
    same::{
        Arrivals, Context, LogReader, LogStep, MessageLog, ReadError, ReadOptions, Steps, Taker, Times, TraceLog, Vocabulary, What, Windows,
    },
};
use arriving::arriving;
use recordings::Recordings;

/// What takes what was found.
type Found<'f> = dyn FnMut(Interactions) + 'f;

/// How logs are read and analysed.
#[derive(Clone, Copy, Debug)]
pub struct SameOptions {
    /// How they are read.
    pub read: ReadOptions,
    /// Whether second phases are looked for.
    pub second_phase: SecondPhase,
    /// Occurrences that are held before complete trees are handed over, at the least (≥ 1).
    pub batch: usize,
}

impl SameOptions {
    /// What an extraction is asked for.
    pub fn of(options: &ExtractOptions) -> Self {
        let read = ReadOptions {
            bad_rows: options.bad_rows,
            sources_are: options.sources_are,
            limit_bytes: options.limit_bytes,
            times: options.timing.into(),
            windows: Windows::default(),
        };
        Self { read, second_phase: options.second_phase, batch: 1 << 13 }
    }
}

impl From<Timing> for Times {
    fn from(timing: Timing) -> Self {
        match timing {
            Timing::Auto => Self::Auto,
            Timing::Reception => Self::Reception,
            Timing::TwoPoint => Self::Both,
        }
    }
}

/// The state of an analysis: what is held of logs, and trees that are not complete.
#[derive(Debug)]
pub struct Same {
    reader: LogReader,
    recordings: Recordings,
}

impl Same {
    /// Nothing so far.
    pub fn new(options: &SameOptions) -> Self {
        Self { reader: LogReader::new(&options.read), recordings: Recordings::new(options.second_phase, options.batch) }
    }

    /// Reads logs to their ends and hands over what is complete: after [`SourcesAre::Scenarios`] all of them but the last
    /// batch.
    ///
    /// # Errors
    /// [`ReadError`], as of [`LogReader::read`].
    pub fn feed(&mut self, sources: Vec<StreamSource<'_>>, found: &mut Found<'_>) -> Result<(), ReadError> {
        let recordings = &mut self.recordings;
        self.reader.read(sources, &mut |names, step| recordings.take(names, step, found))
    }

    /// Joins what was read of other recordings, after what was read here: nothing goes on from the one to the other, so that
    /// what `later` still holds is complete.
    pub fn merge(&mut self, later: Self, found: &mut Found<'_>) {
        later.finish(found);
    }

    /// The end: what is left is complete.
    pub fn finish(self, found: &mut Found<'_>) {
        let Self { reader, mut recordings } = self;
        let (names, diagnostics) = reader.finish(&mut |names, step| recordings.take(names, step, found));
        recordings.finish(&names, diagnostics, found);
    }
}

/// Adds what logs show to a summary: scenarios on all cores, parts of one recording side by side.
///
/// # Errors
/// [`ReadError`] of the first source that cannot be read.
pub fn summarize(sources: Vec<StreamSource<'_>>, options: &ExtractOptions, summary: &mut Summary) -> Result<(), ReadError> {
    let same_options = SameOptions::of(options);
    if options.sources_are == SourcesAre::Parts || sources.len() < 2 {
        return in_turn(options.n_threads() > 1, &same_options, summary, |arrivals, take| arrivals.read(sources, take));
    }
    let apart = has_steps(sources.len(), options);
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of_one = |index: usize, source: StreamSource<'_>| {
        let mut summary = Summary::new(options.summary());
        in_turn(apart, &same_options, &mut summary, |arrivals, take| arrivals.read_one(source, &names, index, take))?;
        Ok::<Summary, ReadError>(summary)
    };
    if let Some(all) = on_all_cores(sources, options.n_threads(), of_one, Summary::merge)? {
        summary.merge(all);
    }
    Ok(())
}

/// Reads logs by `read`, finds the interactions in what is read, and sums these up; `apart`: each on a thread of its own.
fn in_turn(
    apart: bool,
    options: &SameOptions,
    summary: &mut Summary,
    read: impl FnOnce(&mut Arrivals, &mut Taker<'_>) -> Result<(), ReadError> + Send,
) -> Result<(), ReadError> {
    summed(apart, summary, |found| {
        let (mut reader, mut forests) = (LogReader::new(&options.read), Recordings::new(options.second_phase, options.batch));
        let mut grow = |names: &Vocabulary, step: LogStep<'_>| forests.take(names, step, found);
        let (arrivals, recordings) = reader.parts();
        arriving(apart, |take| read(arrivals, take), recordings, &mut grow)?;
        let (names, diagnostics) = reader.finish(&mut grow);
        forests.finish(&names, diagnostics, found);
        Ok(())
    })
}

/// Finds the interactions of every trace of a log.
pub fn find_interactions(log: MessageLog, timing: Timing, second_phase: SecondPhase) -> Interactions {
    let MessageLog { units, operations, scenarios, traces, mut diagnostics } = log;
    let names = Vocabulary { units, operations, scenarios };
    let mut recordings = Recordings::new(second_phase, usize::MAX);
    let mut all = Interactions::default();
    let mut found = |batch| all.merge(batch);
    for TraceLog { name, scenario, messages, local_events } in &traces {
        let mut take = |what: What<'_>| recordings.take(&names, LogStep { recording: 0, what }, &mut found);
        let mut steps = Steps::new(timing.into());
        let context = &mut Context { recording: name, units: &names.units, diagnostics: &mut diagnostics };
        messages.iter().for_each(|message| steps.message(*message, 0, 0, context));
        local_events.iter().for_each(|event| steps.local_event(*event, context));
        steps.decide(context);
        take(What::Begin { name, scenario: *scenario, continued: false });
        while steps.pop(context, |step| take(What::Step(step))) {}
        take(What::End);
    }
    recordings.finish(&names, diagnostics, &mut found);
    all
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
