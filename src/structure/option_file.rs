//! What techniques are asked for, as a TOML file: everything that has no argument of its own on the command line.
//!
//! | table | holds |
//! |---|---|
//! | `[tlc]` | [`TlcOptions`] |
//! | `[execution_graph]` | [`ExecutionGraphOptions`] |
//! | `[call_path]` | [`CallPathOptions`]; `[[call_path.resources]]` what was measured of resources, to estimate demands from |
//! | `[spans]` | [`SpanOptions`] |
//!
//! Keys are those of the options in JSON (`POST /v1/systems/{id}/traces`). Any other is an error.

use serde::Deserialize;

use super::{
    ExtractOptions,
    call_path::CallPathOptions,
    execution_graph::ExecutionGraphOptions,
    resources::{ResourceError, parse_toml},
    spans::SpanOptions,
    tlc::TlcOptions,
};

/// The options of the techniques.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TechniqueOptions {
    /// What is asked of angio traces.
    pub tlc: TlcOptions,
    /// What is asked of event traces.
    pub execution_graph: ExecutionGraphOptions,
    /// What is asked of call paths.
    pub call_path: CallPathOptions,
    /// What is asked of spans.
    pub spans: SpanOptions,
}

/// Reads the options `text` called `name`.
///
/// # Errors
/// [`ResourceError`]: text that is not TOML, or a key or value that is not known, with its place. Whether values are in their
/// ranges is told when the options are used ([`ExtractOptions::check`]).
pub fn parse_options(name: &str, text: &str) -> Result<TechniqueOptions, ResourceError> {
    parse_toml(name, text)
}

impl ExtractOptions {
    /// These with the techniques asked for what `techniques` says.
    #[must_use]
    pub fn asking(self, techniques: TechniqueOptions) -> Self {
        let TechniqueOptions { tlc, execution_graph, call_path, spans } = techniques;
        Self { tlc, execution_graph, call_path, spans, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::{
        call_path::{Instances, dependencies::Binning},
        tlc::TaskCounters,
    };

    #[test]
    fn what_has_no_argument_is_said_in_a_file() {
        let text = "[tlc]\ntask_counters = \"within-recording\"\n[call_path]\ninstances = \"together\"\nbinning = { equidistant = 4 }\n\
                    [[call_path.resources]]\nname = \"cpu\"\ncores = 2\nintervals = [{ utilization = 0.6 }]\n";
        let options = ExtractOptions::default().asking(parse_options("o.toml", text).unwrap());
        assert_eq!(options.tlc.task_counters, TaskCounters::WithinRecording);
        assert_eq!((options.call_path.instances, options.call_path.binning), (Instances::Together, Binning::Equidistant(4)));
        assert_eq!(options.call_path.resources[0].intervals[0].utilization, 0.6);
        assert_eq!(parse_options("o.toml", "").unwrap(), TechniqueOptions::default());
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_place() {
        let refused = |text: &str| parse_options("o.toml", text).unwrap_err().to_string();
        assert!(
            refused("[call_path]\nrecorded = \"all\"\n").starts_with("o.toml, line 2, column 12: "),
            "{}",
            refused("[call_path]\nrecorded = \"all\"\n")
        );
        assert!(refused("[tlc]\ncounters = 1\n").starts_with("o.toml, line 2, column 1: unknown field `counters`"));
    }
}
