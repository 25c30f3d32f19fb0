//! What a model from spans rests on: how much was read, used and set aside, and how well each element is supported.
//!
//! A [`Quality`] is a sum: those of parts of the input are merged. It is bounded, as tasks, entries and reasons are.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::trace::diagnostics::Diagnostics;

/// Examples kept of one reason or element.
pub const EXAMPLES_KEPT: usize = 3;

/// How often something was met, and the first examples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// How often.
    pub count: u64,
    /// Ids `TRACE/SPAN` of the first.
    pub examples: Vec<String>,
}

impl Reason {
    fn add(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES_KEPT {
            self.examples.push(example());
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        keep_examples(&mut self.examples, other.examples);
    }
}

fn keep_examples(examples: &mut Vec<String>, more: Vec<String>) {
    let room = EXAMPLES_KEPT.saturating_sub(examples.len());
    examples.extend(more.into_iter().take(room));
}

/// Counts by reason.
pub type Reasons = IndexMap<String, Reason>;

fn merge_reasons(reasons: &mut Reasons, other: Reasons) {
    for (code, reason) in other {
        reasons.entry(code).or_default().merge(reason);
    }
}

/// What is odd in spans: those that are not used, and remarks on those that are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    set_aside: IndexMap<&'static str, Reason>,
    remarks: IndexMap<&'static str, Reason>,
}

impl Notes {
    /// Adds what other spans gave rise to.
    pub fn merge(&mut self, other: Self) {
        for (reasons, more) in [(&mut self.set_aside, other.set_aside), (&mut self.remarks, other.remarks)] {
            for (code, reason) in more {
                reasons.entry(code).or_default().merge(reason);
            }
        }
    }

    /// Number of spans set aside.
    pub fn n_set_aside(&self) -> u64 {
        self.set_aside.values().map(|reason| reason.count).sum()
    }

    /// Counts a span that is not used.
    pub fn set_aside(&mut self, code: &'static str, example: impl FnOnce() -> String) {
        self.set_aside.entry(code).or_default().add(example);
    }

    /// Counts a remark on a span that is used.
    pub fn count(&mut self, code: &'static str, example: impl FnOnce() -> String) {
        self.remarks.entry(code).or_default().add(example);
    }

    /// Both kinds by their codes.
    pub fn reasons(&self) -> (Reasons, Reasons) {
        let named =
            |reasons: &IndexMap<&'static str, Reason>| reasons.iter().map(|(code, reason)| ((*code).to_owned(), reason.clone())).collect();
        (named(&self.set_aside), named(&self.remarks))
    }
}

/// Number, mean and spread of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squared differences from the mean.
    pub sum_of_squares: f64,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.sum_of_squares += before * (value - self.mean);
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let difference = other.mean - self.mean;
        self.mean += difference * m / (n + m);
        self.sum_of_squares += other.sum_of_squares + difference * difference * n * m / (n + m);
        self.count += other.count;
    }

    /// Variance (n − 1); `None` of fewer than two values.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.sum_of_squares / (self.count - 1) as f64)
    }

    /// Standard deviation over mean; `None` where there is none.
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        self.variance().filter(|_| self.mean > 0.0).map(|variance| variance.sqrt() / self.mean)
    }
}

/// How spans were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanCounts {
    /// Read.
    pub read: u64,
    /// Used.
    pub used: u64,
    /// Not used, by reason; read = used + all of these once nothing is held any more.
    pub set_aside: Reasons,
    /// Used, but odd.
    pub remarks: Reasons,
}

/// How traces were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCounts {
    /// With one root at least, and all parents there.
    pub complete: u64,
    /// With missing parents.
    pub incomplete: u64,
    /// Of these, without any root.
    pub without_root: u64,
    /// Completed before their time, as a bound was reached.
    pub early: u64,
    /// Parts of traces that came after the rest had been completed.
    pub late: u64,
}

/// What root spans' time consists of, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Root spans with a reply.
    pub roots: u64,
    /// Their time.
    pub root_s: f64,
    /// Self times in it.
    pub self_s: f64,
    /// Between clients and servers: network and queues.
    pub gap_s: f64,
    /// Time counted more than once, as it was parallel.
    pub parallel_s: f64,
    /// Of occurrences without known self time.
    pub unknown_s: f64,
    /// Self times after those who had asked went on: they had given up, or did not wait to the end.
    #[serde(default)]
    pub after_s: f64,
}

/// How traces were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Recordings handed over.
    pub recordings: u64,
    /// What they stand for.
    pub stand_for: f64,
    /// Recordings whose spans say how they were sampled.
    pub said: u64,
}

/// The clocks of two hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockQuality {
    /// The hosts.
    pub hosts: [String; 2],
    /// Requests that both saw.
    pub requests: u64,
    /// How far the second's clock is ahead of the first's, as corrected, seconds; where clocks changed, in the period with the most
    /// requests.
    pub offset_s: f64,
    /// Bounds of what fits, seconds.
    pub bounds_s: [f64; 2],
    /// Where clocks changed, all periods in order of time; else none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periods: Vec<ClockPeriod>,
}

