//! The quality report as text: what was read, and how well each element is supported, weak ones said to be weak.

use std::fmt::Write;

use super::quality::{CallQuality, ClockQuality, EntryQuality, Moments, Quality, Reasons, TaskQuality, TraceCounts};

/// Occurrences below which an element is weakly supported.
const FEW: u64 = 30;
/// Occurrences below which it is hardly supported.
const VERY_FEW: u64 = 5;

/// Milliseconds that clocks are told to.
const SHOWN_MS: f64 = 0.001;

/// What each reason and remark means, by code.
pub const MESSAGES: &[(&str, &str)] = &[
    ("duplicate", "spans came twice, or their id was used twice: the first by start was used"),
    ("tracing_itself", "spans of the tracing's own traffic were left out"),
    ("message_fetched", "spans that fetch messages which spans below them handle: these count"),
    ("missing_parent", "spans whose parent is not there: unless restored or left out, the client of their trace requests them"),
    ("parent_restored", "spans whose parent is lost: put where other traces show that such spans belong; no self times"),
    ("root_restored", "spans whose parent is lost, the root of their trace: it is the one entry that makes such requests"),
    ("unattached", "spans below a lost one, with nothing to tell where they belong: left out"),
    ("cyclic_parents", "spans are parents of one another in a circle: cut above the earliest"),
    (
        "without_times",
        "spans without times, or in a trace with such: only the structure is known; self times, demands, load, threads, second phases, requests that outlive their maker, forks, clocks, workload and think times are not",
    ),
    ("unfinished", "spans did not finish: their time is not used"),
    ("negative_duration", "spans end before they start: their time is not used"),
    ("zero_duration", "spans last no time: below the clock's resolution"),
    ("clock_residual", "served requests were not within the request made: moved into it"),
    (
        "clocks_not_compared",
        "requests were seen by their servers only, on hosts whose clocks nothing compares, at times at which they would not be waited for: assumed to be waited for, and moved into what made them",
    ),
    ("missing_client_half", "requests were seen by their server only: network and queueing are not seen"),
    ("missing_server_half", "requests were seen on both sides of a service, but not in it"),
    (
        "client_half_alone",
        "requests were seen by their client only: the other side is the entry that serves such requests as a rule, else a task known from its clients",
    ),
    (
        "requests_not_known",
        "occurrences whose own spans are lost, of entries that others show whole: mean numbers of calls are those of the others",
    ),
    ("message_without_consumer", "messages were sent that no span received"),
    ("batched_message", "messages were handled together with others: the handling is a call of the first"),
    ("reply_over_queue", "replies over a second queue: request and reply are one synchronous call"),
    (
        "clock_leaves_phase_open",
        "requests are so near a reply, which is under way for a while and told by clocks that may be off, that times do not tell on which side: on the likelier one, waited for if under way then",
    ),
    ("outlives_caller", "requests outlive what made them, which does not wait for them: asynchronous"),
    ("served_after_client", "requests were begun to be served after their clients had gone on, which do not wait for them: asynchronous"),
    (
        "ends_after_caller",
        "requests end after what made them, by a twentieth of their time at most, while most of their kind end in time: waited for",
    ),
    ("only_failures", "occurrences failed, as did all others of their entry: its self times are theirs"),
    ("late_span", "spans came after their trace had been completed"),
    ("completed_early", "traces were completed before their time as a bound was reached"),
    ("short_trace_id", "traces whose ids some spans give whole and others by their lower 64 bits: joined"),
    ("link_not_joined", "links to traces beyond the bounds of what is joined: who requested these messages is not known"),
    ("late_link", "links to traces that were completed before: who requested these messages is not known"),
    ("sampling_not_said", "recordings say nothing of how they were sampled, while others do: they stand for themselves alone"),
    (
        "recording_pauses",
        "times in which nothing was recorded, each longer than all that was recorded and than 300 mean gaps between requests: taken for pauses between recordings, which are in no rate or think time (if nothing came then, a resource file is to say the rate)",
    ),
    (
        "sampled_sessions",
        "traces were sampled, which leaves requests of sessions out: without a usage model, requests arrive from outside at the rate of all of them, whatever their sessions",
    ),
    ("links_cut", "spans have more links than are used"),
    ("other_peers", "requests of databases, queues and third parties beyond the bound are of one task for the rest of their kind"),
    ("many_paths", "requests whose paths differ in a part of which a task has very many: that part is {id}"),
    ("other_entries", "entries beyond the bound of their task are its entry (other)"),
];

