//! What extraction can be asked for.

use std::{fmt, str::FromStr};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    NANOSECONDS,
    call_path::CallPathOptions,
    execution_graph::ExecutionGraphOptions,
    interactions::{Hints, ScenariosBy},
    observations::{UserOptions, Wanted},
    spans::SpanOptions,
    summary::SummaryOptions,
    tlc::TlcOptions,
    usage::UsageOptions,
};
use crate::{
    model::Number,
    trace::{BadRows, Format, SourcesAre},
};

/// How structure is found in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// Interaction trees over messages: [`super::same`].
    Same,
    /// Templates over angio traces: [`super::tlc`].
    Tlc,
    /// Threads and event indices without clocks: [`super::execution_graph`].
    ExecutionGraph,
    /// Call paths over entry and exit records: [`super::call_path`].
    CallPath,
    /// Spans of distributed tracing: [`super::spans`].
    Spans,
}

/// A technique's name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is not an extraction technique: expected same, tlc, execution-graph, call-path or spans")]
pub struct UnknownTechnique {
    /// The name as given.
    pub name: String,
}

impl FromStr for Technique {
    type Err = UnknownTechnique;

    fn from_str(name: &str) -> Result<Self, UnknownTechnique> {
        let all = [Self::Same, Self::Tlc, Self::ExecutionGraph, Self::CallPath, Self::Spans];
        all.into_iter().find(|technique| technique.name() == name).ok_or_else(|| UnknownTechnique { name: name.to_owned() })
    }
}

impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Technique {
    /// Its name on the command line and over HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Tlc => "tlc",
            Self::ExecutionGraph => "execution-graph",
            Self::CallPath => "call-path",
            Self::Spans => "spans",
        }
    }

    /// The technique that fits what a format carries.
    pub fn for_format(format: Format) -> Self {
        match format {
            Format::Same => Self::Same,
            Format::Angio => Self::Tlc,
            Format::EventTrace => Self::ExecutionGraph,
            Format::CallPath | Format::Kieker => Self::CallPath,
            Format::Otlp | Format::Jaeger | Format::Zipkin | Format::Auto => Self::Spans,
        }
    }
}

/// Which of a message's two times are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// Both, in traces where every message has both and none is received before it is sent; else that of reception.
    #[default]
    Auto,
    /// The time of reception, as in the paper.
    Reception,
    /// Sender at the time of sending, receiver at that of reception: right also where messages take long.
    TwoPoint,
}

/// What a message is that a task sends after its reply, before it accepts anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondPhase {
    /// Work of the second phase of what it replied to.
    #[default]
    Detect,
    /// The start of something new, as in the paper; of the children of a root, the last live one is then the one it may wait for.
    Ignore,
}

/// Which occurrences of a task become one entry. Those accepted with a reply and those accepted without always stay
/// apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeKey {
    /// `Behaviour` for message logs, `Operation` for all that names operations.
    #[default]
    Auto,
    /// Those of the same operation that make the same requests, equally often, to the same entries in the same phase, and
    /// forward to the same entry.
    Behaviour,
    /// As `Behaviour`, whatever their operation (Part D as the paper has it).
    BehaviourOnly,
    /// Those of the same operation; numbers of calls and forwardings are means over them.
    Operation,
}

/// Where the demands of entries come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Demands {
    /// `SelfTimes` where the format carries times of work (all but message logs, which tell when messages were accepted), else
    /// `Default`.
    #[default]
    Auto,
    /// All are [`ExtractOptions::default_demand`].
    Default,
    /// The mean self time in the trace, the default where the trace does not tell. Self time is elapsed, so that it also
    /// holds what the task waited for its processor: a starting value, from above.
    SelfTimes,
}

/// What reference tasks are made of: their mix of requests, think times and numbers of customers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageFrom {
    /// Of the recordings as they are, one after another.
    #[default]
    Recordings,
    /// Of the sessions of users, where the trace says whose each request is (call paths, Kieker logs, spans).
    Sessions,
}

