//! Models that can be read but not solved, or hardly be meant.

use layerfit::model::{Activity, Bindings, Entry, Model, Number, Phase, Processor, Severity, Task};

use super::{text, xml};

/// Tasks on one processor: a customer `cc` of `c1` that calls `e1` once, and the given tasks and entry lines.
fn model(tasks: &str, lines: &str) -> Model {
    text(&format!("P 0 p p1 f -1 T 0 t c1 r cc -1 p1 {tasks} -1 E 0 s cc 1 -1 y cc e1 1 -1 {lines}"))
}

/// With a server `t1` of entries `e1` and `e2` and the lines given, `s e1` and `s e2` apart.
fn entries(lines: &str) -> Model {
    model("t t1 n e1 -1 p1 t t2 n e2 -1 p1", &format!("s e1 1 -1 s e2 1 -1 {lines} -1"))
}

/// With a task `t1` of entry `e1` whose graph starts with `aa`; further activities `bb`, `dd`, `ee`.
fn graph(connections: &str) -> Model {
    let activities = "s aa 1 s bb 1 s dd 1 s ee 1";
    model("t t1 n e1 -1 p1 t t2 n e2 -1 p1", &format!("A e1 aa s e2 1 -1 y e1 e2 0 -1 -1 A t1 {activities} : {connections} -1"))
        .without_phases("e1")
}

trait WithoutPhases {
    fn without_phases(self, entry: &str) -> Self;
}

impl WithoutPhases for Model {
    fn without_phases(mut self, entry: &str) -> Self {
        self.tasks.iter_mut().flat_map(|t| &mut t.entries).filter(|e| e.name == entry).for_each(|e| e.phases.clear());
        self
    }
}

fn messages(model: &Model, severity: Severity) -> Vec<String> {
    model.validate().iter().filter(|d| d.kind.severity() == severity).map(ToString::to_string).collect()
}

/// Asserts that exactly the `expected` errors are found.
#[track_caller]
fn check(model: &Model, expected: &[&str]) {
    assert_eq!(messages(model, Severity::Error), expected);
    assert_eq!(model.clone().validated().is_err(), !expected.is_empty());
}

/// Asserts that there is no error, and that the `expected` warning is among those found.
#[track_caller]
fn check_warning(model: &Model, expected: &str) {
    assert_eq!(messages(model, Severity::Error), [""; 0]);
    let warnings = messages(model, Severity::Warning);
    assert!(warnings.iter().any(|w| w == expected), "{warnings:#?}");
}

#[test]
fn sound_models_have_no_defects() {
    assert_eq!(entries("y e1 e2 1 -1").validate(), []);
    assert_eq!(graph("aa -> bb & dd; bb & dd -> ee; ee[e1]").validate().len(), 1, "e2 is not called");
}

#[test]
fn empty_models() {
    check(&Model::default(), &["model: the model is empty: it has no processors", "model: the model is empty: it has no tasks"]);
    check(
        &text("P 0 p p1 f -1 T 0 t t1 n e1 -1 p1 -1 E 0 s e1 1 -1 -1"),
        &["model: the model is empty: it has no reference task and no open arrivals"],
    );
    let no_entries = Model {
        processors: vec![Processor::new("P")],
        tasks: vec![Task::new("T", "P")],
        ..text("P 0 p p1 f -1 T 0 t c1 r cc -1 p1 -1 E 0 s cc 1 -1 -1")
    };
    check(&no_entries, &["model: the model is empty: it has no reference task and no open arrivals", "task \"T\": it has no entries"]);
}

#[test]
fn names_stand_once() {
    let mut doubled = entries("y e1 e2 1 -1");
    doubled.processors.push(Processor::new("p1"));
    doubled.tasks[2].name = "t1".into();
    check(&doubled, &["processor \"p1\": another processor has the same name", "task \"t1\": another task has the same name"]);
    let mut doubled = entries("y e1 e2 1 -1");
    let phases = doubled.tasks[2].entries[0].phases.clone();
    doubled.tasks[2].entries.push(Entry { phases, ..Entry::new("e1") });
    check(&doubled, &["entry \"e1\" of task \"t2\": another entry has the same name"]);
    let mut doubled = graph("aa[e1] -> bb");
    doubled.tasks[1].activities.remove(3);
    doubled.tasks[1].activities[2].name = "bb".into();
    check(
        &doubled,
        &[
            "activity \"bb\" of task \"t1\": another activity of the task has the same name",
            "activity \"bb\" of task \"t1\": no entry leads to it",
        ],
    );
    check(
        &text("$a = 1 $a = 2 P 0 p p1 f -1 T 0 t c1 r cc -1 p1 -1 E 0 s cc 1 -1 -1"),
        &["parameter $a: another parameter has the same name"],
    );
    let mut nameless = entries("y e1 e2 1 -1");
    nameless.tasks[0].name.clear();
    check(&nameless, &["task \"\": it has no name"]);
    let mut strange = entries("y e1 e2 1 -1");
    strange.tasks[0].name = "a\u{1}".into();
    check(&strange, &["task \"a\u{1}\": \"a\\u{1}\" has a control character"]);
}

