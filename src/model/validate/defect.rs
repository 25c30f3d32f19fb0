//! All that can be wrong in a model.

use super::super::Declared;

/// How bad a [`Defect`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The model cannot be solved.
    Error,
    /// The model can be solved, but something in it is probably not meant.
    Warning,
}

/// Something wrong in a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{element}: {kind}")]
pub struct Defect {
    /// The element as a person would say it: `task "Web"`, `entry "get" of task "Web"`.
    pub element: String,
    /// What to look for in the file that the model is from ([`Places`](super::super::Places)); none for the model itself.
    pub declared: Option<Declared>,
    /// What is wrong.
    pub kind: DefectKind,
}

/// What can be wrong in a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DefectKind {
    /// The model has no processors, no tasks or no load.
    #[error("the model is empty: {0}")]
    Empty(&'static str),
    /// An element without a name.
    #[error("it has no name")]
    NoName,
    /// Two elements of a kind have one name.
    #[error("another {kind} has the same name")]
    DuplicateName {
        /// Of what kind they are.
        kind: &'static str,
    },
    /// A text with a character that model files cannot hold.
    #[error("\"{text}\" has a control character")]
    ControlCharacter {
        /// The text, escaped.
        text: String,
    },
    /// A reference to a name that nothing has.
    #[error("{role} {kind} \"{name}\", which does not exist")]
    Unknown {
        /// What is done to the named element: `it calls`.
        role: &'static str,
        /// What it should be.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A reply to, or a start by, an entry of another task.
    #[error("it replies to entry \"{entry}\" of task \"{task}\": activities reply to entries of their own task")]
    ForeignReply {
        /// The entry.
        entry: String,
        /// Its task.
        task: String,
    },
    /// A parameter's name that cannot follow a `$`.
    #[error("\"{name}\" is not a parameter's name: expected letters, digits and underscores, not starting with a digit")]
    ParameterName {
        /// The name.
        name: String,
    },
    /// A parameter's value that cannot be used.
    #[error("its value cannot be used: {reason}")]
    ParameterValue {
        /// Why.
        reason: String,
    },
    /// A `$name` where only a number may stand.
    #[error("its {quantity} is ${parameter}: it must be a number")]
    ParameterNotAllowed {
        /// The quantity.
        quantity: &'static str,
        /// The parameter.
        parameter: String,
    },
    /// A histogram without bins or width.
    #[error("its histogram is empty: from {min} to {max} in {bins} bins")]
    EmptyHistogram {
        /// Lower end.
        min: f64,
        /// Upper end.
        max: f64,
        /// Number of bins.
        bins: u32,
    },
    /// A value that is infinite or not a number.
    #[error("its {quantity} is {value}: it must be finite")]
    NotFinite {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// A value below 0.
    #[error("its {quantity} is {value}: it must not be negative")]
    Negative {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// A value of 0 or below where only positive ones make sense.
    #[error("its {quantity} is {value}: it must be greater than 0")]
    NotPositive {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// A fraction where a whole number is needed.
    #[error("its {quantity} is {value}: it must be a whole number")]
    NotInteger {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// A count below 1.
    #[error("its {quantity} is {value}: it must be at least 1")]
    BelowOne {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// A count beyond what is counted.
    #[error("its {quantity} is {value:e}: it must be at most {}, or infinite where it can be", u32::MAX)]
    TooMany {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// A probability or share above 1.
    #[error("its {quantity} is {value}: it must not be above 1")]
    AboveOne {
        /// The quantity.
        quantity: &'static str,
        /// The value.
        value: f64,
    },
    /// Infinitely many customers or tokens.
    #[error("a {kind} cannot have infinitely many {members}")]
    Infinite {
        /// Reference task or lock.
        kind: &'static str,
        /// Customers or tokens.
        members: &'static str,
    },
    /// A think time on a task that is not a customer.
    #[error("its think time is {think_time}: only reference tasks think")]
    ThinkingServer {
        /// The think time.
        think_time: f64,
    },
    /// A phase that is not 1, 2 or 3.
    #[error("phase {0} does not exist: phases are 1, 2 and 3")]
    PhaseNumber(u8),
    /// Phases that do not ascend.
    #[error("phase {0} stands after phase {1}: phases ascend, each once")]
    PhaseOrder(u8, u8),
    /// An entry with phases and a start activity.
    #[error("it has both phases and a start activity")]
    PhasesAndActivities,
    /// An entry that does nothing.
    #[error("it has neither phases nor a start activity")]
    NoActivities,
    /// A task without entries.
    #[error("it has no entries")]
    NoEntries,
    /// A task on a `cfs` processor without a group.
    #[error("it needs a group: processor \"{processor}\" shares by groups")]
    NoGroup {
        /// The processor.
        processor: String,
    },
    /// A customer that is called.
    #[error("{caller} calls it, but it is a reference task: customers are not called")]
    CalledReferenceTask {
        /// Who calls.
        caller: String,
    },
    /// Something that entries of customers cannot have.
    #[error("an entry of a reference task cannot have {what}")]
    ReferenceTaskEntry {
        /// What it has.
        what: &'static str,
    },
    /// An entry whose callers partly wait for a reply and partly do not.
    #[error("it is called synchronously by {sync} and asynchronously by {send}: an entry takes one kind of request")]
    SyncAndAsync {
        /// A caller that waits.
        sync: String,
        /// A caller that does not, or open arrivals.
        send: String,
    },
    /// A request for a lock without anybody waiting for it.
    #[error("it takes a lock, so its callers must wait for it: {send} does not")]
    AsyncToLock {
        /// The caller that does not wait.
        send: String,
    },
    /// Tasks that wait for one another.
    #[error("cycle of synchronous calls: {}", path.join(" -> "))]
    CallCycle {
        /// The tasks by name, the first again at the end; called ones with the entry that is called.
        path: Vec<String>,
    },
    /// Forwarding probabilities that sum to more than 1.
    #[error("its forwarding probabilities sum to {sum}: they must not exceed 1")]
    ForwardingSum {
        /// The sum.
        sum: f64,
    },
    /// A mean number of calls that is not whole under deterministic order.
    #[error("it makes {mean} calls to \"{dest}\": a deterministic number of calls is whole")]
    FractionalCalls {
        /// The called entry.
        dest: String,
        /// The mean number.
        mean: f64,
    },
    /// A lock without exactly its kinds of entries.
    #[error("a {kind} needs {expected}, each once")]
    LockEntries {
        /// Semaphore or read-write lock.
        kind: &'static str,
        /// The entries it needs.
        expected: &'static str,
    },
    /// A lock's role on another kind of task.
    #[error("it has the role of a {kind}'s entry, but its task is none")]
    LockRole {
        /// Semaphore or read-write lock.
        kind: &'static str,
    },
    /// Copies that cannot be paired.
    #[error("{n_callers} copies calling {fan_out} copies each of \"{callee}\" do not match its {n_callees} copies called by {fan_in} each")]
    ReplicationMismatch {
        /// The called task.
        callee: String,
        /// Copies of the caller.
        n_callers: f64,
        /// Fan-out of the caller.
        fan_out: f64,
        /// Copies of the called task.
        n_callees: f64,
        /// Fan-in of the called task.
        fan_in: f64,
    },
    /// Copies that cannot be spread over processors.
    #[error("its {n_tasks} copies cannot be spread evenly over the {n_processors} copies of processor \"{processor}\"")]
    ProcessorReplication {
        /// The processor.
        processor: String,
        /// Copies of the task.
        n_tasks: f64,
        /// Copies of the processor.
        n_processors: f64,
    },
    /// An activity with more than one predecessor or successor list.
    #[error("it stands in two {side} lists")]
    RepeatedInLists {
        /// `pre` or `post`.
        side: &'static str,
    },
    /// A start activity that also follows another.
    #[error("it starts entry \"{entry}\", so it cannot follow another activity")]
    StartInPost {
        /// The entry.
        entry: String,
    },
    /// Two entries with one start activity.
    #[error("entries \"{first}\" and \"{second}\" both start with it")]
    SharedStart {
        /// An entry.
        first: String,
        /// Another.
        second: String,
    },
    /// Activities that follow themselves.
    #[error("its activities follow one another in a cycle through \"{activity}\": repetition needs a loop")]
    ActivityCycle {
        /// An activity on the cycle.
        activity: String,
    },
    /// An activity that no entry leads to.
    #[error("no entry leads to it")]
    UnreachableActivity,
    /// Or-fork probabilities that do not sum to 1.
    #[error("the probabilities of the or-fork after \"{activity}\" sum to {sum}: they must sum to 1")]
    OrForkSum {
        /// The (first) activity before the fork.
        activity: String,
        /// The sum.
        sum: f64,
    },
    /// A join of branches that no fork started.
    #[error("\"{first}\" and \"{second}\" are joined but start at no common and-fork")]
    JoinWithoutFork {
        /// A joined activity.
        first: String,
        /// Another.
        second: String,
    },
    /// A quorum above the number of branches.
    #[error("the quorum of the join of \"{activity}\" is {quorum} of {n_branches} branches")]
    Quorum {
        /// The first joined activity.
        activity: String,
        /// The quorum.
        quorum: f64,
        /// The number of branches.
        n_branches: usize,
    },
    /// A reply where it may happen any number of times.
    #[error("it replies to entry \"{entry}\" from within a {place}")]
    ReplyPlace {
        /// The entry.
        entry: String,
        /// Loop body or quorum branch.
        place: &'static str,
    },
    /// A reply to an entry whose callers do not wait.
    #[error("it replies to entry \"{entry}\", whose requests expect no reply ({send})")]
    ReplyToAsync {
        /// The entry.
        entry: String,
        /// Who sends.
        send: String,
    },
    /// A reply to an entry with phases.
    #[error("it replies to entry \"{entry}\", which has phases and replies by itself")]
    ReplyToPhases {
        /// The entry.
        entry: String,
    },
    /// A called graph that does not reply exactly once.
    #[error("its activities reply {expected} times on average: a caller needs exactly one reply")]
    Replies {
        /// The mean number of replies.
        expected: f64,
    },
    /// A processor or group without tasks.
    #[error("no task uses it")]
    Unused,
    /// An entry without requests.
    #[error("nothing calls it")]
    UncalledEntry,
    /// An entry that is called, but only by what is never executed.
    #[error("it is called only by entries that no customer and no open arrivals reach")]
    UnreachableEntry,
    /// A customer with several entries.
    #[error("a reference task with several entries picks one at random for each cycle")]
    SeveralCustomerEntries,
    /// A destination that a phase calls twice.
    #[error("it calls \"{dest}\" more than once: the first counts")]
    RepeatedDestination {
        /// The called entry.
        dest: String,
    },
    /// A priority that has no effect.
    #[error("its priority has no effect under {scheduling} scheduling")]
    PriorityIgnored {
        /// The scheduling.
        scheduling: &'static str,
    },
    /// A quantum that has no effect.
    #[error("its quantum has no effect: it does not share by time slices")]
    QuantumIgnored,
    /// A multiplicity that has no effect.
    #[error("its multiplicity has no effect: it has infinitely many servers")]
    MultiplicityIgnored,
    /// An infinite server whose load is not bounded by customers.
    #[error("it has infinitely many threads and takes requests from {send}: nothing bounds its load")]
    UnboundedServer {
        /// Who sends.
        send: String,
    },
    /// A call that is never made.
    #[error("it calls \"{dest}\" 0 times")]
    ZeroCalls {
        /// The called entry.
        dest: String,
    },
    /// Work that takes no time and calls nothing.
    #[error("it has no demand, no think time and no calls")]
    NoWork,
    /// Groups that have no effect.
    #[error("its groups have no effect: only cfs scheduling shares by groups")]
    GroupsIgnored,
    /// A pragma that is not among those known.
    #[error("pragma \"{param}\" is not known: it is kept and not acted on")]
    UnknownPragma {
        /// Its name.
        param: String,
    },
    /// A part of the file that is kept and not acted on.
    #[error("its {element} is kept but not carried out")]
    NotCarriedOut {
        /// The part.
        element: String,
    },
}

impl DefectKind {
    /// Whether the defect prevents a solution.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Unused
            | Self::UncalledEntry
            | Self::UnreachableEntry
            | Self::SeveralCustomerEntries
            | Self::RepeatedDestination { .. }
            | Self::PriorityIgnored { .. }
            | Self::QuantumIgnored
            | Self::MultiplicityIgnored
            | Self::UnboundedServer { .. }
            | Self::ZeroCalls { .. }
            | Self::NoWork
            | Self::GroupsIgnored
            | Self::UnknownPragma { .. }
            | Self::NotCarriedOut { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
