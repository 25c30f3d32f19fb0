//! Where the demands of entries come from, and what is said of those that nothing tells.

use layerfit::{
    model::Bindings,
    solve::{SolveOptions, Solver, solve},
    structure::{Demands, ExtractOptions, Extraction, extract, resources::parse_resources},
    trace::{Format, Source},
};

const EVENTS: &str = "operation,thread,next_thread,event,type,task,entry,cpu\n1,1,,1,Ex,U,u,\n1,1,,2,Se,U,u,40\n1,1,,3,Re,A,a,700\n\
    1,1,,4,Se,A,a,\n1,1,,5,Re,B,b,\n1,1,,6,Sa,B,b,\n1,1,,7,Ra,A,a,200\n1,1,,8,Sa,A,a,\n1,1,,9,Ra,U,u,\n1,1,,10,En,U,u,\n";

fn extracted(text: &str, format: Format, options: &ExtractOptions) -> Extraction {
    extract(&[Source { name: "trace", bytes: text.as_bytes() }], format, options).unwrap()
}

/// Demands of first phases by entry, and the entries of which it is told that they have the default.
fn demands(extraction: &Extraction) -> (Vec<(&str, f64)>, Vec<&str>) {
    let entries = extraction.model.tasks.iter().flat_map(|task| &task.entries);
    let demands = entries.map(|e| (e.name.as_str(), e.phases[0].activity.host_demand.literal().unwrap())).collect();
    let told = extraction.diagnostics.iter().filter(|d| d.code == "host_demand_defaulted");
    (demands, told.flat_map(|d| &d.examples).map(String::as_str).collect())
}

#[test]
fn demands_of_angio_traces_are_those_recorded() {
    let found = extracted(include_str!("../../../examples/angio/figure-3.csv"), Format::Angio, &ExtractOptions::default());
    let (demands, defaulted) = demands(&found);
    assert_eq!(demands, [("a.1", 1e-3), ("A.place_order", 3e-4), ("B.reserve", 5e-4), ("C.notify", 2e-3)]);
    assert_eq!(defaulted, ["a.1"]);
}

#[test]
fn cpu_stamps_of_event_traces_are_demands() {
    let found = extracted(EVENTS, Format::EventTrace, &ExtractOptions::default());
    let (of_entries, defaulted) = demands(&found);
    let expected = [("U.1", 4e-5), ("A.a", 9e-4), ("B.b", 1e-3)];
    for ((entry, demand), (known, told)) in of_entries.iter().zip(expected) {
        assert_eq!(*entry, known);
        assert!((demand - told).abs() < 1e-12, "{entry}: {demand}");
    }
    assert_eq!((of_entries.len(), defaulted), (3, vec!["B.b"]));
}

#[test]
fn what_is_told_is_what_was_defaulted() {
    let resources = parse_resources("r.toml", "[task.A.demand]\na = 0.25\n").unwrap();
    let of = |demands| ExtractOptions { demands, resources: resources.clone(), ..ExtractOptions::default() };
    let found = extracted(EVENTS, Format::EventTrace, &of(Demands::Auto));
    assert_eq!(demands(&found).1, ["B.b"]);
    let found = extracted(EVENTS, Format::EventTrace, &of(Demands::Default));
    assert_eq!(demands(&found), (vec![("U.1", 1e-3), ("A.a", 0.25), ("B.b", 1e-3)], vec!["U.1", "B.b"]));
}

fn told(extraction: &Extraction, code: &str) -> Vec<String> {
    extraction.diagnostics.iter().filter(|d| d.code == code).flat_map(|d| d.examples.clone()).collect()
}

