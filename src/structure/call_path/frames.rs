//! Records of one call path to frames: the parse of a stack (Brosig et al. 2011, section II.A).
//!
//! An entry pushes a frame, an exit pops the one that matches. An exit with no match is dropped (`orphan_exit`); frames above
//! a match, and frames left at the end, are *truncated*. Whole executions are nested by order index and stack size.
//! Records are in order of their ordering keys; where some have none, in order of time, then as they came. One with the ordering key of the
//! one before, and alike in all else, is that one again, and dropped (`duplicate_record`).

use crate::trace::hashed::HashMap;

use super::{
    live::{NONE, OwnedKey, Params, Record, What},
    summary::RecordCounts,
};
use crate::trace::call_path::Action;

/// What a frame is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FrameKind {
    /// An execution of a service.
    Service,
    /// A call of a service that left no records of its own; the time of a call without return is not known.
    Uninstrumented { timed: bool },
    /// A message that was sent.
    Send { message: Option<Box<OwnedKey>> },
    /// The beginning of another transaction.
    Fork { transaction: u32, waits: bool },
    /// An execution that other records tell: nothing but time of its caller in which that waits.
    Elsewhere,
    /// A call that turned out to be an instrumented service: nothing.
    Gone,
}

/// A frame of a call path.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) location: u32,
    /// The frame that it is in; smaller than its own number.
    pub(super) parent: u32,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// When the call and the return around it were, where the caller's side says so.
    pub(super) call_ns: Option<(i64, i64)>,
    pub(super) server: u32,
    pub(super) thread: u32,
    pub(super) action: Option<Action>,
    pub(super) params: Params,
    /// Some records of it are missing.
    pub(super) truncated: bool,
}

/// A call path.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// Its frames, parents before children, in order of entry.
    pub(super) frames: Vec<Frame>,
    /// The message whose reception began it, with its destination.
    pub(super) received: Option<(u32, Option<Box<OwnedKey>>)>,
    /// Where its records went.
    pub(super) records: RecordCounts,
    /// Exits without an entry.
    pub(super) n_orphan_exits: u64,
    /// Returns without a call.
    pub(super) n_orphan_returns: u64,
    /// Frames without an exit.
    pub(super) n_truncated: u64,
    /// Executions that order indices ask for, but that are not there.
    pub(super) n_missing: u64,
    /// Executions with an order index that another has.
    pub(super) n_duplicates: u64,
    /// Records that are there twice.
    pub(super) n_doubled: u64,
    /// Executions that are nested deeper than the one around them and none that is missing can tell.
    pub(super) n_too_deep: u64,
    /// Frames that are not inside of their parents by the clock.
    pub(super) n_outside: u64,
    /// Frames that end before they begin.
    pub(super) n_backwards: u64,
}

impl Path {
    /// Whether records of it are missing, beside those of what exits without an entry are of.
    pub(super) fn is_partial(&self) -> bool {
        self.n_truncated + self.n_missing > 0
    }

    /// Parses the records of one transaction; `place` is where it runs, unless its records say so. The records may be left in
    /// another order.
    pub(super) fn parse(records: &mut [Record], place: (u32, u32)) -> Self {
        let is_execution = |record: &&Record| matches!(record.what, What::Execution { .. });
        let executions = records.iter().filter(is_execution).count();
        // Of entries and exits two are a frame.
        let n_frames = executions + (records.len() - executions).div_ceil(2);
        let mut path = Self { frames: Vec::with_capacity(n_frames), ..Self::default() };
        if executions == records.len() {
            path.nest(records.iter(), place);
            return path;
        }
        sort(records);
        if executions > 0 {
            path.nest(records.iter().filter(is_execution), place);
        }
        let rest = records.iter().filter(|record| !is_execution(record));
        let end_ns = rest.clone().map(|record| record.time_ns).max().unwrap_or_default();
        let mut parser = Parser { path, stack: Vec::new(), n_open: HashMap::default(), place };
        let mut before: Option<&Record> = None;
        for record in rest {
            match before.is_some_and(|before| before.is_again(record)) {
                true => parser.path.n_doubled += 1,
                false => parser.record(record),
            }
            before = Some(record);
        }
        parser.path.records.duplicates += parser.path.n_doubled;
        parser.pop_down_to(0, end_ns);
        parser.path.check_times();
        parser.path
    }

    /// Counts frames whose times are not possible: of two servers, whose clocks may differ, only how long they took is compared.
    fn check_times(&mut self) {
        let lasts = |frame: &Frame| frame.end_ns.saturating_sub(frame.start_ns);
        for frame in self.frames.iter().filter(|frame| frame.kind == FrameKind::Service && !frame.truncated) {
            if lasts(frame) < 0 {
                self.n_backwards += 1;
                continue;
            }
            let Some(parent) = self.frames.get(frame.parent as usize).filter(|parent| !parent.truncated && lasts(parent) >= 0) else {
                continue;
            };
            let is_beside = frame.server == parent.server && (frame.start_ns < parent.start_ns || frame.end_ns > parent.end_ns);
            self.n_outside += u64::from(is_beside || lasts(frame) > lasts(parent));
        }
    }

