//! Every construct of the text grammar.

use layerfit::model::{
    CallKind, CallOrder, HalfWidth, HistogramRequest, Model, Number, Observed, ParameterValue, Post, Pragma, Pre, ProcessorScheduling,
    RwLockRole, SemaphoreRole, TaskScheduling,
};

use super::{assert_survives, text};

/// A model with one server whose entry `e1` has the given lines, called by a customer; `e2` is a further server's.
fn with_entries(lines: &str) -> Model {
    text(&format!("P 0 p p1 f -1 T 0 t c1 r cc -1 p1 t t1 n e1 -1 p1 t t2 n e2 -1 p1 -1 E 0 s cc 1 -1 y cc e1 1 -1 {lines} -1"))
}

/// A task `t1` with activities `aa` to `ff` connected as given.
fn with_connections(connections: &str) -> Model {
    text(&format!(
        "P 0 p p1 f -1 T 0 t c1 r cc -1 p1 t t1 n e1 e2 -1 p1 -1 E 0 s cc 1 -1 y cc e1 1 -1 A e1 aa -1 \
         A t1 s aa 1 s bb 1 s dd 1 s ee 1 s ff 1 s 7 1 : {connections} -1"
    ))
}

#[test]
fn processors_and_groups() {
    let model = text(
        "P 6 p f1 f m 2 p i1 i p r1 r r 3 p h1 h R 2.5 p p1 p i p c1 c 0.1 R $f p s1 s {1/4} -1
         U 2 g ga 0.7 c c1 g gb $share c1 %u $ug -1
         T 1 t tt n ee -1 c1 g ga -1 E 0 -1",
    );
    let kinds: Vec<ProcessorScheduling> = model.processors.iter().map(|p| p.scheduling).collect();
    use ProcessorScheduling::{Cfs, Fcfs, Hol, Inf, Pri, Ps, Rand};
    assert_eq!(kinds, [Fcfs, Inf, Rand, Hol, Pri, Cfs, Ps]);
    assert_eq!(model.processors[0].multiplicity, 2.0.into());
    assert_eq!((&model.processors[2].replication, &model.processors[3].speed_factor), (&3.0.into(), &2.5.into()));
    assert_eq!(model.processors[4].multiplicity, f64::INFINITY.into());
    assert_eq!((&model.processors[5].quantum, &model.processors[5].speed_factor), (&0.1.into(), &Number::Parameter("f".into())));
    assert_eq!(model.processors[6].quantum, Number::Parameter("_1".into()));
    assert_eq!(model.parameters[0].value, ParameterValue::Expression("1/4".into()));
    let groups = &model.processors[5].groups;
    assert_eq!((groups[0].cap, groups[1].cap, &groups[1].share), (true, false, &Number::Parameter("share".into())));
    assert_eq!(model.tasks[0].group.as_deref(), Some("ga"));
    assert_eq!(model.observations[0].of, Observed::Group("gb".into()));
    assert_survives(&model);
}

#[test]
fn tasks_and_their_options() {
    let model = text(
        "P 0 p p1 f -1 T 0 t c1 r a1 -1 p1 z 2.5 m 10 t c2 b a2 -1 p1 t c3 u a3 -1 p1
         t t1 n b1 b2 -1 p1 5 q 9 r 2 t t2 f b3 -1 p1 i t t3 i b4 -1 p1 t t4 h b5 -1 p1 t t5 p b6 -1 p1 t t6 P b7 -1 p1
         t t7 S b8 b9 -1 p1 T 0 m $m t t8 W b10 b11 b12 b13 -1 p1 $prio
         I c1 t1 2 O c1 t1 $o -1 E 0 -1",
    );
    let kinds: Vec<TaskScheduling> = model.tasks.iter().map(|t| t.scheduling).collect();
    use TaskScheduling::{Burst, Fcfs, Hol, Inf, Poll, Pri, Ref, RwLock, Semaphore, Uniform};
    assert_eq!(kinds, [Ref, Burst, Uniform, Fcfs, Fcfs, Inf, Hol, Pri, Poll, Semaphore, RwLock]);
    assert_eq!((&model.tasks[0].think_time, &model.tasks[0].multiplicity), (&2.5.into(), &10.0.into()));
    let t1 = &model.tasks[3];
    assert_eq!((t1.entries.len(), &t1.priority, &t1.queue_length, &t1.replication), (2, &5.0.into(), &9.0.into(), &2.0.into()));
    assert_eq!((t1.fan_in[0].task.as_str(), &t1.fan_in[0].value), ("c1", &2.0.into()));
    assert_eq!((model.tasks[0].fan_out[0].task.as_str(), &model.tasks[0].fan_out[0].value), ("t1", &Number::Parameter("o".into())));
    assert_eq!(model.tasks[4].multiplicity, f64::INFINITY.into());
    assert_eq!(model.tasks[9].initial_tokens, Some(0.0.into()));
    assert_eq!(model.tasks[10].priority, Number::Parameter("prio".into()));
    assert_survives(&model);
}

