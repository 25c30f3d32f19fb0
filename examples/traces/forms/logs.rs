//! Angio traces, event traces, call-path records and Kieker logs.

use std::io::{self, Write};

use super::{Asked, Numbers, Parts, Request, requests};

const ANGIO_HEADER: &str = "scenario,trace,thread,thread_node,kind,child_thread,task,task_node,operation,activity,demand";

/// Executions of a trace of Kieker's, on average: 2,032,573 in 36,036 traces.
const KIEKER_EXECUTIONS: u64 = 56;

/// Counters of the tasks.
struct TaskNodes(Vec<u64>);

impl TaskNodes {
    fn new(asked: &Asked) -> Self {
        Self(vec![0; asked.services as usize])
    }

    /// The end of a row, from the task on.
    fn rest(&mut self, service: u64, operation: Option<&str>) -> String {
        let node = &mut self.0[service as usize];
        *node += 1;
        match operation {
            Some(operation) => format!("s{service},{node},{operation}{service},,"),
            None => format!("s{service},{node},,work,125"),
        }
    }
}

/// A recording for each request: blocking calls are activity nodes of one thread.
pub(super) fn angio(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    out.header(ANGIO_HEADER)?;
    let mut task_nodes = TaskNodes::new(asked);
    requests(asked, out, |out, request| {
        let n_nodes = request.walk().count();
        for (node, (at, receives)) in request.walk().enumerate() {
            let kind = match node {
                0 => "begin",
                _ if node + 1 == n_nodes => "end",
                _ => "activity",
            };
            let rest = task_nodes.rest(request.path[at], receives.then_some("op"));
            writeln!(out, "all,{},1,{},{kind},,{rest}", request.number, node + 1)?;
        }
        Ok(n_nodes as u64)
    })
}

/// All requests in one recording, one after another; every second leaves a note behind, which is a thread of its own.
pub(super) fn angio_of_one_recording(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    out.header(ANGIO_HEADER)?;
    let mut task_nodes = TaskNodes::new(asked);
    let (mut node, mut thread) = (1, 1_u64);
    writeln!(out, "all,one,1,1,begin,,{}", task_nodes.rest(0, Some("op")))?;
    let notes = asked.services - 1;
    let n = requests(asked, out, |out, request| {
        let mut n = 0;
        for (at, receives) in request.walk().skip(1) {
            node += 1;
            n += 1;
            let rest = task_nodes.rest(request.path[at], receives.then_some("op"));
            writeln!(out, "all,one,1,{node},activity,,{rest}")?;
        }
        if request.number.is_multiple_of(2) && !request.path.contains(&notes) {
            node += 1;
            thread += 1;
            n += 3;
            writeln!(out, "all,one,1,{node},fork,{thread},{}", task_nodes.rest(0, None))?;
            writeln!(out, "all,one,{thread},1,begin,,{}", task_nodes.rest(notes, Some("note")))?;
            writeln!(out, "all,one,{thread},2,end,,{}", task_nodes.rest(notes, None))?;
        }
        Ok(n)
    })?;
    writeln!(out, "all,one,1,{},end,,{}", node + 1, task_nodes.rest(0, None))?;
    Ok(n + 2)
}

/// One thread an operation: sendings and receptions down, replies up.
pub(super) fn event_trace(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    out.header("operation,thread,next_thread,event,type,task,entry,ack,cpu")?;
    requests(asked, out, |out, request| {
        let last = request.path.len() - 1;
        let mut event = 0;
        let mut row = |kind: &str, at: usize| {
            event += 1;
            let service = request.path[at];
            writeln!(out, "{},1,,{event},{kind},s{service},op{service},,", request.number)
        };
        row("Ex", 0)?;
        for at in 1..=last {
            row("Se", at - 1)?;
            row("Re", at)?;
        }
        for at in (1..=last).rev() {
            row("Sa", at)?;
            row("Ra", at - 1)?;
        }
        row("En", 0)?;
        Ok(event)
    })
}

/// An entry and an exit for each service on the way.
pub(super) fn call_path(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    out.header("record_id,time,kind,component,method,context_id,transaction_id,server")?;
    let mut id = 0_u64;
    requests(asked, out, |out, request: &Request| {
        let mut row = |kind: &str, at: usize, time_us: u64| {
            id += 1;
            let service = request.path[at];
            let number = request.number;
            writeln!(out, "{id},{},{kind},app.s{service}.Service,op{service},{number},{number},h{}", time_us * 1000, service % 10)
        };
        for at in 0..request.path.len() {
            row("entry", at, request.times_us(at).0)?;
        }
        for at in (0..request.path.len()).rev() {
            row("exit", at, request.times_us(at).1)?;
        }
        Ok(2 * request.path.len() as u64)
    })
}

/// Records of executions in order of their ends, as Kieker writes them (`eoi` and `ess` say how they nest): each trace is a
/// random tree, with loops and branches.
pub(super) fn kieker(asked: &Asked, out: &mut Parts<'_>) -> io::Result<u64> {
    out.header("$0;0;kieker.common.record.misc.KiekerMetadataRecord;1.15;load;host;1;false;0;NANOSECONDS;1")?;
    let mut numbers = Numbers(asked.seed);
    let (mut n, mut trace, mut clock_ns) = (0, 6_488_138_950_668_976_129_u64, 1_283_156_498_770_302_094_u64);
    // Open executions: order of entry, service, start.
    let mut open: Vec<(u64, u64, u64)> = Vec::new();
    loop {
        let n_executions = 1 + numbers.below(2 * KIEKER_EXECUTIONS);
        for order in 0..n_executions {
            let depth = if order == 0 { 0 } else { 1 + numbers.below(open.len().min(7) as u64) as usize };
            while open.len() > depth {
                clock_ns += 1000 + numbers.below(1000);
                execution(out, trace, &mut open, clock_ns)?;
            }
            clock_ns += 500 + numbers.below(1000);
            let service = if order == 0 { 0 } else { (6 * depth as u64 + numbers.below(6)) % asked.services };
            open.push((order, service, clock_ns));
        }
        while !open.is_empty() {
            clock_ns += 1000;
            execution(out, trace, &mut open, clock_ns)?;
        }
        n += n_executions;
        trace += 1;
        if !out.goes_on(n) {
            return Ok(n);
        }
    }
}

/// The end of the innermost execution.
fn execution(out: &mut Parts<'_>, trace: u64, open: &mut Vec<(u64, u64, u64)>, end_ns: u64) -> io::Result<()> {
    let Some((eoi, service, start_ns)) = open.pop() else { return Ok(()) };
    let signature = format!("public void org.example.shop.module{0}.Service{service}.operation(java.lang.String, int)", service % 7);
    let (session, host, ess) = ("<no-session-id>", service % 3, open.len());
    writeln!(out, "$1;{end_ns};{signature};{session};{trace};{start_ns};{end_ns};host-{host};{eoi};{ess}")
}
