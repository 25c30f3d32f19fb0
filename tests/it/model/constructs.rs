//! Every construct of LQNX, read, found in the model, and written.

use layerfit::model::{
    CallKind, HalfWidth, HistogramRequest, Number, Observed, ParameterValue, Post, Pre, ProcessorScheduling, RwLockRole, SemaphoreRole,
    TaskScheduling, lqnx,
};

use super::{assert_survives, xml};

/// A model around `task`, with a customer that calls entry `e`.
fn around(task: &str) -> String {
    format!(
        r#"<lqn-model name="m"><solver-params comment=""/>
        <processor name="Pc" scheduling="inf"><task name="C" scheduling="ref"><entry name="c" type="PH1PH2"><entry-phase-activities>
          <activity name="c1" phase="1" host-demand-mean="1"><synch-call dest="e" calls-mean="1"/></activity>
        </entry-phase-activities></entry></task></processor>
        <processor name="P">{task}</processor></lqn-model>"#
    )
}

/// A task around an activity graph of entry `e`.
fn graph(activities: &str) -> String {
    around(&format!(r#"<task name="T"><entry name="e" type="NONE"/><task-activities>{activities}</task-activities></task>"#))
}

#[test]
fn processors_of_every_kind() {
    for (attributes, scheduling) in [
        ("", ProcessorScheduling::Fcfs),
        (r#"scheduling="fcfs""#, ProcessorScheduling::Fcfs),
        (r#"scheduling="inf""#, ProcessorScheduling::Inf),
        (r#"scheduling="hol""#, ProcessorScheduling::Hol),
        (r#"scheduling="pri""#, ProcessorScheduling::Pri),
        (r#"scheduling="pp""#, ProcessorScheduling::Pri),
        (r#"scheduling="ppr""#, ProcessorScheduling::Pri),
        (r#"scheduling="ps" quantum="0.1""#, ProcessorScheduling::Ps),
        (r#"scheduling="cfs" quantum="0.1""#, ProcessorScheduling::Cfs),
        (r#"scheduling="rr" quantum="$q""#, ProcessorScheduling::Rr),
        (r#"scheduling="rand""#, ProcessorScheduling::Rand),
        (r#"scheduling="lcfs""#, ProcessorScheduling::Lcfs),
    ] {
        let model = xml(&format!(
            r#"<lqn-model><processor name="P" {attributes} multiplicity="4" replication="2" speed-factor="$f"/></lqn-model>"#
        ));
        let processor = model.processor("P").expect("P");
        assert_eq!(processor.scheduling, scheduling);
        assert_eq!((&processor.multiplicity, &processor.replication), (&4.0.into(), &2.0.into()));
        assert_eq!(processor.speed_factor, Number::Parameter("f".into()));
        assert_survives(&model);
    }
    for infinite in ["inf", "@infinity", "@Infinity", "infinity"] {
        let model = xml(&format!(r#"<lqn-model><processor name="P" multiplicity="{infinite}"/></lqn-model>"#));
        assert_eq!(model.processors[0].multiplicity, f64::INFINITY.into());
        assert_survives(&model);
    }
}

#[test]
fn groups_with_shares_hold_their_tasks() {
    let model = xml(r#"<lqn-model><processor name="P" scheduling="cfs">
        <group name="g" share="0.7" cap="YES"><task name="A"><entry name="a"/></task></group>
        <group name="h" share="$s" cap="false"><task name="B"><entry name="b"/></task><task name="D"><entry name="d"/></task></group>
        </processor></lqn-model>"#);
    let groups = &model.processors[0].groups;
    assert_eq!((groups[0].cap, groups[1].cap, &groups[1].share), (true, false, &Number::Parameter("s".into())));
    let of: Vec<Option<&str>> = model.tasks.iter().map(|t| t.group.as_deref()).collect();
    assert_eq!(of, [Some("g"), Some("h"), Some("h")]);
    assert_survives(&model);
}

#[test]
fn tasks_of_every_kind() {
    for (name, scheduling) in [
        ("ref", TaskScheduling::Ref),
        ("burst", TaskScheduling::Burst),
        ("uniform", TaskScheduling::Uniform),
        ("fcfs", TaskScheduling::Fcfs),
        ("inf", TaskScheduling::Inf),
        ("hol", TaskScheduling::Hol),
        ("pri", TaskScheduling::Pri),
        ("poll", TaskScheduling::Poll),
        ("rand", TaskScheduling::Rand),
        ("semaphore", TaskScheduling::Semaphore),
        ("rwlock", TaskScheduling::RwLock),
    ] {
        let model = xml(&around(&format!(
            r#"<task name="T" scheduling="{name}" multiplicity="$m" replication="2" priority="3" think-time="1.5" queue-length="7"
                initially="0" activity-graph="yes" comment="kept nowhere"><fan-in source="C" value="2"/><fan-out dest="C" value="$o"/>
                <fan-out dest="T" value="1"/><entry name="e"/></task>"#
        )));
        let task = model.task("T").expect("T");
        assert_eq!(task.scheduling, scheduling);
        assert_eq!((&task.multiplicity, &task.replication), (&Number::Parameter("m".into()), &2.0.into()));
        assert_eq!((&task.priority, &task.think_time, &task.queue_length), (&3.0.into(), &1.5.into(), &7.0.into()));
        assert_eq!(task.initial_tokens, Some(0.0.into()));
        assert_eq!((task.fan_in.len(), task.fan_out.len(), task.fan_out[0].task.as_str()), (1, 2, "C"));
        assert_survives(&model);
    }
}

#[test]
fn entries_with_everything() {
    let model = xml(&around(
        r#"<task name="T" scheduling="semaphore">
        <entry name="e" type="PH1PH2" open-arrival-rate="0.5" priority="2" semaphore="wait" prob="0.25">
          <service-time-distribution phase="2" min="0" max="3"/>
          <forwarding dest="f" prob="0.4"/><forwarding dest="c" prob="$p"/>
          <entry-phase-activities>
            <activity name="three" phase="3" host-demand-mean="0.3"/>
            <activity name="one" phase="1" host-demand-mean="$d" host-demand-cvsq="2" think-time="0.2" max-service-time="4" call-order="LIST">
              <service-time-distribution min="0" max="9" number-bins="5"><underflow-bin begin="0" end="1" prob="0"/></service-time-distribution>
              <service-time-distribution min="1" max="2" number-bins="6"/>
              <synch-call dest="f" calls-mean="1.5"/><asynch-call dest="c" calls-mean="$y"/>
            </activity>
          </entry-phase-activities>
        </entry>
        <entry name="f" semaphore="signal"/></task>"#,
    ));
    let (task, entry) = model.entry("e").expect("e");
    assert_eq!(entry.open_arrival_rate, Some(0.5.into()));
    assert_eq!((entry.priority.as_ref(), entry.visit_probability.as_ref()), (Some(&2.0.into()), Some(&0.25.into())));
    assert_eq!((entry.semaphore, task.entries[1].semaphore), (Some(SemaphoreRole::Wait), Some(SemaphoreRole::Signal)));
    assert_eq!(entry.forwarding[1].probability, Number::Parameter("p".into()));
    assert_eq!(entry.phases.iter().map(|p| p.phase).collect::<Vec<_>>(), [1, 3]);
    let one = entry.phase(1).expect("phase 1");
    assert_eq!((&one.host_demand, &one.host_demand_cvsq), (&Number::Parameter("d".into()), &2.0.into()));
    assert_eq!((&one.think_time, &one.max_service_time), (&0.2.into(), &4.0.into()));
    assert_eq!(one.calls.iter().map(|c| c.kind).collect::<Vec<_>>(), [CallKind::Sync, CallKind::Async]);
    assert_eq!(one.histogram, Some(HistogramRequest { min: 0.0, max: 9.0, bins: 5 }));
    let of: Vec<(&Observed, u32)> = model.histograms.iter().map(|h| (&h.of, h.request.bins)).collect();
    let phase = |phase| Observed::Phase { entry: "e".into(), phase };
    assert_eq!(of, [(&phase(1), 6), (&phase(2), 10)]);
    assert_survives(&model);
}

#[test]
fn locks_have_their_roles() {
    let model = xml(&around(
        r#"<task name="T" scheduling="rwlock"><entry name="e" rwlock="r-lock"/><entry name="f" rwlock="r-unlock"/>
        <entry name="g" rwlock="w-lock"/><entry name="h" rwlock="w-unlock"/><service-time-distribution min="0" max="1"/></task>"#,
    ));
    let roles: Vec<_> = model.task("T").expect("T").entries.iter().filter_map(|e| e.rwlock).collect();
    assert_eq!(roles, [RwLockRole::RLock, RwLockRole::RUnlock, RwLockRole::WLock, RwLockRole::WUnlock]);
    assert_eq!(model.histograms[0].of, Observed::Task("T".into()));
    assert_survives(&model);
}

#[test]
fn graphs_of_every_shape() {
    let activities =
        r#"<activity name="a" bound-to-entry="e" host-demand-mean="1"/><activity name="b"/><activity name="d"/><activity name="f"/>"#;
    let (or, and) = (r#"<activity name="b" prob="0.25"/><activity name="d" prob="$p"/>"#, r#"<activity name="b"/><activity name="d"/>"#);
    for (precedences, pre, post) in [
        (r#"<precedence><pre><activity name="a"/></pre></precedence>"#.to_owned(), Pre::Single("a".into()), None),
        (
            r#"<precedence><pre><activity name="a"/></pre><post><activity name="b"/></post></precedence>"#.to_owned(),
            Pre::Single("a".into()),
            Some(Post::Single("b".into())),
        ),
        (
            format!(r#"<precedence><pre-AND quorum="1">{and}</pre-AND><post-AND>{and}</post-AND></precedence>"#),
            Pre::And { activities: vec!["b".into(), "d".into()], quorum: 1.0.into() },
            Some(Post::And(vec!["b".into(), "d".into()])),
        ),
        (
            format!(r#"<precedence><pre-OR>{and}</pre-OR><post><activity name="f"/></post></precedence>"#),
            Pre::Or(vec!["b".into(), "d".into()]),
            Some(Post::Single("f".into())),
        ),
    ] {
        let model = xml(&graph(&format!("{activities}{precedences}")));
        let precedence = &model.task("T").expect("T").precedences[0];
        assert_eq!((&precedence.pre, &precedence.post), (&pre, &post));
        assert_survives(&model);
    }
    let model = xml(&graph(&format!(r#"{activities}<precedence><pre><activity name="a"/></pre><post-OR>{or}</post-OR></precedence>"#)));
    let Some(Post::Or(branches)) = &model.task("T").expect("T").precedences[0].post else { panic!("no or-fork") };
    assert_eq!((&branches[0].value, &branches[1].value), (&0.25.into(), &Number::Parameter("p".into())));
    assert_survives(&model);
    let count = r#"<activity name="b" count="2.5"/><activity name="d"/>"#;
    for (end, expected) in [("", None), (r#" end="f""#, Some("f".to_owned()))] {
        let body = format!(r#"{activities}<precedence><pre><activity name="a"/></pre><post-LOOP{end}>{count}</post-LOOP></precedence>"#);
        let model = xml(&graph(&body));
        let Some(Post::Loop { bodies, end }) = &model.task("T").expect("T").precedences[0].post else { panic!("no loop") };
        assert_eq!((&bodies[0].value, &bodies[1].value, end), (&2.5.into(), &1.0.into(), &expected));
        assert_survives(&model);
    }
}

#[test]
fn replies_keep_their_order() {
    let model = xml(&graph(
        r#"<activity name="a" bound-to-entry="e"/><activity name="b"/>
        <reply-entry name="e"><reply-activity name="b"/><reply-activity name="a"/></reply-entry>
        <reply-entry name="c"><reply-activity name="a"/></reply-entry><reply-entry name="e"><reply-activity name="a"/></reply-entry>"#,
    ));
    let replies: Vec<(&str, &str)> = model.task("T").expect("T").replies.iter().map(|r| (r.entry.as_str(), r.activity.as_str())).collect();
    assert_eq!(replies, [("e", "b"), ("e", "a"), ("c", "a"), ("e", "a")]);
    assert_survives(&model);
}

#[test]
fn parameters_results_and_convergence_survive() {
    let model = xml(r#"<lqn-model name="m" description="d &lt;&quot;&amp;&#10;" lqn-schema-version="1.1" lqncore-schema-version="1.0" xml-debug="false">
        <parameters>
$a = 3            # a comment
$b = [1, 2, $a * 2]
$c = [1:9,2]
$d = [0.5, 0.25]
$e, $f = $a &lt; 4 ? $e : 2
$g = "text"
$h = (0 - 5)
        </parameters>
        <solver-params comment="c" conv_val="1e-5" it_limit="$it" underrelax_coeff="0.9" print_int="0">
          <result-general valid="true" iterations="3"><mva-info core="4"/></result-general>
          <result-observe iterations="$n"/>
          <pragma param="multiserver" value="reiser"/><pragma param="x"/></solver-params>
        <processor name="P"><result-observe utilization="$u"><result-conf-95 utilization="$du"/></result-observe></processor>
        <results-collection>
$0
$u, $du
$x = max($u, 1) plot($u, $du)
        </results-collection>
        <convergence-collection>$a = $u + 1</convergence-collection></lqn-model>"#
        .replace("$u, $du\n", "$u $du\n")
        .as_str());
    let values: Vec<(&str, &ParameterValue)> = model.parameters.iter().map(|p| (p.name.as_str(), &p.value)).collect();
    assert_eq!(
        values,
        [
            ("a", &ParameterValue::Number(3.0)),
            ("b", &ParameterValue::Expressions(vec!["1".into(), "2".into(), "$a * 2".into()])),
            ("c", &ParameterValue::Range { from: 1.0, to: 9.0, step: 2.0 }),
            ("d", &ParameterValue::List(vec![0.5, 0.25])),
            ("f", &ParameterValue::ForEach { over: "e".into(), expression: "$a < 4 ? $e : 2".into() }),
            ("g", &ParameterValue::Text { text: "text".into() }),
            ("h", &ParameterValue::Number(-5.0)),
        ]
    );
    assert_eq!(model.description, "d <\"&\n");
    assert_eq!(model.solver_params.it_limit, Some(Number::Parameter("it".into())));
    assert_eq!(model.solver_params.pragmas.len(), 2);
    let observed: Vec<(&Observed, &str)> = model.observations.iter().map(|o| (&o.of, o.variable.as_str())).collect();
    assert_eq!(observed, [(&Observed::Solution, "n"), (&Observed::Processor("P".into()), "u")]);
    assert_eq!(model.observations[1].half_width, Some(HalfWidth { level: 95, variable: "du".into() }));
    let opaque: Vec<(&str, &str)> = model.opaque.iter().map(|o| (o.element.as_str(), o.text.as_str())).collect();
    assert_eq!(opaque, [("results-collection", "$0\n$u\n$du\n$x = max($u, 1)\nplot($u, $du)"), ("convergence-collection", "$a = $u + 1")]);
    assert_survives(&model);
}

#[test]
fn observations_stand_on_every_element() {
    let observe = |variable: &str| format!(r#"<result-observe throughput="${variable}" waiting="${variable}2"/>"#);
    let model = xml(&format!(
        r#"<lqn-model><processor name="P" scheduling="cfs">{0}<group name="g" share="1">{1}<task name="T">{2}
        <entry name="e">{3}<forwarding dest="f" prob="1">{4}</forwarding><entry-phase-activities><activity name="e1" phase="1">{5}
          <synch-call dest="f" calls-mean="1">{6}</synch-call></activity></entry-phase-activities></entry><entry name="f" type="NONE"/>
        <task-activities><activity name="a" bound-to-entry="f">{7}<synch-call dest="e" calls-mean="1">{8}</synch-call></activity>
        <precedence><pre-AND><service-time-distribution min="0" max="5"/>{9}<activity name="a"/></pre-AND></precedence></task-activities>
        </task></group></processor></lqn-model>"#,
        observe("v0"),
        observe("v1"),
        observe("v2"),
        observe("v3"),
        observe("v4"),
        observe("v5"),
        observe("v6"),
        observe("v7"),
        observe("v8"),
        observe("v9"),
    ));
    let of: Vec<&Observed> = model.observations.iter().step_by(2).map(|o| &o.of).collect();
    let (task, activity) = (|| "T".to_owned(), || "a".to_owned());
    assert_eq!(
        of,
        [
            &Observed::Processor("P".into()),
            &Observed::Group("g".into()),
            &Observed::Task("T".into()),
            &Observed::Entry("e".into()),
            &Observed::Forwarding { entry: "e".into(), dest: "f".into() },
            &Observed::Phase { entry: "e".into(), phase: 1 },
            &Observed::PhaseCall { entry: "e".into(), phase: 1, dest: "f".into() },
            &Observed::Activity { task: task(), activity: activity() },
            &Observed::ActivityCall { task: task(), activity: activity(), dest: "e".into() },
            &Observed::Join { task: task(), activity: activity() },
        ]
    );
    assert_eq!(model.observations.len(), 20);
    assert_eq!(model.histograms[0].of, *of[9]);
    assert_survives(&model);
}

#[test]
fn a_program_is_kept_as_it_stands() {
    let program = "\n  if (a < b && c > \"d\") { println(\"]]>\"); }\n\r ";
    let escaped = program.replace('&', "&amp;").replace('<', "&lt;").replace('\r', "&#13;");
    let model = xml(&format!("<lqn-model><processor name=\"P\"/><lqx>{escaped}</lqx></lqn-model>"));
    assert_eq!((model.opaque[0].element.as_str(), model.opaque[0].text.as_str()), ("lqx", program));
    assert_survives(&model);
    let in_cdata = xml("<lqn-model><lqx><![CDATA[a < b & c]]> &amp; d</lqx></lqn-model>");
    assert_eq!(in_cdata.opaque[0].text, "a < b & c & d");
}

#[test]
fn names_of_elements_and_attributes_have_any_case() {
    let text = around(r#"<task name="T"><entry name="e"/></task>"#);
    let shouted = text.replace("<task ", "<TASK ").replace("</task>", "</TASK>").replace("scheduling=", "Scheduling=");
    assert_eq!(xml(&shouted), xml(&text));
}

#[test]
fn results_and_skipped_parts_are_not_kept() {
    let bare = around(r#"<task name="T"><entry name="e"/></task>"#);
    let solved = bare
        .replace(r#"<entry name="e"/>"#, r#"<result-task throughput="1"><result-conf-95 throughput="0.1"/></result-task><entry name="e"><result-entry x="1"/></entry><service/>"#)
        .replace(r#"<synch-call dest="e" calls-mean="1"/>"#, r#"<synch-call dest="e" calls-mean="1"><result-call waiting="1"/></synch-call><call-list/>"#)
        .replace("</lqn-model>", "<run-control/><plot-control/><slot/></lqn-model>");
    assert_ne!(solved, bare);
    assert_eq!(xml(&solved), xml(&bare));
}

#[test]
fn tasks_are_written_inside_their_processors() {
    let mut model = xml(&around(r#"<task name="T"><entry name="e"/></task><task name="U"><entry name="u"/></task>"#));
    let in_order = model.clone();
    model.tasks.rotate_left(1);
    assert_ne!(model, in_order);
    assert_eq!(xml(&lqnx::write(&model)), model.clone().in_file_order());
    let names: Vec<String> = model.in_file_order().tasks.into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["C", "T", "U"]);
}

#[test]
fn defaults_are_left_out_and_files_are_indented() {
    let written = lqnx::write(&xml(&around(r#"<task name="T"><entry name="e"/></task>"#)));
    assert!(written.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<lqn-model name=\"m\""), "{written}");
    assert!(written.contains("\n  <solver-params comment=\"\"/>\n"), "{written}");
    assert!(
        written.contains("\n    <task name=\"T\" scheduling=\"fcfs\">\n      <entry name=\"e\" type=\"PH1PH2\"/>\n    </task>\n"),
        "{written}"
    );
}