/// The clocks of two hosts while they stayed the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockPeriod {
    /// Start, nanoseconds since 1970; `None` of the first.
    pub from_ns: Option<i64>,
    /// Requests looked at.
    pub requests: u64,
    /// How far the second's clock is ahead of the first's, as corrected, seconds.
    pub offset_s: f64,
    /// Bounds of what fits, seconds.
    pub bounds_s: [f64; 2],
}

/// A call of an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallQuality {
    /// `TASK.ENTRY` called.
    pub to: String,
    /// `sync` or `async`.
    pub kind: String,
    /// Phase of the caller.
    pub phase: u8,
    /// Number of calls.
    pub calls: u64,
    /// Calls of each occurrence of the caller, those without included; its count is the caller's occurrences that are not lost.
    pub per_occurrence: Moments,
    /// Occurrences of the caller that made it.
    pub made_by: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls made again after one that failed.
    pub retries: u64,
    /// Calls in a branch of a fork.
    pub parallel: u64,
    /// From the client's sending to the server's start, seconds.
    pub queueing_s: Moments,
    /// Example traces.
    pub examples: Vec<String>,
}

/// An entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryQuality {
    /// Occurrences.
    pub occurrences: u64,
    /// Of these, with a span of their own; the others are known from their clients or requests only.
    pub served: u64,
    /// Of the others, those that may have made other requests than are known.
    #[serde(default)]
    pub lost: u64,
    /// That ended with an error.
    pub errors: u64,
    /// That ran out of time.
    pub timeouts: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// Self times of phases 1 and 2, seconds, of those that ended well.
    pub self_s: [Moments; 2],
    /// Open occurrences of the task's instance at the start of one.
    pub load: Moments,
    /// Its calls.
    pub calls: Vec<CallQuality>,
    /// Example traces.
    pub examples: Vec<String>,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskQuality {
    /// Instances seen.
    pub instances: u64,
    /// Of these the most at the same time.
    #[serde(default)]
    pub instances_at_once: u64,
    /// Hosts seen.
    pub hosts: u64,
    /// Of these the most at the same time.
    #[serde(default)]
    pub hosts_at_once: u64,
    /// Most occurrences open at once, summed over the instances at the same time.
    pub concurrency: u64,
    /// Its entries.
    pub entries: IndexMap<String, EntryQuality>,
}

/// Called entries whose calls overlap sometimes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapQuality {
    /// `TASK.ENTRY` of the caller.
    pub caller: String,
    /// `TASK.ENTRY` of those called.
    pub called: [String; 2],
    /// At the same time.
    pub together: u64,
    /// One after the other.
    pub apart: u64,
}

/// What a model from spans rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Spans.
    pub spans: SpanCounts,
    /// Traces.
    pub traces: TraceCounts,
    /// Time of roots.
    pub explained: Explained,
    /// Sampling.
    pub sampling: Sampling,
    /// Clocks of pairs of hosts.
    pub clocks: Vec<ClockQuality>,
    /// Tasks by name.
    pub tasks: IndexMap<String, TaskQuality>,
    /// Pairs of calls that overlap in some occurrences and not in others.
    pub overlaps: Vec<OverlapQuality>,
}

/// Share of an entry's occurrences that have no self time as they failed from which it is remarked.
const REMARKED_FAILURES: f64 = 0.05;
/// Share of the time of roots between clients and servers from which it is remarked.
const REMARKED_GAP: f64 = 0.1;

impl Quality {
    /// Adds what `other` says of another part of the input. Concurrency is that of the part with the most, as parts do not
    /// tell how they lie in time.
    pub fn merge(&mut self, other: Self) {
        let spans = &mut self.spans;
        spans.read += other.spans.read;
        spans.used += other.spans.used;
        merge_reasons(&mut spans.set_aside, other.spans.set_aside);
        merge_reasons(&mut spans.remarks, other.spans.remarks);
        self.traces.add(&other.traces);
        self.explained.add(&other.explained);
        self.sampling.add(&other.sampling);
        for clock in other.clocks {
            match self.clocks.iter_mut().find(|known| known.hosts == clock.hosts) {
                Some(known) if known.requests >= clock.requests => known.requests += clock.requests,
                Some(known) => *known = ClockQuality { requests: known.requests + clock.requests, ..clock },
                None => self.clocks.push(clock),
            }
        }
        for (name, task) in other.tasks {
            self.tasks.entry(name).or_default().merge(task);
        }
        for overlap in other.overlaps {
            match self.overlaps.iter_mut().find(|known| known.caller == overlap.caller && known.called == overlap.called) {
                Some(known) => {
                    known.together += overlap.together;
                    known.apart += overlap.apart;
                }
                None => self.overlaps.push(overlap),
            }
        }
    }

    /// The spans that were set aside.
    pub fn n_set_aside(&self) -> u64 {
        self.spans.set_aside.values().map(|reason| reason.count).sum()
    }

