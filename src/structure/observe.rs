//! Traces to what they say beside the structure: profiles and sessions.

use super::{
    ExtractError, ExtractOptions, Technique, found,
    observations::{Observations, Observed, Wanted},
    same::{Same, SameOptions},
};
use crate::trace::{Format, StreamSource, diagnostics::Diagnostics};

/// Oddities that are given as reasons where nothing was found.
const REASONS_GIVEN: usize = 3;

/// Observes what is `wanted` in traces, of any number of files read as streams; formats and options are those of an
/// extraction.
///
/// # Errors
/// [`ExtractError`]: sources that cannot be read, options out of range, a format that does not say what is wanted, or traces
/// without any of it. Anything less is a diagnostic of what is observed.
pub fn observe_streams(
    sources: Vec<StreamSource<'_>>,
    format: Format,
    options: &ExtractOptions,
    wanted: &Wanted,
) -> Result<Observed, ExtractError> {
    options.check()?;
    if sources.is_empty() {
        return Err(ExtractError::NoSources);
    }
    let names = sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ");
    let technique = options.technique.unwrap_or(Technique::for_format(format));
    let options = ExtractOptions { records_kept: 0, ..options.resolved(technique) };
    let mut wanted = *wanted;
    if let Some(profile) = &mut wanted.profile {
        if matches!(technique, Technique::Tlc | Technique::ExecutionGraph) {
            return Err(ExtractError::NoDurations { format });
        }
        profile.seconds_per_tick = options.seconds_per_tick;
    }
    if let Some(users) = &mut wanted.users {
        (users.sessions.seconds_per_tick, users.summary.seconds_per_tick) = (options.seconds_per_tick, options.seconds_per_tick);
    }
    let observed = match (technique, format) {
        (Technique::Same, Format::Same) if wanted.users.is_none() => same(sources, &options, &wanted)?,
        _ => {
            let found = found(sources, (technique, format), &options, &wanted)?;
            with_diagnostics(found.observed, &found.summary.diagnostics)
        }
    };
    let nothing = |what, diagnostics: Diagnostics| {
        let mut reasons = diagnostics.into_vec();
        reasons.truncate(REASONS_GIVEN);
        Err(ExtractError::NothingObserved { what, sources: names.clone(), diagnostics: reasons })
    };
    if let Some(profile) = observed.profile.as_ref().filter(|profile| profile.n_executions() == 0) {
        return nothing("executions whose beginning and end are known", profile.diagnostics().clone());
    }
    if let Some(usage) = observed.usage.as_ref().filter(|usage| usage.n_sessions() == 0) {
        return nothing("requests that name a session", usage.diagnostics().clone());
    }
    Ok(observed)
}

/// Message logs: replies tell when what was requested began and ended.
fn same(sources: Vec<StreamSource<'_>>, options: &ExtractOptions, wanted: &Wanted) -> Result<Observed, ExtractError> {
    let mut observations = Observations::new(wanted);
    let mut diagnostics = Diagnostics::default();
    let mut technique = Same::new(&SameOptions::of(options));
    let mut found = |batch: super::Interactions| {
        observations.interactions(&batch);
        diagnostics.merge(batch.diagnostics);
    };
    technique.feed(sources, &mut found)?;
    technique.finish(&mut found);
    Ok(with_diagnostics(observations.finish(), &diagnostics))
}

fn with_diagnostics(mut observed: Observed, diagnostics: &Diagnostics) -> Observed {
    if let Some(profile) = &mut observed.profile {
        profile.note(diagnostics.clone());
    }
    if let Some(usage) = &mut observed.usage {
        usage.note(diagnostics.clone());
    }
    observed
}
