//! The elements of a layered queueing network.
//!
//! Elements refer to one another by name, as in the files they come from; [`super::validate`] checks the references and
//! the solvers compile them into indices. Defaults are those of the LQN tools (5.32).

use serde::{Deserialize, Serialize};

use super::Number;

fn one() -> Number {
    Number::Value(1.0)
}
fn zero() -> Number {
    Number::Value(0.0)
}
fn is_one(n: &Number) -> bool {
    n.is(1.0)
}
fn is_zero(n: &Number) -> bool {
    n.is(0.0)
}
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A layered queueing network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model's name; may be empty.
    #[serde(default)]
    pub name: String,
    /// Free text about the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Hints of the file to its solver, kept for the round trip.
    #[serde(default, skip_serializing_if = "is_default")]
    pub solver_params: SolverParams,
    /// Parameters that the model itself gives a value, in order of definition; a later one may use an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Processors, in file order.
    #[serde(default)]
    pub processors: Vec<Processor>,
    /// Tasks, in file order.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// Parts of the file that mean nothing to layerfit but must survive a round trip (LQX program, SPEX results).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<Opaque>,
}

/// Hints of a model file to the LQN tools' solvers. layerfit keeps them and does not act on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SolverParams {
    /// Free text.
    pub comment: String,
    /// Convergence criterion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conv_val: Option<Number>,
    /// Iteration limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub it_limit: Option<Number>,
    /// Under-relaxation coefficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underrelax_coeff: Option<Number>,
    /// Print interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub print_int: Option<Number>,
    /// Pragmas, in file order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pragmas: Vec<Pragma>,
}

/// One `param=value` hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pragma {
    /// What is set.
    pub param: String,
    /// To what.
    pub value: String,
}

/// A parameter that the model gives a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name without the `$`.
    pub name: String,
    /// Its value.
    pub value: ParameterValue,
}

/// The value that a model gives one of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// A number.
    Number(f64),
    /// Several values, for a sweep over their cross product; the first is used for a single solution.
    List(Vec<f64>),
    /// An expression over other parameters, in the text grammar's syntax.
    Expression(String),
}

/// A part of a model file that is kept as it stands: where it was, and its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    /// Element that the part was (`lqx`, `results-collection`, …).
    pub element: String,
    /// Its text, without the element's own tags.
    pub text: String,
}

/// A processor: one ready queue before `multiplicity` servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Unique among processors.
    pub name: String,
    /// Queueing discipline; [`ProcessorScheduling::Inf`] makes it a pure delay.
    #[serde(default)]
    pub scheduling: ProcessorScheduling,
    /// Number of servers (cores), an integer ≥ 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiplicity: Number,
    /// Number of copies, an integer ≥ 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replication: Number,
    /// A demand `d` takes `d / speed_factor`; > 0.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub speed_factor: Number,
    /// Time slice of `ps`, `cfs` and round robin; 0 for the limit of small slices.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub quantum: Number,
    /// Groups with guaranteed shares; only under [`ProcessorScheduling::Cfs`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

impl Processor {
    /// A single FCFS server.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scheduling: ProcessorScheduling::Fcfs,
            multiplicity: one(),
            replication: one(),
            speed_factor: one(),
            quantum: zero(),
            groups: Vec::new(),
        }
    }
}

/// Queueing discipline of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessorScheduling {
    /// First come, first served.
    #[default]
    Fcfs,
    /// No queueing: as many servers as there are requests.
    Inf,
    /// Head of line: non-preemptive priority.
    Hol,
    /// Preemptive-resume priority (`pri`; also read from `pp` and `ppr`).
    Pri,
    /// Processor sharing (round robin with a small quantum).
    Ps,
    /// Completely fair scheduling over groups.
    Cfs,
    /// Random order.
    Rand,
    /// Last come, first served.
    Lcfs,
    /// Round robin with a quantum.
    Rr,
}

/// A share of a `cfs` processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Unique among groups.
    pub name: String,
    /// Guaranteed share, in (0, 1].
    pub share: Number,
    /// Whether the share is also an upper bound.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cap: bool,
}

/// A task: threads that accept requests to its entries from one queue; a reference task is a class of customers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Unique among tasks.
    pub name: String,
    /// The processor it runs on.
    pub processor: String,
    /// The group of that processor, under `cfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Queueing discipline, or the kind of customer or lock.
    #[serde(default)]
    pub scheduling: TaskScheduling,
    /// Threads, customers or tokens: an integer ≥ 1, or infinite.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiplicity: Number,
    /// Number of copies, an integer ≥ 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replication: Number,
    /// Priority at the processor; larger is more urgent.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub priority: Number,
    /// Mean think time between cycles; customers only.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub think_time: Number,
    /// Places for asynchronous requests; 0 for no bound.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub queue_length: Number,
    /// Tokens a semaphore starts with, where the file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_tokens: Option<Number>,
    /// Called tasks' copies that each copy of this one calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fan_out: Vec<Fan>,
    /// Calling tasks' copies that call each copy of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fan_in: Vec<Fan>,
    /// Entries, in file order; at least one.
    #[serde(default)]
    pub entries: Vec<Entry>,
    /// Activities of the task's graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<Activity>,
    /// How the activities follow one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precedences: Vec<Precedence>,
    /// Which activity replies to which entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<Reply>,
}

