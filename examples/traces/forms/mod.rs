//! The forms of traces that are written: requests of one shape, as each format would have recorded them.
//!
//! Each request enters the first service and goes down a chain of synchronous calls of random depth, each service to a random
//! one behind it; the forms that need another shape say so.

mod logs;
mod messages;
mod protobuf;
mod spans;

use std::io::{self, BufWriter, Write};

/// Longest chain of calls.
const DEEPEST: usize = 8;

/// Microseconds of work before and after a call.
const WORK_US: u64 = 250;

/// Names of the forms, with what is counted of each.
pub const FORMS: [(&str, &str); 12] = [
    ("same", "messages"),
    ("same-ends", "messages"),
    ("same-recordings", "messages"),
    ("angio", "events"),
    ("angio-one", "events"),
    ("event-trace", "events"),
    ("call-path", "records"),
    ("kieker", "executions"),
    ("otlp", "spans"),
    ("otlp-protobuf", "spans"),
    ("jaeger", "spans"),
    ("zipkin", "spans"),
];

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Asked {
    /// One of [`FORMS`].
    pub form: String,
    /// Messages, events, spans or executions, at least.
    pub n: u64,
    /// How many services there are.
    pub services: u64,
    /// Of all that is random.
    pub seed: u64,
}

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

/// Where a trace goes: one file after another, each with the header, each about as long.
pub struct Parts<'w> {
    parts: Vec<BufWriter<Box<dyn Write + 'w>>>,
    at: usize,
    /// What the whole will have.
    n: u64,
}

impl<'w> Parts<'w> {
    fn new(parts: Vec<Box<dyn Write + 'w>>, n: u64) -> Self {
        let parts = parts.into_iter().map(|part| BufWriter::with_capacity(1 << 20, part)).collect();
        Self { parts, at: 0, n }
    }

    /// A line that every part starts with.
    fn header(&mut self, line: &str) -> io::Result<()> {
        self.parts.iter_mut().try_for_each(|part| writeln!(part, "{line}"))
    }

    /// Whether more than the `done` so far are wanted, which go to the part that it is the turn of.
    fn goes_on(&mut self, done: u64) -> bool {
        let turn = done.saturating_mul(self.parts.len() as u64) / self.n.max(1);
        self.at = usize::try_from(turn).unwrap_or(usize::MAX).min(self.parts.len() - 1);
        done < self.n
    }
}

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.parts[self.at].write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.parts.iter_mut().try_for_each(Write::flush)
    }
}

/// Writes what is asked for, divided among `parts` where one request ends; returns how many messages, events, spans or
/// executions that were.
///
/// # Errors
/// A form that is not known, or that a part cannot be written.
pub fn write(asked: &Asked, parts: Vec<Box<dyn Write + '_>>) -> io::Result<u64> {
    let mut out = Parts::new(parts, asked.n);
    let n = match asked.form.as_str() {
        "same" => messages::clients(asked, &mut out, false)?,
        "same-ends" => messages::clients(asked, &mut out, true)?,
        "same-recordings" => messages::recordings(asked, &mut out)?,
        "angio" => logs::angio(asked, &mut out)?,
        "angio-one" => logs::angio_of_one_recording(asked, &mut out)?,
        "event-trace" => logs::event_trace(asked, &mut out)?,
        "call-path" => logs::call_path(asked, &mut out)?,
        "kieker" => logs::kieker(asked, &mut out)?,
        "otlp" => spans::otlp(asked, &mut out)?,
        "otlp-protobuf" => protobuf::otlp(asked, &mut out)?,
        "jaeger" => spans::jaeger(asked, &mut out)?,
        "zipkin" => spans::zipkin(asked, &mut out)?,
        other => return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("\"{other}\" is not a form that is written here"))),
    };
    out.flush()?;
    Ok(n)
}

/// A request: the services that it goes through, from its start.
struct Request {
    number: u64,
    start_us: u64,
    path: Vec<u64>,
}

/// Requests one after another, until `write`, which gives how many messages it wrote, has written enough.
fn requests(asked: &Asked, out: &mut Parts<'_>, mut write: impl FnMut(&mut Parts<'_>, &Request) -> io::Result<u64>) -> io::Result<u64> {
    let mut numbers = Numbers(asked.seed);
    let mut request = Request { number: 0, start_us: 1_700_000_000_000_000, path: Vec::new() };
    let mut n = 0;
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
        n += write(out, &request)?;
        if !out.goes_on(n) {
            return Ok(n);
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

    /// Places of the path in the order in which they work, and whether each begins a request then.
    fn walk(&self) -> impl Iterator<Item = (usize, bool)> {
        let last = self.path.len() - 1;
        let down = (0..=last).flat_map(|at| [(at.saturating_sub(1), false), (at, true)]).skip(1);
        let up = (0..=last).rev().flat_map(|at| [(at, false), (at.saturating_sub(1), false)]);
        down.chain(up.take(2 * last + 1))
    }
}