fn reasons(out: &mut String, reasons: &Reasons) {
    for (code, reason) in reasons {
        let message = MESSAGES.iter().find(|(known, _)| known == code).map_or("", |(_, message)| message);
        let _ = writeln!(out, "  {} {code}: {message} (as in {})", reason.count, reason.examples.join(", "));
    }
}

fn instances(task: &TaskQuality) -> String {
    format!("{} instances{}", task.instances, at_once(task.instances, task.instances_at_once))
}

fn hosts(task: &TaskQuality) -> String {
    format!("{} hosts{}", task.hosts, at_once(task.hosts, task.hosts_at_once))
}

/// How many of those seen were there at the same time, where it was not all.
fn at_once(seen: u64, at_once: u64) -> String {
    if at_once == 0 || at_once >= seen { String::new() } else { format!(" ({at_once} at the same time)") }
}

fn support(n: u64) -> String {
    match n {
        0..VERY_FEW => format!("{n} occurrences only: HARDLY SUPPORTED"),
        VERY_FEW..FEW => format!("{n} occurrences: WEAK"),
        _ => format!("{n} occurrences"),
    }
}

fn milliseconds(moments: &Moments) -> String {
    let spread = moments.coefficient_of_variation().map(|cv| format!(", cv {cv:.2}")).unwrap_or_default();
    format!("{:.3} ms{spread} (n {})", moments.mean * 1e3, moments.count)
}

fn entry(out: &mut String, name: &str, entry: &EntryQuality) {
    let from = match entry.served {
        0 => ", seen from its clients only",
        served if served < entry.occurrences => ", partly seen from its clients only",
        _ => "",
    };
    let _ = write!(out, "  {name}: {}{from}", support(entry.occurrences));
    for (phase, moments) in entry.self_s.iter().enumerate().filter(|(_, m)| m.count > 0) {
        let _ = write!(out, "; self time {}{}", if phase == 1 { "of phase 2 " } else { "" }, milliseconds(moments));
    }
    if entry.self_s[0].count == 0 {
        let _ = write!(out, "; self time unknown");
    }
    if entry.load.count > 0 {
        let _ = write!(out, " at load {:.2}", entry.load.mean);
    }
    for (n, what) in [(entry.errors, "errors"), (entry.timeouts, "time-outs"), (entry.cancelled, "cancelled")] {
        if n > 0 {
            let _ = write!(out, "; {n} {what}");
        }
    }
    match entry.left_out_as_failed() {
        0 => {}
        n => {
            let _ = write!(out, "; {n} that failed not in the self time");
        }
    }
    let _ = writeln!(out, " (as in {})", entry.examples.join(", "));
    entry.calls.iter().for_each(|call| self::call(out, call, entry.occurrences));
}

fn call(out: &mut String, call: &CallQuality, n_callers: u64) {
    let share = call.made_by as f64 / n_callers.max(1) as f64;
    let phase = if call.phase == 2 { " in phase 2" } else { "" };
    let _ = write!(
        out,
        "    {}{phase} {:.3} × {}: made by {:.0} % of occurrences",
        call.kind,
        call.per_occurrence.mean,
        call.to,
        share * 100.0
    );
    if let Some(cv) = call.per_occurrence.coefficient_of_variation() {
        let _ = write!(out, ", cv {cv:.2}");
    }
    if call.calls < FEW {
        let _ = write!(
            out,
            ", {} calls{}: {}",
            call.calls,
            if call.calls < VERY_FEW { " only" } else { "" },
            if call.calls < VERY_FEW { "HARDLY SUPPORTED" } else { "WEAK" }
        );
    }
    if call.queueing_s.count > 0 {
        let _ = write!(out, "; queueing {}", milliseconds(&call.queueing_s));
    }
    for (n, what) in [(call.failed, "failed"), (call.retries, "retries"), (call.parallel, "parallel to others")] {
        if n > 0 {
            let _ = write!(out, "; {n} {what}");
        }
    }
    let _ = writeln!(out);
}