#[test]
fn entries_by_phase() {
    let model = with_entries(
        "s e1 0.5 $d2 -1 c e1 2 -1 Z e1 0 0.1 -1 M e1 3 -1 f e1 0 1 -1 H e1 2 0:9 7 a e2 0.25 p e2 3 F e1 e2 0.5 -1
         y e1 e2 0 1 -1 z e1 e2 $y1 -1 s e2 0.1 0 0 -1 H e2 1 1:2",
    );
    let (_, e1) = model.entry("e1").expect("e1");
    let (one, two) = (e1.phase(1).expect("phase 1"), e1.phase(2).expect("phase 2"));
    assert_eq!((one.name.as_str(), two.name.as_str()), ("e1_ph1", "e1_ph2"));
    assert_eq!((&one.host_demand, &two.host_demand), (&0.5.into(), &Number::Parameter("d2".into())));
    assert_eq!((&one.host_demand_cvsq, &two.host_demand_cvsq), (&2.0.into(), &1.0.into()));
    assert_eq!((&one.think_time, &two.think_time, &one.max_service_time), (&0.0.into(), &0.1.into(), &3.0.into()));
    assert_eq!((one.call_order, two.call_order), (CallOrder::Stochastic, CallOrder::Deterministic));
    assert_eq!(two.histogram, Some(HistogramRequest { min: 0.0, max: 9.0, bins: 7 }));
    assert_eq!(one.calls.iter().map(|c| (c.kind, &c.mean)).collect::<Vec<_>>(), [(CallKind::Async, &Number::Parameter("y1".into()))]);
    assert_eq!(two.calls.iter().map(|c| (c.kind, &c.mean)).collect::<Vec<_>>(), [(CallKind::Sync, &1.0.into())]);
    assert_eq!((e1.forwarding[0].dest.as_str(), &e1.forwarding[0].probability), ("e2", &0.5.into()));
    let (_, e2) = model.entry("e2").expect("e2");
    assert_eq!(e2.phases.len(), 1, "phases without work are not there");
    assert_eq!(e2.phase(1).and_then(|a| a.histogram.clone()), Some(HistogramRequest { min: 1.0, max: 2.0, bins: 20 }));
    assert_eq!((e2.open_arrival_rate.as_ref(), e2.priority.as_ref()), (Some(&0.25.into()), Some(&3.0.into())));
    assert_survives(&model);
}

#[test]
fn locks() {
    let model = text(
        "P 0 p p1 f -1 T 0 t s1 S sa sb -1 p1 t w1 W wa wb wc wd -1 p1 -1
         E 0 P sa V sb R wa U wb W wc X wd -1",
    );
    let semaphore: Vec<_> = model.tasks[0].entries.iter().filter_map(|e| e.semaphore).collect();
    assert_eq!(semaphore, [SemaphoreRole::Signal, SemaphoreRole::Wait]);
    let rwlock: Vec<_> = model.tasks[1].entries.iter().filter_map(|e| e.rwlock).collect();
    assert_eq!(rwlock, [RwLockRole::RLock, RwLockRole::RUnlock, RwLockRole::WLock, RwLockRole::WUnlock]);
}

