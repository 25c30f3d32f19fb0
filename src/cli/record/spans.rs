//! Recordings as spans, for every form that has them.
//!
//! | happens | span | starts | ends | parent |
//! |---|---|---|---|---|
//! | cycle of a customer | internal, of the reference task | cycle begins | cycle ends | |
//! | synchronous call, in the sender | client | sent | reply reached the sender | span of the sender's execution |
//! | its execution | server | accepted | all phases ended, so that a second phase outlives the client | the client span |
//! | asynchronous call, in the sender | producer | sent | sent | span of the sender's execution |
//! | its execution | consumer, linked to the producer | accepted | ended | the producer; none where traces are linked |
//! | execution of what was forwarded | server | accepted | ended | span of the forwarder's execution, which does not wait for it |
//! | arrival from outside | server | accepted | ended | |
//!
//! And-forks are client spans that overlap. A span is named after the entry; its service is the task, its instance the
//! thread, its host the processor. Traces are handed over whole, once nothing of them is under way. What is under way at the
//! end of the recording is left out.

use std::{collections::HashMap, io};

use super::{
    TraceOptions, TraceWriter,
    dirt::{Dirt, mix},
    requests::{Request, Requests, task_name},
};
use crate::{
    solve::simulate::record::{Event, Legend, RecordedEvent, RequestKind},
    trace::span::{SpanId, SpanKind, TraceId},
};

/// A span as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenSpan {
    /// Its trace.
    pub trace: TraceId,
    /// Itself.
    pub id: SpanId,
    /// Its parent.
    pub parent: Option<SpanId>,
    /// A span that it follows from.
    pub link: Option<(TraceId, SpanId)>,
    /// Its role.
    pub kind: SpanKind,
    /// Its name: the entry's.
    pub name: String,
    /// Service, instance and host.
    pub resource: WrittenResource,
    /// Task that is called, of client and producer spans.
    pub peer: Option<String>,
    /// Start, nanoseconds since 1970.
    pub start_ns: i64,
    /// End, nanoseconds since 1970.
    pub end_ns: i64,
}

/// What a span comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WrittenResource {
    /// Name of the task.
    pub service: String,
    /// Its thread, `TASK-1`.
    pub instance: String,
    /// Its processor.
    pub host: String,
}

/// Writes whole traces in one form.
pub trait SpanForm {
    /// Takes a trace, none of whose spans is missing but by loss; `tracestate` is what sampling says.
    ///
    /// # Errors
    /// Those of the output.
    fn trace(&mut self, spans: &[WrittenSpan], tracestate: Option<&str>) -> io::Result<()>;

    /// Writes what closes the document.
    ///
    /// # Errors
    /// Those of the output.
    fn finish(&mut self) -> io::Result<()>;
}

/// A trace under way.
#[derive(Debug, Default)]
struct OpenTrace {
    spans: Vec<WrittenSpan>,
    n_live: u64,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Execution {
    /// The trace of its execution.
    trace: TraceId,
    /// The trace of its sender, which may have ended since.
    sender: TraceId,
    /// When it was accepted.
    accepted: f64,
}

/// Makes spans of events.
pub struct SpanWriter<'w, F> {
    form: F,
    legend: &'w Legend,
    options: &'w TraceOptions,
    tracestate: Option<String>,
    requests: Requests,
    executions: HashMap<u64, Execution>,
    traces: HashMap<TraceId, OpenTrace>,
}

/// The identity of the span of an execution.
pub fn execution_span(request: u64) -> SpanId {
    SpanId(mix(1, request).max(1))
}

/// The identity of the span of a call in its sender.
pub fn call_span(request: u64) -> SpanId {
    SpanId(mix(2, request).max(1))
}

fn trace_id(request: u64) -> TraceId {
    TraceId(u128::from(mix(3, request)) << 64 | u128::from(mix(4, request)))
}

impl<'w, F: SpanForm> SpanWriter<'w, F> {
    /// Nothing is under way.
    pub fn new(form: F, legend: &'w Legend, options: &'w TraceOptions) -> Self {
        let tracestate = options.dirt.tracestate();
        Self { form, legend, options, tracestate, requests: Requests::default(), executions: HashMap::new(), traces: HashMap::new() }
    }

    fn dirt(&self) -> &Dirt {
        &self.options.dirt
    }

    /// The trace that the execution of a request is in.
    fn trace_of(&self, number: u64, request: &Request) -> TraceId {
        match request.by {
            Some(_) if request.kind == RequestKind::Async && self.options.linked_traces => trace_id(number),
            Some(by) => self.executions.get(&by.request).map_or_else(|| trace_id(request.cycle), |e| e.trace),
            None => trace_id(number),
        }
    }

    fn resource(&self, entry: u32, thread: u32) -> WrittenResource {
        let task = self.legend.task_of(entry);
        let service = task.name.clone();
        WrittenResource { instance: format!("{}-{}", task_name(self.legend, entry), thread + 1), host: task.processor.clone(), service }
    }