#[test]
fn references_exist() {
    let mut lost = entries("y e1 e2 1 -1 F e1 e2 0.5 -1");
    lost.tasks[1].processor = "p9".into();
    lost.tasks[1].entries[0].phases[0].activity.calls[0].dest = "e9".into();
    lost.tasks[1].entries[0].forwarding[0].dest = "e8".into();
    lost.tasks[2].group = Some("g9".into());
    check(
        &lost,
        &[
            "task \"t1\": it runs on processor \"p9\", which does not exist",
            "task \"t2\": it is in group of its processor \"g9\", which does not exist",
            "entry \"e1\" of task \"t1\": it forwards to entry \"e8\", which does not exist",
            "phase 1 of entry \"e1\" of task \"t1\": it calls entry \"e9\", which does not exist",
        ],
    );
    let mut lost = graph("aa[e1] -> bb & dd & ee");
    lost.tasks[1].entries[0].start_activity = Some("xx".into());
    lost.tasks[1].precedences[0].post = Some(layerfit::model::Post::Single("yy".into()));
    lost.tasks[1].replies[0].activity = "zz".into();
    let found = messages(&lost, Severity::Error);
    for expected in [
        "entry \"e1\" of task \"t1\": it starts with activity \"xx\", which does not exist",
        "task \"t1\": a precedence has activity \"yy\", which does not exist",
        "task \"t1\": a reply is sent by activity \"zz\", which does not exist",
    ] {
        assert!(found.iter().any(|f| f == expected), "{expected}\n{found:#?}");
    }
}

#[test]
fn numbers_are_in_range() {
    let mut wrong = entries("y e1 e2 1 -1");
    let processor = &mut wrong.processors[0];
    (processor.multiplicity, processor.replication) = (0.0.into(), 1.5.into());
    (processor.speed_factor, processor.quantum) = (0.0.into(), (-1.0).into());
    let expected = [
        "processor \"p1\": its multiplicity is 0: it must be at least 1",
        "processor \"p1\": its replication is 1.5: it must be a whole number",
        "processor \"p1\": its speed factor is 0: it must be greater than 0",
        "processor \"p1\": its quantum is -1: it must not be negative",
    ];
    let found = messages(&wrong, Severity::Error);
    assert_eq!(found[..4], expected);
    let mut wrong = entries("y e1 e2 1 -1");
    wrong.tasks[0].think_time = f64::NAN.into();
    wrong.tasks[0].multiplicity = f64::INFINITY.into();
    wrong.tasks[1].multiplicity = 2.5.into();
    wrong.tasks[1].priority = (-1.0).into();
    wrong.tasks[1].think_time = 3.0.into();
    wrong.tasks[1].entries[0].open_arrival_rate = Some(f64::INFINITY.into());
    wrong.tasks[1].entries[0].phases[0].activity.host_demand = (-0.5).into();
    wrong.tasks[1].entries[0].phases[0].activity.host_demand_cvsq = f64::INFINITY.into();
    wrong.tasks[1].entries[0].phases[0].activity.calls[0].mean = (-2.0).into();
    let found = messages(&wrong, Severity::Error);
    for expected in [
        "task \"c1\": its think time is NaN: it must be finite",
        "task \"c1\": a reference task cannot have infinitely many customers",
        "task \"t1\": its multiplicity is 2.5: it must be a whole number",
        "task \"t1\": its priority is -1: it must not be negative",
        "task \"t1\": its think time is 3: only reference tasks think",
        "entry \"e1\" of task \"t1\": its open arrival rate is inf: it must be finite",
        "phase 1 of entry \"e1\" of task \"t1\": its host demand is -0.5: it must not be negative",
        "phase 1 of entry \"e1\" of task \"t1\": its squared coefficient of variation is inf: it must be finite",
        "phase 1 of entry \"e1\" of task \"t1\": its mean number of synchronous calls is -2: it must not be negative",
    ] {
        assert!(found.iter().any(|f| f == expected), "{expected}\n{found:#?}");
    }
}