#[test]
fn activities_and_their_numbers() {
    let model = text(
        "P 0 p p1 f -1 T 0 t t1 n e1 e2 -1 p1 t t2 n e3 -1 p1 -1 E 0 A e1 aa H e1 2 0:3 -1
         A t1 s aa 0.5 c aa 0 Z aa 0.1 M aa 4 f aa 1 H aa 0:5 9 H aa 1:2 y aa e3 2 z aa e3 $z %w $w -1
         A t1 s bb {$x * 2} : aa -> bb; bb[e1, e2] -1",
    );
    let (task, entry) = model.entry("e1").expect("e1");
    assert_eq!((entry.start_activity.as_deref(), entry.phases.len()), (Some("aa"), 0));
    let aa = &task.activities[0];
    assert_eq!((&aa.host_demand, &aa.host_demand_cvsq), (&0.5.into(), &0.0.into()));
    assert_eq!((&aa.think_time, &aa.max_service_time, aa.call_order), (&0.1.into(), &4.0.into(), CallOrder::Deterministic));
    assert_eq!(aa.histogram, Some(HistogramRequest { min: 0.0, max: 5.0, bins: 9 }));
    let apart: Vec<&Observed> = model.histograms.iter().map(|h| &h.of).collect();
    let (task_name, activity) = ("t1".to_owned(), "aa".to_owned());
    assert_eq!(apart, [&Observed::Phase { entry: "e1".into(), phase: 2 }, &Observed::Activity { task: task_name, activity }]);
    assert_eq!(aa.calls.iter().map(|c| c.kind).collect::<Vec<_>>(), [CallKind::Sync, CallKind::Async]);
    assert_eq!(task.activities[1].host_demand, Number::Parameter("_1".into()));
    let replies: Vec<&str> = task.replies.iter().map(|r| r.entry.as_str()).collect();
    assert_eq!(replies, ["e1", "e2"]);
    assert!(matches!(&model.observations[0].of, Observed::ActivityCall { activity, dest, .. } if activity == "aa" && dest == "e3"));
    assert_survives(&model);
}

#[test]
fn connections_of_every_shape() {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<String>>();
    let single = || Pre::Single("aa".into());
    for (connection, pre, post) in [
        ("aa -> bb", single(), Some(Post::Single("bb".into()))),
        ("aa -> 7", single(), Some(Post::Single("7".into()))),
        ("aa -> bb & dd & ee", single(), Some(Post::And(names(&["bb", "dd", "ee"])))),
        ("aa & bb", Pre::And { activities: names(&["aa", "bb"]), quorum: 0.0.into() }, None),
        (
            "aa & bb & dd (2) -> ee",
            Pre::And { activities: names(&["aa", "bb", "dd"]), quorum: 2.0.into() },
            Some(Post::Single("ee".into())),
        ),
        ("aa + bb -> dd", Pre::Or(names(&["aa", "bb"])), Some(Post::Single("dd".into()))),
    ] {
        let model = with_connections(connection);
        let precedence = &model.tasks[1].precedences[0];
        assert_eq!((&precedence.pre, &precedence.post), (&pre, &post), "{connection}");
        assert_survives(&model);
    }
    assert_eq!(with_connections("aa[e1]").tasks[1].precedences, []);
}

#[test]
fn forks_with_weights() {
    let weights = |connection: &str| -> (Vec<(String, Number)>, Option<String>) {
        let model = with_connections(connection);
        assert_survives(&model);
        match model.tasks[1].precedences[0].post.clone() {
            Some(Post::Or(branches)) => (branches.into_iter().map(|b| (b.activity, b.value)).collect(), None),
            Some(Post::Loop { bodies, end }) => (bodies.into_iter().map(|b| (b.activity, b.value)).collect(), end),
            other => panic!("{connection}: {other:?}"),
        }
    };
    let of = |name: &str, value: f64| (name.to_owned(), Number::Value(value));
    assert_eq!(weights("aa -> (0.3) bb + (0.7) dd"), (vec![of("bb", 0.3), of("dd", 0.7)], None));
    assert_eq!(weights("aa -> ($p) bb + ({1 - $p}) dd").0[0].1, Number::Parameter("p".into()));
    assert_eq!(weights("aa -> 2.5 * bb"), (vec![of("bb", 2.5)], None));
    // The manual has the end of a loop last, the tools' parser after the first body.
    let with_end = (vec![of("bb", 2.5), of("dd", 1.0)], Some("ee".to_owned()));
    assert_eq!(weights("aa -> 2.5 * bb, 1 * dd, ee"), with_end);
    assert_eq!(weights("aa -> 2.5 * bb, ee, 1 * dd"), with_end);
    assert_eq!(weights("aa -> $n * bb, 7"), (vec![("bb".to_owned(), Number::Parameter("n".into()))], Some("7".to_owned())));
}