/// Options of an extraction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExtractOptions {
    /// The technique; by default the one that fits the format.
    pub technique: Option<Technique>,
    /// What is done with a row that cannot be read.
    pub bad_rows: BadRows,
    /// How several sources belong together.
    pub sources_are: SourcesAre,
    /// Most bytes that one source may have after decompression.
    pub limit_bytes: u64,
    /// Which times of a message are used.
    pub timing: Timing,
    /// Whether second phases are looked for.
    pub second_phase: SecondPhase,
    /// Which occurrences become one entry.
    pub merge: MergeKey,
    /// Seconds of one tick of the log's clock, > 0. The default, 10⁻⁶, is that of the paper's example: microseconds.
    pub seconds_per_tick: f64,
    /// Demand of an entry in seconds, ≥ 0, where nothing else says it. The default is the paper's 1 ms.
    pub default_demand: f64,
    /// Where demands come from.
    pub demands: Demands,
    /// Weight of each scenario, > 0: how often it is used relative to the others. Empty: as often as it was recorded.
    pub usage_profile: IndexMap<String, f64>,
    /// Names of processes → names of their tasks, as from instances to their class.
    pub task_names: IndexMap<String, String>,
    /// What is asked of spans.
    pub spans: SpanOptions,
    /// What is asked of angio traces.
    pub tlc: TlcOptions,
    /// What is asked of event traces.
    pub execution_graph: ExecutionGraphOptions,
    /// What is asked of call paths.
    pub call_path: CallPathOptions,
    /// What the user says of processors, threads, demands and workload.
    pub resources: Hints,
    /// Threads for sources that are read at the same time, or for the steps of fewer; 0 for one on each core.
    pub threads: usize,
    /// Most interactions that are reported one by one, the first ones.
    pub records_kept: usize,
    /// Name of the reference task that makes the initial requests of several scenarios.
    pub client: String,
    /// Customers of each reference task; by default as many as were seen at once.
    pub customers: Option<Number>,
    /// Think time of the reference tasks, in seconds.
    pub think_time: Number,
    /// What reference tasks are made of.
    pub usage: UsageFrom,
    /// How requests become sessions, for [`UsageFrom::Sessions`].
    pub users: UserOptions,
    /// How sessions become classes of behaviour.
    pub behaviour: UsageOptions,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        Self {
            technique: None,
            bad_rows: BadRows::default(),
            sources_are: SourcesAre::default(),
            limit_bytes: 1 << 30,
            timing: Timing::default(),
            second_phase: SecondPhase::default(),
            merge: MergeKey::default(),
            seconds_per_tick: 1e-6,
            default_demand: 1e-3,
            demands: Demands::default(),
            usage_profile: IndexMap::new(),
            task_names: IndexMap::new(),
            spans: SpanOptions::default(),
            tlc: TlcOptions::default(),
            execution_graph: ExecutionGraphOptions::default(),
            call_path: CallPathOptions::default(),
            resources: Hints::default(),
            threads: 0,
            records_kept: 100_000,
            client: "Client".to_owned(),
            customers: None,
            think_time: Number::Value(0.0),
            usage: UsageFrom::default(),
            users: UserOptions::default(),
            behaviour: UsageOptions::default(),
        }
    }
}

/// An option whose value cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{option} is {found}, expected {expected}")]
pub struct OptionError {
    /// The option.
    pub option: String,
    /// Its value.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

impl OptionError {
    /// That a number of things is 0, where it is.
    pub(super) fn unless_above_0(option: &str, number: usize) -> Result<(), Self> {
        if number > 0 { Ok(()) } else { Err(Self { option: option.to_owned(), found: "0".to_owned(), expected: "1 or more" }) }
    }

