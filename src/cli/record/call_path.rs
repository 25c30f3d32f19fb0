//! Recordings as call-path records (Brosig et al. 2011, section II.A): entries into and exits from services.
//!
//! | happens | records |
//! |---|---|
//! | cycle begins, call or arrival is accepted | entry; of an asynchronous call or an arrival a receive before it, in a new transaction |
//! | reply reaches the client | exit of the replier, then of those that forwarded to it: their frames are nested |
//! | asynchronous call | send, in the sender's transaction |
//! | second phase begins | send to the service `ENTRY.second_phase`, whose receive, entry and exit are a transaction of its own |
//! | and-fork | the same with the service `ENTRY.branch_N`, for every branch but the first |
//!
//! The context is the cycle, a transaction is numbered within it; a component is a task, a method an entry, a server a
//! processor. Times are nanoseconds. What the form has no words for: forwarding is a nested call; second phases and branches
//! are messages of a service to itself.

use std::{collections::HashMap, io, io::Write};

use super::{
    TraceOptions, TraceWriter,
    requests::{Request, Requests, task_name},
};
use crate::solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind};

/// Writes call-path records.
pub struct CallPathWriter<'w, W: Write> {
    out: csv::Writer<W>,
    legend: &'w Legend,
    options: &'w TraceOptions,
    requests: Requests,
    /// Transaction of each branch under way, with the service if it is one of its own.
    transactions: HashMap<(u64, u32), (u64, Option<String>)>,
    /// Transactions of each cycle, and its requests under way.
    cycles: HashMap<u64, (u64, u64)>,
    /// Executions whose frames are open, of each chain.
    chains: HashMap<u64, Vec<Frame>>,
    n_records: u64,
}

/// Where a record is from.
#[derive(Clone, Copy)]
struct Frame {
    entry: u32,
    thread: u32,
    transaction: u64,
}

