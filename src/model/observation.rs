//! What a model file asks its solver to report beside the usual results: named variables (SPEX) and histograms.
//!
//! layerfit reports all results of all elements anyway; these are kept so that a file survives the round trip.

use serde::{Deserialize, Serialize};

use super::HistogramRequest;

/// A result to be stored in a variable: `<result-observe throughput="$x"/>`, or `%f $x` in text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Whose result.
    pub of: Observed,
    /// Which result, by its LQNX attribute: `throughput`, `phase1-utilization`.
    pub measure: String,
    /// The variable, without its `$`.
    pub variable: String,
    /// Where the half-width of the confidence interval goes, if it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<HalfWidth>,
}

/// A variable for the half-width of a confidence interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HalfWidth {
    /// Confidence in per cent: 95 or 99.
    pub level: u8,
    /// The variable, without its `$`.
    pub variable: String,
}

/// A histogram that cannot stand on its phase or activity: of a join, an entry's phase, a semaphore's holding time, or
/// one more of the same activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// Of what.
    pub of: Observed,
    /// The bins.
    pub request: HistogramRequest,
}

/// The element whose result is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Observed {
    /// The solution itself: iterations, times.
    Solution,
    /// A processor.
    Processor(String),
    /// A group.
    Group(String),
    /// A task.
    Task(String),
    /// An entry.
    Entry(String),
    /// A phase of an entry; the entry's work may be a graph.
    Phase {
        /// The entry.
        entry: String,
        /// 1, 2 or 3.
        phase: u8,
    },
    /// An activity of a task's graph.
    Activity {
        /// The task.
        task: String,
        /// The activity.
        activity: String,
    },
    /// A call in a phase.
    PhaseCall {
        /// The calling entry.
        entry: String,
        /// The calling phase.
        phase: u8,
        /// The called entry.
        dest: String,
    },
    /// A call in an activity.
    ActivityCall {
        /// The calling task.
        task: String,
        /// The calling activity.
        activity: String,
        /// The called entry.
        dest: String,
    },
    /// A forwarding.
    Forwarding {
        /// The forwarding entry.
        entry: String,
        /// The entry that goes on.
        dest: String,
    },
    /// The delay of an and-join.
    Join {
        /// The task.
        task: String,
        /// The first of the joined activities.
        activity: String,
    },
}

/// The results that can be observed, by LQNX attribute.
pub(super) const OBSERVABLE: &[&str] = &[
    "throughput",
    "throughput-bound",
    "utilization",
    "phase1-utilization",
    "phase2-utilization",
    "phase3-utilization",
    "proc-utilization",
    "proc-waiting",
    "phase1-proc-waiting",
    "phase2-proc-waiting",
    "phase3-proc-waiting",
    "service-time",
    "phase1-service-time",
    "phase2-service-time",
    "phase3-service-time",
    "service-time-variance",
    "phase1-service-time-variance",
    "phase2-service-time-variance",
    "phase3-service-time-variance",
    "squared-coeff-variation",
    "open-wait-time",
    "waiting",
    "waiting-variance",
    "loss-probability",
    "prob-exceed-max-service-time",
    "join-waiting",
    "join-variance",
    "semaphore-waiting",
    "semaphore-waiting-variance",
    "semaphore-utilization",
    "rwlock-reader-waiting",
    "rwlock-reader-waiting-variance",
    "rwlock-reader-holding",
    "rwlock-reader-holding-variance",
    "rwlock-reader-utilization",
    "rwlock-writer-waiting",
    "rwlock-writer-waiting-variance",
    "rwlock-writer-holding",
    "rwlock-writer-holding-variance",
    "rwlock-writer-utilization",
    "iterations",
    "elapsed-time",
    "user-cpu-time",
    "system-cpu-time",
    "step",
    "wait",
];
