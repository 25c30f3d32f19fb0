//! Recordings as angio traces, in the form that Hrischuk et al. (1999), section 4, define and that is read here.
//!
//! | happens | nodes |
//! |---|---|
//! | cycle begins, arrival is accepted | begin of thread 1 |
//! | synchronous call | activity of the sender; activity of the receiver, when it accepts |
//! | its reply, at the end | activity of the replier, activity of the client, in one thread |
//! | its reply, where a second phase follows, the request was forwarded, or the replier goes on in another thread than it was asked in | fork of the replier; begin of the client in the new thread |
//! | asynchronous call, forwarding | fork of the sender; begin of the receiver, when it accepts |
//! | and-fork | fork and begin of the task itself, for every branch but the first; the end of each, where the form has no join |
//! | execution ends | end, unless its thread went back with the reply |
//!
//! Node counters are by thread of each recording, and by task over all recordings; a task is one thread, `TASK@1`, of its
//! service. The demand (microseconds) of an activity node is what its branch used of the processor since its last node that
//! could carry it; where a fork or an end follows, an activity node of its own carries it. `operation` is the entry, on the
//! node that receives the request.

use std::{collections::HashMap, io, io::Write};

use super::{
    TraceOptions, TraceWriter,
    requests::{Request, Requests, scenario, task_name},
    threads::{Runner, Threads},
};
use crate::solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind};

/// The columns.
const HEADER: [&str; 12] =
    ["scenario", "trace", "thread", "thread_node", "kind", "child_thread", "task", "task_node", "service", "operation", "time", "demand"];

/// Writes an angio trace.
pub struct AngioWriter<'w, W: Write> {
    out: csv::Writer<W>,
    legend: &'w Legend,
    options: &'w TraceOptions,
    requests: Requests,
    threads: Threads,
    /// Nodes of each task so far.
    task_nodes: HashMap<String, u64>,
    /// Threads in which the synchronous calls under way were accepted.
    asked_in: HashMap<u64, u64>,
    /// Scenario of each cycle, while its first request is under way or anything of it is.
    scenarios: HashMap<u64, String>,
}

/// What a node is.
#[derive(Clone, Copy)]
enum Label {
    Begin,
    Activity,
    Fork(u64),
    End,
}

