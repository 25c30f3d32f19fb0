//! From rows to what arrives in recordings: times, numbers of names, and each name once, before it is first used.
//!
//! What arrives can be taken where it is read, or on another thread: it says all that the recordings have to know.

use std::{collections::BTreeSet, hash::BuildHasher};

use foldhash::fast::RandomState;

use super::{
    BadRow, BadRows, Message, ReadError, ReadOptions, Source, SourcesAre, StreamSource,
    pairing::{Event, Id},
    rows::{Row, Rows, Unit, What},
};
use crate::trace::{hashed::alike, names::Names, recent::Recent, units::Units};

/// Rows of one source; the place of a row is that of its source, times this, plus its number.
const MOST_ROWS: u64 = 1 << 44;

/// What comes next in a log; `T` are its texts.
#[derive(Clone, Debug)]
pub(crate) enum Arrival<T> {
    /// Sources begin whose recordings are called so.
    Begin(Label),
    /// The next unit has this name.
    Unit { process: T, thread: T },
    /// The next process that is not that of a unit has this name.
    Process(T),
    /// The next message type has this name.
    Operation(T),
    /// Messages and events from here on are of another recording.
    Recording { key: T, scenario: T },
    /// A message, its `seq`, and what tells its id from others (0 without one).
    Message(Message, u64, u32),
    /// An end of a message, or a local event.
    Event(Event),
    /// Something is odd with the source.
    Odd { code: &'static str, message: &'static str, example: T },
    /// The sources are over.
    End,
}

impl Arrival<&str> {
    /// The same with texts of its own.
    #[inline]
    pub(crate) fn kept(&self) -> Arrival<Box<str>> {
        match *self {
            Self::Message(message, seq, mark) => Arrival::Message(message, seq, mark),
            Self::Event(event) => Arrival::Event(event),
            Self::Begin(ref label) => Arrival::Begin(label.clone()),
            Self::Unit { process, thread } => Arrival::Unit { process: process.into(), thread: thread.into() },
            Self::Process(name) => Arrival::Process(name.into()),
            Self::Operation(name) => Arrival::Operation(name.into()),
            Self::Recording { key, scenario } => Arrival::Recording { key: key.into(), scenario: scenario.into() },
            Self::Odd { code, message, example } => Arrival::Odd { code, message, example: example.into() },
            Self::End => Arrival::End,
        }
    }
}

/// What takes what arrives.
pub(crate) type Taker<'t> = dyn FnMut(&Arrival<&str>) + 't;

/// What recordings of a source are called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// The source's name without folders and extension.
    pub(super) stem: String,
    /// The same, told apart from other sources.
    pub(super) unique: String,
    /// Whether there are other sources.
    pub(super) is_one_of_several: bool,
}

/// What was read of logs so far: the names.
#[derive(Debug)]
pub(crate) struct Arrivals {
    options: ReadOptions,
    units: Units,
    operations: Names,
    recent_units: Recent,
    recent_operations: Recent,
    /// The recording of the last row, by its key and scenario.
    last: Option<(String, String)>,
    hasher: RandomState,
}

