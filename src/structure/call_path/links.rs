//! The call paths of one request, and what began each.
//!
//! A transaction is begun by what its records say (`Begin`), else by the message that it received, else by the first message sent
//! to its first service that nothing has received yet, else, as a guess, by what was innermost when it began. A context
//! without transactions in which frames do not nest is split by threads.

use std::collections::VecDeque;

use super::{
    frames::{Frame, FrameKind, Path},
    live::{Live, NONE, OwnedKey, Record, Transaction, What},
    transactions::Transactions,
};
use crate::trace::{
    diagnostics::Diagnostics,
    hashed::{HashMap, IndexMap},
};

/// Most transactions of a context for which the beginning is guessed.
const MOST_GUESSED: usize = 1000;

/// What is said of messages and beginnings of which one side is missing.
pub(super) const UNMATCHED: &str = "messages have no sender or no receiver in the records";

/// The call paths of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// Its context.
    pub(super) name: String,
    /// The session that it is of, where that is wanted and known.
    pub(super) session: Option<Box<str>>,
    /// Its call paths; one that another began is named by a [`FrameKind::Fork`] of that one.
    pub(super) paths: Vec<Path>,
    /// Whether another path began it, shape `(n_paths,)`.
    pub(super) begun: Vec<bool>,
    /// Whether records are missing.
    pub(super) partial: bool,
    /// Whether it was cut because there was no room.
    pub(super) cut: bool,
}

impl Request {
    pub(super) fn of(live: Live, diagnostics: &mut Diagnostics) -> Self {
        let name = live.keys.first().map_or_else(String::new, ToString::to_string);
        let only_unnamed = live.transactions.len() == 1 && live.transactions.values().all(|transaction| !transaction.named);
        let mut transactions = live.transactions;
        note_forks(&mut transactions, &name, diagnostics);
        // Records that may have to be parsed once more stay in their order.
        let kept = (only_unnamed && has_threads(&transactions[0].records)).then(|| transactions[0].records.clone());
        let path = |transaction: &mut Transaction| Path::parse(&mut transaction.records, (transaction.server, transaction.thread));
        let mut paths: Vec<Path> = transactions.values_mut().map(path).collect();
        if only_unnamed && paths.first().is_some_and(|path| path.n_orphan_exits + path.n_truncated > 0) {
            paths = split_by_thread(paths, kept.unwrap_or_default(), &name, diagnostics);
        }
        note_oddities(&paths, &name, diagnostics);
        let begun = link(&mut paths, &name, diagnostics);
        let partial = paths.iter().any(Path::is_partial);
        Self { name, session: live.session, paths, begun, partial, cut: live.cut }
    }

    /// Whether other records tell all that it consists of.
    pub(super) fn is_elsewhere(&self) -> bool {
        let mut frames = self.paths.iter().flat_map(|path| &path.frames).peekable();
        frames.peek().is_some() && frames.all(|frame| frame.kind == FrameKind::Elsewhere)
    }
}

/// Adds to the records of each transaction what it began.
fn note_forks(transactions: &mut Transactions, name: &str, diagnostics: &mut Diagnostics) {
    let mut begun: Vec<(usize, usize, u64, bool)> = Vec::new();
    for (index, transaction) in transactions.values().enumerate() {
        let Some(of) = &transaction.begun else { continue };
        match transactions.get_index_of(&of.by) {
            Some(by) if by != index => begun.push((by, index, of.order, of.waits)),
            Some(_) => {}
            None => diagnostics.add("async_unmatched", UNMATCHED, || name.to_owned()),
        }
    }
    for (by, index, order, waits) in begun {
        let start_ns = transactions[index].records.iter().map(|record| record.time_ns).min().unwrap_or_default();
        let parent = &mut transactions[by];
        let time_ns = parent.records.iter().find(|record| record.order == order).map_or(start_ns, |record| record.time_ns);
        let what = What::Fork { transaction: index as u32, waits };
        parent.records.push(Record { order, number: u64::MAX, time_ns, server: NONE, thread: NONE, what });
    }
}

/// Whether there are entries and exits of several threads (whole executions say themselves how they nest).
fn has_threads(records: &[Record]) -> bool {
    if matches!(records.first(), Some(Record { what: What::Execution { .. }, .. })) {
        return false;
    }
    records.first().is_some_and(|first| records.iter().any(|record| (record.server, record.thread) != (first.server, first.thread)))
}

fn split_by_thread(parsed: Vec<Path>, records: Vec<Record>, name: &str, diagnostics: &mut Diagnostics) -> Vec<Path> {
    let mut by_thread: IndexMap<(u32, u32), Vec<Record>> = IndexMap::default();
    for record in records {
        by_thread.entry((record.server, record.thread)).or_default().push(record);
    }
    if by_thread.len() < 2 {
        return parsed;
    }
    let message = "contexts without transaction ids hold call paths of several threads at once: they were split by thread";
    diagnostics.add("context_without_txn_async", message, || name.to_owned());
    by_thread.into_iter().map(|(place, mut records)| Path::parse(&mut records, place)).collect()
}

fn note_oddities(paths: &[Path], name: &str, diagnostics: &mut Diagnostics) {
    let mut note = |code, message, n: u64| {
        if n > 0 {
            diagnostics.add_times(code, message, n, [name.to_owned()]);
        }
    };
    for path in paths {
        note("orphan_exit", "exits without an entry were dropped", path.n_orphan_exits);
        note("orphan_return", "returns without a call were dropped", path.n_orphan_returns);
        note("truncated_path", "executions have no exit", path.n_truncated);
        note("missing_execution", "executions are missing of which the order indices of others tell", path.n_missing);
        note("duplicate_execution", "executions with the order index of another were dropped", path.n_duplicates);
        note("duplicate_record", "records that are there twice were dropped", path.n_doubled);
        note("stack_size_jump", "executions are nested deeper than those around them tell: they were nested in the last", path.n_too_deep);
        note("outside_of_caller", "executions are not inside of their callers by the clock", path.n_outside);
        let message = "executions end before they start: how long they and those that wait for them worked is not known";
        note("negative_response", message, path.n_backwards);
    }
}

