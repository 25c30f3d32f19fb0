//! Work and calls: phases, activities, and the graphs that order activities.

use serde::{Deserialize, Serialize};

use super::{
    Number,
    number::{is_default, is_one, is_zero, one, zero},
};

/// One phase of an entry: the work of phase 1 is done before the reply, that of phases 2 and 3 after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "PhaseForm")]
pub struct Phase {
    /// 1, 2 or 3.
    pub phase: u8,
    /// The work.
    #[serde(flatten)]
    pub activity: Activity,
}

/// A [`Phase`] as it stands in JSON: flat, and with unknown keys refused, which serde cannot do for flattened fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseForm {
    phase: u8,
    name: String,
    #[serde(default = "zero")]
    host_demand: Number,
    #[serde(default = "one")]
    host_demand_cvsq: Number,
    #[serde(default = "zero")]
    think_time: Number,
    #[serde(default = "zero")]
    max_service_time: Number,
    #[serde(default)]
    call_order: CallOrder,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    histogram: Option<HistogramRequest>,
}

impl From<PhaseForm> for Phase {
    fn from(form: PhaseForm) -> Self {
        let PhaseForm { phase, name, host_demand, host_demand_cvsq, think_time, max_service_time, call_order, calls, histogram } = form;
        let activity = Activity { name, host_demand, host_demand_cvsq, think_time, max_service_time, call_order, calls, histogram };
        Self { phase, activity }
    }
}

/// A piece of work: demand on the processor, cut into slices by calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// Unique in its task; phases are named `<entry>_ph<number>` where a file gives no name.
    pub name: String,
    /// Mean demand on the processor for one execution, over all slices.
    #[serde(default = "zero")]
    pub host_demand: Number,
    /// Squared coefficient of variation of a slice.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub host_demand_cvsq: Number,
    /// Mean own think time at the start of the execution, off the processor.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub think_time: Number,
    /// Where > 0, the probability of a longer service time is to be reported; never a `$name`.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub max_service_time: Number,
    /// Whether the numbers of calls are exact or means.
    #[serde(default, skip_serializing_if = "is_default")]
    pub call_order: CallOrder,
    /// Calls, in file order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// Histogram of the service time asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramRequest>,
}

impl Activity {
    /// Work with the given demand and no calls.
    pub fn new(name: impl Into<String>, host_demand: impl Into<Number>) -> Self {
        Self {
            name: name.into(),
            host_demand: host_demand.into(),
            host_demand_cvsq: one(),
            think_time: zero(),
            max_service_time: zero(),
            call_order: CallOrder::Stochastic,
            calls: Vec::new(),
            histogram: None,
        }
    }
}

/// How the mean numbers of calls are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOrder {
    /// Geometric numbers of calls in random order.
    #[default]
    Stochastic,
    /// Exactly the given (integer) numbers, destination by destination.
    Deterministic,
}

/// Requests to another entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Whether the caller waits for the reply.
    pub kind: CallKind,
    /// The called entry.
    pub dest: String,
    /// Mean number of requests in one execution of the caller.
    pub mean: Number,
}

/// Whether a caller waits for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// Rendezvous: the caller is blocked until the reply.
    Sync,
    /// Send without reply.
    Async,
}

/// A histogram that a file asks the simulator for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramRequest {
    /// Lower end.
    pub min: f64,
    /// Upper end.
    pub max: f64,
    /// Number of bins between the ends.
    pub bins: u32,
}

/// One step of an activity graph: what must have happened, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precedence {
    /// What must have happened.
    pub pre: Pre,
    /// What follows; nothing for branches that end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<Post>,
}

/// The left side of a precedence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pre {
    /// One activity.
    Single(String),
    /// All of the activities (or a quorum of them) have ended.
    And {
        /// The joined activities.
        activities: Vec<String>,
        /// How many must have ended; 0 for all.
        #[serde(default = "zero", skip_serializing_if = "is_zero")]
        quorum: Number,
    },
    /// Any one of the activities.
    Or(Vec<String>),
}

/// The right side of a precedence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Post {
    /// One activity.
    Single(String),
    /// All of the activities, in parallel.
    And(Vec<String>),
    /// One of the activities.
    Or(Vec<Weighted>),
    /// A random sequence of bodies, then the end.
    Loop {
        /// Bodies with their mean counts.
        bodies: Vec<Weighted>,
        /// The activity after the loop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<String>,
    },
}

/// An activity with a probability (or-fork) or a mean count (loop).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// The activity.
    pub activity: String,
    /// Probability or mean count.
    pub value: Number,
}

/// An activity that replies to an entry when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The entry whose caller is released.
    pub entry: String,
    /// The activity at whose end this happens.
    pub activity: String,
}

impl Pre {
    /// The activities, in file order.
    pub fn activities(&self) -> &[String] {
        match self {
            Self::Single(activity) => std::slice::from_ref(activity),
            Self::And { activities, .. } | Self::Or(activities) => activities,
        }
    }
}

impl Post {
    /// The activities, in file order; the end of a loop is the last.
    pub fn activities(&self) -> Vec<&str> {
        match self {
            Self::Single(activity) => vec![activity],
            Self::And(activities) => activities.iter().map(String::as_str).collect(),
            Self::Or(branches) => branches.iter().map(|b| b.activity.as_str()).collect(),
            Self::Loop { bodies, end } => bodies.iter().map(|b| b.activity.as_str()).chain(end.as_deref()).collect(),
        }
    }
}

impl Activity {
    /// The calls that count: of those to one entry the first, as in the LQN tools.
    pub fn counted_calls(&self) -> impl Iterator<Item = &Call> {
        let is_first = |i: usize| self.calls[..i].iter().all(|before| before.dest != self.calls[i].dest);
        self.calls.iter().enumerate().filter(move |(i, _)| is_first(*i)).map(|(_, call)| call)
    }

    pub(super) fn for_each_number(&self, visit: &mut dyn FnMut(&Number)) {
        [&self.host_demand, &self.host_demand_cvsq, &self.think_time, &self.max_service_time].into_iter().for_each(&mut *visit);
        self.calls.iter().for_each(|call| visit(&call.mean));
    }
}

impl Precedence {
    pub(super) fn for_each_number(&self, visit: &mut dyn FnMut(&Number)) {
        if let Pre::And { quorum, .. } = &self.pre {
            visit(quorum);
        }
        if let Some(Post::Or(weighted) | Post::Loop { bodies: weighted, .. }) = &self.post {
            weighted.iter().for_each(|w| visit(&w.value));
        }
    }
}
