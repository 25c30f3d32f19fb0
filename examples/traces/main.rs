//! Large traces for measuring speed, written as fast as bytes can be: shapes of real systems, not runs of a model.
//!
//! ```text
//! cargo run --release --example traces -- same --messages 10000000 > log.csv
//! cargo run --release --example traces -- otlp --spans 10000000 --services 100 > spans.jsonl
//! cargo run --release --example traces -- kieker --executions 2032573 > kieker.dat
//! cargo run --release --example traces -- angio --messages 1000000 > angio.csv
//! cargo run --release --example traces -- event-trace --messages 1000000 > events.csv
//! ```
//!
//! Each request enters the first service and goes down a chain of synchronous calls of random depth, each service to a random
//! one behind it. Traces depend on the arguments and `--seed` alone. For traces of a model use `layerfit simulate --trace`.

use std::io::{self, BufWriter, Write};

/// Longest chain of calls.
const DEEPEST: usize = 8;

/// Microseconds of work before and after a call.
const WORK_US: u64 = 250;

/// Uniform numbers (splitmix64: Steele, Lea & Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

struct Asked {
    form: String,
    /// Messages, spans or executions.
    n: u64,
    services: u64,
    seed: u64,
}

fn asked() -> Result<Asked, String> {
    let usage = "usage: traces same|otlp|kieker|angio|event-trace [--messages|--spans|--executions N] [--services N] [--seed N]";
    let mut arguments = std::env::args().skip(1);
    let mut asked = Asked { form: arguments.next().ok_or(usage)?, n: 1_000_000, services: 20, seed: 1 };
    while let Some(name) = arguments.next() {
        let value: u64 = arguments.next().and_then(|v| v.parse().ok()).ok_or_else(|| format!("{name} needs a whole number\n{usage}"))?;
        match name.as_str() {
            "--messages" | "--spans" | "--executions" => asked.n = value,
            "--services" => asked.services = value.max(2),
            "--seed" => asked.seed = value,
            _ => return Err(format!("{name} is not known\n{usage}")),
        }
    }
    Ok(asked)
}

/// A request: the services that it goes through, from its start.
struct Request {
    number: u64,
    start_us: u64,
    path: Vec<u64>,
}

/// Requests one after another, until `write` says that it is enough.
fn requests(asked: &Asked, mut write: impl FnMut(&Request) -> io::Result<bool>) -> io::Result<()> {
    let mut numbers = Numbers(asked.seed);
    let mut request = Request { number: 0, start_us: 1_700_000_000_000_000, path: Vec::new() };
    loop {
        request.number += 1;
        request.path.clear();
        request.path.push(0);
        let depth = 1 + numbers.below(DEEPEST as u64) as usize;
        while request.path.len() <= depth {
            let last = request.path[request.path.len() - 1];
            if last + 1 >= asked.services {
                break;
            }
            request.path.push(last + 1 + numbers.below(asked.services - last - 1));
        }
        if !write(&request)? {
            return Ok(());
        }
        request.start_us += 4 * WORK_US * request.path.len() as u64 + numbers.below(WORK_US);
    }
}

impl Request {
    /// When the call to place `at` of the path is made, and when it returns.
    fn times_us(&self, at: usize) -> (u64, u64) {
        let end = self.start_us + 2 * WORK_US * self.path.len() as u64;
        (self.start_us + WORK_US * at as u64, end - WORK_US * at as u64)
    }
}

fn same(asked: &Asked, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "sender,receiver,sent,time,message_type,trace,scenario")?;
    let mut n = 0;
    requests(asked, |request| {
        let name = |at: usize| if at == 0 { "client".to_owned() } else { format!("s{}", request.path[at - 1]) };
        let row = |out: &mut _, from: usize, to: usize, time: u64, what: &str, of: usize| {
            writeln!(
                out as &mut dyn Write,
                "{},{},{time},{time},op{}{what},{},all",
                name(from),
                name(to),
                request.path[of - 1],
                request.number
            )
        };
        let n_hops = request.path.len();
        for hop in 1..=n_hops {
            row(out, hop - 1, hop, request.times_us(hop).0, "", hop)?;
        }
        for hop in (1..=n_hops).rev() {
            row(out, hop, hop - 1, request.times_us(hop).1, ":reply", hop)?;
        }
        n += 2 * n_hops as u64;
        Ok(n < asked.n)
    })
}

