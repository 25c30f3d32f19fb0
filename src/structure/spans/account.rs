//! Sums over occurrences and calls, from which the quality report is made.

use crate::trace::hashed::HashMap;

use super::{
    catalog::{Catalog, NONE, Renumbered},
    forest::{Call, Forest, Occ, Origin},
    hints::{Life, instances, joined, most_alive},
    load::Load,
    offsets::Offset,
    quality::{
        CallQuality, ClockPeriod, ClockQuality, EXAMPLES_KEPT, EntryQuality, Explained, Moments, Notes, OverlapQuality, Quality, Sampling,
        TraceCounts,
    },
    skew::Skews,
    timing::Evidence,
    tree::NOBODY,
};
use crate::trace::span::{SpanStatus, TraceId};

/// Most different calls that are counted.
const MAX_CALLS: usize = 200_000;
/// Most pairs of overlapping calls that are reported.
const MAX_OVERLAPS: usize = 200;
/// Hosts that are told apart in one task.
const MAX_HOSTS: usize = 1000;

/// Caller and target entries, whether asynchronous, phase.
type CallKey = (u32, u32, bool, u8);

#[derive(Clone, Debug, Default)]
struct CallSums {
    calls: u64,
    /// Those of occurrences that are not lost, and the sum of the squares of their numbers.
    known: u64,
    squares: f64,
    made_by: u64,
    failed: u64,
    retries: u64,
    parallel: u64,
    queueing_s: Moments,
    examples: Vec<String>,
}

/// What a task is known from, beside its entries.
#[derive(Clone, Debug, Default)]
pub struct TaskSums {
    /// Its hosts, and when they were alive.
    pub hosts: HashMap<u32, Life>,
    /// Whether spans of its own were seen.
    pub is_served: bool,
    /// Where it is known from otherwise.
    pub origin: Option<Origin>,
    /// From a client's sending to the start of a server's span, seconds, where both were seen.
    pub wait_s: Moments,
}

impl TaskSums {
    fn note_host(&mut self, host: u32, life: Life) {
        if self.hosts.len() < MAX_HOSTS || self.hosts.contains_key(&host) {
            self.hosts.entry(host).and_modify(|known| *known = joined(*known, life)).or_insert(life);
        }
    }

    /// Most hosts alive at the same time.
    pub fn hosts_at_once(&self) -> u64 {
        most_alive(self.hosts.values().map(|life| (*life, 1)))
    }
}

/// Sums so far.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Traces.
    pub traces: TraceCounts,
    /// Time of roots.
    pub explained: Explained,
    /// Sampling.
    pub sampling: Sampling,
    /// Traces that do not say how they were sampled: the first.
    pub unsaid: Vec<String>,
    /// Tasks by number of their name.
    pub tasks: HashMap<u32, TaskSums>,
    entries: Vec<EntryQuality>,
    calls: HashMap<CallKey, CallSums>,
}

