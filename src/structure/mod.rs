//! Structure: events → interactions → tasks, entries, calls. One file for each technique, one road from interactions to a model.
//!
//! ```text
//!  trace::… ──▶ technique ──▶ Interactions ──▶ merge ──▶ customers ──▶ assemble ──▶ Extraction
//!  (messages)   (same)        (a summary,      (Part D)  (reference    (Model and report)
//!                              mergeable)                 tasks)
//! ```
//!
//! | file | is |
//! |---|---|
//! | [`same`] | the technique SAME: interaction trees over messages |
//! | [`interactions`] | what every technique yields |
//! | [`merge`](merge()) | occurrences to entries |
//! | `customers` | reference tasks and the usage profile |
//! | `layers` | circles of blocking calls |
//! | `assemble` | entries and customers to a model |

mod assemble;
mod cores;
mod customers;
pub mod entries;
mod extraction;
pub mod interactions;
mod layers;
mod options;
pub mod same;
pub mod summary;

pub use entries::{Accepts, ArcKind, Merged, MergedArc, MergedEntry};
pub use extraction::{CallReport, EntryReport, Extraction, InteractionCounts, Record, ScenarioReport, TaskReport};
pub use options::{Demands, ExtractOptions, MergeKey, OptionError, SecondPhase, Technique, Timing, UnknownTechnique};

use crate::{
    model::Severity,
    trace::{Format, Source, diagnostics::Diagnostics, same::ReadError},
};
use assemble::{Parts, assemble};
use interactions::Interactions;
use summary::Summary;

/// Why nothing was extracted.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// There was nothing to read.
    #[error("no trace was given")]
    NoSources,
    /// A trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An option's value cannot be used.
    #[error(transparent)]
    Option(#[from] OptionError),
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

/// Extracts a model from traces.
///
/// # Errors
/// [`ExtractError`]: sources that cannot be read (with [`crate::trace::BadRows::Reject`] also a single bad row), options
/// out of range, or no message at all. Anything less is a diagnostic of the result.
pub fn extract(sources: &[Source<'_>], format: Format, options: &ExtractOptions) -> Result<Extraction, ExtractError> {
    options.check()?;
    if sources.is_empty() {
        return Err(ExtractError::NoSources);
    }
    let mut summary = Summary::new(options.summary());
    match options.technique.unwrap_or(Technique::for_format(format)) {
        Technique::Same => same::summarize(sources.iter().map(Source::stream).collect(), options, &mut summary)?,
    }
    to_extraction(sources, summary, options)
}

fn to_extraction(sources: &[Source<'_>], summary: Summary, options: &ExtractOptions) -> Result<Extraction, ExtractError> {
    if summary.n_interactions() == 0 {
        let sources = sources.iter().map(|s| s.name).collect::<Vec<_>>().join(", ");
        return Err(ExtractError::NoMessages { sources, diagnostics: summary.diagnostics.into_vec() });
    }
    let stem = sources[0].stem();
    let name = if summary.scenarios.len() > 1 { "combined" } else { stem };
    Ok(summary_to_model(name, summary, options)?)
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
    let shares = customers::scenario_shares(&summary, options)?;
    let merged = summary.merged(&customers::factors(&shares, options));
    let customers = customers::customers(&summary, &merged, &shares, options);
    let assembled = assemble(name, Parts { summary: &summary, merged: &merged, customers: &customers, options });
    let scenarios = summary.scenarios.iter().zip(&shares).map(|(name, share)| ScenarioReport {
        name: name.to_owned(),
        traces: share.n_traces,
        probability: share.probability,
    });
    let mut diagnostics = summary.diagnostics.clone();
    diagnostics.merge(assembled.diagnostics);
    note_unmatched_names(&summary, options, &mut diagnostics);
    note_defects(&assembled.model, &mut diagnostics);
    Ok(Extraction {
        tasks: assembled.tasks,
        interactions: InteractionCounts::of(&summary),
        scenarios: scenarios.collect(),
        records: summary.kept.iter().map(|kept| Record::of(kept, &summary)).collect(),
        records_left_out: summary.n_records_left_out(),
        model: assembled.model,
        diagnostics: diagnostics.into_vec(),
        quality: None,
        findings: None,
    })
}

fn note_unmatched_names(summary: &Summary, options: &ExtractOptions, diagnostics: &mut Diagnostics) {
    for process in options.task_names.keys().filter(|process| summary.units.processes.get(process).is_none()) {
        diagnostics.add("unknown_process", "processes that were to be renamed are not in the trace", || process.clone());
    }
}

/// A model that cannot be solved as it stands is still handed over, with what is wrong in it.
fn note_defects(model: &crate::model::Model, diagnostics: &mut Diagnostics) {
    for defect in model.validate().into_iter().filter(|defect| defect.kind.severity() == Severity::Error) {
        diagnostics.add("model_defect", "the model cannot be solved as it stands", || defect.to_string());
    }
}