impl Quality {
    /// The report, one element a line.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let spans = &self.spans;
        let _ = writeln!(out, "Spans: {} read, {} used, {} set aside.", spans.read, spans.used, self.n_set_aside());
        reasons(&mut out, &spans.set_aside);
        reasons(&mut out, &spans.remarks);
        let traces = &self.traces;
        let _ = writeln!(
            out,
            "Traces: {} complete, {} incomplete ({} without a root), {} completed early, {} late parts.",
            traces.complete, traces.incomplete, traces.without_root, traces.early, traces.late
        );
        self.root_time(&mut out);
        let s = &self.sampling;
        if s.said > 0 || (s.stand_for - s.recordings as f64).abs() > 1e-9 * s.stand_for {
            let _ = writeln!(out, "Sampling: {} recordings stand for {:.0}.", s.recordings, s.stand_for);
        }
        self.clocks.iter().for_each(|clock| self::clock(&mut out, clock));
        for (name, task) in &self.tasks {
            let _ = write!(out, "{name}: {}, {}, ", instances(task), hosts(task));
            let _ = match task.concurrency {
                0 => writeln!(out, "not known how many at once"),
                n => writeln!(out, "up to {n} at once"),
            };
            task.entries.iter().for_each(|(name, quality)| entry(&mut out, name, quality));
        }
        for overlap in &self.overlaps {
            let [a, b] = &overlap.called;
            let _ = writeln!(
                out,
                "{}: {a} and {b} parallel in {} of {} occurrences",
                overlap.caller,
                overlap.together,
                overlap.together + overlap.apart
            );
        }
        out
    }
    fn root_time(&self, out: &mut String) {
        let e = &self.explained;
        if e.root_s > 0.0 {
            let percent = |s: f64| 100.0 * s / e.root_s;
            let (own, gaps, parallel) = (percent(e.self_s), percent(e.gap_s), percent(e.parallel_s));
            let roots = e.roots;
            let _ = write!(out, "Time of {roots} root spans: {own:.1} % self times, {gaps:.1} % between clients and servers, ");
            let _ = write!(out, "{parallel:.1} % of these parallel, ");
            if percent(e.after_s) >= 0.05 {
                let _ = write!(out, "{:.1} % of these after their clients had gone on, ", percent(e.after_s));
            }
            let _ = writeln!(out, "{:.1} % not known.", percent(e.unknown_s));
            return;
        }
        let TraceCounts { complete, incomplete, without_root, .. } = self.traces;
        let why = if self.spans.remarks.contains_key("without_times") {
            "spans have no times"
        } else if complete + incomplete == without_root {
            "no trace has its root"
        } else {
            "no root is waited for, or its end is not known"
        };
        if complete + incomplete > 0 {
            let _ = writeln!(out, "Time of root spans: not known, as {why}.");
        }
    }
}

fn clock(out: &mut String, clock: &ClockQuality) {
    let ClockQuality { hosts: [first, second], requests, offset_s, bounds_s, periods } = clock;
    let ms = |s: f64| s * 1e3;
    let bounds = |[lower, upper]: [f64; 2]| format!("between {:.3} and {:.3}", ms(lower), ms(upper));
    if periods.is_empty() {
        let (offset, bounds) = (ms(*offset_s), bounds(*bounds_s));
        let _ = writeln!(out, "Clock of {second} is ahead of {first}'s by {offset:.3} ms ({bounds}; {requests} requests).");
        return;
    }
    let offsets = || periods.iter().map(|period| ms(period.offset_s));
    let (least, most) = (offsets().fold(f64::INFINITY, f64::min), offsets().fold(f64::NEG_INFINITY, f64::max));
    if most - least < SHOWN_MS {
        let n = periods.len();
        let _ = writeln!(out, "Clock of {second} is ahead of {first}'s by {least:.3} ms in all {n} periods ({requests} requests).");
        return;
    }
    let _ = writeln!(out, "Clock of {second} is ahead of {first}'s by {least:.3} to {most:.3} ms, as it changed ({requests} requests).");
    for period in periods {
        let from = period.from_ns.map_or_else(|| "at first".to_owned(), |ns| format!("from {:.3} s", ns as f64 * 1e-9));
        let (offset, bounds) = (ms(period.offset_s), bounds(period.bounds_s));
        let _ = writeln!(out, "  It changed: {from} by {offset:.3} ms ({bounds}; {} requests looked at).", period.requests);
    }
}
