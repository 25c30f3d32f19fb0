//! Structure: events → interactions → tasks, entries, calls. A folder for each technique, one road from interactions to a model.
//!
//! ```text
//!  trace::…  ──▶ technique ──▶ Interactions ──▶ Summary ──▶ customers ──▶ assemble ──▶ Extraction
//!  (events)      (live state,  (batches of      (mergeable  (reference    (Model and report)
//!                 mergeable)    recordings)      sums)       tasks)
//! ```
//!
//! | file | is |
//! |---|---|
//! | [`same`], [`tlc`], [`execution_graph`], [`call_path`], [`spans`] | the techniques |
//! | `techniques`, `cores`, `steps` | which of them takes what, on all cores |
//! | [`live`] | a stream of spans without end |
//! | [`interactions`] | what every technique yields |
//! | [`summary`], [`entries`] | recordings to sums, sums to entries |
//! | `customers` | reference tasks and the usage profile |
//! | `layers` | circles of blocking calls |
//! | `assemble` | entries and customers to a model |
//! | [`option_file`] | options of the techniques as a file |
//! | [`resources`] | what a user says of processors, threads, demands and workload |
//! | [`compare`](mod@compare) | what changed between two extractions |
//! | [`profile`], [`usage`] | times by calling context, sessions |
//! | [`observations`], `observe` | what feeds these two beside the structure |

mod assemble;
pub mod call_path;
pub mod compare;
mod cores;
mod customers;
pub mod entries;
pub mod execution_graph;
mod extraction;
pub mod interactions;
mod layers;
pub mod live;
pub mod observations;
mod observe;
pub mod option_file;
mod options;
pub mod profile;
mod recursion;
pub mod resources;
pub mod same;
pub mod spans;
mod steps;
pub mod summary;
mod techniques;
pub mod tlc;
mod unused_resources;
pub mod usage;

pub use compare::{Changes, Side, compare};
pub use entries::{Accepts, ArcKind, Merged, MergedArc, MergedEntry};
pub use extraction::{CallReport, EntryReport, Extraction, InteractionCounts, Record, ScenarioReport, TaskReport};
pub use observe::observe_streams;
pub use options::{Demands, ExtractOptions, MergeKey, OptionError, SecondPhase, Technique, Timing, UnknownTechnique, UsageFrom};

use crate::{
    model::Severity,
    trace::{Format, Source, StreamSource, diagnostics::Diagnostics, same::ReadError, spans::SpanFormat, stem_of},
};
use assemble::{Parts, assemble};
use interactions::Interactions;
use observations::Wanted;
use summary::Summary;
use techniques::Found;
use usage::{ClassChoice, NoSessions, UsageModel, UsageSummary};

/// Why nothing was extracted.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// There was nothing to read.
    #[error("no trace was given")]
    NoSources,
    /// A trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Spans cannot be read.
    #[error(transparent)]
    ReadSpans(#[from] crate::trace::spans::ReadError),
    /// An angio trace cannot be read.
    #[error(transparent)]
    ReadAngio(#[from] crate::trace::angio::ReadError),
    /// An event trace cannot be read.
    #[error(transparent)]
    ReadEvents(#[from] crate::trace::event_trace::EventTraceError),
    /// Call-path records or a Kieker log cannot be read.
    #[error(transparent)]
    ReadCalls(#[from] crate::trace::call_path::ReadError),
    /// An option of call paths cannot be used.
    #[error(transparent)]
    CallPathOption(#[from] call_path::CallPathOptionError),
    /// The technique does not take what the format carries.
    #[error("the technique {technique} does not take traces of the format {format}: expected the technique {}", Technique::for_format(*.format))]
    Unfit {
        /// The technique.
        technique: Technique,
        /// The format.
        format: Format,
    },
    /// An option's value cannot be used.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The format does not say whose requests are.
    #[error(
        "traces of the format {format} do not say whose session a request is of: expected call-path, kieker, otlp, jaeger, zipkin or auto"
    )]
    NoUsers {
        /// The format.
        format: Format,
    },
    /// The format does not say how long executions take.
    #[error(
        "traces of the format {format} do not say how long executions take by one clock: expected same, call-path, kieker, otlp, jaeger, zipkin or auto"
    )]
    NoDurations {
        /// The format.
        format: Format,
    },
    /// The traces were read, but nothing that was wanted was found.
    #[error("no {what} in {sources}{}", reasons(.diagnostics))]
    NothingObserved {
        /// What was wanted, in words.
        what: &'static str,
        /// Names of the sources.
        sources: String,
        /// What was odd in them.
        diagnostics: Vec<crate::trace::diagnostics::Diagnostic>,
    },
    /// The traces were read, but hold no message from one task to another.
    #[error("no messages between tasks were found in {sources}{}", reasons(.diagnostics))]
    NoMessages {
        /// Names of the sources.
        sources: String,
        /// What was odd in them.
        diagnostics: Vec<crate::trace::diagnostics::Diagnostic>,
    },
}