#[test]
fn general_section_and_pragmas() {
    let model = text(
        "#pragma multiserver=reiser\n# a comment\nG \"a \\\"b\\\"\" 1e-5 50 10 0.9 -1 %i $n %time $t\n#pragma quiet\n P 0 p p1 f -1 # x\nT 0 t t1 n e1 -1 p1 -1 E 0 -1\n #pragma not=one\n",
    );
    assert_eq!((model.name.as_str(), model.solver_params.comment.as_str()), ("a \"b\"", "a \"b\""));
    let params = &model.solver_params;
    assert_eq!((&params.conv_val, &params.it_limit), (&Some(1e-5.into()), &Some(50.0.into())));
    assert_eq!((&params.print_int, &params.underrelax_coeff), (&Some(10.0.into()), &Some(0.9.into())));
    let pragma = |param: &str, value: &str| Pragma { param: param.into(), value: value.into() };
    assert_eq!(params.pragmas, [pragma("multiserver", "reiser"), pragma("quiet", "")]);
    let measures: Vec<&str> = model.observations.iter().map(|o| o.measure.as_str()).collect();
    assert_eq!(measures, ["iterations", "elapsed-time"]);
    let params = text("G \"\" 1e-5 50 0.9 -1 P 0 p p1 f -1 T 0 t t1 n e1 -1 p1 -1 E 0 -1").solver_params;
    assert_eq!((params.print_int, params.underrelax_coeff), (None, Some(0.9.into())));
    assert_survives(&model);
}

#[test]
fn parameters_results_and_convergence() {
    let model = text(
        "$users = [1:100,10]\n$d = 0.5  $e = $d * 2 -1\n$k, $l = $k ** 2\n$s = \"text\"\n$list = [1, 2, 3]
         P 0 p p1 f -1 T 0 t c1 r cc -1 p1 m $users -1 E 0 s cc $e -1 %s1 $x %u 95 $u $du -1
         R 3 $0 $x = $u * 2 plot($0, $x) $x -1
         C 1 $d = $x - 1 -1",
    );
    let values: Vec<String> = model.parameters.iter().map(ToString::to_string).collect();
    assert_eq!(values, ["$users = [1:100,10]", "$d = 0.5", "$e = $d * 2 -1", "$k, $l = $k ** 2", "$s = \"text\"", "$list = [1, 2, 3]"]);
    let texts: Vec<&str> = model.opaque.iter().map(|o| o.text.as_str()).collect();
    assert_eq!(texts, ["$0\n$x = $u * 2\nplot($0, $x)\n$x", "$d = $x - 1"]);
    assert_eq!(model.observations[0].of, Observed::Entry("cc".into()));
    assert_eq!(model.observations[0].half_width, Some(HalfWidth { level: 95, variable: "du".into() }));
    assert_eq!(model.observations[1].of, Observed::Phase { entry: "cc".into(), phase: 1 });
    assert_eq!(model.observations[1].measure, "service-time");
    assert_survives(&model);
}

#[test]
fn observations_by_key() {
    let model = with_entries(
        "s e1 1 -1 %f $a %fb $b %u2 $c %pu $d %pw1 $e %v $f %w $g %x $h y e1 e2 1 -1 %w $i %wv1 99 $j $k F e1 e2 0.5 -1 %w $l s e2 1 -1",
    );
    let found: Vec<(&str, &str)> = model.observations.iter().map(|o| (o.variable.as_str(), o.measure.as_str())).collect();
    for expected in [
        ("a", "throughput"),
        ("b", "throughput-bound"),
        ("c", "phase2-utilization"),
        ("d", "proc-utilization"),
        ("e", "proc-waiting"),
        ("f", "service-time-variance"),
        ("g", "open-wait-time"),
        ("h", "prob-exceed-max-service-time"),
        ("i", "waiting"),
        ("j", "waiting-variance"),
        ("l", "waiting"),
    ] {
        assert!(found.contains(&expected), "{expected:?} is not among {found:?}");
    }
    assert_eq!(model.validate().iter().filter(|d| d.element == "model").count(), 0);
    assert_survives(&model);
}

#[test]
fn generated_names_avoid_those_of_the_file() {
    let model = text("P 0 p p1 f m {$_1 + 1} -1 T 0 t t1 n e1 -1 p1 -1 E 0 -1");
    assert_eq!(model.processors[0].multiplicity, Number::Parameter("_x1".into()));
}