#[test]
fn bound_values_are_judged_when_they_are_known() {
    let mut open = entries("y e1 e2 1 -1 F e2 e1 0.5 -1");
    open.tasks[2].entries[0].forwarding.clear();
    open.tasks[0].multiplicity = Number::Parameter("users".into());
    open.tasks[1].entries[0].phases[0].activity.host_demand = Number::Parameter("demand".into());
    check(&open, &[]);
    let bound = |users: f64, demand: f64| -> Vec<String> {
        let bindings: Bindings = [("users", users), ("demand", demand)].into_iter().collect();
        open.validate_bound(&bindings).iter().map(ToString::to_string).collect()
    };
    assert_eq!(bound(3.0, 0.5), [""; 0]);
    assert_eq!(bound(2.5, 0.5), ["task \"c1\": its multiplicity is 2.5: it must be a whole number"]);
    assert_eq!(bound(3.0, -0.5), ["phase 1 of entry \"e1\" of task \"t1\": its host demand is -0.5: it must not be negative"]);
    assert_eq!(bound(f64::INFINITY, 0.5), ["task \"c1\": a reference task cannot have infinitely many customers"]);
    assert_eq!(bound(0.0, f64::NAN).len(), 2);
}

#[test]
fn probabilities_and_counts_of_calls() {
    check(
        &model("t t1 n e1 -1 p1 t t2 n e2 e3 -1 p1", "s e1 1 -1 s e2 1 -1 s e3 1 -1 F e1 e2 0.7 -1 F e1 e3 0.4 -1 -1"),
        &["entry \"e1\" of task \"t1\": its forwarding probabilities sum to 1.1: they must not exceed 1"],
    );
    check(
        &entries("F e1 e2 1.5 -1"),
        &[
            "entry \"e1\" of task \"t1\": its forwarding probability is 1.5: it must not be above 1",
            "entry \"e1\" of task \"t1\": its forwarding probabilities sum to 1.5: they must not exceed 1",
        ],
    );
    check(
        &entries("f e1 1 -1 y e1 e2 1.5 -1"),
        &["phase 1 of entry \"e1\" of task \"t1\": it makes 1.5 calls to \"e2\": a deterministic number of calls is whole"],
    );
    check(&entries("f e1 0 -1 y e1 e2 1.5 -1"), &[]);
}

#[test]
fn customers_only_call() {
    check(
        &entries("y e1 cc 1 -1"),
        &[
            "entry \"cc\" of task \"c1\": phase 1 of entry \"e1\" of task \"t1\" calls it, but it is a reference task: customers are not called",
            "task \"c1\": cycle of synchronous calls: c1 -> t1 (\"e1\") -> c1 (\"cc\")",
        ],
    );
    check(
        &entries("z e1 cc 1 -1 y e1 e2 1 -1"),
        &[
            "entry \"cc\" of task \"c1\": phase 1 of entry \"e1\" of task \"t1\" calls it, but it is a reference task: customers are not called",
        ],
    );
    check(&entries("a cc 1"), &["entry \"cc\" of task \"c1\": an entry of a reference task cannot have open arrivals"]);
    check(&entries("F cc e2 0.5 -1"), &["entry \"cc\" of task \"c1\": an entry of a reference task cannot have forwarding"]);
}

#[test]
fn entries_take_one_kind_of_request() {
    check(
        &entries("z e1 e2 1 -1 y cc e2 1 -1"),
        &[
            "entry \"e2\" of task \"t2\": it is called synchronously by phase 1 of entry \"cc\" of task \"c1\" and asynchronously by phase 1 of entry \"e1\" of task \"t1\": an entry takes one kind of request",
        ],
    );
    check(
        &entries("a e1 0"),
        &[
            "entry \"e1\" of task \"t1\": it is called synchronously by phase 1 of entry \"cc\" of task \"c1\" and asynchronously by open arrivals: an entry takes one kind of request",
        ],
    );
    check(&entries("a e2 0.1"), &[]);
    check(&entries("z e1 e2 1 -1"), &[]);
}