impl Arrivals {
    /// Nothing so far.
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            options: *options,
            units: Units::default(),
            operations: Names::default(),
            recent_units: Recent::default(),
            recent_operations: Recent::default(),
            last: None,
            hasher: RandomState::default(),
        }
    }

    /// Reads sources as [`super::LogReader::read`] does.
    pub(crate) fn read(&mut self, sources: Vec<StreamSource<'_>>, take: &mut Taker<'_>) -> Result<(), ReadError> {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let labels = labels(&names);
        match self.options.sources_are {
            SourcesAre::Parts => {
                let label = labels.into_iter().next().map(|label| Label { is_one_of_several: false, ..label });
                label.map_or(Ok(()), |label| self.read_parts(sources, label, take))
            }
            SourcesAre::Scenarios => {
                sources.into_iter().zip(labels).try_for_each(|(source, label)| self.read_scenario(source, label, take))
            }
        }
    }

    /// Reads source number `index` of those called `names`, as one of them.
    pub(crate) fn read_one(
        &mut self,
        source: StreamSource<'_>,
        names: &[&str],
        index: usize,
        take: &mut Taker<'_>,
    ) -> Result<(), ReadError> {
        match labels(names).into_iter().nth(index) {
            Some(label) => self.read_scenario(source, label, take),
            None => Ok(()),
        }
    }

    fn read_scenario(&mut self, source: StreamSource<'_>, label: Label, take: &mut Taker<'_>) -> Result<(), ReadError> {
        self.begin(label, take);
        let mut rows = self.open(source, take)?;
        while rows.advance()? {
            self.take(&rows, rows.number(), take)?;
        }
        take(&Arrival::End);
        Ok(())
    }

    /// Of the rows that the sources have next, takes the earliest; of equal ones that of the first source.
    fn read_parts(&mut self, sources: Vec<StreamSource<'_>>, label: Label, take: &mut Taker<'_>) -> Result<(), ReadError> {
        self.begin(label, take);
        let mut parts = Vec::with_capacity(sources.len());
        let mut next = BTreeSet::new();
        for (index, source) in sources.into_iter().enumerate() {
            let mut rows = self.open(source, take)?;
            if rows.advance()? {
                next.insert((rows.time(), index));
            }
            parts.push(rows);
        }
        while let Some((_, index)) = next.pop_first() {
            let rows = &mut parts[index];
            self.take(rows, index as u64 * MOST_ROWS + rows.number(), take)?;
            if rows.advance()? {
                next.insert((rows.time(), index));
            }
        }
        take(&Arrival::End);
        Ok(())
    }

    fn begin(&mut self, label: Label, take: &mut Taker<'_>) {
        self.last = None;
        take(&Arrival::Begin(label));
    }

    fn open<'s>(&mut self, source: StreamSource<'s>, take: &mut Taker<'_>) -> Result<Rows<'s>, ReadError> {
        let rows = Rows::open(&source.name, source.reader, self.options.limit_bytes)?;
        for (column, error) in rows.unknown_columns() {
            if self.options.bad_rows == BadRows::Reject {
                return Err(error);
            }
            let (code, message) = ("unknown_column", "columns that are not known were ignored");
            take(&Arrival::Odd { code, message, example: &format!("{}: {column}", source.name) });
        }
        Ok(rows)
    }

    fn take(&mut self, rows: &Rows<'_>, place: u64, take: &mut Taker<'_>) -> Result<(), BadRow> {
        match rows.row() {
            Ok(row) => self.row(&row, place, take),
            Err(bad) if self.options.bad_rows == BadRows::Reject => return Err(bad),
            Err(bad) => {
                let (code, message) = ("bad_row", "rows that cannot be read were skipped");
                take(&Arrival::Odd { code, message, example: &bad.to_string() });
            }
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>, place: u64, take: &mut Taker<'_>) {
        self.recording(if row.trace.is_empty() { row.scenario } else { row.trace }, row.scenario, take);
        let operation = (!row.message_type.is_empty()).then(|| self.operation(row.message_type, take));
        match row.what {
            What::Message { sender, receiver, sent } => {
                let (sender, receiver) = (self.unit(sender, take), self.unit(receiver, take));
                let mark = if row.message_id.is_empty() { 0 } else { (self.hasher.hash_one(row.message_id) >> 32) as u32 | 1 };
                take(&Arrival::Message(Message { sender, receiver, sent, received: row.time, operation }, row.seq, mark));
            }
            What::Event { side, unit, peer } => {
                let unit = self.unit(unit, take);
                let process = self.units.process_of[unit as usize];
                let peer = (!peer.is_empty()).then(|| self.process(peer, take));
                let id = Id::of(row.message_id);
                let Row { time, seq, .. } = *row;
                take(&Arrival::Event(Event { time, seq, arrival: place, id, unit, process, peer, operation, side }));
            }
        }
    }

    /// Tells when the recording is another than that of the last row.
    #[inline]
    fn recording(&mut self, key: &[u8], scenario: &[u8], take: &mut Taker<'_>) {
        if let Some((last_key, last_scenario)) = &self.last
            && alike(last_key.as_bytes(), key)
            && alike(last_scenario.as_bytes(), scenario)
        {
            return;
        }
        let (key, scenario) = (text(key), text(scenario));
        let (last_key, last_scenario) = self.last.get_or_insert_default();
        key.clone_into(last_key);
        scenario.clone_into(last_scenario);
        take(&Arrival::Recording { key, scenario });
    }

    fn unit(&mut self, unit: Unit<'_>, take: &mut Taker<'_>) -> u32 {
        let Unit { process, thread } = unit;
        let units = &mut self.units;
        self.recent_units.number_of_bytes(process, thread, || {
            let (process, thread) = (text(process), text(thread));
            let n_known = units.names.len();
            let number = units.intern(process, thread);
            if units.names.len() > n_known {
                take(&Arrival::Unit { process, thread });
            }
            number
        })
    }

    fn operation(&mut self, name: &[u8], take: &mut Taker<'_>) -> u32 {
        let operations = &mut self.operations;
        self.recent_operations.number_of_bytes(name, b"", || {
            let name = text(name);
            let n_known = operations.len();
            let number = operations.intern(name);
            if operations.len() > n_known {
                take(&Arrival::Operation(name));
            }
            number
        })
    }

    fn process(&mut self, name: &[u8], take: &mut Taker<'_>) -> u32 {
        let name = text(name);
        let n_known = self.units.processes.len();
        let number = self.units.processes.intern(name);
        if self.units.processes.len() > n_known {
            take(&Arrival::Process(name));
        }
        number
    }
}

/// A field of a row: rows see to it that they are text.
fn text(field: &[u8]) -> &str {
    std::str::from_utf8(field).unwrap_or_default()
}

/// What the recordings of each source are called.
fn labels(names: &[&str]) -> Vec<Label> {
    let mut taken = Names::default();
    let label = |name: &&str| {
        let stem = Source { name, bytes: &[] }.stem();
        let mut unique = stem.to_owned();
        for n in 2.. {
            if taken.get(&unique).is_none() {
                break;
            }
            unique = format!("{stem}#{n}");
        }
        taken.intern(&unique);
        Label { stem: stem.to_owned(), unique, is_one_of_several: names.len() > 1 }
    };
    names.iter().map(label).collect()
}
