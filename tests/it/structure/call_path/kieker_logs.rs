//! What is made of Kieker logs.

use layerfit::{
    structure::{
        ExtractOptions, Extraction,
        call_path::{Finished, Instances, ServiceReport},
        extract,
        interactions::Interactions,
    },
    trace::{Format, Source, kieker},
};

use super::{CallPathOptions, service, technique};
use crate::structure::calls;

const MAP: &str = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n\
    $3=kieker.common.record.flow.trace.operation.BeforeOperationEvent\n\
    $4=kieker.common.record.flow.trace.operation.AfterOperationEvent\n";

/// An execution of `operation` in trace 7, written when it ends.
fn execution(operation: &str, (tin, tout): (u64, u64), (eoi, ess): (i32, i32)) -> String {
    format!("$1;{tout};public void p.{operation}();<no-session-id>;7;{tin};{tout};H;{eoi};{ess}\n")
}

fn sources(log: &str) -> [Source<'_>; 2] {
    [Source { name: "k/1.dat", bytes: log.as_bytes() }, Source { name: "k/kieker.map", bytes: MAP.as_bytes() }]
}

fn found(log: &str) -> (Finished, Interactions) {
    let (mut texts, mut all) = (kieker::Texts::default(), Interactions::default());
    let mut technique = technique(&CallPathOptions::default());
    let mut out = |batch: Interactions| all.merge(batch);
    let options = kieker::ReadOptions::default();
    kieker::read(&sources(log), &options, &mut texts, &mut |texts, event| technique.feed(texts, event, &mut out)).unwrap();
    let finished = technique.finish(&mut out);
    assert_eq!(finished.report.records.accounted(), finished.report.records.seen);
    (finished, all)
}

fn extracted(log: &str) -> Extraction {
    extract(&sources(log), Format::Kieker, &ExtractOptions::default()).unwrap()
}

fn count(extraction: &Extraction, code: &str) -> u64 {
    extraction.diagnostics.iter().filter(|d| d.code == code).map(|d| d.count).sum()
}

/// On a known host an execution need not name a class; without hosts its component has a name all the same.
#[test]
fn operations_without_a_class_are_of_a_task_with_a_name() {
    let log = execution("C.b", (10, 20), (1, 1)) + &execution("C.a", (0, 30), (0, 0)).replace("p.C.a()", "nonsense");
    let mut options = ExtractOptions::default();
    let tasks = |options: &ExtractOptions| {
        let found = extract(&sources(&log), Format::Kieker, options).unwrap();
        assert_eq!(count(&found, "model_defect") + count(&found, "bad_row"), 0);
        found.model.tasks.into_iter().map(|task| task.name).collect::<Vec<_>>()
    };
    assert_eq!(tasks(&options), ["Client", "H::", "H::p.C"]);
    options.call_path.instances = Instances::Together;
    assert_eq!(tasks(&options), ["Client", "(no_class)", "p.C"]);
}

#[test]
fn executions_that_only_executions_tell_are_in_the_model() {
    // Main calls New, which calls Part and Inner; only New and Part are recorded as events, too.
    let log = "$3;11;11;5;0;public void p.New.b();p.New\n$3;21;21;5;1;public void p.Part.c();p.Part\n\
        $4;29;29;5;2;public void p.Part.c();p.Part\n"
        .to_owned()
        + &execution("Part.c", (20, 30), (2, 2))
        + &execution("Inner.d", (31, 38), (3, 2))
        + "$4;39;39;5;3;public void p.New.b();p.New\n"
        + &execution("New.b", (10, 40), (1, 1))
        + &execution("Main.a", (0, 100), (0, 0));
    let extraction = extracted(&log);
    assert_eq!((count(&extraction, "recorded_twice"), count(&extraction, "missing_execution")), (2, 0));
    let mut found_calls = calls(&extraction.model);
    found_calls.sort();
    let expected = [
        "Client.1 sync 0.5 H::p.Main.a()",
        "Client.1 sync 0.5 p.New.b()",
        "H::p.Main.a() sync 1 H::p.Inner.d()",
        "p.New.b() sync 1 p.Part.c()",
    ];
    assert_eq!(found_calls, expected);
    let (finished, _) = found(&log);
    let executions = |s: &ServiceReport| (s.executions, s.mean_self_ns);
    assert_eq!(executions(service(&finished, "p.Main", "a()")), (1, Some(70.0)), "New's time is not Main's");
    assert_eq!(executions(service(&finished, "p.New", "b()")), (1, Some(20.0)));
    assert_eq!(finished.report.paths.contexts, 2);
}

#[test]
fn a_trace_that_events_tell_as_a_whole_is_no_request() {
    let log = "$3;11;11;5;0;public void p.New.b();p.New\n$3;21;21;5;1;public void p.Part.c();p.Part\n\
        $4;29;29;5;2;public void p.Part.c();p.Part\n"
        .to_owned()
        + &execution("Part.c", (20, 30), (1, 1))
        + "$4;39;39;5;3;public void p.New.b();p.New\n"
        + &execution("New.b", (10, 40), (0, 0));
    let (finished, all) = found(&log);
    assert_eq!((finished.report.paths.contexts, all.traces.len(), all.interactions.len()), (1, 1, 2));
}

#[test]
fn executions_without_a_place_are_roots() {
    let log = execution("A.a", (0, 10), (-1, -1)) + &execution("A.a", (2, 6), (-1, -1)) + &execution("B.b", (3, 5), (-1, -1));
    let extraction = extracted(&log);
    assert_eq!(count(&extraction, "execution_without_place"), 3);
    assert_eq!(extraction.interactions.sync, 3);
    let (finished, _) = found(&log);
    assert_eq!(service(&finished, "p.A", "a()").mean_self_ns, Some(7.0));
}

#[test]
fn stack_sizes_that_jump_are_told() {
    let root = execution("A.a", (0, 100), (0, 0));
    let jumps = |log: &str| count(&extracted(log), "stack_size_jump");
    assert_eq!(jumps(&(execution("C.c", (20, 30), (1, 2)) + &root)), 1);
    assert_eq!(jumps(&(execution("C.c", (20, 30), (1, 1)) + &root)), 0);
    // That an execution is missing is told already.
    assert_eq!(jumps(&(execution("C.c", (20, 30), (2, 2)) + &root)), 0);
    assert_eq!(jumps(&execution("C.c", (20, 30), (0, 1))), 1);
    let most = u32::MAX.to_string();
    assert_eq!(jumps(&execution("C.c", (20, 30), (0, 7)).replace(";0;7", &format!(";{most};{most}"))), 0);
    assert_eq!(jumps(&(execution("C.c", (20, 30), (0, 7)).replace(";0;7", &format!(";0;{most}")) + &root.replace(";0;0", ";1;0"))), 1);
}