impl Account {
    /// Adds an occurrence with its calls.
    pub fn occurrence(&mut self, forest: &Forest, o: usize, trace: TraceId) {
        let occ = &forest.occs[o];
        self.note_waits(forest, o);
        if occ.entry == NOBODY {
            return;
        }
        let index = occ.entry as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, EntryQuality::default);
        }
        let entry = &mut self.entries[index];
        entry.occurrences += 1;
        entry.served += u64::from(matches!(occ.origin, Origin::Served | Origin::Internal));
        entry.lost += u64::from(occ.is_lost);
        match occ.status {
            SpanStatus::Ok => {}
            SpanStatus::Error => entry.errors += 1,
            SpanStatus::Timeout => entry.timeouts += 1,
            SpanStatus::Cancelled => entry.cancelled += 1,
        }
        for (moments, ns) in entry.self_s.iter_mut().zip(occ.self_ns) {
            if let Some(ns) = ns {
                moments.add(ns * 1e-9);
            }
        }
        if entry.examples.len() < EXAMPLES_KEPT {
            entry.examples.push(trace.to_string());
        }
        self.note_task(occ);
        self.count_calls(forest, o, trace);
    }

    fn note_task(&mut self, occ: &Occ) {
        let task = self.tasks.entry(occ.task).or_default();
        if occ.origin == Origin::Served {
            task.is_served = true;
            if occ.host != NONE {
                task.note_host(occ.host, (occ.start_ns, occ.work_end_ns));
            }
        } else if task.origin.is_none() {
            task.origin = Some(occ.origin);
        }
    }

    fn note_waits(&mut self, forest: &Forest, o: usize) {
        for call in &forest.calls[forest.calls_of(o)] {
            if let Some(wait_s) = waited_s(forest, call) {
                self.tasks.entry(forest.occs[call.to as usize].task).or_default().wait_s.add(wait_s);
            }
        }
    }

    fn count_calls(&mut self, forest: &Forest, o: usize, trace: TraceId) {
        let range = forest.calls_of(o);
        if range.is_empty() {
            return;
        }
        let key = |call: &Call| (forest.occs[o].entry, forest.occs[call.to as usize].entry, call.is_async, call.phase);
        let mut order: Vec<usize> = range.collect();
        order.sort_by_key(|c| key(&forest.calls[*c]));
        for same in order.chunk_by(|a, b| key(&forest.calls[*a]) == key(&forest.calls[*b])) {
            let key = key(&forest.calls[same[0]]);
            if self.calls.len() >= MAX_CALLS && !self.calls.contains_key(&key) {
                continue;
            }
            let sums = self.calls.entry(key).or_default();
            sums.calls += same.len() as u64;
            if !forest.occs[o].is_lost {
                sums.known += same.len() as u64;
                sums.squares += (same.len() * same.len()) as f64;
            }
            sums.made_by += 1;
            if sums.examples.len() < EXAMPLES_KEPT {
                sums.examples.push(trace.to_string());
            }
            let mut earlier_failed = false;
            for call in same.iter().map(|c| &forest.calls[*c]) {
                let target = &forest.occs[call.to as usize];
                let failed = call.status != SpanStatus::Ok || target.status != SpanStatus::Ok;
                sums.failed += u64::from(failed);
                sums.retries += u64::from(earlier_failed);
                earlier_failed = failed;
                sums.parallel += u64::from(call.branch.is_some());
                waited_s(forest, call).into_iter().for_each(|wait_s| sums.queueing_s.add(wait_s));
            }
        }
    }

    /// Takes over what `other` summed; `numbers` are those here of what it numbers.
    pub fn absorb(&mut self, other: Self, numbers: &Renumbered) {
        self.traces.add(&other.traces);
        self.explained.add(&other.explained);
        self.sampling.add(&other.sampling);
        self.unsaid.extend(other.unsaid);
        self.unsaid.truncate(EXAMPLES_KEPT);
        for (task, theirs) in other.tasks {
            let task = self.tasks.entry(numbers.names[task as usize]).or_default();
            theirs.hosts.into_iter().for_each(|(host, life)| task.note_host(numbers.names[host as usize], life));
            task.is_served |= theirs.is_served;
            task.origin = task.origin.or(theirs.origin);
            task.wait_s.merge(theirs.wait_s);
        }
        for (index, theirs) in other.entries.into_iter().enumerate() {
            let index = numbers.entry(index as u32) as usize;
            if self.entries.len() <= index {
                self.entries.resize_with(index + 1, EntryQuality::default);
            }
            self.entries[index].merge(theirs);
        }
        for ((from, to, is_async, phase), theirs) in other.calls {
            let sums = self.calls.entry((numbers.entry(from), numbers.entry(to), is_async, phase)).or_default();
            sums.calls += theirs.calls;
            sums.known += theirs.known;
            sums.squares += theirs.squares;
            sums.made_by += theirs.made_by;
            sums.failed += theirs.failed;
            sums.retries += theirs.retries;
            sums.parallel += theirs.parallel;
            sums.queueing_s.merge(theirs.queueing_s);
            let room = EXAMPLES_KEPT.saturating_sub(sums.examples.len());
            sums.examples.extend(theirs.examples.into_iter().take(room));
        }
    }

    /// The report.
    pub fn quality(&self, catalog: &Catalog, load: &Load, skews: &Skews, evidence: &Evidence, notes: &Notes) -> Quality {
        let mut quality = Quality { traces: self.traces.clone(), explained: self.explained, sampling: self.sampling, ..Quality::default() };
        (quality.spans.set_aside, quality.spans.remarks) = notes.reasons();
        for (index, entry) in self.entries.iter().enumerate().filter(|(_, e)| e.occurrences > 0) {
            let (task, name) = catalog.entry_names(index as u32);
            let mut entry = entry.clone();
            entry.load = load.at_start.get(&(index as u32)).copied().unwrap_or_default();
            quality.tasks.entry(task.to_owned()).or_default().entries.insert(name.to_owned(), entry);
        }
        self.add_calls(catalog, &mut quality);
        for (task, of) in instances(catalog, load) {
            if let Some(task) = quality.tasks.get_mut(catalog.names.name(task)) {
                (task.instances, task.instances_at_once, task.concurrency) = (of.seen, of.at_once, of.concurrency);
            }
        }
        for (task, sums) in &self.tasks {
            if let Some(task) = quality.tasks.get_mut(catalog.names.name(*task)) {
                (task.hosts, task.hosts_at_once) = (sums.hosts.len() as u64, sums.hosts_at_once());
            }
        }
        add_clocks(skews, catalog, &mut quality);
        add_overlaps(evidence, catalog, &mut quality);
        quality
    }

    fn add_calls(&self, catalog: &Catalog, quality: &mut Quality) {
        let mut keys: Vec<&CallKey> = self.calls.keys().collect();
        keys.sort_unstable();
        for key in keys {
            let (sums, (from, to, is_async, phase)) = (&self.calls[key], *key);
            let (task, name) = catalog.entry_names(from);
            let Some(entry) = quality.tasks.get_mut(task).and_then(|task| task.entries.get_mut(name)) else { continue };
            let count = entry.occurrences - entry.lost;
            let (n, sum) = (count.max(1) as f64, sums.known as f64);
            let (to_task, to_entry) = catalog.entry_names(to);
            entry.calls.push(CallQuality {
                to: format!("{to_task}.{to_entry}"),
                kind: if is_async { "async" } else { "sync" }.to_owned(),
                phase,
                calls: sums.calls,
                per_occurrence: Moments { count, mean: sum / n, sum_of_squares: (sums.squares - sum * sum / n).max(0.0) },
                made_by: sums.made_by,
                failed: sums.failed,
                retries: sums.retries,
                parallel: sums.parallel,
                queueing_s: sums.queueing_s,
                examples: sums.examples.clone(),
            });
        }
    }
}

