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
    fn what_is_out_of_its_range_is_refused_by_name() {
        let check = |text: &str, expected: &str| {
            let options = ExtractOptions::default().asking(parse_options("o.toml", text).unwrap());
            assert_eq!(options.check().unwrap_err().to_string(), expected, "{text}");
        };
        for (found, shown) in [("-100", "-100"), ("inf", "inf"), ("nan", "NaN")] {
            let expected = format!("tlc.resource_functions.check is {shown}, expected a number of ticks, 0 or more");
            check(&format!("[tlc.resource_functions]\nlook = 0\ncheck = {found}\n"), &expected);
        }
        check("[tlc]\nlive_events_limit = 0\n", "tlc.live_events_limit is 0, expected 1 or more");
        check("[execution_graph]\nmax_live_events = 0\n", "execution_graph.max_live_events is 0, expected 1 or more");
        check("[execution_graph]\nscenario = \" \"\n", "execution_graph.scenario is empty, expected a name");
        check("[call_path]\nmost_live_records = 0\n", "most_live_records is 0, expected 1 or more");
        check("[call_path]\nbatch_occurrences = 0\n", "batch_occurrences is 0, expected 1 or more");
        check("[call_path]\nscenario = \"\"\n", "scenario is empty, expected a name");
        check("[call_path.boundaries.given]\n\"a.*\" = \"\"\n", "a component of boundaries.given is empty, expected a name");
        check("[call_path]\nsample = 7\n", "sample is 7, expected a share above 0, at most 1");
        check("[[spans.entry_rules]]\npattern = \"/a\"\nname = \"\"\n", "entry rule is \"/a=\", expected PATTERN=NAME");
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