/// Finds what began each path, and turns it into a fork there.
fn link(paths: &mut [Path], name: &str, diagnostics: &mut Diagnostics) -> Vec<bool> {
    let mut begun = vec![false; paths.len()];
    for (index, path) in paths.iter().enumerate() {
        for frame in &path.frames {
            if let FrameKind::Fork { transaction, .. } = frame.kind {
                let known = begun.get_mut(transaction as usize).filter(|_| transaction as usize != index);
                known.into_iter().for_each(|begun| *begun = true);
            }
        }
    }
    match_messages(paths, &mut begun);
    let start = |path: &Path| path.frames.iter().map(|frame| frame.start_ns).min().unwrap_or(i64::MAX);
    let first = (0..paths.len()).filter(|index| !begun[*index]).min_by_key(|index| start(&paths[*index]));
    // What came from outside is the beginning; but what was sent to it is missing.
    if first.is_some_and(|first| paths[first].received.is_some()) {
        diagnostics.add("async_unmatched", UNMATCHED, || name.to_owned());
    }
    let unmatched: Vec<usize> = (0..paths.len()).filter(|index| !begun[*index] && Some(*index) != first).collect();
    for index in unmatched {
        let expected_message = paths[index].received.is_some();
        begun[index] = paths.len() <= MOST_GUESSED && !expected_message && guess_beginning(paths, index);
        let (code, message) = if begun[index] {
            ("async_inferred", "what began these transactions is not recorded: what ran when they began was taken")
        } else {
            ("async_unmatched", UNMATCHED)
        };
        diagnostics.add(code, message, || name.to_owned());
    }
    for _ in paths.iter().flat_map(|path| &path.frames).filter(|frame| matches!(frame.kind, FrameKind::Send { .. })) {
        diagnostics.add("async_unmatched", UNMATCHED, || name.to_owned());
    }
    begun
}

/// Messages by their identity; without one, first in, first out for one destination.
fn match_messages(paths: &mut [Path], begun: &mut [bool]) {
    let mut by_id: HashMap<OwnedKey, (usize, usize)> = HashMap::default();
    let mut sends: Vec<(i64, u32, usize, usize)> = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        for (number, frame) in path.frames.iter().enumerate() {
            match &frame.kind {
                FrameKind::Send { message: Some(message) } => _ = by_id.insert((**message).clone(), (index, number)),
                FrameKind::Send { message: None } => sends.push((frame.start_ns, frame.location, index, number)),
                _ => {}
            }
        }
    }
    if by_id.is_empty() && sends.is_empty() {
        return;
    }
    sends.sort_unstable();
    let mut by_destination: HashMap<u32, VecDeque<(usize, usize)>> = HashMap::default();
    for (_, location, index, number) in sends {
        by_destination.entry(location).or_default().push_back((index, number));
    }
    let mut receivers: Vec<usize> = (0..paths.len()).filter(|index| !begun[*index]).collect();
    receivers.sort_by_key(|index| paths[*index].frames.first().map_or(i64::MAX, |frame| frame.start_ns));
    for receiver in receivers {
        let path = &paths[receiver];
        let first = path.frames.iter().find(|frame| frame.kind == FrameKind::Service).map(|frame| frame.location);
        let sent = match &path.received {
            Some((_, Some(message))) => by_id.remove(message).filter(|(index, _)| *index != receiver),
            received => {
                let destination = received.as_ref().map(|(location, _)| *location);
                [destination, first].into_iter().flatten().find_map(|destination| {
                    let queue = by_destination.get_mut(&destination)?;
                    let at = queue.iter().position(|(index, _)| *index != receiver)?;
                    queue.remove(at)
                })
            }
        };
        if let Some((index, number)) = sent {
            paths[index].frames[number].kind = FrameKind::Fork { transaction: receiver as u32, waits: false };
            begun[receiver] = true;
        }
    }
}

/// Takes the execution that was innermost when the path began for what began it.
fn guess_beginning(paths: &mut [Path], index: usize) -> bool {
    let Some(time_ns) = paths[index].frames.first().map(|frame| frame.start_ns) else { return false };
    let mut innermost: Option<(i64, usize, usize)> = None;
    for (other, path) in paths.iter().enumerate().filter(|(other, _)| *other != index) {
        for (number, frame) in path.frames.iter().enumerate() {
            let around = frame.kind == FrameKind::Service && frame.start_ns <= time_ns && time_ns <= frame.end_ns;
            if around && innermost.is_none_or(|(start, ..)| frame.start_ns >= start) {
                innermost = Some((frame.start_ns, other, number));
            }
        }
    }
    let Some((_, other, parent)) = innermost else { return false };
    let frames = &mut paths[other].frames;
    let at = frames[parent + 1..].iter().position(|frame| frame.start_ns > time_ns).map_or(frames.len(), |after| parent + 1 + after);
    for frame in &mut frames[at..] {
        frame.parent += u32::from(frame.parent != NONE && frame.parent as usize >= at);
    }
    let fork = Frame {
        kind: FrameKind::Fork { transaction: index as u32, waits: false },
        location: NONE,
        parent: parent as u32,
        start_ns: time_ns,
        end_ns: time_ns,
        call_ns: None,
        server: frames[parent].server,
        thread: frames[parent].thread,
        action: None,
        params: None,
        truncated: false,
    };
    frames.insert(at, fork);
    true
}