impl<'w, W: Write> AngioWriter<'w, W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, legend: &'w Legend, options: &'w TraceOptions) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(HEADER)?;
        let (requests, threads, task_nodes, asked_in, scenarios) = Default::default();
        Ok(Self { out, legend, options, requests, threads, task_nodes, asked_in, scenarios })
    }

    /// A node of a branch of an execution, on its thread.
    fn node(&mut self, runner: Runner, label: Label, time: f64, operation: &str) -> io::Result<()> {
        let Some(Request { cycle, entry, thread: of_task, .. }) = self.requests.get(runner.0).copied() else { return Ok(()) };
        let demand = self.threads.take_demand(runner);
        if demand > 0.0 && !matches!(label, Label::Activity) {
            self.row(runner, cycle, (entry, of_task), Label::Activity, time, "", demand)?;
        }
        let demand = if matches!(label, Label::Activity) { demand } else { 0.0 };
        self.row(runner, cycle, (entry, of_task), label, time, operation, demand)
    }

    #[expect(clippy::too_many_arguments, reason = "they are the columns of a row")]
    fn row(
        &mut self,
        runner: Runner,
        cycle: u64,
        (entry, of_task): (u32, u32),
        label: Label,
        time: f64,
        operation: &str,
        demand: f64,
    ) -> io::Result<()> {
        let thread = self.threads.of(runner);
        let thread_node = self.threads.next(cycle, thread);
        let service = task_name(self.legend, entry);
        let task = format!("{service}@{}", of_task + 1);
        let task_node = self.task_nodes.entry(task.clone()).or_insert(0);
        *task_node += 1;
        let (kind, child) = match label {
            Label::Begin => ("begin", String::new()),
            Label::Activity => ("activity", String::new()),
            Label::Fork(child) => ("fork", child.to_string()),
            Label::End => ("end", String::new()),
        };
        let demand = if demand > 0.0 { self.options.microseconds(demand).to_string() } else { String::new() };
        let scenario = self.scenarios.get(&cycle).map_or("", String::as_str);
        let numbers = [cycle, thread, thread_node, *task_node].map(|n| n.to_string());
        let time = self.options.microseconds(time).to_string();
        let row: [&str; HEADER.len()] =
            [scenario, &numbers[0], &numbers[1], &numbers[2], kind, &child, &task, &numbers[3], &service, operation, &time, &demand];
        Ok(self.out.write_record(row)?)
    }

    fn sent(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        let Some(by) = request.by else {
            self.scenarios.insert(request.cycle, scenario(self.legend, request.kind, request.entry));
            return Ok(());
        };
        let runner = (by.request, by.branch);
        if request.kind == RequestKind::Sync {
            self.node(runner, Label::Activity, event.time, "")?;
            self.threads.send(event.request, self.threads.of(runner));
            return Ok(());
        }
        let child = self.threads.fork(request.cycle);
        self.threads.send(event.request, child);
        self.node(runner, Label::Fork(child), event.time, "")
    }

    fn accepted(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        let thread = self.threads.accept(event.request, request.cycle);
        let label = if request.kind == RequestKind::Sync { Label::Activity } else { Label::Begin };
        if request.kind == RequestKind::Sync {
            self.asked_in.insert(event.request, thread);
        }
        let legend = self.legend;
        self.node((event.request, 0), label, event.time, legend.entry(request.entry))
    }

    fn replied(&mut self, event: &RecordedEvent, request: &Request, chain: u64, ends: bool) -> io::Result<()> {
        let Some(by) = self.requests.get(chain).and_then(|first| first.by) else { return Ok(()) };
        let (runner, client) = ((event.request, 0), (by.request, by.branch));
        if ends && self.is_in_the_thread_of_its_call(event.request) {
            self.requests.give_back(event.request);
            self.node(runner, Label::Activity, event.time, "")?;
            self.threads.put(client, self.threads.of(runner));
            return self.node(client, Label::Activity, event.time, "");
        }
        let child = self.threads.fork(request.cycle);
        self.node(runner, Label::Fork(child), event.time, "")?;
        self.threads.put(client, child);
        self.node(client, Label::Begin, event.time, "")
    }

    /// Whether an execution is of a synchronous call and runs in the thread that it was accepted in: that of an answer to a call
    /// of its own may be another.
    fn is_in_the_thread_of_its_call(&self, request: u64) -> bool {
        self.asked_in.get(&request).is_some_and(|thread| *thread == self.threads.of((request, 0)))
    }

    fn write(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        match event.event {
            Event::Sent { .. } => self.sent(event, request),
            Event::Accepted { .. } => self.accepted(event, request),
            Event::Replied { chain, ends } => self.replied(event, request, chain, ends),
            Event::BranchBegan { branch, from, position, .. } if position > 0 => {
                let child = self.threads.fork(request.cycle);
                self.node((event.request, from), Label::Fork(child), event.time, "")?;
                self.threads.put((event.request, branch), child);
                self.node((event.request, branch), Label::Begin, event.time, "")
            }
            Event::BranchEnded { branch } if self.threads.branch((event.request, branch)).1 > 0 => {
                self.node((event.request, branch), Label::End, event.time, "")
            }
            Event::Ended if !self.requests.gave_back(event.request) => self.node((event.request, 0), Label::End, event.time, ""),
            _ => Ok(()),
        }
    }
}

impl<W: Write> TraceWriter for AngioWriter<'_, W> {
    fn event(&mut self, event: &RecordedEvent) -> io::Result<()> {
        self.requests.before(event);
        self.threads.before(event);
        let Some(request) = self.requests.get(event.request).copied() else { return Ok(()) };
        self.write(event, &request)?;
        if matches!(event.event, Event::Ended | Event::Lost) {
            self.asked_in.remove(&event.request);
        }
        self.threads.after(event, request.cycle);
        self.requests.after(event);
        if !self.threads.is_under_way(request.cycle) {
            self.scenarios.remove(&request.cycle);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
