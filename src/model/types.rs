//! The elements of a layered queueing network.
//!
//! Elements refer to one another by name, as in the files they come from; [`super::validate`] checks the references and
//! the solvers compile them into indices. Defaults are those of the LQN tools (5.32).

use serde::{Deserialize, Serialize};

use super::{
    Activity, Histogram, Number, Observation, Parameter, Phase, Precedence, Reply,
    number::{is_default, is_one, is_zero, one, zero},
};

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
    /// Results that the file names, in file order; kept for the round trip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<Observation>,
    /// Histograms that the file asks for elsewhere than once on a phase or activity; kept for the round trip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
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

    /// Whether any number of the model is a `$name`.
    pub(crate) fn has_parameters(&self) -> bool {
        let mut found = false;
        self.for_each_number(&mut |number| found |= number.parameter().is_some());
        found
    }

    /// Calls `visit` with every number of the model, in file order.
    pub(super) fn for_each_number(&self, visit: &mut dyn FnMut(&Number)) {
        let SolverParams { conv_val, it_limit, underrelax_coeff, print_int, .. } = &self.solver_params;
        [conv_val, it_limit, underrelax_coeff, print_int].into_iter().flatten().for_each(&mut *visit);
        for processor in &self.processors {
            [&processor.multiplicity, &processor.replication, &processor.speed_factor, &processor.quantum]
                .into_iter()
                .for_each(&mut *visit);
            processor.groups.iter().for_each(|g| visit(&g.share));
        }
        for task in &self.tasks {
            task.for_each_number(visit);
        }
    }
}

impl Task {
    fn for_each_number(&self, visit: &mut dyn FnMut(&Number)) {
        [&self.multiplicity, &self.replication, &self.priority, &self.think_time, &self.queue_length].into_iter().for_each(&mut *visit);
        self.initial_tokens.iter().for_each(&mut *visit);
        self.fan_out.iter().chain(&self.fan_in).for_each(|fan| visit(&fan.value));
        for entry in &self.entries {
            [&entry.open_arrival_rate, &entry.priority, &entry.visit_probability].into_iter().flatten().for_each(&mut *visit);
            entry.forwarding.iter().for_each(|f| visit(&f.probability));
            entry.phases.iter().for_each(|p| p.activity.for_each_number(visit));
        }
        self.activities.iter().for_each(|a| a.for_each_number(visit));
        self.precedences.iter().for_each(|p| p.for_each_number(visit));
    }
}