#[test]
fn cycles_of_calls_are_named() {
    check(
        &model("t t1 n e1 e3 -1 p1 t t2 n e2 -1 p1", "s e1 1 -1 s e2 1 -1 s e3 1 -1 y e1 e2 1 -1 y e2 e3 1 -1 -1"),
        &["task \"t1\": cycle of synchronous calls: t1 -> t2 (\"e2\") -> t1 (\"e3\")"],
    );
    check(&entries("y e1 e1 1 -1"), &["task \"t1\": cycle of synchronous calls: t1 -> t1 (\"e1\")"]);
    check(&entries("y e1 e2 1 -1 F e2 e1 0.5 -1"), &["task \"t1\": cycle of synchronous calls: t1 -> t2 (\"e2\") -> t1 (\"e1\")"]);
    let asynchronous = model("t t1 n e1 e3 -1 p1 t t2 n e2 -1 p1", "s e1 1 -1 s e2 1 -1 s e3 1 -1 y e1 e2 1 -1 z e2 e3 1 -1 -1");
    check(&asynchronous, &[]);
}

#[test]
fn long_chains_of_calls_need_no_stack() {
    let n_tasks = 50_000;
    let mut long = text("P 0 p p1 f -1 T 0 t c1 r cc -1 p1 -1 E 0 s cc 1 -1 -1");
    for i in 0..n_tasks {
        let mut work = Activity::new("a", 1.0);
        let dest = format!("e{}", (i + 1) % n_tasks);
        work.calls.push(layerfit::model::Call { kind: layerfit::model::CallKind::Sync, dest, mean: 1.0.into() });
        let entry = Entry { phases: vec![Phase { phase: 1, activity: work }], ..Entry::new(format!("e{i}")) };
        long.tasks.push(Task { entries: vec![entry], ..Task::new(format!("t{i}"), "p1") });
    }
    let found = messages(&long, Severity::Error);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("task \"t0\": cycle of synchronous calls: t0 -> t1 (\"e1\") -> t2"));
}

#[test]
fn phases_and_activities() {
    let mut wrong = entries("y e1 e2 1 -1");
    wrong.tasks[1].entries[0].phases[0].phase = 4;
    check(&wrong, &["entry \"e1\" of task \"t1\": phase 4 does not exist: phases are 1, 2 and 3"]);
    let mut wrong = entries("y e1 e2 1 -1");
    let phase = wrong.tasks[1].entries[0].phases[0].clone();
    wrong.tasks[1].entries[0].phases.push(phase);
    check(&wrong, &["entry \"e1\" of task \"t1\": phase 1 stands after phase 1: phases ascend, each once"]);
    let mut wrong = entries("y e1 e2 1 -1");
    wrong.tasks[2].entries[0].phases.clear();
    check(&wrong, &["entry \"e2\" of task \"t2\": it has neither phases nor a start activity"]);
    let mut wrong = graph("aa[e1] -> bb; bb -> dd; dd -> ee");
    wrong.tasks[1].entries[0].phases.push(Phase { phase: 1, activity: Activity::new("x", 1.0) });
    let found = messages(&wrong, Severity::Error);
    assert_eq!(
        found,
        [
            "activity \"aa\" of task \"t1\": it replies to entry \"e1\", which has phases and replies by itself",
            "entry \"e1\" of task \"t1\": it has both phases and a start activity",
        ]
    );
    let mut wrong = entries("y e1 e2 1 -1");
    wrong.tasks[1].entries[0].phases[0].activity.max_service_time = Number::Parameter("m".into());
    check(&wrong, &["phase 1 of entry \"e1\" of task \"t1\": its maximum service time is $m: it must be a number"]);
    check(
        &entries("y e1 e2 1 -1 H e1 1 5:2 3"),
        &["phase 1 of entry \"e1\" of task \"t1\": its histogram is empty: from 5 to 2 in 3 bins"],
    );
}

