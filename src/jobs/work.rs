//! The work of a job: stored inputs in, [`Ending`] out, on whatever thread calls it.

use super::Control;
use crate::{
    fit::{self, FitOptions, Progress as FitProgress, design::Cures, problem::Problem},
    store::{
        FitId, Store, StoreError, TraceId,
        jobs::{Ending, Failure, Job, Progress, Subject},
        traces,
    },
    structure::{self, ExtractOptions},
    trace,
};

/// The inputs of a job, read from the store.
pub(super) enum Work {
    /// A trace to extract from.
    Extraction { trace: TraceId, format: String, options: Box<ExtractOptions>, gzip: Vec<u8> },
    /// A problem to solve.
    Fit { fit: FitId, problem: Box<Problem> },
}

impl Work {
    /// Reads what `job` works on.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when an input is missing or cannot be read back.
    pub(super) async fn load(store: &Store, job: &Job) -> Result<Self, StoreError> {
        match job.subject {
            Subject::Extraction(trace) => {
                let header = store.load_trace(trace).await?.ok_or_else(|| missing("trace", job))?;
                let gzip = store.load_trace_gzip(trace).await?.ok_or_else(|| missing("trace content", job))?;
                Ok(Self::Extraction { trace, format: header.format, options: Box::new(header.options), gzip })
            }
            Subject::Fit(fit) => {
                let header = store.load_fit(fit).await?.ok_or_else(|| missing("fit", job))?.header;
                let model = store.load_model(header.model_id).await?.ok_or_else(|| missing("model", job))?.model;
                let trials = store.load_trials(header.trials_id).await?.ok_or_else(|| missing("trials", job))?.trials;
                Ok(Self::Fit { fit, problem: Box::new(header.options.problem(model, trials)) })
            }
        }
    }

    /// Does the work. It looks at `control` at every iteration; a result that comes after an order to end is as good as none,
    /// which the caller sees to.
    pub(super) fn run(self, control: &Control) -> Ending {
        match self {
            Self::Extraction { trace, format, options, gzip } => extract(trace, &format, &options, &gzip),
            Self::Fit { fit, problem } => {
                let mut report_step = |progress: &FitProgress| {
                    let sum_of_squares = Some(progress.sum_of_squares).filter(|s| s.is_finite());
                    control.step(Progress { round: progress.round, iteration: progress.iteration, sum_of_squares })
                };
                let options = FitOptions { cures: Cures::Listed, ..FitOptions::default() };
                match fit::fit(&problem, &options, &mut report_step) {
                    Ok(report) => Ending::Fitted(fit, Box::new(report)),
                    Err(error) => failed("fit_failed", &error),
                }
            }
        }
    }
}

fn missing(what: &str, job: &Job) -> StoreError {
    StoreError::Corrupt { what: format!("{what} of job {}", job.id), source: "it is not there".into() }
}

fn extract(trace: TraceId, format: &str, options: &ExtractOptions, gzip: &[u8]) -> Ending {
    let format: trace::Format = match format.parse() {
        Ok(format) => format,
        Err(error) => return failed("extraction_failed", &error),
    };
    let bytes = match traces::decompress(gzip) {
        Ok(bytes) => bytes,
        Err(error) => return failed("internal", &error),
    };
    let source = trace::Source { name: "trace", bytes: &bytes };
    match structure::extract(&[source], format, options) {
        Ok(extraction) => Ending::Extracted(trace, Box::new(extraction)),
        Err(error) => failed("extraction_failed", &error),
    }
}

/// The failure with its chain of causes in words.
pub(super) fn failed(code: &str, error: &dyn std::error::Error) -> Ending {
    Ending::Failed(Failure { code: code.to_owned(), message: crate::error_chain::chain(error) })
}
