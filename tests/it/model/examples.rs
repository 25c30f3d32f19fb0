//! The example of the LQN manuals' three layers with a fork, in both formats.

use layerfit::model::{Call, CallKind, CallOrder, Model, Number, Post, Pre, ProcessorScheduling, TaskScheduling};

use super::{assert_survives, text, xml};

const XML: &str = r#"
<lqn-model name="demo"><solver-params comment="demo"/>
<processor name="Pu" scheduling="inf"><task name="Users" scheduling="ref" multiplicity="3" think-time="2">
 <entry name="use" type="PH1PH2"><entry-phase-activities>
  <activity name="use1" phase="1" host-demand-mean="0.1" call-order="DETERMINISTIC"><synch-call dest="get" calls-mean="1"/></activity>
 </entry-phase-activities></entry></task></processor>
<processor name="Ps" scheduling="ps" quantum="0.01" multiplicity="2"><task name="Web" multiplicity="2">
 <entry name="get" type="NONE"/><task-activities>
  <activity name="in" bound-to-entry="get" host-demand-mean="0.1"/>
  <activity name="ll" host-demand-mean="0.2"><synch-call dest="read" calls-mean="1.5"/></activity>
  <activity name="rr" host-demand-mean="0.3" host-demand-cvsq="0.5"/>
  <activity name="out" host-demand-mean="0.05"/>
  <precedence><pre><activity name="in"/></pre><post-AND><activity name="ll"/><activity name="rr"/></post-AND></precedence>
  <precedence><pre-AND><activity name="ll"/><activity name="rr"/></pre-AND><post><activity name="out"/></post></precedence>
  <reply-entry name="get"><reply-activity name="out"/></reply-entry></task-activities></task></processor>
<processor name="Pd"><task name="Disk"><entry name="read" type="PH1PH2"><entry-phase-activities>
 <activity name="r1" phase="1" host-demand-mean="0.2"/><activity name="r2" phase="2" host-demand-mean="0.1"/>
</entry-phase-activities></entry></task></processor></lqn-model>
"#;

const TEXT: &str = r#"
G "demo" -1
P 0 p Pu i  p Ps s 0.01 m 2  p Pd f -1
T 0 t Users r use -1 Pu z 2 m 3  t Web n get -1 Ps m 2  t Disk n read -1 Pd -1
E 0 s use 0.1 -1  f use 1 -1  y use get 1 -1  A get in  s read 0.2 0.1 -1 -1
A Web s in 0.1 s ll 0.2 y ll read 1.5 s rr 0.3 c rr 0.5 s out 0.05
: in -> ll & rr; ll & rr -> out; out[get] -1
"#;

/// Text does not name phases; XML does.
fn with_unnamed_phases(mut model: Model) -> Model {
    for entry in model.tasks.iter_mut().flat_map(|task| &mut task.entries) {
        for phase in &mut entry.phases {
            phase.activity.name = format!("{}_ph{}", entry.name, phase.phase);
        }
    }
    model
}

#[test]
fn both_formats_give_the_same_model() {
    let from_xml = xml(XML);
    assert_eq!(with_unnamed_phases(from_xml.clone()), text(TEXT));
    assert_eq!(from_xml.validate(), []);
    assert_survives(&from_xml);
    assert_survives(&text(TEXT));
}

#[test]
fn the_model_holds_what_the_file_says() {
    let model = xml(XML);
    assert_eq!((model.name.as_str(), model.solver_params.comment.as_str()), ("demo", "demo"));
    let names: Vec<&str> = model.processors.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["Pu", "Ps", "Pd"]);
    let ps = model.processor("Ps").expect("Ps");
    assert_eq!((ps.scheduling, &ps.quantum, &ps.multiplicity), (ProcessorScheduling::Ps, &Number::Value(0.01), &2.0.into()));
    let users = model.task("Users").expect("Users");
    assert_eq!((users.scheduling, &users.multiplicity, &users.think_time), (TaskScheduling::Ref, &3.0.into(), &2.0.into()));
    let (task, entry) = model.entry("use").expect("use");
    assert_eq!((task.name.as_str(), task.processor.as_str()), ("Users", "Pu"));
    let work = entry.phase(1).expect("phase 1");
    assert_eq!((work.name.as_str(), work.call_order), ("use1", CallOrder::Deterministic));
    assert_eq!(work.calls, [Call { kind: CallKind::Sync, dest: "get".into(), mean: 1.0.into() }]);
    let (web, get) = model.entry("get").expect("get");
    assert_eq!(get.start_activity.as_deref(), Some("in"));
    assert_eq!(web.activities[2].host_demand_cvsq, 0.5.into());
    assert_eq!(web.precedences[0].post, Some(Post::And(vec!["ll".into(), "rr".into()])));
    assert_eq!(web.precedences[1].pre, Pre::And { activities: vec!["ll".into(), "rr".into()], quorum: 0.0.into() });
    assert_eq!((web.replies[0].entry.as_str(), web.replies[0].activity.as_str()), ("get", "out"));
    let (_, read) = model.entry("read").expect("read");
    let demands: Vec<&Number> = read.phases.iter().map(|p| &p.activity.host_demand).collect();
    assert_eq!(demands, [&Number::Value(0.2), &Number::Value(0.1)]);
}