    /// Frames of whole executions.
    fn nest<'r>(&mut self, records: impl Iterator<Item = &'r Record> + Clone, place: (u32, u32)) {
        let n_records = records.clone().count();
        let executions = by_order_index(records, n_records);
        self.n_duplicates = (n_records - executions.len()) as u64;
        self.records.duplicates = self.n_duplicates;
        self.records.executions = executions.len() as u64;
        // Frames that are open, with their depths and order indices.
        let mut open: Vec<(u32, u32, u32)> = Vec::new();
        let mut next_index = 0;
        for record in executions {
            let What::Execution { location, until_ns, order_index, depth, is_elsewhere } = record.what else { continue };
            let n_missing = order_index - next_index;
            self.n_missing += u64::from(n_missing);
            let number = self.frames.len() as u32;
            self.close(&mut open, depth, (number, order_index));
            next_index = order_index.saturating_add(1);
            let parent = open.last().map_or(NONE, |(frame, ..)| *frame);
            let deepest = open.last().map_or(0, |(_, depth, _)| depth.saturating_add(1)).saturating_add(n_missing);
            self.n_too_deep += u64::from(depth > deepest);
            if let Some(parent) = self.frames.get(parent as usize) {
                self.n_outside += u64::from(record.time_ns < parent.start_ns || until_ns > parent.end_ns);
            }
            open.push((number, depth, order_index));
            self.frames.push(Frame {
                kind: if is_elsewhere { FrameKind::Elsewhere } else { FrameKind::Service },
                location,
                parent,
                start_ns: record.time_ns,
                end_ns: until_ns,
                call_ns: None,
                server: if record.server == NONE { place.0 } else { record.server },
                thread: if record.thread == NONE { place.1 } else { record.thread },
                action: None,
                params: None,
                truncated: false,
            });
        }
        let n_frames = self.frames.len() as u32;
        self.close(&mut open, 0, (n_frames, next_index));
    }

    /// Closes executions that are not around one of `depth`; those between whose order indices there are too few frames are
    /// truncated. (Counted are the executions that are missing, not these.)
    fn close(&mut self, open: &mut Vec<(u32, u32, u32)>, depth: u32, (end, end_index): (u32, u32)) {
        while let Some((frame, _, index)) = open.pop_if(|(_, open_depth, _)| *open_depth >= depth) {
            self.frames[frame as usize].truncated = end - frame != end_index - index;
        }
    }
}

/// Executions by their order indices; of several with one index the first.
fn by_order_index<'r>(records: impl Iterator<Item = &'r Record> + Clone, n_records: usize) -> Vec<&'r Record> {
    let index_of = |record: &Record| match record.what {
        What::Execution { order_index, .. } => order_index,
        _ => 0,
    };
    let n_places = records.clone().map(index_of).max().map_or(0, |last| last as usize + 1);
    // Where few are missing, each has its place.
    if n_places <= 4 * n_records {
        let mut places: Vec<Option<&Record>> = vec![None; n_places];
        for record in records {
            let place = &mut places[index_of(record) as usize];
            if place.is_none_or(|known| record.number < known.number) {
                *place = Some(record);
            }
        }
        return places.into_iter().flatten().collect();
    }
    let mut executions: Vec<&Record> = records.collect();
    executions.sort_by_key(|record| (index_of(record), record.number));
    executions.dedup_by_key(|record| index_of(record));
    executions
}

fn sort(records: &mut [Record]) {
    if records.iter().all(|record| record.order != u64::MAX) {
        records.sort_by_key(|record| (record.order, record.time_ns, record.number));
    } else if records.iter().all(|record| record.order == u64::MAX) {
        records.sort_by_key(|record| (record.time_ns, record.number));
    } else {
        records.sort_by_key(|record| (record.time_ns, record.order, record.number));
    }
}

/// Open frames up to which they are looked through one by one.
const FEW: usize = 32;

struct Parser {
    path: Path,
    /// Frames that are open, each with the innermost execution around it (itself, if it is one).
    stack: Vec<(u32, u32)>,
    /// How many executions and calls of each service are open, if there are more than a few.
    n_open: HashMap<(u32, bool), u32>,
    place: (u32, u32),
}

impl Parser {
    fn record(&mut self, record: &Record) {
        self.drop_instantaneous_call(record);
        match record.what {
            What::Entry { location, action, ref params } => {
                let params = params.clone();
                self.enter(record, location, action, params);
            }
            What::Exit { location } => self.exit(location, record.time_ns),
            What::Call { location, returns } => {
                let frame = self.push(record, FrameKind::Uninstrumented { timed: returns }, location);
                self.path.records.calls += 1;
                self.open(frame, false);
            }
            What::Return { location } => self.return_from(location, record.time_ns),
            What::Send { location, ref message } => {
                let message = message.clone();
                self.path.records.messages += 1;
                self.push(record, FrameKind::Send { message }, location);
            }
            What::Receive { location, ref message } => {
                self.path.records.messages += 1;
                if self.path.received.is_none() {
                    self.path.received = Some((location, message.clone()));
                }
            }
            What::Fork { transaction, waits } => {
                self.push(record, FrameKind::Fork { transaction, waits }, NONE);
            }
            What::Execution { .. } => {}
        }
    }