    /// A span that has ended.
    fn push(&mut self, mut span: WrittenSpan, times: [f64; 2]) {
        if self.dirt().loses(span.id.0) {
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "seconds of a clock that is off")]
        let offset_ns = (self.dirt().offset_s(&span.resource.host) * 1e9) as i64;
        let stamp = |time: f64| self.options.epoch_ns.saturating_add(self.options.nanoseconds(time)).saturating_add(offset_ns);
        (span.start_ns, span.end_ns) = (stamp(times[0]), stamp(times[1]));
        self.traces.entry(span.trace).or_default().spans.push(span);
    }

    /// The span of a call in its sender, which ends now.
    fn push_call(&mut self, number: u64, request: &Request, kind: SpanKind, end: f64) {
        let (Some(by), Some((entry, thread))) = (request.by, request.sender) else { return };
        let Some(&Execution { trace, .. }) = self.executions.get(&by.request) else { return };
        let span = WrittenSpan {
            trace,
            id: call_span(number),
            parent: Some(execution_span(by.request)),
            link: None,
            kind,
            name: self.legend.entry(request.entry).to_owned(),
            resource: self.resource(entry, thread),
            peer: Some(self.legend.task_of(request.entry).name.clone()),
            start_ns: 0,
            end_ns: 0,
        };
        self.push(span, [request.sent, end]);
    }

    fn push_execution(&mut self, number: u64, request: &Request, end: f64) {
        let Some(&Execution { trace, sender, accepted }) = self.executions.get(&number) else { return };
        let (kind, parent) = match request.kind {
            RequestKind::Cycle => (SpanKind::Internal, None),
            RequestKind::Open => (SpanKind::Server, None),
            RequestKind::Sync => (SpanKind::Server, Some(call_span(number))),
            RequestKind::Forward => (SpanKind::Server, request.by.map(|by| execution_span(by.request))),
            RequestKind::Async => (SpanKind::Consumer, (!self.options.linked_traces).then(|| call_span(number))),
        };
        let is_message = request.by.is_some() && request.kind == RequestKind::Async;
        let link = is_message.then(|| (sender, call_span(number)));
        let span = WrittenSpan {
            trace,
            id: execution_span(number),
            parent,
            link,
            kind,
            name: self.legend.entry(request.entry).to_owned(),
            resource: self.resource(request.entry, request.thread),
            peer: None,
            start_ns: 0,
            end_ns: 0,
        };
        self.push(span, [accepted, end]);
    }

    /// One request less is under way in a trace.
    fn leave(&mut self, trace: TraceId, cycle: u64) -> io::Result<()> {
        let Some(open) = self.traces.get_mut(&trace) else { return Ok(()) };
        open.n_live = open.n_live.saturating_sub(1);
        if open.n_live > 0 {
            return Ok(());
        }
        let spans = self.traces.remove(&trace).map(|open| open.spans).unwrap_or_default();
        if spans.is_empty() || !self.dirt().samples(cycle) {
            return Ok(());
        }
        self.form.trace(&spans, self.tracestate.as_deref())
    }
}

impl<F: SpanForm> TraceWriter for SpanWriter<'_, F> {
    fn event(&mut self, event: &RecordedEvent) -> io::Result<()> {
        self.requests.before(event);
        let request = self.requests.get(event.request).copied();
        match (event.event, request) {
            (Event::Sent { kind, .. }, Some(request)) => {
                let trace = self.trace_of(event.request, &request);
                self.traces.entry(trace).or_default().n_live += 1;
                let sender = request.by.and_then(|by| self.executions.get(&by.request)).map_or(trace, |by| by.trace);
                self.executions.insert(event.request, Execution { trace, sender, accepted: event.time });
                if kind == RequestKind::Async {
                    self.push_call(event.request, &request, SpanKind::Producer, event.time);
                }
            }
            (Event::Accepted { .. }, _) => {
                if let Some(execution) = self.executions.get_mut(&event.request) {
                    execution.accepted = event.time;
                }
            }
            (Event::Replied { chain, .. }, _) => {
                if let Some(first) = self.requests.get(chain).copied() {
                    self.push_call(chain, &first, SpanKind::Client, event.time);
                }
            }
            (Event::Ended, Some(request)) => {
                self.push_execution(event.request, &request, event.time);
                if let Some(Execution { trace, .. }) = self.executions.remove(&event.request) {
                    self.leave(trace, request.cycle)?;
                }
            }
            (Event::Lost, Some(request)) => {
                if let Some(Execution { trace, .. }) = self.executions.remove(&event.request) {
                    self.leave(trace, request.cycle)?;
                }
            }
            _ => {}
        }
        self.requests.after(event);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.form.finish()
    }
}