impl<'w, W: Write> CallPathWriter<'w, W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, legend: &'w Legend, options: &'w TraceOptions) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        let columns =
            ["record_id", "time", "kind", "component", "method", "context_id", "transaction_id", "server", "thread", "message_id"];
        out.write_record(columns)?;
        let (requests, transactions, cycles, chains) = Default::default();
        Ok(Self { out, legend, options, requests, transactions, cycles, chains, n_records: 0 })
    }

    /// A record made at `frame` about a service.
    fn row(&mut self, time: f64, kind: &str, frame: Frame, service: (&str, &str), cycle: u64, message: &str) -> io::Result<()> {
        self.n_records += 1;
        let task = self.legend.task_of(frame.entry);
        let time = self.options.nanoseconds(time).to_string();
        let (id, context, transaction) = (self.n_records.to_string(), cycle.to_string(), frame.transaction.to_string());
        let thread = (frame.thread + 1).to_string();
        let row = [&id, &time, kind, service.0, service.1, &context, &transaction, &task.processor, &thread, message];
        Ok(self.out.write_record(row)?)
    }

    fn own_row(&mut self, time: f64, kind: &str, frame: Frame, cycle: u64, message: &str) -> io::Result<()> {
        let (component, legend) = (task_name(self.legend, frame.entry), self.legend);
        self.row(time, kind, frame, (&component, legend.entry(frame.entry)), cycle, message)
    }

    fn new_transaction(&mut self, cycle: u64) -> u64 {
        let of = self.cycles.entry(cycle).or_default();
        of.0 += 1;
        of.0
    }

    fn transaction(&self, runner: (u64, u32)) -> u64 {
        self.transactions.get(&runner).map_or(1, |t| t.0)
    }

    fn sent(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        self.cycles.entry(request.cycle).or_default().1 += 1;
        let Some(by) = request.by else { return Ok(()) };
        let transaction = self.transaction((by.request, by.branch));
        if request.kind != RequestKind::Async {
            self.transactions.insert((event.request, 0), (transaction, None));
            let go_on = request.kind == RequestKind::Forward && !matches!(event.event, Event::Sent { ends: true, .. });
            return if go_on { self.second_phase(event.time, by.request) } else { Ok(()) };
        }
        let Some((entry, thread)) = request.sender else { return Ok(()) };
        let (component, legend) = (task_name(self.legend, request.entry), self.legend);
        let service = (component.as_str(), legend.entry(request.entry));
        self.row(event.time, "send", Frame { entry, thread, transaction }, service, request.cycle, &event.request.to_string())
    }

    fn accepted(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        let is_nested = matches!(request.kind, RequestKind::Sync | RequestKind::Forward);
        if !is_nested {
            let transaction = self.new_transaction(request.cycle);
            self.transactions.insert((event.request, 0), (transaction, None));
        }
        let frame = Frame { entry: request.entry, thread: request.thread, transaction: self.transaction((event.request, 0)) };
        if is_nested {
            self.chains.entry(request.chain).or_default().push(frame);
        }
        if matches!(request.kind, RequestKind::Async | RequestKind::Open) {
            self.own_row(event.time, "receive", frame, request.cycle, &event.request.to_string())?;
        }
        self.own_row(event.time, "entry", frame, request.cycle, "")
    }

    /// What runs goes on in a transaction of its own, in a service named after it.
    fn split(&mut self, time: f64, runner: (u64, u32), from: u64, name: &str) -> io::Result<()> {
        let Some(request) = self.requests.get(runner.0).copied() else { return Ok(()) };
        let (component, method) = (task_name(self.legend, request.entry), format!("{}.{name}", self.legend.entry(request.entry)));
        let message = format!("{}.{}.{name}", runner.0, runner.1);
        let frame = |transaction| Frame { entry: request.entry, thread: request.thread, transaction };
        self.row(time, "send", frame(from), (&component, &method), request.cycle, &message)?;
        let transaction = self.new_transaction(request.cycle);
        self.row(time, "receive", frame(transaction), (&component, &method), request.cycle, &message)?;
        self.row(time, "entry", frame(transaction), (&component, &method), request.cycle, "")?;
        self.transactions.insert(runner, (transaction, Some(method)));
        Ok(())
    }

    fn second_phase(&mut self, time: f64, request: u64) -> io::Result<()> {
        self.split(time, (request, 0), self.transaction((request, 0)), "second_phase")
    }

    /// The end of what ran in a transaction of its own.
    fn exit_split(&mut self, time: f64, runner: (u64, u32)) -> io::Result<()> {
        let (Some((transaction, Some(method))), Some(request)) = (self.transactions.remove(&runner), self.requests.get(runner.0).copied())
        else {
            return Ok(());
        };
        let component = task_name(self.legend, request.entry);
        let frame = Frame { entry: request.entry, thread: request.thread, transaction };
        self.row(time, "exit", frame, (&component, &method), request.cycle, "")
    }

    fn replied(&mut self, event: &RecordedEvent, request: &Request, chain: u64, ends: bool) -> io::Result<()> {
        if !ends {
            self.second_phase(event.time, event.request)?;
        }
        for frame in self.chains.remove(&chain).unwrap_or_default().into_iter().rev() {
            self.own_row(event.time, "exit", frame, request.cycle, "")?;
        }
        Ok(())
    }

    fn ended(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        if matches!(request.kind, RequestKind::Sync | RequestKind::Forward) {
            return self.exit_split(event.time, (event.request, 0));
        }
        let transaction = self.transaction((event.request, 0));
        self.own_row(event.time, "exit", Frame { entry: request.entry, thread: request.thread, transaction }, request.cycle, "")
    }

    fn write(&mut self, event: &RecordedEvent, request: &Request) -> io::Result<()> {
        match event.event {
            Event::Sent { .. } => self.sent(event, request),
            Event::Accepted { .. } => self.accepted(event, request),
            Event::Replied { chain, ends } => self.replied(event, request, chain, ends),
            Event::BranchBegan { branch, from, position, .. } => {
                let around = self.transaction((event.request, from));
                if position == 0 {
                    self.transactions.insert((event.request, branch), (around, None));
                    return Ok(());
                }
                self.split(event.time, (event.request, branch), around, &format!("branch_{}", position + 1))
            }
            Event::BranchEnded { branch } => self.exit_split(event.time, (event.request, branch)),
            Event::Ended => self.ended(event, request),
            _ => Ok(()),
        }
    }

    /// Forgets what has ended.
    fn forget(&mut self, event: &RecordedEvent, cycle: u64) {
        if !matches!(event.event, Event::Ended | Event::Lost) {
            return;
        }
        self.transactions.remove(&(event.request, 0));
        if let Some(of) = self.cycles.get_mut(&cycle) {
            of.1 -= 1;
            if of.1 == 0 {
                self.cycles.remove(&cycle);
            }
        }
    }
}

impl<W: Write> TraceWriter for CallPathWriter<'_, W> {
    fn event(&mut self, event: &RecordedEvent) -> io::Result<()> {
        self.requests.before(event);
        let Some(request) = self.requests.get(event.request).copied() else { return Ok(()) };
        self.write(event, &request)?;
        self.forget(event, request.cycle);
        self.requests.after(event);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