/// The one entry of customers may be called as in the model; what does not count for its task is told.
#[test]
fn what_resources_say_in_vain_is_told() {
    let text = "[task.U]\nthreads = 2\nscheduling = \"pri\"\ncustomers = 4\n[task.U.demand]\n\"U.1\" = 0.5\n\
                [task.A]\nrate = 3\nthreads = 2\nscheduling = \"hol\"\n[task.B]\nthreads = 2\nscheduling = \"inf\"\n[task.C]\nthreads = 1\n";
    let resources = parse_resources("r.toml", text).unwrap();
    let options = ExtractOptions { resources, ..ExtractOptions::default() };
    let of_events = extracted(EVENTS, Format::EventTrace, &options);
    assert_eq!(demands(&of_events).0[0], ("U.1", 0.5));
    let log = "sender,receiver,time\nU,A,10\nA,B,20\nB,A,30\nA,U,40\n";
    for found in [of_events, extracted(log, Format::Same, &options)] {
        assert_eq!(told(&found, "unknown_resource"), ["task C"]);
        let unused = [
            "U: threads, but the task serves nothing",
            "U: scheduling, but the task serves nothing",
            "A: customers or a rate, but the task starts nothing",
            "B: a number of threads beside scheduling inf",
        ];
        assert_eq!(told(&found, "unused_resource"), unused);
    }
}

#[test]
fn message_logs_do_not_tell_demands() {
    let log = "sender,receiver,time\nA,B,10\nB,A,30\n";
    let (of_entries, defaulted) = (extracted(log, Format::Same, &ExtractOptions::default()), ["A.1", "B.1"]);
    assert_eq!(demands(&of_entries), (vec![("A.1", 1e-3), ("B.1", 1e-3)], defaulted.to_vec()));
}

const SPAN: &str = r#"{"traceId":"1","timestamp":1000,"localEndpoint":{"serviceName":"web"}"#;

/// The client that stands above roots does nothing itself: the time of a cycle is that of what it waits for, in every solver.
#[test]
fn customers_that_were_not_recorded_take_no_time() {
    let text = format!(r#"[{SPAN},"id":"1","kind":"SERVER","name":"buy","duration":4000}}]"#);
    let found = extracted(&text, Format::Zipkin, &ExtractOptions { customers: Some(2.0.into()), ..ExtractOptions::default() });
    assert_eq!(demands(&found), (vec![("Client.1", 0.0), ("web.buy", 4e-3)], vec![]));
    for solver in [Solver::Auto, Solver::Layered, Solver::Markov, Solver::Simulate] {
        let options = SolveOptions { solver, ..SolveOptions::default() };
        let throughput = solve(&found.model, &Bindings::new(), &options).unwrap().tasks["Client"].throughput;
        assert!((throughput / 250.0 - 1.0).abs() < 0.05, "{solver:?}: {throughput}");
    }
    let calls = "record_id,time,kind,component,method,context_id\n1,10,entry,A,run,c\n2,20,exit,A,run,c\n";
    let found = extracted(calls, Format::CallPath, &ExtractOptions::default());
    assert_eq!(demands(&found).0[0].1, 0.0, "{:?}", demands(&found));
}

/// Customers that wait for nothing and do not think would send without end: they have the default, and it is told.
#[test]
fn a_cycle_that_takes_no_time_at_all_has_the_default() {
    let text = format!(r#"[{SPAN},"id":"1","kind":"CONSUMER","name":"take","duration":4000}}]"#);
    let options = ExtractOptions { customers: Some(2.0.into()), ..ExtractOptions::default() };
    let found = extracted(&text, Format::Zipkin, &options);
    assert_eq!(demands(&found), (vec![("Client.1", 1e-3), ("web.take", 4e-3)], vec!["Client.1"]));
    assert_eq!(found.diagnostics.iter().filter(|d| d.code == "unpaced_customers").count(), 1);
    let thinking = ExtractOptions { think_time: 1.0.into(), ..options };
    assert_eq!(demands(&extracted(&text, Format::Zipkin, &thinking)), (vec![("Client.1", 0.0), ("web.take", 4e-3)], vec![]));
}
