//! Recordings as event traces, by the probe rules of Mizan & Franks (2011), section 5.
//!
//! | happens | events |
//! |---|---|
//! | cycle begins, arrival is accepted | Ex, of a new operation |
//! | synchronous call, and forwarding at the end | Se of the sender; Re of the receiver, when it accepts |
//! | reply at the end | Sa of the replier, Ra of the client, in one thread |
//! | reply before a second phase | Fo of the replier, with `ack`; Be of the client in the new thread |
//! | forwarding before a second phase | Fo of the sender, with `ack`, as it hands its duty to reply over to the new thread; there Be and Se of the sender; Re of the receiver, when it accepts |
//! | asynchronous call | Fo of the sender; Be of the receiver, when it accepts |
//! | phase or activity ends | Ac |
//! | and-fork | Fo and Be of the task itself, for every branch but the first; En of each, as the form has no join |
//! | execution ends | En, unless its thread went on with a reply or a forwarding |
//!
//! `operation` is the number of the cycle. `cpu` is the processor time (microseconds) that the branch used for the event, since
//! its last one; `ack` is left empty where [`TraceOptions::acks`] is off.

use std::{io, io::Write};

use super::{
    TraceOptions, TraceWriter,
    requests::{Request, Requests, task_name},
    threads::{Runner, Threads},
};
use crate::solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind};

/// Writes an event trace.
pub struct EventTraceWriter<'w, W: Write> {
    out: csv::Writer<W>,
    legend: &'w Legend,
    options: &'w TraceOptions,
    requests: Requests,
    threads: Threads,
}

/// A fork: the thread that it spawns, and whether that carries a reply.
type Fork = (u64, bool);

impl<'w, W: Write> EventTraceWriter<'w, W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, legend: &'w Legend, options: &'w TraceOptions) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(["operation", "thread", "next_thread", "event", "type", "task", "entry", "ack", "cpu"])?;
        let (requests, threads) = Default::default();
        Ok(Self { out, legend, options, requests, threads })
    }

    fn row(&mut self, runner: Runner, kind: &str, fork: Option<Fork>) -> io::Result<()> {
        let Some(Request { cycle, entry, .. }) = self.requests.get(runner.0).copied() else { return Ok(()) };
        let thread = self.threads.of(runner);
        let index = self.threads.next(cycle, thread);
        let demand = self.threads.take_demand(runner);
        let cpu = if self.options.cpu { self.options.microseconds(demand).to_string() } else { String::new() };
        let ack = fork.filter(|_| self.options.acks).map_or("", |(_, ack)| if ack { "true" } else { "false" });
        let next = fork.map_or(String::new(), |(next, _)| next.to_string());
        let numbers = [cycle, thread, index].map(|n| n.to_string());
        let task = task_name(self.legend, entry);
        let row = [&numbers[0], &numbers[1], &next, &numbers[2], kind, &task, self.legend.entry(entry), ack, &cpu];
        Ok(self.out.write_record(row)?)
    }

    fn sent(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        let Some(by) = request.by else { return Ok(()) };
        let runner = (by.request, by.branch);
        let ends = matches!(event.event, Event::Sent { ends: true, .. });
        if request.kind == RequestKind::Sync || ends {
            self.row(runner, "Se", None)?;
            self.threads.send(event.request, self.threads.of(runner));
            if ends {
                self.requests.give_back(by.request);
            }
            return Ok(());
        }
        let child = self.threads.fork(request.cycle);
        self.threads.send(event.request, child);
        if request.kind == RequestKind::Forward {
            return self.hand_over(runner, child);
        }
        self.requests.come_forked(event.request);
        self.row(runner, "Fo", Some((child, false)))
    }

    /// What forwards and goes on does so in its thread; the request goes on its way, and then back, in the new one.
    fn hand_over(&mut self, runner: Runner, child: u64) -> io::Result<()> {
        self.row(runner, "Fo", Some((child, true)))?;
        let thread = self.threads.of(runner);
        self.threads.put(runner, child);
        self.row(runner, "Be", None)?;
        self.row(runner, "Se", None)?;
        self.threads.put(runner, thread);
        Ok(())
    }

    fn accepted(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        self.threads.accept(event.request, request.cycle);
        let kind = match request.kind {
            RequestKind::Cycle | RequestKind::Open => "Ex",
            _ if request.came_forked => "Be",
            _ => "Re",
        };
        self.row((event.request, 0), kind, None)
    }

    fn replied(&mut self, event: &RecordedEvent, request: &Request, chain: u64, ends: bool) -> io::Result<()> {
        let Some(by) = self.requests.get(chain).and_then(|first| first.by) else { return Ok(()) };
        let (runner, client) = ((event.request, 0), (by.request, by.branch));
        if ends {
            self.row(runner, "Sa", None)?;
            self.threads.put(client, self.threads.of(runner));
            self.requests.give_back(event.request);
            return self.row(client, "Ra", None);
        }
        let child = self.threads.fork(request.cycle);
        self.row(runner, "Fo", Some((child, true)))?;
        self.threads.put(client, child);
        self.row(client, "Be", None)
    }

    fn write(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        match event.event {
            Event::Sent { .. } => self.sent(event, request),
            Event::Accepted { .. } => self.accepted(event, request),
            Event::Replied { chain, ends } => self.replied(event, request, chain, ends),
            Event::ActivityEnded { branch, .. } => self.row((event.request, branch), "Ac", None),
            Event::BranchBegan { branch, from, position, .. } if position > 0 => {
                let child = self.threads.fork(request.cycle);
                self.row((event.request, from), "Fo", Some((child, false)))?;
                self.threads.put((event.request, branch), child);
                self.row((event.request, branch), "Be", None)
            }
            Event::BranchEnded { branch } if self.threads.branch((event.request, branch)).1 > 0 => {
                self.row((event.request, branch), "En", None)
            }
            Event::Ended if !self.requests.gave_back(event.request) => self.row((event.request, 0), "En", None),
            _ => Ok(()),
        }
    }
}

impl<W: Write> TraceWriter for EventTraceWriter<'_, W> {
    fn event(&mut self, event: &RecordedEvent) -> io::Result<()> {
        self.requests.before(event);
        self.threads.before(event);
        let Some(request) = self.requests.get(event.request).copied() else { return Ok(()) };
        self.write(event, &request)?;
        self.threads.after(event, request.cycle);
        self.requests.after(event);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
