//! What a solver returns, in the words and the JSON of the command line.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{AskedTimes, Distribution};
use crate::model::CallKind;

/// The solution of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// The model's name.
    pub model: String,
    /// The algorithm that was used: `exact`, `layered`, `simulate`, `markov`.
    pub solver: String,
    /// Whether the fixed point was reached.
    pub converged: bool,
    /// Sweeps of the fixed point, or blocks of a simulation.
    pub iterations: usize,
    /// Largest relative change in the last sweep.
    pub residual: f64,
    /// What a reader of the numbers should know.
    pub diagnostics: Vec<String>,
    /// Model time that a simulation measured, over all replications, warm-up removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_time: Option<f64>,
    /// Results by processor.
    pub processors: IndexMap<String, ProcessorResult>,
    /// Results by task.
    pub tasks: IndexMap<String, TaskResult>,
    /// Results by entry.
    pub entries: IndexMap<String, EntryResult>,
    /// Results by task and activity.
    pub activities: IndexMap<String, IndexMap<String, ActivityResult>>,
    /// Results by call.
    pub calls: Vec<CallResult>,
    /// Results of and-joins, from a simulation or the layered solver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<JoinResult>,
}

/// Results of a processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorResult {
    /// Mean busy servers, 0 to multiplicity.
    pub utilization: f64,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_half_width: Option<f64>,
}

/// Results of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Cycles a unit of time.
    pub throughput: f64,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_half_width: Option<f64>,
    /// Copies, where there is more than one: all results are of one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
    /// Mean busy threads, blocked ones included.
    pub utilization: f64,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_half_width: Option<f64>,
    /// Fraction of asynchronous requests and open arrivals that were lost at the task's full queue, where it is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_probability: Option<f64>,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_probability_half_width: Option<f64>,
    /// Requests that were lost at the task's full queue in the time measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_requests: Option<u64>,
    /// Times that tokens were held, where the model asks for their histogram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_times: Vec<AskedTimes>,
}

/// Results of an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryResult {
    /// Invocations a unit of time.
    pub throughput: f64,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_half_width: Option<f64>,
    /// Mean busy threads.
    pub utilization: f64,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_half_width: Option<f64>,
    /// Mean service time by phase (phase 1 first), time blocked in nested calls included; `None` of a phase that never ended in a
    /// simulation.
    pub service_times: Vec<Option<f64>>,
    /// Half-widths of the confidence intervals, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_times_half_width: Option<Vec<Option<f64>>>,
    /// Arrival to end of phase 1 of open arrivals; none where no request was replied to in a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_wait_time: Option<f64>,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_wait_time_half_width: Option<f64>,
    /// Variances of the service times by phase, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time_variances: Option<Vec<Option<f64>>>,
    /// Fraction of open arrivals lost at a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_probability: Option<f64>,
    /// Mean time that a token or lock taken by this entry is held, from acceptance until it is given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holding_time: Option<f64>,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holding_time_half_width: Option<f64>,
    /// Variance of these times, from a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holding_time_variance: Option<f64>,
    /// From the sending of a request (an open arrival) to the end of phase 1, or the whole cycle of a customer without its
    /// think time; from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Distribution>,
    /// Service times by phase, where the model asks for their histogram or a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_times: Vec<AskedTimes>,
}

/// Results of an activity of a task's graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityResult {
    /// Mean time of one execution; `None` where none ended in a simulation.
    pub service_time: Option<f64>,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time_half_width: Option<f64>,
    /// Executions a unit of time.
    pub throughput: f64,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_half_width: Option<f64>,
    /// Service times, where the model asks for their histogram or a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_times: Vec<AskedTimes>,
}

/// Results of an and-join of a task's graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JoinResult {
    /// The task.
    pub task: String,
    /// The joined activities, in the order of the model.
    pub activities: Vec<String>,
    /// Mean time from the fork to the end of the last branch that the join waits for, or from the first to the last arrival where it
    /// joins several entries; `None` where none was joined in a simulation.
    pub delay: Option<f64>,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_half_width: Option<f64>,
    /// Variance of these times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variance: Option<f64>,
    /// These times, where the model asks for their histogram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_times: Vec<AskedTimes>,
}

/// How a call is made, in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultCallKind {
    /// Rendezvous.
    Sync,
    /// Send without reply.
    Async,
    /// Forwarded request.
    Forward,
}

impl From<CallKind> for ResultCallKind {
    fn from(kind: CallKind) -> Self {
        match kind {
            CallKind::Sync => Self::Sync,
            CallKind::Async => Self::Async,
        }
    }
}

/// Results of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The calling entry (or the task's entry whose graph holds the calling activity).
    pub from: String,
    /// The called entry.
    pub to: String,
    /// The calling phase, 1 to 3.
    pub phase: u8,
    /// The calling activity, for calls from an activity graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Kind.
    pub kind: ResultCallKind,
    /// Copies of the called task to which one copy of the caller sends, where there is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<u32>,
    /// Mean number of requests in one execution, to each copy (a probability for a forwarded one).
    pub mean: f64,
    /// Mean time that one request queues before its service begins; `None` where no request was accepted in a simulation.
    pub waiting: Option<f64>,
    /// Half-width of the confidence interval, from a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_half_width: Option<f64>,
    /// Variance of these times, from a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_variance: Option<f64>,
    /// Fraction of requests lost at a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_probability: Option<f64>,
}
