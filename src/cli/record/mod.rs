//! Recorded runs of a model, written as traces of every form that is read.
//!
//! Input: the events of [`crate::solve::simulate::record`], in their order; output: bytes of one trace form. Each writer holds
//! what is under way and nothing else, so that recordings of any length are written in bounded memory.
//!
//! | form | file | carries |
//! |---|---|---|
//! | `same` | [`same`] | messages with the times of sending and acceptance |
//! | `angio` | [`angio`] | events of scenario threads and tasks with their node counters |
//! | `event-trace` | [`event_trace`] | events with thread and event indices |
//! | `call-path` | [`call_path`] | entries into and exits from services |
//! | `otlp`, `jaeger`, `zipkin` | [`otlp`], [`jaeger`], [`zipkin`] | spans ([`spans`]), which can be made to suffer what real ones do ([`dirt`]) |
//!
//! What a form has no words for is written in the nearest that it has; each file says what that is.

pub mod angio;
pub mod call_path;
pub mod dirt;
pub mod event_trace;
pub mod jaeger;
pub mod otlp;
pub mod same;
pub mod spans;
pub mod zipkin;

mod requests;
mod threads;

use std::{
    io::{self, Write},
    str::FromStr,
};

use crate::solve::simulate::record::{Legend, RecordedEvent};
pub use dirt::Dirt;

/// The form of a written trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceForm {
    /// Message log.
    Same,
    /// Angio trace.
    Angio,
    /// Event trace.
    EventTrace,
    /// Call-path records.
    CallPath,
    /// OpenTelemetry, JSON lines as the collector's file exporter writes.
    Otlp,
    /// Jaeger, JSON as its UI exports.
    Jaeger,
    /// Zipkin v2 JSON.
    Zipkin,
}

impl TraceForm {
    /// All forms.
    pub const ALL: [Self; 7] = [Self::Same, Self::Angio, Self::EventTrace, Self::CallPath, Self::Otlp, Self::Jaeger, Self::Zipkin];

    /// Its name, as the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Angio => "angio",
            Self::EventTrace => "event-trace",
            Self::CallPath => "call-path",
            Self::Otlp => "otlp",
            Self::Jaeger => "jaeger",
            Self::Zipkin => "zipkin",
        }
    }

    /// Whether it is of spans.
    pub fn has_spans(self) -> bool {
        matches!(self, Self::Otlp | Self::Jaeger | Self::Zipkin)
    }
}

/// A trace form's name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is not a trace form that is written here: expected same, angio, event-trace, call-path, otlp, jaeger or zipkin")]
pub struct UnknownForm {
    /// The name as given.
    pub name: String,
}

impl FromStr for TraceForm {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        Self::ALL.into_iter().find(|form| form.name() == name).ok_or_else(|| UnknownForm { name: name.to_owned() })
    }
}

/// How recordings are written.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// Seconds of the model's time unit, > 0.
    pub seconds_per_unit: f64,
    /// Whether message logs keep the cycles apart, in the columns `trace` and `scenario`.
    pub cycles_apart: bool,
    /// Whether message logs have a row for each end of a message instead of one for the whole.
    pub ends_apart: bool,
    /// Whether forks of event traces say which of them carry replies.
    pub acks: bool,
    /// Whether events of event traces carry CPU times.
    pub cpu: bool,
    /// Whether what handles a message begins a trace of its own, linked to the sender's; otherwise it is of the same trace.
    pub linked_traces: bool,
    /// Nanoseconds since 1970 at the model's time 0, of spans.
    pub epoch_ns: i64,
    /// What spans suffer on their way.
    pub dirt: Dirt,
}

/// 2024-01-01T00:00:00Z in nanoseconds since 1970.
const EPOCH_NS: i64 = 1_704_067_200_000_000_000;

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            seconds_per_unit: 1.0,
            cycles_apart: true,
            ends_apart: false,
            acks: true,
            cpu: true,
            linked_traces: false,
            epoch_ns: EPOCH_NS,
            dirt: Dirt::default(),
        }
    }
}

impl TraceOptions {
    /// Microseconds of a model time.
    fn microseconds(&self, time: f64) -> f64 {
        time * self.seconds_per_unit * 1e6
    }

    /// Nanoseconds of a model time.
    #[expect(clippy::cast_possible_truncation, reason = "a time beyond 292 years is cut to them")]
    fn nanoseconds(&self, time: f64) -> i64 {
        (time * self.seconds_per_unit * 1e9).round() as i64
    }
}

/// Writes one form.
pub trait TraceWriter {
    /// Takes the next event.
    ///
    /// # Errors
    /// Those of the output.
    fn event(&mut self, event: &RecordedEvent) -> io::Result<()>;

    /// Writes what is left: of spans those that did not end.
    ///
    /// # Errors
    /// Those of the output.
    fn finish(&mut self) -> io::Result<()>;
}

/// A writer of `form` to `out`, which should be buffered.
///
/// # Errors
/// Those of the output.
pub fn writer<'w>(
    form: TraceForm,
    legend: &'w Legend,
    options: &'w TraceOptions,
    out: impl Write + 'w,
) -> io::Result<Box<dyn TraceWriter + 'w>> {
    Ok(match form {
        TraceForm::Same => Box::new(same::SameWriter::new(out, legend, options)?),
        TraceForm::Angio => Box::new(angio::AngioWriter::new(out, legend, options)?),
        TraceForm::EventTrace => Box::new(event_trace::EventTraceWriter::new(out, legend, options)?),
        TraceForm::CallPath => Box::new(call_path::CallPathWriter::new(out, legend, options)?),
        TraceForm::Otlp => Box::new(spans::SpanWriter::new(otlp::Otlp::new(out), legend, options)),
        TraceForm::Jaeger => Box::new(spans::SpanWriter::new(jaeger::Jaeger::new(out)?, legend, options)),
        TraceForm::Zipkin => Box::new(spans::SpanWriter::new(zipkin::Zipkin::new(out)?, legend, options)),
    })
}

/// Writes all of `events`.
///
/// # Errors
/// Those of the output.
pub fn write_trace<'e>(
    form: TraceForm,
    legend: &Legend,
    options: &TraceOptions,
    events: impl IntoIterator<Item = &'e RecordedEvent>,
    out: impl Write,
) -> io::Result<()> {
    let mut writer = writer(form, legend, options, out)?;
    for event in events {
        writer.event(event)?;
    }
    writer.finish()
}