/// From the client's sending to the start of the server's span, seconds, where both were seen.
fn waited_s(forest: &Forest, call: &Call) -> Option<f64> {
    let target = &forest.occs[call.to as usize];
    let is_seen = call.has_client && call.has_server && target.is_measured;
    is_seen.then(|| target.start_ns.saturating_sub(call.start_ns) as f64 * 1e-9)
}

fn add_clocks(skews: &Skews, catalog: &Catalog, quality: &mut Quality) {
    let seconds = |ns: i64| ns as f64 * 1e-9;
    let name = |host: u32| catalog.names.name(host).to_owned();
    let period = |(from_ns, offset): &(i64, Offset)| ClockPeriod {
        from_ns: (*from_ns != i64::MIN).then_some(*from_ns),
        requests: offset.n_requests,
        offset_s: seconds(offset.offset_ns),
        bounds_s: [seconds(offset.lower_ns), seconds(offset.upper_ns)],
    };
    let clock = |((first, second), requests, periods): ((u32, u32), u64, Vec<(i64, Offset)>)| {
        let mut periods: Vec<ClockPeriod> = periods.iter().map(period).collect();
        let most = periods.iter().rev().max_by_key(|period| period.requests).cloned().unwrap_or_default();
        if periods.len() < 2 {
            periods.clear();
        }
        let hosts = [name(first), name(second)];
        ClockQuality { hosts, requests, offset_s: most.offset_s, bounds_s: most.bounds_s, periods }
    };
    quality.clocks = skews.all().map(clock).collect();
    quality.clocks.sort_by(|a, b| a.hosts.cmp(&b.hosts));
}

/// Pairs that are parallel in some occurrences and not in others, the most frequent first.
fn add_overlaps(evidence: &Evidence, catalog: &Catalog, quality: &mut Quality) {
    let mixed = evidence.pairs.iter().filter(|(_, pair)| pair.together > 0);
    let full = |entry: u32| {
        let (task, name) = catalog.entry_names(entry);
        if entry == NOBODY { "(root)".to_owned() } else { format!("{task}.{name}") }
    };
    quality.overlaps = mixed
        .map(|((caller, a, b), pair)| OverlapQuality {
            caller: full(*caller),
            called: [full(*a), full(*b)],
            together: pair.together,
            apart: pair.apart,
        })
        .collect();
    let key = |o: &OverlapQuality| (std::cmp::Reverse(o.together + o.apart), o.caller.clone(), o.called.clone());
    quality.overlaps.sort_by_cached_key(key);
    quality.overlaps.truncate(MAX_OVERLAPS);
}
