//! Which traces, and how they are read: the options that `layerfit extract`, `profile` and `usage` share.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde::de::DeserializeOwned;

use super::{Failure, input, output::check_outputs, sources};
use crate::{
    structure::{
        ExtractError, ExtractOptions,
        observations::{Observed, Wanted},
        observe_streams,
        option_file::{TechniqueOptions, parse_options},
        spans::{EntryRule, InternalSpans},
    },
    trace::{BadRows, Format, SourcesAre, StreamSource, diagnostics::Diagnostic},
};

/// Seconds of one tick, where nothing else is said.
const DEFAULT_TICK_S: f64 = 1e-6;

/// Reads an option's value by its name in the options' JSON form.
pub(super) fn by_name<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|error| error.to_string())
}

/// Which traces, and how they are read.
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// Traces: files, plain or compressed; folders of files; - for standard input.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Format of the traces: same, angio, event-trace, call-path, kieker, otlp, jaeger, zipkin, or auto, which tells the formats of
    /// spans apart. Profiles and usage are not read from angio events and event traces.
    #[arg(long, default_value = "auto")]
    pub(super) from: Format,
    /// Fail at the first row that cannot be read, instead of skipping and counting.
    #[arg(long)]
    strict: bool,
    /// Message logs: the files are parts of one recording, not each a scenario of its own. Files of all other forms are parts.
    #[arg(long)]
    parts: bool,
    /// Seconds of one tick of the clock of message logs, angio events and event traces; the other forms say their unit.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TICK_S, allow_negative_numbers = true)]
    seconds_per_tick: f64,
    /// Spans that match are one entry, as in 'GET /item/*=item'.
    #[arg(long, value_name = "PATTERN=NAME")]
    entry_rule: Vec<EntryRule>,
    /// What becomes of internal spans: fold (into their entry), keep (as entries of their own). By default fold.
    #[arg(long, value_parser = by_name::<InternalSpans>)]
    internal: Option<InternalSpans>,
    /// Share of traces that were recorded, where the spans do not say it.
    #[arg(long, value_name = "SHARE")]
    sampling_rate: Option<f64>,
    /// Attribute of spans that names the session of a request, beside session.id and its like; may be given several times.
    #[arg(long, value_name = "KEY")]
    session_key: Vec<String>,
    /// Options of the techniques, TOML, with the names that they have over HTTP: [tlc], [execution_graph], [call_path] (with
    /// measurements of resources to estimate demands from), [spans].
    #[arg(long, value_name = "FILE.toml")]
    options: Option<PathBuf>,
    /// Threads, by default one on each core: for as many files at the same time, or for the steps of fewer.
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
}

impl TraceArgs {
    /// Options given that traces of this form do not have.
    pub(super) fn without_effect(&self) -> Vec<&'static str> {
        let are_spans = matches!(self.from, Format::Auto | Format::Otlp | Format::Jaeger | Format::Zipkin);
        let have_ticks = matches!(self.from, Format::Same | Format::Angio | Format::EventTrace);
        let given = [
            ("--parts", self.parts && self.from != Format::Same),
            ("--seconds-per-tick", self.seconds_per_tick != DEFAULT_TICK_S && !have_ticks),
            ("--entry-rule", !self.entry_rule.is_empty() && !are_spans),
            ("--internal", self.internal.is_some() && !are_spans),
            ("--sampling-rate", self.sampling_rate.is_some() && !are_spans),
            ("--session-key", !self.session_key.is_empty() && !are_spans),
        ];
        given.into_iter().filter(|(_, is_without)| *is_without).map(|(option, _)| option).collect()
    }

    /// The options of an extraction that these are; what has an argument of its own goes before the file of options.
    pub(super) fn options(&self) -> Result<ExtractOptions, Failure> {
        let techniques = match &self.options {
            Some(path) => {
                let text = input::read_text(path)?;
                parse_options(&path.to_string_lossy(), &text).map_err(|error| Failure::input(&error))?
            }
            None => TechniqueOptions::default(),
        };
        let options = ExtractOptions {
            bad_rows: if self.strict { BadRows::Reject } else { BadRows::Count },
            sources_are: if self.parts { SourcesAre::Parts } else { SourcesAre::Scenarios },
            seconds_per_tick: self.seconds_per_tick,
            threads: self.threads.map_or(0, std::num::NonZeroUsize::get),
            // The user's own files, read as streams: their size is no danger.
            limit_bytes: u64::MAX,
            ..ExtractOptions::default()
        };
        let mut options = options.asking(techniques);
        options.spans.entry_rules.splice(0..0, self.entry_rule.iter().cloned());
        options.spans.internal = self.internal.unwrap_or(options.spans.internal);
        options.spans.sampling_rate = self.sampling_rate.or(options.spans.sampling_rate);
        options.spans.session_keys.extend(self.session_key.iter().cloned());
        Ok(options)
    }

    /// The files, with a bar of how much has been read; checks that `outputs` can be written and are none of them, nor of what is read
    /// `beside` them.
    pub(super) fn open(
        &self,
        outputs: &[(&str, Option<&Path>)],
        beside: &[Option<&Path>],
    ) -> Result<(Vec<StreamSource<'static>>, ProgressBar), Failure> {
        let files = sources::files(&self.traces)?;
        let beside = [self.options.as_deref()].into_iter().chain(beside.iter().copied()).flatten();
        let inputs: Vec<&Path> =
            files.iter().map(PathBuf::as_path).filter(|path| *path != Path::new(sources::STDIN)).chain(beside).collect();
        check_outputs(outputs, &inputs)?;
        sources::open(&files)
    }

    /// Reads the traces for what is wanted beside the structure; `outputs` as in [`TraceArgs::open`].
    pub(super) fn observe(&self, wanted: &Wanted, outputs: &[(&str, Option<&Path>)]) -> Result<Observed, Failure> {
        let options = self.options()?;
        let (sources, bar) = self.open(outputs, &[])?;
        let observed = observe_streams(sources, self.from, &options, wanted);
        bar.finish_and_clear();
        observed.map_err(|error| match &error {
            ExtractError::NothingObserved { diagnostics, .. } => match hint(diagnostics) {
                Some(hint) => Failure::with_hint(super::chain(&error), hint),
                None => Failure::input(&error),
            },
            _ => Failure::input(&error),
        })
    }
}

/// What a user could do where no request is in a session.
fn hint(diagnostics: &[Diagnostic]) -> Option<&'static str> {
    let has = |code: &str| diagnostics.iter().any(|diagnostic| diagnostic.code == code);
    if has("only_user") {
        return Some("--users user takes the requests of a user, cut where nothing happens for a while, for sessions");
    }
    has("only_address").then_some("--users address takes the requests from one address for those of one user")
}