fn reasons(diagnostics: &[crate::trace::diagnostics::Diagnostic]) -> String {
    let reason = |d: &crate::trace::diagnostics::Diagnostic| format!("; {}: {} (as in {})", d.message, d.count, d.examples.join("; "));
    diagnostics.iter().map(reason).collect()
}

/// Seconds of a tick in formats whose times are nanoseconds.
const NANOSECONDS: f64 = 1e-9;

/// Extracts a model from traces that are at hand.
///
/// # Errors
/// As of [`extract_streams`].
pub fn extract(sources: &[Source<'_>], format: Format, options: &ExtractOptions) -> Result<Extraction, ExtractError> {
    extract_streams(sources.iter().map(Source::stream).collect(), format, options)
}

/// Extracts a model from traces that are read as streams, each by one thread, on as many threads as the options say.
///
/// # Errors
/// [`ExtractError`]: sources that cannot be read (with [`crate::trace::BadRows::Reject`] also a single bad row), options
/// out of range, a technique that does not take the format, or no interaction at all. Anything less is a diagnostic of the
/// result.
pub fn extract_streams(sources: Vec<StreamSource<'_>>, format: Format, options: &ExtractOptions) -> Result<Extraction, ExtractError> {
    options.check()?;
    let Some(first) = sources.first() else { return Err(ExtractError::NoSources) };
    let stem = stem_of(&first.name).to_owned();
    let names = sources.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
    let technique = options.technique.unwrap_or(Technique::for_format(format));
    let options = options.resolved(technique);
    let found = found(sources, (technique, format), &options, &options.wanted())?;
    let Found { mut summary, quality, findings, observed } = found;
    if summary.n_interactions() == 0 {
        return Err(ExtractError::NoMessages { sources: names, diagnostics: summary.diagnostics.into_vec() });
    }
    summary.hints.overlay(&options.resources);
    let name = if technique == Technique::Same && summary.scenarios.len() > 1 { "combined" } else { &stem };
    let usage = observed.usage.map(|sessions| usage_model(&sessions, &options, &mut summary.diagnostics));
    let extraction = model_of(name, summary, usage.flatten(), &options)?;
    Ok(Extraction { quality, findings, ..extraction })
}

/// What a technique finds in sources.
fn found(
    sources: Vec<StreamSource<'_>>,
    (technique, format): (Technique, Format),
    options: &ExtractOptions,
    wanted: &Wanted,
) -> Result<Found, ExtractError> {
    if wanted.users.is_some() && !matches!(technique, Technique::CallPath | Technique::Spans) {
        return Err(ExtractError::NoUsers { format });
    }
    match (technique, format) {
        (Technique::Same, Format::Same) => techniques::same(sources, options),
        (Technique::Tlc, Format::Angio) => techniques::tlc(sources, options),
        (Technique::ExecutionGraph, Format::EventTrace) => techniques::execution_graphs(sources, options),
        (Technique::CallPath, Format::CallPath | Format::Kieker) => techniques::call_paths(sources, format, options, wanted),
        (Technique::Spans, Format::Otlp) => techniques::spans(sources, SpanFormat::Otlp, options, wanted),
        (Technique::Spans, Format::Jaeger) => techniques::spans(sources, SpanFormat::Jaeger, options, wanted),
        (Technique::Spans, Format::Zipkin) => techniques::spans(sources, SpanFormat::Zipkin, options, wanted),
        (Technique::Spans, Format::Auto) => techniques::spans(sources, SpanFormat::Auto, options, wanted),
        (technique, format) => Err(ExtractError::Unfit { technique, format }),
    }
}

/// The usage model of sessions; `None`, with the reason, of no sessions.
fn usage_model(sessions: &UsageSummary, options: &ExtractOptions, diagnostics: &mut Diagnostics) -> Option<Box<UsageModel>> {
    let mut behaviour = options.behaviour;
    if options.customers.as_ref().is_some_and(|n| n.literal().is_none()) && behaviour.classes != ClassChoice::One {
        let message = "the number of customers is a parameter, which cannot be shared out: all sessions are one class";
        diagnostics.add("one_class", message, || "customers".to_owned());
        behaviour.classes = ClassChoice::One;
    }
    match UsageModel::of(sessions, &behaviour) {
        Ok(usage) => Some(Box::new(usage)),
        Err(NoSessions) => {
            let message = "no request is in a session: reference tasks are those of the recordings";
            diagnostics.add("no_sessions", message, || "usage".to_owned());
            diagnostics.merge(sessions.diagnostics().clone());
            None
        }
    }
}

/// The shared road: interactions, by whatever technique, to a model called `name`.
///
/// # Errors
/// [`OptionError`] where the usage profile does not fit the scenarios.
pub fn to_model(name: &str, interactions: Interactions, options: &ExtractOptions) -> Result<Extraction, OptionError> {
    summary_to_model(name, Summary::of(&interactions, options.summary()), options)
}

/// The shared road from a summary on.
///
/// # Errors
/// As of [`to_model`].
pub fn summary_to_model(name: &str, summary: Summary, options: &ExtractOptions) -> Result<Extraction, OptionError> {
    model_of(name, summary, None, options)
}

/// As [`summary_to_model`], with reference tasks by `usage`.
fn model_of(name: &str, summary: Summary, usage: Option<Box<UsageModel>>, options: &ExtractOptions) -> Result<Extraction, OptionError> {
    let shares = customers::scenario_shares(&summary, options)?;
    let mut merged = summary.merged(&customers::factors(&shares, options));
    let mut customers = customers::customers(&summary, &merged, &shares, options);
    let mut diagnostics = Diagnostics::default();
    if let Some(usage) = &usage {
        customers = customers::of_sessions(customers, usage, (&summary, &merged), options, &mut diagnostics);
    }
    for (copy, entry) in recursion::cut_recursion(&mut merged) {
        let message =
            "entries are requested, by way of others, by themselves: who requests a further execution is taken not to wait for it";
        let of = &merged.entries[entry];
        let operation = of.operation.map_or("", |o| summary.operations.name(o));
        let n = merged.entries[copy].n_occurrences;
        diagnostics.add("recursive_calls", message, || format!("{} {operation}: {n} executions", summary.tasks.names.name(of.task)));
    }
    let assembled = assemble(name, Parts { summary: &summary, merged: &merged, customers: &customers, options });
    let scenarios = summary.scenarios.iter().zip(&shares).map(|(name, share)| ScenarioReport {
        name: name.to_owned(),
        traces: share.n_traces,
        probability: share.probability,
    });
    let mut diagnostics = {
        let mut all = summary.diagnostics.clone();
        all.merge(diagnostics);
        all
    };
    diagnostics.merge(assembled.diagnostics);
    note_unmatched_names(&summary, options, &mut diagnostics);
    unused_resources::note_unused(&options.resources, options.technique, (&summary, &merged), &mut diagnostics);
    note_defects(&assembled.model, &mut diagnostics);
    Ok(Extraction {
        tasks: assembled.tasks,
        interactions: InteractionCounts::of(&summary),
        scenarios: scenarios.collect(),
        records: summary.kept.iter().map(|kept| Record::of(kept, &summary)).collect(),
        records_left_out: summary.n_records_left_out(),
        model: assembled.model,
        diagnostics: diagnostics.into_vec().into_iter().chain(usage.iter().flat_map(|usage| usage.diagnostics.clone())).collect(),
        quality: None,
        findings: None,
        usage,
    })
}

fn note_unmatched_names(summary: &Summary, options: &ExtractOptions, diagnostics: &mut Diagnostics) {
    for process in options.task_names.keys().filter(|process| summary.units.processes.get(process).is_none()) {
        diagnostics.add("unknown_process", "processes that were to be renamed are not in the trace", || process.clone());
    }
    let rules = options.spans.entry_rules.iter().filter(|_| options.technique == Some(Technique::Spans));
    for rule in rules.filter(|rule| summary.operations.get(&rule.name).is_none()) {
        let message = "entry rules have no effect: no span matches, or an earlier rule is taken";
        diagnostics.add("unused_entry_rule", message, || format!("{}={}", rule.pattern, rule.name));
    }
}

/// A model that cannot be solved as it stands is still handed over, with what is wrong in it.
fn note_defects(model: &crate::model::Model, diagnostics: &mut Diagnostics) {
    for defect in model.validate().into_iter().filter(|defect| defect.kind.severity() == Severity::Error) {
        diagnostics.add("model_defect", "the model cannot be solved as it stands", || defect.to_string());
    }
}