#[test]
fn locks_have_exactly_their_entries() {
    let lines = |roles: &str| format!("s e1 1 -1 s e2 1 -1 y cc e2 1 -1 {roles} -1");
    check(&model("t t1 S e1 e2 -1 p1", &lines("P e1 V e2")), &[]);
    let missing = "task \"t1\": a semaphore needs a wait and a signal entry, each once";
    check(&model("t t1 S e1 e2 -1 p1", &lines("P e1 P e2")), &[missing]);
    check(&model("t t1 S e1 e2 e3 -1 p1", &lines("P e1 V e2 s e3 1 -1")), &[missing]);
    check(
        &model("t t1 W e1 e2 -1 p1", &lines("R e1 U e2")),
        &["task \"t1\": a read-write lock needs an r-lock, an r-unlock, a w-lock and a w-unlock entry, each once"],
    );
    check(
        &model("t t1 n e1 e2 -1 p1", &lines("P e1 R e2")),
        &[
            "entry \"e1\" of task \"t1\": it has the role of a semaphore's entry, but its task is none",
            "entry \"e2\" of task \"t1\": it has the role of a read-write lock's entry, but its task is none",
        ],
    );
    check(&model("t t1 S e1 e2 -1 p1 m @infinity", &lines("P e1 V e2")), &["task \"t1\": a lock cannot have infinitely many tokens"]);
    check(
        &model("t t1 S e1 e2 -1 p1", "s e1 1 -1 s e2 1 -1 z cc e2 1 -1 P e1 V e2 -1"),
        &["entry \"e2\" of task \"t1\": it takes a lock, so its callers must wait for it: phase 1 of entry \"cc\" of task \"c1\" does not"],
    );
}

#[test]
fn copies_match() {
    let replicated =
        |processors: &str, rest: &str| text(&format!("P 0 {processors} -1 T 0 {rest} -1 E 0 s cc 1 -1 s e1 1 -1 y cc e1 1 -1 -1"));
    check(&replicated("p p1 f r 4 p p2 f r 2", "t c1 r cc -1 p1 r 4 t t1 n e1 -1 p2 r 2 I c1 t1 2"), &[]);
    check(
        &replicated("p p1 f r 4 p p2 f r 2", "t c1 r cc -1 p1 r 4 t t1 n e1 -1 p2 r 2 I c1 t1 3"),
        &["task \"c1\": 4 copies calling 1 copies each of \"t1\" do not match its 2 copies called by 3 each"],
    );
    check(
        &replicated("p p1 f r 3 p p2 f", "t c1 r cc -1 p1 r 4 t t1 n e1 -1 p2 I c1 t1 4"),
        &["task \"c1\": its 4 copies cannot be spread evenly over the 3 copies of processor \"p1\""],
    );
    let open = replicated("p p1 f r $k p p2 f", "t c1 r cc -1 p1 r $k t t1 n e1 -1 p2");
    check(&open, &[]);
    let bindings: Bindings = [("k", 2.0)].into_iter().collect();
    assert_eq!(open.validate_bound(&bindings).len(), 1);
}

#[test]
fn graphs_hang_together() {
    let in_t1 = |what: &str| format!("activity \"{what}\" of task \"t1\"");
    check(&graph("aa[e1] -> bb; bb -> dd; dd -> ee"), &[]);
    check(&graph("aa[e1] -> bb; bb -> dd"), &[&format!("{}: no entry leads to it", in_t1("ee"))]);
    check(&graph("aa[e1] -> bb; aa -> dd; bb -> ee"), &[&format!("{}: it stands in two pre lists", in_t1("aa"))]);
    let found = messages(&graph("aa[e1] -> bb & dd; bb -> ee; dd -> ee"), Severity::Error);
    assert!(found.contains(&format!("{}: it stands in two post lists", in_t1("ee"))), "{found:#?}");
    let found = messages(&graph("aa[e1] -> bb; bb -> dd; dd -> aa"), Severity::Error);
    assert!(found.contains(&format!("{}: it starts entry \"e1\", so it cannot follow another activity", in_t1("aa"))), "{found:#?}");
    assert!(found.iter().any(|f| f.contains("follow one another in a cycle")), "{found:#?}");
    let mut shared = graph("aa[e1] -> bb; bb -> dd; dd -> ee");
    shared.tasks[1].entries.push(Entry { start_activity: Some("aa".into()), ..Entry::new("e5") });
    check(&shared, &[&format!("{}: entries \"e1\" and \"e5\" both start with it", in_t1("aa"))]);
}

