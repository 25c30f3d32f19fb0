//! Recordings as message logs, in the form that [`crate::trace::same`] reads.
//!
//! One row a message, in order of acceptance: `sender, sender_thread, receiver, receiver_thread, sent, time, message_type, seq`
//! and, where cycles are kept apart, `trace, scenario`. Times are microseconds. A request is of the type of its entry's name,
//! its reply of the same with `:reply` after it. What arrives from outside is sent by the process `outside`, in a thread of
//! its own each time.
//!
//! With [`TraceOptions::ends_apart`], one row an end of a message, as in Table 1 of Israr et al. (2005): `time, kind, process,
//! thread, peer, message_type, msg_id, seq`, and the same two.
//!
//! A thread that replies or forwards, and at that instant takes a request that waited, does so in this order: the acceptance is
//! written 10⁻⁹ microseconds later.
//!
//! Not in the log: cycles without a message, lost requests, work after the last message, forks and joins.

use std::{collections::HashMap, io, io::Write};

use super::{
    TraceOptions, TraceWriter,
    requests::{Requests, scenario, task_name},
};
use crate::solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind};

/// Name of the process that sends what arrives from outside.
pub const OUTSIDE: &str = "outside";

/// Columns of whole messages, and of their ends.
const MESSAGES: [&str; 8] = ["sender", "sender_thread", "receiver", "receiver_thread", "sent", "time", "message_type", "seq"];
const ENDS: [&str; 8] = ["time", "kind", "process", "thread", "peer", "message_type", "msg_id", "seq"];

/// Writes a message log.
pub struct SameWriter<'w, W: Write> {
    out: csv::Writer<W>,
    legend: &'w Legend,
    options: &'w TraceOptions,
    requests: Requests,
    /// Scenario of each cycle under way, with the number of its requests.
    cycles: HashMap<u64, (String, u64)>,
    n_rows: u64,
}

/// An end of a message.
struct Unit {
    process: String,
    thread: String,
}