    /// Puts a frame on the stack.
    fn open(&mut self, frame: u32, is_execution: bool) {
        let execution = if is_execution { frame } else { self.path.frames[frame as usize].parent };
        self.stack.push((frame, execution));
        let from = match self.stack.len() {
            0..=FEW => return,
            n_open if n_open == FEW + 1 => 0,
            n_open => n_open - 1,
        };
        for (frame, execution) in &self.stack[from..] {
            *self.n_open.entry((self.path.frames[*frame as usize].location, frame == execution)).or_insert(0) += 1;
        }
    }

    /// Takes the topmost frame off the stack.
    fn close(&mut self) -> Option<u32> {
        let (frame, execution) = self.stack.pop()?;
        match self.stack.len() {
            0..FEW => {}
            FEW => self.n_open.clear(),
            _ => {
                let open = self.n_open.get_mut(&(self.path.frames[frame as usize].location, frame == execution));
                open.into_iter().for_each(|n| *n -= 1);
            }
        }
        Some(frame)
    }

    /// How deep in the stack the innermost execution, or call, of a service is.
    fn find(&self, location: u32, is_execution: bool) -> Option<usize> {
        if self.stack.len() > FEW {
            self.n_open.get(&(location, is_execution)).filter(|n| **n > 0)?;
        }
        let found = |(frame, execution): &(u32, u32)| {
            (frame == execution) == is_execution && self.path.frames[*frame as usize].location == location
        };
        self.stack.iter().rposition(found)
    }

    /// A call without a return is over with the next record, unless that is the entry of what was called.
    fn drop_instantaneous_call(&mut self, next: &Record) {
        let Some((site, _)) = self.stack.last().copied() else { return };
        let site = &mut self.path.frames[site as usize];
        if site.kind != (FrameKind::Uninstrumented { timed: false }) {
            return;
        }
        if matches!(next.what, What::Entry { location, .. } if location == site.location) {
            site.kind = FrameKind::Gone;
        }
        self.close();
    }

    fn enter(&mut self, record: &Record, location: u32, action: Option<Action>, params: Params) {
        if let Some((site, _)) = self.stack.last().copied() {
            let site = &mut self.path.frames[site as usize];
            if let FrameKind::Uninstrumented { .. } = site.kind {
                site.kind = FrameKind::Gone;
            }
        }
        let frame = self.push(record, FrameKind::Service, location);
        let entered = &mut self.path.frames[frame as usize];
        entered.action = action;
        entered.params = params;
        self.path.records.in_frames += 1;
        self.open(frame, true);
    }

    fn push(&mut self, record: &Record, kind: FrameKind, location: u32) -> u32 {
        let parent = self.stack.last().map_or(NONE, |(_, execution)| *execution);
        self.path.frames.push(Frame {
            kind,
            location,
            parent,
            start_ns: record.time_ns,
            end_ns: record.time_ns,
            call_ns: None,
            server: if record.server == NONE { self.place.0 } else { record.server },
            thread: if record.thread == NONE { self.place.1 } else { record.thread },
            action: None,
            params: None,
            truncated: false,
        });
        (self.path.frames.len() - 1) as u32
    }

    fn exit(&mut self, location: u32, time_ns: i64) {
        let Some(depth) = self.find(location, true) else {
            self.path.n_orphan_exits += 1;
            self.path.records.orphans += 1;
            return;
        };
        self.path.records.in_frames += 1;
        self.pop_down_to(depth + 1, time_ns);
        if let Some(frame) = self.close() {
            self.path.frames[frame as usize].end_ns = time_ns;
        }
    }

    fn return_from(&mut self, location: u32, time_ns: i64) {
        let Some(depth) = self.find(location, false) else {
            self.path.n_orphan_returns += 1;
            self.path.records.orphans += 1;
            return;
        };
        self.path.records.calls += 1;
        self.pop_down_to(depth + 1, time_ns);
        let Some(site) = self.close() else { return };
        let (before, after) = self.path.frames.split_at_mut(site as usize + 1);
        let site = &mut before[site as usize];
        site.end_ns = time_ns;
        if site.kind == FrameKind::Gone {
            // The service that the call was of: the first entry since, directly in the caller.
            let called = after.iter_mut().find(|frame| frame.kind == FrameKind::Service && frame.parent == site.parent);
            called.into_iter().for_each(|called| called.call_ns = Some((site.start_ns, time_ns)));
        }
    }

    /// Pops the frames above `depth`: they have no exit.
    fn pop_down_to(&mut self, depth: usize, time_ns: i64) {
        while self.stack.len() > depth {
            let Some(frame) = self.close() else { break };
            let frame = &mut self.path.frames[frame as usize];
            frame.end_ns = time_ns.max(frame.start_ns);
            match frame.kind {
                FrameKind::Service => {
                    frame.truncated = true;
                    self.path.n_truncated += 1;
                }
                FrameKind::Uninstrumented { .. } => frame.kind = FrameKind::Uninstrumented { timed: false },
                _ => {}
            }
        }
    }
}