#[test]
fn forks_and_joins_match() {
    check(&graph("aa -> bb & dd; bb & dd -> ee; ee[e1]"), &[]);
    check(
        &graph("aa -> (0.5) bb + (0.5) dd; bb & dd -> ee; ee[e1]"),
        &[
            "task \"t1\": \"bb\" and \"dd\" are joined but start at no common and-fork",
            "entry \"e1\" of task \"t1\": its activities reply 0.5 times on average: a caller needs exactly one reply",
        ],
    );
    check(&graph("aa -> (0.5) bb + (0.5) dd; bb + dd -> ee; ee[e1]"), &[]);
    check(
        &graph("aa[e1] -> (0.5) bb + (0.4) dd; bb + dd -> ee"),
        &["task \"t1\": the probabilities of the or-fork after \"aa\" sum to 0.9: they must sum to 1"],
    );
    check(&graph("aa -> bb & dd; bb & dd (3) -> ee; ee[e1]"), &["task \"t1\": the quorum of the join of \"bb\" is 3 of 2 branches"]);
    let external = text(
        "P 0 p p1 f -1 T 0 t c1 r cc -1 p1 t t1 n e1 e2 -1 p1 -1 E 0 s cc 1 -1 y cc e1 1 -1 y cc e2 1 -1 A e1 aa A e2 bb -1
         A t1 s aa 1 s bb 1 s dd 1 : aa & bb -> dd; dd[e1, e2] -1",
    );
    check(&external, &[]);
}

#[test]
fn callers_get_one_reply() {
    let replies =
        |n: &str| format!("entry \"e1\" of task \"t1\": its activities reply {n} times on average: a caller needs exactly one reply");
    check(&graph("aa -> bb; bb -> dd; dd -> ee"), &[&replies("0")]);
    check(&graph("aa[e1] -> bb; bb[e1] -> dd; dd -> ee"), &[&replies("2")]);
    check(&graph("aa -> bb & dd; bb[e1] -> ee; dd[e1]"), &[&replies("2")]);
    check(&graph("aa -> (0.5) bb + (0.5) dd; bb[e1] -> ee"), &[&replies("0.5")]);
    check(&graph("aa -> (0.5) bb + (0.5) dd; bb[e1] -> ee; dd[e1]"), &[]);
    check(&graph("aa -> ($p) bb + ({1 - $p}) dd; bb[e1] -> ee; dd[e1]"), &[]);
    check(&graph("aa -> ($p) bb + ({1 - $p}) dd; bb -> ee"), &[&replies("0")]);
    check(
        &graph("aa -> 1 * bb, dd; bb[e1] -> ee"),
        &["activity \"bb\" of task \"t1\": it replies to entry \"e1\" from within a loop body"],
    );
    check(&graph("aa -> 2.5 * bb, dd; dd[e1] -> ee"), &[]);
    let found = messages(&graph("aa -> bb & dd; bb & dd (1) -> ee; bb[e1]"), Severity::Error);
    assert_eq!(found, ["activity \"bb\" of task \"t1\": it replies to entry \"e1\" from within a quorum branch"]);
    let mut foreign = graph("aa[e1] -> bb; bb -> dd; dd -> ee");
    foreign.tasks[1].replies.push(layerfit::model::Reply { entry: "cc".into(), activity: "bb".into() });
    let found = messages(&foreign, Severity::Error);
    assert_eq!(
        found[0],
        "activity \"bb\" of task \"t1\": it replies to entry \"cc\" of task \"c1\": activities reply to entries of their own task"
    );
    let mut open = graph("aa[e1] -> bb; bb -> dd; dd -> ee");
    open.tasks[0].entries[0].phases[0].activity.calls.clear();
    open.tasks[1].entries[0].open_arrival_rate = Some(0.5.into());
    check(&open, &["activity \"aa\" of task \"t1\": it replies to entry \"e1\", whose requests expect no reply (open arrivals)"]);
}

#[test]
fn groups_and_cfs() {
    let cfs = |scheduling: &str, task: &str| {
        text(&format!("P 0 p p1 {scheduling} -1 U 0 g gg 0.5 p1 -1 T 0 t c1 r cc -1 p1 {task} -1 E 0 s cc 1 -1 -1"))
    };
    check(&cfs("c 0.1", "g gg"), &[]);
    check(&cfs("c 0.1", ""), &["task \"c1\": it needs a group: processor \"p1\" shares by groups"]);
    check_warning(&cfs("f", "g gg"), "processor \"p1\": its groups have no effect: only cfs scheduling shares by groups");
    let mut wrong = cfs("c 0.1", "g gg");
    wrong.processors[0].groups[0].share = 0.0.into();
    check(&wrong, &["group \"gg\" of processor \"p1\": its share is 0: it must be greater than 0"]);
    wrong.processors[0].groups[0].share = 1.5.into();
    check(&wrong, &["group \"gg\" of processor \"p1\": its share is 1.5: it must not be above 1"]);
}

