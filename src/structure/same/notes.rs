//! What is odd in interaction trees, counted until the names are at hand.

use crate::trace::{Time, diagnostics::Diagnostics, names::Names};

/// Examples kept of one oddity.
const EXAMPLES_KEPT: usize = 5;

/// A kind of oddity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    OriginatorSplit,
    JoinNotDetected,
    ZombieOnPending,
    CallbackAsReply,
    RootFanoutAsync,
    OccurrenceCut,
    DeepTree,
}

impl Oddity {
    fn code_and_message(self) -> (&'static str, &'static str) {
        match self {
            Self::OriginatorSplit => ("originator_split", "tasks began several interactions: each counts as one cycle of a customer"),
            Self::JoinNotDetected => {
                ("join_not_detected", "branches of one flow met in a task; that they join is not seen, they are kept as parallel paths")
            }
            Self::ZombieOnPending => (
                "zombie_on_pending",
                "tasks accepted a request while the client of the former one was unanswered: \
                 are the times those of arrival rather than acceptance, or threads not told apart?",
            ),
            Self::CallbackAsReply => {
                ("callback_as_reply", "messages of a type that their receiver also takes as a request were read as replies")
            }
            Self::RootFanoutAsync => (
                "root_fanout_async",
                "tasks that nothing requested sent to several others at once: all but the last are read as asynchronous",
            ),
            Self::OccurrenceCut => (
                "occurrence_cut",
                "interaction trees grew so large that occurrences in them were cut: what they did after counts as begun anew",
            ),
            Self::DeepTree => (
                "deep_tree",
                "interaction trees grew so deep that their upper parts were given up: the messages there are read as asynchronous",
            ),
        }
    }
}

/// Where an oddity was met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    Unit(u32),
    /// Unit, and the number of its occurrence.
    Occurrence(u32, u32),
    /// Unit, and a reception by it.
    Reception(u32, Time),
}

/// One kind, as far as it was met.
#[derive(Clone, Debug)]
struct Note {
    oddity: Oddity,
    n: u64,
    examples: Vec<Place>,
}

/// Oddities by kind, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    /// Counts one.
    pub(super) fn add(&mut self, oddity: Oddity, place: Place) {
        let position = self.0.iter().position(|note| note.oddity == oddity).unwrap_or_else(|| {
            self.0.push(Note { oddity, n: 0, examples: Vec::new() });
            self.0.len() - 1
        });
        let note = &mut self.0[position];
        note.n += 1;
        if note.examples.len() < EXAMPLES_KEPT {
            note.examples.push(place);
        }
    }

    /// Puts them into words and forgets them.
    pub(super) fn tell(&mut self, recording: &str, units: &Names, diagnostics: &mut Diagnostics) {
        for note in self.0.drain(..) {
            let (code, message) = note.oddity.code_and_message();
            let shown = note.examples.iter().map(|place| match *place {
                Place::Unit(unit) => format!("{recording}: {}", units.name(unit)),
                Place::Occurrence(unit, number) => format!("{recording}: {}.{number}", units.name(unit)),
                Place::Reception(unit, time) => format!("{recording}: to {} at {time}", units.name(unit)),
            });
            diagnostics.add_times(code, message, note.n, shown);
        }
    }
}