    /// The remarks as counted diagnostics of an extraction.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        for (code, message) in super::text::MESSAGES {
            let reason = self.spans.set_aside.get(*code).or_else(|| self.spans.remarks.get(*code));
            let Some(reason) = reason else { continue };
            diagnostics.add_times(code, message, reason.count, reason.examples.iter().cloned());
        }
        let Explained { roots, root_s, gap_s, .. } = self.explained;
        if gap_s > REMARKED_GAP * root_s {
            let example = format!("{:.1} % of the time of {roots} root spans", 100.0 * gap_s / root_s);
            diagnostics.add_times(
                "time_between_halves",
                "time between the client and the server half of calls is no part of the model, which has only the waits of its own queues: where it is \
                 spent on a network or in a proxy, responses are longer by as much",
                roots,
                [example],
            );
        }
        self.note_failures(&mut diagnostics);
        diagnostics
    }

    /// Says of which entries many occurrences do not count, as they failed.
    fn note_failures(&self, diagnostics: &mut Diagnostics) {
        for (task, of_task) in &self.tasks {
            for (name, entry) in &of_task.entries {
                let n = entry.left_out_as_failed();
                if n as f64 <= REMARKED_FAILURES * entry.occurrences as f64 || entry.self_s[0].count == 0 {
                    continue;
                }
                let message = "occurrences that failed are in no self time: demands are those of the others, which may take another time";
                diagnostics.add("failures_left_out", message, || format!("{task}.{name}: {n} of {}", entry.occurrences));
            }
        }
    }
}

impl TraceCounts {
    /// Adds the counts of another part.
    pub fn add(&mut self, more: &Self) {
        self.complete += more.complete;
        self.incomplete += more.incomplete;
        self.without_root += more.without_root;
        self.early += more.early;
        self.late += more.late;
    }
}

impl Explained {
    /// Adds the times of another part.
    pub fn add(&mut self, more: &Self) {
        self.roots += more.roots;
        self.root_s += more.root_s;
        self.self_s += more.self_s;
        self.gap_s += more.gap_s;
        self.parallel_s += more.parallel_s;
        self.unknown_s += more.unknown_s;
        self.after_s += more.after_s;
    }
}

impl Sampling {
    /// Adds the counts of another part.
    pub fn add(&mut self, more: &Self) {
        self.recordings += more.recordings;
        self.stand_for += more.stand_for;
        self.said += more.said;
    }
}

impl TaskQuality {
    fn merge(&mut self, other: Self) {
        self.instances = self.instances.max(other.instances);
        self.hosts = self.hosts.max(other.hosts);
        self.instances_at_once = self.instances_at_once.max(other.instances_at_once);
        self.hosts_at_once = self.hosts_at_once.max(other.hosts_at_once);
        self.concurrency = self.concurrency.max(other.concurrency);
        for (name, entry) in other.entries {
            self.entries.entry(name).or_default().merge(entry);
        }
    }
}

impl EntryQuality {
    /// Occurrences without a self time as they failed.
    pub fn left_out_as_failed(&self) -> u64 {
        let failed = self.errors + self.timeouts + self.cancelled;
        failed.min(self.occurrences.saturating_sub(self.self_s[0].count))
    }

    /// Adds what another part says of the entry.
    pub fn merge(&mut self, other: Self) {
        let (before, added) = (self.occurrences, other.occurrences);
        self.occurrences += other.occurrences;
        self.served += other.served;
        self.lost += other.lost;
        self.errors += other.errors;
        self.timeouts += other.timeouts;
        self.cancelled += other.cancelled;
        for (here, there) in self.self_s.iter_mut().zip(other.self_s) {
            here.merge(there);
        }
        self.load.merge(other.load);
        keep_examples(&mut self.examples, other.examples);
        // An occurrence of a part in which a call was never made made it zero times.
        let none = |count| Moments { count, mean: 0.0, sum_of_squares: 0.0 };
        let key = |call: &CallQuality| (call.to.clone(), call.kind.clone(), call.phase);
        let mut known: IndexMap<_, CallQuality> = std::mem::take(&mut self.calls).into_iter().map(|call| (key(&call), call)).collect();
        let mut met = vec![false; known.len()];
        for call in other.calls {
            let key = key(&call);
            match known.get_full_mut(&key) {
                Some((index, _, here)) => {
                    met[index] = true;
                    here.merge(call);
                }
                None => {
                    let mut call = call;
                    call.per_occurrence.merge(none(before));
                    known.insert(key, call);
                }
            }
        }
        for (index, _) in met.iter().enumerate().filter(|(_, met)| !**met) {
            known[index].per_occurrence.merge(none(added));
        }
        self.calls = known.into_values().collect();
    }
}

impl CallQuality {
    fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.per_occurrence.merge(other.per_occurrence);
        self.made_by += other.made_by;
        self.failed += other.failed;
        self.retries += other.retries;
        self.parallel += other.parallel;
        self.queueing_s.merge(other.queueing_s);
        keep_examples(&mut self.examples, other.examples);
    }
}