    /// That a name is empty, where it is.
    pub(super) fn unless_named(option: &str, name: &str) -> Result<(), Self> {
        let is_named = !name.trim().is_empty();
        if is_named { Ok(()) } else { Err(Self { option: option.to_owned(), found: "empty".to_owned(), expected: "a name" }) }
    }
}

impl ExtractOptions {
    /// The options with what goes without saying for a technique said.
    pub(super) fn resolved(&self, technique: Technique) -> Self {
        let mut options = Self { technique: Some(technique), ..self.clone() };
        let in_nanoseconds = matches!(technique, Technique::Spans | Technique::CallPath);
        if in_nanoseconds {
            options.seconds_per_tick = NANOSECONDS;
        }
        if options.demands == Demands::Auto {
            options.demands = if technique == Technique::Same { Demands::Default } else { Demands::SelfTimes };
        }
        let names = |scenario: &str| options.usage_profile.is_empty() || options.usage_profile.contains_key(scenario);
        if !names(&options.execution_graph.scenario) {
            options.execution_graph.scenarios = ScenariosBy::Root;
        }
        if !names(&options.call_path.scenario) {
            options.call_path.scenarios = ScenariosBy::Root;
        }
        if technique != Technique::Same && options.merge == MergeKey::Auto {
            options.merge = MergeKey::Operation;
        }
        options
    }

    /// What is to be observed beside the structure.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted { profile: None, users: (self.usage == UsageFrom::Sessions).then(|| self.users_by_ticks()) }
    }

    /// How requests become sessions, by the ticks of the trace.
    pub(super) fn users_by_ticks(&self) -> UserOptions {
        let mut users = self.users;
        (users.sessions.seconds_per_tick, users.summary.seconds_per_tick) = (self.seconds_per_tick, self.seconds_per_tick);
        users
    }

    /// Threads that sources are read on.
    pub(super) fn n_threads(&self) -> usize {
        if self.threads > 0 { self.threads } else { std::thread::available_parallelism().map_or(1, usize::from) }
    }

    /// What a summary is to keep.
    pub(super) fn summary(&self) -> SummaryOptions {
        SummaryOptions { merge: self.merge, task_names: self.task_names.clone(), records_kept: self.records_kept }
    }

    /// Checks what can be checked without a trace.
    ///
    /// # Errors
    /// [`OptionError`] for a number out of its range, or an empty name.
    pub fn check(&self) -> Result<(), OptionError> {
        self.spans.check()?;
        self.tlc.check()?;
        self.execution_graph.check()?;
        self.call_path.check()?;
        let error = |option: &str, found: String, expected| OptionError { option: option.to_owned(), found, expected };
        if !(self.seconds_per_tick.is_finite() && self.seconds_per_tick > 0.0) {
            return Err(error("seconds_per_tick", self.seconds_per_tick.to_string(), "a number above 0"));
        }
        if !(self.default_demand.is_finite() && self.default_demand >= 0.0) {
            return Err(error("default_demand", self.default_demand.to_string(), "a number of seconds, 0 or more"));
        }
        if let Some((scenario, weight)) = self.usage_profile.iter().find(|(_, weight)| !(weight.is_finite() && **weight > 0.0)) {
            return Err(error(&format!("the weight of scenario \"{scenario}\""), weight.to_string(), "a number above 0"));
        }
        if self.usage == UsageFrom::Sessions && !self.usage_profile.is_empty() {
            return Err(error(
                "usage_profile",
                "given beside usage of sessions".to_owned(),
                "one of the two: both say how often what is used",
            ));
        }
        self.users.check()?;
        self.behaviour.check()?;
        if self.client.trim().is_empty() {
            return Err(error("client", "empty".to_owned(), "a task name"));
        }
        if self.task_names.iter().any(|(_, task)| task.trim().is_empty()) {
            return Err(error("task_names", "empty".to_owned(), "a task name for each process"));
        }
        if let Some(n) = self.customers.as_ref().and_then(Number::literal).filter(|n| !(n.is_finite() && *n >= 1.0 && n.fract() == 0.0)) {
            return Err(error("customers", n.to_string(), "a whole number, 1 or more, or a $name"));
        }
        match self.think_time.literal() {
            Some(time) if !(time.is_finite() && time >= 0.0) => {
                Err(error("think_time", time.to_string(), "a number of seconds, 0 or more, or a $name"))
            }
            _ => Ok(()),
        }
    }
}