/// One line a request: a server span each, and a client span for each call.
fn otlp(asked: &Asked, out: &mut impl Write) -> io::Result<()> {
    let mut n = 0;
    requests(asked, |request| {
        out.write_all(b"{\"resourceSpans\":[")?;
        for (at, service) in request.path.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(
                out,
                "{comma}{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s{service}\"}}}},\
                 {{\"key\":\"host.name\",\"value\":{{\"stringValue\":\"h{}\"}}}}]}},\"scopeSpans\":[{{\"spans\":[",
                service % 10
            )?;
            let parent = if at == 0 { String::new() } else { format!("\"parentSpanId\":\"{:016x}\",", 2 * at) };
            span(out, request, 2 * at + 1, &parent, 2, *service, request.times_us(at))?;
            if at + 1 < request.path.len() {
                out.write_all(b",")?;
                let parent = format!("\"parentSpanId\":\"{:016x}\",", 2 * at + 1);
                span(out, request, 2 * at + 2, &parent, 3, request.path[at + 1], request.times_us(at + 1))?;
            }
            out.write_all(b"]}]}")?;
        }
        out.write_all(b"]}\n")?;
        n += 2 * request.path.len() as u64 - 1;
        Ok(n < asked.n)
    })
}

fn span(out: &mut impl Write, of: &Request, id: usize, parent: &str, kind: u8, to: u64, times_us: (u64, u64)) -> io::Result<()> {
    write!(
        out,
        "{{\"traceId\":\"{:032x}\",\"spanId\":\"{id:016x}\",{parent}\"name\":\"GET /s{to}/items\",\"kind\":{kind},\
         \"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\",\"attributes\":[{{\"key\":\"http.request.method\",\"value\":{{\"stringValue\":\"GET\"}}}},\
         {{\"key\":\"http.route\",\"value\":{{\"stringValue\":\"/s{to}/items\"}}}}]}}",
        of.number,
        times_us.0 * 1000,
        times_us.1 * 1000
    )
}

/// Records of executions, in order of their ends, as Kieker writes them (`eoi` and `ess` say how they nest).
fn kieker(asked: &Asked, out: &mut impl Write) -> io::Result<()> {
    let mut n = 0;
    let (host, record) = ("host", "$1");
    writeln!(out, "$0;0;kieker.common.record.misc.KiekerMetadataRecord;1.15;load;{host};1;false;0;NANOSECONDS;1")?;
    requests(asked, |request| {
        for (at, service) in request.path.iter().enumerate().rev() {
            let (start, end) = request.times_us(at);
            let signature = format!("public void app.s{service}.Service.op{service}()");
            let (session, trace) = ("<no-session-id>", request.number);
            writeln!(out, "{record};{};{signature};{session};{trace};{};{};{host};{at};{at}", end * 1000, start * 1000, end * 1000)?;
        }
        n += request.path.len() as u64;
        Ok(n < asked.n)
    })
}

/// Blocking calls are activity nodes of one thread.
fn angio(asked: &Asked, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "scenario,trace,thread,thread_node,kind,child_thread,task,task_node,operation")?;
    let mut task_nodes = vec![0_u64; asked.services as usize];
    let mut n = 0;
    requests(asked, |request| {
        let last = request.path.len() - 1;
        let down = (0..=last).flat_map(|at| if at == 0 { vec![(at, true)] } else { vec![(at - 1, false), (at, true)] });
        let up = (0..=last).rev().flat_map(|at| if at == 0 { vec![(at, false)] } else { vec![(at, false), (at - 1, false)] });
        let nodes: Vec<(usize, bool)> = down.chain(up).collect();
        for (node, (at, receives)) in nodes.iter().enumerate() {
            let service = request.path[*at];
            let task_node = &mut task_nodes[service as usize];
            *task_node += 1;
            let kind = if node == 0 {
                "begin"
            } else if node + 1 == nodes.len() {
                "end"
            } else {
                "activity"
            };
            let operation = if *receives { format!("op{service}") } else { String::new() };
            writeln!(out, "all,{},1,{},{kind},,s{service},{task_node},{operation}", request.number, node + 1)?;
        }
        n += nodes.len() as u64;
        Ok(n < asked.n)
    })
}

/// One thread an operation: sends and receptions down, replies up.
fn event_trace(asked: &Asked, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "operation,thread,next_thread,event,type,task,entry,ack,cpu")?;
    let mut n = 0;
    requests(asked, |request| {
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
        n += event;
        Ok(n < asked.n)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = asked()?;
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    match asked.form.as_str() {
        "same" => same(&asked, &mut out)?,
        "otlp" => otlp(&asked, &mut out)?,
        "kieker" => kieker(&asked, &mut out)?,
        "angio" => angio(&asked, &mut out)?,
        "event-trace" => event_trace(&asked, &mut out)?,
        other => return Err(format!("\"{other}\" is not a form that is written here").into()),
    }
    Ok(out.flush()?)
}