impl<'w, W: Write> SameWriter<'w, W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, legend: &'w Legend, options: &'w TraceOptions) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        let mut header = if options.ends_apart { ENDS } else { MESSAGES }.to_vec();
        header.extend(options.cycles_apart.then_some(["trace", "scenario"]).into_iter().flatten());
        out.write_record(header)?;
        Ok(Self { out, legend, options, requests: Requests::default(), cycles: HashMap::new(), n_rows: 0 })
    }

    /// The unit that a request was sent by, or that the number stands for from outside.
    fn sender(&self, request: u64) -> Option<Unit> {
        match self.requests.get(request)?.sender {
            None => Some(Unit { process: OUTSIDE.to_owned(), thread: request.to_string() }),
            Some((entry, thread)) => Some(self.unit_of(entry, thread)),
        }
    }

    /// The unit that serves a request.
    fn unit(&self, request: u64) -> Option<Unit> {
        let served = self.requests.get(request)?;
        Some(self.unit_of(served.entry, served.thread))
    }

    fn unit_of(&self, entry: u32, thread: u32) -> Unit {
        Unit { process: task_name(self.legend, entry), thread: (thread + 1).to_string() }
    }

    /// A time, and that of an acceptance after waiting.
    fn time(&self, time: f64, waited: bool) -> String {
        format!("{:.6}{}", self.options.microseconds(time), if waited { "001" } else { "000" })
    }

    fn row(&mut self, plain: [&str; 7], cycle: u64) -> io::Result<()> {
        self.n_rows += 1;
        for field in plain {
            self.out.write_field(field)?;
        }
        self.out.write_field(self.n_rows.to_string())?;
        if self.options.cycles_apart {
            let scenario = self.cycles.get(&cycle).map_or("", |c| c.0.as_str());
            self.out.write_field(format!("{scenario}.{cycle}"))?;
            self.out.write_field(scenario)?;
        }
        Ok(self.out.write_record(None::<&[u8]>)?)
    }

    fn message(&mut self, from: &Unit, to: &Unit, times: [f64; 2], message_type: &str, cycle: u64) -> io::Result<()> {
        let [sent, received] = [self.time(times[0], false), self.time(times[1], times[1] > times[0])];
        self.row([&from.process, &from.thread, &to.process, &to.thread, &sent, &received, message_type], cycle)
    }

    /// The sending of a message by `unit` to the process `peer`, or its reception from there.
    fn end(&mut self, kind: &str, time: &str, unit: &Unit, peer: &str, (message_type, id): (&str, &str), cycle: u64) -> io::Result<()> {
        self.row([time, kind, &unit.process, &unit.thread, peer, message_type, id], cycle)
    }

    fn sent(&mut self, event: &RecordedEvent) -> io::Result<()> {
        let Some(request) = self.requests.get(event.request).copied() else { return Ok(()) };
        if request.kind == RequestKind::Cycle || !self.options.ends_apart {
            return Ok(());
        }
        let Some(from) = self.sender(event.request) else { return Ok(()) };
        let (time, to, legend) = (self.time(event.time, false), task_name(self.legend, request.entry), self.legend);
        self.end("send", &time, &from, &to, (legend.entry(request.entry), &event.request.to_string()), request.cycle)
    }

    fn accepted(&mut self, event: &RecordedEvent) -> io::Result<()> {
        let Some(request) = self.requests.get(event.request).copied() else { return Ok(()) };
        if request.kind == RequestKind::Cycle {
            return Ok(());
        }
        let (Some(from), Some(to)) = (self.sender(event.request), self.unit(event.request)) else { return Ok(()) };
        let (legend, times) = (self.legend, [request.sent, event.time]);
        let message_type = legend.entry(request.entry);
        if self.options.ends_apart {
            let time = self.time(times[1], times[1] > times[0]);
            return self.end("receive", &time, &to, &from.process, (message_type, &event.request.to_string()), request.cycle);
        }
        self.message(&from, &to, times, message_type, request.cycle)
    }

    fn replied(&mut self, event: &RecordedEvent, chain: u64) -> io::Result<()> {
        let (Some(from), Some(to)) = (self.unit(event.request), self.sender(chain)) else { return Ok(()) };
        let Some(request) = self.requests.get(chain).copied() else { return Ok(()) };
        let message_type = format!("{}:reply", self.legend.entry(request.entry));
        if self.options.ends_apart {
            let (time, message) = (self.time(event.time, false), (message_type.as_str(), &*format!("{chain}:reply")));
            self.end("send", &time, &from, &to.process, message, request.cycle)?;
            return self.end("receive", &time, &to, &from.process, message, request.cycle);
        }
        self.message(&from, &to, [event.time; 2], &message_type, request.cycle)
    }

    /// Remembers what a cycle is a cycle of.
    fn begin(&mut self, event: &RecordedEvent) {
        if let Event::Sent { kind, cycle, entry, .. } = event.event {
            self.cycles.entry(cycle).or_insert_with(|| (scenario(self.legend, kind, entry), 0)).1 += 1;
        }
    }

    /// Forgets what a cycle is a cycle of when nothing of it is under way.
    fn end_of(&mut self, event: &RecordedEvent) {
        let ends = matches!(event.event, Event::Ended | Event::Lost);
        let Some(cycle) = self.requests.get(event.request).filter(|_| ends).map(|r| r.cycle) else { return };
        if let Some((_, n)) = self.cycles.get_mut(&cycle) {
            *n -= 1;
            if *n == 0 {
                self.cycles.remove(&cycle);
            }
        }
    }
}

impl<W: Write> TraceWriter for SameWriter<'_, W> {
    fn event(&mut self, event: &RecordedEvent) -> io::Result<()> {
        self.requests.before(event);
        self.begin(event);
        match event.event {
            Event::Sent { .. } => self.sent(event)?,
            Event::Accepted { .. } => self.accepted(event)?,
            Event::Replied { chain, .. } => self.replied(event, chain)?,
            _ => {}
        }
        self.end_of(event);
        self.requests.after(event);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
