//! Bounds of the service: everything that a client can make large or long is bounded here.

use std::time::Duration;

use crate::fit::trials::Bounds;

/// Bounds on requests. Sizes are of bodies after decompression unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request that only says what is wanted, bytes.
    pub control_bytes: usize,
    /// Largest model, bytes.
    pub model_bytes: usize,
    /// Largest set of trials, bytes.
    pub trials_bytes: usize,
    /// Most trials, columns and cells of a set of trials.
    pub trials: Bounds,
    /// Largest trace as sent, bytes.
    pub trace_sent_bytes: usize,
    /// Largest trace after decompression, bytes.
    pub trace_bytes: usize,
    /// Bodies of all requests together as sent, once they come, bytes; and those that were compressed, bytes after decompression. What is
    /// below 64 KiB does not count; an eighth is kept for bodies of up to a sixty-fourth.
    pub sent_bodies_bytes: usize,
    /// See [`Limits::sent_bodies_bytes`].
    pub decompressed_bodies_bytes: usize,
    /// Longest that a request waits for room for its body.
    pub room_time: Duration,
    /// Items on a page of a list when the client does not say.
    pub page_default: u32,
    /// Most items on a page.
    pub page_max: u32,
    /// Longest a client may take to send the head of a request, from when it may: also how long a connection stays open that asks nothing.
    pub head_time: Duration,
    /// Longest a client may take nothing of a response that is there: what it does not read is held for it.
    pub write_time: Duration,
    /// Longest a client may take to send a body.
    pub body_time: Duration,
    /// Longest until the head of a response, the body's arrival included.
    pub request_time: Duration,
    /// Between two signs of life on an event stream, so that proxies keep it open.
    pub event_keep_alive: Duration,
    /// Computations for requests (models read, predictions) that run at the same time; as many long ones (searches, designs, sweeps of many
    /// operating points) beside them, and one that reads a whole trace.
    pub n_computations: usize,
    /// Trials, parameters or measures that one request may name.
    pub names_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A fit with a thousand parameters takes a tenth of it.
            control_bytes: 1 << 20,
            // The largest models of the literature have some thousand entries: a few MiB of XML.
            model_bytes: 16 << 20,
            // Trials of a hundred columns with all digits.
            trials_bytes: 16 << 20,
            // A cell takes some hundred bytes while it is read and answered; a fit of so many trials is one of hours. The documentation of
            // `create_trials` has the numbers.
            trials: Bounds { n_trials: 100_000, n_columns: 1000, n_cells: 1_000_000 },
            // What is sent is held in memory while it is read.
            trace_sent_bytes: 64 << 20,
            // Message logs shrink to a tenth and less; a bomb shrinks to a thousandth.
            trace_bytes: 256 << 20,
            // Four of the largest traces, and after decompression two of them, beside small bodies.
            sent_bodies_bytes: 293 << 20,
            decompressed_bodies_bytes: 586 << 20,
            // Longer than a large trace takes to be decompressed and stored.
            room_time: Duration::from_secs(30),
            page_default: 50,
            page_max: 500,
            // Longer than exporters and dashboards wait between two requests on one connection.
            head_time: Duration::from_secs(75),
            // Longer than networks are out that come back.
            write_time: Duration::from_secs(60),
            // A full trace at 1 MiB/s.
            body_time: Duration::from_secs(90),
            // Proxies commonly give up after 120 s; the longest computation of a request is a prediction over a full grid.
            request_time: Duration::from_secs(110),
            event_keep_alive: Duration::from_secs(15),
            // The rest of the cores' time is the jobs'.
            n_computations: std::thread::available_parallelism().map_or(1, usize::from),
            names_max: 1000,
        }
    }
}