impl Task {
    /// A single-threaded FCFS task without entries.
    pub fn new(name: impl Into<String>, processor: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            processor: processor.into(),
            group: None,
            scheduling: TaskScheduling::Fcfs,
            multiplicity: one(),
            replication: one(),
            priority: zero(),
            think_time: zero(),
            queue_length: zero(),
            initial_tokens: None,
            fan_out: Vec::new(),
            fan_in: Vec::new(),
            entries: Vec::new(),
            activities: Vec::new(),
            precedences: Vec::new(),
            replies: Vec::new(),
        }
    }
}

/// Queueing discipline of a task, or its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskScheduling {
    /// Customers with exponential think time (reference task).
    Ref,
    /// Customers with Pareto think time.
    Burst,
    /// Customers with uniform think time.
    Uniform,
    /// First come, first served.
    #[default]
    Fcfs,
    /// A thread for every request.
    Inf,
    /// Head of line: non-preemptive priority of the requests.
    Hol,
    /// Preemptive priority (solved as FCFS by the LQN tools).
    Pri,
    /// Polling over entries.
    Poll,
    /// Random order.
    Rand,
    /// Counting semaphore with `multiplicity` tokens.
    Semaphore,
    /// Read-write lock.
    RwLock,
}

impl TaskScheduling {
    /// Whether tasks of this kind are customers: they are not called and cycle for ever.
    pub fn is_reference(self) -> bool {
        matches!(self, Self::Ref | Self::Burst | Self::Uniform)
    }

    /// Whether tasks of this kind are locks.
    pub fn is_lock(self) -> bool {
        matches!(self, Self::Semaphore | Self::RwLock)
    }
}

/// A fan-out or fan-in: the other task and the number of its copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fan {
    /// The other task.
    pub task: String,
    /// Copies, an integer ≥ 1.
    pub value: Number,
}

/// An entry: an operation of a task. Its work is either phases or a part of the task's activity graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Unique among all entries of the model.
    pub name: String,
    /// Rate of Poisson arrivals from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_arrival_rate: Option<Number>,
    /// Priority in a `hol` task's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Number>,
    /// Role in a semaphore task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semaphore: Option<SemaphoreRole>,
    /// Role in a read-write-lock task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rwlock: Option<RwLockRole>,
    /// Probability that a customer with several entries picks this one; absent is uniform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit_probability: Option<Number>,
    /// Entries to which the reply is passed on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwarding: Vec<Forwarding>,
    /// Phases, by ascending number; empty where the entry starts an activity graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// The activity of the task's graph that starts when a request is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_activity: Option<String>,
}

impl Entry {
    /// An entry without work.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The activity of phase `number` (1 to 3), if the entry has that phase.
    pub fn phase(&self, number: u8) -> Option<&Activity> {
        self.phases.iter().find(|p| p.phase == number).map(|p| &p.activity)
    }
}

/// Role of an entry in a semaphore task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SemaphoreRole {
    /// Takes a token.
    Wait,
    /// Gives a token back.
    Signal,
}

/// Role of an entry in a read-write-lock task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RwLockRole {
    /// Takes a read lock.
    RLock,
    /// Gives a read lock back.
    RUnlock,
    /// Takes the write lock.
    WLock,
    /// Gives the write lock back.
    WUnlock,
}

/// Passing the duty to reply on to another entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forwarding {
    /// The entry that goes on.
    pub dest: String,
    /// With what probability; the sum over an entry is ≤ 1.
    pub probability: Number,
}

/// One phase of an entry: the work of phase 1 is done before the reply, that of phases 2 and 3 after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// 1, 2 or 3.
    pub phase: u8,
    /// The work.
    #[serde(flatten)]
    pub activity: Activity,
}

/// A piece of work: demand on the processor, cut into slices by calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Where > 0, the probability of a longer service time is to be reported.
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

impl Pre {
    /// The activities on this side.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::Single(name) => std::slice::from_ref(name),
            Self::And { activities, .. } => activities.as_slice(),
            Self::Or(names) => names.as_slice(),
        }
        .iter()
        .map(String::as_str)
    }
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

impl Model {
    /// The processor of that name.
    pub fn processor(&self, name: &str) -> Option<&Processor> {
        self.processors.iter().find(|p| p.name == name)
    }

    /// The task of that name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|t| t.name == name)
    }

    /// The entry of that name with its task.
    pub fn entry(&self, name: &str) -> Option<(&Task, &Entry)> {
        self.tasks.iter().find_map(|t| t.entries.iter().find(|e| e.name == name).map(|e| (t, e)))
    }
}