#[test]
fn parameters_are_usable() {
    let mut wrong = entries("y e1 e2 1 -1");
    let value = layerfit::model::ParameterValue::Expression("1 +".into());
    wrong.parameters.push(layerfit::model::Parameter { name: "a b".into(), value });
    let value = layerfit::model::ParameterValue::Range { from: 1.0, to: 2.0, step: 0.0 };
    wrong.parameters.push(layerfit::model::Parameter { name: "r".into(), value });
    check(
        &wrong,
        &[
            "parameter $a b: \"a b\" is not a parameter's name: expected letters, digits and underscores, not starting with a digit",
            "parameter $a b: its value cannot be used: expression \"1 +\", column 4: expected a number, a parameter, a function or \"(\", found the end of the input",
            "parameter $r: its value cannot be used: the range has no values, or more than a million",
        ],
    );
}

#[test]
fn doubtful_models_are_warned_of() {
    check_warning(&entries(""), "entry \"e2\" of task \"t2\": nothing calls it");
    check_warning(
        &model("t t1 n e1 -1 p1 t t2 n e2 -1 p1 t t3 n e3 -1 p1", "s e1 1 -1 s e2 1 -1 s e3 1 -1 y e2 e3 1 -1 -1"),
        "entry \"e3\" of task \"t3\": it is called only by entries that no customer and no open arrivals reach",
    );
    check_warning(
        &text("P 0 p p1 f p p2 f -1 T 0 t c1 r cc c3 -1 p1 -1 E 0 s cc 1 -1 s c3 1 -1 -1"),
        "task \"c1\": a reference task with several entries picks one at random for each cycle",
    );
    check_warning(&text("P 0 p p1 f p p2 f -1 T 0 t c1 r cc -1 p1 -1 E 0 s cc 1 -1 -1"), "processor \"p2\": no task uses it");
    check_warning(
        &entries("y e1 e2 1 -1 y e1 e2 2 -1"),
        "phase 1 of entry \"e1\" of task \"t1\": it calls \"e2\" more than once: the first counts",
    );
    check_warning(&entries("y e1 e2 0 -1"), "phase 1 of entry \"e1\" of task \"t1\": it calls \"e2\" 0 times");
    check_warning(
        &model("t t1 n e1 -1 p1 t t2 n e2 -1 p1", "s e1 1 -1 s e2 0 -1 y e1 e2 1 -1 -1"),
        "phase 1 of entry \"e2\" of task \"t2\": it has no demand, no think time and no calls",
    );
    check_warning(&model("t t1 n e1 -1 p1 3", "s e1 1 -1 -1"), "task \"t1\": its priority has no effect under fcfs scheduling");
    check_warning(&entries("p e1 3"), "entry \"e1\" of task \"t1\": its priority has no effect under fcfs scheduling");
    check_warning(
        &model("t t1 i e1 -1 p1 m 3", "s e1 1 -1 -1"),
        "task \"t1\": its multiplicity has no effect: it has infinitely many servers",
    );
    check_warning(
        &model("t t1 n e1 -1 p1 t t2 i e2 -1 p1", "s e1 1 -1 s e2 1 -1 a e2 1 -1"),
        "entry \"e2\" of task \"t2\": it has infinitely many threads and takes requests from open arrivals: nothing bounds its load",
    );
    let mut odd = entries("y e1 e2 1 -1");
    odd.processors[0].quantum = 1.0.into();
    check_warning(&odd, "processor \"p1\": its quantum has no effect: it does not share by time slices");
    let iterated = xml("<lqn-model><processor name=\"P\"><task name=\"C\" scheduling=\"ref\"><entry name=\"c\"><entry-phase-activities>
        <activity name=\"c1\" phase=\"1\" host-demand-mean=\"1\"/></entry-phase-activities></entry></task></processor>
        <convergence-collection>$a = $b</convergence-collection></lqn-model>");
    check_warning(&iterated, "model: its convergence-collection is kept but not carried out");
}
